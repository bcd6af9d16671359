"""Spellings of fixes: mixed precision and devices (GL401, GL407 to GL409)."""

PROGRAMS: dict[str, str] = {}
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
