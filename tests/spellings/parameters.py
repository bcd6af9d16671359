"""Spellings of fixes: parameters and modules (GL514 to GL521)."""

PROGRAMS: dict[str, str] = {}
PROGRAMS["GL514 a dict of layers"] = """\
 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 3)
-        self.heads = {"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)}
+        self.heads = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
-        self.more = {name: nn.Linear(3, 3) for name in ("c", "d")}
+        self.more = nn.ModuleDict({name: nn.Linear(3, 3) for name in ("c", "d")})

     def forward(self, x):
         h = self.first(x)
         return sum(head(h) for head in self.heads.values()) + self.more["c"](h) + self.more["d"](h)

 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL514 a dict by numbers"] = """\
 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 3)
         self.heads = {1: nn.Linear(3, 3), 2: nn.Linear(3, 3)}
+        self.heads_modules = nn.ModuleList(self.heads.values())

     def forward(self, x):
         return sum(head(self.first(x)) for head in self.heads.values())

 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL515 requires_grad_ behind"] = """\
-w = torch.randn(3, requires_grad=True).double().requires_grad_()
+w = torch.randn(3).double().requires_grad_().requires_grad_()
-b = (torch.zeros(3).requires_grad_() * 2).requires_grad_()
+b = (torch.zeros(3).requires_grad_() * 2).detach().requires_grad_().requires_grad_()
 scale = nn.Parameter(torch.ones(3)).half().float()
 optimizer = torch.optim.SGD([w, b, scale], lr=0.1)
"""
PROGRAMS["GL516 misspelt in a loop"] = """\
 for p in model[0].parameters():
-    p.require_grad = False
+    p.requires_grad = False
-model[0].requires_grad = False
+model[0].requires_grad_(False)
 optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL514 dict with **"] = """\
 class Net(nn.Module):
     def __init__(self, more=None):
         super().__init__()
         more = {"b": nn.Linear(4, 3)}
-        self.heads = {"a": nn.Linear(4, 3), **more}
+        self.heads = nn.ModuleDict({"a": nn.Linear(4, 3), **more})
         self.body = nn.Linear(4, 4)

     def forward(self, x):
         return sum(head(self.body(x)) for head in self.heads.values())

 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL514 list with star"] = """\
 class Net(nn.Module):
     def __init__(self):
         super().__init__()
