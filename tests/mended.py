"""Programs with a bug and as they are mended, as one text: `-` begins a line of the first, `+` one
of the second.
"""

from __future__ import annotations

HEAD = """\
 import torch
 import torch.nn.functional as F
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
 data = [(torch.randn(5, 4), torch.randint(0, 3, (5,))) for _ in range(5)]
"""

PROGRAMS: dict[str, str] = {}


def sides(name: str) -> tuple[str, str]:
    """The program before and after."""
    lines = (HEAD + PROGRAMS[name]).splitlines()
    return side(lines, "-"), side(lines, "+")


def side(lines: list[str], sign: str) -> str:
    """The lines without a sign, and those with this one."""
    return "".join(f"{line[1:]}\n" for line in lines if line[:1] in (sign, " ", ""))


PROGRAMS["GL101 in a helper, by early return"] = """\
 def loss_of(logits, target, keep):
     if not keep.any():
-        return torch.zeros((), device=logits.device)
+        return 0.0 * logits.sum()
     return F.cross_entropy(logits[keep], target[keep])

 for i, (x, y) in enumerate(data):
     keep = torch.rand(5) > (2 if i == 2 else 0.1)
     loss = loss_of(model(x), y, keep)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL101 in one line with others"] = """\
 for i, (x, y) in enumerate(data):
     out = model(x); keep = torch.rand(5) > (2 if i == 2 else 0.1)
     if keep.any(): loss = F.cross_entropy(out[keep], y[keep])
-    else: loss = torch.tensor(0.)  # nothing here
+    else: loss = 0.0 * out.sum()  # nothing here
     optimizer.zero_grad(); loss.backward(); optimizer.step()
"""
PROGRAMS["GL101 in a method, with a list of terms"] = """\
 class Trainer:
     def __init__(self, model):
         self.model = model

     def loss(self, x, y, keep):
         logits = self.model(x)
         terms = [F.cross_entropy(logits[i:i + 1], y[i:i + 1]) for i in range(5) if keep[i]]
-        return torch.stack(terms).mean() if terms else logits.new_zeros(())
+        return torch.stack(terms).mean() if terms else 0.0 * logits.sum()

 trainer = Trainer(model)
 for i, (x, y) in enumerate(data):
     loss = trainer.loss(x, y, (torch.rand(5) > (2 if i == 2 else 0.1)).tolist())
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 a helper that detaches"] = """\
 def summary(
     loss,  # of one batch
 ):
-    return loss.detach().mean()
+    return loss.mean()

 for x, y in data:
     loss = summary(F.cross_entropy(model(x), y, reduction="none"))
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 a list of items made a tensor"] = """\
 for x, y in data:
     losses = []
     for i in range(5):
-        losses.append(F.cross_entropy(model(x[i:i + 1]), y[i:i + 1]).item())
-    loss = torch.tensor(losses, requires_grad=True).mean()
+        losses.append(F.cross_entropy(model(x[i:i + 1]), y[i:i + 1]))
+    loss = torch.stack(losses).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 a tensor wrapped anew"] = """\
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
-    loss = torch.tensor(loss, requires_grad=True)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 a decorated method"] = """\
 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.body = nn.Linear(4, 3)

-    @torch.no_grad()
     def scores(self, x):
         return self.body(x)

     def forward(self, x):
         return self.scores(x)

 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 a with around more than the loss"] = """\
 seen = 0
 for x, y in data:
-    with torch.no_grad():
-        loss = F.cross_entropy(model(x), y)
-        seen += len(x)
+    loss = F.cross_entropy(model(x), y)
+    seen += len(x)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 a with around the output and the loss"] = """\
 for x, y in data:
-    with torch.no_grad():
-        out = model(x)
-        loss = F.cross_entropy(out, y)
+    out = model(x)
+    loss = F.cross_entropy(out, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 in a wrapper that measures"] = """\
 import functools

 def measured(function):
     @functools.wraps(function)
     def wrapper(*args, **kwargs):
-        with torch.no_grad():
-            return function(*args, **kwargs)
+        return function(*args, **kwargs)
     return wrapper

 @measured
 def loss_of(x, y):
     return F.cross_entropy(model(x), y)

 for x, y in data:
     loss = loss_of(x, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL105 a leaf made of the loss"] = """\
 for x, y in data:
-    loss = F.cross_entropy(model(x), y).detach().requires_grad_()
+    loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL105 an attribute set"] = """\
 for x, y in data:
-    loss = F.cross_entropy(model(x), y).data
-    loss.requires_grad = True
+    loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL106 a part behind a detach"] = """\
 encoder, head = nn.Linear(4, 6), nn.Linear(6, 3)
 optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
 for x, y in data:
-    features = encoder(x).relu().detach()  # saves memory
+    features = encoder(x).relu()  # saves memory
     loss = F.cross_entropy(head(features), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL107 frozen for good"] = """\
 for parameter in model.parameters():
     parameter.requires_grad_(False)
+model.requires_grad_(True)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL107 frozen in turns"] = """\
 critic = nn.Linear(3, 1)
 other = torch.optim.SGD(critic.parameters(), lr=0.1)
 for x, y in data:
     for parameter in critic.parameters():
         parameter.requires_grad_(False)
     loss = critic(model(x)).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
+    critic.requires_grad_(True)
     loss = critic(model(x).detach()).square().mean()
     other.zero_grad()
     loss.backward()
     other.step()
"""
PROGRAMS["GL201 an augmented assignment"] = """\
 for x, y in data:
     hidden = torch.sigmoid(model[0](x))
     gate = hidden * 2
-    hidden += 1
+    hidden = hidden + 1
     loss = F.cross_entropy(model[2](hidden * gate), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL201 a masked write"] = """\
 for x, y in data:
     weights = model(x).softmax(-1)
+    weights = weights.clone()
     weights[:, 0] = 0.0
     loss = -weights[range(5), y].mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL201 a module that writes in place"] = """\
 class Block(nn.Module):
     def __init__(self):
         super().__init__()
         self.inner = nn.Linear(4, 3)
-        self.act = nn.ReLU(inplace=True)
+        self.act = nn.ReLU()

     def forward(self, x):
         out = torch.tanh(self.inner(x))
         return self.act(out) + out

 model = Block()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL202 an update by hand"] = """\
 weight = torch.zeros(4, 3, requires_grad=True)
 optimizer = torch.optim.SGD([weight], lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(x @ weight, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
-    weight *= 0.99
+    with torch.no_grad():
+        weight *= 0.99
"""
PROGRAMS["GL203 two players"] = """\
 critic = nn.Linear(3, 1)
 other = torch.optim.SGD(critic.parameters(), lr=0.1)
 for x, y in data:
     fake = model(x)
     critic_loss = critic(fake).square().mean()
-    model_loss = critic(fake).sigmoid().mean()
     other.zero_grad()
     critic_loss.backward(retain_graph=True)
     other.step()
+    model_loss = critic(fake).sigmoid().mean()
     optimizer.zero_grad()
     model_loss.backward()
     optimizer.step()
"""
PROGRAMS["GL301 a function that leaves grad mode off"] = """\
+@torch.no_grad()
 def validate(x):
-    torch.set_grad_enabled(False)
     return model(x).argmax(-1)

 for x, y in data:
     validate(x)
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL303 not called"] = """\
 for x, y in data:
-    with torch.no_grad:
+    with torch.no_grad():
         target = model(x).argmax(-1)
     loss = F.cross_entropy(model(x), target)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL304 in a helper"] = """\
 model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

 def evaluate(net):
     net.eval()
     with torch.no_grad():
         return net(data[0][0]).sum()

 for epoch in range(3):
     for x, y in data:
         loss = F.cross_entropy(model(x), y)
         optimizer.zero_grad()
         loss.backward()
         optimizer.step()
     evaluate(model)
+    model.train()
"""
PROGRAMS["GL304 in a callback that another is called through"] = """\
 model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

 class Validation:
     def step_ended(self, net):
         net.eval()
         with torch.no_grad():
             value = net(data[0][0]).sum()
         self.value = value.item()
+        net.train()

 callbacks = {"step_ended": [Validation()]}

 def tell(event, *given):
     for callback in callbacks[event]:
         getattr(callback, event)(*given)

 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
     tell("step_ended", model)
"""
PROGRAMS["GL501 before a one-line suite"] = """\
 for x, y in data:
+    optimizer.zero_grad()
     loss = F.cross_entropy(model(x), y)
     loss.backward()
     if True: optimizer.step()
"""
PROGRAMS["GL501 in a method"] = """\
 class Trainer:
     def __init__(self):
         self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

     def update(self, x, y):
         loss = F.cross_entropy(model(x), y)
         loss.backward()
         self.optimizer.step()
+        self.optimizer.zero_grad()

 trainer = Trainer()
 for x, y in data:
     trainer.update(x, y)
"""
PROGRAMS["GL502 between the backward and the step"] = """\
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
+    optimizer.zero_grad()
     loss.backward()
-    optimizer.zero_grad()
     optimizer.step()
"""
PROGRAMS["GL502 parameter by parameter"] = """\
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
+    for parameter in model.parameters():
+        parameter.grad = None
     loss.backward()
-    for parameter in model.parameters():
-        parameter.grad = None
     optimizer.step()
"""
PROGRAMS["GL503 and GL504 in a window"] = """\
 window = 2
 for i, (x, y) in enumerate(data):
     loss = F.cross_entropy(model(x), y)
-    loss.backward()
-    if (i + 1) % window == 0:
+    (loss / window).backward()
+    if (i + 1) % window == 0 or i + 1 == len(data):
         optimizer.step()
         optimizer.zero_grad()
"""
PROGRAMS["GL504 of an iterator"] = """\
 def batches():
     yield from data

 for i, (x, y) in enumerate(batches()):
     loss = F.cross_entropy(model(x), y) / 2
     loss.backward()
     if (i + 1) % 2 == 0:
         optimizer.step()
         optimizer.zero_grad()
+if (i + 1) % 2 != 0:
+    optimizer.step()
+    optimizer.zero_grad()
"""
PROGRAMS["GL505 every round"] = """\
 for i, (x, y) in enumerate(data):
-    optimizer.zero_grad()
     loss = F.cross_entropy(model(x), y) / 2
     loss.backward()
     if (i + 1) % 2 == 0 or i + 1 == len(data):
         optimizer.step()
+        optimizer.zero_grad()
"""
PROGRAMS["GL505 parameter by parameter"] = """\
 for i, (x, y) in enumerate(data):
-    for parameter in model.parameters():
-        parameter.grad = None
     loss = F.cross_entropy(model(x), y) / 2
     loss.backward()
     if (i + 1) % 2 == 0 or i + 1 == len(data):
         optimizer.step()
+        for parameter in model.parameters():
+            parameter.grad = None
"""
PROGRAMS["GL506 counted from nought"] = """\
 for i, (x, y) in enumerate(data):
     loss = F.cross_entropy(model(x), y) / 2
     loss.backward()
-    if i % 2 == 0:
+    if (i + 1) % 2 == 0 or i + 1 == len(data):
         optimizer.step()
         optimizer.zero_grad()
"""
PROGRAMS["GL507 a state carried on"] = """\
 cell = nn.GRUCell(4, 3)
 optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
 state = torch.zeros(5, 3)
 for x, y in data:
     state = cell(x, state)
     loss = F.cross_entropy(state, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
+    state = state.detach()
"""
PROGRAMS["GL507 two losses of one graph"] = """\
 for x, y in data:
     logits = model(x)
     first, second = F.cross_entropy(logits, y), logits.square().mean()
     optimizer.zero_grad()
-    first.backward()
-    second.backward()
+    (first + second).backward()
     optimizer.step()
"""
PROGRAMS["GL507 an LSTM's state, kept in a dict by a method"] = """\
 class Stream:
     def __init__(self):
         self.lstm, self.head = nn.LSTM(4, 8), nn.Linear(8, 3)
         parameters = [*self.lstm.parameters(), *self.head.parameters()]
         self.optimizer = torch.optim.SGD(parameters, lr=0.1)
         self.memory = {"state": None}

     def step(self, x, y):
         out, state = self.lstm(x[:, None], self.memory["state"])
         loss = F.cross_entropy(self.head(out).squeeze(1), y)
         self.optimizer.zero_grad()
         loss.backward()
         self.optimizer.step()
-        self.memory["state"] = state
+        self.memory["state"] = tuple(part.detach() for part in state)

 stream = Stream()
 for x, y in data:
     stream.step(x, y)
"""
PROGRAMS["GL508 a running sum"] = """\
 total = 0
 history = []
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
-    total += loss
-    history.append({"loss": loss, "size": len(x)})
+    total += loss.detach()
+    history.append({"loss": loss.detach(), "size": len(x)})
"""
PROGRAMS["GL509 clipped after the step"] = """\
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
+    torch.nn.utils.clip_grad_norm_(
+        model.parameters(),  # all of them
+        0.1,
+    )
     optimizer.step()
-    torch.nn.utils.clip_grad_norm_(
-        model.parameters(),  # all of them
-        0.1,
-    )
"""
PROGRAMS["GL510 the scheduler first"] = """\
 scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
-    scheduler.step()
     optimizer.step()
+    scheduler.step()
"""
PROGRAMS["GL512 consumed by the clip"] = """\
-parameters = model.parameters()
+parameters = list(model.parameters())
 optimizer = torch.optim.SGD(parameters, lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     torch.nn.utils.clip_grad_norm_(parameters, 0.1)
     optimizer.step()
"""
PROGRAMS["GL514 a list of layers"] = """\
 class Net(nn.Module):
     def __init__(self):
         super().__init__()
-        self.layers = [nn.Linear(4, 4) for _ in range(2)]
+        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
         self.head = nn.Linear(4, 3)

     def forward(self, x):
         for layer in self.layers:
             x = layer(x).tanh()
         return self.head(x)

 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL514 a dictionary of heads, filled later"] = """\
 class Net(nn.Module):
     def __init__(self):
         super().__init__()
-        self.heads = {}
+        self.heads = nn.ModuleDict()
         for name in ("a", "b"):
             self.heads[name] = nn.Linear(4, 3)
         self.body = nn.Linear(4, 4)

     def forward(self, x):
         return sum(head(self.body(x)) for head in self.heads.values())

 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL515 a product of a leaf"] = """\
-weight = torch.randn(4, 3, requires_grad=True) * 0.1
+weight = (torch.randn(4, 3) * 0.1).requires_grad_()
 optimizer = torch.optim.SGD([weight], lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(x @ weight, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL702 a logarithm of a softmax"] = """\
 for x, y in data:
     probabilities = F.softmax(model(x), dim=-1)
-    loss = F.nll_loss(torch.log(probabilities), y)
+    loss = F.nll_loss(F.log_softmax(model(x), dim=-1), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL704 a softmax in the model"] = """\
 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.body = nn.Linear(4, 3)

     def forward(self, x):
-        return F.softmax(self.body(x), dim=1)
+        return self.body(x)

 model, criterion = Net(), nn.CrossEntropyLoss()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = criterion(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL704 probabilities for a loss of logits"] = """\
 model = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     probabilities = torch.sigmoid(model[0](x)).squeeze(1)
-    loss = F.binary_cross_entropy_with_logits(probabilities, (y > 0).float())
+    loss = F.binary_cross_entropy_with_logits(model[0](x).squeeze(1), (y > 0).float())
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL403 clipped while scaled"] = """\
 scaler = torch.amp.GradScaler("cpu")
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     scaler.scale(loss).backward()
+    scaler.unscale_(optimizer)
     nn.utils.clip_grad_norm_(model.parameters(), 0.5)
     scaler.step(optimizer)
     scaler.update()
"""
PROGRAMS["GL403 beside another optimizer that has stepped"] = """\
 scaler = torch.amp.GradScaler("cpu")
 critic = nn.Linear(3, 1)
 other = torch.optim.SGD(critic.parameters(), lr=0.1)

 class Steps:
     def first(self, x):
         other.zero_grad()
         scaler.scale(critic(model(x).detach()).square().mean()).backward()
         scaler.step(other)

     def second(self, x):
         optimizer.zero_grad()
         scaler.scale(critic(model(x)).mean()).backward()
+        scaler.unscale_(optimizer)
         nn.utils.clip_grad_norm_(model.parameters(), 0.5)
         scaler.step(optimizer)

 steps = Steps()
 for x, y in data:
     steps.first(x)
     steps.second(x)
     scaler.update()
"""
PROGRAMS["GL404 stepped past the scaler"] = """\
 scaler = torch.amp.GradScaler("cpu")
 def train_step(x, y):
     optimizer.zero_grad()
     scaler.scale(F.cross_entropy(model(x), y)).backward()
-    optimizer.step()
+    scaler.step(optimizer)
     scaler.update()
 for x, y in data:
     train_step(x, y)
"""
PROGRAMS["GL405 never updated"] = """\
 scaler = torch.amp.GradScaler("cpu")
 for x, y in data:
     optimizer.zero_grad()
     scaler.scale(F.cross_entropy(model(x), y)).backward()
     scaler.step(optimizer)
+    scaler.update()
"""
PROGRAMS["GL406 unscaled twice"] = """\
 scaler = torch.amp.GradScaler("cpu")
 for x, y in data:
     optimizer.zero_grad()
     scaler.scale(F.cross_entropy(model(x), y)).backward()
     scaler.unscale_(optimizer)
     nn.utils.clip_grad_norm_(model.parameters(), 0.5)
-    scaler.unscale_(optimizer)
     scaler.step(optimizer)
     scaler.update()
"""
PROGRAMS["GL406 unscaled by two helpers"] = """\
 scaler = torch.amp.GradScaler("cpu")

 def clip():
     scaler.unscale_(optimizer)
     nn.utils.clip_grad_norm_(model.parameters(), 0.5)

 def log():
-    scaler.unscale_(optimizer)
     return [parameter.grad.norm() for parameter in model.parameters()]

 for x, y in data:
     optimizer.zero_grad()
     scaler.scale(F.cross_entropy(model(x), y)).backward()
     clip()
     log()
     scaler.step(optimizer)
     scaler.update()
"""
PROGRAMS["GL406 unscaled in the loop over the window"] = """\
 scaler = torch.amp.GradScaler("cpu")
 for window in (data[:2], data[2:4]):
     optimizer.zero_grad()
     for x, y in window:
         scaler.scale(F.cross_entropy(model(x), y) / 2).backward()
-        scaler.unscale_(optimizer)
+    scaler.unscale_(optimizer)
     nn.utils.clip_grad_norm_(model.parameters(), 0.5)
     scaler.step(optimizer)
     scaler.update()
"""
PROGRAMS["GL503 a window of so many rounds before the step"] = """\
 MICRO_BATCHES = 2
 batches = iter(data)
 for _ in range(2):
     optimizer.zero_grad()
     for _ in range(MICRO_BATCHES):
         x, y = next(batches)
         loss = F.cross_entropy(model(x), y)
-        loss.backward()
+        (loss / MICRO_BATCHES).backward()
     optimizer.step()
"""
PROGRAMS["GL502 between two losses of one step"] = """\
 for x, y in data:
+    optimizer.zero_grad()
     first = F.cross_entropy(model(x), y)
     first.backward()
-    optimizer.zero_grad()
     second = model(x).square().mean()
     second.backward()
     optimizer.step()
"""
PROGRAMS["GL804 forward with a context of its own"] = """\
 class Context:
     pass

 class Reverse(torch.autograd.Function):
     @staticmethod
     def forward(ctx, x, strength):
         ctx.strength = strength
         return x.view_as(x)

     @staticmethod
     def backward(ctx, grad):
         return -ctx.strength * grad, None

 for x, y in data:
     optimizer.zero_grad()
-    F.cross_entropy(Reverse.forward(Context(), model(x), 0.5), y).backward()
+    F.cross_entropy(Reverse.apply(model(x), 0.5), y).backward()
     optimizer.step()
"""
PROGRAMS["GL102 an old constructor of a list that is given"] = """\
 def total(terms):
-    return torch.FloatTensor(terms).sum()
+    return torch.stack(terms).sum()

 for x, y in data:
     loss = total([F.cross_entropy(model(x[i : i + 1]), y[i : i + 1]) for i in range(5)])
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL602 a loss of what may be nothing, with a learned weight"] = """\
 weight = nn.Parameter(torch.zeros(()))
 optimizer.add_param_group({"params": [weight]})
 for step, (x, y) in enumerate(data):
     logits = model(x)
     seen = x[:, 0] > (9 if step == 2 else 0)
-    error = F.mse_loss(logits[seen], x[seen, :3])
+    error = F.mse_loss(logits[seen], x[seen, :3], reduction="sum") / max(x[seen, :3].numel(), 1)
     loss = F.cross_entropy(logits, y) + error * (-weight).exp() + weight
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL702 one minus a sigmoid"] = """\
 for x, y in data:
     stays = torch.sigmoid(model(x))
-    loss = -torch.log1p(-stays).mean()
+    loss = -F.logsigmoid(-model(x)).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL802 a list by its name"] = """\
 class Product(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a, b):
         ctx.save_for_backward(a, b)
         return a * b

     @staticmethod
     def backward(ctx, grad):
         a, b = ctx.saved_tensors
         grads = [grad * b, grad * a]
-        return grads
+        return tuple(grads)

 for x, y in data:
     logits = model(x)
     loss = F.cross_entropy(Product.apply(logits, logits), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL802 fewer where the input needs none"] = """\
 class Scaled(torch.autograd.Function):
     @staticmethod
     def forward(ctx, x, weight, bias, factor):
         ctx.save_for_backward(x, weight)
         ctx.factor = factor
         return factor * x * weight + bias

     @staticmethod
     def backward(ctx, grad):
         x, weight = ctx.saved_tensors
         of_weight = (ctx.factor * grad * x).sum(0)
         of_bias = grad.sum(0)
         if not ctx.needs_input_grad[0]:
-            return of_weight, of_bias, None
+            return None, of_weight, of_bias, None
         return ctx.factor * grad * weight, of_weight, of_bias, None

 weight, bias = nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(4))
 optimizer.add_param_group({"params": [weight, bias]})
 for x, y in data:
     loss = F.cross_entropy(model(Scaled.apply(x, weight, bias, 0.5)), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL802 fewer than inputs, in parentheses"] = """\
 class Sum(torch.autograd.Function):
     @staticmethod
     def forward(ctx, factor, x, y, offset):
         ctx.factor = factor
         return factor * x + y + offset

     @staticmethod
     def backward(ctx, grad):
         if not ctx.needs_input_grad[1]:
-            return (None), (None), grad
+            return (None), (None), grad, None
         return None, grad * ctx.factor, grad, None

 for x, y in data:
     loss = F.cross_entropy(Sum.apply(2.0, torch.ones(5, 3), model(x), 0.5), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL515 a parameter cast as an attribute"] = """\
 class Gate(nn.Module):
     def __init__(self):
         super().__init__()
         self.weight = nn.Parameter(torch.randn(4, 3))
-        self.weight = self.weight.double()
+        self.weight = nn.Parameter(self.weight.double().detach())

     def forward(self, x):
         return x.double() @ self.weight

 gate = Gate()
 optimizer = torch.optim.SGD(gate.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(gate(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL503 over lists that a walrus takes out of a stream"] = """\
 from itertools import islice

 stream = iter(data[:4] * 2)
 while part := list(islice(stream, 4)):
     optimizer.zero_grad()
     for x, y in part:
-        F.cross_entropy(model(x), y).backward()
+        (F.cross_entropy(model(x), y) / len(part)).backward()
     optimizer.step()
"""
PROGRAMS["GL512 by a function that gives a generator"] = """\
 def learning(module):
     return ((name, each) for name, each in module.named_parameters() if each.requires_grad)

 def groups(module):
-    named = learning(module)
+    named = list(learning(module))
     weights = [each for _, each in named if each.ndim > 1]
     others = [each for _, each in named if each.ndim < 2]
     return [{"params": weights, "weight_decay": 0.1}, {"params": others}]

 optimizer = torch.optim.SGD(groups(model), lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL103 on the line of its header"] = """\
 for x, y in data:
-    with torch.no_grad(): loss = F.cross_entropy(model(x), y)  # one line
+    loss = F.cross_entropy(model(x), y)  # one line
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 one context of several"] = """\
 import contextlib

 for x, y in data:
-    with (
-        torch.no_grad(),  # off
-        contextlib.nullcontext() as context,  # on
-    ):
+    # off
+    with (
+        contextlib.nullcontext() as context,  # on
+    ):
         loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 one of two contexts, and what it measures"] = """\
 import contextlib

 right = 0
 for x, y in data:
-    with contextlib.nullcontext() as context, torch.no_grad():
+    with contextlib.nullcontext() as context:
         out = model(x); loss = F.cross_entropy(out, y)
-        # how many
-        right += (out.argmax(-1) == y).sum()
+        # how many
+        with torch.no_grad():
+            right += (out.argmax(-1) == y).sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 targets before the loss and metrics behind it"] = """\
 teacher, total = nn.Linear(4, 3), 0.0
 for x, y in data:
     with torch.no_grad():  # nothing of this is learned
         target = teacher(x).softmax(-1)
-        out = model(x)
-
-        # the loss
-        loss = F.cross_entropy(
-            out,
-            target,
-        )
-        total += loss
+    out = model(x)
+
+    # the loss
+    loss = F.cross_entropy(
+        out,
+        target,
+    )
+    with torch.no_grad():
+        total += loss
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 a decorator among others, of a function in another"] = """\
 import functools

 def trainer():
     @functools.lru_cache(maxsize=None)
     # grad mode
-    @torch.no_grad()
     def loss_of(i): return F.cross_entropy(model(data[i][0]), data[i][1])

     return loss_of

 for i in range(5):
     loss = trainer()(i)
     optimizer.zero_grad(); loss.backward(); optimizer.step()
"""
PROGRAMS["GL105 a chain over several lines"] = """\
 for x, y in data:
     loss = (
         F.cross_entropy(
             model(x),
             y,
         )
-        .detach()  # no graph
-        .requires_grad_(True)
     )
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL507 a loss that is added up in a window"] = """\
 for epoch in range(2):
     loss = 0
     for i, (x, y) in enumerate(data[:4]):
         loss = loss + F.cross_entropy(model(x), y)
         if (i + 1) % 2 == 0:
             optimizer.zero_grad()
             loss.backward()
             optimizer.step()
+            loss = 0
"""
PROGRAMS["GL101 each term by its own output"] = """\
 trunk, kinds, sizes = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 3)
 optimizer = torch.optim.SGD([*trunk.parameters(), *kinds.parameters(), *sizes.parameters()], lr=0.1)


 def losses(shown, size, target, keep):
     if not keep.any():
-        return {"kind": torch.zeros(()), "size": shown.new_zeros(())}
+        return {"kind": 0.0 * shown.sum(), "size": 0.0 * size.sum()}
     aim = F.one_hot(target, 3).float()
     off = F.l1_loss(size[keep], aim[keep])
     return {"kind": F.cross_entropy(shown[keep], target[keep]), "size": off}


 for i, (x, y) in enumerate(data):
     hidden = trunk(x)
     found = losses(kinds(hidden), sizes(hidden), y, torch.rand(5) > (2 if i == 2 else 0.1))
     loss = sum(found.values())
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL101 a round that goes on behind the step"] = """\
 past = []
 for x, y in data:
     loss = torch.zeros(())
     if past:
         loss = F.cross_entropy(model(torch.cat([x for x, _ in past])), torch.cat([y for _, y in past]))
-    optimizer.zero_grad()
-    loss.backward()  # not in the first round
-    optimizer.step()
+    if loss.requires_grad:
+        optimizer.zero_grad()
+        loss.backward()  # not in the first round
+        optimizer.step()
     past.append((x, y))
"""
PROGRAMS["GL103 one of two contexts, with a comment behind them"] = """\
 right = []
 for x, y in data:
-    with torch.no_grad(), torch.autocast("cpu", enabled=False):  # all in float32
+    with torch.autocast("cpu", enabled=False):  # all in float32
         out = model(x)
         loss = F.cross_entropy(out, y)
         # how many
-        right.append((out.argmax(1) == y).sum().item())
+        with torch.no_grad():
+            right.append((out.argmax(1) == y).sum().item())
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL504 a counter of its own"] = """\
 for epoch in range(2):
     optimizer.zero_grad()
     seen = 0
     for x, y in data:
         (F.cross_entropy(model(x), y) / 2).backward()
         seen += 1
-        if seen % 2 == 0:
+        if seen % 2 == 0 or seen == len(data):
             optimizer.step()
             optimizer.zero_grad()
"""
PROGRAMS["GL504 a loop that asks for the next batch"] = """\
 def epoch(batches):
     taken = 0
     optimizer.zero_grad()
     while True:
         try:
             x, y = next(batches)
         except StopIteration:
             break
         (F.cross_entropy(model(x), y) / 2).backward()
         taken += 1
         if taken % 2 == 0:
             optimizer.step()
             optimizer.zero_grad()
+    if taken % 2 != 0:
+        optimizer.step()
+        optimizer.zero_grad()


 for _ in range(2):
     epoch(iter(data))
"""
PROGRAMS["GL504 batches that are drawn by the loop"] = """\
 for number, x in enumerate(torch.randn(5, 5, 4), start=1):
     (F.cross_entropy(model(x), data[0][1]) / 2).backward()
     if number % 2 == 0:
         optimizer.step()
         optimizer.zero_grad()
+if number % 2 != 0:
+    optimizer.step()
+    optimizer.zero_grad()
"""
PROGRAMS["GL508 a record with two graphs"] = """\
 rows, outputs = [], []
 for i, (x, y) in enumerate(data):
     out = model(x)
     loss = F.cross_entropy(out, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
-    rows += [(i, loss, {"out": out, "target": y})]
+    rows += [(i, loss.detach(), {"out": out.detach(), "target": y})]
-    outputs.insert(0, out)
+    outputs.insert(0, out.detach())
 print(len(rows), len(outputs))
"""
PROGRAMS["GL515 a leaf over several lines"] = """\
-shift = 0.1 * torch.randn(
+shift = (0.1 * torch.randn(
     4,  # as wide as the data
-    requires_grad=True,
-)
+)).requires_grad_()
-scale = (torch.ones(4, requires_grad=True) * 0.5).to(shift.device)
+scale = (torch.ones(4) * 0.5).to(shift.device).requires_grad_()
 optimizer = torch.optim.SGD([shift, scale], lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x * scale + shift), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL106 by way of a list and back"] = """\
 encoder, head = nn.Linear(4, 8), nn.Linear(8, 3)
 optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
 for x, y in data:
     features = encoder(x)
-    features = torch.tensor(features.tolist())
     loss = F.cross_entropy(head(features), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL106 by way of a list, in a dtype and on a device"] = """\
 encoder, head = nn.Linear(4, 8), nn.Linear(8, 3)
 optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
 for x, y in data:
-    scores = head(torch.tensor(encoder(x).detach().cpu().tolist(), dtype=x.dtype, device=x.device))
+    scores = head(encoder(x).to(x.dtype))
     loss = F.cross_entropy(scores, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
