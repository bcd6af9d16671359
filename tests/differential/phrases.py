"""What generated programs are made of. Matrices are floats of 4 by 3, so that any expression fits
into any other.

`{h}` and `{g}` stand for matrices, `{v}` for a variable that holds one, `{s}` for a scalar tensor,
`{m}` for the model.
"""


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.strip().splitlines())


UNARY = _lines("""
{h}.exp()
{h}.sigmoid()
{h}.tanh()
{h}.relu()
{h} * 2.0
{h} + 1.0
-{h}
{h}.square()
{h} ** 2
{h}.abs()
{h}.clamp(min=-1.0)
{h}.softmax(dim=1)
F.relu({h})
F.softmax({h}, dim=1)
F.gelu({h})
F.normalize({h}, dim=1)
{h}.clone()
{h}.reshape(12).reshape(4, 3)
{h}.unsqueeze(0).squeeze(0)
{h}.flip(0)
{h}.cumsum(dim=0)
({h}.abs() + 0.1).sqrt()
torch.log({h}.abs() + 1.0)
{h}.t().t()
{h} / 3.0
1.0 / ({h}.abs() + 1.0)
{h}.log_softmax(dim=1)
F.dropout({h}, 0.5)
{h}.to(torch.float32)
{h}.float()
{h}[:]
{h}.narrow(0, 0, 4)
torch.exp({h})
torch.sin({h})
{h}.masked_fill({h} > 0, 0.5)
2.0 ** {h}
{h} - 0.5
{h}.mean(dim=0, keepdim=True) + {h}
{h}.max(dim=1, keepdim=True).values - {h}
torch.sort({h}, dim=1)[0]
{h}.index_select(0, torch.tensor([3, 2, 1, 0]))
{h}.gather(1, {h}.argsort(dim=1))
F.silu({h})
F.softplus({h})
torch.stack(torch.unbind({h}))
torch.cat(torch.chunk({h}, 2))
{h}[[1, 0, 3, 2]]
F.leaky_relu({h}, 0.1)
{h}.pow(3)
{h}.expm1()
{h}.cos()
{h}.logit(eps=0.1)
torch.nan_to_num({h})
{h}.triu()
{h}.std(dim=0) + {h}
""")

# What changes nothing: the very tensor, a view of it, or a copy, as torch has it.
ALIASES = _lines("""
{h}.contiguous()
{h}.float()
{h}.to(torch.float32)
{h}.to(dtype=torch.float)
{h}.type(torch.float32)
{h}.type_as({g})
{h}.to({g})
{h}.to({h}.dtype)
{h}.cpu()
{h}.to("cpu")
{h}.to(torch.device("cpu"))
{h}.to({h}.device)
{h}.to("cpu", torch.float32)
{h}.to("cpu", copy=True)
{h}.double().float()
{h}.double().double().to(torch.float32)
{h}.view(4, 3)
{h}.view_as({g})
{h}.view(-1).view(4, 3)
{h}.reshape(4, 3)
{h}.reshape_as({g})
{h}.reshape(-1).reshape(4, 3)
{h}.t().reshape(3, 4).t()
{h}.t().reshape(4, 3)
{h}.flatten().view(4, 3)
{h}.flatten(0).reshape(4, 3)
torch.flatten({h}, 1)
{h}.ravel().view(4, 3)
{h}.expand_as({g})
{h}.expand(4, 3)
{h}.expand(-1, -1)
{h}.broadcast_to(4, 3)
torch.broadcast_to({h}, (4, 3))
{h}.squeeze()
{h}.squeeze(0)
torch.squeeze({h}, -1)
{h}.unsqueeze(1).squeeze(1)
{h}[None][0]
{h}[...]
{h}[:, :]
{h}.movedim(0, 1).movedim(1, 0)
{h}.movedim(0, 0)
{h}.permute(0, 1)
{h}.transpose(0, 1).transpose(0, 1)
{h}.t().contiguous().t()
{h}.t().t().contiguous()
{h}.T.T
{h}.unflatten(0, (2, 2)).flatten(0, 1)
{h}.unflatten(1, (3, 1)).squeeze(-1)
{h}.narrow(0, 0, 4)
{h}.narrow(1, 0, 3).contiguous()
torch.atleast_1d({h})
torch.atleast_2d({h})
torch.positive({h})
+{h}
{h}.real
{h}.resolve_conj()
{h}.resolve_neg()
torch.as_tensor({h})
torch.as_tensor({h}, dtype=torch.float32)
torch.asarray({h})
F.dropout({h}, 0.5, training=False)
F.dropout({h}, 0.0)
nn.Identity()({h})
nn.Flatten()({h})
nn.Flatten(0)({h}).view(4, 3)
nn.Sequential()({h})
{h}.clone().contiguous()
{h}.repeat(1, 1)
torch.cat([{h}])
{h}.select(0, 0).expand(4, 3).contiguous()
""")

