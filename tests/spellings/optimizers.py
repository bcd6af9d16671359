"""Spellings of fixes: what optimizers hold (GL512, GL513)."""

PROGRAMS: dict[str, str] = {}
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
PROGRAMS["GL520 joined by plus"] = """\
 head = nn.Linear(3, 3)
 first = torch.optim.SGD(list(model.parameters()), lr=0.1)
-second = torch.optim.SGD(list(model.parameters()) + list(head.parameters()), lr=0.1)
+second = torch.optim.SGD(list(head.parameters()), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(head(model(x)), y)
     first.zero_grad()
     second.zero_grad()
     loss.backward()
     first.step()
     second.step()
"""
PROGRAMS["GL520 in groups"] = """\
 head = nn.Linear(3, 3)
-first = torch.optim.SGD([{"params": model.parameters()}, {"params": head.parameters()}], lr=0.1)
+first = torch.optim.SGD([{"params": model.parameters()}], lr=0.1)
 second = torch.optim.SGD(head.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(head(model(x)), y)
     first.zero_grad()
     second.zero_grad()
     loss.backward()
     first.step()
     second.step()
"""
