"""The operation table against a running torch: every fact is tried out, none is read off the
graph.
"""

from __future__ import annotations

import fnmatch
import functools
import importlib
import inspect
import itertools
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from layer_samples import LAYERS
from probes import (
    Call,
    backward,
    broken,
    call,
    can_require_grad,
    choices,
    gradients,
    shares_storage,
    some,
    usual,
)
from torch import nn
from torch.utils import _pytree

from gradlint.library import effects
from gradlint.library.effects import Effect, lookup
from gradlint.library.layer_effects import LayerEffect, layer
from gradlint.library.layer_effects import layer as effects_of_layer
from gradlint.tape import DType

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / "tools"
VARIANTS = {
    "": "", "no_rounding_mode": "", "reduction_no_dim": "", "constant": "", "nearest": "",
    "sum": "",
    "reduction_with_dim": "dim", "binary": "other", "floor_rounding": "floor",
    "trunc_rounding": "trunc",
    "reflect": "reflect", "replicate": "reflect",
}  # fmt: skip
PRIVATE = ("_", "torch._", "torch.ops", "jiterator", "sparse", "signal")
UNLISTED = {
    "max_pool2d_with_indices_backward": "a backward, called by no user",
    "native_dropout_backward": "a backward, called by no user",
    "slice": "x[a:b] to users, which is `index.slice`",
    "resize_": "torch refuses it where the tensor requires grad",
    "resize_as_": "torch refuses it where the tensor requires grad",
    "to_sparse": "a sparse tensor has no storage to write to",
    "zero_": "OpInfo calls it on a copy",
    **dict.fromkeys(
        ("cauchy", "exponential", "geometric", "log_normal", "uniform"), "exists in place only"
    ),
}
MASKED = (
    "amax", "amin", "cumprod", "cumsum", "log_softmax", "logsumexp", "mean", "median", "norm",
    "prod", "softmax",
    "softmin", "std", "sum", "var", "normalize",
)  # fmt: skip
BY_OPTION = (
    "depends on the options of the call; the table has the defaults, which the layers below try out"
)
EXPLAINED = {
    "nn.functional.conv3d": "padding='same' with an even kernel convolves a padded copy of the "
    "input",
    "nn.functional.adaptive_avg_pool1d": "an output of length 1 is a mean, which keeps nothing",
    "nn.functional.scaled_dot_product_attention": "goes by the kernel, which hangs on the mask, "
    "too: tried out below",
    "nn.functional.multi_head_attention_forward": "chunks of one weight, whose own gradient is "
    "asked for, go unnoticed",
    "lu": "get_infos=True adds an output",
    "nn.functional.kl_div": BY_OPTION,
    "nn.functional.poisson_nll_loss": BY_OPTION,
    "nn.functional.smooth_l1_loss": BY_OPTION,
    **dict.fromkeys((f"masked.{name}" for name in MASKED), "keeps the mask, where it is given one"),
}
UNLIKE_DEFINED = {
    "adaptive_max_pool2d": "the indices, which it keeps, are not returned",
    "adaptive_max_pool3d": "the indices, which it keeps, are not returned",
    "complex": "the definition calls its arguments real and imag",
    "fractional_max_pool2d": "the indices, which it keeps, are not returned",
    "fractional_max_pool3d": "the indices, which it keeps, are not returned",
}
HELD_BY_LAYER = {
    "weight",
    "pos_weight",
    "bias",
    "running_mean",
    "running_var",
}  # not given in a call
NEVER_INSIDE = {
    "nn.functional.hardtanh": "every sample lies outside the range, where the gradient is zero"
}


def operations() -> list[Any]:
    """What torch tests its own operations with; it takes seconds to be imported, where it is
    run.
    """
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


@dataclass(frozen=True, slots=True)
class Probed:
    """A sample of an operation, and what the table says of it."""

    name: str
    effect: Effect
    call: Call
    choices: tuple[set[str], ...]  # of arguments that require grad; the first is all of them


