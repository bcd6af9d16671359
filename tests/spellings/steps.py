"""Spellings of fixes: backwards and steps (GL507 to GL511)."""

PROGRAMS: dict[str, str] = {}
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
-    history += [loss]
+    history += [loss.detach()]
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