BINARY = _lines("""
{h} + {g}
{h} - {g}
{h} * {g}
{h} / ({g}.abs() + 1.0)
torch.where({h} > 0, {h}, {g})
torch.maximum({h}, {g})
{h} @ {g}.t() @ {g}
torch.cat([{h}, {g}])[:4]
torch.stack([{h}, {g}]).mean(0)
torch.addcmul({h}, {g}, {g})
{h}.lerp({g}, 0.5)
{h} * {g}.sigmoid()
sum([{h}, {g}])
torch.mul({h}, {g})
{h}.add({g}, alpha=0.1)
{h}.sub({g})
{h} + {g}.mean()
{h} * {g}[0]
torch.atan2({h}, {g})
torch.minimum({h}, {g})
{h}.where({g} > 0, {g})
torch.stack([{h}, {g}], dim=-1).prod(dim=-1)
torch.cdist({h}, {g})[:, :3]
torch.matmul({h}, torch.softmax({g}.t() @ {g}, dim=-1))
{h}.mul({g}).div(2.0)
F.prelu({h}, {g}[0, :1])
torch.hypot({h}, {g})
({h}[:, None] * {g}[None]).sum(1)
{h}.index_add(0, torch.tensor([0, 1, 2, 3]), {g})
{h} + torch.einsum('ij,ij->i', {h}, {g})[:, None]
""")

LAYERS = _lines("""
{m}.first({h})
{m}.second({h})
{m}.norm({h})
{h} * {m}.scale
F.linear({h}, {m}.first.weight)
{m}.body({h})
{m}.table({h}.argmax(dim=1))
{h} @ {m}.second.weight
{m}.body[0]({h})
{h} + {m}.scale
F.relu({m}.first({h}))
{m}.second(torch.tanh({m}.first({h})))
functools.reduce(lambda t, layer: layer(t), {m}.layers, {h})
{m}.heads['a']({h})
getattr({m}, 'second')({h})
{m}.layers[-1]({h})
sum(layer({h}) for layer in {m}.layers)
{m}.act({h})
torch.addmm({m}.scale, {h}, {m}.first.weight)
{m}.mix({h}, {g})
{m}.drop({h})
{m}.cell({h}, {g})
""")

CONSTANTS = _lines("""
torch.zeros(4, 3)
torch.ones(4, 3)
torch.randn(4, 3)
torch.full((4, 3), 0.5)
torch.zeros_like({h})
{h}.new_ones(4, 3)
torch.rand_like({h})
""")

CUTS = _lines("""
{h}.detach()
{h}.data
torch.tensor({h}.tolist())
torch.from_numpy({h}.detach().numpy())
torch.as_tensor({h}.detach().cpu().numpy())
({h} > 0).float()
F.one_hot({h}.argmax(dim=1), 3).float()
{h}.long().float()
{h}.topk(3, dim=1).indices.float()
{h}.sort(dim=1)[1].float()
{h}.int().to(torch.float32)
({h} == {g}).to(torch.float32)
torch.tensor({h}.detach().numpy())
{h}.detach().clone()
{h}.clone().detach()
({h} > {g}) * {g}.detach()
torch.zeros(4, 3).index_fill(0, {h}[:, 0].argsort()[:2], 1.0)
torch.stack([t.detach() for t in {h}])
torch.tensor([[float(v) for v in row] for row in {h}])
{h}.argsort(dim=1).float()
{h}.detach().requires_grad_(False)
""")

