# ruff: noqa: E501 (one line a program)
"""Programs of torch's objects: what the interpreter says of their `result` is what torch gives, as far as it says anything."""

from __future__ import annotations

import inspect
import warnings

import pytest
from layer_samples import LAYERS
from test_library_python import result
from test_python_programs import agrees, unsaid
from torch import nn

from gradlint import library
from gradlint.interpret.registry import bases, canonical
from gradlint.library.effects import layer

SETUP = """
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x):
        return self.body(x)


net = Net()
x = torch.rand(3, 4)
"""

PROGRAMS = {
    # modules and what they hold
    "names of parameters": "result = [n for n, _ in net.named_parameters()]",
    "names with a prefix": "result = [n for n, _ in net.named_parameters('model')]",
    "own names alone": "net.extra = nn.Parameter(torch.zeros(2))\nresult = [n for n, _ in net.named_parameters(recurse=False)]",
    "own parameters alone": "net.extra = nn.Parameter(torch.zeros(2))\nresult = len(list(net.parameters(False)))",
    "parameters of layers": "result = [len(list(layer.parameters())) for layer in (nn.Linear(2, 2), nn.Linear(2, 2, bias=False), nn.ReLU(), nn.BatchNorm1d(2), nn.BatchNorm1d(2, affine=False), nn.Conv2d(1, 1, 3), nn.Embedding(3, 2), nn.LayerNorm(2), nn.LayerNorm(2, elementwise_affine=False), nn.PReLU(), nn.Bilinear(2, 2, 2))]",
    "an instance norm has to be asked": "result = [len(list(layer.parameters())) for layer in (nn.InstanceNorm2d(2), nn.InstanceNorm2d(2, affine=True), nn.InstanceNorm1d(2, 1e-5, 0.1, True), nn.InstanceNorm2d(2).half())]",
    "switched off by position": "result = [len(list(layer.parameters())) for layer in (nn.BatchNorm1d(2, 1e-5, 0.1, False), nn.GroupNorm(1, 2, 1e-5, False), nn.LayerNorm(2, 1e-5, False), nn.LSTM(2, 2, 1, False), nn.RNN(2, 2, 1, 'relu', False), nn.MultiheadAttention(4, 2, 0.0, False), nn.LazyLinear(3, False))]",
    "a bias that is none": "result = (nn.Linear(2, 2, False).bias, nn.BatchNorm1d(2, affine=False).weight, nn.Linear(2, 2).bias is None, nn.LayerNorm(2, bias=False).bias)",
    "bias by position": "result = [len(list(layer.parameters())) for layer in (nn.Linear(2, 2, False), nn.Conv1d(1, 1, 3, 1, 0, 1, 1, False), nn.Bilinear(2, 2, 2, False))]",
    "recurrent layers": "result = [len(list(layer.parameters())) for layer in (nn.GRU(2, 2), nn.LSTM(2, 2, 2), nn.RNN(2, 2, bias=False), nn.LSTMCell(2, 2), nn.GRU(2, 2, bidirectional=True))]",
    "recurrent names": "result = [n for n, _ in nn.LSTM(2, 2).named_parameters()]",
    "names of a normalisation": "result = [n for n, _ in nn.BatchNorm1d(2).named_parameters()]",
    "shared once": "tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))\ntied[1].weight = tied[0].weight\nresult = len(list(tied.parameters()))",
    "shared module once": "layer = nn.Linear(2, 2)\nresult = (len(list(nn.Sequential(layer, layer).parameters())), len(nn.Sequential(layer, layer)))",
    "children": "result = [type(part).__name__ for part in net.children()]",
    "names of children": "result = [n for n, _ in net.named_children()]",
    "modules": "result = [type(part).__name__ for part in net.modules()]",
    "names of modules": "result = [n for n, _ in net.named_modules()]",
    "modules of nested ones": "result = [n for n, _ in nn.Sequential(net, nn.ReLU()).named_modules()]",
    "buffer by its name": "result = (net.steps.requires_grad, 'steps' in net.state_dict())",
    "state without gradient": "result = any(tensor.requires_grad for tensor in net.state_dict().values())",
    "a submodule by name": "result = net.get_submodule('body.0') is net.body[0]",
    "the module itself by no name": "result = net.get_submodule('') is net",
    "a parameter by name": "result = net.get_parameter('body.0.weight') is net.body[0].weight",
    "registered parameter": "net.register_parameter('scale', nn.Parameter(torch.ones(1)))\nresult = (net.scale.requires_grad, 'scale' in dict(net.named_parameters()))",
    "registered parameter that is none": "net.register_parameter('scale', None)\nresult = (net.scale, 'scale' in dict(net.named_parameters()))",
    "added module": "net.add_module('head', nn.Linear(2, 2))\nresult = (type(net.head).__name__, len(list(net.children())))",
    "registered module": "net.register_module('head', nn.Linear(2, 2))\nresult = [n for n, _ in net.named_children()]",
    "deleted module": "del net.body\nresult = [n for n, _ in net.named_parameters()]",
    "replaced layer": "net.body[0] = nn.Identity()\nresult = [n for n, _ in net.named_parameters()]",
    "a parameter that is set to none": "net.body[0].bias = None\nresult = [n for n, _ in net.named_parameters()]",
    "is in train mode": "result = (net.training, net.eval().training, net.body[0].training, net.train().training, net.train(False).body.training)",
    "mode by keyword": "result = (net.train(mode=False).training, net.train(mode=True).training)",
    "mode of a part": "net.body.eval()\nresult = (net.training, net.body.training, net.body[1].training)",
    "mode set as an attribute": "net.training = False\nresult = (net.training, net.body.training)",
    "all parts in eval mode": "net.eval()\nresult = [part.training for part in net.modules()]",
    "own train method": "class Frozen(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.stem, self.head = nn.Linear(2, 2), nn.Linear(2, 2)\n    def train(self, mode=True):\n        super().train(mode)\n        self.stem.eval()\n        return self\nf = Frozen().train()\nresult = (f.training, f.stem.training, f.head.training)",
    "frozen": "net.requires_grad_(False)\nresult = [p.requires_grad for p in net.parameters()]",
    "frozen by keyword": "net.requires_grad_(requires_grad=False)\nresult = [p.requires_grad for p in net.parameters()]",
    "frozen part": "net.body[0].requires_grad_(False)\nresult = [n for n, p in net.named_parameters() if p.requires_grad]",
    "frozen and thawed": "net.requires_grad_(False).requires_grad_()\nresult = all(p.requires_grad for p in net.parameters())",
    "an attribute of a module freezes nothing": "net.requires_grad = False\nresult = [p.requires_grad for p in net.parameters()]",
    "applied": "kinds = []\nnet.apply(lambda part: kinds.append(type(part).__name__))\nresult = kinds",
    "moved module is the same": "result = (net.to('cpu') is net, net.float() is net, net.cpu() is net, net.double() is net)",
    "a cast keeps the parameters": "before = net.body[0].weight\nnet.double()\nresult = (net.body[0].weight is before, before.dtype == torch.float64, before.is_leaf)",
    "copy of a module": "import copy\ntwin = copy.deepcopy(net)\nresult = (twin is net, twin.body[0].weight is net.body[0].weight, twin.body[0].weight.requires_grad, twin.training)",
    "gradients cleared to zero": "net(x).sum().backward()\nnet.zero_grad(set_to_none=False)\nresult = net.body[0].weight.grad is None",
    "forward hook": "seen = []\nhandle = net.body[1].register_forward_hook(lambda module, given, out: seen.append(type(module).__name__))\nnet(x)\nhandle.remove()\nnet(x)\nresult = seen",
    "an attribute that is missing": "result = (hasattr(net, 'body'), hasattr(net, 'other'), getattr(net, 'other', 3))",
    "module is one": "result = (isinstance(net, nn.Module), isinstance(net.body, nn.Sequential), isinstance(net.body[0], (nn.Linear, nn.Conv2d)), isinstance(net.body[1], nn.Linear))",
    "kinds of layers": "result = (isinstance(nn.BatchNorm2d(2), nn.modules.batchnorm._BatchNorm), isinstance(nn.LSTM(2, 2), nn.RNNBase), isinstance(nn.ReLU6(), nn.Hardtanh), isinstance(nn.Dropout2d(), nn.Dropout))",
    "own class of a layer": "class Wide(nn.Linear):\n    pass\nw = Wide(2, 3)\nresult = (isinstance(w, nn.Linear), type(w) is nn.Linear, issubclass(Wide, nn.Module), [n for n, _ in w.named_parameters()])",
    # containers
    "length of a Sequential": "result = (len(net.body), len(nn.Sequential()), len(nn.ModuleList([net, net])), len(nn.ModuleDict({'a': net})))",
    "items of a Sequential": "result = [type(part).__name__ for part in net.body]",
    "last of a Sequential": "result = (type(net.body[-1]).__name__, type(net.body[:1]).__name__, len(net.body[1:]), len(net.body[:-1]))",
    "names in a Sequential": "import collections\ns = nn.Sequential(collections.OrderedDict([('one', nn.Linear(2, 2)), ('two', nn.ReLU())]))\nresult = ([n for n, _ in s.named_children()], type(s.two).__name__, type(s[0]).__name__, [n for n, _ in s.named_parameters()])",
    "a list grows": "l = nn.ModuleList()\nl.append(nn.Linear(2, 2))\nl.extend([nn.ReLU(), nn.Tanh()])\nl.insert(1, nn.GELU())\nresult = [type(part).__name__ for part in l]",
    "a list by index": "l = nn.ModuleList([nn.ReLU(), nn.Tanh()])\nl[0] = nn.GELU()\nresult = (type(l[0]).__name__, type(l[-1]).__name__, len(l[:1]), type(l[:1]).__name__)",
    "a list of a comprehension": "l = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))\nresult = (len(l), len(list(l.parameters())))",
    "a list enumerated": "l = nn.ModuleList([nn.ReLU(), nn.Tanh()])\nresult = [(i, type(part).__name__) for i, part in enumerate(l)]",
    "a list zipped": "l = nn.ModuleList([nn.ReLU(), nn.Tanh()])\nresult = [(name, type(part).__name__) for name, part in zip('ab', l)]",
    "a list reversed": "l = nn.ModuleList([nn.ReLU(), nn.Tanh()])\nresult = [type(part).__name__ for part in reversed(l)]",
    "popped from a list": "l = nn.ModuleList([nn.ReLU(), nn.Tanh()])\ngone = l.pop(0)\nresult = (type(gone).__name__, len(l))",
    "deleted from a list": "l = nn.ModuleList([nn.ReLU(), nn.Tanh()])\ndel l[0]\nresult = [type(part).__name__ for part in l]",
    "a Sequential grows": "s = nn.Sequential(nn.ReLU())\ns.append(nn.Tanh())\ns.add_module('last', nn.GELU())\nresult = ([type(part).__name__ for part in s], [n for n, _ in s.named_children()])",
    "a dict of modules": "d = nn.ModuleDict({'a': nn.ReLU()})\nd['b'] = nn.Tanh()\nd.update({'c': nn.GELU()})\nresult = (list(d), list(d.keys()), [type(part).__name__ for part in d.values()], 'a' in d, 'z' in d, len(d))",
    "popped from a dict of modules": "d = nn.ModuleDict({'a': nn.ReLU(), 'b': nn.Tanh()})\ngone = d.pop('a')\nresult = (type(gone).__name__, list(d))",
    "a list of parameters": "l = nn.ParameterList([torch.zeros(2), nn.Parameter(torch.zeros(2))])\nl.append(nn.Parameter(torch.zeros(1)))\nresult = ([p.requires_grad for p in l], len(l), [n for n, _ in l.named_parameters()])",
    "a dict of parameters": "d = nn.ParameterDict({'a': nn.Parameter(torch.zeros(2))})\nd['b'] = nn.Parameter(torch.zeros(2))\nresult = (list(d.keys()), d['a'].requires_grad, [n for n, _ in d.named_parameters()])",
    # tensors
    "leaves": "y = x * 2\nw = torch.zeros(2, requires_grad=True)\nresult = (x.is_leaf, y.is_leaf, w.is_leaf, (w * 2).is_leaf, net.body[0].weight.is_leaf)",
    "requires grad": "w = torch.zeros(2, requires_grad=True)\nresult = (x.requires_grad, w.requires_grad, (w * 2).requires_grad, (w > 0).requires_grad, w.detach().requires_grad, w.data.requires_grad, w.clone().requires_grad)",
    "grad_fn": "w = torch.zeros(2, requires_grad=True)\nresult = (w.grad_fn is None, (w * 2).grad_fn is None, x.grad_fn is None, (w * 2).detach().grad_fn is None)",
    "switched on": "y = torch.zeros(2)\ny.requires_grad_()\nresult = (y.requires_grad, y.is_leaf)",
    "switched as an attribute": "y = torch.zeros(2)\ny.requires_grad = True\nz = y * 2\nresult = (y.requires_grad, z.requires_grad)",
    "switched off": "w = torch.zeros(2, requires_grad=True).requires_grad_(False)\nresult = w.requires_grad",
    "kinds of tensors": "p = nn.Parameter(torch.zeros(2))\nresult = (isinstance(p, torch.Tensor), isinstance(p, nn.Parameter), isinstance(x, nn.Parameter), isinstance(p * 2, nn.Parameter), type(p) is nn.Parameter, type(x) is torch.Tensor, torch.is_tensor(x), torch.is_tensor(3), type(p) is torch.Tensor)",
    "type of a parameter": "p = nn.Parameter(torch.zeros(2))\nresult = (type(p).__name__, type(x).__name__, type(p * 2).__name__)",
    "parameter that is not trained": "p = nn.Parameter(torch.zeros(2), requires_grad=False)\nq = nn.Parameter(torch.zeros(2), False)\nresult = (p.requires_grad, q.requires_grad, nn.Parameter(p).requires_grad)",
    "device": "result = (x.device.type, x.is_cuda, torch.device('cpu').type, torch.device('cuda:1').type, torch.device('cuda:1').index, torch.device('cuda', 2).index, str(torch.device('cpu')))",
    "the same tensor": "y = x\nresult = (y is x, x.contiguous() is x, x.to('cpu') is x, x.float() is x, x.cpu() is x, x.clone() is x, x.add_(1) is x, x.requires_grad_(False) is x)",
    "parts": "result = [len(torch.chunk(torch.zeros(6), 3)), len(torch.zeros(6).chunk(2)), len(torch.zeros(3, 2).unbind()), len(torch.zeros(6).split([1, 2, 3])), len(torch.split(torch.zeros(6), [2, 4])), len(torch.meshgrid(torch.zeros(2), torch.zeros(3), indexing='ij')), len(torch.broadcast_tensors(x, x))]",
    "unpacked parts": "a, b = torch.zeros(6).chunk(2)\nc, d, e = torch.zeros(6).split(2)\nvalues, indices = x.max(1)\nresult = (a.requires_grad, e.requires_grad, indices.is_floating_point())",
    "named parts": "w = torch.rand(3, 3, requires_grad=True)\nm, s = torch.max(w, 1), torch.sort(w)\nresult = (m.values.requires_grad, m.indices.requires_grad, s.values.requires_grad, s[1].requires_grad, w.topk(2).values.requires_grad, w.topk(2).indices.requires_grad, w.min().requires_grad)",
    "outputs of an LSTM": "out, (h, c) = nn.LSTM(4, 3)(x[None])\nresult = (out.requires_grad, h.requires_grad, c.requires_grad)",
    "outputs of a GRU": "out, h = nn.GRU(4, 3)(x[None])\nresult = (out.requires_grad, h.requires_grad)",
    "outputs of attention": "out, weights = nn.MultiheadAttention(4, 2)(x[None], x[None], x[None])\nresult = (out.requires_grad, weights.requires_grad)",
    "truth of a number": "result = (bool(torch.tensor(1.0)), bool(torch.tensor(0)), torch.tensor(3).item(), float(torch.tensor(2.0)), int(torch.tensor(2)))",
    "numbers of constants": "result = ((torch.tensor(2.0) + 1).item(), torch.zeros(1).item(), torch.ones(()).item(), torch.full((), 3.0).item())",
    # modes
    "grad mode": "seen = [torch.is_grad_enabled()]\nwith torch.no_grad():\n    seen.append(torch.is_grad_enabled())\n    with torch.enable_grad():\n        seen.append(torch.is_grad_enabled())\n    seen.append(torch.is_grad_enabled())\nseen.append(torch.is_grad_enabled())\nresult = seen",
    "grad mode set": "seen = []\nfor on in (True, False):\n    with torch.set_grad_enabled(on):\n        seen.append(torch.is_grad_enabled())\ntorch.set_grad_enabled(False)\nseen.append(torch.is_grad_enabled())\ntorch.set_grad_enabled(True)\nresult = seen",
    "inference mode": "with torch.inference_mode():\n    seen = [torch.is_grad_enabled(), torch.is_inference_mode_enabled()]\nwith torch.inference_mode(False):\n    seen += [torch.is_grad_enabled(), torch.is_inference_mode_enabled()]\nresult = seen",
    "mode of a decorated function": "@torch.no_grad()\ndef off():\n    return torch.is_grad_enabled(), net(x).requires_grad\n@torch.enable_grad()\ndef on():\n    return torch.is_grad_enabled(), net(x).requires_grad\nwith torch.no_grad():\n    inner = on()\nresult = (off(), inner, torch.is_grad_enabled())",
    "mode after an exception": "try:\n    with torch.no_grad():\n        raise ValueError\nexcept ValueError:\n    pass\nresult = torch.is_grad_enabled()",
    "leaves made without grad": "with torch.no_grad():\n    w = torch.zeros(2, requires_grad=True)\n    p = nn.Parameter(torch.zeros(2))\n    y = w * 2\nresult = (w.requires_grad, p.requires_grad, y.requires_grad, (w * 2).requires_grad)",
    "made in inference mode": "with torch.inference_mode():\n    y = x * 2\n    w = torch.zeros(2, requires_grad=True)\nresult = (y.is_inference(), x.is_inference(), w.is_inference(), y.clone().is_inference(), w.requires_grad)",
    # optimizers
    "groups": "o = torch.optim.SGD([{'params': net.body[0].parameters()}, {'params': [torch.zeros(1, requires_grad=True)], 'lr': 0.5}], lr=0.1)\nresult = (len(o.param_groups), o.param_groups[1]['lr'], [len(g['params']) for g in o.param_groups])",
    "a group added": "o = torch.optim.Adam(net.parameters())\no.add_param_group({'params': [torch.zeros(1, requires_grad=True)]})\nresult = (len(o.param_groups), [len(g['params']) for g in o.param_groups])",
    "held by the optimizer": "o = torch.optim.SGD(net.parameters(), lr=0.1)\nresult = o.param_groups[0]['params'][0] is net.body[0].weight",
    "held alone": "o = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)\nresult = len(o.param_groups[0]['params'])",
    "rate": "o = torch.optim.SGD(net.parameters(), lr=0.1)\nresult = (o.param_groups[0]['lr'], isinstance(o, torch.optim.Optimizer), isinstance(o, torch.optim.Adam))",
    "named for an optimizer": "o = torch.optim.SGD(net.named_parameters(), lr=0.1)\nresult = len(o.param_groups[0]['params'])",
    "cleared to zero": "o = torch.optim.SGD(net.parameters(), lr=0.1)\nnet(x).sum().backward()\no.zero_grad(set_to_none=False)\nresult = net.body[0].weight.grad is None",
    "closure": "o = torch.optim.SGD(net.parameters(), lr=0.1)\ncalls = []\ndef closure():\n    calls.append(torch.is_grad_enabled())\n    return net(x).sum()\no.step(closure)\nresult = calls",
    # data
    "own loader": "class Own(torch.utils.data.DataLoader):\n    pass\nd = torch.utils.data.TensorDataset(torch.zeros(4, 2))\nl = Own(d, batch_size=2)\nresult = (isinstance(l, torch.utils.data.DataLoader), [i for i, _ in enumerate(l)])",
    "split": "a, b = torch.utils.data.random_split(range(10), [7, 3])\nresult = (len(a), len(b))",
    "own data set": "class Own(torch.utils.data.Dataset):\n    def __len__(self):\n        return 5\n    def __getitem__(self, i):\n        return torch.zeros(2), i\nd = torch.utils.data.DataLoader(Own(), batch_size=2)\nresult = (len(d), len(d.dataset))",
    "rounds": "d = torch.utils.data.TensorDataset(torch.zeros(4, 2))\nresult = [i for i, _ in enumerate(torch.utils.data.DataLoader(d, batch_size=2))]",
    # wrappers
    "inside a wrapper": "w = nn.DataParallel(net)\nresult = (w.module is net, isinstance(w, nn.Module), [n for n, _ in w.named_parameters()])",
    "averaged": "w = torch.optim.swa_utils.AveragedModel(net)\nresult = (w.module is net, w.module.body[0].weight is net.body[0].weight)",
    "parametrised": "l = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))\nresult = (isinstance(l, nn.Linear), l.weight.requires_grad)",
    "parameters as one": "v = nn.utils.parameters_to_vector(net.parameters())\nresult = (v.requires_grad, v.is_leaf)",
    "clipped": "net(x).sum().backward()\nn = nn.utils.clip_grad_norm_(net.parameters(), 1.0)\nresult = n.requires_grad",
    "scaler": "s = torch.amp.GradScaler('cpu', enabled=False)\nl = net(x).sum()\nresult = (s.is_enabled(), s.get_scale(), s.scale(l) is l)",
    "is training at run time": "class Own(nn.Module):\n    def forward(self, x):\n        return 1 if self.training else 2\no = Own()\nresult = (o(x), o.eval()(x), o.train()(x))",
    "called by keyword": "class Own(nn.Module):\n    def forward(self, x, *, scale=1):\n        return scale\nresult = (Own()(x), Own()(x, scale=3), Own().forward(x=x, scale=2))",
    "sequential computes in order": "class Add(nn.Module):\n    def forward(self, x):\n        return x + 1\nclass Double(nn.Module):\n    def forward(self, x):\n        return x * 2\nresult = (nn.Sequential(Add(), Double())(3), nn.Sequential(Double(), Add())(3), nn.Sequential()(3))",
    "gradients of many": "y = net(x)\nresult = ([t.requires_grad for t in (y.sum(dtype=torch.float64), y.max(1)[0], y.max(1)[1], y.topk(2).values, y.topk(2)[1], y.sort()[0], y.argsort(), y.median(),)], [t.requires_grad for t in (y.mode()[0], y.char(), y.byte(), y.bool(), y.int(), y.double(), y.half(), y > 0,)], [t.requires_grad for t in (y.data, y.detach(), y.T, y.clone(), y.round(), y.sign(),)])",
    "max as two": "y = net(x)\nvalues, indices = y.max(dim=1)\nkept = y.max(dim=1, keepdim=True)\nresult = (values.requires_grad, indices.requires_grad, kept.values.requires_grad, kept.indices.requires_grad, y.max().requires_grad, torch.max(y, y * 2).requires_grad, [part.requires_grad for part in y.min(1)])",
    "methods called as functions": "y = net(x)\nresult = (torch.Tensor.sum(y).requires_grad, torch.Tensor.detach(y).requires_grad, torch.Tensor.item(torch.ones(())) is None)",
    "in place functions": "y = net(x) * 1\nF.relu(y, inplace=True)\nF.dropout(y, 0.1, True, True)\nF.relu_(y)\ntorch.relu_(y)\nz = torch.zeros(3)\nz += y[0]\nw = torch.zeros(2)\nw[0] = y[0, 0]\nv = torch.zeros(2)\nv.copy_(y[0, :2])\nu = torch.zeros(3, 3)\nu.fill_(1.0)\nresult = (y.requires_grad, z.requires_grad, w.requires_grad, v.requires_grad, u.requires_grad)",
    "written in place": "y = net(x)\na, b, c, d = torch.zeros(3, 3), torch.zeros(3, 3), torch.zeros(3, 3), torch.zeros(3, 3)\na.add_(y)\nb.index_copy_(0, torch.tensor([0]), y[:1])\nc.masked_fill_(torch.tensor(True), 2.0)\nd[:, 0] = 1.0\nresult = (a.requires_grad, b.requires_grad, c.requires_grad, d.requires_grad, a.grad_fn is None, d.grad_fn is None)",
    "data of data": "y = net(x)\nd = y.data\nd2 = y.data\nw = net.body[0].weight\nw.data = torch.zeros(3, 4)\nw.data.add_(1)\nresult = (d.requires_grad, d2.requires_grad, w.requires_grad, w.is_leaf, y.is_leaf, d.is_leaf)",
    "requires_grad by name": "a, b, c = torch.zeros(2), torch.zeros(2, requires_grad=True), net(x)\na.requires_grad = True\nb.requires_grad = False\nc.requires_grad_()\nd = torch.zeros(2).requires_grad_(False)\nc2 = c.detach().requires_grad_()\nnet.body[0].weight.requires_grad = False\nresult = (a.requires_grad, b.requires_grad, c.requires_grad, d.requires_grad, c2.requires_grad, c2.is_leaf, a.is_leaf, [p.requires_grad for p in net.parameters()], net(x).requires_grad)",
    "frozen and thawed again": "net.requires_grad_(False)\na = net(x).requires_grad\nnet.body[0].bias.requires_grad_()\nb = net(x).requires_grad\nfor p in net.parameters():\n    p.requires_grad = True\nresult = (a, b, [p.requires_grad for p in net.parameters()])",
    "gradients that are kept": "y = net(x)\ny.retain_grad()\nh = y.register_hook(lambda g: g)\ny.sum().backward()\nresult = (y.requires_grad, net.body[0].weight.grad is None, net.body[0].weight.grad.requires_grad)",
    "sizes": "result = (len(x), x.shape[0], x.ndim, x.dim(), x.size(1), x.numel(), torch.numel(x), x.is_floating_point(), torch.is_floating_point(x), torch.is_tensor(x), torch.is_tensor(3), isinstance(x, torch.Tensor), isinstance(x, nn.Parameter), isinstance(net.body[0].weight, nn.Parameter), isinstance(net.body[0].weight, torch.Tensor))",
    "made of others": "y = net(x)\nresult = ([t.requires_grad for t in (torch.tensor([1.0]), torch.tensor(1.0, requires_grad=True), torch.zeros_like(y), torch.ones_like(y, requires_grad=True), y.new_zeros(2), torch.as_tensor(y), torch.empty(2), torch.full((2,), 1.0),)], [t.requires_grad for t in (torch.arange(3), torch.eye(2), torch.linspace(0, 1, 3), torch.LongTensor([1]), torch.FloatTensor([1.0]), torch.BoolTensor([True]), torch.IntTensor([1]), torch.rand_like(y),)], [t.requires_grad for t in (torch.bernoulli(y.sigmoid()), torch.stack([y, y]), torch.cat([x, y], 1), torch.where(y > 0, y, 0.0), torch.from_numpy(y.detach().numpy()), torch.tensor(2), torch.zeros(2, dtype=torch.long),)])",
    "variables": "v = torch.autograd.Variable(torch.zeros(2), requires_grad=True)\nw = torch.autograd.Variable(net(x))\nresult = (v.requires_grad, w.requires_grad, v.is_leaf)",
    "backward by function": "y = net(x)\ntorch.autograd.backward([y.sum(), (2 * y).sum()])\nresult = [p.grad is None for p in net.parameters()]",
    "backward by function of one": "torch.autograd.backward(net(x).sum())\nresult = [p.grad is None for p in net.parameters()]",
    "grad by function": "g = torch.autograd.grad(net(x).sum(), list(net.parameters()))\nh = torch.autograd.grad(net(x).sum(), net.body[0].weight, create_graph=True)[0]\nresult = (len(g), [t.requires_grad for t in g], isinstance(g, tuple), h.requires_grad)",
    "buffers": "result = (len(list(net.buffers())), [n for n, _ in net.named_buffers()], net.steps.requires_grad)",
    "a plain buffer": "b = nn.Buffer(torch.zeros(2))\nresult = b.requires_grad",
    "half parameters": "p = nn.Parameter(torch.zeros(2).half())\nq = nn.Parameter(torch.zeros(2), requires_grad=False)\nr = nn.Parameter(torch.zeros(2), False)\nresult = (p.requires_grad, q.requires_grad, r.requires_grad, p.is_leaf, nn.Parameter(net(x).detach()).requires_grad)",
    "hooks": "seen = []\ndef hook(module, args, output):\n    seen.append(1)\n    return output.detach()\nh = net.register_forward_hook(hook)\na = net(x).requires_grad\nh.remove()\nb = net(x).requires_grad\nresult = (a, b, len(seen))",
    "hooks before": "def hook(module, args):\n    return (args[0] * 2,)\nh = net.register_forward_pre_hook(hook)\na = net(x).requires_grad\nwith net.register_forward_hook(lambda m, a, o: None):\n    b = net(x).requires_grad\nresult = (a, b)",
    "hooks with keywords": "def hook(module, args, kwargs, output):\n    return output * 2\nh = net.register_forward_hook(hook, with_kwargs=True)\nresult = net(x).requires_grad",
    "containers by hand": "s = nn.Sequential()\ns.append(nn.Linear(4, 4))\ns.add_module('last', nn.Linear(4, 2))\ns[0] = nn.Linear(4, 4, bias=False)\nl = nn.ModuleList([nn.Linear(2, 2)])\nl.extend([nn.Linear(2, 2)])\nl.insert(0, nn.ReLU())\nl[-1] = nn.Tanh()\nd = nn.ModuleDict({'a': nn.Linear(2, 2)})\nd['b'] = nn.ReLU()\nd.update({'c': nn.Tanh()})\nresult = (len(s), len(list(s.parameters())), len(l), len(list(l.parameters())), list(d), len(d), 'a' in d, [type(m).__name__ for m in l], type(d.pop('c')).__name__, len(d))",
    "containers taken apart": "l = nn.ModuleList([nn.Linear(2, 2), nn.ReLU(), nn.Tanh()])\ndel l[0]\nlast = l.pop(-1)\nresult = (len(l), type(last).__name__, len(list(l.parameters())))",
    "slices of containers": "s = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))\nresult = (len(s[:2]), len(list(s[1:].parameters())), s[-1](s[:-1](x)).requires_grad, [n for n, _ in s.named_children()], [n for n, _ in s.named_modules()])",
    "set by attribute": "s = nn.Sequential(nn.Linear(4, 4), nn.ReLU())\nsetattr(s, '0', nn.Linear(4, 4, bias=False))\nd = nn.ModuleDict({'a': nn.Linear(2, 2)})\nsetattr(d, 'a', nn.ReLU())\nresult = (len(list(s.parameters())), len(list(d.parameters())))",
    "deleted parts": "del net.body\nnet.other = nn.Linear(2, 2)\nresult = [n for n, _ in net.named_parameters()]",
    "parts that are none": "net.extra = None\nnet.register_parameter('bias', None)\nnet.register_buffer('nothing', None)\nresult = ([n for n, _ in net.named_parameters()], net.bias, net.nothing, net.extra)",
    "parts that others share": "a = nn.Linear(2, 2)\nb = nn.Module()\nb.one, b.two = a, a\nresult = ([n for n, _ in b.named_modules()], len(list(b.modules())), [n for n, _ in b.named_parameters()], len(list(b.children())))",
    "applied again": "log = []\nnet.apply(lambda m: log.append(type(m).__name__))\nresult = log",
    "modes of parts": "net.body.eval()\na = [m.training for m in net.modules()]\nnet.train(False)\nb = net.training\nnet.train()\nresult = (a, b, [m.training for m in net.modules()], net.eval() is net)",
    "parameters by groups": "o = torch.optim.SGD([{'params': net.body.parameters()}, {'params': [nn.Parameter(torch.zeros(1))], 'lr': 1.0}], lr=0.1)\no.add_param_group({'params': nn.Parameter(torch.zeros(2))})\nresult = ([len(g['params']) for g in o.param_groups], len(o.param_groups))",
    "optimizers of lists": "w = nn.Parameter(torch.zeros(2))\no = torch.optim.Adam([w], lr=0.1)\nq = torch.optim.AdamW(params=iter([w]), lr=0.1)\nresult = (len(o.param_groups[0]['params']), len(q.param_groups[0]['params']), o.param_groups[0]['params'][0] is w)",
    "a generator in a list": "try:\n    torch.optim.SGD([net.parameters()], lr=0.1)\n    r = 0\nexcept TypeError:\n    r = 1\nresult = r",
    "hooks of optimizers": "log = []\no = torch.optim.SGD(net.parameters(), lr=0.1)\no.register_step_pre_hook(lambda *a: log.append('before'))\nh = o.register_step_post_hook(lambda *a: log.append('after'))\nnet(x).sum().backward()\no.step()\nresult = log",
    "own schedulers": "class Own(torch.optim.lr_scheduler.LRScheduler):\n    def __init__(self, o, k):\n        self.k = k\n        super().__init__(o)\n    def get_lr(self):\n        return [0.1]\no = torch.optim.SGD(net.parameters(), lr=0.1)\ns = Own(o, 3)\nresult = (s.k, s.optimizer is o, isinstance(s, torch.optim.lr_scheduler.LRScheduler))",
    "own optimizers": "class Own(torch.optim.Optimizer):\n    def __init__(self, params, lr=0.1):\n        super().__init__(params, {'lr': lr})\n    @torch.no_grad()\n    def step(self, closure=None):\n        for group in self.param_groups:\n            for p in group['params']:\n                p.add_(p.grad, alpha=-group['lr'])\no = Own(net.parameters(), 0.5)\nnet(x).sum().backward()\no.step()\no.zero_grad()\nresult = len(o.param_groups[0]['params'])",
    "states": "o = torch.optim.SGD(net.parameters(), lr=0.1)\no.load_state_dict(o.state_dict())\nnet.load_state_dict(net.state_dict())\nresult = (len(o.param_groups), 'body.0.weight' in net.state_dict(), len(list(net.parameters())))",
    "modes of every sort": "log = []\nwith torch.no_grad():\n    log.append(torch.is_grad_enabled())\n    with torch.enable_grad():\n        log.append(torch.is_grad_enabled())\nwith torch.set_grad_enabled(False):\n    log.append(torch.is_grad_enabled())\nlog.append(torch.is_grad_enabled())\nwith torch.inference_mode():\n    log.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))\nwith torch.inference_mode(False):\n    log.append(torch.is_grad_enabled())\ntorch.set_grad_enabled(False)\nlog.append(torch.is_grad_enabled())\ntorch.set_grad_enabled(True)\nlog.append(torch.is_grad_enabled())\nresult = log",
    "modes as decorators": "@torch.no_grad()\ndef a():\n    return torch.is_grad_enabled()\n@torch.inference_mode()\ndef b():\n    return torch.is_grad_enabled()\n@torch.set_grad_enabled(False)\ndef c():\n    return torch.is_grad_enabled()\n@torch.no_grad\ndef d():\n    return torch.is_grad_enabled()\n@torch.enable_grad()\ndef e():\n    return torch.is_grad_enabled()\nwith torch.no_grad():\n    f = e()\nresult = (a(), b(), c(), d(), f, torch.is_grad_enabled())",
    "a mode around a class": "class A:\n    @torch.no_grad()\n    def f(self, y):\n        return net(y).requires_grad\nresult = (A().f(x), net(x).requires_grad)",
    "modes kept": "ctx = torch.no_grad()\nctx.__enter__()\na = net(x).requires_grad\nctx.__exit__(None, None, None)\nresult = (a, net(x).requires_grad)",
    "anomalies": "with torch.autograd.set_detect_anomaly(True):\n    a = net(x).requires_grad\nwith torch.autograd.detect_anomaly(check_nan=False):\n    b = net(x).requires_grad\nresult = (a, b)",
    "saved on the way": "with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):\n    a = net(x).requires_grad\nwith torch.autograd.graph.save_on_cpu():\n    b = net(x).requires_grad\nresult = (a, b)",
    "functions of its own": "class Own(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a, b):\n        ctx.save_for_backward(a)\n        ctx.set_materialize_grads(False)\n        ctx.k = b\n        return a * b\n    @staticmethod\n    def backward(ctx, g):\n        return g * ctx.k if ctx.needs_input_grad[0] else None, None\ny = net(x)\nresult = (Own.apply(y, 2.0).requires_grad, Own.apply(x, 2.0).requires_grad, Own.apply(y.detach(), 2.0).requires_grad)",
    "vmapped and compiled": "f = torch.func.vmap(lambda t: net(t))\ng = torch.func.grad(lambda p: (p ** 2).sum())\nresult = (f(x).requires_grad, g(torch.ones(2)).requires_grad, torch.func.functional_call(net, dict(net.named_parameters()), x).requires_grad)",
    "jacobians": "y = net(x)\na = torch.autograd.functional.jacobian(lambda t: (t ** 2).sum(), x)\nb = torch.autograd.functional.hessian(lambda t: (t ** 2).sum(), x)\nresult = (a.requires_grad, b.requires_grad)",
    "distributions": "y = net(x)\nd = torch.distributions.Normal(y, 1.0)\nc = torch.distributions.Categorical(logits=y)\nt = torch.distributions.TransformedDistribution(d, [torch.distributions.TanhTransform()])\nresult = (d.has_rsample, c.has_rsample, t.has_rsample, d.loc.requires_grad, d.scale.requires_grad, d.mean.requires_grad, c.logits.requires_grad, c.probs.requires_grad, d.rsample().requires_grad, d.sample().requires_grad, c.sample().requires_grad, c.log_prob(c.sample()).requires_grad, c.entropy().requires_grad, d.expand((2, 3, 3)).rsample().requires_grad, c.enumerate_support().requires_grad, torch.distributions.TanhTransform()(y).requires_grad, torch.distributions.kl_divergence(d, torch.distributions.Normal(0.0, 1.0)).requires_grad)",
    "parts of distributions": "y = net(x)\nd = torch.distributions.Independent(torch.distributions.Normal(y, 1.0), 1)\ng = torch.distributions.Gamma(y.exp(), y.exp())\nb = torch.distributions.Bernoulli(logits=y)\nresult = (d.base_dist.loc.requires_grad, g.concentration.requires_grad, g.rsample().requires_grad, b.probs.requires_grad, b.mean.requires_grad, b.sample().requires_grad)",
    "sequences of lengths": "from torch.nn.utils import rnn\ny = net(x)\np = rnn.pack_padded_sequence(y[None], torch.tensor([3]), batch_first=True)\nq = rnn.pack_sequence([y])\nr, lengths = rnn.pad_packed_sequence(q)\nresult = (p.data.requires_grad, p.batch_sizes.requires_grad, p.to('cpu').data.requires_grad, r.requires_grad, lengths.requires_grad, rnn.pad_sequence([y, y]).requires_grad, rnn.unpad_sequence(rnn.pad_sequence([y]), torch.tensor([3]))[0].requires_grad)",
    "vectors of parameters": "v = nn.utils.parameters_to_vector(net.parameters())\nnn.utils.vector_to_parameters(torch.zeros(15), net.parameters())\nresult = (v.requires_grad, net(x).requires_grad)",
    "made without values": "l = nn.utils.skip_init(nn.Linear, 4, 3)\nresult = (isinstance(l, nn.Linear), l(x).requires_grad, len(list(l.parameters())))",
    "norms by weight": "import warnings\nwarnings.simplefilter('ignore')\na = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))\nb = nn.utils.weight_norm(nn.Linear(4, 3))\nresult = (a(x).requires_grad, b(x).requires_grad)",
    "clipped again": "net(x).sum().backward()\na = nn.utils.clip_grad_norm_(net.parameters(), 1.0)\nnn.utils.clip_grad_value_(net.body[0].weight, 1.0)\nb = nn.utils.get_total_norm([p.grad for p in net.parameters()])\nnn.utils.clip_grad_norm_([p for p in net.parameters()], max_norm=1.0)\nresult = (a.requires_grad, b.requires_grad)",
    "averaged models": "from torch.optim.swa_utils import AveragedModel, SWALR\nw = AveragedModel(net)\nw.update_parameters(net)\nresult = (w.module is net, w(x).requires_grad, len(list(w.parameters())))",
    "wrapped in parallel": "w = nn.DataParallel(net)\nresult = (w(x).requires_grad, w.module is net, [n for n, _ in w.named_parameters()], w.training)",
    "checkpointed": "from torch.utils.checkpoint import checkpoint, checkpoint_sequential\nz = x.clone().requires_grad_()\na = checkpoint(net, z, use_reentrant=True)\nb = checkpoint(lambda t: (net(t), net(t)), z, use_reentrant=True)\nc = checkpoint(net, x, use_reentrant=False)\nd = checkpoint(lambda t: {'a': net(t)}, z, use_reentrant=False)\ne = checkpoint_sequential(net.body, 2, z, use_reentrant=True)\nf = checkpoint_sequential([net.body[0], net.body[1]], 1, z, use_reentrant=False)\nresult = (a.requires_grad, [t.requires_grad for t in b], c.requires_grad, d['a'].requires_grad, e.requires_grad, f.requires_grad)",
    "split by lengths": "a, b = torch.utils.data.random_split(range(10), [7, 3])\nc = torch.utils.data.Subset(range(10), [1, 2])\nd = torch.utils.data.ConcatDataset([range(3), range(4)])\nresult = (len(a), len(b), len(c), len(d))",
    "numbers by name": "d = torch.utils.data.TensorDataset(torch.zeros(10, 2), torch.zeros(10))\nresult = (len(d), len(d.tensors), len(d[0]), [t.requires_grad for t in d[0]])",
    "arrays": "import numpy as np\na = net(x).detach().numpy()\nresult = (torch.from_numpy(a).requires_grad, torch.tensor(np.zeros(3)).requires_grad, a.ndim, a.shape[0], float(np.sqrt(4.0)), float(np.log(1.0)), int(np.maximum(1, 2)), np.newaxis is None, isinstance(a, np.ndarray), float(np.mean([1.0, 3.0])), int(np.floor(2.5)), np.pi > 3)",
    "devices": "d = torch.device('cpu')\ne = torch.device('cuda', 0)\nf = torch.device('cuda:1')\nresult = (d.type, e.type, f.type, f.index, str(d), d == torch.device('cpu'), x.device.type, x.to(d).requires_grad, x.is_cuda)",
    "scalers": "s = torch.amp.GradScaler('cpu', enabled=False)\no = torch.optim.SGD(net.parameters(), lr=0.1)\nl = [net(x).sum(), net(x).sum()]\nk = s.scale(l)\ns.scale(l[0]).backward()\ns.unscale_(o)\ns.step(o)\ns.update()\ns.load_state_dict(s.state_dict())\nresult = (len(k), k[0].requires_grad, s.is_enabled(), s.get_scale())",
    "scalers that scale": "s = torch.amp.GradScaler('cpu')\no = torch.optim.SGD(net.parameters(), lr=0.1)\nk = s.scale([net(x).sum(), net(x).sum()])\ns.scale(net(x).sum()).backward()\ns.step(o)\ns.update()\nresult = (len(k), [t.requires_grad for t in k], s.is_enabled(), isinstance(s.get_scale(), float), isinstance(s.get_growth_factor(), float))",
    "autocast as a decorator": "@torch.autocast('cpu', dtype=torch.bfloat16)\ndef f(y):\n    return net(y)\nwith torch.autocast('cpu', enabled=False):\n    a = net(x)\nresult = (f(x).requires_grad, a.requires_grad, torch.is_autocast_enabled('cpu'))",
    "losses of every sort": "y = net(x)\nt = torch.tensor([0, 1, 2])\nresult = [l.requires_grad for l in (F.cross_entropy(y, t), nn.CrossEntropyLoss()(y, t), F.mse_loss(y, torch.zeros_like(y)), nn.BCEWithLogitsLoss()(y, y.detach().sigmoid()), F.nll_loss(y.log_softmax(1), t), F.kl_div(y.log_softmax(1), y.softmax(1).detach(), reduction='batchmean'), F.l1_loss(x[:, :3], y), F.smooth_l1_loss(y, y.detach()), nn.CosineEmbeddingLoss()(y, y, torch.ones(3)), F.cosine_similarity(y, y))]",
    "properties of tensors": "y = net(x)\nw = net.body[0].weight\nresult = (y.grad_fn is None, w.grad_fn is None, w.is_leaf, y.is_leaf, x.is_leaf, y.requires_grad, y.detach().grad_fn is None, (x * 2).is_leaf)",
    "numbers out of tensors": "y = net(x)\nresult = (isinstance(y.sum().item(), float), isinstance(y.tolist(), list), isinstance(float(y.sum()), float), isinstance(int(y.sum()), int), isinstance(bool(y.sum() > 0), bool))",
    "typed by hints": "from typing import Optional\nclass Own(nn.Module):\n    def __init__(self, inner: Optional[nn.Module] = None):\n        super().__init__()\n        self.inner = inner\n        self.w = nn.Parameter(torch.zeros(4))\n    def forward(self, y: torch.Tensor, scale: float = 1.0) -> torch.Tensor:\n        return y * self.w * scale if self.inner is None else self.inner(y)\nresult = (Own()(x).requires_grad, Own(net)(x).requires_grad, len(list(Own(net).parameters())), len(list(Own().parameters())))",
    "deep copies": "import copy\nb = copy.deepcopy(net)\nc = copy.copy(net)\nw = copy.deepcopy(net.body[0].weight)\nl = copy.deepcopy([net, net])\ns = copy.deepcopy(nn.Sequential(nn.Linear(2, 2)))\nb.requires_grad_(False)\nresult = (b(x).requires_grad, net(x).requires_grad, w.requires_grad, w is net.body[0].weight, l[0] is l[1], len(list(s.parameters())), c.body is net.body, len(list(b.parameters())), l[0].body[0].weight is net.body[0].weight)",
    "einsum and friends": "y = net(x)\nresult = ([t.requires_grad for t in (torch.einsum('ij,ij->i', y, y), y @ y.T, torch.bmm(y[None], y.T[None]), torch.matmul(x, x.T), torch.linalg.norm(y), torch.cumsum(y, 0), torch.gather(y, 1, torch.zeros(3, 1, dtype=torch.long)), torch.scatter(torch.zeros(3, 3), 1, torch.zeros(3, 1, dtype=torch.long), y),)], [t.requires_grad for t in (torch.index_select(y, 0, torch.tensor([0])), F.one_hot(torch.tensor([1]), 3), F.embedding(torch.tensor([0]), net.body[0].weight), torch.roll(y, 1), torch.logsumexp(y, 0), F.pad(y, (1, 1)), F.interpolate(y[None], scale_factor=2.0), torch.isnan(y),)], [t.requires_grad for t in (torch.argmax(y), torch.count_nonzero(y),)])",
    "parts of a tensor": "y = net(x)\nresult = [[t.requires_grad for t in parts] for parts in (y.chunk(3), y.split(1), y.unbind(0), torch.chunk(y, 3, dim=1), y.split([1, 2]), torch.meshgrid(y[0], y[1], indexing='ij'), torch.broadcast_tensors(y, y))]",
    "boxes of data": "d = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(4, 2), torch.zeros(4)), 2)\na, b = next(iter(d))\nresult = (a.requires_grad, b.requires_grad, [net.body[1](p).requires_grad for p, _ in d])",
    "unknown of torch": "y = net(x)\nresult = (F.hardshrink(y).requires_grad, torch.hypot(y, y).requires_grad, F.gumbel_softmax(y).requires_grad)",
    "data twice": "y = net(x)\nd = y.data\ny.data.add_(1)\ne = y.data\nresult = (d.requires_grad, e.requires_grad)",
    "an early end of two": "y = net(x)\nfor part in y.max(1):\n    break\nresult = part.requires_grad",
    "graphs of constants": "a = torch.tensor([torch.tensor(1.0), torch.tensor(2.0)])\nb = torch.as_tensor([1.0, 2.0])\nc = torch.as_tensor(torch.zeros(2), dtype=torch.float64)\nresult = (a.requires_grad, b.requires_grad, c.requires_grad)",
    "variables of constants": "v = torch.autograd.Variable(torch.zeros(2))\nw = torch.autograd.Variable(net(x))\nu = torch.autograd.Variable(torch.zeros(2), True)\nresult = (v.requires_grad, w.requires_grad, u.requires_grad)",
    "clipped in a dict": "net(x).sum().backward()\nnn.utils.clip_grad_norm_(net.named_parameters() and list(net.parameters()), 1.0)\nresult = 1",
    "freezes of layers": "net.body.requires_grad = False\na = net(x).requires_grad\nnet.body[0].weight.require_grad = False\nb = net.body[0].weight.requires_grad\nnet.body[0].weight.requires_grad == False\nresult = (a, b, net.body[0].weight.requires_grad)",
    "a frozen parameter wrapped anew": "net.body[0].weight.requires_grad_(False)\nnet.body[0].weight = nn.Parameter(net.body[0].weight * 2)\nresult = (net.body[0].weight.requires_grad, len(list(net.parameters())))",
    "items that are set anew": "class Own(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.items = [nn.Linear(2, 2)]\n        self.items = nn.ModuleList(self.items)\nresult = len(list(Own().parameters()))",
    "jacobians by several": "f = torch.func.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))\na, b = f(torch.ones(2), torch.ones(2))\nh = torch.func.jacrev(lambda p: p ** 2)(torch.ones(2))\nresult = (a.requires_grad, b.requires_grad, h.requires_grad)",
    "checkpoints of dicts": "from torch.utils.checkpoint import checkpoint\nz = x.clone().requires_grad_()\nd = checkpoint(lambda t: {'a': net(t), 'b': 3}, z, use_reentrant=False)\nt = checkpoint(lambda t: (net(t), 1), z, use_reentrant=False)\nresult = (d['a'].requires_grad, d['b'], t[0].requires_grad, t[1])",
    "autocast off": "r = torch.autocast('cpu', enabled=True)\nwith r:\n    a = net(x)\nwith torch.autocast('cpu', torch.bfloat16, False):\n    b = net(x)\nresult = (a.requires_grad, b.requires_grad)",
    "settings that are asked": "import random\nwith torch.set_grad_enabled(random.random() < 2):\n    a = torch.is_grad_enabled()\nwith torch.no_grad():\n    with torch.set_grad_enabled(True):\n        b = torch.is_grad_enabled()\nresult = (b, torch.is_grad_enabled())",
    "a device by its number": "d = torch.device(0) if torch.cuda.is_available() else torch.device('cpu')\nresult = torch.device('cuda', 1).type",
    "classes of layers": "result = (hasattr(nn.Linear, 'forward'), hasattr(net, 'parameters'), hasattr(x, 'grad'), hasattr(net.body, '0'), callable(net), callable(net.body), callable(nn.Linear(2, 2)), callable(x), issubclass(nn.Linear, nn.Module), isinstance(net.body, (list, nn.Sequential)))",
    "maxima of several": "y = net(x)\na, b, c = y[0, 0], y[0, 1], y[0, 2]\nresult = (max(a, b).requires_grad, min([a, b, c]).requires_grad, sum([a, b, c]).requires_grad, max(a, 0.0).requires_grad if False else True)",
    "a module called in a list": "class Own(nn.Module):\n    def forward(self, parts):\n        return sum(part.sum() for part in parts)\nresult = (Own()([net(x), net(x)]).requires_grad, Own()([x]).requires_grad)",
    "own functions in a class": "class Own(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a):\n        return {'a': a}['a'] * 2\n    @staticmethod\n    def backward(ctx, g):\n        return g\nclass Pair(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a):\n        return a * 2, a + 1\n    @staticmethod\n    def backward(ctx, g, h):\n        return g + h\ny = net(x)\na, b = Pair.apply(y)\nresult = (Own.apply(y).requires_grad, a.requires_grad, b.requires_grad)",
    "segments run once": "from torch.utils.checkpoint import checkpoint_sequential\nlog = []\nclass Own(nn.Module):\n    def __init__(self, name):\n        super().__init__()\n        self.name = name\n    def forward(self, t):\n        log.append(self.name)\n        return t * 2\nz = x.clone().requires_grad_()\nparts = [Own(name) for name in 'abcde']\ncheckpoint_sequential(parts[:3], 3, z, use_reentrant=False)\ncheckpoint_sequential(nn.Sequential(*parts[:4]), 2, z, use_reentrant=False)\ncheckpoint_sequential(parts, 2, z, use_reentrant=False)\nresult = log",
    # what is there only after something else
    "a gradient before and after": "a = net.body[0].weight.grad is None\nnet(x).sum().backward()\nb = net.body[0].weight.grad is None\nnet.zero_grad()\nc = net.body[0].weight.grad is None\nnet(x).sum().backward()\nnet.body[0].weight.grad = None\nresult = (a, b, c, net.body[0].weight.grad is None)",
    "a gradient of a leaf": "w = torch.zeros(2, requires_grad=True)\na = w.grad is None\n(w * 2).sum().backward()\nb = w.grad is None\nw.grad = None\nresult = (a, b, w.grad is None)",
    "a gradient that an optimizer cleared": "o = torch.optim.SGD(net.parameters(), lr=0.1)\nnet(x).sum().backward()\no.zero_grad()\na = [p.grad is None for p in net.parameters()]\nnet(x).sum().backward()\nresult = (a, [p.grad is None for p in net.parameters()])",
    "a gradient of what was not reached": "other = nn.Linear(2, 2)\nnet(x).sum().backward()\nresult = (other.weight.grad is None, [p.grad is not None for p in net.parameters()])",
    "gradients in a step by hand": "seen = []\nfor i in range(3):\n    for p in net.parameters():\n        seen.append(p.grad is None)\n    net(x).sum().backward()\n    with torch.no_grad():\n        for p in net.parameters():\n            p -= 0.1 * p.grad\n            p.grad = None\nresult = seen",
    "gradients put by hand": "for p in net.parameters():\n    p.grad = torch.zeros_like(p)\nresult = [p.grad is None for p in net.parameters()]",
    "a gradient put and taken": "w = torch.zeros(2, requires_grad=True)\nw.grad = torch.ones(2)\na = w.grad is None\nw.grad = None\nresult = (a, w.grad is None)",
    "no gradient of the frozen": "net.body[0].weight.requires_grad_(False)\nnet(x).sum().backward()\nresult = [p.grad is None for p in net.parameters()]",
    "gradients asked for are not kept": "torch.autograd.grad(net(x).sum(), list(net.parameters()))\nresult = [p.grad is None for p in net.parameters()]",
    "a gradient of the input": "x.requires_grad_()\na = x.grad is None\nnet(x).sum().backward()\nresult = (a, x.grad is None)",
    "gradients of functional parameters": "ps = {n: p.detach().clone().requires_grad_() for n, p in net.named_parameters()}\ntorch.func.functional_call(net, ps, (x,)).sum().backward()\nresult = ([p.grad is None for p in ps.values()], [p.grad is None for p in net.parameters()])",
    "no gradient where nothing was recorded": "with torch.no_grad():\n    net(x)\nresult = [p.grad is None for p in net.parameters()]",
    "gradients zeroed by hand": "for p in net.parameters():\n    if p.grad is not None:\n        p.grad.zero_()\nnet(x).sum().backward()\nfor p in net.parameters():\n    p.grad.zero_()\nresult = [p.grad is None for p in net.parameters()]",
    "modes of a generator": "@torch.no_grad()\ndef g():\n    yield torch.is_grad_enabled(), net(x).requires_grad\n    yield torch.is_grad_enabled()\nresult = [list(g()), [torch.is_grad_enabled() for _ in g()]]",
    "modes of a generator inside": "@torch.inference_mode()\ndef g():\n    for _ in range(2):\n        yield torch.is_grad_enabled()\nseen = []\nfor inside in g():\n    seen += [inside, torch.is_grad_enabled()]\n@torch.enable_grad()\ndef h():\n    yield torch.is_grad_enabled()\nwith torch.no_grad():\n    for inside in h():\n        seen += [inside, torch.is_grad_enabled()]\n    seen.append(torch.is_grad_enabled())\ntry:\n    for inside in g():\n        raise ValueError\nexcept ValueError:\n    seen.append(torch.is_grad_enabled())\nresult = seen",
    "modes of a generator that is handed on": "def g():\n    yield torch.is_grad_enabled()\n@torch.no_grad()\ndef f():\n    return g()\n@torch.no_grad()\n@torch.enable_grad()\ndef h():\n    yield torch.is_grad_enabled()\nclass A:\n    @torch.no_grad()\n    def g(self):\n        yield torch.is_grad_enabled()\nresult = ([a for a in f()], [a for a in h()], [a for a in A().g()])",
    "indices of a pooling": "w = torch.rand(1, 1, 4, 4, requires_grad=True)\na, i = nn.MaxPool2d(2, return_indices=True)(w)\nb, j = F.max_pool2d(w, 2, return_indices=True)\nc, k = nn.AdaptiveMaxPool2d(2, return_indices=True)(w)\nresult = (a.requires_grad, i.requires_grad, b.requires_grad, j.requires_grad, c.requires_grad, k.requires_grad, nn.MaxPool2d(2)(w).requires_grad)",
    "indices by functions": "w = torch.rand(1, 4, 4, requires_grad=True)\na, i = F.max_pool1d(w, 2, return_indices=True)\nb, j = F.adaptive_max_pool1d(w, 2, return_indices=True)\nresult = (a.requires_grad, i.requires_grad, b.requires_grad, j.requires_grad, i.is_floating_point(), F.max_pool1d(w, 2).requires_grad)",
    "entropy by location and scale": "y = net(x)\nd = torch.distributions.Normal(y, 1.0)\ne = torch.distributions.Normal(0.0, y.exp())\nresult = (d.entropy().requires_grad, e.entropy().requires_grad, d.log_prob(x[:, :3]).requires_grad, d.mean.requires_grad, d.stddev.requires_grad)",
    "entropy of every sort": "y = net(x)\nresult = [d.entropy().requires_grad for d in (torch.distributions.Normal(y, torch.ones(3)), torch.distributions.Laplace(y, 1.0), torch.distributions.Independent(torch.distributions.Normal(y, 1.0), 1), torch.distributions.Gumbel(y, 1.0), torch.distributions.Cauchy(y, 1.0), torch.distributions.LogNormal(y, 1.0), torch.distributions.Uniform(y, y + 1), torch.distributions.Exponential(y.exp()), torch.distributions.Gamma(y.exp(), 1.0), torch.distributions.Beta(y.exp(), y.exp()), torch.distributions.StudentT(2.0, y), torch.distributions.HalfNormal(y.exp()))]",
    "means and deviations": "y = net(x)\nd = [torch.distributions.Independent(torch.distributions.Laplace(1.0, y.exp()), 1), torch.distributions.Gumbel(y, 1.0), torch.distributions.MultivariateNormal(y, torch.eye(3)), torch.distributions.StudentT(3.0, y)]\nresult = [(e.mean.requires_grad, e.variance.requires_grad, e.stddev.requires_grad) for e in d]",
    "gradients of the unused": "w = torch.zeros(2, requires_grad=True)\nu = torch.zeros(2, requires_grad=True)\na, b = torch.autograd.grad((w * 2).sum(), [w, u], allow_unused=True)\nresult = (a is None, b is None)",
    "gradients of the unused are zeros": "w = torch.zeros(2, requires_grad=True)\nu = torch.zeros(2, requires_grad=True)\na, b = torch.autograd.grad((w * 2).sum(), [w, u], materialize_grads=True)\nresult = (a is None, b is None, a.requires_grad)",
    "an optimizer copied": "import copy\no = torch.optim.SGD(net.parameters(), lr=0.1)\nq = copy.deepcopy(o)\nresult = (q.param_groups[0]['params'][0] is net.body[0].weight, len(q.param_groups[0]['params']), q is o, q.param_groups[0]['params'][0].requires_grad, copy.copy(o).param_groups[0]['params'][0] is net.body[0].weight)",
    "an optimizer copied with its model": "import copy\no = torch.optim.SGD(net.parameters(), lr=0.1)\nn2, q = copy.deepcopy((net, o))\nresult = (q.param_groups[0]['params'][0] is n2.body[0].weight, q.param_groups[0]['params'][0] is net.body[0].weight)",
    "an optimizer copied in an object": "import copy\nclass Trainer:\n    def __init__(self):\n        self.net = Net()\n        self.o = torch.optim.SGD(self.net.parameters(), lr=0.1)\nt = Trainer()\nu = copy.deepcopy(t)\nresult = (u.o.param_groups[0]['params'][0] is u.net.body[0].weight, u.o.param_groups[0]['params'][0] is t.net.body[0].weight, [any(p is q for q in u.net.parameters()) for p in u.o.param_groups[0]['params']])",
    "groups copied": "import copy\no = torch.optim.SGD([{'params': net.body[0].weight}, {'params': net.body[0].bias}], lr=0.1)\nq = copy.deepcopy(o)\nresult = (len(q.param_groups), [len(g['params']) for g in q.param_groups])",
    "an engine's own": "class Engine:\n    def __init__(self, model):\n        self.model = model\n    def __call__(self, *a):\n        return self.model(*a)\n    def backward(self, loss):\n        loss.backward()\ne = Engine(net)\nl = e(x).sum()\na = net.body[0].weight.grad is None\ne.backward(l)\nresult = (l.requires_grad, a, net.body[0].weight.grad is None)",
    "tensors added in place": "w = torch.zeros(2, requires_grad=True)\ny = w * 2\nz = y\ny += 1\nt = torch.zeros(2)\nu = t\nt += w\nv = torch.zeros(2)\nv = v + w\nresult = (z is y, z.requires_grad, u is t, u.requires_grad, v.requires_grad, u.is_leaf)",
    "added in a module": "class Own(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.lin = nn.Linear(4, 3)\n        self.total = 0\n        self.kept = []\n    def forward(self, y):\n        out = self.lin(y)\n        self.total += out.sum()\n        self.kept += [out.detach()]\n        return out\no = Own()\no(x)\no(x)\nresult = (o.total.requires_grad, [k.requires_grad for k in o.kept], len(o.kept), isinstance(o.total, torch.Tensor))",
    "shapes in every spelling": "result = [t.requires_grad for t in (torch.zeros((2, 3)), torch.zeros(2, 3), torch.ones([2]), torch.full((2,), 3.0, requires_grad=True), torch.full([2], 1), torch.empty(2, 3), torch.zeros((2,), requires_grad=True))]",
    "numbers of tensors": "result = (torch.full((), 3.0).item(), torch.zeros(()).item(), len(torch.zeros((3, 2))), len(torch.zeros(3, 2)), len(torch.zeros([4])), len(torch.full((5,), 1.0)), torch.zeros((3, 2)).shape[0], len(torch.zeros((3,), dtype=torch.long)), len(torch.new_zeros if False else x.new_zeros((6, 2))), len(x.new_full((7,), 1.0)))",
}