-        self.layers = [nn.Linear(4, 4), *(nn.Linear(4, 4) for _ in range(2))]
+        self.layers = nn.ModuleList([nn.Linear(4, 4), *(nn.Linear(4, 4) for _ in range(2))])
         self.head = nn.Linear(4, 3)

     def forward(self, x):
         for layer in self.layers: x = layer(x).tanh()
         return self.head(x)

 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(model(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL515 to"] = """\
 device = "cpu"
-weight = nn.Parameter(torch.zeros(4, 3)) * 1.0
+weight = nn.Parameter(torch.zeros(4, 3) * 1.0)
 optimizer = torch.optim.SGD([weight], lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(x @ weight, y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL515 doubled"] = """\
 class Gate(nn.Module):
     def __init__(self, device="cpu"):
         super().__init__()
-        self.weight = nn.Parameter(torch.zeros(4, 3)).to(torch.float64)
+        self.weight = nn.Parameter(torch.zeros(4, 3).to(torch.float64))
-        self.scale = nn.Parameter(torch.ones(3), requires_grad=True) * 0.5
+        self.scale = nn.Parameter(torch.ones(3) * 0.5, requires_grad=True)

     def forward(self, x):
         return x.double() @ self.weight * self.scale

 gate = Gate()
 optimizer = torch.optim.SGD([gate.weight, gate.scale], lr=0.1)
 for x, y in data:
     loss = F.cross_entropy(gate(x), y)
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL518 modules and a method"] = """\
 first, last = model[0], model[2]
-optimizer = torch.optim.SGD([first, last], lr=0.1)  # both
+optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)  # both
-other = torch.optim.SGD(params=model.parameters, lr=0.1)
+other = torch.optim.SGD(params=model.parameters(), lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL518 in groups"] = """\
-groups = [{"params": model[0]}, {"params": [model[2].parameters()], "lr": 1.0}]
+groups = [{"params": model[0].parameters()}, {"params": [*model[2].parameters()], "lr": 1.0}]
 optimizer = torch.optim.SGD(groups, lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL518 beside what is spread"] = """\
-optimizer = torch.optim.SGD([*model[0].parameters(), model[2]], lr=0.1)
+optimizer = torch.optim.SGD([*model[0].parameters(), *model[2].parameters()], lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL518 in comprehensions"] = """\
 def of(layers):
-    return torch.optim.SGD((layer.parameters() for layer in layers), lr=0.1)
+    return torch.optim.SGD((p for layer in layers for p in layer.parameters()), lr=0.1)

 optimizer = of(model)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL518 a list made elsewhere"] = """\
-layers = [layer for layer in model if isinstance(layer, nn.Linear)]
+layers = [p for layer in model if isinstance(layer, nn.Linear) for p in layer.parameters()]
 optimizer = torch.optim.SGD(layers, lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL518 a clip of pairs"] = """\
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
-    nn.utils.clip_grad_norm_(list(model.named_parameters()), 1.0)
+    nn.utils.clip_grad_norm_(list(model.parameters()), 1.0)
     optimizer.step()
"""
PROGRAMS["GL521 around the loop"] = """\
 from accelerate import Accelerator

 accelerator = Accelerator(gradient_accumulation_steps=4)
 model, optimizer = accelerator.prepare(model, optimizer)

 def epoch(accelerator, net, optimizer):
-    with accelerator.accumulate(net):
-        for x, y in data:
+    for x, y in data:
+        with accelerator.accumulate(net):
             accelerator.backward(F.cross_entropy(net(x), y))
             optimizer.step()
             optimizer.zero_grad()

 epoch(accelerator, model, optimizer)
"""
PROGRAMS["GL521 in a class"] = """\
 from accelerate import Accelerator

 class Trainer:
     def __init__(self):
         self.accelerator = Accelerator(gradient_accumulation_steps=4)
         self.net, self.optimizer = self.accelerator.prepare(model, optimizer)

     def fit(self):
         for x, y in data:
             # one round
-            loss = F.cross_entropy(self.net(x), y)
-            self.accelerator.backward(loss)
-            self.optimizer.step()
-            self.optimizer.zero_grad()  # cleared
+            with self.accelerator.accumulate(self.net):
+                loss = F.cross_entropy(self.net(x), y)
+                self.accelerator.backward(loss)
+                self.optimizer.step()
+                self.optimizer.zero_grad()  # cleared

 Trainer().fit()
"""
PROGRAMS["GL514 by numbers"] = """\
 class Terraces(nn.Module):
     def __init__(self):
         super().__init__()
         self.levels = {depth: nn.Linear(4, 3) for depth in range(2)}
+        self.levels_modules = nn.ModuleList(self.levels.values())
         self.slopes = {1: nn.Parameter(torch.ones(3)), 2: nn.Parameter(torch.zeros(3))}
+        self.slopes_parameters = nn.ParameterList(self.slopes.values())
         self.last = nn.Linear(3, 3)

     def forward(self, x):
         return self.last(self.levels[0](x) + self.levels[1](x) * self.slopes[1] + self.slopes[2])

 model = Terraces()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL514 in a record"] = """\
 from dataclasses import dataclass

 @dataclass
 class Pair:
     left: nn.Module
     right: nn.Module

 class Scales(nn.Module):
     def __init__(self):
         super().__init__()
         self.pair = Pair(nn.Linear(4, 3), nn.Linear(4, 3))
+        self.pair_modules = nn.ModuleList([self.pair.left, self.pair.right])
         self.last = nn.Linear(3, 3)

     def forward(self, x):
         return self.last(self.pair.left(x) - self.pair.right(x))

 model = Scales()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
