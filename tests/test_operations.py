"""`gradlint/operations.toml` says what torch does: each name and each trait is held against its
operations, run on the samples of torch's own tests.
"""

from __future__ import annotations

import ast
import functools
import inspect
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import UnaryUfuncInfo

from gradlint.operations import Trait, canonical, has, having, names

LIMIT = 6  # samples of one operation


def plain(name: str) -> str:
    """`torch.special.psi` as `psi`; other families (`masked.softmax`) keep their prefix."""
    for prefix in ("torch.", "special.", "nn.functional.", "linalg."):
        name = name.removeprefix(prefix)
    return name


@functools.cache
def known() -> dict[str, list[Any]]:
    """The operations that torch's tests have samples of, by the names that are used here."""
    found: dict[str, list[Any]] = {}
    info: Any
    for info in op_db:
        name = plain(info.name)
        if "." not in name and torch.float32 in info.supported_dtypes("cpu"):
            found.setdefault(canonical(name), []).append(info)
    return found


def results(name: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The first argument and the result of an operation, for some samples of it."""
    for info in known().get(name, ()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            samples = list(info.sample_inputs("cpu", torch.float32))[:LIMIT]
            for sample in samples:
                given = sample.input[0] if isinstance(sample.input, list | tuple) else sample.input
                made = info.op(sample.input, *sample.args, **sample.kwargs)
                first = made[0] if isinstance(made, list | tuple) else made
                others = [*sample.args, *sample.kwargs.values()]
                if not isinstance(given, torch.Tensor) or not isinstance(first, torch.Tensor):
                    continue
                if first.numel() and not (name in WITH_OTHERS and any(map(_is_tensor, others))):
                    yield given, first


WITH_OTHERS = ("max", "min")  # of two tensors they are another operation: `maximum`


def _is_tensor(given: object) -> bool:
    return isinstance(given, torch.Tensor)


def ran(trait: Trait) -> list[str]:
    return sorted(name for name in having(trait) if name in known())


def test_every_alias_of_torch_has_the_name_of_its_operation() -> None:
    aliases = [(plain(alias.name), plain(info.name)) for info in op_db for alias in info.aliases]
    assert len(aliases) > 50
    apart = {(one, other) for one, other in aliases if canonical(one) != canonical(other)}
    assert apart == {
        ("maximum", "max"),
        ("minimum", "min"),
        ("orgqr", "householder_product"),
        ("inverse", "inv"),
    }


FUNCTIONS = {
    other: name
    for other, name in names().items()
    if callable(getattr(torch, other, None)) and not isinstance(getattr(torch, other), type)
}


@pytest.mark.parametrize("other", sorted(FUNCTIONS))
def test_another_name_computes_the_same(other: str) -> None:
    name = FUNCTIONS[other]
    function, alias = getattr(torch, name), getattr(torch, other)
    given = [torch.rand(3, 3) + 1, torch.rand(3, 3) + 1]
    whole = [torch.tensor([3, 5]), torch.tensor([6, 1])]
    for arguments in (
        given,
        given[:1],
        [given],
        [given[0], 0, 1],
        [given[0], 1.2],
        whole,
        whole[:1],
    ):
        try:
            expected = function(*arguments)
        except (TypeError, RuntimeError):
            continue
        assert torch.equal(alias(*arguments), expected) or bool(expected.isnan().all())
        break
    else:
        pytest.fail(f"{name} took none of it")


LAYERS = sorted(other for other in names() if hasattr(nn, other))


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_that_has_the_name_of_a_function_calls_it(layer: str) -> None:
    """By its code, or by what it computes."""
    kind = getattr(nn, layer)
    if canonical(layer) in {canonical(name) for name in _names_in(kind)}:
        return
    x = torch.randn(2, 3, 4, 5)
    keywords = {"dim": 1} if kind is nn.Softmax2d else {}
    assert torch.equal(kind()(x), getattr(functional, canonical(layer))(x, **keywords))


def _names_in(layer: type[nn.Module]) -> set[str]:
    """The names of what the methods of a layer and of its bases call."""
    found: set[str] = set()
    for base in layer.__mro__:
        for method in vars(base).values():
            code = getattr(method, "__code__", None)
            found |= set(code.co_names) if code is not None else set()
    return found


def test_operators_have_the_name_of_what_they_compute() -> None:
    x, y = torch.tensor([5.0, 7.0]), torch.tensor([2.0, 4.0])
    a, b = torch.tensor([5, 6]), torch.tensor([3, 4])
    for method, name in names().items():
        operator = f"__{method}__"
        if not hasattr(torch.Tensor, operator) or method.startswith("r"):
            continue
        one, other = (a.clone(), b) if "bitwise" in name else (x.clone(), y)
        expected = getattr(torch, name)(*((one,) if method == "invert" else (one, other)))
        got = getattr(one, operator)(*(() if method == "invert" else (other,)))
        assert torch.equal(got, expected), method


@pytest.mark.parametrize("name", sorted(having(Trait.POINTWISE)))
def test_a_pointwise_operation_computes_each_number_of_those_at_its_place(name: str) -> None:
    function = _function(name)
    x, y = torch.linspace(0.1, 0.9, 8), torch.linspace(0.3, 0.8, 8)
    for others in ((), (y,), (y, 0.5), (0.5,)):
        try:
            before = function(x, *others)
        except (TypeError, RuntimeError):
            continue
        changed = x.clone()
        changed[3] = 0.77
        moved = function(changed, *others).nan_to_num() != before.nan_to_num()
        assert before.shape == x.shape
        assert not moved[torch.arange(8) != 3].any()
        return
    pytest.fail("it took none of it")


def test_every_smooth_function_of_one_number_is_pointwise() -> None:
    """torch calls them ufuncs; those that are flat, ask a question or choose are others."""
    flat = Trait.ROUNDS, Trait.ASKS_FINITE, Trait.NEGATES, Trait.CHOOSES, Trait.COPIES
    missing = {
        name
        for name, infos in known().items()
        for info in infos
        if isinstance(info, UnaryUfuncInfo) and info.supports_autograd and not has(name, *flat)
    } - having(Trait.POINTWISE)
    assert missing <= NOT_ASKED_FOR


# of complex numbers, of quantities that no rule asks for, or of several parameters
NOT_ASKED_FOR = {
    "angle", "conj", "conj_physical", "imag", "real", "polygamma", "mvlgamma", "i0", "i0e",
    "i1", "i1e", "entr", "erfcx", "log_ndtr", "ndtr", "ndtri", "bessel_j0", "bessel_j1",
    "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0",
    "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    "spherical_bessel_j0", "airy_ai", "nan_to_num", "signbit", "sign", "sgn", "threshold",
    "bfloat16", "half", "float", "double", "chalf", "cfloat", "cdouble", "fill", "frexp",
    "prelu", "rrelu",
}  # fmt: skip


@pytest.mark.parametrize("name", ran(Trait.KEEPS_SHAPE))
def test_what_keeps_the_shape_gives_as_many_numbers_in_it(name: str) -> None:
    assert all(given.shape == made.shape for given, made in results(name))


@pytest.mark.parametrize("name", ran(Trait.KEEPS_ZERO))
def test_what_keeps_zero_gives_zero_for_zeros(name: str) -> None:
    function = _function(name)
    arguments = ((2, 0.0), (0,), (1,), ())
    for more in arguments if name in ("threshold", "cumsum") else ((),):
        try:
            made = function(torch.zeros(4), *more)
        except (TypeError, RuntimeError):
            continue
        assert not made.to(torch.float32).any()
        return
    pytest.fail("it took none of it")


def _function(name: str) -> Callable[..., torch.Tensor]:
    for owner in (torch, functional, torch.special, torch.linalg, torch.Tensor):
        if callable(found := getattr(owner, name, None)):
            return found  # type: ignore[no-any-return]
    raise AssertionError(name)


def smallest(name: str) -> float:
    return min(float(made.min()) for _, made in results(name) if made.numel())


@pytest.mark.parametrize("name", ran(Trait.NEVER_NEGATIVE))
def test_what_is_never_negative_is_not(name: str) -> None:
    assert smallest(name) >= 0


@pytest.mark.parametrize("name", ran(Trait.POSITIVE))
def test_what_is_positive_is_above_zero(name: str) -> None:
    assert smallest(name) > 0


@pytest.mark.parametrize("name", sorted(having(Trait.BOUNDED) | having(Trait.BOUNDED_ABOVE)))
def test_what_is_bounded_stays_so_for_large_numbers(name: str) -> None:
    large = torch.tensor([[-1e6, -3.0, 0.5, 2.0, 1e6]])
    keywords = {"dim": -1} if name in ("softmax", "log_softmax") else {}
    made = _function(name)(
        large, *((large.flip(1),) if name == "cosine_similarity" else ()), **keywords
    )
    assert float(made.max()) <= 6
    assert name in having(Trait.BOUNDED_ABOVE) or float(made.min()) >= -6


@pytest.mark.parametrize("name", ran(Trait.REARRANGES) + ran(Trait.CASTS) + ran(Trait.COPIES))
def test_what_rearranges_or_copies_has_the_same_numbers(name: str) -> None:
    assert all(
        set(made.flatten().tolist()) == set(given.flatten().tolist())
        for given, made in results(name)
        if made.dtype == given.dtype
    )


SOME = [
    name
    for trait in (Trait.SELECTS, Trait.SPLITS, Trait.UNBINDS, Trait.EXTREMES)
    for name in ran(trait)
]


@pytest.mark.parametrize("name", sorted(SOME))
def test_what_selects_has_no_other_numbers(name: str) -> None:
    assert all(
        set(made.flatten().tolist()) <= set(given.flatten().tolist())
        for given, made in results(name)
    )


@pytest.mark.parametrize("name", ran(Trait.REDUCES) + ran(Trait.SUMS) + ran(Trait.MEANS))
def test_what_reduces_gives_one_number_for_all(name: str) -> None:
    made = _function(name)(torch.rand(4, 4), *((0,) if name == "logsumexp" else ()))
    assert made.dim() == (1 if name == "logsumexp" else 0)


def test_the_losses_are_the_functions_that_average_unless_asked_otherwise() -> None:
    def averages(name: str) -> bool:
        try:
            given = inspect.signature(getattr(functional, name)).parameters.get("reduction")
        except (TypeError, ValueError):  # it is no function, or one that is not written in Python
            return False
        return given is not None and given.default == "mean"

    averaged = {name for name in dir(functional) if not name.startswith("_") and averages(name)}
    assert averaged == {name for name in having(Trait.LOSSES) if hasattr(functional, name)}


@pytest.mark.parametrize("name", sorted(having(Trait.COUNTS_UP)))
def test_what_counts_up_gives_the_same_for_the_same_numbers(name: str) -> None:
    given = (3,) if name in ("arange", "eye") else (1, 3, 4)
    first, second = (_function(name)(*given) for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("trait", Trait)
def test_every_trait_has_operations_by_the_names_that_are_used_here(trait: Trait) -> None:
    assert having(trait)
    assert {name for name in having(trait) if canonical(name) != name} == set()
    assert {name for name in having(trait) if not _is_of_torch(name)} == set()


def _is_of_torch(name: str) -> bool:
    owners = (
        torch,
        torch.Tensor,
        functional,
        torch.linalg,
        torch.special,
        torch.distributions.Distribution,
    )
    spelled = (name, f"{name}_", f"__{name}__")
    return any(hasattr(owner, word) for owner in owners for word in spelled) or name in (
        "gru", "lstm", "rnn", "Variable",
    )  # fmt: skip


def test_spellings_of_one_operation() -> None:
    assert {canonical(f"torch.{name}") for name in ("div", "divide", "true_divide")} == {"div"}
    assert canonical("torch.Tensor.mul_") == canonical("torch.Tensor.__imul__") == "mul"
    assert has("torch.concatenate", Trait.JOINS)
    assert not has("torch.add", Trait.JOINS, Trait.SPLITS)


RULES = pathlib.Path(__file__).parents[1] / "rules/gradlint_rules"
# Lists of operations that are no trait: how many of five names or more each file may hold.
LISTED = {
    "GL704_double_activation.py": 1,  # what each loss takes
    "guards.py": 1,  # where each has no finite derivative
    "masks.py": 1,
    "numeric.py": 1,  # names in source that a fix rewrites
    "points.py": 2,  # comparisons, and what each is when turned round
    "scaled.py": 1,
    "selections.py": 3,
    "uncut.py": 2,  # names in source that a fix rewrites
    "written.py": 1,  # methods that have no twin out of place
}


def test_no_rule_lists_operations_that_a_trait_could_name() -> None:
    found: dict[str, int] = {}
    for path in RULES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if _lists_operations(node):
                found[path.name] = found.get(path.name, 0) + 1
    assert found == LISTED


def _lists_operations(node: ast.AST) -> bool:
    match node:
        case ast.Set(elts=given) | ast.Tuple(elts=given) | ast.List(elts=given):
            items: list[ast.expr | None] = list(given)
        case ast.Dict(keys=keys):
            items = keys
        case _:
            return False
    words = [each.value for each in items if isinstance(each, ast.Constant)]
    named = [word for word in words if isinstance(word, str) and _is_of_torch(word.strip("_"))]
    return len(named) >= 5 and len(named) > 0.7 * len(items)
