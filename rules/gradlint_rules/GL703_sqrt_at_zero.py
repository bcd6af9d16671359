"""# sqrt-at-zero (GL703)

The square root of a sum of squares that can be zero: its derivative there is infinite.

## What it does
Reports `sqrt`, `x ** 0.5`, `pow(0.5)`, `rsqrt` and `hypot` of squares, of sums and means of squares
(`mse_loss` among them), and of `(a² + b² - 2ab).clamp(min=0)`, on the way to a loss. So it does
`acos(x.clamp(-1, 1))`, `asin` and `acosh(x.clamp(min=1))`, whose derivative is infinite at these
very bounds.

## Why it matters
The derivative of a root is `1 / (2 * sqrt(x))`. Where two points coincide, a prediction is exact or
a frame is silent, it is infinite; times the zero derivative of the square it is NaN. With `+ eps`
behind the root it stays NaN. The cosine of two equal directions is 1, or a little more by rounding,
which a clamp makes 1.

## Example
```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 4)
y[0] = x[0]
distance = (model(x) - model(y)).pow(2).sum(dim=-1).sqrt()  # expect: GL703
loss = distance.mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.isnan().any()
```

## Use instead
A small number inside the root, or `norm`, whose gradient at zero is zero:

```python
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(8, 4), torch.randn(8, 4)
y[0] = x[0]
difference = model(x) - model(y)
loss = (difference.pow(2).sum(dim=-1) + 1e-12).sqrt().mean() + difference.norm(dim=-1).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
assert model.weight.isfinite().all()
```

The distances of all pairs of some rows, `(2 - 2 * x @ x.T).sqrt()` of unit length, are zero where
a row meets itself. An angle is kept a little within the bounds:
`torch.acos(cosine.clamp(-1 + 1e-6, 1 - 1e-6))`.

## What it does not report
- Roots of what cannot be zero: `+ eps` and `clamp(min=eps)` inside; squares of `exp`, of what
  `rsample()` gives, and of parameters alone, unless these begin with zeros.
- Roots that the program takes only of what is not zero: `if energy > 0:`.
- Squares behind a ReLU, whose backward makes the NaN a zero.
- `norm`, `cdist`, `std` and `F.pairwise_distance`, whose gradients at zero are finite.
- Roots for the report alone; those that `where-nan-gradient` (GL701) names, which is the first of
  what a choice guards in vain, and those that only this takes.
- Sums with a square that carries no gradient, `((x - y) ** 2 + width ** 2).sqrt()`, which is there
  to keep the root from zero. Where the two are arguments that nothing in view ties together, it is
  a note: they can be the two parts of a complex number.
- As more than a note: roots of one tensor out of the batch that a loss is given as a whole, where
  others of the batch can be the prediction; roots of no difference, of the arguments of a module
  that has nothing to train: a spectrogram can be there for data alone; in a part, roots of no
  difference of what layers out of view give, such as the features of a network for a perceptual
  loss.

## Limits
Whether equal points come up is for the data to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gradlint.finding import Finding, Fix, Severity, Span
from gradlint.operations import Trait, canonical, has, having
from gradlint.paths import Paths
from gradlint.rule import FixSource, NoFixError, Report
from gradlint.tape import PREDICTED, Value, ancestors, leaves, users_among
from gradlint_rules.arrivals import Arrival
from gradlint_rules.encounters import encountered
from gradlint_rules.guards import guarded_in, undefined_at
from gradlint_rules.limits import written_bounds
from gradlint_rules.numbers import origin, zero_with
from gradlint_rules.numeric import with_epsilon
from gradlint_rules.signs import is_difference, is_square, own_cosine
from gradlint_rules.uncut import unsafe
from gradlint_rules.visited import operations, taught
from gradlint_rules.words import maker

SEVERITY = Severity.WARNING
_HELP = (
    "Add a small number inside the root, `(x + 1e-12).sqrt()`, or use `norm`, whose gradient at "
    "zero is zero."
)
_HELP_BOUND = "Keep it a little within the bounds: `x.clamp(-1 + 1e-6, 1 - 1e-6)`."


def check(paths: Paths) -> Iterator[Report]:
    """The roots of squares on the way to a loss, and the angles of what is 1 or -1."""
    for found in encountered(paths, _angles):
        one = "what a clamp makes 1"
        if own_cosine(found.value.inputs[0]):
            one = "cosines of what meets itself, which are 1"
        yield Report(
            found.at,
            f"{maker(found.value)} is taken of {one}{found.condition}: its gradient there is not "
            "finite",
            _HELP_BOUND,
            found.related(),
            hints={"asked": "yes", "bound": "yes"},
        )
    for found in encountered(paths, _roots):
        cause = f"{maker(found.value)} is taken of squares that can be zero{found.condition}"
        hints = {"asked": "yes"} if _is_asked(found.value, found.arrival) else {}
        yield Report(
            found.at,
            f"{cause}: the gradient there is not finite",
            _HELP,
            found.related(),
            severity=_severity(found.value, found.arrival),
            hints=hints,
        )


def _roots(arrival: Arrival) -> Iterator[tuple[Span, Value]]:
    if having(Trait.POWERS).isdisjoint(operations(arrival.sink, arrival.tape)):
        return
    values = taught(arrival.sink, arrival.tape)
    roots = [value for value in values if _is_root(value) and value.inputs[0].requires_grad]
    reported = _told(roots, values) if roots else set()
    asked = {id(value) for decision in arrival.tape.decisions for value in decision.not_zero}
    for value in roots:
        if id(value) not in reported and not any(
            id(inner) in asked for inner in zero_with(value.inputs[0])
        ):
            yield value.at, value


def _angles(arrival: Arrival) -> Iterator[tuple[Span, Value]]:
    """What has no finite derivative at the bound that its argument is clamped to.

    A bound of zero leaves it to what is clamped whether anything comes to it.
    """
    if not any(1 in undefined_at(name) for name in operations(arrival.sink, arrival.tape)):
        return
    values = taught(arrival.sink, arrival.tape)
    angles = [value for value in values if _is_clamped_to_its_point(value) or _is_of_itself(value)]
    reported = _told(angles, values) if angles else set()
    yield from ((value.at, value) for value in angles if id(value) not in reported)


def _is_clamped_to_its_point(value: Value) -> bool:
    """Whether a clamp makes some of its argument what it has no derivative at; not behind a choice,
    which can have put something else there before.
    """
    points = [point for point in undefined_at(canonical(value.op)) if point]
    clamped = origin(value.inputs[0], selected=False) if points else value
    return (
        clamped.requires_grad
        and not set(points).isdisjoint(written_bounds(clamped))
        and not has(clamped.inputs[0].op, Trait.CHOOSES)
    )


def _is_of_itself(value: Value) -> bool:
    """Whether it is the angle between all pairs of some rows, those of a row and itself among them:
    `torch.acos(x @ x.T)`.
    """
    points = [point for point in undefined_at(canonical(value.op)) if point]
    return bool(points) and own_cosine(value.inputs[0]) in points


def _told(roots: Sequence[Value], values: Sequence[Value]) -> set[int]:
    """What GL701 names of what choices guard in vain, of each choice the first, and a root that
    nothing else takes.
    """
    first: dict[int, Value] = {}
    for entry in guarded_in(values):
        first.setdefault(id(entry.choice), entry.operation)
    named = set(map(id, first.values()))
    users = users_among(values) if named else {}
    inner = (
        root for root in roots if id(root) in users and named.issuperset(map(id, users[id(root)]))
    )
    return named.union(map(id, inner))


def _severity(root: Value, arrival: Arrival) -> Severity | None:
    """A note where what is not seen decides that its argument is zero, or has a gradient at all."""
    is_doubtful = (
        _is_of_unrelated(root)
        or _is_of_some_parts(root, arrival)
        or _is_of_what_is_given(root, arrival)
        or _is_of_layers_out_of_view(root, arrival)
    )
    return Severity.NOTE if is_doubtful else None


def _is_of_what_is_given(root: Value, arrival: Arrival) -> bool:
    """Whether a part with nothing to train takes it of its arguments, none of which is said to be
    predicted, and of no difference, which equal points make zero: the spectrogram of a recording,
    through which nobody in view trains.
    """
    behind = ancestors(root)
    return (
        arrival.sink.assumed
        and all(leaf.assumed for leaf in arrival.sink.leaves)
        and not any(PREDICTED in value.flags or is_difference(value) for value in behind)
    )


def _is_of_layers_out_of_view(root: Value, arrival: Arrival) -> bool:
    """Whether a part takes it of what layers that it does not make itself give, and of no
    difference of two such: that all of it is zero is for these layers to say, and a ReLU at their
    end makes the NaN a zero.
    """
    behind = list(zero_with(root.inputs[0]))
    last = behind[-1]
    return (
        arrival.sink.assumed
        and last.op == "call"
        and last.assumed
        and PREDICTED not in last.flags
        and not any(map(is_difference, behind))
    )


def _is_of_some_parts(root: Value, arrival: Arrival) -> bool:
    """Whether it rests on some of the tensors of one batch that a loss is given, and the loss on
    others beside them, which can be the predictions: `batch["clean"].square().sum().sqrt()`.
    """
    own, all_parts = _parts(ancestors(root)), _parts(arrival.sink.graph)
    return bool(own) and own < all_parts


def _parts(values: Iterable[Value]) -> set[int]:
    return {
        id(value)
        for value in values
        if value.op == "part" and any(PREDICTED in source.flags for source in value.inputs)
    }


def _is_of_unrelated(root: Value) -> bool:
    """Whether the squares are of arguments that nothing in view ties together, so that the second
    can be a width which keeps the root from zero: `((x - y) ** 2 + width ** 2).sqrt()`.
    """
    found = origin(root.inputs[0], selected=False)
    if canonical(found.op) != "add" or len(found.inputs) != 2:
        return False
    one, other = ({id(leaf) for leaf in leaves(term)} for term in found.inputs)
    are_given = all(leaf.assumed for term in found.inputs for leaf in leaves(term))
    return are_given and one.isdisjoint(other)


def _is_asked(root: Value, arrival: Arrival) -> bool:
    """Whether a choice asks for the very place at which its derivative is infinite."""
    return any(entry.operation is root for entry in guarded_in(taught(arrival.sink, arrival.tape)))


def _is_root(value: Value) -> bool:
    name = canonical(value.op)
    if name == "hypot" or not has(name, Trait.POWERS):
        return name == "hypot"
    if name == "pow" and value.argument(1, "exponent") != 0.5:
        return False
    return bool(value.inputs) and is_square(value.inputs[0])


def fix(finding: Finding, source: FixSource) -> Fix:
    """Takes the root of a little more."""
    if finding.hints.get("bound"):
        raise NoFixError("how near to the bounds it may come is not known")
    return unsafe("Take the root of a little more", with_epsilon(finding, source))
