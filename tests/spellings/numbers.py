"""Spellings of fixes: means and numbers (GL6, GL7)."""

PROGRAMS: dict[str, str] = {}
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
-    loss = F.nll_loss(torch.log(softmax(model(x))), y)
+    loss = F.nll_loss(torch.log(softmax(model(x)).clamp(min=1e-12)), y)
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
PROGRAMS["GL702 picked by labels"] = """\
 for x, y in data:
     logits = model(x)
-    loss = -logits.softmax(dim=1)[torch.arange(5), y].log().mean()
+    loss = -torch.log_softmax(logits, dim=1)[torch.arange(5), y].mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
