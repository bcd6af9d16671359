"""`torch.distributions`: what a distribution is made of, and which of its methods carry a gradient
to that.

`sample()` cuts, `rsample()` does not. A distribution keeps its parameters in `state` under the
names of its constructor's arguments; those below "loc" are all of them, so that a distribution
counts as its parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradlint.interpret import arguments, tensors
from gradlint.interpret.lineage import alias, is_a
from gradlint.interpret.machine import Raised
from gradlint.interpret.registry import attribute, fallback, function, method
from gradlint.interpret.values import (
    FALSE,
    NONE,
    TRUE,
    Abstract,
    Builtin,
    Call,
    Const,
    Instance,
    Object,
    Tensor,
    Unknown,
)
from gradlint.library.effects import Effect
from gradlint.library.families import (
    ARGUMENTS,
    DISCRETE_MODE,
    OF_LOCATION,
    OF_SCALE,
    OVER_CATEGORIES,
    SAMPLED,
    SHAPES,
    SMOOTH,
    VALUES,
)
from gradlint.tape import DRAWN, DType

if TYPE_CHECKING:
    from gradlint.interpret.machine import Machine

_PREFIX = "torch.distributions."
DISTRIBUTION = f"{_PREFIX}Distribution"
_MODULES = (
    "bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet "
    "distribution exp_family "
    "exponential fishersnedecor gamma generalized_pareto geometric gumbel half_cauchy "
    "half_normal independent "
    "inverse_gamma kl kumaraswamy laplace lkj_cholesky log_normal logistic_normal "
    "lowrank_multivariate_normal "
    "mixture_same_family multinomial multivariate_normal negative_binomial normal "
    "one_hot_categorical pareto "
    "poisson relaxed_bernoulli relaxed_categorical studentT transformed_distribution "
    "transforms uniform "
    "von_mises weibull wishart"
)
for _module in _MODULES.split():
    alias(f"{_PREFIX}{_module}", _PREFIX[:-1])
_NOT_DIFFERENTIABLE = Effect("sample", differentiable=False)


@fallback
def make(m: Machine, call: Call) -> Abstract | None:
    """A distribution, or a transform of one."""
    short = call.name.rpartition(".")[2]
    if not call.name.startswith(_PREFIX) or not short[:1].isupper():
        return None
    return Object(call.name, call.frame.span(call.node), parameters(short, call))


def parameters(name: str, call: Call) -> dict[str, Abstract]:
    """The arguments of a constructor by name."""
    names = ARGUMENTS.get(name, "loc scale").split()
    state = {
        names[position] if position < len(names) else f"argument{position}": value
        for position, value in enumerate(call.args)
    }
    state |= {
        "base_dist" if key == "base_distribution" else key: value
        for key, value in call.kwargs.items()
    }
    state = {
        key: value
        for key, value in state.items()
        if not (isinstance(value, Const) and value.value is None)
    }
    state.setdefault("loc", NONE)
    return state


@method(DISTRIBUTION, "__init__")
def initialise(m: Machine, instance: Instance, call: Call) -> Abstract:
    """A distribution class of the program."""
    instance.state.update(parameters(_kind(instance), call))
    return NONE


def _kind(distribution: Object | Instance) -> str:
    """The name of torch's class that a distribution is an instance of."""
    if isinstance(distribution, Object):
        return distribution.cls.removeprefix(_PREFIX)
    return next(
        (
            base.rpartition(".")[2]
            for base in distribution.cls.libraries()
            if is_a(base, DISTRIBUTION)
        ),
        "Distribution",
    )


def _base(distribution: Object | Instance) -> Abstract | None:
    base = distribution.state.get("base_dist")
    return base if isinstance(base, Abstract) else None


def held(m: Machine, distribution: Object | Instance, call: Call) -> list[Abstract]:
    """The parameters of a distribution."""
    found = [value for value in distribution.state.values() if isinstance(value, Abstract)]
    return found + (list(distribution.attrs.values()) if isinstance(distribution, Instance) else [])


def _said_by(m: Machine, distribution: Object | Instance, name: str, call: Call) -> list[Abstract]:
    """The parameters that a method or attribute is computed from."""
    base = _base(distribution) if _kind(distribution) == "Independent" else None
    if isinstance(base, Object):
        return _said_by(m, base, name, call)
    if isinstance(distribution, Object) and _kind(distribution) in OF_LOCATION.get(name, ()):
        return [distribution.state["loc"]]
    if isinstance(distribution, Object) and _kind(distribution) in OF_SCALE.get(name, ()):
        return [value for key, value in distribution.state.items() if key != "loc"]
    return held(m, distribution, call)


def _apply(
    m: Machine,
    distribution: Object | Instance,
    name: str,
    args: list[Abstract],
    call: Call,
    effect: Effect | None = None,
) -> Abstract:
    """A tensor that a method computes from the parameters and these arguments."""
    op = f"{_PREFIX}{_kind(distribution)}.{name}"
    return _computed(m, op, [*_said_by(m, distribution, name, call), *args], call, effect)


def _computed(
    m: Machine, op: str, args: list[Abstract], call: Call, effect: Effect | None = None
) -> Tensor:
    made = tensors.apply(m, op, args, call.node, call.frame, effect)
    made.node.dtype = (
        DType.FLOAT
        if made.node.dtype in (DType.INTEGER, DType.BOOL, DType.UNKNOWN)
        else made.node.dtype
    )
    return (
        made
        if made.node.inputs
        else tensors.batch(m, op, call.node, call.frame, dtype=made.node.dtype)
    )