# A gradient that is zero everywhere.
FLAT = _lines("""
{h}.round()
{h}.sign()
torch.floor({h})
{h}.ceil()
""")

SCALARS = _lines("""
{h}.mean()
{h}.sum()
{h}.pow(2).mean()
F.mse_loss({h}, {g})
F.l1_loss({h}, {g})
{h}.norm()
{h}.max()
{h}[0].sum()
F.cross_entropy({h}, {h}.argmax(dim=1))
F.smooth_l1_loss({h}, {g})
-F.log_softmax({h}, dim=1)[:, 0].mean()
{h}.logsumexp(dim=1).mean()
({h} * {g}).sum(dim=1).mean()
nn.MSELoss()({h}, {g})
torch.mean({h})
{h}.var()
F.kl_div({h}.log_softmax(1), {g}.softmax(1), reduction='batchmean')
{h}.diagonal().sum()
torch.linalg.norm({h})
""")

# Some give a Python number.
SCALAR_CUTS = _lines("""
{s}.detach()
{s}.data
torch.tensor({s}.item())
torch.tensor(float({s}))
{s}.item()
float({s})
""")

CONTAINERS = _lines("""
[{h}, {g}][0]
({h}, {g})[1]
{{'a': {h}, 'b': {g}}}['a']
[t * 2.0 for t in ({h}, {g})][1]
(lambda t: t + 1.0)({h})
dict(a={h}, b={g}).get('b')
list(map(torch.tanh, [{h}, {g}]))[0]
max([({h}, 1), ({g}, 2)], key=lambda pair: pair[1])[0]
next(t for t in [{h}, {g}])
[*[{h}], {g}][-1]
next(iter({{'a': {h}}}.values()))
[{h}, {g}].pop()
functools.reduce(torch.add, [{h}, {g}])
functools.partial(torch.mul, {h})({g})
torch.stack([t for t in [{h}, {g}]]).sum(0)
Pair({h}, {g}).left
Pair(right={g}, left={h}).both()
(lambda *ts: ts[-1])({h}, {g})
(lambda **ts: ts['b'])(a={h}, b={g})
[t for t in ({h}, {g}) if t is not None][0]
{{**{{'a': {h}}}, 'b': {g}}}['b']
tuple(reversed([{h}, {g}]))[0]
sum(t * w for t, w in zip([{h}, {g}], [0.5, 2.0]))
sorted([(1, {h}), (0, {g})], key=lambda pair: pair[0])[0][1]
""")

