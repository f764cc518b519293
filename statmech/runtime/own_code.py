"""The user's own code behind a result: files with rules, losses and kinds, and replaced functions of our packages.

A stored number belongs to the code that computed it. `digests` returns the SHA-256 of the files that define
the classes of a scenario and their bases. Modules that these files import are not included. Code without a file (a cell
of a notebook) is represented by its bytecode and the values that it uses. A file is read again only when its module's
functions have changed, so that the digest belongs to the code in memory, not to a later edit.

`replaced` lists functions in our packages that come from elsewhere, such as `Perceptron.g` set by a
notebook.
"""

from __future__ import annotations

import dis
import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property, partialmethod
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

PACKAGES = ("statmech", "simulate", "theory", "figures")
STANDARD_LIBRARY = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
LIBRARY_FOLDERS = {"site-packages", "dist-packages"}
UNCALLABLE_WRAPPERS = (classmethod, property, cached_property, partialmethod)
UNTRACED = (  # replaced functions of these modules do not change results
    "statmech.cli",
    "statmech.results",
    "statmech.runtime",
    "simulate.execution",
    "figures",
)

Namespace = Mapping[str, Any]  # the globals of a module

# by file: the definitions of its module when it was read, and its digest
_known: dict[str, tuple[list[Any], str]] = {}
_noticed: tuple[FunctionType, ...] = ()


def digests(classes: Iterable[type]) -> dict[str, str]:
    """Return the SHA-256 of each user file that defines one of these classes or a replaced function, by file name.

    >>> from statmech.rules import Hebb
    >>> digests([Hebb])
    {}
    """
    digest_by_file: dict[str, str] = {}
    descriptions: dict[str, list[str]] = {}  # by name, for code without a file
    things: tuple[Any, ...] = (*classes, *_noticed)
    for thing in things:
        bases = thing.__mro__ if isinstance(thing, type) else (thing,)
        parts = [*bases, *(method for base in bases for method in _functions(vars(base)))]
        for part in parts:
            space = _namespace(part)
            if _is_own(space):
                try:
                    digest_by_file[space["__file__"]] = _digest(space)
                except (KeyError, OSError):
                    name = f"{thing.__qualname__} (no file)"
                    descriptions.setdefault(name, []).append(_describe(part, space, []))
    digest_by_name = {name: _sha256(repr(sorted(parts)).encode()) for name, parts in descriptions.items()}
    names = [Path(file).name for file in digest_by_file]
    for (file, digest), name in zip(digest_by_file.items(), names, strict=True):
        digest_by_name[name if names.count(name) == 1 else "/".join(Path(file).parts[-2:])] = digest
    return dict(sorted(digest_by_name.items()))


def is_current(module: ModuleType) -> bool:
    """Return True if a module's file has not changed since the module was executed."""
    return _digest(vars(module)) == _sha256(Path(str(module.__file__)).read_bytes())


def replaced() -> tuple[FunctionType, ...]:
    """Return the functions that user code has put into our packages instead of the original ones.

    >>> replaced()
    ()
    """
    spaces = [vars(module) for name, module in [*sys.modules.items()] if _computes(name)]
    return tuple(function for space in spaces for function in _defined(space)[1] if _is_own(function.__globals__))


def notice() -> None:
    """Search for replaced functions, and record them.

    Public functions call this once, since it takes about 3 ms.
    """
    global _noticed
    _noticed = replaced()


def noticed() -> tuple[FunctionType, ...]:
    """Return the replaced functions that `notice` has recorded last."""
    return _noticed