@method(DISTRIBUTION, "sample", "sample_n")
def sample(m: Machine, distribution: Object | Instance, call: Call) -> Abstract:
    """`sample()` draws under `no_grad`: nothing flows back to the parameters."""
    made = _apply(m, distribution, "sample", [], call, _NOT_DIFFERENTIABLE)
    node = tensors.as_tensor(m, made, call.node, call.frame).node
    if has_reparametrised(distribution) is False:
        node.flags |= {"no-rsample"}
    if _kind(distribution) == "Categorical":
        node.dtype = DType.INTEGER
    return made


@method(DISTRIBUTION, "rsample")
def rsample(m: Machine, distribution: Object | Instance, call: Call) -> Abstract:
    """`rsample()` is a function of the parameters; discrete distributions have none."""
    if has_reparametrised(distribution) is False:
        at = call.frame.span(call.node)
        raise Raised(Object("builtins.NotImplementedError", at), at)
    made = _apply(m, distribution, "rsample", [], call)
    if isinstance(made, Tensor):
        made.node.flags |= {DRAWN}
    return made


def has_reparametrised(distribution: Abstract) -> bool | None:
    """Whether a distribution has `rsample`; None where that is not known."""
    if not isinstance(distribution, Object):
        return None
    base = _base(distribution)
    if base is not None:
        return has_reparametrised(base)
    return _kind(distribution) not in SAMPLED


@attribute(DISTRIBUTION, "has_rsample")
def has_rsample(m: Machine, distribution: Object | Instance, at: Call) -> Abstract | None:
    """`distribution.has_rsample`."""
    known = has_reparametrised(distribution)
    return None if known is None else TRUE if known else FALSE


def _smooth(name: str) -> None:
    @method(DISTRIBUTION, name)
    def handler(m: Machine, distribution: Object | Instance, call: Call) -> Abstract:
        return _apply(m, distribution, name, call.values, call)


for _name in SMOOTH:
    if _name != "rsample":
        _smooth(_name)


def _shares(m: Machine, logits: Abstract, at: Call) -> Tensor:
    """The probabilities of categories by their logits."""
    made = _computed(m, "torch.softmax", [logits], at)
    made.node.arguments = arguments.given(m, [logits, Const(-1)], {})
    return made


def _value(name: str) -> None:
    @attribute(DISTRIBUTION, name)
    def handler(m: Machine, distribution: Object | Instance, at: Call) -> Abstract | None:
        given = distribution.state.get(name)
        if isinstance(given, Abstract) and given is not NONE:
            return given
        if (
            name == "probs"
            and _kind(distribution) in OVER_CATEGORIES
            and "logits" in distribution.state
        ):
            return _shares(m, distribution.state["logits"], at)
        # Called by the class alone: `Normal.mean` is `loc`, and no mean over elements.
        return _computed(
            m, f"{_PREFIX}{_kind(distribution)}", _said_by(m, distribution, name, at), at
        )


for _name in VALUES:
    _value(_name)


@attribute(DISTRIBUTION, "mode")
def mode(m: Machine, distribution: Object | Instance, at: Call) -> Abstract:
    """The likeliest value; of a discrete distribution it has no derivative."""
    effect = _NOT_DIFFERENTIABLE if _kind(distribution) in DISCRETE_MODE else None
    return _apply(m, distribution, "mode", [], at, effect)


def _part(name: str) -> None:
    @attribute(DISTRIBUTION, name)
    def handler(m: Machine, distribution: Object | Instance, at: Call) -> Abstract | None:
        found = distribution.state.get(name)
        return found if isinstance(found, Abstract) else None


for _name in ("base_dist", "component_distribution", "mixture_distribution", "transforms"):
    _part(_name)


def _shape(name: str) -> None:
    @attribute(DISTRIBUTION, name)
    def handler(m: Machine, distribution: Object | Instance, at: Call) -> Abstract:
        return Unknown(m.symbol(distribution).derive(("attribute", name), name), data=True)


for _name in SHAPES:
    _shape(_name)


@method(DISTRIBUTION, "expand", "to")
def expand(m: Machine, distribution: Object | Instance, call: Call) -> Abstract:
    """The same parameters in another shape."""
    return distribution


@method(DISTRIBUTION, "enumerate_support")
def enumerate_support(m: Machine, distribution: Object | Instance, call: Call) -> Abstract:
    """Every value that there is: no parameter is in them."""
    return tensors.batch(
        m, f"{_PREFIX}{_kind(distribution)}.enumerate_support", call.node, call.frame
    )


@method(DISTRIBUTION, "__call__", "inv")
def transform(m: Machine, distribution: Object | Instance, call: Call) -> Abstract:
    """A transform of a tensor: `TanhTransform()(x)`."""
    return _apply(m, distribution, "__call__", call.values, call)


@function("torch.distributions.kl_divergence")
def kl_divergence(m: Machine, call: Call) -> Abstract:
    """`kl_divergence(p, q)`: differentiable in the parameters of both."""
    return tensors.apply(m, call.name, call.values, call.node, call.frame, None)


@function("torch.distributions.register_kl")
def register_kl(m: Machine, call: Call) -> Abstract:
    """`@register_kl(P, Q)`: the function that it decorates."""
    return Builtin("torch.distributions.register_kl", lambda _, at: at.args[0] if at.args else NONE)