# Of how many values in a result nothing is said:
UNSAID = {
    "buffer by its name": 1, "is in train mode": 1, "mode of a part": 1, "mode set as an attribute": 1, "a cast keeps the parameters": 1, "copy of a module": 1, "own class of a layer": 1, "a dict of modules": 3, "popped from a dict of modules": 1, "requires grad": 1, "device": 4, "parts": 1, "unpacked parts": 1, "truth of a number": 2, "made in inference mode": 4, "groups": 1, "rate": 1, "scaler": 1, "sizes": 9, "buffers": 1, "containers by hand": 2, "modes of parts": 1, "own schedulers": 1, "distributions": 1, "sequences of lengths": 1, "wrapped in parallel": 1, "split by lengths": 2, "numbers by name": 4, "arrays": 3, "devices": 5, "scalers": 1, "scalers that scale": 2, "autocast as a decorator": 1, "numbers out of tensors": 4, "boxes of data": 2, "classes of layers": 2, "modes of a generator": 1, "indices by functions": 1, "numbers of tensors": 8,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_interpreter_says_of_a_program_is_what_torch_gives(name: str) -> None:
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about itself
        exec(SETUP + PROGRAMS[name], names)
    said = result(SETUP + PROGRAMS[name])
    assert said is not ...
    assert agrees(said, names["result"])
    assert unsaid(said) <= UNSAID.get(name, 0)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_takes_its_arguments_where_it_is_said_to(name: str) -> None:
    known = layer(f"torch.nn.{name}")
    assert known is not None
    taken = list(inspect.signature(getattr(nn, name)).parameters)
    if "args" not in taken:
        asked = ("bias", "affine", "elementwise_affine", "inplace")
        assert dict(known.positions) == {each: taken.index(each) for each in asked if each in taken}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_derived_from_what_it_is_said_to_be(name: str) -> None:
    library.load()
    lineage = [each for each in getattr(nn, name).__mro__ if each is not object]
    assert [base.rpartition(".")[2] for base in bases(f"torch.nn.{name}")] == [each.__name__ for each in lineage]
    homes = {f"torch.nn.{name}"} | {f"{each.__module__}.{each.__name__}" for each in lineage}
    assert {each for each in homes if canonical(each) not in bases(f"torch.nn.{name}")} == set()
