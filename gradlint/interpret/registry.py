"""What the library's model registers: handlers of functions, methods, attributes and calls of
library objects.

A handler takes `(machine, call)`; a method's, an attribute's and an object's takes the receiver
between them. Names are canonical: `torch.nn.functional.relu`. A class's bases are looked up through
`parents`.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from gradlint.interpret.values import Abstract, Call

FunctionHandler = Callable[[Any, Call], Abstract]
MethodHandler = Callable[[Any, Any, Call], Abstract]
Method = TypeVar("Method", bound=MethodHandler)
AttributeHandler = Callable[[Any, Any, Call], Abstract | None]
Guess = Callable[[Any, Any, str, Call], Abstract | None]

# what the interpreter comes to, with what the functions registered for it are given
Hook = Literal[
    "discarded",  # an expression statement: its value, its node, its frame
    # a context that a `with` enters hands out an object that gets no name: the object, the node,
    # the frame
    "yielded",
    "bound",  # a name is bound: the name, the value
    "unknown call",  # something unknown is called: its symbol, the call
    "library call",  # a function of a library has been called: the call, what it gave
    "data call",  # likewise of something that is data: no model, no tensor with gradient
    "put in",  # an attribute of something unknown is set: whose, the call with the value
    # a function under a decorator out of view: the function, the decorator's node, its frame
    "decorated",
    "used up",  # a used-up generator is iterated again: the generator, the call
    "end",  # a path has been run to its end
]
Listener = TypeVar("Listener", bound=Callable[..., None])

FUNCTIONS: dict[str, FunctionHandler] = {}
METHODS: dict[tuple[str, str], MethodHandler] = {}
ATTRIBUTES: dict[tuple[str, str], AttributeHandler] = {}
PARENTS: dict[str, str] = {}
FALLBACKS: list[Callable[[Any, Call], Abstract | None]] = []
ALIASES: dict[str, str] = {}
TYPES: dict[str, Callable[[Any, Any, Any, Any], Abstract]] = {}
ENTRIES: list[Callable[[Any, Any, str, Any, Call], bool]] = []
GUESSES: list[tuple[frozenset[str], Guess]] = []
LISTENERS: defaultdict[Hook, list[Callable[..., None]]] = defaultdict(list)


def _put(table: dict[Any, Any], key: object, handler: object) -> None:
    if key in table:
        raise ValueError(f"{key} is registered twice")
    table[key] = handler
    for cached in (canonical, bases, is_a, find_method, find_attribute, member_name):
        cached.cache_clear()


def function(*names: str) -> Callable[[FunctionHandler], FunctionHandler]:
    """Registers the handler of a library function or the constructor of a library class."""

    def register(handler: FunctionHandler) -> FunctionHandler:
        for name in names:
            _put(FUNCTIONS, name, handler)
        return handler

    return register


def method(cls: str | tuple[str, ...], *names: str) -> Callable[[Method], Method]:
    """Registers the handler of a method of a library class. `__call__`, `__enter__`, `__exit__`, …
    are methods too.
    """

    def register(handler: Method) -> Method:
        for owner in (cls,) if isinstance(cls, str) else cls:
            for name in names:
                _put(METHODS, (owner, name), handler)
        return handler

    return register


def attribute(cls: str, *names: str) -> Callable[[AttributeHandler], AttributeHandler]:
    """Registers the handler of an attribute of a library class."""

    def register(handler: AttributeHandler) -> AttributeHandler:
        for name in names:
            _put(ATTRIBUTES, (cls, name), handler)
        return handler

    return register


def fallback(
    handler: Callable[[Any, Call], Abstract | None],
) -> Callable[[Any, Call], Abstract | None]:
    """Registers a handler asked for every library call that has none of its own; returns None to
    pass.
    """
    FALLBACKS.append(handler)
    return handler


def on(hook: Hook) -> Callable[[Listener], Listener]:
    """Registers a function to call at a hook: it takes `(machine, …)`, with what `Hook` says."""

    def register(handler: Listener) -> Listener:
        LISTENERS[hook].append(handler)
        return handler

    return register


def notify(hook: Hook, *facts: Any) -> None:
    """Calls all that is registered for a hook."""
    for listener in LISTENERS[hook]:
        listener(*facts)


def typed(
    *names: str,
) -> Callable[[Callable[[Any, Any, Any, Any], Abstract]], Callable[[Any, Any, Any, Any], Abstract]]:
    """Registers what a parameter annotated with a library class is:
    `(machine, symbol, function, parameter)`.
    """

    def register(
        handler: Callable[[Any, Any, Any, Any], Abstract],
    ) -> Callable[[Any, Any, Any, Any], Abstract]:
        for name in names:
            _put(TYPES, name, handler)
        return handler

    return register


def enters(
    handler: Callable[[Any, Any, str, Any, Call], bool],
) -> Callable[[Any, Any, str, Any, Call], bool]:
    """Registers who enters a method of a framework's class:
    `(machine, object, name, method, call)`; True if it did.
    """
    ENTRIES.append(handler)
    return handler


def guesses(*names: str) -> Callable[[Guess], Guess]:
    """Registers who says what an attribute of something unknown is, of one of these names or of
    any.

    It takes `(machine, unknown, name, call)`, and returns None to pass.
    """

    def register(handler: Guess) -> Guess:
        GUESSES.append((frozenset(names), handler))
        find_guesses.cache_clear()
        return handler

    return register


@functools.cache
def find_guesses(name: str) -> tuple[Guess, ...]:
    """Who may say what an attribute of this name is, of something unknown."""
    return tuple(guess for names, guess in GUESSES if not names or name in names)


def parent(cls: str, base: str) -> None:
    """Declares that the library class `cls` inherits from `base`."""
    _put(PARENTS, cls, base)


def alias(name: str, canonical: str) -> None:
    """Declares that `name` is another name of `canonical`, for what is below it too."""
    _put(ALIASES, name, canonical)


@functools.cache
def canonical(name: str) -> str:
    """The canonical name behind aliases such as `torch.cuda.amp.autocast_mode`."""
    while True:
        found = ALIASES.get(name)
        if found is None:
            head, _, tail = name.rpartition(".")
            while head and head not in ALIASES:
                head, _, middle = head.rpartition(".")
                tail = f"{middle}.{tail}"
            if not head:
                return name
            found = f"{ALIASES[head]}.{tail}"
        name = found


_FAMILIES = (
    ("torch.optim.lr_scheduler.", "torch.optim.lr_scheduler.LRScheduler"),
    ("torch.optim.", "torch.optim.Optimizer"),
    ("torch.distributions.", "torch.distributions.Distribution"),
    ("torch.nn.", "torch.nn.Module"),
)


@functools.cache
def bases(cls: str) -> tuple[str, ...]:
    """The library class `cls`, then what it inherits from."""
    current: str | None = cls
    found: dict[str, None] = {}
    while current and current not in found:
        found[current] = None
        current = PARENTS.get(current) or _family(current)
    return tuple(found)


def _family(cls: str) -> str | None:
    last = cls.rpartition(".")[2]
    if last[:1].isupper():
        for prefix, base in _FAMILIES:
            if cls.startswith(prefix) and cls != base and cls.count(".") == prefix.count("."):
                return base
    return None


@functools.cache
def is_a(cls: str, base: str) -> bool:
    """Whether the library class `cls` is `base` or inherits from it."""
    return canonical(base) in bases(canonical(cls))


@functools.cache
def find_method(cls: str, name: str) -> MethodHandler | None:
    for owner in bases(cls):
        handler = METHODS.get((owner, name))
        if handler is not None:
            return handler
    return None


@functools.cache
def find_attribute(cls: str, name: str) -> AttributeHandler | None:
    for owner in bases(cls):
        handler = ATTRIBUTES.get((owner, name))
        if handler is not None:
            return handler
    return None


@functools.cache
def member_name(library: str, name: str) -> str | None:
    """What `name` of a library, or of a class of one, is called; None where a handler says what it
    is.
    """
    return (
        canonical(f"{library}.{name}") if find_attribute(canonical(library), name) is None else None
    )
