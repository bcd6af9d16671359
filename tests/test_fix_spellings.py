"""Fixes of the training step and of custom functions, by the ways that programs spell them: the
text that they write.

The form is that of `mended.py`. A program without `-` and `+` is found at fault and left alone.
"""

from __future__ import annotations

import pathlib

import pytest
from mended import HEAD, side

from gradlint.config import Selection, settings_finder
from gradlint.fix.apply import Task, repair

PROGRAMS: dict[str, str] = {}
PROGRAMS["GL501 by a helper"] = """\
 def step():
     optimizer.step()
+    optimizer.zero_grad()

 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     loss.backward()
     step()
"""
PROGRAMS["GL501 with a scaler"] = """\
 scaler = torch.amp.GradScaler("cpu")
 for x, y in data:
+    optimizer.zero_grad()
     scaler.scale(F.cross_entropy(model(x), y)).backward()
     scaler.step(optimizer)
     scaler.update()
"""
PROGRAMS["GL501 two optimizers"] = """\
 other = torch.optim.Adam(model[2].parameters())
 for x, y in data:
+    optimizer.zero_grad()
     other.zero_grad()
     loss = F.cross_entropy(model(x), y)
     loss.backward()
     other.step()
     optimizer.step()
"""
PROGRAMS["GL502 by a loop over groups"] = """\
 for x, y in data:
+    for group in optimizer.param_groups:
+        for p in group["params"]:
+            p.grad = None
     F.cross_entropy(model(x), y).backward()
-    for group in optimizer.param_groups:
-        for p in group["params"]:
-            p.grad = None
     optimizer.step()
"""
PROGRAMS["GL502 zeros by a loop over groups"] = """\
 for x, y in data:
     F.cross_entropy(model(x), y).backward()
-    for group in optimizer.param_groups:
-        for p in group["params"]:
-            p.grad.zero_()
     optimizer.step()
+    for group in optimizer.param_groups:
+        for p in group["params"]:
+            p.grad.zero_()
"""
PROGRAMS["GL502 one gradient of several"] = """\
 optimizer = torch.optim.SGD([model[0].weight], lr=0.1)
 for x, y in data:
     F.cross_entropy(model(x), y).backward()
     model[0].weight.grad.zero_()
     model[0].bias.grad.zero_()
     optimizer.step()
"""
PROGRAMS["GL502 the last gradient of several"] = """\
 optimizer = torch.optim.SGD([model[0].weight], lr=0.1)
 for x, y in data:
     F.cross_entropy(model(x), y).backward()
     model[0].bias.grad.zero_()
     model[0].weight.grad.zero_()
     optimizer.step()
"""
PROGRAMS["GL502 the only gradient"] = """\
 optimizer = torch.optim.SGD([model[0].weight], lr=0.1)
 for x, y in data:
     F.cross_entropy(model(x), y).backward()
-    model[0].weight.grad.zero_()
     optimizer.step()
+    model[0].weight.grad.zero_()
"""
PROGRAMS["GL502 under a condition"] = """\
 for i, (x, y) in enumerate(data):
     F.cross_entropy(model(x), y).backward()
-    if i >= 0:
-        optimizer.zero_grad()
     optimizer.step()
+    optimizer.zero_grad()
"""
PROGRAMS["GL502 inside a block"] = """\
 for i, (x, y) in enumerate(data):
     loss = F.cross_entropy(model(x), y)
     if i < 9:
+        optimizer.zero_grad()
         loss.backward()
-        optimizer.zero_grad()
         optimizer.step()
"""
PROGRAMS["GL503 counted up"] = """\
 count = 0
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
-    loss.backward()
+    (loss / 4).backward()
     count += 1
     if count == 4:
         optimizer.step()
         optimizer.zero_grad()
         count = 0
"""
PROGRAMS["GL503 skipped"] = """\
 for i, (x, y) in enumerate(data):
     loss = F.cross_entropy(model(x), y) + 0.1
-    loss.backward()
+    (loss / 4).backward()
     if (i + 1) % 4 != 0:
         continue
     optimizer.step()
     optimizer.zero_grad()
"""
PROGRAMS["GL503 scaled"] = """\
 scaler = torch.amp.GradScaler("cpu")
 for i, (x, y) in enumerate(data):
-    scaler.scale(F.cross_entropy(model(x), y)).backward()
+    scaler.scale(F.cross_entropy(model(x), y) / 4).backward()
     if (i + 1) % 4 == 0:
         scaler.step(optimizer)
         scaler.update()
         optimizer.zero_grad()
"""
PROGRAMS["GL503 accelerate"] = """\
 from accelerate import Accelerator
 accelerator = Accelerator()
 for i, (x, y) in enumerate(data):
     loss = F.cross_entropy(model(x), y)
-    accelerator.backward(loss)
+    accelerator.backward(loss / 4)
     if (i + 1) % 4 == 0:
         optimizer.step()
         optimizer.zero_grad()
"""
PROGRAMS["GL504 from one"] = """\
 for i, (x, y) in enumerate(data, 1):
     (F.cross_entropy(model(x), y) / 2).backward()
-    if i % 2 == 0:
+    if i % 2 == 0 or i == len(data):
         optimizer.step()
         optimizer.zero_grad()
"""
PROGRAMS["GL504 from one by name"] = """\
 for i, (x, y) in enumerate(data, start=1):
     (F.cross_entropy(model(x), y) / 2).backward()
-    if i % 2 == 0:
+    if i % 2 == 0 or i == len(data):
         optimizer.step()
         optimizer.zero_grad()
"""
PROGRAMS["GL504 skipped"] = """\
 for i, (x, y) in enumerate(data):
     (F.cross_entropy(model(x), y) / 2).backward()
-    if (i + 1) % 2 != 0:
+    if (i + 1) % 2 != 0 and i + 1 != len(data):
         continue
     optimizer.step()
     optimizer.zero_grad()
"""
PROGRAMS["GL504 skipped or not"] = """\
 for i, (x, y) in enumerate(data):
     (F.cross_entropy(model(x), y) / 2).backward()
-    if (i + 1) % 2 != 0 or i < 0:
+    if ((i + 1) % 2 != 0 or i < 0) and i + 1 != len(data):
         continue
     optimizer.step()
     optimizer.zero_grad()
"""
PROGRAMS["GL504 in a range"] = """\
 for i in range(len(data)):
     x, y = data[i]
     (F.cross_entropy(model(x), y) / 2).backward()
-    if (i + 1) % 2 == 0:
+    if (i + 1) % 2 == 0 or i + 1 == len(data):
         optimizer.step()
         optimizer.zero_grad()
"""
PROGRAMS["GL504 of a generator"] = """\
 batches = (batch for batch in data)
 for i, (x, y) in enumerate(batches):
     (F.cross_entropy(model(x), y) / 2).backward()
     if (i + 1) % 2 == 0:
         optimizer.step()
         optimizer.zero_grad()
+if (i + 1) % 2 != 0:
+    optimizer.step()
+    optimizer.zero_grad()
"""
PROGRAMS["GL506 off by one"] = """\
 for i, (x, y) in enumerate(data):
     (F.cross_entropy(model(x), y) / 2).backward()
-    if i % 2 == 0:
+    if (i + 1) % 2 == 0:
         optimizer.step()
         optimizer.zero_grad()
"""
PROGRAMS["GL507 with a step between"] = """\
 head = nn.Linear(3, 3)
 for x, y in data:
     out = model(x).tanh()
     optimizer.zero_grad()
-    out.square().mean().backward()
     print("one")
-    (out + 1).square().mean().backward()
+    (out.square().mean() + (out + 1).square().mean()).backward()
     optimizer.step()
"""
PROGRAMS["GL507 stored between"] = """\
 for x, y in data:
     out = model(x).tanh()
     loss = out.square().mean()
     optimizer.zero_grad()
-    loss.backward()
+    loss.backward(retain_graph=True)
     loss = out.sum()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL507 the same twice"] = """\
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
-    loss.backward()
+    loss.backward(retain_graph=True)
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL507 with its arguments"] = """\
 for x, y in data:
     out = model(x).tanh()
     optimizer.zero_grad()
     a = out.square().mean()
     b = (out + 1).square().mean()
