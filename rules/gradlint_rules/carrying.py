"""Fixes of what is carried from round to round: detached, or made anew in each."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gradlint.finding import Edit, Finding, Role
from gradlint.rule import FixSource, NoFixError
from gradlint_rules.order import (
    calls_of,
    names_of,
    nested,
)


def carried_detached(finding: Finding, source: FixSource) -> tuple[Edit, ...]:
    """What is carried from one round into the next detached behind the backward, or where an
    attribute keeps it.
    """
    backward = source.statement(finding.at)
    wanted = set(finding.hints["carried"].split())
    loops = [outer for outer in nested(backward, source) if isinstance(outer, ast.For | ast.While)]
    if (shared := _shared(finding, backward, loops, source)) is not None:
        return _made_anew(shared, backward, loops, source)
    for loop in loops:
        names = [name for name in _carried(loop) if not wanted or name in wanted] or _carried(loop)
        names = [name for name in names if not _is_number(name, loop, source)]
        if names:
            return _detached_in(loop, names, wanted, backward, source)
    if edits := _detached_where_kept(wanted, backward, source):
        return edits
    if loops and not any(True for _ in calls_of(loops[0], "step")):
        return _retained(backward, source)
    raise NoFixError("what is carried has no name here")


def _detached_in(
    loop: ast.For | ast.While,
    names: list[str],
    wanted: set[str],
    backward: ast.stmt,
    source: FixSource,
) -> tuple[Edit, ...]:
    """What a loop carries from one round into the next, detached behind its backward."""
    around = nested(backward, source)
    anchor = _within_conditions(next(each for each in loop.body if each in around), backward)
    if any(_is_record(name, wanted, source) for name in names):
        return _record_detached(names, wanted, anchor, source)
    if wanted and wanted.isdisjoint(names):
        edits = _detached_where_kept(wanted, backward, source)
        if edits:
            return edits
    return source.after(anchor, *(_detached(name, source, loop) for name in names))


def _detached_where_kept(
    wanted: set[str], backward: ast.stmt, source: FixSource
) -> tuple[Edit, ...]:
    """What an attribute or a container keeps of what is carried detached there; nothing where none
    keeps it.
    """
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign):
            for target in _targets(node):
                named = wanted or _bound_from(target, source.scope(backward), source)
                if not named.isdisjoint(_keeps(target, node.value)) and _is_carried(
                    node, target, source
                ):
                    return _kept_detached(node, target, backward, source)
    return ()


def _within_conditions(statement: ast.stmt, inner: ast.stmt) -> ast.stmt:
    """The statement behind which `inner` is over, on its side of the conditions around it."""
    while isinstance(statement, ast.If) and statement is not inner:
        sides = (each for side in (statement.body, statement.orelse) for each in side)
        statement = next(each for each in sides if any(node is inner for node in ast.walk(each)))
    return statement


def _retained(backward: ast.stmt, source: FixSource) -> tuple[Edit, ...]:
    call = next(calls_of(backward, "backward", "manual_backward"))
    return (source.add_argument(call, "retain_graph=True"),)


def _shared(
    finding: Finding, backward: ast.stmt, loops: Sequence[ast.For | ast.While], source: FixSource
) -> ast.Assign | None:
    """What all rounds of a loop, or calls of a function in another, have in common: computed before
    it, named there.
    """
    scope = source.scope(backward)
    whole = loops[0] if loops else scope
    if isinstance(whole, ast.Module):
        return None
    wanted, block = set(finding.hints["carried"].split()), source.block(whole)
    line = next((each.at.line for each in finding.related if each.role is Role.COMPUTED), 0)
    for earlier in block[: block.index(whole)]:
        names = names_of(earlier, ast.Store)
        is_it = bool(names & wanted) or earlier.lineno <= line <= (earlier.end_lineno or 0)
        if is_it and isinstance(earlier, ast.Assign) and not names & names_of(whole, ast.Store):
            return earlier
    return None


def _made_anew(
    shared: ast.Assign, backward: ast.stmt, loops: Sequence[ast.For | ast.While], source: FixSource
) -> tuple[Edit, ...]:
    """The graph that rounds have in common kept, or where the parameters change in between, made
    anew in each.
    """
    scope = source.scope(backward)
    if loops and not any(True for _ in calls_of(loops[0], "step")):
        return _retained(backward, source)
    body = loops[0].body if loops else getattr(scope, "body", [])
    names = names_of(shared, ast.Store)
    first = next((each for each in body if names & names_of(each, ast.Load)), None)
    if first is None:
        raise NoFixError("where it is used is not in view")
    return source.move_before([shared], first)


def _kept_detached(
    node: ast.Assign, target: ast.expr, backward: ast.stmt, source: FixSource
) -> tuple[Edit, ...]:
    """What is kept detached as it is kept, or where it is kept if that is more than a name; behind
    the backward where it is kept under a condition and read behind that.
    """
    line = _detached(source.text(target), source, source.scope(node))
    later, *outside = (
        _reads_in(_rest(each, source), target, source) for each in nested(node, source)
    )
    if any(outside):
        if source.scope(backward) is not source.scope(node):
            raise NoFixError("what is kept under a condition is read behind it")
        return source.after(backward, line)
    if len(node.targets) > 1 or (not later and not isinstance(node.value, ast.Name)):
        return source.after(node, line)
    if isinstance(node.value, ast.Name):
        name = node.value.id
        binding: tuple[Edit, ...] = ()
        if later and _is_bound_behind(name, node, source):
            raise NoFixError("what is kept has another name behind it")
    elif node.targets == [target]:
        name = source.fresh(getattr(target, "attr", "kept"), node)
        binding = source.before(node, f"{name} = {source.text(node.value)}")
    else:
        raise NoFixError("several things are kept at once")
    kept = line.partition(" = ")[2].replace(source.text(target), name)
    reads = (source.replace(read, name) for read in later)
    return (*binding, source.replace(node.value, kept), *reads)


def _rest(statement: ast.stmt, source: FixSource) -> list[ast.stmt]:
    block = source.block(statement)
    return block[block.index(statement) + 1 :]


def _reads_in(statements: list[ast.stmt], target: ast.expr, source: FixSource) -> list[ast.expr]:
    return [
        read
        for statement in statements
        for read in ast.walk(statement)
        if isinstance(read, ast.Attribute | ast.Subscript)
        and isinstance(read.ctx, ast.Load)
        and source.text(read) == source.text(target)
    ]


def _is_bound_behind(name: str, node: ast.stmt, source: FixSource) -> bool:
    bound = (each for each in ast.walk(source.scope(node)) if isinstance(each, ast.Name))
    return any(
        each.id == name and isinstance(each.ctx, ast.Store) and each.lineno > node.lineno
        for each in bound
    )


def _targets(node: ast.Assign) -> list[ast.expr]:
    return [
        part
        for t in node.targets
        for part in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])
    ]


def _keeps(target: ast.expr, value: ast.expr) -> set[object]:
    """By which names what `self.state = h` or `memory["state"] = h` keeps can be known; none for a
    plain name.
    """
    given: set[object] = {value.id} if isinstance(value, ast.Name) else set()
    match target:
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name)):
            return {name, *given}
        case ast.Subscript():
            return given
    return set()


def _is_carried(node: ast.Assign, target: ast.expr, source: FixSource) -> bool:
    """Whether what is kept there is computed, and read from there by the same function."""
    is_read = _reads(source.scope(node), target, source)
    return is_read and not isinstance(node.value, ast.Constant)


def _bound_from(target: ast.expr, scope: ast.AST, source: FixSource) -> set[str]:
    """The names that a function binds to what it computes from what is kept there."""
    assigned = [node for node in ast.walk(scope) if isinstance(node, ast.Assign)]
    return {
        name
        for node in assigned
        if _reads(node.value, target, source)
        for name in names_of(node, ast.Store)
    }


def _reads(code: ast.AST, target: ast.expr, source: FixSource) -> bool:
    text = source.text(target)
    reads = [node for node in ast.walk(code) if isinstance(node, ast.Attribute | ast.Subscript)]
    if any(isinstance(node.ctx, ast.Load) and source.text(node) == text for node in reads):
        return True
    if not isinstance(target, ast.Subscript) or isinstance(target.slice, ast.Constant):
        return False
    owners = [
        node
        for node in reads
        if node is not target.value and source.text(node) == source.text(target.value)
    ]
    # `for key, state in self.states.items()`
    return any(isinstance(node.ctx, ast.Load) for node in owners)


def _carried(loop: ast.For | ast.While) -> list[str]:
    """The names that a round reads before it binds them anew, in the order of the source."""
    bound = names_of(loop.target, ast.Store) if isinstance(loop, ast.For) else set()
    found: list[str] = []
    later = {name for statement in loop.body for name in names_of(statement, ast.Store)}
    for statement in loop.body:
        if not isinstance(statement, ast.AugAssign):
            early = names_of(statement, ast.Load) - bound
            found += [name for name in sorted(early & later) if name not in found]
        bound |= names_of(statement, ast.Store)
    return found


def _is_number(name: str, loop: ast.AST, source: FixSource) -> bool:
    """Whether a name is only counted up."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and name in names_of(ast.Module([node], []), ast.Store):
            return False
    return True


