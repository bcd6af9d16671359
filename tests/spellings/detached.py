"""Spellings of fixes: detached and copied losses (GL102)."""

PROGRAMS: dict[str, str] = {}
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
