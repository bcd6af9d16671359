"""Spellings of fixes: grad mode and train mode (GL3)."""

PROGRAMS: dict[str, str] = {}
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
