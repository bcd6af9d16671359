"""Where the program is: the user's frames while it runs, and what stands there in the source,
looked up afterwards.

While recording, a place is only a tuple of `Frame`: who is active, in which code, at which
instruction. Lines, columns and loops are worked out when a report asks for them.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from gradlint.rule import packages


class Frame(NamedTuple):
    """One activation of a function of the user's: its number, its code, the instruction, and its
    loops' counters.
    """

    activation: int
    code: CodeType
    instruction: int
    counters: tuple[int, ...] = ()


Place = tuple[Frame, ...]
_Step = TypeVar("_Step")

_LIBRARY = tuple(
    {
        os.path.join(os.path.realpath(path), "")
        for path in (
            *sysconfig.get_paths().values(),
            os.path.dirname(os.path.dirname(__file__)),
            *(path for package in packages() for path in package.__path__),
        )
        if path
    }
    - {
        os.path.join(os.path.realpath(sysconfig.get_paths()["data"]), ""),
        os.path.join(os.path.realpath(sysconfig.get_paths()["scripts"]), ""),
    }
)
# wherever it is: an environment's, the user's, a second one
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_TORCH = f"{os.sep}torch{os.sep}"
OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_HANDLER = "handle_torch_function"
_users: dict[int, bool] = {}  # by id: hashing a code object reads all of its constants
_judged: list[CodeType] = []  # kept, so that an id stays what it is
_activations = itertools.count(1)
_callers: dict[int, Place] = {}  # by activation
_MOST_CALLERS = 4096
# by another caller each time
RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_own: set[str] = set()


def adopt(path: str) -> None:
    """Count a file, or those below a folder, as the user's, although it is installed: it is what
    was asked to run.
    """
    real = os.path.realpath(path)
    _own.add(os.path.join(real, "") if os.path.isdir(real) else real)
    _users.clear()


def is_users(code: CodeType) -> bool:
    """Whether `code` was written by the user: not the standard library, not an installed
    package.
    """
    known = _users.get(id(code))
    if known is None:
        known = is_users_path(code.co_filename)
        _users[id(code)] = known
        _judged.append(code)
    return known


def is_torchs(code: CodeType) -> bool:
    """Whether `code` is torch's, ours, or of no file."""
    return _TORCH in code.co_filename or code.co_filename.startswith(("<", OURS))


def scopes() -> Iterator[tuple[CodeType, Mapping[str, Any]]]:
    """The user's running functions, each with its variables."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users(frame.f_code):
            yield frame.f_code, frame.f_locals
        frame = frame.f_back


def users_files() -> list[str]:
    """The files of the user's of which something has run, or that were imported."""
    ran = {_real(code.co_filename) for code in _judged if _users.get(id(code))}
    imported = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    files = {_real(file) for file in imported if file and is_users_path(file)}
    return sorted(ran | set(filter(os.path.isfile, files)))  # that of `torch.ops` is `_ops.py`


def _real(file: str) -> str:
    """The path of a file without symbolic links; a folder is resolved once for all of its files."""
    if os.path.islink(file) or not os.path.isabs(file):
        return os.path.realpath(file)
    folder, name = os.path.split(file)
    return os.path.join(_real_folder(folder), name)


@functools.cache
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


def is_users_path(file: str) -> bool:
    """Whether a file of Python is the user's."""
    path = _real(file)
    if path.startswith(tuple(_own)) or ipython_cell(file):
        return True
    if file.startswith("<") or not file.endswith(".py"):
        return False
    return not (path.startswith(_LIBRARY) or _INSTALLED & set(path.split(os.sep)))


def ipython_cell(file: str) -> str:
    """`In[3]`, where that is what a session of IPython calls the code of a file; else nothing."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    number = getattr(getattr(shell, "compile", None), "_filename_map", {}).get(file)
    return "" if number is None else f"In[{number}]"


class _Number(int):
    """The number of an activation; called, should the program begin to trace its frames, it asks
    for no more calls.
    """

    __slots__ = ()

    def __call__(self, *_: object) -> None:
        return None


def activation(frame: FrameType) -> int:
    """A number for this activation of a function; kept in `f_trace`, which nothing reads while no
    one traces.
    """
    if sys.gettrace() is not None:
        return id(frame)
    number: Any = frame.f_trace
    if type(number) is not _Number:
        number = _Number(next(_activations))
        vars_of: Any = frame
        vars_of.f_trace = number
    assert isinstance(number, int)
    return number


def here() -> Place:
    """The user's frames, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    users = _users
    while frame is not None:
        code = frame.f_code
        known = users.get(id(code))
        if known or (known is None and is_users(code)):
            number = activation(frame)
            callers = _callers.get(number)
            return (
                Frame(number, code, frame.f_lasti),
                *(_calling(frame) if callers is None else callers),
            )
        frame = frame.f_back
    return ()


def _calling(frame: FrameType) -> Place:
    """The user's frames that called `frame`. While an activation runs they stand still, so they are
    kept for it.
    """
    inner = [frame]
    place: Place = ()
    each = frame.f_back
    traced = sys.gettrace() is not None
    while each is not None:
        if is_users(each.f_code):
            known = None if traced else _callers.get(activation(each))
            inner.append(each)
            if known is not None:
                place = known
                break
        each = each.f_back
    if len(_callers) > _MOST_CALLERS:
        _callers.clear()
    for outer, each in itertools.pairwise(reversed(inner)):
        place = (Frame(activation(outer), outer.f_code, outer.f_lasti), *place)
        if not traced and not each.f_code.co_flags & RESUMED:
            _callers[activation(each)] = place
    return place


def is_direct() -> bool:
    """Whether it is the user's code that called torch, and no library on its behalf."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_torchs(frame.f_code):
        frame = frame.f_back
    return frame is not None and is_users(frame.f_code)


def is_within(place: Place, entered: Place) -> bool:
    """Whether a place is reached by the very call in which something was entered or made: a library
    keeps it around what it calls, and the user's code cannot leave or name it.
    """
    return bool(entered) and any(
        frame.activation == entered[0].activation and frame.instruction == entered[0].instruction
        for frame in place
    )


def nearest() -> Place:
    """As `here`; where no frame is the user's, the nearest that is not torch's, so that a place is
    never empty.
    """
    place = here()
    if place:
        return place
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_torchs(frame.f_code):
        frame = frame.f_back
    return () if frame is None else (Frame(activation(frame), frame.f_code, frame.f_lasti),)


def local(code: CodeType, name: str) -> Any:
    """A variable of the function of `code`, where no function of the user's runs inside of it; else
    None.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code):
        if frame.f_code is code:
            return frame.f_locals.get(name)
        frame = frame.f_back
    return None


def unwatched(steps: Iterable[_Step], code: Callable[[_Step], CodeType]) -> Iterator[_Step]:
    """Of running frames, or of a traceback's, the innermost first, those that would be there if
    nobody watched.

    Where torch hands a call of a Python function of its own to our mode, the handler goes with our
    frame, and so does the function that asked it, which our mode calls once more.
    """
    left, is_redone = iter(steps), False
    for step in left:
        own = code(step)
        if own.co_filename.startswith(OURS):
            is_redone = own.co_name == "__torch_function__"
        elif is_redone and own.co_name == _HANDLER:
            next(left, None)
        else:
            is_redone = False
            yield step


def running(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame, and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back
