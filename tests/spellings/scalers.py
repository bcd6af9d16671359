"""Spellings of fixes: gradient scalers (GL403 to GL406)."""

PROGRAMS: dict[str, str] = {}
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
