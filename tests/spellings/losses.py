"""Spellings of fixes: losses without a gradient, but for detached ones (GL101, GL103 to GL110)."""

PROGRAMS: dict[str, str] = {}
PROGRAMS["GL101 a constant, whatever the model gives"] = """\
 losses = {"cross-entropy": F.cross_entropy, "margin": F.multi_margin_loss}
 for x, y in data:
     out = model(x)
     loss = losses.get("cross_entropy", lambda out, y: torch.zeros(()))(out, y)
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
PROGRAMS["GL105 tensor of item"] = """\
 for x, y in data:
     total = 0.0
     total += F.cross_entropy(model(x), y).item()
     loss = torch.tensor(total, requires_grad=True)
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
