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

from gradlint.interpret.lineage import bases, canonical, of_tables, put
from gradlint.interpret.values import Abstract, Call

FunctionHandler = Callable[[Any, Call], Abstract]
MethodHandler = Callable[[Any, Any, Call], Abstract]
Method = TypeVar("Method", bound=MethodHandler)
AttributeHandler = Callable[[Any, Any, Call], Abstract | None]
# what is done around a method of the program: its machine, object and call, and what runs it
Around = Callable[[Any, Any, Call, Callable[[], Abstract]], Abstract]
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
    "written",  # a tensor is written in place: the tensor
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
AROUND: dict[str, tuple[str, Around]] = {}
FALLBACKS: list[Callable[[Any, Call], Abstract | None]] = []
TYPES: dict[str, Callable[[Any, Any, Any, Any], Abstract]] = {}
ENTRIES: list[Callable[[Any, Any, str, Any, Call], bool]] = []
GUESSES: list[tuple[frozenset[str], Guess]] = []
LISTENERS: defaultdict[Hook, list[Callable[..., None]]] = defaultdict(list)


def function(*names: str) -> Callable[[FunctionHandler], FunctionHandler]:
    """Registers the handler of a library function or the constructor of a library class."""

    def register(handler: FunctionHandler) -> FunctionHandler:
        for name in names:
            put(FUNCTIONS, name, handler)
        return handler

    return register


def method(cls: str | tuple[str, ...], *names: str) -> Callable[[Method], Method]:
    """Registers the handler of a method of a library class. `__call__`, `__enter__`, `__exit__`, …
    are methods too.
    """

    def register(handler: Method) -> Method:
        for owner in (cls,) if isinstance(cls, str) else cls:
            for name in names:
                put(METHODS, (owner, name), handler)
        return handler

    return register


def attribute(cls: str, *names: str) -> Callable[[AttributeHandler], AttributeHandler]:
    """Registers the handler of an attribute of a library class."""

    def register(handler: AttributeHandler) -> AttributeHandler:
        for name in names:
            put(ATTRIBUTES, (cls, name), handler)
        return handler

    return register


def around(cls: str, name: str) -> Callable[[Around], Around]:
    """Registers what is done around the method of this name that a class of the program, derived
    from one of a library, has in its place.
    """

    def register(handler: Around) -> Around:
        AROUND[name] = cls, handler
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
            put(TYPES, name, handler)
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


@of_tables
def find_method(cls: str, name: str) -> MethodHandler | None:
    for owner in bases(cls):
        handler = METHODS.get((owner, name))
        if handler is not None:
            return handler
    return None


@of_tables
def find_attribute(cls: str, name: str) -> AttributeHandler | None:
    for owner in bases(cls):
        handler = ATTRIBUTES.get((owner, name))
        if handler is not None:
            return handler
    return None


@of_tables
def member_name(library: str, name: str) -> str | None:
    """What `name` of a library, or of a class of one, is called; None where a handler says what it
    is.
    """
    return (
        canonical(f"{library}.{name}") if find_attribute(canonical(library), name) is None else None
    )