@cache
def _computes(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES and not name.startswith(UNTRACED)


def _defined(space: Namespace) -> tuple[list[type], list[FunctionType]]:
    """Return the classes that a module defines, and the functions in it and in these classes."""
    values, name = [*space.values()], space.get("__name__")
    kinds = [value for value in values if isinstance(value, type) and value.__module__ == name]
    return kinds, [function for scope in (space, *map(vars, kinds)) for function in _functions(scope)]


def _functions(space: Namespace) -> Iterator[FunctionType]:
    """Yield the functions of a module, or the methods of a class."""
    for member in [*space.values()]:
        if isinstance(function := _unwrap(member), FunctionType):
            yield function


def _unwrap(member: Any) -> Any:
    """Return the function inside a method, a property, or a wrapper such as `jax.jit` or `partial`."""
    if type(member) is FunctionType or not (callable(member) or isinstance(member, UNCALLABLE_WRAPPERS)):
        return member
    for attribute in ("__func__", "fget", "__wrapped__", "func"):
        if isinstance(member, (FunctionType, type)):
            break
        member = getattr(member, attribute, member)
    return member


def _namespace(thing: Any) -> Namespace:
    """Return the globals of the module that defines a class or a function, empty if the module is unknown."""
    if isinstance(thing, FunctionType):
        return thing.__globals__
    return vars(sys.modules[thing.__module__]) if thing.__module__ in sys.modules else {}


def _is_own(space: Namespace) -> bool:
    """Return True for a module of the user: neither ours, nor a library, nor generated."""
    name, file = space.get("__name__", ""), space.get("__file__")
    if name.partition(".")[0] in PACKAGES:
        return False
    return name == "__main__" if file is None else not _is_library(file)


@cache
def _is_library(file: str) -> bool:
    """Return True for a file of the standard library or of an installed distribution.

    The project of an editable installation is the user's own code: its distribution does not list the files.
    """
    path = Path(file)
    resolved = path.resolve()
    return (
        not LIBRARY_FOLDERS.isdisjoint(resolved.parts)
        or any(map(resolved.is_relative_to, STANDARD_LIBRARY))
        # links may lead into or out of the folder of a distribution
        or any(map(_is_listed, (path, resolved)))
    )


def _is_listed(path: Path) -> bool:
    """Return True if a distribution in one of the folders above has installed this file."""
    return any(
        row.partition(",")[0] == path.relative_to(folder).as_posix()
        for folder in path.parents
        for record in folder.glob("*.dist-info/RECORD")
        for row in record.read_text(encoding="utf-8").splitlines()
    )


def _digest(space: Namespace) -> str:
    """Return the digest of a module's file at the time when its functions were defined."""
    file = space["__file__"]
    kinds, functions = _defined(space)
    defined = [*kinds, *functions, *(function.__code__ for function in functions)]
    if file not in _known or _known[file][0] != defined:
        _known[file] = defined, _sha256(Path(file).read_bytes())
    return _known[file][1]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _describe(thing: Any, space: Namespace, seen: list[Any]) -> str:
    """Describe code without a file: its bytecode, and the functions, classes and values that it uses."""
    thing = _unwrap(thing)
    if isinstance(thing, FunctionType | type):
        space = _namespace(thing)
        if thing in seen or not _is_own(space):
            return thing.__qualname__
        seen.append(thing)
    parts: Iterable[Any]
    if isinstance(thing, type):
        members = {name: _unwrap(value) for name, value in vars(thing).items() if name != "_abc_impl"}
        parts = [item for item in members.items() if isinstance(item[1], FunctionType) or not item[0].startswith("__")]
    elif isinstance(thing, FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        parts = [thing.__code__, thing.__defaults__, thing.__kwdefaults__, cells]
    elif isinstance(thing, CodeType):
        names = [step.argval for step in dis.get_instructions(thing) if step.opname == "LOAD_GLOBAL"]
        used = [space[name] for name in names if name in space]
        parts = [thing.co_code, thing.co_names, *thing.co_consts, *used]
    elif isinstance(thing, list | tuple):
        parts = thing
    elif isinstance(thing, frozenset):
        return repr(sorted(map(repr, thing)))
    else:
        return thing.__name__ if isinstance(thing, ModuleType) else repr(getattr(thing, "tolist", lambda: thing)())
    return repr([_describe(part, space, seen) for part in parts])