-    a.backward()
+    (a + b).backward()
-    b.backward()
     optimizer.step()
"""
PROGRAMS["GL508 in a dict"] = """\
 history = []
 for i, (x, y) in enumerate(data):
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
-    history.append({"round": i, "loss": loss})
+    history.append({"round": i, "loss": loss.detach()})
 print(history[-1]["loss"])
"""
PROGRAMS["GL508 added from the left"] = """\
 total = 0.0
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
-    total = loss + total
+    total = loss.detach() + total
 print(total)
"""
PROGRAMS["GL508 in a list of one"] = """\
 history = []
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
     history += [loss]
 print(history)
"""
PROGRAMS["GL508 extended"] = """\
 history = []
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
-    history.extend([loss] * 2)
+    history.extend([loss.detach()] * 2)
 print(history)
"""
PROGRAMS["GL508 given to a helper"] = """\
 history = []
 def keep(value):
+    value = value.detach() if torch.is_tensor(value) else value
     history.append(value)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
     keep(loss)
 print(history)
"""
PROGRAMS["GL508 by an index"] = """\
 kept = {}
 for i, (x, y) in enumerate(data):
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
-    kept[i] = loss
+    kept[i] = loss.detach()
 print(kept)
"""
PROGRAMS["GL509 clipped before the backward"] = """\
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
+    loss.backward()
     nn.utils.clip_grad_norm_(model.parameters(), 1.0)
-    loss.backward()
     optimizer.step()
"""
PROGRAMS["GL509 clipped after the step"] = """\
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
+    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
     optimizer.step()
-    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
"""
PROGRAMS["GL510 before the step"] = """\
 scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
+    optimizer.step()
     scheduler.step()
-    optimizer.step()
"""
PROGRAMS["GL511 not called"] = """\
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
-    optimizer.step
+    optimizer.step()
"""
PROGRAMS["GL511 none"] = """\
 for x, y in data:
     optimizer.zero_grad()
     loss = F.cross_entropy(model(x), y)
     loss.backward()
+    optimizer.step()
"""
PROGRAMS["GL511 no backward"] = """\
 for x, y in data:
     optimizer.zero_grad()
     loss = F.cross_entropy(model(x), y)
+    loss.backward()
     optimizer.step()
"""
PROGRAMS["GL403 several optimizers"] = """\
 other = torch.optim.Adam(model[2].parameters())
 scaler = torch.amp.GradScaler("cpu")
 for x, y in data:
     optimizer.zero_grad()
     other.zero_grad()
     scaler.scale(F.cross_entropy(model(x), y)).backward()
+    scaler.unscale_(optimizer)
+    scaler.unscale_(other)
     nn.utils.clip_grad_norm_(model.parameters(), 1.0)
     scaler.step(optimizer)
     scaler.step(other)
     scaler.update()
"""
PROGRAMS["GL403 one is unscaled"] = """\
 other = torch.optim.Adam(model[2].parameters())
 scaler = torch.amp.GradScaler("cpu")
 for x, y in data:
     optimizer.zero_grad()
     other.zero_grad()
     scaler.scale(F.cross_entropy(model(x), y)).backward()
     scaler.unscale_(other)
+    scaler.unscale_(optimizer)
     nn.utils.clip_grad_norm_(model.parameters(), 1.0)
     scaler.step(optimizer)
     scaler.step(other)
     scaler.update()
"""
PROGRAMS["GL404 two scalers"] = """\
 first = torch.amp.GradScaler("cpu")
 second = torch.amp.GradScaler("cpu")
 for x, y in data:
     optimizer.zero_grad()
     second.scale(F.cross_entropy(model(x), y)).backward()
-    optimizer.step()
+    second.step(optimizer)
     second.update()
"""
PROGRAMS["GL404 without an update"] = """\
 scaler = torch.amp.GradScaler("cpu")
 for x, y in data:
     optimizer.zero_grad()
     scaler.scale(F.cross_entropy(model(x), y)).backward()
-    optimizer.step()
+    scaler.step(optimizer)
+    scaler.update()
"""
PROGRAMS["GL404 updated by its caller"] = """\
 scaler = torch.amp.GradScaler("cpu")
 def step(first, second):
     scaler.step(first)
-    second.step()
+    scaler.step(second)

 other = torch.optim.Adam(model[2].parameters())
 for x, y in data:
     optimizer.zero_grad()
     other.zero_grad()
     scaler.scale(F.cross_entropy(model(x), y)).backward()
     step(optimizer, other)
     scaler.update()
"""
PROGRAMS["GL405 two steps"] = """\
 other = torch.optim.Adam(model[2].parameters())
 scaler = torch.amp.GradScaler("cpu")
 for x, y in data:
     optimizer.zero_grad()
     other.zero_grad()
     scaler.scale(F.cross_entropy(model(x), y)).backward()
     scaler.step(optimizer)
     scaler.step(other)
+    scaler.update()
"""
PROGRAMS["GL406 in every round"] = """\
 scaler = torch.amp.GradScaler("cpu")
 for i, (x, y) in enumerate(data):
     scaler.scale(F.cross_entropy(model(x), y) / 2).backward()
-    scaler.unscale_(optimizer)
-    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
     if (i + 1) % 2 == 0 or i + 1 == len(data):
+        scaler.unscale_(optimizer)
+        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
         scaler.step(optimizer)
         scaler.update()
         optimizer.zero_grad()
"""
PROGRAMS["GL405 by another scaler"] = """\
 scaler = torch.amp.GradScaler("cpu")
 other = torch.amp.GradScaler("cpu")
 for x, y in data:
     optimizer.zero_grad()
     scaler.scale(F.cross_entropy(model(x), y)).backward()
     scaler.step(optimizer)
+    scaler.update()
     other.update()
"""
PROGRAMS["GL406 with more before the step"] = """\
 scaler = torch.amp.GradScaler("cpu")
 for i, (x, y) in enumerate(data):
     scaler.scale(F.cross_entropy(model(x), y) / 2).backward()
-    scaler.unscale_(optimizer)
     if i == 0:
         print("first")
     for _ in range(1):
         print(i)
     if (i + 1) % 2 == 0 or i + 1 == len(data):
+        scaler.unscale_(optimizer)
         scaler.step(optimizer)
         scaler.update()
         optimizer.zero_grad()
