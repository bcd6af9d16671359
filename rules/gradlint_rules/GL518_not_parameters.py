"""# not-parameters (GL518)

An optimizer or a clip is given something else than parameters: it raises.

## What it does
Reports an optimizer of torch, or `clip_grad_norm_` and `clip_grad_value_`, that is given a module
itself, a list with modules, generators or other lists in it, a method that is not called, or (a
clip) the pairs of `named_parameters()`.

## Why it matters
torch takes tensors one by one: "optimizer can only optimize Tensors, but one of the params is
Module.parameters". A clip that stands behind a condition raises in the middle of a run.

## Example
```python
import torch

torch.manual_seed(0)
encoder, head = torch.nn.Linear(4, 3), torch.nn.Linear(3, 1)
# TypeError: optimizer can only optimize Tensors
optimizer = torch.optim.SGD([encoder.parameters(), head.parameters()], lr=0.1)  # expect: GL518
for x in torch.randn(5, 8, 4):
    loss = head(encoder(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

## Use instead
```python
import torch

torch.manual_seed(0)
encoder, head = torch.nn.Linear(4, 3), torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for x in torch.randn(5, 8, 4):
    loss = head(encoder(x)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_([*encoder.parameters(), *head.parameters()], 1.0)
    optimizer.step()
```

## What it does not report
- Groups, `[{"params": model.parameters()}]`, and `named_parameters()` for an optimizer, which newer
  versions take.
- `nn.ParameterList`, whose items are parameters, and modules that define `__iter__`.

## Limits
Optimizers and clips of other libraries take what they like.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

from gradlint.finding import Edit, Finding, Fix, Severity, Span
from gradlint.paths import Paths
from gradlint.rule import Edits, FixSource, NoFixError, Report
from gradlint.tape import EVERY, Fact, Tape
from gradlint_rules.order import unused
from gradlint_rules.uncut import unsafe, values_of
from gradlint_rules.words import calls, places

SEVERITY = Severity.ERROR
_HELP = (
    "Hand over the parameters one by one: `model.parameters()`, `[*a.parameters(), "
    "*b.parameters()]`."
)


def check(paths: Paths) -> Iterator[Report]:
    """Everything that is given to an optimizer or a clip and holds no parameters where torch looks
    for them.
    """
    found: dict[Span, list[Fact]] = {}
    for fact in paths.some(_refused):
        found.setdefault(fact.at, []).append(fact)
    for at, facts in found.items():
        message = (
            f"`{facts[0].text}` is given {facts[0].detail}, and takes parameters alone: it raises"
        )
        misfits = dict.fromkeys(
            f"{fact.detail}: {path}" for fact in facts for _, path in fact.related
        )
        hints = {"misfits": "\n".join(misfits)}
        yield Report(at, message, _HELP, places(at, *calls(facts[0].stack, ())), hints=hints)


def _refused(tape: Tape) -> Iterator[Fact]:
    yield from tape.facts("not-parameters")


def fix(finding: Finding, source: FixSource) -> Fix:
    """Takes the parameters of what is given in their place."""
    edits: list[Edit] = []
    for misfit in finding.hints["misfits"].splitlines():
        what, _, path = misfit.partition(": ")
        edits += _mended(source.expression(finding.at), what, path.split(), source)
    return unsafe("Hand over the parameters", tuple(edits))


def _mended(node: ast.expr, what: str, path: Sequence[str], source: FixSource) -> Edits:
    """The edits for one misfit, at its place in `node`."""
    if not path:
        return _called(node, source)
    written = _written(node, source)
    match written:
        case ast.List() | ast.Tuple():
            items = [_item(written.elts, path[0])] if path[0] != EVERY else written.elts
            if len(path) > 1:
                return _mended(items[0], what, path[1:], source)
            if "pairs" not in what and not any(isinstance(item, ast.Starred) for item in items):
                return tuple(
                    itertools.chain(*(_spread(item, "module" in what, source) for item in items))
                )
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and key.value == path[0]:
                    return _mended(value, what, path[1:], source)
    if list(path) != [EVERY]:
        raise NoFixError("what is given is not written here")
    return _flattened(node, written, what, source)


def _item(items: Sequence[ast.expr], place: str) -> ast.expr:
    """The item at `2/5`, the third of five, of a list in which one may stand for several:
    `*model.parameters()`.
    """
    at, total = map(int, place.split("/"))
    starred = [index for index, item in enumerate(items) if isinstance(item, ast.Starred)]
    if not starred or at < starred[0]:
        return items[at]
    if total - at < len(items) - starred[-1]:
        return items[at - total]
    raise NoFixError("it is no item as it is written")


def _called(node: ast.expr, source: FixSource) -> Edits:
    """`model` as `model.parameters()`, and so `model.parameters`; a list of them where a partial
    hands them to each of its calls.
    """
    is_method = isinstance(node, ast.Attribute) and node.attr == "parameters"
    made = f"{source.operand(node)}{'()' if is_method else '.parameters()'}"
    outer = next(source.around(node))
    is_repeated = isinstance(outer, ast.Call) and source.called(outer.func) == "functools.partial"
    return (source.replace(node, f"list({made})" if is_repeated else made),)


def _written(node: ast.expr, source: FixSource) -> ast.expr:
    """A list where it is written: here, or where a name that is used for nothing else is bound to
    it.
    """
    values = values_of(node, source, node) if isinstance(node, ast.Name) else []
    if len(values) != 1 or not isinstance(node, ast.Name):
        return node
    uses = [
        each for each in ast.walk(source.tree) if isinstance(each, ast.Name) and each.id == node.id
    ]
    outer = [next(source.around(use)) for use in uses if isinstance(use.ctx, ast.Load)]
    is_handed = all(
        isinstance(each, ast.Call) and source.called(each.func).startswith("torch.")
        for each in outer
    )
    return values[0] if is_handed else node


def _spread(item: ast.expr, is_module: bool, source: FixSource) -> Edits:
    """`encoder.parameters()` in a list as `*encoder.parameters()`, and so `encoder`."""
    if not is_module:
        return (source.before_text(item, "*"),)
    is_atom = source.operand(item) == source.text(item)
    begins, ends = ("*", ".parameters()") if is_atom else ("*(", ").parameters()")
    return (source.before_text(item, begins), source.behind_text(item, ends))


def _flattened(node: ast.expr, written: ast.expr, what: str, source: FixSource) -> Edits:
    """A list of modules, generators, lists or pairs, which is computed, as one of parameters."""
    if "pairs" in what:
        return _without_names(node, source)
    more = ".parameters()" if "module" in what else ""
    match written:
        case (
            ast.ListComp(elt=item, generators=[*_, last])
            | ast.GeneratorExp(elt=item, generators=[*_, last])
        ):
            name = unused("p", written)
            behind = source.behind_text(
                [last.iter, *last.ifs][-1], f" for {name} in {source.operand(item)}{more}"
            )
            return (source.replace(item, name), behind)
    each, name = ("module" if more else "group"), unused("p", node)
    flat = f"[{name} for {each} in {source.text(node)} for {name} in {each}{more}]"
    return (source.replace(node, flat),)


def _without_names(node: ast.expr, source: FixSource) -> Edits:
    """`model.named_parameters()` as `model.parameters()`; other pairs without their names."""
    match node:
        case ast.Call(func=ast.Attribute(attr="named_parameters") as func):
            return (source.replace_name(func, "parameters"),)
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner]):
            return _without_names(inner, source)
    name = unused("p", node)
    return (source.replace(node, f"[{name} for _, {name} in {source.text(node)}]"),)
