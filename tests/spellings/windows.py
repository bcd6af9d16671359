"""Spellings of fixes: gradients that are cleared and accumulated (GL501 to GL506)."""

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