IN_PLACE = _lines("""
{v}.add_(1.0)
{v}.mul_(2.0)
{v}.mul_({g})
{v}.clamp_(min=0.0)
{v}.zero_()
{v}.fill_(1.0)
{v}.exp_()
{v}.sigmoid_()
{v}.relu_()
{v}.tanh_()
{v}.copy_({g})
{v}.masked_fill_({v} > 0, 0.0)
{v}.sub_({g})
{v}.div_(2.0)
{v}.neg_()
{v}.abs_()
{v}.square_()
{v}.pow_(2)
{v}.addcmul_({g}, {g})
{v}.lerp_({g}, 0.5)
{v}.add_({g})
{v}.clamp_min_(0.0)
{v}.index_fill_(0, torch.tensor([1]), 0.0)
{v}.normal_()
{v}.div_({g}.abs() + 1.0)
{v} += 1.0
{v} *= 2.0
{v} += {g}
{v} *= {g}
{v} -= {g}
{v} /= 2.0
{v} **= 2
{v}[0] = 0.0
{v}[:, 1] = 1.0
{v}[{v} > 0] = 0.0
{v}[1:] += 1.0
{v}[0] *= 2.0
{v}[0] = {g}[1]
{v}[:2] = {g}[2:]
{v}[:, :2] *= {g}[:, :2]
{v}.view(-1).add_(1.0)
{v}[0].zero_()
{v}.t().add_(1.0)
{v}.unsqueeze(0).mul_(2.0)
{v}[1:3].fill_(0.5)
{v}.detach().mul_(2.0)
{v}.data.mul_(2.0)
{v}.data[0] = 0.0
{v}.detach()[0] = 0.0
F.relu({v}, inplace=True)
nn.ReLU(inplace=True)({v})
F.dropout({v}, 0.5, inplace=True)
F.silu({v}, inplace=True)
F.leaky_relu({v}, 0.1, inplace=True)
F.hardtanh({v}, inplace=True)
nn.ELU(inplace=True)({v})
F.relu_({v})
torch.relu_({v})
{v}.scatter_(1, {v}.argmax(dim=1, keepdim=True), 0.0)
{v}.index_add_(0, torch.tensor([0, 1, 2, 3]), {g}.clone())
{v}.data = {v}.data * 2.0
torch.nn.init.zeros_({v})
{v}.detach().copy_({g})
{v}.sign_()
{v}.round_()
{v}.fill_diagonal_(0.0)
{v}.cumsum_(0)
{v}.index_copy_(0, torch.tensor([0, 1, 2, 3]), {g}.clone())
{v}.uniform_()
""")

# Of a parameter, whatever its shape: what is written is the parameter, or a copy of it.
PARAMETER_ALIASES = _lines("""
{p}.contiguous()
{p}.float()
{p}.to(torch.float32)
{p}.type(torch.float32)
{p}.type_as({h})
{p}.to({h})
{p}.cpu()
{p}.to("cpu")
{p}.to({p}.device)
{p}.double()
{p}.double().float()
{p}.to("cpu", copy=True)
{p}.reshape(-1)
{p}.reshape({p}.shape)
{p}.flatten()
{p}.ravel()
{p}.view(-1).reshape(-1)
{p}.view_as({p})
{p}.expand_as({p})
{p}.broadcast_to({p}.shape)
{p}.squeeze()
{p}.unsqueeze(0)
{p}.movedim(0, -1)
{p}.T.T.contiguous()
torch.atleast_1d({p})
torch.positive({p})
{p}[None].contiguous()
{p}[:2].reshape(-1)
{p}.data
{p}.data.float()
{p}.detach().reshape(-1)
{p}.clone()
{p}.clone().float()
torch.zeros_like({p})
torch.empty_like({p}).contiguous()
torch.zeros_like({p}, requires_grad=True)
torch.zeros_like({p}).requires_grad_().view(-1)
torch.empty_like({p}).float().requires_grad_()
torch.as_tensor({p})
nn.Identity()({p})
""")

# In-place operations that ask for `no_grad`.
WITHOUT_GRAD = _lines("""
torch.mul({v}, 2.0, out={v})
torch.add({v}, {g}, out={v})
torch.exp({g}, out={v})
{v}.mul_(0.9)
{v}.add_({g})
{v}[0] = 0.0
{v} *= 0.5
torch.clamp({v}, min=0.0, out={v})
""")

PARAMETER_WRITES = _lines("""
{m}.first.weight.add_(1.0)
{m}.scale.mul_(0.9)
{m}.first.weight.data.mul_(0.9)
{m}.scale.data.copy_({m}.scale.data * 0.9)
{m}.second.weight[0] = 0.0
{m}.first.weight.data[0] = 0.0
nn.init.zeros_({m}.second.bias)
{m}.scale.detach().mul_(0.5)
nn.init.xavier_uniform_({m}.first.weight)
{m}.second.weight.detach().add_(0.1)
{m}.table.weight.data.clamp_(-1.0, 1.0)
{m}.first.weight.data = {m}.first.weight.data * 0.9
{m}.scale[0].mul_(2.0)
{m}.first.bias.view(3).add_(1.0)
nn.init.normal_({m}.norm.weight)
""")