def _is_record(name: str, wanted: set[str], source: FixSource) -> bool:
    """Whether the tensors that are carried are attributes of what has this name."""
    reads = (
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and node.attr in wanted
    )
    return any(isinstance(node.value, ast.Name) and node.value.id == name for node in reads)


def _record_detached(
    names: list[str], wanted: set[str], anchor: ast.stmt, source: FixSource
) -> tuple[Edit, ...]:
    """The record that is carried made anew, with the tensors in it detached."""
    kinds = [
        node
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and wanted <= set(_fields(node))
    ]
    if (
        len(names) != 1
        or len(kinds) != 1
        or not all(_fields(kinds[0])[each].endswith("Tensor") for each in wanted)
    ):
        raise NoFixError("what is carried is kept in an object of the program")
    name = names[0]
    parts = ", ".join(f"{each}={name}.{each}.detach()" for each in sorted(wanted))
    if any(source.called(base).endswith("NamedTuple") for base in kinds[0].bases):
        return source.after(anchor, f"{name} = {name}._replace({parts})")
    decorators = [
        each.func if isinstance(each, ast.Call) else each for each in kinds[0].decorator_list
    ]
    if not any(source.called(each) == "dataclasses.dataclass" for each in decorators):
        raise NoFixError("what is carried is kept in an object of the program")
    replace, imports = source.reference("dataclasses.replace")
    return (*source.after(anchor, f"{name} = {replace}({name}, {parts})"), *imports)


