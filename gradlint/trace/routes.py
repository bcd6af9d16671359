"""The route of a loss, folded: the values of one line of the user's are one stop, named after the
module it runs.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field

from gradlint.finding import Span
from gradlint.tape import Backward, Kind, Tape, Value, ancestors, graph

_MOST_OPS = 4


@dataclass(eq=False, slots=True)
class Stop:
    """One line of the user's on the way from a loss to its parameters."""

    at: Span
    text: str
    ops: list[str] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    carries: bool = False
    cut: str = ""
    inputs: list[Stop] = field(default_factory=list)

    @property
    def module(self) -> str:
        """The module that all the parameters used here are part of, or ''."""
        owners = [name.rpartition(".")[0].split(".") for name in self.parameters]
        if not owners:
            return ""
        shared = []
        for words in zip(*owners, strict=False):
            if len(set(words)) > 1:
                break
            shared.append(words[0])
        return ".".join(shared)

    @property
    def label(self) -> str:
        """What a picture writes into the stop."""
        return self.module or ", ".join(
            dict.fromkeys(op.rpartition(".")[2].strip("_") for op in self.ops[:_MOST_OPS])
        )


def losses(tape: Tape) -> list[Backward]:
    """The first backward of each sink in the source, one that was recorded in full where there is
    one.
    """
    found: dict[Span, Backward] = {}
    for sink in tape.backwards():
        known = found.get(sink.at)
        if known is None or (not known.value.inputs and sink.value.inputs):
            found[sink.at] = sink
    return list(found.values())


def fold(loss: Value) -> list[Stop]:
    """The stops behind a loss, itself first; what carries no gradient only as far as the cuts."""
    values = [value for value in ancestors(loss) if _is_shown(value)]
    fed = set(map(id, graph(loss)))
    stops: dict[Span, Stop] = {}
    of: dict[int, Stop] = {}
    for value in values:
        stop = stops.setdefault(value.at, Stop(value.at, value.text or value.title))
        of[id(value)] = stop
        stop.ops.append(value.op)
        stop.carries |= value.requires_grad
        stop.cut = stop.cut or ("" if _goes_by(value, fed) else _cut(value))
    for value in values:
        _join(value, of)
    for stop in stops.values():
        stop.parameters.sort()
    return list(stops.values())


def _is_shown(value: Value) -> bool:
    return value.kind not in (Kind.PARAMETER, Kind.DATA, Kind.CONSTANT) and (
        value.requires_grad or bool(_cut(value)) or not value.inputs
    )


def _cut(value: Value) -> str:
    cuts = (
        not value.requires_grad
        and value.cut is not None
        and any(source.requires_grad for source in value.inputs)
    )
    return value.cut.value if cuts and value.cut is not None else ""


def _goes_by(cut: Value, fed: Container[int]) -> bool:
    """Whether all that is cut off there was computed from what gets its gradient another way: the
    maximum that a softmax takes off its logits.
    """
    pending = [source for source in cut.inputs if source.requires_grad and id(source) not in fed]
    seen = set(map(id, pending))
    for value in pending:
        sources = [source for source in value.inputs if source.requires_grad]
        if not sources or any(source.parameter is not None for source in sources):
            return False
        new = [each for each in sources if id(each) not in fed and id(each) not in seen]
        seen.update(map(id, new))
        pending += new
    return True


def _join(value: Value, of: dict[int, Stop]) -> None:
    stop = of[id(value)]
    for other in _before(value, of):
        if other is not stop and other not in stop.inputs:
            stop.inputs.append(other)
    for source in value.inputs:
        if (
            source.parameter is not None
            and source.requires_grad
            and source.name not in stop.parameters
        ):
            stop.parameters.append(source.name)


def _before(value: Value, of: dict[int, Stop]) -> Iterator[Stop]:
    """The stops that a value is computed from, behind what is not shown: views of what was cut
    off.
    """
    pending = list(value.inputs)
    seen = set(map(id, pending))
    for source in pending:
        if id(source) in of:
            yield of[id(source)]
        else:
            new = [each for each in source.inputs if id(each) not in seen]
            seen.update(map(id, new))
            pending += new


def as_text(tape: Tape) -> str:
    """The routes of all losses as indented chains."""
    return "\n".join("\n".join(_chain(sink)) + "\n" for sink in losses(tape))


def _chain(sink: Backward) -> Iterator[str]:
    stops = fold(sink.value)
    yield f"{sink.at}  {sink.text}"
    seen: set[int] = set()
    pending = [(stops[0], 1)] if stops else []
    while pending:
        stop, depth = pending.pop()
        again = id(stop) in seen
        seen.add(id(stop))
        yield _line(stop, depth, again)
        if not again:
            pending += [(other, depth + 1) for other in reversed(stop.inputs)]


def _line(stop: Stop, depth: int, again: bool) -> str:
    names = f"  [{', '.join(stop.parameters)}]" if stop.parameters and not again else ""
    cut = f"  cut: {stop.cut}" if stop.cut else ""
    return f"{'  ' * min(depth, 20)}{stop.at}  {stop.text}{cut}{'  (above)' if again else names}"


def as_dot(tape: Tape) -> str:
    """The routes of all losses in the language of Graphviz."""
    lines = ["digraph gradients {", "  rankdir=BT;", "  node [shape=box, fontname=monospace];"]
    for number, sink in enumerate(losses(tape)):
        stops = fold(sink.value)
        names = {id(stop): f"s{number}_{index}" for index, stop in enumerate(stops)}
        lines += [f"  {names[id(stop)]} [label={_quoted(stop)}{_style(stop)}];" for stop in stops]
        lines += [
            f"  {names[id(other)]} -> {names[id(stop)]};" for stop in stops for other in stop.inputs
        ]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(stop: Stop) -> str:
    text = f"{stop.label}\n{stop.text}\n{stop.at.path}:{stop.at.line}"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _style(stop: Stop) -> str:
    return ", color=red" if stop.cut else "" if stop.carries else ", style=dashed"


def layers(stops: Sequence[Stop]) -> list[list[Stop]]:
    """The stops by their distance from the loss, for a picture that reads from left to right."""
    depth = {id(stop): 0 for stop in stops}
    for _ in stops:
        moved = False
        for stop in stops:
            for other in stop.inputs:
                if depth[id(other)] <= depth[id(stop)] < len(stops):
                    depth[id(other)] = depth[id(stop)] + 1
                    moved = True
        if not moved:
            break
    found: list[list[Stop]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for stop in stops:
        found[depth[id(stop)]].append(stop)
    return [layer for layer in found if layer]
