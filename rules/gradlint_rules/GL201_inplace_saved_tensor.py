"""# inplace-saved-tensor (GL201)

A tensor that autograd saved for the backward is modified in place before that backward runs.

## What it does
Knows for every operation what it saves (`exp`, `sigmoid`, `tanh`, `relu` and `softmax` their
result; `mul`, `pow`, `matmul` and a trainable `Linear` their inputs; `add`, `view`, `cat` and `sum`
nothing), follows views and aliases of the same memory, and reports the modification that comes
between the saving and the backward: `x.op_()`, `x += …`, `x[i] = …`, `out=`, `inplace=True`. The
report names the operation that saved, as no error message of PyTorch does.

Reports as well a write to one of the views that `split`, `chunk` and `unbind` (and a loop over the
rows of a tensor) give together, of what carries a gradient: PyTorch refuses it at once, saved or
not.

## Why it matters
The backward raises "one of the variables needed for gradient computation has been modified by an
inplace operation", and points at neither line.

## Example
```python
import torch

torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
weights = layer(torch.randn(2, 4)).softmax(dim=-1)
weights.masked_fill_(torch.eye(2, 4, dtype=torch.bool), 0.0)  # expect: GL201
loss = weights.sum()
optimizer.zero_grad()
loss.backward()  # RuntimeError: modified by an inplace operation
optimizer.step()
```

An augmented assignment is in place, too:

```python
import torch

torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x = torch.randn(2, 4)
hidden = layer(x).relu()
hidden += x  # expect: GL201
loss = hidden.pow(2).mean()
optimizer.zero_grad()
loss.backward()  # RuntimeError: modified by an inplace operation
optimizer.step()
```

## Use instead
The same operation out of place:

```python
import torch

torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x = torch.randn(2, 4)
hidden = layer(x).relu()
hidden = hidden + x
weights = hidden.softmax(dim=-1)
weights = weights.masked_fill(torch.eye(2, 4, dtype=torch.bool), 0.0)
loss = weights.sum()
optimizer.zero_grad()
loss.backward()
optimizer.step()
```

## What it does not report
- In-place operations on what nothing saved: `linear(x).add_(r)`, `(x * 2).add_(1)`,
  `layer_norm(x) += r`, the output of a convolution under `nn.ReLU(inplace=True)`. They are right;
  `inplace-on-loss-path` (GL205) notes them.
- A modified `clone()` of what was saved.
- A saved tensor whose branch is never back-propagated.

- A write to one of several views under `no_grad`, to a copy of it, and to what `tensor_split` and
  `unsafe_split` give.

## Limits
Whether something out of view saves what it is given is not known: where its result goes back into
the same memory, `states[:, t + 1] = self.cell(states[:, t])`, that is a note.
In a part with no trainer in view, what an argument switches on that is off by default
(`forward(x, inplace=False)`) is a note: the switch can be there for inference alone. So is what was
learned and is saved for the gradient of further arguments alone, as of an adjacency or a mask; and
what a part with layers of its own saves for its argument alone, `y = x.relu(); y += self.conv(x)`:
the first part of a network is given data.
Inside activation checkpointing without re-entrance and under `save_on_cpu`, PyTorch does not check:
the gradient is wrong without an error, and the message says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradlint.finding import Finding, Fix, Severity
from gradlint.operations import canonical
from gradlint.paths import Paths
from gradlint.rule import FixSource, Report
from gradlint.tape import BESIDE, InPlace, Kind, Tape, Value, Write, leaves
from gradlint_rules.fed_back import fed_back
from gradlint_rules.overwritten import Overwritten, is_step, overwritten
from gradlint_rules.uncut import unsafe
from gradlint_rules.words import (
    backward,
    calls,
    is_of_arguments,
    maker,
    places,
    quoted,
    severity_in,
)
from gradlint_rules.written import out_of_place

SEVERITY = Severity.ERROR
AT_RUN_TIME = True
RAISES = "modified by an inplace operation"


def check(paths: Paths) -> Iterator[Report]:
    """Every write to something saved, but for those of parameters (GL203)."""
    for found in overwritten(paths, counted=True):
        if not found.is_parameter and not is_step(found.write.op):
            yield Report(
                found.at,
                _message(found),
                _out_of_place(found.write),
                found.related,
                severity=Severity.NOTE
                if found.is_switched_on
                or _beside_what_is_learned(found)
                or _is_beside_layers(found)
                else severity_in(found.sink, *(found.saved.needed_by or [found.user])),
                hints=_written(found),
            )
    for fed in paths.some(fed_back):
        message = (
            f"{maker(fed.call)} is given {quoted(fed.given)}, and what it gives is written into "
            f"its memory here: {backward(fed.sink)} raises where it saves that, as most layers do"
        )
        hints = {"of": "part" if _is_of_part(fed.event.write) else "whole"}
        yield Report(
            fed.event.write.at,
            message,
            _out_of_place(fed.event.write),
            fed.related,
            severity=Severity.NOTE,
            hints=hints,
        )
    for event in paths.some(_refused):
        message = (
            f"{quoted(event.before)} is one of several views that {maker(event.before)} gave, and "
            "is written in place: this raises"
        )
        hints = {"of": "part" if _is_of_part(event.write) else "whole"}
        related = places(event.write.at, *calls(event.write.stack, ()))
        yield Report(event.write.at, message, _out_of_place(event.write), related, hints=hints)


def _refused(tape: Tape) -> Iterator[InPlace]:
    """The writes to one of several views that autograd recorded together."""
    return (event for event in tape.of(InPlace) if event.raises == "views")


def _message(found: Overwritten) -> str:
    write = f"{found.saving}, and it is overwritten here{found.condition}"
    if found.user.checkpointed == "non-reentrant":
        return f"{write}: nothing checks it inside a checkpoint, and the gradient is silently wrong"
    needing = list(
        dict.fromkeys(quoted(value) for value in _arguments_needing(found) or _carrying(found))
    )
    where = f" where {' or '.join(needing)} needs a gradient" if needing else ""
    return f"{write}: {backward(found.sink)} raises{where}"


def _beside_what_is_learned(found: Overwritten) -> bool:
    """Whether what was learned is saved for the gradient of a part's further arguments alone: an
    adjacency or a mask needs none, and the part can be trained without.
    """
    needing = _arguments_needing(found)
    return (
        bool(needing)
        and all(BESIDE in leaf.flags for value in needing for leaf in leaves(value))
        and not is_of_arguments(found.saved.value)
    )


def _is_beside_layers(found: Overwritten) -> bool:
    """Whether it was saved for the gradient of arguments alone, in a part that trains layers of its
    own: it can be the first of a network, which is given data.
    """
    return (
        found.sink.assumed
        and is_of_arguments(found.user)
        and any(leaf.kind is Kind.PARAMETER for leaf in found.sink.leaves)
    )


def _arguments_needing(found: Overwritten) -> list[Value]:
    """What it was saved for, where arguments of a part alone can give that a gradient."""
    needing = found.saved.needed_by if found.sink.assumed else ()
    return list(needing) if all(map(is_of_arguments, needing)) else []


def _carrying(found: Overwritten) -> list[Value]:
    """The arguments of a part that alone can carry the gradient of what was saved, where others
    come into its result by another way.
    """
    if not (found.sink.assumed and is_of_arguments(found.user)):
        return []
    behind = list(leaves(found.user))
    met = {id(leaf) for leaf in behind}
    others = any(leaf.is_leaf and id(leaf) not in met for leaf in found.sink.graph)
    return behind if others else []


def _is_of_part(write: Write) -> bool:
    """Whether it goes to a part of a tensor: `x[i] = …`."""
    return canonical(write.op) in ("setitem", "index_put")


def _out_of_place(write: Write) -> str:
    if _is_of_part(write):
        return "Write into a `clone()`, or build the tensor with `torch.where` or `torch.cat`."
    return (
        "Use the operation out of place (`x = x + y`, `x = x.masked_fill(…)`), or modify a "
        "`clone()`."
    )


def _written(found: Overwritten) -> dict[str, str]:
    """Whether it goes to a part of a tensor, `x[i] = …`, and not to an item of a list; whether an
    alias is read.
    """
    seen = any(
        value.op == "view" and value.inputs[-1].at == found.write.at
        for value in found.sink.ancestors
    )
    of = {"of": "part" if _is_of_part(found.write) else "whole"}
    return {**of, "alias": "read"} if seen else of


def fix(finding: Finding, source: FixSource) -> Fix:
    """Does the same out of place, or on a copy."""
    return unsafe("Leave the saved tensor as it is", out_of_place(finding, source))
