"""Training steps as frameworks and people spell them: what the tape tells of the first one, with
how many parameters.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_library_torch import SETUP, tapes

from gradlint import tape

BEFORE = f"{SETUP}optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"


def told(event: tape.Event) -> str:
    """One step of the training, with how many parameters it is about (`+` where there can be more);
    else "".
    """
    match event:
        case tape.Backward():
            scaled = (
                " scaled" * (event.scaler is not None) + " by the framework" * event.by_framework
            )
            return (
                f"{event.sink} {len(list(event.leaves))}{scaled}" + " retained" * event.retain_graph
            )
        case tape.OptimizerStep():
            return f"step {_held(event.optimizer)}" + " scaled" * (event.scaler is not None)
        case tape.ZeroGrad():
            return (
                f"clear {len(event.parameters)}"
                + "+" * (not event.complete)
                + " to zeros" * (not event.to_none)
            )
        case tape.Clip():
            return f"{'read' if event.reads_only else 'clip'} {len(event.parameters)}"
        case tape.SchedulerStep(scheduler=scheduler):
            return (
                f"schedule of {_held(scheduler.optimizer)}" if scheduler.optimizer else "schedule"
            )
        case tape.Unscale() | tape.ScalerUpdate():
            return type(event).__name__.lower()
    return ""


def _held(optimizer: tape.Optimizer) -> str:
    return f"{len(optimizer.parameters)}" + "+" * (not optimizer.complete)


def first_step(folder: Path, program: str) -> str:
    """The first path with a backward, up to where a second one begins."""
    paths = tapes(folder, BEFORE + program + "\n")
    events = next(
        [said for event in path.events if (said := told(event))]
        for path in paths
        if [*path.backwards()]
    )
    again = [place for place, said in enumerate(events) if said == events[0]]
    return ", ".join(events[: again[1]] if len(again) > 1 else events)


PROGRAMS = {
    "an optimizer of torch that is begun again": (
        BEFORE + "more = [*model.parameters(), *nn.Linear(4, 4).parameters()]\n"
        "optimizer.__init__(more, 0.1)\n"
        "for batch in torch.randn(3, 4):\n    optimizer.zero_grad()\n"
        "    model(batch).sum().backward()\n    optimizer.step()\n",
        "clear 4, backward 2, step 4",
    ),
    "lightning with a dict of optimizer and schedule": (
        "import lightning as L\nclass Own(L.LightningModule):\n    def __init__(self):\n"
        "        super().__init__()\n        self.net = nn.Linear(4, 4)\n"
        "        self.automatic_optimization = True\n    def configure_optimizers(self):\n"
        "        o = torch.optim.Adam(self.parameters())\n"
        "        return {'optimizer': o, 'lr_scheduler': {'scheduler': "
        "torch.optim.lr_scheduler.StepLR(o, 1), 'interval': 'step'}}\n"
        "    def training_step(self, batch, batch_idx):\n"
        "        return self.net(batch).sum()\nL.Trainer(max_epochs=1).fit(Own())",
        "clear 2, training_step 2 by the framework, step 2",
    ),
    "lightning with a dict of an optimizer alone": (
        "import lightning as L\nclass Own(L.LightningModule):\n    def __init__(self):\n"
        "        super().__init__()\n        self.net = nn.Linear(4, 4)\n"
        "        self.automatic_optimization = True\n    def configure_optimizers(self):\n"
        "        return {'optimizer': torch.optim.Adam(self.parameters())}\n"
        "    def training_step(self, batch, batch_idx):\n"
        "        return self.net(batch).sum()\nL.Trainer(max_epochs=1).fit(Own())",
        "clear 2, training_step 2 by the framework, step 2",
    ),
    "lightning with a list": (
        "import lightning as L\nclass Own(L.LightningModule):\n    def __init__(self):\n"
        "        super().__init__()\n        self.net = nn.Linear(4, 4)\n"
        "        self.automatic_optimization = True\n    def configure_optimizers(self):\n"
        "        return [torch.optim.Adam(self.net.parameters())]\n"
        "    def training_step(self, batch, batch_idx):\n"
        "        return self.net(batch).sum()\nL.Trainer(max_epochs=1).fit(Own())",
        "clear 2, training_step 2 by the framework, step 2",
    ),
    "lightning by hand": (
        "import lightning as L\nclass Own(L.LightningModule):\n    def __init__(self):\n"
        "        super().__init__()\n        self.net = nn.Linear(4, 4)\n"
        "        self.automatic_optimization = False\n    def configure_optimizers(self):\n"
        "        return [torch.optim.Adam(self.parameters())], "
        "[torch.optim.lr_scheduler.StepLR(None, 1)]\n"
        "    def training_step(self, batch, batch_idx):\n"
        "        o, s = self.optimizers(), self.lr_schedulers()\n        o.zero_grad()\n"
        "        self.manual_backward(self.net(batch).sum())\n"
        "        self.clip_gradients(o, gradient_clip_val=1.0)\n        o.step()\n"
        "        s.step()\nL.Trainer(max_epochs=1).fit(Own())",
        "clear 2, manual_backward 2, clip 2, step 2, schedule",
    ),
    "lightning by hand with two": (
        "import lightning as L\nclass Own(L.LightningModule):\n    def __init__(self):\n"
        "        super().__init__()\n        self.net = nn.Linear(4, 4)\n"
        "        self.automatic_optimization = False\n    def configure_optimizers(self):\n"
        "        return torch.optim.Adam(self.parameters()), "
        "torch.optim.SGD(self.net.parameters(), 0.1)\n"
        "    def training_step(self, batch, batch_idx):\n        a, b = self.optimizers()\n"
        "        a.zero_grad()\n        self.manual_backward(self.net(batch).sum())\n"
        "        a.step()\n        b.step()\nL.Trainer(max_epochs=1).fit(Own())",
        "clear 2, manual_backward 2, step 2, step 2",
    ),
    "lightning, gathered": (
        "import lightning as L\nclass Own(L.LightningModule):\n    def __init__(self):\n"
        "        super().__init__()\n        self.net = nn.Linear(4, 4)\n"
        "        self.automatic_optimization = True\n    def configure_optimizers(self):\n"
        "        return torch.optim.Adam(self.parameters())\n"
        "    def training_step(self, batch, batch_idx):\n"
        "        return self.all_gather(self.net(batch), sync_grads=True).sum()\n"
        "L.Trainer(max_epochs=1).fit(Own())",
        "clear 2, training_step 2 by the framework, step 2",
    ),
    "lightning, decorated step": (
        "import lightning as L\nclass Own(L.LightningModule):\n    def __init__(self):\n"
        "        super().__init__()\n        self.net = nn.Linear(4, 4)\n"
        "        self.automatic_optimization = True\n    def configure_optimizers(self):\n"
        "        return torch.optim.Adam(self.parameters())\n    @torch.enable_grad()\n"
        "    def training_step(self, batch, batch_idx):\n"
        "        return self.net(batch).sum()\nL.Trainer(max_epochs=1).fit(Own())",
        "clear 2, training_step 2 by the framework, step 2",
    ),
    "lightning, thawed": (
        "import lightning as L\nclass Own(L.LightningModule):\n    def __init__(self):\n"
        "        super().__init__()\n        self.net = nn.Linear(4, 4)\n"
        "        self.automatic_optimization = True\n    def configure_optimizers(self):\n"
        "        self.freeze()\n        self.unfreeze()\n"
        "        return torch.optim.Adam(self.parameters())\n"
        "    def training_step(self, batch, batch_idx):\n"
        "        return self.net(batch).sum()\nL.Trainer(max_epochs=1).fit(Own())",
        "clear 2, training_step 2 by the framework, step 2",
    ),
    "lightning with its own step": (
        "import lightning as L\nclass Own(L.LightningModule):\n    def __init__(self):\n"
        "        super().__init__()\n        self.net = nn.Linear(4, 4)\n"
        "        self.automatic_optimization = True\n    def configure_optimizers(self):\n"
        "        return torch.optim.Adam(self.parameters())\n"
        "    def optimizer_step(self, epoch, batch_idx, optimizer, optimizer_closure):\n"
        "        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)\n"
        "    def training_step(self, batch, batch_idx):\n"
        "        return self.net(batch).sum()\nL.Trainer(max_epochs=1).fit(Own())",
        "clear 2, training_step 2 by the framework, step 2",
    ),
    "lightning with a step for zeroing": (
        "import lightning as L\nclass Own(L.LightningModule):\n    def __init__(self):\n"
        "        super().__init__()\n        self.net = nn.Linear(4, 4)\n"
        "        self.automatic_optimization = True\n    def configure_optimizers(self):\n"
        "        return torch.optim.Adam(self.parameters())\n"
        "    def optimizer_zero_grad(self, epoch, batch_idx, optimizer):\n"
        "        optimizer.zero_grad(set_to_none=True)\n"
        "    def training_step(self, batch, batch_idx):\n"
        "        return self.net(batch).sum()\nL.Trainer(max_epochs=1).fit(Own())",
        "clear 2, training_step 2 by the framework, step 2",
    ),
    "lightning with the number of the step": (
        "import lightning as L\nclass Own(L.LightningModule):\n    def __init__(self):\n"
        "        super().__init__()\n        self.net = nn.Linear(4, 4)\n"
        "        self.automatic_optimization = True\n    def configure_optimizers(self):\n"
        "        return torch.optim.Adam(self.parameters())\n"
        "    def training_step(self, batch, batch_idx):\n"
        "        loss = self.net(batch).sum()\n        if self.global_step >= 0 or "
        "self.trainer.is_last_batch:\n            self.log('a', 1)\n"
        "        return {'loss': loss}\nL.Trainer(max_epochs=1).fit(Own())",
        "clear 2, training_step 2 by the framework, step 2",
    ),
    "a trainer that gives outputs as well": (
        "from transformers import Trainer\nclass Own(Trainer):\n"
        "    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):\n"
        "        out = model(inputs)\n        return out.sum(), out.detach()\n"
        "Own(model=model, args=None).train()",
        "compute_loss 2 by the framework",
    ),
    "a trainer that gives a list": (
        "from transformers import Trainer\nclass Own(Trainer):\n"
        "    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):\n"
        "        return [model(inputs).sum()]\nOwn(model=model, args=None).train()",
        "compute_loss 2 by the framework",
    ),
    "a trainer that asks its base": (
        "from transformers import Trainer\nclass Own(Trainer):\n"
        "    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):\n"
        "        loss, outputs = super().compute_loss(model, inputs, return_outputs=True)\n"
        "        loss = loss * 2\n        return (loss, outputs) if return_outputs else "
        "loss\nOwn(model=model, args=None).train()",
        "compute_loss 1 by the framework",
    ),
    "a trainer with a step of its own": (
        "from transformers import Trainer\nclass Own(Trainer):\n"
        "    def training_step(self, model, inputs, n=None):\n        model.train()\n"
        "        inputs = self._prepare_inputs(inputs)\n"
        "        with self.compute_loss_context_manager():\n"
        "            loss = self.compute_loss(model, inputs)\n"
        "        self.accelerator.backward(loss)\n        if self.is_world_process_zero():\n"
        "            self.log({'loss': 1})\n        return loss.detach() / "
        "self.args.gradient_accumulation_steps\n    def compute_loss(self, model, inputs, "
        "return_outputs=False):\n        return model(inputs['x']).sum()\n"
        "Own(model=model, args=None).train()",
        "accelerator.backward 2",
    ),
    "a trainer with the step of its base": (
        "from transformers import Trainer\nclass Own(Trainer):\n"
        "    def training_step(self, model, inputs, n=None):\n"
        "        return super().training_step(model, inputs)\n"
        "    def compute_loss(self, model, inputs, return_outputs=False):\n"
        "        return self.model(inputs['x']).sum()\nOwn(model=model, args=None).train()",
        "compute_loss 2 by the framework",
    ),
    "accelerate with all of it": (
        "from accelerate import Accelerator\naccelerator = Accelerator()\n"
        "model, optimizer = accelerator.prepare(model, optimizer)\n"
        "with accelerator.accumulate(model), accelerator.autocast():\n"
        "    loss = accelerator.gather(model(x)).sum() if False else "
        "accelerator.reduce(model(x)).sum()\n    accelerator.backward(loss)\n"
        "    accelerator.wait_for_everyone()\n    "
        "accelerator.clip_grad_norm_(model.parameters(), 1.0)\n"
        "    if accelerator.is_main_process or accelerator.num_processes:\n"
        "        optimizer.step()\n        optimizer.zero_grad()",
        "accelerator.backward 2, clip 2, step 2, clear 2",
    ),
    "accelerate in a notebook": (
        "from accelerate import Accelerator, notebook_launcher\ndef run():\n"
        "    a = Accelerator()\n    m, o = a.prepare(model, optimizer)\n"
        "    a.backward(m(x).sum())\n    o.step()\n    o.zero_grad()\nnotebook_launcher(run)",
        "accelerator.backward 2, step 2, clear 2",
    ),
    "a fabric that sets up by parts": (
        "import lightning as L\nfabric = L.Fabric()\nfabric.launch()\n"
        "with fabric.init_module():\n    net = nn.Linear(4, 4)\n"
        "net = fabric.setup_module(net)\no = "
        "fabric.setup_optimizers(torch.optim.SGD(net.parameters(), lr=0.1))\n"
        "with fabric.no_backward_sync(net, enabled=False):\n"
        "    fabric.backward(net(x.to(fabric.device)).sum())\n"
        "fabric.clip_gradients(net, o, max_norm=1.0)\nif fabric.is_global_zero:\n"
        "    o.step()\no.zero_grad()",
        "fabric.backward 2, clip 2, step 2, clear 2",
    ),
    "a fabric that launches with arguments": (
        "import lightning as L\ndef main(f, net, x, o):\n    f.backward(net(x).sum())\n"
        "    o.step()\n    o.zero_grad()\nL.Fabric().launch(main, model, x, optimizer)",
        "fabric.backward 2, step 2, clear 2",
    ),
    "a fabric by its whole name": (
        "import lightning\ndef train(f: lightning.Fabric, x):\n"
        "    f.backward(f.broadcast(f.all_gather(model(x).sum())))\n    optimizer.step()\n"
        "    optimizer.zero_grad()",
        "fabric.backward 3, step 2, clear 2",
    ),
    "deepspeed with a context": (
        "import deepspeed\nwith deepspeed.zero.Init():\n    pass\n"
        "deepspeed.init_distributed()\nengine, o, _, s = deepspeed.initialize(model=model, "
        "model_parameters=model.parameters())\nengine.backward(engine(x).sum())\n"
        "engine.allreduce_gradients()\nengine.step()\nengine.save_checkpoint('a')",
        "engine.backward 2, step 2, clear 2",
    ),
    "deepspeed that keeps the graph": (
        "import deepspeed\nengine, o, _, s = deepspeed.initialize(model=model, "
        "model_parameters=model.parameters())\nloss = engine(x).sum()\n"
        "engine.backward(loss, retain_graph=True)\nengine.step()",
        "engine.backward 2 retained, step 2, clear 2",
    ),
    "deepspeed by position": (
        "import deepspeed\nengine, o, _, s = deepspeed.initialize(None, model, None, "
        "[model.weight])\nengine.backward(engine(x).sum())\nengine.step()",
        "engine.backward 2, step 1, clear 1",
    ),
    "deepspeed that does not": (
        "import deepspeed\nengine, o, _, s = deepspeed.initialize(model=model, "
        "model_parameters=model.parameters())\nengine.backward(loss=engine(x).sum(), "
        "retain_graph=False)\nengine.step()",
        "engine.backward 2, step 2, clear 2",
    ),
    "graphs kept by accelerate, a fabric and torch": (
        "import accelerate\nimport lightning\na, f = accelerate.Accelerator(), "
        "lightning.Fabric()\nloss = model(x).sum()\na.backward(loss, retain_graph=True)\n"
        "f.backward(loss, retain_graph=True)\ntorch.autograd.backward(loss, "
        "retain_graph=True)\nloss.backward(retain_graph=True)\nloss.backward()\n"
        "optimizer.step()",
        "accelerator.backward 2 retained, fabric.backward 2 retained, autograd.backward 2 "
        "retained, backward 2 retained, backward 2, step 2",
    ),
    "apex with its masters": (
        "from apex import amp\nmodel, optimizer = amp.initialize(model, optimizer, "
        "opt_level='O1')\nwith amp.scale_loss(model(x).sum(), optimizer) as scaled:\n"
        "    scaled.backward()\nnn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)\n"
        "optimizer.step()\noptimizer.zero_grad()",
        "backward 2, clip 2, step 2, clear 2",
    ),
    "an optimizer of timm": (
        "import timm.optim\no = timm.optim.create_optimizer_v2(model, opt='adamw')\n"
        "model(x).sum().backward()\no.step()\no.zero_grad()",
        "backward 2, step 2+, clear 2+",
    ),
    "an optimizer of another package": (
        "import bitsandbytes as bnb\nfrom transformers import "
        "get_cosine_schedule_with_warmup\no = bnb.optim.AdamW8bit(model.parameters())\n"
        "s = get_cosine_schedule_with_warmup(o, 1, 2)\nmodel(x).sum().backward()\no.step()\n"
        "s.step()\no.zero_grad()",
        "backward 2, step 2, schedule of 2, clear 2",
    ),
    "an optimizer by its type": (
        "def train(o: torch.optim.Optimizer, s: torch.amp.GradScaler, m: nn.Module, x: "
        "torch.Tensor):\n    s.scale(model(x).sum()).backward()\n    s.step(o)\n"
        "    s.update()\n    o.zero_grad()",
        "backward 3 scaled, step 0+ scaled, scalerupdate, clear 0+",
    ),
    "a loader by its type": (
        "def train(l: torch.utils.data.DataLoader):\n    for x in l:\n"
        "        model(x).sum().backward()\n        optimizer.step()\n"
        "        optimizer.zero_grad()",
        "backward 2, step 2, clear 2",
    ),
    "clipped in every way": (
        "model(x).sum().backward()\nnn.utils.clip_grad_norm_(model, 1.0) if False else "
        "nn.utils.clip_grad_norm_(dict(model.named_parameters()).values(), 1.0)\n"
        "nn.utils.clip_grad_value_([model.weight, model.bias], 1.0)\noptimizer.step()\n"
        "optimizer.zero_grad()",
        "backward 2, clip 2, clip 2, step 2, clear 2",
    ),
    "joined ranks": (
        "from torch.nn.parallel import DistributedDataParallel as DDP\nw = DDP(model)\n"
        "with w.join():\n    w(x).sum().backward()\n    optimizer.step()\n"
        "    optimizer.zero_grad()",
        "backward 2, step 2, clear 2",
    ),
    "reduced by hand": (
        "import torch.distributed as dist\nmodel(x).sum().backward()\n"
        "for p in model.parameters():\n    dist.all_reduce(p.grad)\nobjects = [1]\n"
        "dist.broadcast_object_list(objects)\ndist.barrier()\nif dist.get_rank() >= 0:\n"
        "    optimizer.step()\noptimizer.zero_grad()",
        "backward 2, read 1, read 1, step 2, clear 2",
    ),
    "autocast in every way": (
        "@torch.autocast\ndef a(x):\n    return model(x)\n"
        "with torch.autocast('cuda', torch.float16, True), torch.cuda.amp.autocast(True), "
        "torch.cpu.amp.autocast():\n    loss = model(x).sum()\nloss.backward()\n"
        "optimizer.step()\noptimizer.zero_grad()",
        "backward 2, step 2, clear 2",
    ),
    "cleared by the model": (
        "model(x).sum().backward()\noptimizer.step()\nmodel.zero_grad(set_to_none=True)",
        "backward 2, step 2, clear 2",
    ),
    "cleared by hand": (
        "model(x).sum().backward()\noptimizer.step()\nfor p in model.parameters():\n"
        "    p.grad = None",
        "backward 2, step 2, clear 1, clear 1",
    ),
    "a kernel beside it": (
        "import triton\n@triton.jit\ndef k(p):\n    p += 1\n"
        "@triton.jit(do_not_specialize=['p'])\ndef j(p):\n    p += 1\nimport taichi as ti\n"
        "@ti.kernel\ndef h(p: ti.types.ndarray()):\n    p += 1\nmodel(x).sum().backward()\n"
        "optimizer.step()\noptimizer.zero_grad()",
        "backward 2, step 2, clear 2",
    ),
    "a step that asks": (
        "def closure():\n    optimizer.zero_grad()\n    loss = model(x).sum()\n"
        "    loss.backward()\n    return loss\noptimizer.step(closure)",
        "clear 2, backward 2, step 2",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_first_step_is_told_as_it_is(name: str, tmp_path: Path) -> None:
    program, steps = PROGRAMS[name]
    assert first_step(tmp_path, program) == steps
