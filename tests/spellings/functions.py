"""Spellings of fixes: custom functions, hooks and ranks (GL8, GL9)."""

PROGRAMS: dict[str, str] = {}
PROGRAMS["GL801 with one saved already"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a, b):
-        ctx.save_for_backward(a)
+        ctx.save_for_backward(a, b)
-        ctx.b = b
         return a * b

     @staticmethod
     def backward(ctx, g):
-        (a,) = ctx.saved_tensors
+        a, b = ctx.saved_tensors
-        return g * ctx.b, g * a
+        return g * b, g * a

 for x, y in data:
     out = model(x)
     loss = Own.apply(out, out + 1).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL801 named in the backward"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a):
-        ctx.a = a
+        ctx.save_for_backward(a)
         return a * 2

     @staticmethod
     def backward(ctx, g):
-        a = ctx.a
+        (a,) = ctx.saved_tensors
         return 2 * g + 0 * a

 for x, y in data:
     loss = Own.apply(model(x)).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL802 a list"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a, b):
         return a * 2 + b

     @staticmethod
     def backward(ctx, g):
-        return [2 * g, g]
+        return (2 * g, g)

 for x, y in data:
     out = model(x)
     loss = Own.apply(out, out).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL802 one for a constant"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a, factor, more):
         ctx.factor = factor
         return a * factor

     @staticmethod
     def backward(ctx, g):
-        return g * ctx.factor
+        return g * ctx.factor, None, None

 for x, y in data:
     loss = Own.apply(model(x), 2.0, None).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL803 by a method"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a, b):
+        ctx.mark_dirty(a)
         a.mul_(2)
         return a

     @staticmethod
     def backward(ctx, g):
         return 2 * g, None

 for x, y in data:
     loss = Own.apply(model(x) * 1, None).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL804 called as an object"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a):
         return a * 2

     @staticmethod
     def backward(ctx, g):
         return 2 * g

-own = Own()
+own = Own.apply
 for x, y in data:
     loss = own(model(x)).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL804 forward with a context"] = """\
 class Own(torch.autograd.Function):
     @staticmethod
     def forward(ctx, a, b=1):
         return a * 2

     @staticmethod
     def backward(ctx, g):
         return 2 * g, None

 for x, y in data:
-    loss = Own.forward(None, model(x)).mean()
+    loss = Own.apply(model(x)).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
PROGRAMS["GL805 written to"] = """\
-def halve(g: torch.Tensor):
-    g *= 0.5  # half of it
+def halve(parameter: torch.Tensor):
+    parameter.grad *= 0.5  # half of it

 for p in model.parameters():
     p.register_post_accumulate_grad_hook(halve)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL805 returned"] = """\
 for parameter in model.parameters():
-    parameter.register_post_accumulate_grad_hook(lambda g: g * 0.5)
+    parameter.register_hook(lambda g: g * 0.5)
 for x, y in data:
     optimizer.zero_grad()
     F.cross_entropy(model(x), y).backward()
     optimizer.step()
"""
PROGRAMS["GL903 reduced in place"] = """\
 import torch.distributed as dist
 import torch.distributed.nn.functional as reductions

 for x, y in data:
     mean = model(x).mean(dim=0)
-    dist.all_reduce(mean, op=dist.ReduceOp.SUM)  # over all
+    mean = reductions.all_reduce(mean, op=dist.ReduceOp.SUM)  # over all
     loss = mean.square().sum()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
"""
