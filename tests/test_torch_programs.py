# ruff: noqa: E501 (one line a program)
"""Programs of torch's objects: what the interpreter says of their `result` is what torch gives, as far as it says anything."""

from __future__ import annotations

import inspect
import warnings

import pytest
from layer_samples import LAYERS
from test_library_python import result
from test_python_programs import agrees
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
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_interpreter_says_of_a_program_is_what_torch_gives(name: str) -> None:
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about itself
        exec(SETUP + PROGRAMS[name], names)
    said = result(SETUP + PROGRAMS[name])
    assert said is not ...
    assert agrees(said, names["result"])


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