def _form(info: Any, sample: Any, outputs: int) -> str:
    if outputs > 1 and ("max_pool" in info.name or "unique" in info.name):
        return "indices"
    if "dim" in sample.kwargs and info.name in ("median", "nanmedian"):
        return "dim"
    if "reduce" in sample.kwargs and info.name == "scatter":
        return "reduce"
    if "dropout" in info.name and (
        sample.kwargs.get("training") is False or sample.kwargs.get("p") == 0
    ):
        return "eval"
    if info.name == "nn.functional.scaled_dot_product_attention" and _is_fused(sample):
        return "fused"
    return VARIANTS[info.variant_test_name]


def _is_fused(sample: Any) -> bool:
    return (
        sample.input.dim() == 4
        and not sample.kwargs.get("dropout_p")
        and "attn_mask" not in sample.kwargs
    )


def _outputs(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    leaves = _pytree.tree_leaves(function(*args, **kwargs))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _samples(info: Any) -> list[Any]:
    dtypes = (torch.float32, torch.complex64, torch.int64)
    dtype = next((dtype for dtype in dtypes if info.supports_dtype(dtype, "cpu")), None)
    found = [] if dtype is None else list(info.sample_inputs("cpu", dtype, requires_grad=False))
    return some([sample for sample in found if _is_full(sample)], 3)


def _is_full(sample: Any) -> bool:
    leaves = _pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    return bool(tensors) and all(tensor.numel() for tensor in tensors)


def _probed(info: Any, sample: Any) -> Probed | None:
    args = (sample.input, *sample.args)
    try:
        outputs = len(_outputs(info.op, args, sample.kwargs))
    except (RuntimeError, NotImplementedError):
        return None  # OpInfo holds samples that no CPU runs
    effect = lookup(info.name, _form(info, sample, outputs))
    if effect is None or not outputs:
        return None
    # OpInfo calls `where` with the method's order of arguments.
    method = info.name == "where"
    made = call(effect, info.op, args, sample.kwargs, method=method)
    return Probed(info.name, effect, made, tuple(choices(made)))


@functools.cache
def probed() -> dict[str, list[Probed]]:
    """Some samples of each operation, by its name and form in the table."""
    found: dict[str, list[Probed]] = defaultdict(list)
    for info in operations():
        if (
            info.name.startswith(PRIVATE)
            or info.variant_test_name not in VARIANTS
            or info.name in UNLISTED
        ):
            continue
        for sample in _samples(info):
            made = _probed(info, sample)
            if made is not None:
                found[f"{info.name}/{made.effect.name}"].append(made)
    return found


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    torch.set_num_threads(1)
    # Before each sample, both write down the whole stack: one for each kind of device that is not
    # there, the other to find the TestCase that asks.
    monkeypatch.setattr(torch, "manual_seed", torch.default_generator.manual_seed)
    monkeypatch.setattr("torch.testing._internal.common_utils.extract_test_fn", lambda: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _differences(
    probes: list[Probed],
) -> Iterator[tuple[tuple[str, ...], frozenset[str], frozenset[str]]]:
    """Where most of the samples break otherwise than the table says: what requires grad, what
    broke, what should.
    """
    found: dict[tuple[str, ...], list[tuple[frozenset[str], frozenset[str]]]] = defaultdict(list)
    for probe in probes:
        for requiring in probe.choices:
            there = {*probe.call.names, "result", *(f"result.{at}" for at in range(9))}
            expected = frozenset(probe.effect.saved(requiring)) & there
            found[tuple(sorted(requiring))].append((broken(probe.call, requiring), expected))
    for wanted, pairs in found.items():
        happened, expected = usual(pairs)
        if happened != expected:
            yield wanted, happened, expected


def test_a_write_breaks_the_backward_exactly_where_the_table_says_that_a_tensor_is_kept() -> None:
    wrong, tried = {}, set()
    for name, probes in probed().items():
        operation = name.partition("/")[0]
        differences = list(_differences(probes))
        tried.add(operation)
        if differences and operation not in EXPLAINED:
            wrong[name] = differences
    assert not wrong
    assert len(tried) >= 450


@pytest.mark.parametrize("requiring", [{"query"}, {"key"}, {"value"}, {"query", "key", "value"}])
@pytest.mark.parametrize(
    ("sizes", "dropout"), [((2, 3), 0.0), ((2, 2, 3), 0.0), ((2, 3), 0.5), ((2, 2, 3), 0.5)]
)
@pytest.mark.parametrize("masked", [False, True])
def test_attention_keeps_what_its_kernel_keeps(
    requiring: set[str], sizes: tuple[int, ...], dropout: float, masked: bool
) -> None:
    effect = lookup(
        "scaled_dot_product_attention", "fused" if len(sizes) == 3 and not dropout else ""
    )
    assert effect is not None
    mask = (torch.zeros(3, 3),) if masked else ()
    args = (*torch.rand(3, *sizes, 8), *mask)
    made = call(effect, nn.functional.scaled_dot_product_attention, args, {"dropout_p": dropout})
    there = {*made.names, "result"}
    assert broken(made, requiring) == set(effect.saved(requiring)) & there


def test_the_table_says_which_outputs_carry_a_gradient() -> None:
    wrong = {}
    for name, probes in probed().items():
        able = [probe for probe in probes if any(map(can_require_grad, probe.call.tensors()))]
        seen = [(_recorded(probe), _expected(probe)) for probe in able if probe.choices]
        if seen and usual(seen)[0] != usual(seen)[1] and name.partition("/")[0] not in EXPLAINED:
            wrong[name] = usual(seen)
        if not seen and able and able[0].effect.differentiable and not able[0].effect.creates:
            wrong[name] = "no output requires grad"
    assert not wrong


def _recorded(probe: Probed) -> tuple[bool, ...]:
    return tuple(output.requires_grad for output in probe.call.run(probe.choices[0])[1])


def _expected(probe: Probed) -> tuple[bool, ...]:
    count = len(probe.call.run(set())[1])
    return probe.effect.outputs or (probe.effect.differentiable,) * count


def test_the_table_says_where_the_gradient_is_zero_and_where_the_backward_raises() -> None:
    wrong = {}
    for name, probes in probed().items():
        found = [gradients(probe.call, probe.choices[0]) for probe in probes if probe.choices]
        if not found or probes[0].name in NEVER_INSIDE:
            continue
        zero = all(zero and not error for zero, error in found)
        missing = usual(["not implemented" in error for _, error in found])
        if (zero, missing) != (probes[0].effect.zero_gradient, probes[0].effect.missing_derivative):
            wrong[name] = (zero, missing)
    assert not wrong


def test_the_table_says_which_results_share_the_storage_of_the_input() -> None:
    wrong = {}
    for name, probes in probed().items():
        seen = {shares_storage(probe.call) for probe in probes}
        expected = {
            "always": [{True}],
            "": [{False}],
            "ordered": [{True}],
            "maybe": [{True}, {False}, {True, False}],
        }[probes[0].effect.view]
        if seen not in expected:
            wrong[name] = (seen, probes[0].effect.view)
    assert not wrong


def test_what_gives_the_very_input_gives_it() -> None:
    named = [
        name
        for name in effects.names()
        if (found := lookup(name)) is not None and found.itself and "." not in name
    ]
    tensor = torch.rand(2, 3)
    for name in named:
        function = getattr(torch.Tensor, name, None) or getattr(torch, name, None)
        if name != "identity":
            assert (function(tensor) if callable(function) else getattr(tensor, name)) is tensor, (
                name
            )
    assert nn.Identity()(tensor) is tensor
    assert nn.functional.dropout(tensor, training=False) is tensor
    assert len(named) >= 8


def _laid_otherwise(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The same elements in other orders in memory."""
    if tensor.dim() > 1:
        yield tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
        yield tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if tensor.dim() == 4:
        yield tensor.contiguous(memory_format=torch.channels_last)


def _are_in_order(probe: Probed, first: torch.Tensor | None = None) -> bool:
    """Whether what comes out is in order where what goes in is, but for a first tensor that lies
    otherwise.
    """
    leaves, spec = _pytree.tree_flatten((probe.call.args, probe.call.kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    for place in places:
        leaves[place] = leaves[place].detach().clone(memory_format=torch.contiguous_format)
    if first is not None:
        leaves[places[0]] = first
    args, kwargs = _pytree.tree_unflatten(leaves, spec)
    try:
        return all(output.is_contiguous() for output in _outputs(probe.call.function, args, kwargs))
    except RuntimeError:
        return first is not None  # some take no other order


def test_the_table_says_what_becomes_of_the_order_of_elements_in_memory() -> None:
    wrong, tried = [], set()
    for name, probes in probed().items():
        short = name.partition("/")[0].removeprefix("nn.functional.")
        kind = effects.order(short)
        if kind not in ("always", "kept"):
            continue
        tried.add(short)
        others = [
            (probe, each) for probe in probes for each in _laid_otherwise(probe.call.tensors()[0])
        ]
        is_kept = all(_are_in_order(probe) for probe in probes)
        if not is_kept or (kind == "always" and not all(_are_in_order(*other) for other in others)):
            wrong.append((name, kind))
    assert not wrong
    assert len(tried) >= 250


def test_the_table_says_which_layers_keep_what_they_are_made_with() -> None:
    """Of each layer, the arguments by their places, their defaults, and what lies in attributes of
    the same names.
    """
    for name, (make, _) in LAYERS.items():
        effect, made = layer(f"torch.nn.{name}"), make()
        if effect is None or not effect.settings or isinstance(made, nn.RNNBase):
            continue
        taken = list(inspect.signature(type(made).__init__).parameters.values())[1:]
        for setting, place, default in effect.settings:
            assert taken[place].name == setting, name
            assert hasattr(made, setting), (name, setting)
            given = taken[place].default
            assert default is ... if given is inspect.Parameter.empty else default == given, name


@pytest.mark.parametrize(
    ("layer", "kept"),
    [
        (nn.Linear(3, 4), {"in_features": 3, "out_features": 4}),
        (nn.Dropout(0.25), {"p": 0.25}),
        (nn.Conv2d(4, 8, 3, groups=2), {"in_channels": 4, "out_channels": 8, "groups": 2}),
        (nn.GRU(3, 5, 2, batch_first=True), {"hidden_size": 5, "num_layers": 2, "dropout": 0.0}),
        (nn.RNN(3, 5, 2), {"input_size": 3, "hidden_size": 5, "num_layers": 2, "bias": True}),
        (nn.MultiheadAttention(4, 2, 0.5), {"embed_dim": 4, "num_heads": 2, "dropout": 0.5}),
        (nn.BatchNorm2d(3, momentum=0.3), {"num_features": 3, "momentum": 0.3, "affine": True}),
    ],
)
def test_layers_keep_what_they_are_made_with(layer: nn.Module, kept: dict[str, object]) -> None:
    known = effects_of_layer(f"torch.nn.{type(layer).__name__}")
    assert known is not None
    assert {name: getattr(layer, name) for name in kept} == kept
    assert kept.keys() <= {name for name, _, _ in known.settings}


@pytest.mark.parametrize("laid", ["bhnd", "bnhd", "nbhd"])
def test_fused_attention_lays_its_result_out_as_the_queries(laid: str) -> None:
    """Batches, heads, positions and numbers, whatever the order of keys and values."""
    sizes = {"b": 2, "h": 3, "n": 5, "d": 4}
    inner = torch.randn(*(sizes[axis] for axis in laid), requires_grad=True)
    queries = inner.permute(*map(laid.index, "bhnd"))
    other = torch.randn(*(sizes[axis] for axis in "bhnd"))
    made = nn.functional.scaled_dot_product_attention(queries, other, other)
    assert made.permute(*map("bhnd".index, laid)).is_contiguous()
    assert effects.order("torch.nn.functional.scaled_dot_product_attention") == "queries"


def test_a_forced_dtype_is_the_dtype_of_the_result() -> None:
    of = {
        torch.bool: DType.BOOL,
        torch.float16: DType.HALF,
        torch.bfloat16: DType.BFLOAT,
        torch.float64: DType.DOUBLE,
    }
    for name, probes in probed().items():
        effect = probes[0].effect
        if effect.dtype is not None:
            results = {probe.call.run(set())[1][0].dtype for probe in probes}
            plain = {
                DType.FLOAT if dtype.is_floating_point else DType.INTEGER
                for dtype in results - set(of)
            }
            assert {of[dtype] for dtype in results & set(of)} | plain == {effect.dtype}, name


def test_every_operation_that_torch_tests_is_in_the_table() -> None:
    missing = {
        info.name
        for info in operations()
        if not info.name.startswith(PRIVATE) and lookup(info.name) is None
    }
    assert missing <= set(UNLISTED)


def test_an_in_place_twin_keeps_its_result_and_the_others_and_never_its_old_input() -> None:
    wrong, tried = {}, set()
    for info in operations():
        if not _has_twin(info):
            continue
        for happened, expected in _twins(info):
            tried.add(info.name)
            if happened != expected:
                wrong[info.name] = (happened, expected)
    assert not wrong
    assert len(tried) >= 100


def _has_twin(info: Any) -> bool:
    named = (
        info.variant_test_name in VARIANTS
        and info.name not in UNLISTED
        and not info.name.startswith(PRIVATE)
    )
    return named and info.inplace_variant is not None


def _twins(info: Any) -> Iterator[tuple[set[str], set[str]]]:
    """What a write breaks after an in-place call, and what the table says; a twin's own tensor is
    its result.
    """
    fitting = 0
    dtype = torch.float32 if info.supports_dtype(torch.float32, "cpu") else torch.int64
    for sample in itertools.islice(
        filter(_is_full, info.sample_inputs("cpu", dtype, requires_grad=False)), 12
    ):
        effect = lookup(f"{info.name}_", _form(info, sample, 1))
        assert effect is not None
        assert effect.in_place
        made = call(effect, info.inplace_variant, (sample.input, *sample.args), sample.kwargs)
        try:
            happened = broken(made, next(choices(made), set()))
        except (RuntimeError, TypeError):
            # the result is larger than the tensor it would be written to, or torch has no such
            # kernel
            continue
        there = {*made.names[1:], "result"}
        yield set(happened) & there, set(effect.saved(set(made.names))) & there
        fitting += 1
        if fitting == 2:
            return


def _run_layer(
    name: str, requiring: set[str]
) -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
    """What the layer is called with, its parameters, and what comes out."""
    torch.manual_seed(0)
    make, arguments = LAYERS[name]
    module, given = make(), arguments()
    for parameter in module.parameters():
        parameter.requires_grad_("weight" in requiring)
    args: list[Any] = []
    for at, value in enumerate(given):
        slot = "input" if at == 0 else "other"
        wants = isinstance(value, torch.Tensor) and slot in requiring and can_require_grad(value)
        args.append(
            value.clone().requires_grad_(wants).clone()
            if isinstance(value, torch.Tensor)
            else value
        )
    leaves = _pytree.tree_leaves(module(*args))
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    return (
        tensors,
        list(module.parameters()),
        [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)],
    )


def _layer_breaks(name: str, requiring: set[str], slot: str) -> bool:
    """Whether a write into one tensor of this role makes the backward raise."""
    given, parameters, outputs = _run_layer(name, requiring)
    place = int(slot.rpartition(".")[2]) if "." in slot else 0
    targets = {"input": given[:1], "other": given[1:], "weight": parameters}.get(
        slot, outputs[place : place + 1]
    )
    for target in targets:
        torch.autograd.graph.increment_version(target)
    return "modified by an inplace operation" in backward(outputs)


def _saved_by_role(layer: LayerEffect, requiring: set[str]) -> set[str]:
    """What the table says is kept when these require grad, both told by role: `input`, `other`,
    `weight`, `result`.
    """
    first, *rest = layer.effect.arguments or ("input", "other")
    named = {"input": {first}, "other": set(rest) - HELD_BY_LAYER}
    roles = dict.fromkeys(rest, "other") | dict.fromkeys(HELD_BY_LAYER, "weight") | {first: "input"}
    wanted = {name for role in requiring for name in named.get(role, {role})}
    return {roles.get(what, what) for what in layer.effect.saved(wanted)}


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_a_layer_keeps_what_the_table_says(name: str) -> None:
    effect = layer(f"torch.nn.{name}")
    assert effect is not None
    given, parameters, outputs = _run_layer(name, set())
    assert effect.has_parameters == bool(parameters)
    assert len(_pytree.tree_leaves(effect.outputs)) in (0, len(outputs))
    assert effect.integer_input == (not can_require_grad(given[0]))
    slots = ["input", *["other"] * (len(given) > 1), *["weight"] * bool(parameters)]
    results = ["result"] if len(outputs) == 1 else [f"result.{at}" for at in range(len(outputs))]
    for requiring in [{slot} for slot in slots]:
        try:
            recorded = any(output.requires_grad for output in _run_layer(name, requiring)[2])
        except RuntimeError:
            continue  # torch refuses a target that requires grad
        if recorded:
            happened = {slot for slot in (*slots, *results) if _layer_breaks(name, requiring, slot)}
            assert happened == _saved_by_role(effect, requiring) & {*slots, *results}, requiring


def test_every_layer_of_torch_is_in_the_table() -> None:
    modules = {
        name: made
        for name, made in vars(nn).items()
        if isinstance(made, type) and issubclass(made, nn.Module)
    }
    found = {name: layer(f"torch.nn.{name}") for name in modules}
    assert {name for name, effect in found.items() if effect is None} == {"RNNBase", "RNNCellBase"}
    untried = {name: effect for name, effect in found.items() if effect and name not in LAYERS}
    assert all(
        effect.container or name.startswith(("Lazy", "SyncBatchNorm"))
        for name, effect in untried.items()
    )


def test_losses_and_their_reductions_are_those_of_torch() -> None:
    for name, (make, _) in LAYERS.items():
        effect = layer(name)
        assert effect is not None
        reduces = getattr(make(), "reduction", "") and name != "AdaptiveLogSoftmaxWithLoss"
        assert effect.is_loss == bool(reduces), name


def test_layers_that_take_inplace_are_those_of_torch() -> None:
    for name, (make, _) in LAYERS.items():
        effect = layer(name)
        assert effect is not None
        assert effect.takes_inplace == hasattr(make(), "inplace"), name


def test_the_table_loads_without_torch() -> None:
    program = (
        "import sys; from gradlint.library import effects, layer_effects as layers; "
        "assert effects.lookup('relu') and layers.layer('Linear'); print('torch' in sys.modules)"
    )
    assert (
        subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True) == "False\n"
    )


def test_the_definitions_in_the_wheel_agree_with_what_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(TOOLS)
    definitions = importlib.import_module("read_definitions").definitions()
    wrong, compared = set(), 0
    for name in effects.names():
        effect = lookup(name)
        if name in definitions and effect is not None:
            compared += 1
            said = [
                _roles([what for what, _ in definition.saves]) for definition in definitions[name]
            ]
            wrong |= set() if _roles([save.what for save in effect.saves]) in said else {name}
    assert wrong == set(UNLIKE_DEFINED)
    assert compared >= 250


def _roles(kept: list[str]) -> tuple[bool, bool, bool]:
    """Whether the input, another argument and the result are kept."""
    results = [what for what in kept if what.startswith("result")]
    return "input" in kept, bool(set(kept) - {"input"} - set(results)), bool(results)


def test_the_generated_table_is_what_this_torch_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    assert effects.torch_version() == torch.__version__.partition("+")[0]
    monkeypatch.syspath_prepend(TOOLS)
    monkeypatch.setattr(sys, "argv", ["generate_effects.py", "--check"])
    assert importlib.import_module("generate_effects").main() == 0


@pytest.mark.parametrize("operation", ["relu", "exp", "sqrt", "sigmoid", "tanh", "softmax"])
def test_these_keep_their_result(operation: str) -> None:
    effect = lookup(f"torch.{operation}")
    assert effect is not None
    assert effect.saves_result
    assert not effect.saves_input


def test_an_addition_to_the_output_of_a_layer_is_fine_unless_the_layer_keeps_it() -> None:
    for name in (
        "Linear",
        "LayerNorm",
        "BatchNorm2d",
        "Conv2d",
        "GELU",
        "LeakyReLU",
        "MultiheadAttention",
    ):
        effect = layer(name)
        assert effect is not None
        assert not effect.effect.saves_result, name
    for name in ("LSTM", "ReLU", "Tanh", "Sigmoid", "Softmax"):
        effect = layer(name)
        assert effect is not None
        assert effect.effect.saves_result, name


def test_the_input_of_a_linear_layer_is_kept_only_if_its_weight_is_trained() -> None:
    linear = layer("torch.nn.Linear")
    assert linear is not None
    assert linear.effect.saved({"input", "weight"}) == ("input", "weight")
    assert linear.effect.saved({"input"}) == ("weight",)


def test_a_factor_is_kept_for_the_gradient_of_the_other_one() -> None:
    product, written = lookup("__mul__"), lookup("__imul__")
    assert product is not None
    assert product.saved({"input"}) == ("other",)
    assert product.saved({"input", "other"}) == ("input", "other")
    assert written is not None
    assert written.saved({"input", "other"}) == ("other",)


def test_a_power_keeps_its_base_and_written_in_place_only_a_copy_of_it() -> None:
    power, written = lookup("torch.pow", "scalar"), lookup("torch.Tensor.pow_", "scalar")
    assert power is not None
    assert power.saved({"input"}) == ("input",)
    assert written is not None
    assert written.saved({"input"}) == ()


def test_spellings_of_one_operation_have_one_effect() -> None:
    for name in ("torch.relu", "torch.Tensor.relu", "torch.nn.functional.relu"):
        assert lookup(name) == lookup("relu")
    assert lookup("torch.nn.functional.unfold") != lookup("torch.Tensor.unfold")
    assert lookup("__iadd__") == lookup("torch.Tensor.add_")
    assert lookup("operator.matmul") == lookup("torch.matmul")
    assert lookup("no_such_operation") is None


def test_the_parameters_of_a_layer_have_the_names_that_torch_gives_them() -> None:
    for name, (make, _) in LAYERS.items():
        effect = layer(name)
        assert effect is not None
        told = [parameter.replace("#", "0") for parameter in effect.parameters]
        given = [parameter for parameter, _ in make().named_parameters()]
        assert all(any(fnmatch.fnmatch(one, other) for other in told) for one in given), (
            name,
            given,
        )
        assert all(fnmatch.filter(given, one) for one in told), (name, told)


def test_parameters_that_take_no_tensor_take_none_in_any_operation() -> None:
    kinds = defaultdict(set)
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.startswith("aten::"):
            for argument in schema.arguments:
                kinds[argument.name].add("Tensor" in str(argument.type))
    assert all(kinds.get(name) == {False} for name in effects.NO_TENSORS)