def _fields(kind: ast.ClassDef) -> dict[str, str]:
    """The fields that a record declares, with what they are said to be."""
    declared = (node for node in kind.body if isinstance(node, ast.AnnAssign))
    return {
        node.target.id: ast.unparse(node.annotation)
        for node in declared
        if isinstance(node.target, ast.Name)
    }


def _detached(name: str, source: FixSource, near: ast.AST) -> str:
    """`state = state.detach()`, for a pair of them where the file says that it is one."""
    place = ast.parse(name, mode="eval").body
    assigned = [node for node in ast.walk(source.tree) if isinstance(node, ast.Assign)]
    values = [node.value for node in assigned if name in map(source.text, node.targets)]
    names = {name, *(value.id for value in values if isinstance(value, ast.Name))}
    is_pair = any(isinstance(value, ast.Tuple) for value in values) or any(
        _is_from_lstm(one, source) for one in names
    )
    assert isinstance(place, ast.Name | ast.Attribute | ast.Subscript)
    return (
        f"{name} = tuple(part.detach() for part in {name})"
        if is_pair
        else f"{name} = {name}.detach()"
    )


def _is_from_lstm(name: str, source: FixSource) -> bool:
    """Whether a name is the second of two results, and the file makes an LSTM, whose state is a
    pair.
    """
    makes = any(True for _ in calls_of(source.tree, "LSTM"))
    pairs = (node for node in ast.walk(source.tree) if isinstance(node, ast.Assign))
    return makes and any(
        isinstance(target, ast.Tuple)
        and len(target.elts) == 2
        and source.text(target.elts[1]) == name
        for pair in pairs
        for target in pair.targets
    )
