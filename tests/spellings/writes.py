"""Spellings of fixes: writes in place (GL2)."""

PROGRAMS: dict[str, str] = {}
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