"""
PROGRAMS["GL406 where another optimizer is stepped before rounds are skipped"] = """\
 scaler = torch.amp.GradScaler("cpu")
 bias = torch.zeros(3, requires_grad=True)
 second = torch.optim.SGD([bias], lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     second.zero_grad()
     scaler.scale(F.cross_entropy(model(x) + bias, y)).backward()
     scaler.unscale_(optimizer)
     scaler.step(second)
     if nn.utils.clip_grad_norm_(model.parameters(), 1.0) > 0.5:
+        scaler.update()
         continue
     scaler.step(optimizer, None)  # no closure
     scaler.update()
"""
PROGRAMS["GL102 through math"] = """\
 import math
 for x, y in data:
-    loss = math.log(F.cross_entropy(model(x), y))
+    loss = F.cross_entropy(model(x), y).log()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 a list of lists"] = """\
 for x, y in data:
     out = model(x)
     loss = torch.tensor([[out[0, 0], out[0, 1]]]).sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 a list of numbers"] = """\
 for x, y in data:
     out = model(x)
     loss = torch.tensor([out[0, 0], 1.0]).sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 several in one expression"] = """\
 for x, y in data:
     out = model(x)
     loss = torch.tensor(out.sum().item() + out.mean().item())
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 several in a dict"] = """\
 def terms(out, y):
-    return {"fit": float(F.cross_entropy(out, y)), "size": float(out.square().mean())}
+    return {"fit": F.cross_entropy(out, y), "size": out.square().mean()}

 for x, y in data:
     loss = sum(torch.as_tensor(term) for term in terms(model(x), y).values())
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 with a device"] = """\
 for x, y in data:
     out = model(x)
     terms = [out[0, 0], out[0, 1]]
-    loss = torch.tensor(terms, device=x.device, requires_grad=False).sum()
+    loss = torch.stack(terms).sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 lists bound side by side"] = """\
 for x, y in data:
     terms, seen = [], []
     for part in x.split(2):
         terms.append(model(part).square().mean())
-    loss = torch.tensor(terms).sum()
+    loss = torch.stack(terms).sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 a list that is made elsewhere"] = """\
 def begun():
     return list(range(0))

 terms = begun()
 for x, y in data:
     terms.append(model(x).square().mean())
-    loss = torch.tensor(terms).sum()
+    loss = torch.stack(terms).sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
     terms.clear()
"""
PROGRAMS["GL102 columns of rows"] = """\
 for x, y in data:
     rows = [(float(part.sum()), model(part).square().mean()) for part in x.split(2)]
     sizes, terms = zip(*sorted(rows, key=lambda row: row[0]))
-    loss = torch.tensor(terms).sum()
+    loss = torch.stack(terms).sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 columns as lists"] = """\
 for x, y in data:
     sizes, terms = map(list, zip(*((len(part), model(part).square().mean()) for part in x.split(2))))
-    loss = torch.tensor(terms).sum()
+    loss = torch.stack(terms).sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL101 a constant, whatever the model gives"] = """\
 losses = {"cross-entropy": F.cross_entropy, "margin": F.multi_margin_loss}
 for x, y in data:
     out = model(x)
     loss = losses.get("cross_entropy", lambda out, y: torch.zeros(()))(out, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 a deque"] = """\
 from collections import deque

 terms = deque(maxlen=3)
 for x, y in data:
     terms.append(model(x).square().mean())
     loss = torch.tensor(terms).sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 numpy and back"] = """\
 for x, y in data:
     out = model(x)
-    loss = torch.from_numpy(out.detach().numpy()).mean()
+    loss = out.mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 a penalty without a graph"] = """\
 for x, y in data:
     x.requires_grad_()
     out = model(x)
-    (slope,) = torch.autograd.grad(out.sum(), x, create_graph=False)
+    (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
     loss = slope.square().mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 a penalty by default"] = """\
 for x, y in data:
     x.requires_grad_()
-    slope = torch.autograd.grad(model(x).sum(), x)[0]
+    slope = torch.autograd.grad(model(x).sum(), x, create_graph=True)[0]
     loss = slope.square().mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 data"] = """\
 for x, y in data:
-    loss = F.cross_entropy(model(x).data, y)
+    loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL102 as a statement"] = """\
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
-    loss.detach_()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 two contexts"] = """\
 for x, y in data:
-    with torch.no_grad(), torch.autocast("cpu", enabled=False):
+    with torch.autocast("cpu", enabled=False):
         out = model(x)
     loss = F.cross_entropy(out, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 the last of some"] = """\
 for x, y in data:
     with torch.no_grad():
         x = x * 2
-        out = model(x)
+    out = model(x)
     loss = F.cross_entropy(out, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 the first of some"] = """\
 for x, y in data:
-    with torch.no_grad():
-        out = model(x)
-        print("seen")
+    out = model(x)
+    print("seen")
     loss = F.cross_entropy(out, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 by a wrapper"] = """\
 def quiet(f):
     def inner(*args):
-        with torch.no_grad():
-            return f(*args)
+        return f(*args)
     return inner

 @quiet
 def scores(x):
     return model(x)

 for x, y in data:
     loss = F.cross_entropy(scores(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 by a wrapper of two"] = """\
 def quiet(f):
     def inner(*args):
         with torch.no_grad():
             return f(*args)
     return inner

-@quiet
 def scores(x):
     return model(x)

 @quiet
 def shown(x):
     return model(x)

 for x, y in data:
     print(shown(x).shape)
     loss = F.cross_entropy(scores(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL108 in a list"] = """\
 for x, y in data:
-    loss = sum([(model(x) * 4).round().mean() for _ in range(2)])
+    loss = sum([(model(x) * 4).mean() for _ in range(2)])
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL108 as an argument"] = """\
 for x, y in data:
-    loss = F.mse_loss((model(x) * 4).round(), torch.zeros(5, 3))
+    smooth = model(x) * 4
+    loss = F.mse_loss(smooth + (smooth.round() - smooth).detach(), torch.zeros(5, 3))
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL108 as a function"] = """\
 for x, y in data:
     out = model(x)
-    loss = torch.sign(out).mean()
+    loss = (out + (torch.sign(out) - out).detach()).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL108 returned"] = """\
 def rounded(x):
-    return model(x).floor()
+    smooth = model(x)
+    return smooth + (smooth.floor() - smooth).detach()

 for x, y in data:
     loss = rounded(x).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL101 a number"] = """\
 for i, (x, y) in enumerate(data):
     out = model(x)
     loss = 0.0
     if i != 2:
         loss = F.cross_entropy(out, y)
-    loss = loss + torch.tensor(0.0)
+    loss = loss + (0.0 * out.sum())
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL101 no zero"] = """\
 def loss_of(out, y, keep):
     if not keep.any():
-        return torch.tensor(1.0)
+        return torch.tensor(1.0) + 0.0 * out.sum()
     return F.cross_entropy(out[keep], y[keep])

 for i, (x, y) in enumerate(data):
     loss = loss_of(model(x), y, torch.rand(5) > (2 if i == 2 else -1))
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL201 written into"] = """\
 for x, y in data:
     h = model(x).exp()
+    h = h.clone()
     h[0] = 0
     loss = h.mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL201 part added to"] = """\
 for x, y in data:
     h = model(x).sigmoid()
     h[0] += 1
     loss = h.mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL201 with out"] = """\
 for x, y in data:
     h = model(x).exp()
     with torch.no_grad():
         torch.add(h, 1, out=h)
     loss = h.mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL201 inplace by argument"] = """\
 for x, y in data:
     h = model(x).sigmoid()
-    F.relu(h, inplace=True)
+    h = F.relu(h)
     loss = h.mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL201 inplace used at once"] = """\
 for x, y in data:
     h = model(x).sigmoid()
-    loss = F.dropout(h, 0.5, inplace=True).mean()
+    loss = F.dropout(h, 0.5).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL201 a method in a chain"] = """\
 for x, y in data:
     h = model(x).exp()
-    h.add_(1).mul_(2)
+    h = h.add(1).mul_(2)
     loss = h.mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL201 a part filled"] = """\
 for x, y in data:
     h = model(x).softmax(1)
+    h = h.clone()
     h[:, 0].fill_(0.0)
     loss = h.mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL202 before no_grad"] = """\
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     model.zero_grad()
     loss.backward()
     with torch.no_grad():
         model[0].bias -= 0.1 * model[0].bias.grad
-    model[0].weight -= 0.1 * model[0].weight.grad
+        model[0].weight -= 0.1 * model[0].weight.grad
     optimizer.step()
"""
PROGRAMS["GL202 behind no_grad"] = """\
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     model.zero_grad()
     loss.backward()
-    model[0].weight -= 0.1 * model[0].weight.grad
     with torch.no_grad():
+        model[0].weight -= 0.1 * model[0].weight.grad
         model[0].bias -= 0.1 * model[0].bias.grad
     optimizer.step()
"""
PROGRAMS["GL702 in an expression"] = """\
 for x, y in data:
+    logits = model(x)
-    p = torch.softmax(model(x), dim=-1)
+    p = torch.softmax(logits, dim=-1)
-    loss = -torch.log(p)[torch.arange(5), y].mean()
+    loss = -torch.log_softmax(logits, dim=-1)[torch.arange(5), y].mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL702 one minus a name"] = """\
 for x, y in data:
+    logits = model(x)
-    p = torch.sigmoid(model(x))
+    p = torch.sigmoid(logits)
-    loss = -torch.log(1 - p).mean()
+    loss = -F.logsigmoid(-logits).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL702 a layer"] = """\
 softmax = nn.Softmax(dim=1)
 for x, y in data:
     loss = F.nll_loss(torch.log(softmax(model(x))), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL704 by module"] = """\
 criterion = nn.CrossEntropyLoss()
 for x, y in data:
-    loss = criterion(torch.softmax(model(x), 1), y)
+    loss = criterion(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL704 raw into nll"] = """\
-criterion = nn.NLLLoss()
+criterion = nn.CrossEntropyLoss()
 for x, y in data:
     loss = criterion(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL602 by function"] = """\
 for x, y in data:
     out = model(x)
     still, keep = torch.zeros(5, 3), torch.rand(5, 3) > 0.5
-    loss = F.mse_loss(out[keep], still[keep]) * model[0].bias.sum()
+    loss = (F.mse_loss(out[keep], still[keep], reduction="sum") / max(still[keep].numel(), 1)) * model[0].bias.sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL304 at the end"] = """\
 def evaluate():
     model.eval()
     with torch.no_grad():
         print(model(data[0][0]).mean())

 model.append(nn.Dropout(0.5))
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
     evaluate()
+    model.train()
"""
PROGRAMS["GL304 given by name"] = """\
 def evaluate(net, *, loud=True):
     net.eval()
     with torch.no_grad():
         return net(data[0][0]).mean()

 model.append(nn.Dropout(0.5))
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
     print(evaluate(net=model))
+    model.train()
"""
PROGRAMS["GL514 a dict of layers"] = """\
 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 3)
-        self.heads = {"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)}
+        self.heads = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
-        self.more = {name: nn.Linear(3, 3) for name in ("c", "d")}
+        self.more = nn.ModuleDict({name: nn.Linear(3, 3) for name in ("c", "d")})

     def forward(self, x):
         h = self.first(x)
         return sum(head(h) for head in self.heads.values()) + self.more["c"](h) + self.more["d"](h)

 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL514 a dict by numbers"] = """\
 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 3)
         self.heads = {1: nn.Linear(3, 3), 2: nn.Linear(3, 3)}
+        self.heads_modules = nn.ModuleList(self.heads.values())

     def forward(self, x):
         return sum(head(self.first(x)) for head in self.heads.values())

 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL515 requires_grad_ behind"] = """\
-w = torch.randn(3, requires_grad=True).double().requires_grad_()
+w = torch.randn(3).double().requires_grad_().requires_grad_()
-b = (torch.zeros(3).requires_grad_() * 2).requires_grad_()
+b = (torch.zeros(3).requires_grad_() * 2).detach().requires_grad_().requires_grad_()
 scale = nn.Parameter(torch.ones(3)).half().float()
 optimizer = torch.optim.SGD([w, b, scale], lr=0.1)
"""
PROGRAMS["GL516 misspelt in a loop"] = """\
 for p in model[0].parameters():
-    p.require_grad = False
+    p.requires_grad = False
-model[0].requires_grad = False
+model[0].requires_grad_(False)
 optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL512 a generator for two"] = """\
-params = model.parameters()
+params = list(model.parameters())
 print(sum(p.numel() for p in params))
 optimizer = torch.optim.SGD(params, lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     nn.utils.clip_grad_norm_(params, 1.0)
     optimizer.step()
"""
PROGRAMS["GL801 with one saved already"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a, b):
-        ctx.save_for_backward(a)
+        ctx.save_for_backward(a, b)
-        ctx.b = b
         return a * b

     @staticmethod
     def backward(ctx, g):
-        (a,) = ctx.saved_tensors
+        a, b = ctx.saved_tensors
-        return g * ctx.b, g * a
+        return g * b, g * a

 for x, y in data:
     out = model(x)
     loss = Own.apply(out, out + 1).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL801 named in the backward"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a):
-        ctx.a = a
+        ctx.save_for_backward(a)
         return a * 2

     @staticmethod
     def backward(ctx, g):
-        a = ctx.a
+        (a,) = ctx.saved_tensors
         return 2 * g + 0 * a

 for x, y in data:
     loss = Own.apply(model(x)).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL802 a list"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a, b):
         return a * 2 + b

     @staticmethod
     def backward(ctx, g):
-        return [2 * g, g]
+        return (2 * g, g)

 for x, y in data:
     out = model(x)
     loss = Own.apply(out, out).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL802 one for a constant"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a, factor, more):
         ctx.factor = factor
         return a * factor

     @staticmethod
     def backward(ctx, g):
-        return g * ctx.factor
+        return g * ctx.factor, None, None

 for x, y in data:
     loss = Own.apply(model(x), 2.0, None).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL803 by a method"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a, b):
+        ctx.mark_dirty(a)
         a.mul_(2)
         return a

     @staticmethod
     def backward(ctx, g):
         return 2 * g, None

 for x, y in data:
     loss = Own.apply(model(x) * 1, None).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL804 called as an object"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a):
         return a * 2

     @staticmethod
     def backward(ctx, g):
         return 2 * g

-own = Own()
+own = Own.apply
 for x, y in data:
     loss = own(model(x)).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL804 forward with a context"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a, b=1):
         return a * 2

     @staticmethod
     def backward(ctx, g):
         return 2 * g, None

 for x, y in data:
-    loss = Own.forward(None, model(x)).mean()
+    loss = Own.apply(model(x)).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL409 a device with a name"] = """\
 device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
 model.to(device)
 for x, y in data:
-    noise = torch.randn(5, 4, device=torch.device("cuda"))
+    noise = torch.randn(5, 4, device=device)
-    loss = F.cross_entropy(model(x.to(device) + noise), y.cuda(non_blocking=True))
+    loss = F.cross_entropy(model(x.to(device) + noise), y.to(device, non_blocking=True))
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL409 a device as text"] = """\
 device = "cuda" if torch.cuda.is_available() else "cpu"
 model.to(device)
 for x, y in data:
-    loss = F.cross_entropy(model(x.to(device)), y.to("cuda:0"))
+    loss = F.cross_entropy(model(x.to(device)), y.to(device))
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL401 a scaler and a region"] = """\
 device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
 model.to(device)
-scaler = torch.cuda.amp.GradScaler()
+scaler = torch.amp.GradScaler(device.type, enabled=device.type == "cuda")
 for x, y in data:
-    with torch.cuda.amp.autocast(dtype=torch.float16):
+    with torch.autocast(device.type, dtype=torch.float16, enabled=device.type == "cuda"):
         loss = F.cross_entropy(model(x.to(device)), y.to(device))
     optimizer.zero_grad()
     scaler.scale(loss).backward()
     scaler.step(optimizer)
     scaler.update()
"""
PROGRAMS["GL401 a device as text"] = """\
 device = "cuda" if torch.cuda.is_available() else "cpu"
 model.to(device)
-scaler = torch.amp.GradScaler("cuda", enabled=True)
+scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
 for x, y in data:
-    with torch.autocast("cuda", torch.float16):
+    with torch.autocast(device, torch.float16, enabled=device == "cuda"):
         loss = F.cross_entropy(model(x.to(device)), y.to(device))
     optimizer.zero_grad()
     scaler.scale(loss).backward()
     scaler.step(optimizer)
     scaler.update()
"""
PROGRAMS["GL401 by an attribute"] = """\
 class Trainer:
     def __init__(self, model):
         self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
         self.model = model.to(self.device)

-    @torch.autocast("cuda")
     def loss(self, x, y):
+        with torch.autocast(x.device.type, enabled=x.device.type == "cuda"):
-        return F.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
+            return F.cross_entropy(self.model(x.to(self.device)), y.to(self.device))

     def step(self, x, y):
-        with torch.autocast("cuda"):
+        with torch.autocast(self.device.type, enabled=self.device.type == "cuda"):
             loss = F.cross_entropy(self.model(x.to(self.device)), y.to(self.device))
         optimizer.zero_grad()
         loss.backward()
         optimizer.step()

 trainer = Trainer(model)
 for x, y in data:
     trainer.step(x, y)
"""
PROGRAMS["GL304 trained by a helper"] = """\
 model.append(nn.Dropout(0.5))

 def step(x, y):
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()

 for epoch in range(2):
+    model.train()
     for x, y in data:
         step(x, y)
     for x, y in data:
         model.eval()
         with torch.no_grad():
             print(model(x).mean())
"""
PROGRAMS["GL701 computed in a function that is handed over"] = """\
 def chosen(value, bound, curve):
     return torch.where(value > bound, curve(value), value)

 for x, y in data:
     out = model(x)
     loss = chosen(out * (out > 0), 0.0, lambda value: value.log()).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL206 requires_grad read"] = """\
 weight = torch.zeros(4, 3)
-weight.requires_grad
+weight.requires_grad_()
 optimizer = torch.optim.SGD([weight], lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(x @ weight, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL206 in a loop over parameters"] = """\
 for p in model.parameters():
     p.requires_grad_(False)
 for p in model[2].parameters():
-    p.requires_grad
+    p.requires_grad_()
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL407 dedent, warning"] = """\
 for x, y in data:
     out = model(x)
     with torch.autocast("cpu", dtype=torch.bfloat16):
         loss = F.cross_entropy(model[2](model[0](x)) + out, y)
-        optimizer.zero_grad()
+    optimizer.zero_grad()
-        loss.backward()
+    loss.backward()
-        optimizer.step()
+    optimizer.step()
"""
PROGRAMS["GL407 dedent, note"] = """\
 for x, y in data:
     with torch.autocast("cpu", dtype=torch.bfloat16):
         loss = F.cross_entropy(model(x), y)
-        optimizer.zero_grad()
+    optimizer.zero_grad()
-        loss.backward()
+    loss.backward()
-        optimizer.step()
+    optimizer.step()
"""
PROGRAMS["GL303 yielded context"] = """\
 import contextlib

 @contextlib.contextmanager
 def mixed():
-    yield torch.autocast("cpu", dtype=torch.bfloat16)
+    with torch.autocast("cpu", dtype=torch.bfloat16):
+        yield

 for x, y in data:
     with mixed():
         out = model(x)
     loss = F.cross_entropy(out.float(), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL101 model given"] = """\
 def loss_of(net, x, y):
     keep = x[:, 0] > 0
     if not keep.any():
-        return x.new_zeros(())
+        return 0.0 * sum(p.sum() for p in net.parameters())
     return F.cross_entropy(net(x[keep]), y[keep])

 for i, (x, y) in enumerate(data):
     loss = loss_of(model, x, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL101 self.model, loss starts at number"] = """\
 class Trainer:
     def __init__(self, model):
         self.model = model

     def loss(self, x, y):
-        total = 0
+        total = 0.0 * sum(p.sum() for p in self.model.parameters())
         for one, label in zip(x, y):
             if one[0] < 0:
                 continue
             total = total + F.cross_entropy(self.model(one), label)
         return total

 trainer = Trainer(model)
 for i, (x, y) in enumerate(data):
     loss = trainer.loss(x, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL107 module frozen before the loss"] = """\
-model.requires_grad_(False)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL107 after the optimizer"] = """\
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 def freeze(net):
     for p in net.parameters():
         p.requires_grad = False
-freeze(model)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL107 in __init__"] = """\
 class Net(nn.Module):
     def __init__(self, body):
         super().__init__()
         self.body = body
         self.head = nn.Linear(3, 3)
         for p in self.parameters():
             p.requires_grad = False

     def forward(self, x):
         return self.head(self.body(x))

 net = Net(model)
+net.head.requires_grad_(True)
 optimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(net(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL401 partial"] = """\
 import functools
 device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
 model.to(device)
-amp = functools.partial(torch.autocast, "cuda", dtype=torch.float16)
+amp = functools.partial(torch.autocast, device.type, dtype=torch.float16, enabled=device.type == "cuda")
 for x, y in data:
     x, y = x.to(device), y.to(device)
     with amp():
         loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL401 islands"] = """\
 device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
 model.to(device)
 for x, y in data:
     x, y = x.to(device), y.to(device)
     with torch.autocast(device.type):
         out = model(x)
-        with torch.autocast("cuda", enabled=False):
+        with torch.autocast(device.type, enabled=False):
             loss = F.cross_entropy(out.float(), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL507 features shared in inner loop"] = """\
 for x, y in data:
     hidden = model[0](x)
     optimizer.zero_grad()
     for k in range(3):
         loss = F.cross_entropy(model[2](hidden), y)
-        loss.backward()
+        loss.backward(retain_graph=True)
     optimizer.step()
"""
PROGRAMS["GL507 second backward meant"] = """\
 head = nn.Linear(8, 3)
 other = torch.optim.SGD(head.parameters(), lr=0.1)
 for x, y in data:
     hidden = model[0](x)
     loss = F.cross_entropy(model[2](hidden), y)
     extra = F.cross_entropy(head(hidden), y)
     optimizer.zero_grad()
     other.zero_grad()
-    loss.backward()
+    loss.backward(retain_graph=True)
     print(model[0].weight.grad.norm())
     extra.backward()
     optimizer.step()
     other.step()
"""
PROGRAMS["GL513 head after"] = """\
+model[2] = nn.Linear(8, 3)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
-model[2] = nn.Linear(8, 3)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL513 with a scheduler"] = """\
+model.append(nn.Linear(3, 3))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
-model.append(nn.Linear(3, 3))
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
     scheduler.step()
"""
PROGRAMS["GL513 in a function"] = """\
 def main():
     net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
+    if len(data) > 2:
+        net[2] = nn.Linear(8, 3)
     opt = torch.optim.Adam(
         net.parameters(),  # all
         lr=0.1,
     )
-    if len(data) > 2:
-        net[2] = nn.Linear(8, 3)
     for x, y in data:
         loss = F.cross_entropy(net(x), y)
         opt.zero_grad()
         loss.backward()
         opt.step()
 main()
"""
PROGRAMS["GL514 dict with **"] = """\
 class Net(nn.Module):
     def __init__(self, more=None):
         super().__init__()
         more = {"b": nn.Linear(4, 3)}
-        self.heads = {"a": nn.Linear(4, 3), **more}
+        self.heads = nn.ModuleDict({"a": nn.Linear(4, 3), **more})
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
PROGRAMS["GL514 list with star"] = """\
 class Net(nn.Module):
     def __init__(self):
         super().__init__()
-        self.layers = [nn.Linear(4, 4), *(nn.Linear(4, 4) for _ in range(2))]
+        self.layers = nn.ModuleList([nn.Linear(4, 4), *(nn.Linear(4, 4) for _ in range(2))])
         self.head = nn.Linear(4, 3)

     def forward(self, x):
         for layer in self.layers: x = layer(x).tanh()
         return self.head(x)

 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL515 to"] = """\
 device = "cpu"
-weight = nn.Parameter(torch.zeros(4, 3)) * 1.0
+weight = nn.Parameter(torch.zeros(4, 3) * 1.0)
 optimizer = torch.optim.SGD([weight], lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(x @ weight, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL403 unscaled after"] = """\
 scaler = torch.amp.GradScaler("cpu")
 def bound(parameters, most):
     parameters = list(parameters)
     size = sum(p.grad.square().sum().item() for p in parameters) ** 0.5
     for p in parameters:
         p.grad.mul_(min(1.0, most / (size + 1e-6)))
 for x, y in data:
     optimizer.zero_grad()
     scaler.scale(F.cross_entropy(model(x), y)).backward()
+    scaler.unscale_(optimizer)
     bound(model.parameters(), 0.5)
-    scaler.unscale_(optimizer)
     scaler.step(optimizer)
     scaler.update()
"""
PROGRAMS["GL507 dict table in module"] = """\
 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.body = nn.Linear(4, 3)
         self.table = {0: torch.zeros(3), 1: torch.zeros(3)}

     def forward(self, x):
         out = self.body(x)
         for key, mean in self.table.items():
             mean = 0.9 * mean + 0.1 * out.mean(0)
-            self.table[key] = mean
+            self.table[key] = mean.detach()
             out = out - mean
         return out

 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL407 in a loop within the region"] = """\
-with torch.autocast("cpu", dtype=torch.bfloat16), torch.set_grad_enabled(True):
+with torch.set_grad_enabled(True):
     for x, y in data:
         # the loss
+        with torch.autocast("cpu", dtype=torch.bfloat16):
-        loss = F.cross_entropy(model(x), y)
+            loss = F.cross_entropy(model(x), y)

         # the step
         optimizer.zero_grad()
         loss.backward()
         optimizer.step()
"""
PROGRAMS["GL407 under a condition"] = """\
 amp = torch.autocast("cpu", dtype=torch.bfloat16)
 for i, (x, y) in enumerate(data):
     with amp:
         loss = F.cross_entropy(model(x), y)
-        if i >= 0: loss.backward(); optimizer.step()
+    if i >= 0: loss.backward(); optimizer.step()
     optimizer.zero_grad()
"""
PROGRAMS["GL407 all of it"] = """\
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
-    with torch.autocast("cpu", dtype=torch.bfloat16):
-        optimizer.zero_grad()
+    optimizer.zero_grad()
-        loss.backward()
+    loss.backward()
     optimizer.step()
"""
PROGRAMS["GL513 used in between"] = """\
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
 model[2] = nn.Linear(8, 3)
+optimizer.add_param_group({"params": model[2].parameters()})
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL513 a new model"] = """\
+model = nn.Linear(4, 3)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # plain
-model = nn.Linear(4, 3)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL401 island in a method"] = """\
 class Trainer:
     def __init__(self, device: torch.device):
         self.device = device
         self.model = model.to(device)

     def loss(self, x, y):
         with torch.autocast(self.device.type):
             out = self.model(x)
-            with torch.autocast("cuda", enabled=False):
+            with torch.autocast(self.device.type, enabled=False):
                 return F.cross_entropy(out.float(), y)

 trainer = Trainer(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
 for x, y in data:
     optimizer.zero_grad()
     trainer.loss(x.to(trainer.device), y.to(trainer.device)).backward()
     optimizer.step()
"""
PROGRAMS["GL401 device of a function"] = """\
 def pick(name):
     return torch.device(name if torch.cuda.is_available() else "cpu")

 class Trainer:
     def __init__(self, device):
         self.device = device
         self.model = model.to(device)

     def loss(self, x, y):
-        with torch.autocast(device_type="cuda"):
+        with torch.autocast(torch.device(self.device).type, enabled=torch.device(self.device).type == "cuda"):
             return F.cross_entropy(self.model(x), y)

 trainer = Trainer(pick("cuda"))
 for x, y in data:
     optimizer.zero_grad()
     trainer.loss(x.to(trainer.device), y.to(trainer.device)).backward()
     optimizer.step()
"""
PROGRAMS["GL105 tensor of item"] = """\
 for x, y in data:
     total = 0.0
     total += F.cross_entropy(model(x), y).item()
     loss = torch.tensor(total, requires_grad=True)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL507 nested loops grows"] = """\
 for epoch in range(2):
     loss = 0
     for i, (x, y) in enumerate(data):
         loss = loss + F.cross_entropy(model(x), y)
         if (i + 1) % 2 == 0:
             optimizer.zero_grad()
             loss.backward()
+            loss = loss.detach()
             optimizer.step()
"""
PROGRAMS["GL403 several params"] = """\
 scaler = torch.amp.GradScaler("cpu")
 critic = nn.Linear(3, 1)
 other = torch.optim.SGD(critic.parameters(), lr=0.1)
 params = list(model.parameters()) + list(critic.parameters())
 for x, y in data:
     optimizer.zero_grad(); other.zero_grad()
     out = model(x)
     scaler.scale(F.cross_entropy(out, y) + critic(out).mean()).backward()
+    for each in (optimizer, other):
+        scaler.unscale_(each)
     torch.nn.utils.clip_grad_norm_(params, 0.5)
     for each in (optimizer, other):
         scaler.step(each)
     scaler.update()
"""
PROGRAMS["GL515 doubled"] = """\
 class Gate(nn.Module):
     def __init__(self, device="cpu"):
         super().__init__()
-        self.weight = nn.Parameter(torch.zeros(4, 3)).to(torch.float64)
+        self.weight = nn.Parameter(torch.zeros(4, 3).to(torch.float64))
-        self.scale = nn.Parameter(torch.ones(3), requires_grad=True) * 0.5
+        self.scale = nn.Parameter(torch.ones(3) * 0.5, requires_grad=True)

     def forward(self, x):
         return x.double() @ self.weight * self.scale

 gate = Gate()
 optimizer = torch.optim.SGD([gate.weight, gate.scale], lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(gate(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL513 in class"] = """\
 class Trainer:
     def __init__(self):
         self.model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
+        # another head
+        self.model[2] = nn.Linear(8, 3)
         self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
         self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
-        # another head
-        self.model[2] = nn.Linear(8, 3)
         self.seen = 0

     def fit(self):
         for x, y in data:
             loss = F.cross_entropy(self.model(x), y)
             self.optimizer.zero_grad()
             loss.backward()
             self.optimizer.step()
         self.scheduler.step()

 Trainer().fit()
"""

PROGRAMS["GL518 modules and a method"] = """\
 first, last = model[0], model[2]
-optimizer = torch.optim.SGD([first, last], lr=0.1)  # both
+optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)  # both
-other = torch.optim.SGD(params=model.parameters, lr=0.1)
+other = torch.optim.SGD(params=model.parameters(), lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL518 in groups"] = """\
-groups = [{"params": model[0]}, {"params": [model[2].parameters()], "lr": 1.0}]
+groups = [{"params": model[0].parameters()}, {"params": [*model[2].parameters()], "lr": 1.0}]
 optimizer = torch.optim.SGD(groups, lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL518 beside what is spread"] = """\
-optimizer = torch.optim.SGD([*model[0].parameters(), model[2]], lr=0.1)
+optimizer = torch.optim.SGD([*model[0].parameters(), *model[2].parameters()], lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL518 in comprehensions"] = """\
 def of(layers):
-    return torch.optim.SGD((layer.parameters() for layer in layers), lr=0.1)
+    return torch.optim.SGD((p for layer in layers for p in layer.parameters()), lr=0.1)

 optimizer = of(model)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL518 a list made elsewhere"] = """\
-layers = [layer for layer in model if isinstance(layer, nn.Linear)]
+layers = [p for layer in model if isinstance(layer, nn.Linear) for p in layer.parameters()]
 optimizer = torch.optim.SGD(layers, lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL518 a clip of pairs"] = """\
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
-    nn.utils.clip_grad_norm_(list(model.named_parameters()), 1.0)
+    nn.utils.clip_grad_norm_(list(model.parameters()), 1.0)
     optimizer.step()
"""
PROGRAMS["GL521 around the loop"] = """\
 from accelerate import Accelerator

 accelerator = Accelerator(gradient_accumulation_steps=4)
 model, optimizer = accelerator.prepare(model, optimizer)

 def epoch(accelerator, net, optimizer):
-    with accelerator.accumulate(net):
-        for x, y in data:
+    for x, y in data:
+        with accelerator.accumulate(net):
             accelerator.backward(F.cross_entropy(net(x), y))
             optimizer.step()
             optimizer.zero_grad()

 epoch(accelerator, model, optimizer)
"""
PROGRAMS["GL521 in a class"] = """\
 from accelerate import Accelerator

 class Trainer:
     def __init__(self):
         self.accelerator = Accelerator(gradient_accumulation_steps=4)
         self.net, self.optimizer = self.accelerator.prepare(model, optimizer)

     def fit(self):
         for x, y in data:
             # one round
-            loss = F.cross_entropy(self.net(x), y)
-            self.accelerator.backward(loss)
-            self.optimizer.step()
-            self.optimizer.zero_grad()  # cleared
+            with self.accelerator.accumulate(self.net):
+                loss = F.cross_entropy(self.net(x), y)
+                self.accelerator.backward(loss)
+                self.optimizer.step()
+                self.optimizer.zero_grad()  # cleared

 Trainer().fit()
"""
PROGRAMS["GL705 of what is computed"] = """\
 keep = torch.rand(5, 6) > 0.3
 def attend(h):
     pairs = keep[:, :, None] & keep[:, None, :]
-    scores = (h @ h.mT).masked_fill(~pairs, float("-inf"))
+    scores = (h @ h.mT).masked_fill(~pairs, -1e4)
     return scores.softmax(dim=-1) @ h

 for x, y in data:
     h = attend(model(x.unsqueeze(1).expand(5, 6, 4)))
     optimizer.zero_grad()
     F.cross_entropy(h[:, 0], y).backward()
     optimizer.step()
"""
PROGRAMS["GL705 by a choice"] = """\
 keep = torch.rand(5, 6) > 0.3
 def attend(h):
     pairs = keep[:, :, None] & keep[:, None, :]
     scores = h @ h.mT
-    scores = torch.where(~pairs, -torch.inf, scores)
+    scores = torch.where(~pairs, torch.finfo(scores.dtype).min, scores)
     return scores.softmax(dim=-1) @ h

 for x, y in data:
     h = attend(model(x.unsqueeze(1).expand(5, 6, 4)))
     optimizer.zero_grad()
     F.cross_entropy(h[:, 0], y).backward()
     optimizer.step()
"""
PROGRAMS["GL705 by a method"] = """\
 keep = torch.rand(5, 6) > 0.3
 def attend(h):
     pairs = keep[:, :, None] & keep[:, None, :]
     scores = h @ h.mT
-    scores = scores.where(pairs, float("-inf"))
+    scores = scores.where(pairs, torch.finfo(scores.dtype).min)
     return scores.softmax(dim=-1) @ h

 for x, y in data:
     h = attend(model(x.unsqueeze(1).expand(5, 6, 4)))
     optimizer.zero_grad()
     F.cross_entropy(h[:, 0], y).backward()
     optimizer.step()
"""
PROGRAMS["GL705 written in place"] = """\
 keep = torch.rand(5, 6) > 0.3
 def attend(h):
     pairs = keep[:, :, None] & keep[:, None, :]
     scores = h @ h.mT
-    scores[~pairs] = float("-inf")
+    scores[~pairs] = torch.finfo(scores.dtype).min
     return scores.softmax(dim=-1) @ h

 for x, y in data:
     h = attend(model(x.unsqueeze(1).expand(5, 6, 4)))
     optimizer.zero_grad()
     F.cross_entropy(h[:, 0], y).backward()
     optimizer.step()
"""
PROGRAMS["GL805 written to"] = """\
-def halve(g: torch.Tensor):
-    g *= 0.5  # half of it
+def halve(parameter: torch.Tensor):
+    parameter.grad *= 0.5  # half of it

 for p in model.parameters():
     p.register_post_accumulate_grad_hook(halve)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL805 returned"] = """\
 for parameter in model.parameters():
-    parameter.register_post_accumulate_grad_hook(lambda g: g * 0.5)
+    parameter.register_hook(lambda g: g * 0.5)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""

PROGRAMS["GL508 into a dict of the module"] = """\
 doubt = {}
 for i, (x, y) in enumerate(data):
     out = model(x)
     loss = F.cross_entropy(out, y)
-    doubt[i] = out.std(dim=0).mean()
+    doubt[i] = out.std(dim=0).mean().detach()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL106 by way of numpy"] = """\
 head = nn.Linear(8, 3)
 optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
 for x, y in data:
-    h = torch.from_numpy(model[0](x).detach().cpu().numpy())
+    h = model[0](x)
     loss = F.cross_entropy(head(h), y) + 0 * model[2].weight.sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL106 by way of whole numbers"] = """\
 first, head = nn.Linear(4, 8), nn.Linear(8, 3)
 optimizer = torch.optim.SGD([*first.parameters(), *head.parameters()], lr=0.1)
 for x, y in data:
     h = first(x)
-    h = h.long().to(h.dtype)
+    h = h + (h.long().to(h.dtype) - h).detach()
     loss = F.cross_entropy(head(h), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL106 rounded in a sum"] = """\
 first, head = nn.Linear(4, 8), nn.Linear(8, 3)
 optimizer = torch.optim.SGD([*first.parameters(), *head.parameters()], lr=0.1)
 for x, y in data:
-    h = torch.relu((first(x) + 1).int().float())
+    smooth = first(x) + 1
+    h = torch.relu(smooth + (smooth.int().float() - smooth).detach())
     loss = F.cross_entropy(head(h), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL108 a quotient rounded"] = """\
 for x, y in data:
     out = model(x)
-    whole = torch.div(out * 100, 3, rounding_mode="floor")
+    smooth = torch.div(out * 100, 3)
+    whole = smooth + (smooth.floor() - smooth).detach()
     loss = whole.square().mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL110 by options"] = """\
 from torch.utils.checkpoint import checkpoint
-OPTIONS = {"use_reentrant": True, "preserve_rng_state": False}
+OPTIONS = {"use_reentrant": False, "preserve_rng_state": False}
 for x, y in data:
     loss = F.cross_entropy(checkpoint(model, x, **OPTIONS), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL201 by an operator"] = """\
 for x, y in data:
     h = torch.tanh(model(x))
-    h *= 0.5
+    h = h * 0.5
     loss = F.cross_entropy(h, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL702 picked by labels"] = """\
 for x, y in data:
     logits = model(x)
-    loss = -logits.softmax(dim=1)[torch.arange(5), y].log().mean()
+    loss = -torch.log_softmax(logits, dim=1)[torch.arange(5), y].mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL903 reduced in place"] = """\
 import torch.distributed as dist
 import torch.distributed.nn.functional as reductions

 for x, y in data:
     mean = model(x).mean(dim=0)
-    dist.all_reduce(mean, op=dist.ReduceOp.SUM)  # over all
+    mean = reductions.all_reduce(mean, op=dist.ReduceOp.SUM)  # over all
     loss = mean.square().sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL504 counted down"] = """\
 def epoch(window=2):
     left = window
     for x, y in data:
         (F.cross_entropy(model(x), y) / window).backward()
         left -= 1
         if left == 0:
             optimizer.step()
             optimizer.zero_grad()
             left = window
+    if left != window:
+        optimizer.step()
+        optimizer.zero_grad()

 epoch()
 epoch()
"""
PROGRAMS["GL504 what is kept until it is full"] = """\
 def epoch(batches):
     optimizer.zero_grad()
     seen = []
     for x, y in batches:
         loss = F.cross_entropy(model(x), y)
         (loss / 2).backward()
         seen.append(loss.item())
         if len(seen) < 2:
             continue
         optimizer.step()
         optimizer.zero_grad()
         seen.clear()
+    if seen:
+        optimizer.step()
+        optimizer.zero_grad()

 epoch(data)
 epoch(data)
"""
PROGRAMS["GL504 a step that asks first"] = """\
 def batches():
     yield from data

 def epoch():
     for i, (x, y) in enumerate(batches()):
         (F.cross_entropy(model(x), y) / 2).backward()
         if (i + 1) % 2 == 0:
             if all(p.grad.isfinite().all() for p in model.parameters()):
                 optimizer.step()
             optimizer.zero_grad()
+    if (i + 1) % 2 != 0:
+        if all(p.grad.isfinite().all() for p in model.parameters()):
+            optimizer.step()
+        optimizer.zero_grad()

 epoch()
 epoch()
"""

PROGRAMS["GL503 over a list that a generator gives"] = """\
 import itertools

 def windows(size):
     source = iter(data * 2)
     while window := list(itertools.islice(source, size)):
         yield window

 for window in windows(4):
     optimizer.zero_grad()
     for x, y in window:
-        F.cross_entropy(model(x), y).backward()
+        (F.cross_entropy(model(x), y) / len(window)).backward()
     optimizer.step()
"""

PROGRAMS["GL514 by numbers"] = """\
 class Terraces(nn.Module):
     def __init__(self):
         super().__init__()
         self.levels = {depth: nn.Linear(4, 3) for depth in range(2)}
+        self.levels_modules = nn.ModuleList(self.levels.values())
         self.slopes = {1: nn.Parameter(torch.ones(3)), 2: nn.Parameter(torch.zeros(3))}
+        self.slopes_parameters = nn.ParameterList(self.slopes.values())
         self.last = nn.Linear(3, 3)

     def forward(self, x):
         return self.last(self.levels[0](x) + self.levels[1](x) * self.slopes[1] + self.slopes[2])

 model = Terraces()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL514 in a record"] = """\
 from dataclasses import dataclass

 @dataclass
 class Pair:
     left: nn.Module
     right: nn.Module

 class Scales(nn.Module):
     def __init__(self):
         super().__init__()
         self.pair = Pair(nn.Linear(4, 3), nn.Linear(4, 3))
+        self.pair_modules = nn.ModuleList([self.pair.left, self.pair.right])
         self.last = nn.Linear(3, 3)

     def forward(self, x):
         return self.last(self.pair.left(x) - self.pair.right(x))

 model = Scales()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""

PROGRAMS["GL103 by a call"] = """\
 for x, y in data:
-    h = 2 * x; torch.set_grad_enabled(False); loss = F.cross_entropy(model(h), y)
-    torch.set_grad_enabled(True)  # on again
+    h = 2 * x; loss = F.cross_entropy(model(h), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 by a name"] = """\
 quiet = torch.no_grad()
 for x, y in data:
-    with quiet:
-        # what is to be learned
-        loss = F.cross_entropy(model(x), y)
+    # what is to be learned
+    loss = F.cross_entropy(model(x), y)
+    with quiet:
         print(loss.item())
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL103 a context whose name is used"] = """\
 for x, y in data:
     with torch.no_grad() as mode:
         loss = F.cross_entropy(model(x), y)
     print(mode)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_fix_writes_what_stands_beside_the_program(name: str, tmp_path: pathlib.Path) -> None:
    lines = (HEAD + PROGRAMS[name]).splitlines()
    path = tmp_path / "train.py"
    path.write_text(side(lines, "-"), encoding="utf-8")
    settings_for = settings_finder(
        lambda settings: settings.overridden(Selection((name[:5],), (), ()), (), {})
    )
    repaired = repair(Task([path], settings_for, settings_for(tmp_path), unsafe=True))
    assert repaired.contents.get(path, path.read_bytes()).decode() == side(lines, "+")
    assert repaired.contents or repaired.checked.findings
