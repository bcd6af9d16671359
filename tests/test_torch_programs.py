"""Programs of torch's objects: what the interpreter says of their `result` is what torch gives, as
far as it says anything.
"""

from __future__ import annotations

import inspect
import warnings

import pytest
from layer_samples import LAYERS
from test_library_python import result
from test_python_programs import agrees, unsaid
from torch import nn

from gradlint import library
from gradlint.interpret.lineage import bases, canonical
from gradlint.library.layer_effects import layer

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
    "own names alone": "net.extra = nn.Parameter(torch.zeros(2))\nresult = [n for n, _ in "
    "net.named_parameters(recurse=False)]",
    "what a module does not register": "class Kept(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n"
    "        super().__setattr__('a', nn.Linear(2, 2))\n"
    "        nn.Module.__setattr__(self, 'b', nn.Linear(2, 2))\n"
    "        object.__setattr__(self, 'c', nn.Linear(2, 2))\n"
    "        self.__dict__['d'] = nn.Linear(2, 2)\n"
    "        setattr(self, 'e', nn.Linear(2, 2))\nkept = Kept()\n"
    "before = [n for n, _ in kept.named_parameters()]\nkept.e2 = kept.c\n"
    "result = (before, [n for n, _ in kept.named_modules()], kept.d.weight.requires_grad)",
    "own parameters alone": "net.extra = nn.Parameter(torch.zeros(2))\n"
    "result = len(list(net.parameters(False)))",
    "parameters of layers": "result = [len(list(layer.parameters())) for layer in (nn.Linear(2, "
    "2), nn.Linear(2, 2, "
    "bias=False), nn.ReLU(), nn.BatchNorm1d(2), nn.BatchNorm1d(2, affine=False), "
    "nn.Conv2d(1, 1, 3), nn.Embedding(3, 2), nn.LayerNorm(2), nn.LayerNorm(2, "
    "elementwise_affine=False), nn.PReLU(), nn.Bilinear(2, 2, 2))]",
    "an instance norm has to be asked": "result = [len(list(layer.parameters())) for layer in "
    "(nn.InstanceNorm2d(2), "
    "nn.InstanceNorm2d(2, affine=True), nn.InstanceNorm1d(2, 1e-5, 0.1, True), "
    "nn.InstanceNorm2d(2).half())]",
    "switched off by position": "result = [len(list(layer.parameters())) for layer in "
    "(nn.BatchNorm1d(2, 1e-5, 0.1, "
    "False), nn.GroupNorm(1, 2, 1e-5, False), nn.LayerNorm(2, 1e-5, False), nn.LSTM(2, 2, 1, "
    "False), nn.RNN(2, 2, 1, 'relu', False), nn.MultiheadAttention(4, 2, 0.0, False), "
    "nn.LazyLinear(3, False))]",
    "a bias that is none": "result = (nn.Linear(2, 2, False).bias, nn.BatchNorm1d(2, "
    "affine=False).weight, "
    "nn.Linear(2, 2).bias is None, nn.LayerNorm(2, bias=False).bias)",
    "bias by position": "result = [len(list(layer.parameters())) for layer in (nn.Linear(2, 2, "
    "False), "
    "nn.Conv1d(1, 1, 3, 1, 0, 1, 1, False), nn.Bilinear(2, 2, 2, False))]",
    "recurrent layers": "result = [len(list(layer.parameters())) for layer in (nn.GRU(2, 2), "
    "nn.LSTM(2, 2, 2), "
    "nn.RNN(2, 2, bias=False), nn.LSTMCell(2, 2), nn.GRU(2, 2, bidirectional=True))]",
    "recurrent names": "result = [n for n, _ in nn.LSTM(2, 2).named_parameters()]",
    "names of a normalisation": "result = [n for n, _ in nn.BatchNorm1d(2).named_parameters()]",
    "shared once": "tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))\n"
    "tied[1].weight = tied[0].weight\nresult = len(list(tied.parameters()))",
    "shared module once": "layer = nn.Linear(2, 2)\nresult = (len(list(nn.Sequential(layer, "
    "layer).parameters())), "
    "len(nn.Sequential(layer, layer)))",
    "children": "result = [type(part).__name__ for part in net.children()]",
    "names of children": "result = [n for n, _ in net.named_children()]",
    "modules": "result = [type(part).__name__ for part in net.modules()]",
    "names of modules": "result = [n for n, _ in net.named_modules()]",
    "modules of nested ones": "result = [n for n, _ in nn.Sequential(net, "
    "nn.ReLU()).named_modules()]",
    "buffer by its name": "result = (net.steps.requires_grad, 'steps' in net.state_dict())",
    "state without gradient": "result = any(tensor.requires_grad for tensor in "
    "net.state_dict().values())",
    "a submodule by name": "result = net.get_submodule('body.0') is net.body[0]",
    "the module itself by no name": "result = net.get_submodule('') is net",
    "a parameter by name": "result = net.get_parameter('body.0.weight') is net.body[0].weight",
    "registered parameter": "net.register_parameter('scale', nn.Parameter(torch.ones(1)))\n"
    "result = (net.scale.requires_grad, 'scale' in dict(net.named_parameters()))",
    "registered parameter that is none": "net.register_parameter('scale', None)\n"
    "result = (net.scale, 'scale' in "
    "dict(net.named_parameters()))",
    "added module": "net.add_module('head', nn.Linear(2, 2))\nresult = (type(net.head).__name__, "
    "len(list(net.children())))",
    "registered module": "net.register_module('head', nn.Linear(2, 2))\n"
    "result = [n for n, _ in net.named_children()]",
    "deleted module": "del net.body\nresult = [n for n, _ in net.named_parameters()]",
    "replaced layer": "net.body[0] = nn.Identity()\nresult = [n for n, _ in net.named_parameters()]",
    "a parameter that is set to none": "net.body[0].bias = None\nresult = [n for n, _ in "
    "net.named_parameters()]",
    "is in train mode": "result = (net.training, net.eval().training, net.body[0].training, "
    "net.train().training, net.train(False).body.training)",
    "mode by keyword": "result = (net.train(mode=False).training, net.train(mode=True).training)",
    "mode of a part": "net.body.eval()\nresult = (net.training, net.body.training, "
    "net.body[1].training)",
    "mode set as an attribute": "net.training = False\nresult = (net.training, net.body.training)",
    "all parts in eval mode": "net.eval()\nresult = [part.training for part in net.modules()]",
    "own train method": "class Frozen(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.stem, self.head = nn.Linear(2, 2), nn.Linear(2, 2)\n"
    "    def train(self, mode=True):\n        super().train(mode)\n        self.stem.eval()\n"
    "        return self\nf = Frozen().train()\nresult = (f.training, f.stem.training, "
    "f.head.training)",
    "frozen": "net.requires_grad_(False)\nresult = [p.requires_grad for p in net.parameters()]",
    "frozen by keyword": "net.requires_grad_(requires_grad=False)\n"
    "result = [p.requires_grad for p in "
    "net.parameters()]",
    "frozen part": "net.body[0].requires_grad_(False)\nresult = [n for n, p in "
    "net.named_parameters() if "
    "p.requires_grad]",
    "frozen and thawed": "net.requires_grad_(False).requires_grad_()\n"
    "result = all(p.requires_grad for p in "
    "net.parameters())",
    "an attribute of a module freezes nothing": "net.requires_grad = False\n"
    "result = [p.requires_grad for p in "
    "net.parameters()]",
    "applied": "kinds = []\nnet.apply(lambda part: kinds.append(type(part).__name__))\n"
    "result = kinds",
    "moved module is the same": "result = (net.to('cpu') is net, net.float() is net, net.cpu() "
    "is net, net.double() is "
    "net)",
    "a cast keeps the parameters": "before = net.body[0].weight\nnet.double()\n"
    "result = (net.body[0].weight is before, "
    "before.dtype == torch.float64, before.is_leaf)",
    "copy of a module": "import copy\ntwin = copy.deepcopy(net)\n"
    "result = (twin is net, twin.body[0].weight is "
    "net.body[0].weight, twin.body[0].weight.requires_grad, twin.training)",
    "gradients cleared to zero": "net(x).sum().backward()\nnet.zero_grad(set_to_none=False)\n"
    "result = net.body[0].weight.grad is None",
    "forward hook": "seen = []\nhandle = net.body[1].register_forward_hook(lambda module, given, "
    "out: "
    "seen.append(type(module).__name__))\nnet(x)\nhandle.remove()\nnet(x)\nresult = seen",
    "an attribute that is missing": "result = (hasattr(net, 'body'), hasattr(net, 'other'), "
    "getattr(net, 'other', 3))",
    "module is one": "result = (isinstance(net, nn.Module), isinstance(net.body, nn.Sequential), "
    "isinstance(net.body[0], (nn.Linear, nn.Conv2d)), isinstance(net.body[1], nn.Linear))",
    "kinds of layers": "result = (isinstance(nn.BatchNorm2d(2), nn.modules.batchnorm._BatchNorm), "
    "isinstance(nn.LSTM(2, 2), nn.RNNBase), isinstance(nn.ReLU6(), nn.Hardtanh), "
    "isinstance(nn.Dropout2d(), nn.Dropout))",
    "own class of a layer": "class Wide(nn.Linear):\n    pass\nw = Wide(2, 3)\n"
    "result = (isinstance(w, nn.Linear), type(w) is nn.Linear, issubclass(Wide, nn.Module), "
    "[n for n, _ in w.named_parameters()])",
    # containers
    "length of a Sequential": "result = (len(net.body), len(nn.Sequential()), "
    "len(nn.ModuleList([net, net])), "
    "len(nn.ModuleDict({'a': net})))",
    "items of a Sequential": "result = [type(part).__name__ for part in net.body]",
    "last of a Sequential": "result = (type(net.body[-1]).__name__, type(net.body[:1]).__name__, "
    "len(net.body[1:]), "
    "len(net.body[:-1]))",
    "names in a Sequential": "import collections\ns = "
    "nn.Sequential(collections.OrderedDict([('one', nn.Linear(2, "
    "2)), ('two', nn.ReLU())]))\nresult = ([n for n, _ in s.named_children()], "
    "type(s.two).__name__, type(s[0]).__name__, [n for n, _ in s.named_parameters()])",
    "a list grows": "l = nn.ModuleList()\nl.append(nn.Linear(2, 2))\n"
    "l.extend([nn.ReLU(), nn.Tanh()])\n"
    "l.insert(1, nn.GELU())\nresult = [type(part).__name__ for part in l]",
    "a list by index": "l = nn.ModuleList([nn.ReLU(), nn.Tanh()])\nl[0] = nn.GELU()\n"
    "result = (type(l[0]).__name__, type(l[-1]).__name__, len(l[:1]), type(l[:1]).__name__)",
    "a list of a comprehension": "l = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))\n"
    "result = (len(l), len(list(l.parameters())))",
    "a list enumerated": "l = nn.ModuleList([nn.ReLU(), nn.Tanh()])\n"
    "result = [(i, type(part).__name__) for i, "
    "part in enumerate(l)]",
    "a list zipped": "l = nn.ModuleList([nn.ReLU(), nn.Tanh()])\n"
    "result = [(name, type(part).__name__) for "
    "name, part in zip('ab', l)]",
    "a list reversed": "l = nn.ModuleList([nn.ReLU(), nn.Tanh()])\n"
    "result = [type(part).__name__ for part in "
    "reversed(l)]",
    "popped from a list": "l = nn.ModuleList([nn.ReLU(), nn.Tanh()])\ngone = l.pop(0)\n"
    "result = (type(gone).__name__, len(l))",
    "deleted from a list": "l = nn.ModuleList([nn.ReLU(), nn.Tanh()])\ndel l[0]\n"
    "result = [type(part).__name__ for part in l]",
    "a Sequential grows": "s = nn.Sequential(nn.ReLU())\ns.append(nn.Tanh())\n"
    "s.add_module('last', nn.GELU())\n"
    "result = ([type(part).__name__ for part in s], [n for n, _ in s.named_children()])",
    "a dict of modules": "d = nn.ModuleDict({'a': nn.ReLU()})\nd['b'] = nn.Tanh()\n"
    "d.update({'c': nn.GELU()})\n"
    "result = (list(d), list(d.keys()), [type(part).__name__ for part in d.values()], 'a' in "
    "d, 'z' in d, len(d))",
    "popped from a dict of modules": "d = nn.ModuleDict({'a': nn.ReLU(), 'b': nn.Tanh()})\n"
    "gone = d.pop('a')\n"
    "result = (type(gone).__name__, list(d))",
    "a list of parameters": "l = nn.ParameterList([torch.zeros(2), nn.Parameter(torch.zeros(2))])\n"
    "l.append(nn.Parameter(torch.zeros(1)))\nresult = ([p.requires_grad for p in l], len(l), "
    "[n for n, _ in l.named_parameters()])",
    "a dict of parameters": "d = nn.ParameterDict({'a': nn.Parameter(torch.zeros(2))})\n"
    "d['b'] = nn.Parameter(torch.zeros(2))\nresult = (list(d.keys()), d['a'].requires_grad, "
    "[n for n, _ in d.named_parameters()])",
    # tensors
    "leaves": "y = x * 2\nw = torch.zeros(2, requires_grad=True)\n"
    "result = (x.is_leaf, y.is_leaf, w.is_leaf, (w * 2).is_leaf, net.body[0].weight.is_leaf)",
    "requires grad": "w = torch.zeros(2, requires_grad=True)\n"
    "result = (x.requires_grad, w.requires_grad, (w "
    "* 2).requires_grad, (w > 0).requires_grad, w.detach().requires_grad, "
    "w.data.requires_grad, w.clone().requires_grad)",
    "grad_fn": "w = torch.zeros(2, requires_grad=True)\nresult = (w.grad_fn is None, (w * "
    "2).grad_fn is "
    "None, x.grad_fn is None, (w * 2).detach().grad_fn is None)",
    "switched on": "y = torch.zeros(2)\ny.requires_grad_()\nresult = (y.requires_grad, y.is_leaf)",
    "switched as an attribute": "y = torch.zeros(2)\ny.requires_grad = True\nz = y * 2\n"
    "result = (y.requires_grad, z.requires_grad)",
    "switched off": "w = torch.zeros(2, requires_grad=True).requires_grad_(False)\n"
    "result = w.requires_grad",
    "kinds of tensors": "p = nn.Parameter(torch.zeros(2))\nresult = (isinstance(p, "
    "torch.Tensor), isinstance(p, "
    "nn.Parameter), isinstance(x, nn.Parameter), isinstance(p * 2, nn.Parameter), type(p) is "
    "nn.Parameter, type(x) is torch.Tensor, torch.is_tensor(x), torch.is_tensor(3), type(p) "
    "is torch.Tensor)",
    "type of a parameter": "p = nn.Parameter(torch.zeros(2))\nresult = (type(p).__name__, "
    "type(x).__name__, type(p "
    "* 2).__name__)",
    "parameter that is not trained": "p = nn.Parameter(torch.zeros(2), requires_grad=False)\n"
    "q = nn.Parameter(torch.zeros(2), False)\nresult = (p.requires_grad, q.requires_grad, "
    "nn.Parameter(p).requires_grad)",
    "device": "result = (x.device.type, x.is_cuda, torch.device('cpu').type, "
    "torch.device('cuda:1').type, torch.device('cuda:1').index, torch.device('cuda', "
    "2).index, str(torch.device('cpu')))",
    "the same tensor": "y = x\nresult = (y is x, x.contiguous() is x, x.to('cpu') is x, "
    "x.float() is x, x.cpu() "
    "is x, x.clone() is x, x.add_(1) is x, x.requires_grad_(False) is x)",
    "parts": "result = [len(torch.chunk(torch.zeros(6), 3)), len(torch.zeros(6).chunk(2)), "
    "len(torch.zeros(3, 2).unbind()), len(torch.zeros(6).split([1, 2, 3])), "
    "len(torch.split(torch.zeros(6), [2, 4])), len(torch.meshgrid(torch.zeros(2), "
    "torch.zeros(3), indexing='ij')), len(torch.broadcast_tensors(x, x))]",
    "unpacked parts": "a, b = torch.zeros(6).chunk(2)\nc, d, e = torch.zeros(6).split(2)\n"
    "values, indices = x.max(1)\nresult = (a.requires_grad, e.requires_grad, "
    "indices.is_floating_point())",
    "named parts": "w = torch.rand(3, 3, requires_grad=True)\n"
    "m, s = torch.max(w, 1), torch.sort(w)\n"
    "result = (m.values.requires_grad, m.indices.requires_grad, s.values.requires_grad, "
    "s[1].requires_grad, w.topk(2).values.requires_grad, w.topk(2).indices.requires_grad, "
    "w.min().requires_grad)",
    "outputs of an LSTM": "out, (h, c) = nn.LSTM(4, 3)(x[None])\n"
    "result = (out.requires_grad, h.requires_grad, "
    "c.requires_grad)",
    "outputs of a GRU": "out, h = nn.GRU(4, 3)(x[None])\nresult = (out.requires_grad, "
    "h.requires_grad)",
    "outputs of attention": "out, weights = nn.MultiheadAttention(4, 2)(x[None], x[None], "
    "x[None])\n"
    "result = (out.requires_grad, weights.requires_grad)",
    "truth of a number": "result = (bool(torch.tensor(1.0)), bool(torch.tensor(0)), "
    "torch.tensor(3).item(), "
    "float(torch.tensor(2.0)), int(torch.tensor(2)))",
    "numbers of constants": "result = ((torch.tensor(2.0) + 1).item(), torch.zeros(1).item(), "
    "torch.ones(()).item(), "
    "torch.full((), 3.0).item())",
    # modes
    "grad mode": "seen = [torch.is_grad_enabled()]\nwith torch.no_grad():\n"
    "    seen.append(torch.is_grad_enabled())\n    with torch.enable_grad():\n"
    "        seen.append(torch.is_grad_enabled())\n    seen.append(torch.is_grad_enabled())\n"
    "seen.append(torch.is_grad_enabled())\nresult = seen",
    "grad mode set": "seen = []\nfor on in (True, False):\n    with torch.set_grad_enabled(on):\n"
    "        seen.append(torch.is_grad_enabled())\ntorch.set_grad_enabled(False)\n"
    "seen.append(torch.is_grad_enabled())\ntorch.set_grad_enabled(True)\nresult = seen",
    "inference mode": "with torch.inference_mode():\n    seen = [torch.is_grad_enabled(), "
    "torch.is_inference_mode_enabled()]\nwith torch.inference_mode(False):\n"
    "    seen += [torch.is_grad_enabled(), torch.is_inference_mode_enabled()]\nresult = seen",
    "mode of a decorated function": "@torch.no_grad()\ndef off():\n    return "
    "torch.is_grad_enabled(), net(x).requires_grad\n"
    "@torch.enable_grad()\ndef on():\n    return torch.is_grad_enabled(), "
    "net(x).requires_grad\nwith torch.no_grad():\n    inner = on()\n"
    "result = (off(), inner, torch.is_grad_enabled())",
    "mode after an exception": "try:\n    with torch.no_grad():\n        raise ValueError\n"
    "except ValueError:\n"
    "    pass\nresult = torch.is_grad_enabled()",
    "leaves made without grad": "with torch.no_grad():\n    w = torch.zeros(2, "
    "requires_grad=True)\n"
    "    p = nn.Parameter(torch.zeros(2))\n    y = w * 2\n"
    "result = (w.requires_grad, p.requires_grad, y.requires_grad, (w * 2).requires_grad)",
    "made in inference mode": "with torch.inference_mode():\n    y = x * 2\n"
    "    w = torch.zeros(2, requires_grad=True)\nresult = (y.is_inference(), "
    "x.is_inference(), w.is_inference(), y.clone().is_inference(), w.requires_grad)",
    # optimizers
    "groups": "o = torch.optim.SGD([{'params': net.body[0].parameters()}, {'params': "
    "[torch.zeros(1, "
    "requires_grad=True)], 'lr': 0.5}], lr=0.1)\nresult = (len(o.param_groups), "
    "o.param_groups[1]['lr'], [len(g['params']) for g in o.param_groups])",
    "a group added": "o = torch.optim.Adam(net.parameters())\n"
    "o.add_param_group({'params': [torch.zeros(1, "
    "requires_grad=True)]})\nresult = (len(o.param_groups), [len(g['params']) for g in "
    "o.param_groups])",
    "held by the optimizer": "o = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "result = o.param_groups[0]['params'][0] is net.body[0].weight",
    "held alone": "o = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)\n"
    "result = len(o.param_groups[0]['params'])",
    "rate": "o = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "result = (o.param_groups[0]['lr'], isinstance(o, torch.optim.Optimizer), isinstance(o, "
    "torch.optim.Adam))",
    "named for an optimizer": "o = torch.optim.SGD(net.named_parameters(), lr=0.1)\n"
    "result = len(o.param_groups[0]['params'])",
    "cleared to zero": "o = torch.optim.SGD(net.parameters(), lr=0.1)\nnet(x).sum().backward()\n"
    "o.zero_grad(set_to_none=False)\nresult = net.body[0].weight.grad is None",
    "closure": "o = torch.optim.SGD(net.parameters(), lr=0.1)\ncalls = []\ndef closure():\n"
    "    calls.append(torch.is_grad_enabled())\n    return net(x).sum()\no.step(closure)\n"
    "result = calls",
    # data
    "own loader": "class Own(torch.utils.data.DataLoader):\n    pass\n"
    "d = torch.utils.data.TensorDataset(torch.zeros(4, 2))\nl = Own(d, batch_size=2)\n"
    "result = (isinstance(l, torch.utils.data.DataLoader), [i for i, _ in enumerate(l)])",
    "split": "a, b = torch.utils.data.random_split(range(10), [7, 3])\nresult = (len(a), len(b))",
    "own data set": "class Own(torch.utils.data.Dataset):\n    def __len__(self):\n"
    "        return 5\n"
    "    def __getitem__(self, i):\n        return torch.zeros(2), i\n"
    "d = torch.utils.data.DataLoader(Own(), batch_size=2)\nresult = (len(d), len(d.dataset))",
    "rounds": "d = torch.utils.data.TensorDataset(torch.zeros(4, 2))\n"
    "result = [i for i, _ in enumerate(torch.utils.data.DataLoader(d, batch_size=2))]",
    # wrappers
    "inside a wrapper": "w = nn.DataParallel(net)\nresult = (w.module is net, isinstance(w, "
    "nn.Module), [n for "
    "n, _ in w.named_parameters()])",
    "averaged": "w = torch.optim.swa_utils.AveragedModel(net)\n"
    "result = (w.module is net, w.module.body[0].weight is net.body[0].weight)",
    "parametrised": "l = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))\n"
    "result = (isinstance(l, nn.Linear), l.weight.requires_grad)",
    "parameters as one": "v = nn.utils.parameters_to_vector(net.parameters())\n"
    "result = (v.requires_grad, v.is_leaf)",
    "clipped": "net(x).sum().backward()\nn = nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n"
    "result = n.requires_grad",
    "scaler": "s = torch.amp.GradScaler('cpu', enabled=False)\nl = net(x).sum()\n"
    "result = (s.is_enabled(), s.get_scale(), s.scale(l) is l)",
    "is training at run time": "class Own(nn.Module):\n    def forward(self, x):\n"
    "        return 1 if self.training else 2\no = Own()\n"
    "result = (o(x), o.eval()(x), o.train()(x))",
    "called by keyword": "class Own(nn.Module):\n    def forward(self, x, *, scale=1):\n"
    "        return scale\n"
    "result = (Own()(x), Own()(x, scale=3), Own().forward(x=x, scale=2))",
    "sequential computes in order": "class Add(nn.Module):\n    def forward(self, x):\n"
    "        return x + 1\n"
    "class Double(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
    "result = (nn.Sequential(Add(), Double())(3), nn.Sequential(Double(), Add())(3), "
    "nn.Sequential()(3))",
    "gradients of many": "y = net(x)\nresult = ([t.requires_grad for t in "
    "(y.sum(dtype=torch.float64), "
    "y.max(1)[0], y.max(1)[1], y.topk(2).values, y.topk(2)[1], y.sort()[0], y.argsort(), "
    "y.median(),)], [t.requires_grad for t in (y.mode()[0], y.char(), y.byte(), y.bool(), "
    "y.int(), y.double(), y.half(), y > 0,)], [t.requires_grad for t in (y.data, y.detach(), "
    "y.T, y.clone(), y.round(), y.sign(),)])",
    "max as two": "y = net(x)\nvalues, indices = y.max(dim=1)\nkept = y.max(dim=1, keepdim=True)\n"
    "result = (values.requires_grad, indices.requires_grad, kept.values.requires_grad, "
    "kept.indices.requires_grad, y.max().requires_grad, torch.max(y, y * 2).requires_grad, "
    "[part.requires_grad for part in y.min(1)])",
    "methods called as functions": "y = net(x)\nresult = (torch.Tensor.sum(y).requires_grad, "
    "torch.Tensor.detach(y).requires_grad, torch.Tensor.item(torch.ones(())) is None)",
    "in place functions": "y = net(x) * 1\nF.relu(y, inplace=True)\n"
    "F.dropout(y, 0.1, True, True)\nF.relu_(y)\n"
    "torch.relu_(y)\nz = torch.zeros(3)\nz += y[0]\nw = torch.zeros(2)\nw[0] = y[0, 0]\n"
    "v = torch.zeros(2)\nv.copy_(y[0, :2])\nu = torch.zeros(3, 3)\nu.fill_(1.0)\n"
    "result = (y.requires_grad, z.requires_grad, w.requires_grad, v.requires_grad, "
    "u.requires_grad)",
    "written in place": "y = net(x)\na, b, c, d = torch.zeros(3, 3), torch.zeros(3, 3), "
    "torch.zeros(3, 3), "
    "torch.zeros(3, 3)\na.add_(y)\nb.index_copy_(0, torch.tensor([0]), y[:1])\n"
    "c.masked_fill_(torch.tensor(True), 2.0)\nd[:, 0] = 1.0\n"
    "result = (a.requires_grad, b.requires_grad, c.requires_grad, d.requires_grad, a.grad_fn "
    "is None, d.grad_fn is None)",
    "data of data": "y = net(x)\nd = y.data\nd2 = y.data\nw = net.body[0].weight\n"
    "w.data = torch.zeros(3, 4)\nw.data.add_(1)\nresult = (d.requires_grad, "
    "d2.requires_grad, w.requires_grad, w.is_leaf, y.is_leaf, d.is_leaf)",
    "requires_grad by name": "a, b, c = torch.zeros(2), torch.zeros(2, requires_grad=True), "
    "net(x)\n"
    "a.requires_grad = True\nb.requires_grad = False\nc.requires_grad_()\n"
    "d = torch.zeros(2).requires_grad_(False)\nc2 = c.detach().requires_grad_()\n"
    "net.body[0].weight.requires_grad = False\nresult = (a.requires_grad, b.requires_grad, "
    "c.requires_grad, d.requires_grad, c2.requires_grad, c2.is_leaf, a.is_leaf, "
    "[p.requires_grad for p in net.parameters()], net(x).requires_grad)",
    "frozen and thawed again": "net.requires_grad_(False)\na = net(x).requires_grad\n"
    "net.body[0].bias.requires_grad_()\n"
    "b = net(x).requires_grad\nfor p in net.parameters():\n    p.requires_grad = True\n"
    "result = (a, b, [p.requires_grad for p in net.parameters()])",
    "gradients that are kept": "y = net(x)\ny.retain_grad()\nh = y.register_hook(lambda g: g)\n"
    "y.sum().backward()\n"
    "result = (y.requires_grad, net.body[0].weight.grad is None, "
    "net.body[0].weight.grad.requires_grad)",
    "sizes": "result = (len(x), x.shape[0], x.ndim, x.dim(), x.size(1), x.numel(), torch.numel(x), "
    "x.is_floating_point(), torch.is_floating_point(x), torch.is_tensor(x), "
    "torch.is_tensor(3), isinstance(x, torch.Tensor), isinstance(x, nn.Parameter), "
    "isinstance(net.body[0].weight, nn.Parameter), isinstance(net.body[0].weight, "
    "torch.Tensor))",
    "made of others": "y = net(x)\nresult = ([t.requires_grad for t in (torch.tensor([1.0]), "
    "torch.tensor(1.0, "
    "requires_grad=True), torch.zeros_like(y), torch.ones_like(y, requires_grad=True), "
    "y.new_zeros(2), torch.as_tensor(y), torch.empty(2), torch.full((2,), 1.0),)], "
    "[t.requires_grad for t in (torch.arange(3), torch.eye(2), torch.linspace(0, 1, 3), "
    "torch.LongTensor([1]), torch.FloatTensor([1.0]), torch.BoolTensor([True]), "
    "torch.IntTensor([1]), torch.rand_like(y),)], [t.requires_grad for t in "
    "(torch.bernoulli(y.sigmoid()), torch.stack([y, y]), torch.cat([x, y], 1), torch.where(y "
    "> 0, y, 0.0), torch.from_numpy(y.detach().numpy()), torch.tensor(2), torch.zeros(2, "
    "dtype=torch.long),)])",
    "variables": "v = torch.autograd.Variable(torch.zeros(2), requires_grad=True)\n"
    "w = torch.autograd.Variable(net(x))\nresult = (v.requires_grad, w.requires_grad, "
    "v.is_leaf)",
    "backward by function": "y = net(x)\ntorch.autograd.backward([y.sum(), (2 * y).sum()])\n"
    "result = [p.grad is None for p in net.parameters()]",
    "backward by function of one": "torch.autograd.backward(net(x).sum())\n"
    "result = [p.grad is None for p in "
    "net.parameters()]",
    "grad by function": "g = torch.autograd.grad(net(x).sum(), list(net.parameters()))\n"
    "h = torch.autograd.grad(net(x).sum(), net.body[0].weight, create_graph=True)[0]\n"
    "result = (len(g), [t.requires_grad for t in g], isinstance(g, tuple), h.requires_grad)",
    "buffers": "result = (len(list(net.buffers())), [n for n, _ in net.named_buffers()], "
    "net.steps.requires_grad)",
    "a plain buffer": "b = nn.Buffer(torch.zeros(2))\nresult = b.requires_grad",
    "half parameters": "p = nn.Parameter(torch.zeros(2).half())\nq = nn.Parameter(torch.zeros(2), "
    "requires_grad=False)\nr = nn.Parameter(torch.zeros(2), False)\n"
    "result = (p.requires_grad, q.requires_grad, r.requires_grad, p.is_leaf, "
    "nn.Parameter(net(x).detach()).requires_grad)",
    "hooks": "seen = []\ndef hook(module, args, output):\n    seen.append(1)\n"
    "    return output.detach()\nh = net.register_forward_hook(hook)\n"
    "a = net(x).requires_grad\nh.remove()\nb = net(x).requires_grad\n"
    "result = (a, b, len(seen))",
    "hooks before": "def hook(module, args):\n    return (args[0] * 2,)\n"
    "h = net.register_forward_pre_hook(hook)\na = net(x).requires_grad\n"
    "with net.register_forward_hook(lambda m, a, o: None):\n    b = net(x).requires_grad\n"
    "result = (a, b)",
    "hooks with keywords": "def hook(module, args, kwargs, output):\n    return output * 2\n"
    "h = net.register_forward_hook(hook, with_kwargs=True)\nresult = net(x).requires_grad",
    "containers by hand": "s = nn.Sequential()\ns.append(nn.Linear(4, 4))\n"
    "s.add_module('last', nn.Linear(4, 2))\n"
    "s[0] = nn.Linear(4, 4, bias=False)\nl = nn.ModuleList([nn.Linear(2, 2)])\n"
    "l.extend([nn.Linear(2, 2)])\nl.insert(0, nn.ReLU())\nl[-1] = nn.Tanh()\n"
    "d = nn.ModuleDict({'a': nn.Linear(2, 2)})\nd['b'] = nn.ReLU()\n"
    "d.update({'c': nn.Tanh()})\nresult = (len(s), len(list(s.parameters())), len(l), "
    "len(list(l.parameters())), list(d), len(d), 'a' in d, [type(m).__name__ for m in l], "
    "type(d.pop('c')).__name__, len(d))",
    "containers taken apart": "l = nn.ModuleList([nn.Linear(2, 2), nn.ReLU(), nn.Tanh()])\n"
    "del l[0]\nlast = l.pop(-1)\n"
    "result = (len(l), type(last).__name__, len(list(l.parameters())))",
    "slices of containers": "s = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))\n"
    "result = (len(s[:2]), len(list(s[1:].parameters())), s[-1](s[:-1](x)).requires_grad, [n "
    "for n, _ in s.named_children()], [n for n, _ in s.named_modules()])",
    "set by attribute": "s = nn.Sequential(nn.Linear(4, 4), nn.ReLU())\n"
    "setattr(s, '0', nn.Linear(4, 4, bias=False))\n"
    "d = nn.ModuleDict({'a': nn.Linear(2, 2)})\nsetattr(d, 'a', nn.ReLU())\n"
    "result = (len(list(s.parameters())), len(list(d.parameters())))",
    "deleted parts": "del net.body\nnet.other = nn.Linear(2, 2)\nresult = [n for n, _ in "
    "net.named_parameters()]",
    "parts that are none": "net.extra = None\nnet.register_parameter('bias', None)\n"
    "net.register_buffer('nothing', None)\nresult = ([n for n, _ in net.named_parameters()], "
    "net.bias, net.nothing, net.extra)",
    "parts that others share": "a = nn.Linear(2, 2)\nb = nn.Module()\nb.one, b.two = a, a\n"
    "result = ([n for n, _ in b.named_modules()], len(list(b.modules())), [n for n, _ in "
    "b.named_parameters()], len(list(b.children())))",
    "applied again": "log = []\nnet.apply(lambda m: log.append(type(m).__name__))\nresult = log",
    "modes of parts": "net.body.eval()\na = [m.training for m in net.modules()]\nnet.train(False)\n"
    "b = net.training\nnet.train()\nresult = (a, b, [m.training for m in net.modules()], "
    "net.eval() is net)",
    "parameters by groups": "o = torch.optim.SGD([{'params': net.body.parameters()}, {'params': "
    "[nn.Parameter(torch.zeros(1))], 'lr': 1.0}], lr=0.1)\n"
    "o.add_param_group({'params': nn.Parameter(torch.zeros(2))})\n"
    "result = ([len(g['params']) for g in o.param_groups], len(o.param_groups))",
    "optimizers of lists": "w = nn.Parameter(torch.zeros(2))\no = torch.optim.Adam([w], lr=0.1)\n"
    "q = torch.optim.AdamW(params=iter([w]), lr=0.1)\n"
    "result = (len(o.param_groups[0]['params']), len(q.param_groups[0]['params']), "
    "o.param_groups[0]['params'][0] is w)",
    "a generator in a list": "try:\n    torch.optim.SGD([net.parameters()], lr=0.1)\n    r = 0\n"
    "except TypeError:\n"
    "    r = 1\nresult = r",
    "hooks of optimizers": "log = []\no = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "o.register_step_pre_hook(lambda *a: log.append('before'))\n"
    "h = o.register_step_post_hook(lambda *a: log.append('after'))\nnet(x).sum().backward()\n"
    "o.step()\nresult = log",
    "own schedulers": "class Own(torch.optim.lr_scheduler.LRScheduler):\n"
    "    def __init__(self, o, k):\n"
    "        self.k = k\n        super().__init__(o)\n    def get_lr(self):\n"
    "        return [0.1]\no = torch.optim.SGD(net.parameters(), lr=0.1)\ns = Own(o, 3)\n"
    "result = (s.k, s.optimizer is o, isinstance(s, torch.optim.lr_scheduler.LRScheduler))",
    "own optimizers": "class Own(torch.optim.Optimizer):\n    def __init__(self, params, lr=0.1):\n"
    "        super().__init__(params, {'lr': lr})\n    @torch.no_grad()\n"
    "    def step(self, closure=None):\n        for group in self.param_groups:\n"
    "            for p in group['params']:\n                p.add_(p.grad, "
    "alpha=-group['lr'])\no = Own(net.parameters(), 0.5)\nnet(x).sum().backward()\no.step()\n"
    "o.zero_grad()\nresult = len(o.param_groups[0]['params'])",
    "states": "o = torch.optim.SGD(net.parameters(), lr=0.1)\no.load_state_dict(o.state_dict())\n"
    "net.load_state_dict(net.state_dict())\nresult = (len(o.param_groups), 'body.0.weight' "
    "in net.state_dict(), len(list(net.parameters())))",
    "modes of every sort": "log = []\nwith torch.no_grad():\n    "
    "log.append(torch.is_grad_enabled())\n"
    "    with torch.enable_grad():\n        log.append(torch.is_grad_enabled())\n"
    "with torch.set_grad_enabled(False):\n    log.append(torch.is_grad_enabled())\n"
    "log.append(torch.is_grad_enabled())\nwith torch.inference_mode():\n"
    "    log.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))\n"
    "with torch.inference_mode(False):\n    log.append(torch.is_grad_enabled())\n"
    "torch.set_grad_enabled(False)\nlog.append(torch.is_grad_enabled())\n"
    "torch.set_grad_enabled(True)\nlog.append(torch.is_grad_enabled())\nresult = log",
    "modes as decorators": "@torch.no_grad()\ndef a():\n    return torch.is_grad_enabled()\n"
    "@torch.inference_mode()\ndef b():\n    return torch.is_grad_enabled()\n"
    "@torch.set_grad_enabled(False)\ndef c():\n    return torch.is_grad_enabled()\n"
    "@torch.no_grad\ndef d():\n    return torch.is_grad_enabled()\n@torch.enable_grad()\n"
    "def e():\n    return torch.is_grad_enabled()\nwith torch.no_grad():\n    f = e()\n"
    "result = (a(), b(), c(), d(), f, torch.is_grad_enabled())",
    "a mode around a class": "class A:\n    @torch.no_grad()\n    def f(self, y):\n"
    "        return net(y).requires_grad\nresult = (A().f(x), net(x).requires_grad)",
    "modes kept": "ctx = torch.no_grad()\nctx.__enter__()\na = net(x).requires_grad\n"
    "ctx.__exit__(None, None, None)\nresult = (a, net(x).requires_grad)",
    "anomalies": "with torch.autograd.set_detect_anomaly(True):\n    a = net(x).requires_grad\n"
    "with torch.autograd.detect_anomaly(check_nan=False):\n    b = net(x).requires_grad\n"
    "result = (a, b)",
    "saved on the way": "with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):\n"
    "    a = net(x).requires_grad\nwith torch.autograd.graph.save_on_cpu():\n"
    "    b = net(x).requires_grad\nresult = (a, b)",
    "functions of its own": "class Own(torch.autograd.Function):\n    @staticmethod\n"
    "    def forward(ctx, a, b):\n"
    "        ctx.save_for_backward(a)\n        ctx.set_materialize_grads(False)\n"
    "        ctx.k = b\n        return a * b\n    @staticmethod\n    def backward(ctx, g):\n"
    "        return g * ctx.k if ctx.needs_input_grad[0] else None, None\ny = net(x)\n"
    "result = (Own.apply(y, 2.0).requires_grad, Own.apply(x, 2.0).requires_grad, "
    "Own.apply(y.detach(), 2.0).requires_grad)",
    "vmapped and compiled": "f = torch.func.vmap(lambda t: net(t))\n"
    "g = torch.func.grad(lambda p: (p ** 2).sum())\n"
    "result = (f(x).requires_grad, g(torch.ones(2)).requires_grad, "
    "torch.func.functional_call(net, dict(net.named_parameters()), x).requires_grad)",
    "jacobians": "y = net(x)\na = torch.autograd.functional.jacobian(lambda t: (t ** 2).sum(), x)\n"
    "b = torch.autograd.functional.hessian(lambda t: (t ** 2).sum(), x)\n"
    "result = (a.requires_grad, b.requires_grad)",
    "distributions": "y = net(x)\nd = torch.distributions.Normal(y, 1.0)\n"
    "c = torch.distributions.Categorical(logits=y)\n"
    "t = torch.distributions.TransformedDistribution(d, "
    "[torch.distributions.TanhTransform()])\nresult = (d.has_rsample, c.has_rsample, "
    "t.has_rsample, d.loc.requires_grad, d.scale.requires_grad, d.mean.requires_grad, "
    "c.logits.requires_grad, c.probs.requires_grad, d.rsample().requires_grad, "
    "d.sample().requires_grad, c.sample().requires_grad, "
    "c.log_prob(c.sample()).requires_grad, c.entropy().requires_grad, d.expand((2, 3, "
    "3)).rsample().requires_grad, c.enumerate_support().requires_grad, "
    "torch.distributions.TanhTransform()(y).requires_grad, "
    "torch.distributions.kl_divergence(d, torch.distributions.Normal(0.0, "
    "1.0)).requires_grad)",
    "parts of distributions": "y = net(x)\nd = "
    "torch.distributions.Independent(torch.distributions.Normal(y, "
    "1.0), 1)\n"
    "g = torch.distributions.Gamma(y.exp(), y.exp())\n"
    "b = torch.distributions.Bernoulli(logits=y)\n"
    "result = (d.base_dist.loc.requires_grad, g.concentration.requires_grad, "
    "g.rsample().requires_grad, b.probs.requires_grad, b.mean.requires_grad, "
    "b.sample().requires_grad)",
    "sequences of lengths": "from torch.nn.utils import rnn\ny = net(x)\n"
    "p = rnn.pack_padded_sequence(y[None], "
    "torch.tensor([3]), batch_first=True)\nq = rnn.pack_sequence([y])\n"
    "r, lengths = rnn.pad_packed_sequence(q)\nresult = (p.data.requires_grad, "
    "p.batch_sizes.requires_grad, p.to('cpu').data.requires_grad, r.requires_grad, "
    "lengths.requires_grad, rnn.pad_sequence([y, y]).requires_grad, "
    "rnn.unpad_sequence(rnn.pad_sequence([y]), torch.tensor([3]))[0].requires_grad)",
    "vectors of parameters": "v = nn.utils.parameters_to_vector(net.parameters())\n"
    "nn.utils.vector_to_parameters(torch.zeros(15), net.parameters())\n"
    "result = (v.requires_grad, net(x).requires_grad)",
    "made without values": "l = nn.utils.skip_init(nn.Linear, 4, 3)\n"
    "result = (isinstance(l, nn.Linear), "
    "l(x).requires_grad, len(list(l.parameters())))",
    "norms by weight": "import warnings\nwarnings.simplefilter('ignore')\n"
    "a = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))\n"
    "b = nn.utils.weight_norm(nn.Linear(4, 3))\nresult = (a(x).requires_grad, "
    "b(x).requires_grad)",
    "clipped again": "net(x).sum().backward()\na = nn.utils.clip_grad_norm_(net.parameters(), "
    "1.0)\n"
    "nn.utils.clip_grad_value_(net.body[0].weight, 1.0)\n"
    "b = nn.utils.get_total_norm([p.grad for p in net.parameters()])\n"
    "nn.utils.clip_grad_norm_([p for p in net.parameters()], max_norm=1.0)\n"
    "result = (a.requires_grad, b.requires_grad)",
    "averaged models": "from torch.optim.swa_utils import AveragedModel, SWALR\n"
    "w = AveragedModel(net)\n"
    "w.update_parameters(net)\nresult = (w.module is net, w(x).requires_grad, "
    "len(list(w.parameters())))",
    "wrapped in parallel": "w = nn.DataParallel(net)\nresult = (w(x).requires_grad, w.module is "
    "net, [n for n, _ in "
    "w.named_parameters()], w.training)",
    "checkpointed": "from torch.utils.checkpoint import checkpoint, checkpoint_sequential\n"
    "z = x.clone().requires_grad_()\na = checkpoint(net, z, use_reentrant=True)\n"
    "b = checkpoint(lambda t: (net(t), net(t)), z, use_reentrant=True)\n"
    "c = checkpoint(net, x, use_reentrant=False)\n"
    "d = checkpoint(lambda t: {'a': net(t)}, z, use_reentrant=False)\n"
    "e = checkpoint_sequential(net.body, 2, z, use_reentrant=True)\n"
    "f = checkpoint_sequential([net.body[0], net.body[1]], 1, z, use_reentrant=False)\n"
    "result = (a.requires_grad, [t.requires_grad for t in b], c.requires_grad, "
    "d['a'].requires_grad, e.requires_grad, f.requires_grad)",
    "split by lengths": "a, b = torch.utils.data.random_split(range(10), [7, 3])\n"
    "c = torch.utils.data.Subset(range(10), [1, 2])\n"
    "d = torch.utils.data.ConcatDataset([range(3), range(4)])\n"
    "result = (len(a), len(b), len(c), len(d))",
    "numbers by name": "d = torch.utils.data.TensorDataset(torch.zeros(10, 2), torch.zeros(10))\n"
    "result = (len(d), len(d.tensors), len(d[0]), [t.requires_grad for t in d[0]])",
    "arrays": "import numpy as np\na = net(x).detach().numpy()\n"
    "result = (torch.from_numpy(a).requires_grad, torch.tensor(np.zeros(3)).requires_grad, "
    "a.ndim, a.shape[0], float(np.sqrt(4.0)), float(np.log(1.0)), int(np.maximum(1, 2)), "
    "np.newaxis is None, isinstance(a, np.ndarray), float(np.mean([1.0, 3.0])), "
    "int(np.floor(2.5)), np.pi > 3)",
    "devices": "d = torch.device('cpu')\ne = torch.device('cuda', 0)\nf = torch.device('cuda:1')\n"
    "result = (d.type, e.type, f.type, f.index, str(d), d == torch.device('cpu'), "
    "x.device.type, x.to(d).requires_grad, x.is_cuda)",
    "scalers": "s = torch.amp.GradScaler('cpu', enabled=False)\n"
    "o = torch.optim.SGD(net.parameters(), lr=0.1)\nl = [net(x).sum(), net(x).sum()]\n"
    "k = s.scale(l)\ns.scale(l[0]).backward()\ns.unscale_(o)\ns.step(o)\ns.update()\n"
    "s.load_state_dict(s.state_dict())\nresult = (len(k), k[0].requires_grad, "
    "s.is_enabled(), s.get_scale())",
    "scalers that scale": "s = torch.amp.GradScaler('cpu')\no = "
    "torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "k = s.scale([net(x).sum(), net(x).sum()])\ns.scale(net(x).sum()).backward()\ns.step(o)\n"
    "s.update()\nresult = (len(k), [t.requires_grad for t in k], s.is_enabled(), "
    "isinstance(s.get_scale(), float), isinstance(s.get_growth_factor(), float))",
    "autocast as a decorator": "@torch.autocast('cpu', dtype=torch.bfloat16)\ndef f(y):\n"
    "    return net(y)\n"
    "with torch.autocast('cpu', enabled=False):\n    a = net(x)\n"
    "result = (f(x).requires_grad, a.requires_grad, torch.is_autocast_enabled('cpu'))",
    "losses of every sort": "y = net(x)\nt = torch.tensor([0, 1, 2])\n"
    "result = [l.requires_grad for l in "
    "(F.cross_entropy(y, t), nn.CrossEntropyLoss()(y, t), F.mse_loss(y, "
    "torch.zeros_like(y)), nn.BCEWithLogitsLoss()(y, y.detach().sigmoid()), "
    "F.nll_loss(y.log_softmax(1), t), F.kl_div(y.log_softmax(1), y.softmax(1).detach(), "
    "reduction='batchmean'), F.l1_loss(x[:, :3], y), F.smooth_l1_loss(y, y.detach()), "
    "nn.CosineEmbeddingLoss()(y, y, torch.ones(3)), F.cosine_similarity(y, y))]",
    "properties of tensors": "y = net(x)\nw = net.body[0].weight\n"
    "result = (y.grad_fn is None, w.grad_fn is None, "
    "w.is_leaf, y.is_leaf, x.is_leaf, y.requires_grad, y.detach().grad_fn is None, (x * "
    "2).is_leaf)",
    "numbers out of tensors": "y = net(x)\nresult = (isinstance(y.sum().item(), float), "
    "isinstance(y.tolist(), list), "
    "isinstance(float(y.sum()), float), isinstance(int(y.sum()), int), "
    "isinstance(bool(y.sum() > 0), bool))",
    "typed by hints": "from typing import Optional\nclass Own(nn.Module):\n"
    "    def __init__(self, inner: Optional[nn.Module] = None):\n        super().__init__()\n"
    "        self.inner = inner\n        self.w = nn.Parameter(torch.zeros(4))\n"
    "    def forward(self, y: torch.Tensor, scale: float = 1.0) -> torch.Tensor:\n"
    "        return y * self.w * scale if self.inner is None else self.inner(y)\n"
    "result = (Own()(x).requires_grad, Own(net)(x).requires_grad, "
    "len(list(Own(net).parameters())), len(list(Own().parameters())))",
    "deep copies": "import copy\nb = copy.deepcopy(net)\nc = copy.copy(net)\n"
    "w = copy.deepcopy(net.body[0].weight)\nl = copy.deepcopy([net, net])\n"
    "s = copy.deepcopy(nn.Sequential(nn.Linear(2, 2)))\nb.requires_grad_(False)\n"
    "result = (b(x).requires_grad, net(x).requires_grad, w.requires_grad, w is "
    "net.body[0].weight, l[0] is l[1], len(list(s.parameters())), c.body is net.body, "
    "len(list(b.parameters())), l[0].body[0].weight is net.body[0].weight)",
    "einsum and friends": "y = net(x)\nresult = ([t.requires_grad for t in "
    "(torch.einsum('ij,ij->i', y, y), y @ "
    "y.T, torch.bmm(y[None], y.T[None]), torch.matmul(x, x.T), torch.linalg.norm(y), "
    "torch.cumsum(y, 0), torch.gather(y, 1, torch.zeros(3, 1, dtype=torch.long)), "
    "torch.scatter(torch.zeros(3, 3), 1, torch.zeros(3, 1, dtype=torch.long), y),)], "
    "[t.requires_grad for t in (torch.index_select(y, 0, torch.tensor([0])), "
    "F.one_hot(torch.tensor([1]), 3), F.embedding(torch.tensor([0]), net.body[0].weight), "
    "torch.roll(y, 1), torch.logsumexp(y, 0), F.pad(y, (1, 1)), F.interpolate(y[None], "
    "scale_factor=2.0), torch.isnan(y),)], [t.requires_grad for t in (torch.argmax(y), "
    "torch.count_nonzero(y),)])",
    "parts of a tensor": "y = net(x)\nresult = [[t.requires_grad for t in parts] for parts in "
    "(y.chunk(3), "
    "y.split(1), y.unbind(0), torch.chunk(y, 3, dim=1), y.split([1, 2]), "
    "torch.meshgrid(y[0], y[1], indexing='ij'), torch.broadcast_tensors(y, y))]",
    "boxes of data": "d = "
    "torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.zeros(4, "
    "2), "
    "torch.zeros(4)), 2)\na, b = next(iter(d))\nresult = (a.requires_grad, b.requires_grad, "
    "[net.body[1](p).requires_grad for p, _ in d])",
    "unknown of torch": "y = net(x)\nresult = (F.hardshrink(y).requires_grad, torch.hypot(y, "
    "y).requires_grad, "
    "F.gumbel_softmax(y).requires_grad)",
    "data twice": "y = net(x)\nd = y.data\ny.data.add_(1)\ne = y.data\n"
    "result = (d.requires_grad, e.requires_grad)",
    "an early end of two": "y = net(x)\nfor part in y.max(1):\n    break\n"
    "result = part.requires_grad",
    "graphs of constants": "a = torch.tensor([torch.tensor(1.0), torch.tensor(2.0)])\n"
    "b = torch.as_tensor([1.0, 2.0])\nc = torch.as_tensor(torch.zeros(2), "
    "dtype=torch.float64)\nresult = (a.requires_grad, b.requires_grad, c.requires_grad)",
    "variables of constants": "v = torch.autograd.Variable(torch.zeros(2))\n"
    "w = torch.autograd.Variable(net(x))\n"
    "u = torch.autograd.Variable(torch.zeros(2), True)\n"
    "result = (v.requires_grad, w.requires_grad, u.requires_grad)",
    "clipped in a dict": "net(x).sum().backward()\n"
    "nn.utils.clip_grad_norm_(net.named_parameters() and "
    "list(net.parameters()), 1.0)\nresult = 1",
    "freezes of layers": "net.body.requires_grad = False\na = net(x).requires_grad\n"
    "net.body[0].weight.require_grad = False\nb = net.body[0].weight.requires_grad\n"
    "net.body[0].weight.requires_grad == False\nresult = (a, b, "
    "net.body[0].weight.requires_grad)",
    "a frozen parameter wrapped anew": "net.body[0].weight.requires_grad_(False)\n"
    "net.body[0].weight = "
    "nn.Parameter(net.body[0].weight * 2)\nresult = (net.body[0].weight.requires_grad, "
    "len(list(net.parameters())))",
    "items that are set anew": "class Own(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.items = [nn.Linear(2, 2)]\n        self.items = nn.ModuleList(self.items)\n"
    "result = len(list(Own().parameters()))",
    "jacobians by several": "f = torch.func.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))\n"
    "a, b = f(torch.ones(2), torch.ones(2))\nh = torch.func.jacrev(lambda p: p ** "
    "2)(torch.ones(2))\nresult = (a.requires_grad, b.requires_grad, h.requires_grad)",
    "checkpoints of dicts": "from torch.utils.checkpoint import checkpoint\n"
    "z = x.clone().requires_grad_()\n"
    "d = checkpoint(lambda t: {'a': net(t), 'b': 3}, z, use_reentrant=False)\n"
    "t = checkpoint(lambda t: (net(t), 1), z, use_reentrant=False)\n"
    "result = (d['a'].requires_grad, d['b'], t[0].requires_grad, t[1])",
    "autocast off": "r = torch.autocast('cpu', enabled=True)\nwith r:\n    a = net(x)\n"
    "with torch.autocast('cpu', torch.bfloat16, False):\n    b = net(x)\n"
    "result = (a.requires_grad, b.requires_grad)",
    "settings that are asked": "import random\nwith torch.set_grad_enabled(random.random() < 2):\n"
    "    a = torch.is_grad_enabled()\nwith torch.no_grad():\n"
    "    with torch.set_grad_enabled(True):\n        b = torch.is_grad_enabled()\n"
    "result = (b, torch.is_grad_enabled())",
    "a device by its number": "d = torch.device(0) if torch.cuda.is_available() else "
    "torch.device('cpu')\n"
    "result = torch.device('cuda', 1).type",
    "classes of layers": "result = (hasattr(nn.Linear, 'forward'), hasattr(net, 'parameters'), "
    "hasattr(x, "
    "'grad'), hasattr(net.body, '0'), callable(net), callable(net.body), "
    "callable(nn.Linear(2, 2)), callable(x), issubclass(nn.Linear, nn.Module), "
    "isinstance(net.body, (list, nn.Sequential)))",
    "maxima of several": "y = net(x)\na, b, c = y[0, 0], y[0, 1], y[0, 2]\n"
    "result = (max(a, b).requires_grad, min([a, b, c]).requires_grad, sum([a, b, "
    "c]).requires_grad, max(a, 0.0).requires_grad if False else True)",
    "a module called in a list": "class Own(nn.Module):\n    def forward(self, parts):\n"
    "        return sum(part.sum() for part in parts)\n"
    "result = (Own()([net(x), net(x)]).requires_grad, Own()([x]).requires_grad)",
    "own functions in a class": "class Own(torch.autograd.Function):\n    @staticmethod\n"
    "    def forward(ctx, a):\n"
    "        return {'a': a}['a'] * 2\n    @staticmethod\n    def backward(ctx, g):\n"
    "        return g\nclass Pair(torch.autograd.Function):\n    @staticmethod\n"
    "    def forward(ctx, a):\n        return a * 2, a + 1\n    @staticmethod\n"
    "    def backward(ctx, g, h):\n        return g + h\ny = net(x)\na, b = Pair.apply(y)\n"
    "result = (Own.apply(y).requires_grad, a.requires_grad, b.requires_grad)",
    "segments run once": "from torch.utils.checkpoint import checkpoint_sequential\nlog = []\n"
    "class Own(nn.Module):\n    def __init__(self, name):\n        super().__init__()\n"
    "        self.name = name\n    def forward(self, t):\n        log.append(self.name)\n"
    "        return t * 2\nz = x.clone().requires_grad_()\n"
    "parts = [Own(name) for name in 'abcde']\ncheckpoint_sequential(parts[:3], 3, z, "
    "use_reentrant=False)\ncheckpoint_sequential(nn.Sequential(*parts[:4]), 2, z, "
    "use_reentrant=False)\ncheckpoint_sequential(parts, 2, z, use_reentrant=False)\n"
    "result = log",
    "settings are no modules": "import os\nclass Own(nn.Module):\n    def __init__(self, rate):\n"
    "        super().__init__()\n        self.n = int(os.environ.get('NOWHERE', '2'))\n"
    "        self.name, self.rate, self.x = os.environ.get('NOWHERE', 'a'), rate, x\n"
    "        self.on = self.n > 3\n        self.count = x.sum().item()\n"
    "        self.lin = nn.Linear(2, 2)\nm = Own(random.random() if False else 0.1)\n"
    "result = (len(list(m.parameters())), len(list(m.children())), [n for n, _ in "
    "m.named_parameters()], len(torch.optim.SGD(m.parameters(), "
    "lr=0.1).param_groups[0]['params']))",
    "parameters of parameters": "a = nn.Parameter(torch.zeros(2))\nb = nn.Parameter(a)\n"
    "c = nn.Parameter(a.half(), requires_grad=False)\nd = nn.Parameter()\n"
    "result = (b is a, b.requires_grad, c.requires_grad, d.requires_grad, isinstance(d, "
    "nn.Parameter))",
    # what is there only after something else
    "a gradient before and after": "a = net.body[0].weight.grad is None\nnet(x).sum().backward()\n"
    "b = net.body[0].weight.grad is None\nnet.zero_grad()\n"
    "c = net.body[0].weight.grad is None\nnet(x).sum().backward()\n"
    "net.body[0].weight.grad = None\nresult = (a, b, c, net.body[0].weight.grad is None)",
    "a gradient of a leaf": "w = torch.zeros(2, requires_grad=True)\na = w.grad is None\n"
    "(w * 2).sum().backward()\n"
    "b = w.grad is None\nw.grad = None\nresult = (a, b, w.grad is None)",
    "a gradient that an optimizer cleared": "o = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "net(x).sum().backward()\no.zero_grad()\n"
    "a = [p.grad is None for p in net.parameters()]\nnet(x).sum().backward()\n"
    "result = (a, [p.grad is None for p in net.parameters()])",
    "a gradient of what was not reached": "other = nn.Linear(2, 2)\nnet(x).sum().backward()\n"
    "result = (other.weight.grad is None, [p.grad is not None for p in net.parameters()])",
    "gradients in a step by hand": "seen = []\nfor i in range(3):\n    for p in net.parameters():\n"
    "        seen.append(p.grad is None)\n    net(x).sum().backward()\n"
    "    with torch.no_grad():\n        for p in net.parameters():\n"
    "            p -= 0.1 * p.grad\n            p.grad = None\nresult = seen",
    "gradients put by hand": "for p in net.parameters():\n    p.grad = torch.zeros_like(p)\n"
    "result = [p.grad is None for p in net.parameters()]",
    "a gradient put and taken": "w = torch.zeros(2, requires_grad=True)\nw.grad = torch.ones(2)\n"
    "a = w.grad is None\n"
    "w.grad = None\nresult = (a, w.grad is None)",
    "no gradient of the frozen": "net.body[0].weight.requires_grad_(False)\n"
    "net(x).sum().backward()\n"
    "result = [p.grad is None for p in net.parameters()]",
    "gradients asked for are not kept": "torch.autograd.grad(net(x).sum(), "
    "list(net.parameters()))\n"
    "result = [p.grad is None for p in net.parameters()]",
    "a gradient of the input": "x.requires_grad_()\na = x.grad is None\nnet(x).sum().backward()\n"
    "result = (a, x.grad is None)",
    "gradients of functional parameters": "ps = {n: p.detach().clone().requires_grad_() for n, p "
    "in net.named_parameters()}\n"
    "torch.func.functional_call(net, ps, (x,)).sum().backward()\n"
    "result = ([p.grad is None for p in ps.values()], [p.grad is None for p in "
    "net.parameters()])",
    "no gradient where nothing was recorded": "with torch.no_grad():\n    net(x)\n"
    "result = [p.grad is None for p in "
    "net.parameters()]",
    "gradients zeroed by hand": "for p in net.parameters():\n    if p.grad is not None:\n"
    "        p.grad.zero_()\n"
    "net(x).sum().backward()\nfor p in net.parameters():\n    p.grad.zero_()\n"
    "result = [p.grad is None for p in net.parameters()]",
    "modes of a generator": "@torch.no_grad()\ndef g():\n    yield torch.is_grad_enabled(), "
    "net(x).requires_grad\n"
    "    yield torch.is_grad_enabled()\nresult = [list(g()), [torch.is_grad_enabled() for _ "
    "in g()]]",
    "modes of a generator inside": "@torch.inference_mode()\ndef g():\n    for _ in range(2):\n"
    "        yield torch.is_grad_enabled()\nseen = []\nfor inside in g():\n"
    "    seen += [inside, torch.is_grad_enabled()]\n@torch.enable_grad()\ndef h():\n"
    "    yield torch.is_grad_enabled()\nwith torch.no_grad():\n    for inside in h():\n"
    "        seen += [inside, torch.is_grad_enabled()]\n"
    "    seen.append(torch.is_grad_enabled())\ntry:\n    for inside in g():\n"
    "        raise ValueError\nexcept ValueError:\n    seen.append(torch.is_grad_enabled())\n"
    "result = seen",
    "modes of a generator that is handed on": "def g():\n    yield torch.is_grad_enabled()\n"
    "@torch.no_grad()\ndef f():\n"
    "    return g()\n@torch.no_grad()\n@torch.enable_grad()\ndef h():\n"
    "    yield torch.is_grad_enabled()\nclass A:\n    @torch.no_grad()\n    def g(self):\n"
    "        yield torch.is_grad_enabled()\nresult = ([a for a in f()], [a for a in h()], [a "
    "for a in A().g()])",
    "indices of a pooling": "w = torch.rand(1, 1, 4, 4, requires_grad=True)\n"
    "a, i = nn.MaxPool2d(2, return_indices=True)(w)\n"
    "b, j = F.max_pool2d(w, 2, return_indices=True)\n"
    "c, k = nn.AdaptiveMaxPool2d(2, return_indices=True)(w)\n"
    "result = (a.requires_grad, i.requires_grad, b.requires_grad, j.requires_grad, "
    "c.requires_grad, k.requires_grad, nn.MaxPool2d(2)(w).requires_grad)",
    "indices by functions": "w = torch.rand(1, 4, 4, requires_grad=True)\n"
    "a, i = F.max_pool1d(w, 2, return_indices=True)\n"
    "b, j = F.adaptive_max_pool1d(w, 2, return_indices=True)\n"
    "result = (a.requires_grad, i.requires_grad, b.requires_grad, j.requires_grad, "
    "i.is_floating_point(), F.max_pool1d(w, 2).requires_grad)",
    "entropy by location and scale": "y = net(x)\nd = torch.distributions.Normal(y, 1.0)\n"
    "e = torch.distributions.Normal(0.0, y.exp())\n"
    "result = (d.entropy().requires_grad, e.entropy().requires_grad, d.log_prob(x[:, "
    ":3]).requires_grad, d.mean.requires_grad, d.stddev.requires_grad)",
    "entropy of every sort": "y = net(x)\nresult = [d.entropy().requires_grad for d in "
    "(torch.distributions.Normal(y, "
    "torch.ones(3)), torch.distributions.Laplace(y, 1.0), "
    "torch.distributions.Independent(torch.distributions.Normal(y, 1.0), 1), "
    "torch.distributions.Gumbel(y, 1.0), torch.distributions.Cauchy(y, 1.0), "
    "torch.distributions.LogNormal(y, 1.0), torch.distributions.Uniform(y, y + 1), "
    "torch.distributions.Exponential(y.exp()), torch.distributions.Gamma(y.exp(), 1.0), "
    "torch.distributions.Beta(y.exp(), y.exp()), torch.distributions.StudentT(2.0, y), "
    "torch.distributions.HalfNormal(y.exp()))]",
    "means and deviations": "y = net(x)\nd = "
    "[torch.distributions.Independent(torch.distributions.Laplace(1.0, "
    "y.exp()), 1), torch.distributions.Gumbel(y, 1.0), "
    "torch.distributions.MultivariateNormal(y, torch.eye(3)), "
    "torch.distributions.StudentT(3.0, y)]\nresult = [(e.mean.requires_grad, "
    "e.variance.requires_grad, e.stddev.requires_grad) for e in d]",
    "gradients of the unused": "w = torch.zeros(2, requires_grad=True)\n"
    "u = torch.zeros(2, requires_grad=True)\n"
    "a, b = torch.autograd.grad((w * 2).sum(), [w, u], allow_unused=True)\n"
    "result = (a is None, b is None)",
    "gradients of the unused are zeros": "w = torch.zeros(2, requires_grad=True)\n"
    "u = torch.zeros(2, requires_grad=True)\n"
    "a, b = torch.autograd.grad((w * 2).sum(), [w, u], materialize_grads=True)\n"
    "result = (a is None, b is None, a.requires_grad)",
    "an optimizer copied": "import copy\no = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "q = copy.deepcopy(o)\n"
    "result = (q.param_groups[0]['params'][0] is net.body[0].weight, "
    "len(q.param_groups[0]['params']), q is o, q.param_groups[0]['params'][0].requires_grad, "
    "copy.copy(o).param_groups[0]['params'][0] is net.body[0].weight)",
    "an optimizer copied with its model": "import copy\no = torch.optim.SGD(net.parameters(), "
    "lr=0.1)\n"
    "n2, q = copy.deepcopy((net, o))\nresult = (q.param_groups[0]['params'][0] is "
    "n2.body[0].weight, q.param_groups[0]['params'][0] is net.body[0].weight)",
    "an optimizer copied in an object": "import copy\nclass Trainer:\n    def __init__(self):\n"
    "        self.net = Net()\n"
    "        self.o = torch.optim.SGD(self.net.parameters(), lr=0.1)\nt = Trainer()\n"
    "u = copy.deepcopy(t)\nresult = (u.o.param_groups[0]['params'][0] is "
    "u.net.body[0].weight, u.o.param_groups[0]['params'][0] is t.net.body[0].weight, [any(p "
    "is q for q in u.net.parameters()) for p in u.o.param_groups[0]['params']])",
    "groups copied": "import copy\no = torch.optim.SGD([{'params': net.body[0].weight}, {'params': "
    "net.body[0].bias}], lr=0.1)\nq = copy.deepcopy(o)\n"
    "result = (len(q.param_groups), [len(g['params']) for g in q.param_groups])",
    "an engine's own": "class Engine:\n    def __init__(self, model):\n        self.model = model\n"
    "    def __call__(self, *a):\n        return self.model(*a)\n"
    "    def backward(self, loss):\n        loss.backward()\ne = Engine(net)\n"
    "l = e(x).sum()\na = net.body[0].weight.grad is None\ne.backward(l)\n"
    "result = (l.requires_grad, a, net.body[0].weight.grad is None)",
    "tensors added in place": "w = torch.zeros(2, requires_grad=True)\ny = w * 2\nz = y\ny += 1\n"
    "t = torch.zeros(2)\n"
    "u = t\nt += w\nv = torch.zeros(2)\nv = v + w\n"
    "result = (z is y, z.requires_grad, u is t, u.requires_grad, v.requires_grad, u.is_leaf)",
    "added in a module": "class Own(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.lin = nn.Linear(4, 3)\n        self.total = 0\n        self.kept = []\n"
    "    def forward(self, y):\n        out = self.lin(y)\n        self.total += out.sum()\n"
    "        self.kept += [out.detach()]\n        return out\no = Own()\no(x)\no(x)\n"
    "result = (o.total.requires_grad, [k.requires_grad for k in o.kept], len(o.kept), "
    "isinstance(o.total, torch.Tensor))",
    "shapes in every spelling": "result = [t.requires_grad for t in (torch.zeros((2, 3)), "
    "torch.zeros(2, 3), "
    "torch.ones([2]), torch.full((2,), 3.0, requires_grad=True), torch.full([2], 1), "
    "torch.empty(2, 3), torch.zeros((2,), requires_grad=True))]",
    "numbers of tensors": "result = (torch.full((), 3.0).item(), torch.zeros(()).item(), "
    "len(torch.zeros((3, 2))), "
    "len(torch.zeros(3, 2)), len(torch.zeros([4])), len(torch.full((5,), 1.0)), "
    "torch.zeros((3, 2)).shape[0], len(torch.zeros((3,), dtype=torch.long)), "
    "len(torch.new_zeros if False else x.new_zeros((6, 2))), len(x.new_full((7,), 1.0)))",
    # all sorts, and what nobody knows
    "modules held in every way": "class A(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.a = nn.Linear(2, 2)\n        self.b = nn.ModuleList([nn.Linear(2, 2), "
    "nn.ReLU()])\n        self.c = nn.ModuleDict({'x': nn.Linear(2, 2, bias=False)})\n"
    "        self.d = nn.Parameter(torch.zeros(2))\n"
    "        self.e = nn.ParameterList([torch.zeros(1), torch.zeros(1)])\n"
    "        self.f = nn.ParameterDict({'k': torch.zeros(1)})\n"
    "        self.register_buffer('g', torch.zeros(1))\n"
    "        self.register_parameter('h', None)\n        self.register_parameter('i', "
    "nn.Parameter(torch.zeros(1)))\n        self.add_module('j', nn.Linear(1, 1))\n"
    "        self.k = [nn.Linear(3, 3)]\na = A()\n"
    "result = (len([n for n, _ in a.named_parameters()]), [n for n, _ in "
    "a.named_children()], [n for n, _ in a.named_buffers()], len(list(a.modules())), a.h is "
    "None, len(a.b), len(a.e), 'x' in a.c)",
    "modules taken and put": "s = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))\n"
    "t = s[:2]\n"
    "s.append(nn.Tanh())\nu = nn.ModuleList([nn.Linear(1, 1)])\nu.append(nn.Linear(2, 2))\n"
    "u.extend([nn.ReLU()])\nu.insert(0, nn.Tanh())\nv = nn.ModuleDict()\n"
    "v['a'] = nn.Linear(1, 1)\nv.update({'b': nn.ReLU()})\n"
    "result = (len(s), len(t), isinstance(t, nn.Sequential), isinstance(s[-1], nn.Tanh), "
    "isinstance(s[0], nn.Linear), len(u), isinstance(u[0], nn.Tanh), list(v.keys()), len(v), "
    "[n for n, _ in s.named_parameters()], [type(m).__name__ for m in s] == ['Linear', "
    "'ReLU', 'Linear', 'Tanh'])",
    "parameters of groups": "o = torch.optim.SGD([{'params': net.body[0].weight, 'lr': 0.5}, "
    "{'params': "
    "[net.body[0].bias]}], lr=0.1)\no.add_param_group({'params': "
    "nn.Parameter(torch.zeros(1))})\nresult = (len(o.param_groups), [len(g['params']) for g "
    "in o.param_groups], o.param_groups[0]['params'][0] is net.body[0].weight, "
    "o.param_groups[1]['params'][0] is net.body[0].bias, 'lr' in o.param_groups[0])",
    "requires grad set": "a = nn.Linear(2, 2)\na.requires_grad_(False)\n"
    "b = [p.requires_grad for p in a.parameters()]\na.weight.requires_grad = True\n"
    "c = [p.requires_grad for p in a.parameters()]\na.requires_grad_()\nd = torch.zeros(2)\n"
    "d.requires_grad_(True)\ne = (d * 2).detach()\nf = e.requires_grad_()\n"
    "result = (b, c, [p.requires_grad for p in a.parameters()], d.requires_grad, "
    "e.requires_grad, f is e, d.is_leaf, (d * 2).is_leaf, (d * 2).grad_fn is None, d.grad_fn "
    "is None)",
    "grad modes in turn": "r = []\nw = torch.zeros(2, requires_grad=True)\nwith torch.no_grad():\n"
    "    r.append((w * 2).requires_grad)\n    with torch.enable_grad():\n"
    "        r.append((w * 2).requires_grad)\n    r.append(torch.is_grad_enabled())\n"
    "torch.set_grad_enabled(False)\nr.append((w * 2).requires_grad)\n"
    "torch.set_grad_enabled(True)\nr.append((w * 2).requires_grad)\n"
    "with torch.set_grad_enabled(False):\n    r.append((w * 2).requires_grad)\n"
    "@torch.no_grad()\ndef f():\n    return w * 2\n@torch.enable_grad()\ndef g():\n"
    "    return w * 2\nr.append(f().requires_grad)\nwith torch.no_grad():\n"
    "    r.append(g().requires_grad)\nwith torch.inference_mode():\n"
    "    r += [(w * 2).requires_grad, torch.is_inference_mode_enabled()]\n"
    "r.append(torch.is_inference_mode_enabled())\nresult = r",
    "grad modes by objects": "w = torch.zeros(2, requires_grad=True)\nm = torch.no_grad()\n"
    "m.__enter__()\n"
    "a = (w * 2).requires_grad\nm.__exit__(None, None, None)\nb = (w * 2).requires_grad\n"
    "guard = torch.set_grad_enabled(False)\nc = (w * 2).requires_grad\n"
    "torch.set_grad_enabled(True)\nwith torch.no_grad() as n:\n"
    "    d = (w * 2).requires_grad\nclass A:\n    @torch.no_grad()\n    def f(self):\n"
    "        return (w * 2).requires_grad\n    @staticmethod\n    @torch.no_grad()\n"
    "    def g():\n        return (w * 2).requires_grad\ntry:\n    with torch.no_grad():\n"
    "        raise ValueError\nexcept ValueError:\n    e = (w * 2).requires_grad\n"
    "result = (a, b, c, d, A().f(), A.g(), e, torch.no_grad()(lambda: (w * "
    "2).requires_grad)())",
    "detached in every way": "y = net(x)\nresult = [t.requires_grad for t in (y.detach(), "
    "y.data, y.clone(), "
    "y.detach().clone(), y.clone().detach(), torch.tensor(y.tolist()), y.new_zeros(2), "
    "torch.zeros_like(y), torch.ones_like(y, requires_grad=True), y.argmax(1), y > 0, "
    "y.round(), y.long(), y.to(torch.int64), y.to(torch.float64), y.float(), y.double(), "
    "y.half(), y.cpu(), y.numpy(force=True) if False else y, torch.as_tensor(y), "
    "torch.from_numpy(y.detach().numpy()), y.sign(), y.bool(), y.int(), "
    "y.type(torch.float64), y.byte() if False else y.char())]",
    "shapes changed": "y = net(x)\nresult = [t.requires_grad for t in (y.view(-1), y.reshape(9), "
    "y.T, y.t(), "
    "y.permute(1, 0), y.unsqueeze(0), y.squeeze(), y.flatten(), y[0], y[:, 1], y[..., 0], "
    "y[y > 0], y[torch.tensor([0])], y.expand(2, 3, 3), y.repeat(2, 1), y.transpose(0, 1), "
    "y.contiguous(), y.flip(0), y.roll(1), y.narrow(0, 0, 1), y.select(0, 1), y.diagonal(), "
    "torch.stack([y, y]), torch.cat([y, x[:, :3]]), torch.cat([x, x]), *y.unbind(0), "
    "*y.chunk(2), *y.split(1), torch.where(y > 0, y, x[:, :3]), torch.where(y > 0, x[:, :3], "
    "0.0), y.masked_fill(y > 0, 0.0), y.gather(1, torch.zeros(3, 1, dtype=torch.long)), "
    "y.index_select(0, torch.tensor([0])), y.scatter(0, torch.zeros(1, 3, dtype=torch.long), "
    "1.0))]",
    "reduced in every way": "y = net(x)\na, b = y.max(1)\nc = y.sort()\nd = y.topk(2)\n"
    "e, f = torch.median(y, 1)\n"
    "result = [t.requires_grad for t in (y.sum(), y.mean(0), y.prod(), y.max(), a, b, "
    "c.values, c.indices, d[0], d[1], e, f, y.norm(), y.std(), y.var(), y.logsumexp(0), "
    "y.cumsum(0), y.any(), y.all(), y.argmin(), y.count_nonzero(), torch.unique(y.detach()), "
    "y.kthvalue(1)[0], y.amax(0), y.aminmax()[0], torch.norm(y), torch.linalg.norm(y), "
    "y.isnan(), y.isfinite().all(), torch.sum(y), torch.max(y, y * 2), torch.maximum(y, y), "
    "torch.min(y, 0).values, torch.min(y, 0).indices)]",
    "losses of every sort of all sorts": "y = net(x)\nt = torch.zeros(3, dtype=torch.long)\n"
    "result = [l.requires_grad for l in (F.cross_entropy(y, t), F.mse_loss(y, x[:, :3]), "
    "F.l1_loss(y, y.detach()), F.nll_loss(y.log_softmax(1), t), "
    "F.binary_cross_entropy_with_logits(y, torch.zeros(3, 3)), F.smooth_l1_loss(y, x[:, "
    ":3]), F.kl_div(y, x[:, :3], reduction='batchmean'), F.huber_loss(y, x[:, :3]), "
    "nn.CrossEntropyLoss()(y, t), nn.MSELoss(reduction='none')(y, x[:, :3]), nn.L1Loss()(x, "
    "x), F.cosine_similarity(y, y), F.pairwise_distance(y, x[:, :3]), "
    "F.triplet_margin_loss(y, y, y), F.softmax(y, 1), F.dropout(y), F.one_hot(t), "
    "F.normalize(y), F.pad(y, (1, 1)), F.embedding(t, net.body[0].weight), F.linear(x, "
    "net.body[0].weight), F.layer_norm(y, (3,)), F.gumbel_softmax(y), F.gumbel_softmax(y, "
    "hard=True), F.hardtanh(y), F.logsigmoid(y))]",
    "arithmetic of both": "y = net(x)\nz = x[:, :3]\nresult = [t.requires_grad for t in (y + z, "
    "z + y, y * 2, 2 * "
    "y, z * 2, y @ z, z @ y, y / z, 1 / y, y ** 2, 2 ** y, -y, abs(y), y % 2, y // 2, y > z, "
    "y == z, z & z if False else z > 0, ~(y > 0), y.add(z), z.add(y), torch.add(z, y), "
    "y.addmm(z, z), torch.addmm(z, z, y), y.lerp(z, 0.5), y.clamp(0), z.clamp(y), "
    "torch.einsum('ij,kj->ik', y, z), torch.outer(y[0], z[0]), torch.dot(z[0], z[1]), "
    "y.matmul(z), y.mm(z), sum([z, y]), y.exp().log(), y.sigmoid(), z.tanh(), "
    "torch.bmm(y[None], z[None]), torch.cdist(y, z))]",
    "written in place of all sorts": "y = net(x)\na = torch.zeros(3, 3)\na.add_(y)\n"
    "b = torch.zeros(3, 3)\nb[0] = y[0]\n"
    "c = torch.zeros(3, 3)\nc.copy_(y)\nd = torch.zeros(3, 3)\nd += y.detach()\n"
    "e = torch.zeros(3, 3)\ne.data.add_(y)\nf = y.clone()\nf.zero_()\ng = torch.zeros(3, 3)\n"
    "with torch.no_grad():\n    g.add_(y)\nh = torch.zeros(3, 3)\n"
    "h.detach().add_(y.detach())\ni = torch.zeros(3, 3)\ni[:, 0] += y[:, 0]\nj = y.detach()\n"
    "j.mul_(2)\nk = y * 1\nk.detach_()\nl = torch.empty(3, 3)\nl.fill_(1.0)\n"
    "result = [t.requires_grad for t in (a, b, c, d, e, f, g, h, i, j, k, l, y)]",
    "gradients asked for": "w = torch.ones(2, requires_grad=True)\ny = (w * w).sum()\n"
    "(g,) = torch.autograd.grad(y, w, create_graph=True)\n"
    "(h,) = torch.autograd.grad(g.sum(), w, retain_graph=True)\na = w.grad is None\n"
    "y.backward(retain_graph=True)\nb = w.grad is None\nz = w * 2\nz.retain_grad()\n"
    "z.sum().backward()\nresult = (g.requires_grad, h.requires_grad, a, b, z.grad is None, "
    "w.grad.requires_grad, z.grad.requires_grad)",
    "gradients by functions": "f = torch.func.grad(lambda w: (w ** 2).sum())\n"
    "g = f(torch.ones(2))\n"
    "h, v = torch.func.grad_and_value(lambda w: (w ** 2).sum())(torch.ones(2))\n"
    "j = torch.autograd.functional.jacobian(lambda w: w ** 2, torch.ones(2))\n"
    "k = torch.autograd.functional.jacobian(lambda w: w ** 2, torch.ones(2), "
    "create_graph=True)\no, t = torch.autograd.functional.vjp(lambda w: (w ** 2).sum(), "
    "torch.ones(2))\nm = torch.func.vmap(lambda w: w * 2)(torch.ones(3, "
    "requires_grad=True))\nresult = (g.requires_grad, h.requires_grad, v.requires_grad, "
    "j.requires_grad, o.requires_grad, t.requires_grad, m.requires_grad)",
    "own functions of torch": "class Sq(torch.autograd.Function):\n    @staticmethod\n"
    "    def forward(ctx, a, n=2):\n"
    "        ctx.save_for_backward(a)\n        ctx.n = n\n        return a ** n, a.detach()\n"
    "    @staticmethod\n    def backward(ctx, g, h):\n        (a,) = ctx.saved_tensors\n"
    "        return g * 2 * a, None\nclass No(torch.autograd.Function):\n    @staticmethod\n"
    "    def forward(ctx, a):\n        b = a * 2\n        ctx.mark_non_differentiable(b)\n"
    "        return a * 1, b\n    @staticmethod\n    def backward(ctx, g, h):\n"
    "        return g\ny = net(x)\na, b = Sq.apply(y, 2)\nc, d = No.apply(y)\n"
    "e, f = Sq.apply(x)\nresult = (a.requires_grad, b.requires_grad, c.requires_grad, "
    "d.requires_grad, e.requires_grad, f.requires_grad)",
    "checkpoints of every sort": "from torch.utils.checkpoint import checkpoint, "
    "checkpoint_sequential\n"
    "z = x.clone().requires_grad_()\na = checkpoint(net, x, use_reentrant=False)\n"
    "b = checkpoint(net, z, use_reentrant=True)\nc = checkpoint(net, x, use_reentrant=True)\n"
    "d = checkpoint(lambda t, k: t * k, z, 2, use_reentrant=False)\n"
    "e, f = checkpoint(lambda t: (t, t.detach()), z, use_reentrant=False)\n"
    "g = checkpoint_sequential(net.body, 2, z, use_reentrant=False)\n"
    "h = checkpoint_sequential(nn.Sequential(nn.ReLU()), 1, x, use_reentrant=False)\n"
    "result = [t.requires_grad for t in (a, b, c, d, e, f, g, h)]",
    "distributions sampled": "D = torch.distributions\ny = net(x)\nn = D.Normal(y, y.exp())\n"
    "c = D.Categorical(logits=y)\nb = D.Bernoulli(logits=y)\n"
    "result = [t.requires_grad for t in (n.sample(), n.rsample(), n.log_prob(x[:, :3]), "
    "n.entropy(), c.sample(), c.log_prob(c.sample()), c.probs, c.logits, c.entropy(), "
    "b.sample(), b.log_prob(b.sample()), n.mean, n.cdf(y), D.kl_divergence(n, D.Normal(0.0, "
    "1.0)), D.kl_divergence(D.Normal(torch.zeros(1), 1.0), D.Normal(torch.zeros(1), 1.0)), "
    "D.Normal(0.0, torch.ones(2)).rsample(), D.Independent(n, 1).rsample(), D.Independent(n, "
    "1).log_prob(x[:, :3]), D.Uniform(y, y + 1).rsample(), D.Dirichlet(y.exp()).rsample(), "
    "D.MultivariateNormal(y, torch.eye(3)).rsample(), D.TransformedDistribution(n, "
    "[D.transforms.TanhTransform()]).rsample(), D.RelaxedBernoulli(torch.tensor(1.0), "
    "logits=y).rsample(), D.MixtureSameFamily(D.Categorical(torch.ones(3)), D.Normal(y, "
    "1.0)).log_prob(x[:, 0]), n.expand((2, 3, 3)).rsample(), D.Gamma(y.exp(), "
    "1.0).rsample(), D.Poisson(y.exp()).sample(), D.OneHotCategorical(logits=y).sample(), "
    "D.OneHotCategoricalStraightThrough(logits=y).rsample())]",
    "sequences packed": "from torch.nn.utils.rnn import pack_padded_sequence, "
    "pad_packed_sequence, pad_sequence, "
    "pack_sequence\ng = nn.GRU(4, 3, batch_first=True)\n"
    "p = pack_padded_sequence(torch.rand(2, 5, 4), torch.tensor([5, 3]), batch_first=True)\n"
    "o, h = g(p)\nq, n = pad_packed_sequence(o, batch_first=True)\n"
    "l, (a, c) = nn.LSTM(4, 3)(torch.rand(5, 2, 4))\n"
    "s = pad_sequence([torch.zeros(2), torch.zeros(3)])\n"
    "t = nn.LSTMCell(4, 3)(torch.rand(2, 4))\nu, v = nn.RNN(4, 3)(torch.rand(5, 2, 4))\n"
    "i = pack_sequence(sequences=[net(x)[0], net(x)[1]])\n"
    "result = (o.data.requires_grad, o[0].requires_grad, h.requires_grad, q.requires_grad, "
    "n.requires_grad, l.requires_grad, a.requires_grad, c.requires_grad, s.requires_grad, "
    "t[0].requires_grad, len(t), u.requires_grad, v.requires_grad, i.data.requires_grad, "
    "p.data.requires_grad)",
    "attention": "m = nn.MultiheadAttention(4, 2, batch_first=True)\nq = torch.rand(2, 3, 4)\n"
    "a, b = m(q, q, q)\nc, d = m(q, q, q, need_weights=False)\n"
    "e = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)(q)\n"
    "f = F.scaled_dot_product_attention(q, q, q)\n"
    "g = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2)\n"
    "result = (a.requires_grad, b.requires_grad, e.requires_grad, f.requires_grad, "
    "g(q).requires_grad, len(g.layers), c.requires_grad)",
    "schedulers and rates": "o = torch.optim.SGD(net.parameters(), lr=0.5)\n"
    "s = torch.optim.lr_scheduler.LambdaLR(o, lambda e: 0.5)\n"
    "t = torch.optim.lr_scheduler.SequentialLR(o, [torch.optim.lr_scheduler.ConstantLR(o), "
    "torch.optim.lr_scheduler.StepLR(o, 1)], milestones=[1])\n"
    "result = (s.optimizer is o, isinstance(s, torch.optim.lr_scheduler.LRScheduler), "
    "isinstance(o, torch.optim.Optimizer), isinstance(o, torch.optim.Adam), isinstance(o, "
    "torch.optim.SGD), hasattr(o, 'step'), hasattr(s, 'step'), len(o.param_groups), 'lr' in "
    "o.param_groups[0], o.defaults is None)",
    "states saved": "s = net.state_dict()\nk = list(s)\nother = Net()\nother.load_state_dict(s)\n"
    "o = torch.optim.Adam(net.parameters())\no.load_state_dict(o.state_dict())\n"
    "result = (s['body.0.weight'].requires_grad, [p.requires_grad for p in "
    "other.parameters()], other.body[0].weight is net.body[0].weight, 'body.0.bias' in s, "
    "len(o.param_groups[0]['params']))",
    "copies of models": "import copy\na = copy.deepcopy(net)\nb = copy.copy(net)\n"
    "c = Net().to('cpu')\n"
    "d = net.eval()\ne = nn.ModuleList([copy.deepcopy(net) for _ in range(2)])\n"
    "f = net.float()\nresult = (a is net, a.body[0].weight is net.body[0].weight, "
    "b.body[0].weight is net.body[0].weight, d is net, net.training, a.training, "
    "len(list(e.parameters())), f is net, [p.requires_grad for p in a.parameters()])",
    "modes of models": "r = [net.training]\nnet.eval()\nr += [net.training, net.body.training, "
    "net.body[0].training]\nnet.train()\nr.append(net.body[0].training)\nnet.train(False)\n"
    "r.append(net.training)\nnet.body.train()\nr += [net.training, net.body.training]\n"
    "net.train(mode=True)\nr.append(net.training)\nresult = r",
    "tied and shared": "a, b = nn.Linear(3, 3), nn.Linear(3, 3)\nb.weight = a.weight\n"
    "m = nn.ModuleList([a, b, a])\nresult = (len(list(m.parameters())), b.weight is "
    "a.weight, [n for n, _ in m.named_parameters()], len(torch.optim.SGD(m.parameters(), "
    "lr=0.1).param_groups[0]['params']), len({id(p) for p in m.parameters()}), "
    "len(list(m.children())), m[0] is m[2])",
    "applied to all": "r = []\nnet.apply(lambda m: r.append(type(m).__name__))\ndef init(m):\n"
    "    if isinstance(m, nn.Linear):\n        nn.init.zeros_(m.bias)\nnet.apply(init)\n"
    "for m in net.modules():\n    if isinstance(m, nn.Linear):\n"
    "        m.weight.requires_grad = False\nresult = (len(r), [p.requires_grad for p in "
    "net.parameters()], net(x).requires_grad)",
    "lists of tensors at once": "w = torch.ones(2, requires_grad=True)\n"
    "a = [w * 2, torch.ones(2)]\n"
    "d = [torch.zeros(2), torch.zeros(2)]\ntorch._foreach_add_(d, a, alpha=-1)\n"
    "torch._foreach_mul_(d, [2.0, 3.0])\nresult = [t.requires_grad for t in d]",
    "hooks that change": "a = nn.Linear(4, 2)\na.register_forward_hook(lambda m, i, o: "
    "o.detach())\n"
    "b = nn.Linear(4, 2)\nb.register_forward_hook(lambda m, i, o: None)\n"
    "c = nn.Linear(4, 2)\nh = c.register_forward_hook(lambda m, i, o: o.detach())\n"
    "h.remove()\nd = nn.Linear(4, 2)\nd.register_forward_pre_hook(lambda m, i: (i[0] * 2,))\n"
    "seen = []\ne = nn.Linear(4, 2)\ne.register_forward_hook(lambda m, i, o: "
    "seen.append(o))\ne(x)\nz = x.clone().requires_grad_()\nf = nn.ReLU()\n"
    "h = f.register_forward_pre_hook(lambda m, i: i[0].detach())\ng = nn.ReLU()\n"
    "g.register_forward_pre_hook(lambda m, i, k: ((i[0].detach(),), k), with_kwargs=True)\n"
    "k = [f(z).requires_grad, g(z).requires_grad]\nh.remove()\nk.append(f(z).requires_grad)\n"
    "result = (*k, a(x).requires_grad, b(x).requires_grad, c(x).requires_grad, "
    "d(x).requires_grad, seen[0].requires_grad, len(seen))",
    "functional calls": "from torch.func import functional_call\np = {n: v.detach() for n, v in "
    "net.named_parameters()}\nq = dict(net.named_parameters())\n"
    "a = functional_call(net, p, (x,))\nb = functional_call(net, q, x)\n"
    "c = torch.nn.utils.parameters_to_vector(net.parameters())\n"
    "d = torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))(x)\n"
    "e = torch.nn.utils.spectral_norm(nn.Linear(4, 2))(x)\n"
    "f = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)\n"
    "result = (a.requires_grad, b.requires_grad, c.requires_grad, d.requires_grad, "
    "e.requires_grad, f.requires_grad)",
    "forward in every way": "class A(nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n"
    "        self.lin = nn.Linear(4, 2)\n    def forward(self, t, *, scale=1, keep=None):\n"
    "        y = self.lin(t) * scale\n        if keep is not None:\n"
    "            keep.append(y)\n        return {'y': y, 'both': (y, y.detach())}\na = A()\n"
    "k = []\nr = a(x, scale=2, keep=k)\ns = a.forward(x)\nt = A.forward(a, x)\n"
    "u = a.__call__(x)\nresult = (r['y'].requires_grad, r['both'][1].requires_grad, "
    "k[0].requires_grad, s['y'].requires_grad, t['both'][0].requires_grad, "
    "u['y'].requires_grad, sorted(r))",
    "inits": "w = torch.empty(3, 3, requires_grad=True)\nresult = [t.requires_grad for t in "
    "(nn.init.xavier_uniform_(w), nn.init.zeros_(torch.empty(2)), "
    "nn.init.normal_(net.body[0].weight), nn.Parameter(nn.init.ones_(torch.empty(2))), "
    "nn.init.constant_(torch.empty(2), 1.0), nn.init.kaiming_normal_(w), "
    "nn.init.orthogonal_(torch.empty(2, 2)))] + [w.is_leaf, net.body[0].weight.is_leaf]",
    "made of numbers": "n = 3\nresult = [t.requires_grad for t in (torch.tensor(1.0), "
    "torch.tensor([1.0], "
    "requires_grad=True), torch.zeros(n), torch.ones(2, n, requires_grad=True), "
    "torch.rand(n), torch.randn(2, requires_grad=True), torch.arange(n), torch.linspace(0, "
    "1, 3), torch.eye(2, requires_grad=True), torch.full((2,), 1.0), torch.randint(0, 2, "
    "(3,)), torch.empty(2), torch.zeros_like(x), torch.rand_like(x, requires_grad=True), "
    "torch.normal(0.0, 1.0, (2,)), torch.bernoulli(x), torch.multinomial(x, 1), "
    "torch.randperm(3), x.new_tensor([1.0]), torch.tensor(x.tolist()), "
    "torch.scalar_tensor(1.0), torch.from_numpy(x.numpy()), torch.complex(x, x), "
    "torch.tril(torch.ones(2, 2)), torch.meshgrid(x[0], x[0], indexing='ij')[0], "
    "torch.logspace(0, 1, 2))]",
}

# Of how many values in a result nothing is said:
UNSAID = {
    "buffer by its name": 1, "is in train mode": 1, "mode of a part": 1,
    "mode set as an attribute": 1, "a cast keeps the parameters": 1, "copy of a module": 1,
    "own class of a layer": 1, "a dict of modules": 3, "popped from a dict of modules": 1,
    "requires grad": 1, "device": 4, "parts": 1, "unpacked parts": 1, "truth of a number": 2,
    "made in inference mode": 4, "groups": 1, "rate": 1, "scaler": 1, "sizes": 9, "buffers": 1,
    "containers by hand": 2, "modes of parts": 1, "own schedulers": 1, "distributions": 1,
    "sequences of lengths": 1, "wrapped in parallel": 1, "split by lengths": 2,
    "numbers by name": 4, "arrays": 3, "devices": 5, "scalers": 1, "scalers that scale": 2,
    "autocast as a decorator": 1, "numbers out of tensors": 4, "boxes of data": 2,
    "classes of layers": 2, "modes of a generator": 1, "indices by functions": 1,
    "numbers of tensors": 8, "modules held in every way": 2, "modules taken and put": 1,
    "parameters of groups": 1, "attention": 1, "schedulers and rates": 3, "copies of models": 1,
    "modes of models": 1,
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
        asked = ["bias", "affine", "elementwise_affine", "inplace"]
        asked += ["p"] if "Dropout" in name else []
        asked += ["eps"] if "Norm" in name and name != "RMSNorm" else []  # None by its default
        assert dict(known.positions) == {each: taken.index(each) for each in asked if each in taken}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_derived_from_what_it_is_said_to_be(name: str) -> None:
    library.load()
    lineage = [each for each in getattr(nn, name).__mro__ if each is not object]
    assert [base.rpartition(".")[2] for base in bases(f"torch.nn.{name}")] == [
        each.__name__ for each in lineage
    ]
    homes = {f"torch.nn.{name}"} | {f"{each.__module__}.{each.__name__}" for each in lineage}
    assert {each for each in homes if canonical(each) not in bases(f"torch.nn.{name}")} == set()
