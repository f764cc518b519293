"""The user's own code behind a result: files of rules, losses and kinds, and functions of ours that were replaced.

A stored number belongs to the code that made it. The classes that a scenario uses lead to the files that define them,
and these to the files of the user that they import; `digests` states the SHA-256 of each. Code without a file (a cell
of a notebook) is represented by its bytecode. A file is read again only when its module's functions have changed, so
that the digest is that of the code in memory, not of a later edit.

`replaced` lists the functions of our packages that come from elsewhere, such as `Perceptron.g` set by a notebook.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import operator
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

PACKAGES = ("statmech", "simulate", "theory", "figures")
LIBRARIES = tuple({Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")})
UNTRACED = (  # modules that compute no number
    "statmech.cli",
    "statmech.results",
    "statmech.runtime",
    "simulate.execution",
    "figures",
)


Namespace = Mapping[str, Any]  # the globals of a module


class ModuleSource(NamedTuple):
    """A module's functions and classes when its file was read, the file's digest, and the modules that it imports."""

    things: tuple[Any, ...]
    digest: str
    imports: tuple[str, ...]


class Scan(NamedTuple):
    """The globals of one of our modules and the attributes of its classes, and the replaced functions among them."""

    spaces: tuple[Namespace, ...]
    values: tuple[tuple[Any, ...], ...]
    replaced: tuple[FunctionType, ...]


_sources: dict[str, ModuleSource] = {}  # by file
_scanned: dict[str, Scan] = {}  # by module
_noticed: tuple[FunctionType, ...] = ()


def digests(classes: Iterable[type]) -> dict[str, str]:
    """The SHA-256 of each file of the user that defines these classes or the noticed functions, by name.

    >>> from statmech.rules import Hebb
    >>> digests([Hebb])
    {}
    """
    found = {file: digest for thing in (*classes, *_noticed) for file, digest in _behind(thing)}
    names = [Path(file).name for file in found]
    return {
        name if names.count(name) == 1 else "/".join(Path(file).parts[-2:]): digest
        for (file, digest), name in sorted(zip(found.items(), names, strict=True))
    }


def is_current(module: ModuleType) -> bool:
    """True if a module's file contains what it contained when the module was executed."""
    return _source(vars(module)).digest == _sha256(Path(str(module.__file__)).read_bytes())


def replaced() -> tuple[FunctionType, ...]:
    """The functions of our packages that user code has put in the place of ours.

    >>> replaced()
    ()
    """
    own = [name for name in list(sys.modules) if _computes(name)]
    return tuple(one for name in own for one in _replaced_in(name))


def notice() -> None:
    """Look for replaced functions; public functions call this once, since it takes about 1 ms."""
    global _noticed
    _noticed = replaced()


def noticed() -> tuple[FunctionType, ...]:
    """The replaced functions that were last noticed."""
    return _noticed


@cache
def _computes(name: str) -> bool:
    return name.partition(".")[0] in PACKAGES and not name.startswith(UNTRACED)


def _replaced_in(name: str) -> tuple[FunctionType, ...]:
    """The replaced functions of one of our modules; those of the last call if no name of it has been set since."""
    known = _scanned.get(name)
    if known is None or not all(map(_is_unchanged, known.spaces, known.values)):
        module = vars(sys.modules[name])
        kinds = (kind for kind in module.values() if isinstance(kind, type) and kind.__module__ == name)
        spaces = (module, *map(vars, kinds))
        own = [one for space in spaces for one in _functions(space) if _is_own(one.__globals__)]
        known = _scanned[name] = Scan(spaces, tuple(tuple(space.values()) for space in spaces), tuple(own))
    return known.replaced


def _is_unchanged(space: Namespace, values: tuple[Any, ...]) -> bool:
    return len(space) == len(values) and all(map(operator.is_, space.values(), values))


def _functions(space: Namespace) -> Iterator[FunctionType]:
    """The functions of a module, or the methods of a class."""
    for member in list(space.values()):
        function = getattr(member, "__func__", getattr(member, "fget", member))
        if type(function) is FunctionType:
            yield function


def _namespace(thing: Any) -> Namespace:
    """The globals of the module that defines a class or a function; empty if that is unknown."""
    if type(thing) is FunctionType:
        return thing.__globals__
    return vars(sys.modules[thing.__module__]) if thing.__module__ in sys.modules else {}


def _is_own(space: Namespace) -> bool:
    """True for a module of the user: neither ours, nor a library, nor generated."""
    name, file = space.get("__name__", ""), space.get("__file__")
    if name.partition(".")[0] in PACKAGES:
        return False
    return name == "__main__" if file is None else _is_outside_libraries(file)


@cache
def _is_outside_libraries(file: str) -> bool:
    return not any(Path(file).resolve().is_relative_to(library) for library in LIBRARIES)


def _behind(thing: Any) -> Iterator[tuple[str, str]]:
    """The files behind a class with its bases and methods, or behind a function, and their digests."""
    bases = thing.__mro__ if isinstance(thing, type) else ()
    parts = [*bases, *(method for base in bases for method in _functions(vars(base)))] or [thing]
    own = [part for part in parts if _is_own(_namespace(part))]
    waiting, seen = [_namespace(part) for part in own], set[int]()
    while waiting:
        space = waiting.pop()
        if id(space) in seen or not _is_own(space):
            continue
        seen.add(id(space))
        if Path(space.get("__file__", "")).is_file():
            source = _source(space)
            yield space["__file__"], source.digest
            waiting += [vars(sys.modules[name]) for name in source.imports if name in sys.modules]
        else:
            words = sorted(word for part in own for word in _words(part))
            yield f"{thing.__qualname__} (no file)", _sha256("\n".join(words).encode())
            used = [value for part in own for value in _globals(part)]
            waiting += [vars(it) if isinstance(it, ModuleType) else getattr(it, "__globals__", {}) for it in used]


def _source(space: Namespace) -> ModuleSource:
    """Return the content of a module's file at the time when its functions were defined."""
    things = tuple(thing for thing in space.values() if isinstance(thing, type | FunctionType))
    known = _sources.get(space["__file__"])
    if known is None or known.things != things:
        content = Path(space["__file__"]).read_bytes()
        imports = tuple(_imported(content, space.get("__package__") or ""))
        known = _sources[space["__file__"]] = ModuleSource(things, _sha256(content), imports)
    return known


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _imported(content: bytes, package: str) -> Iterator[str]:
    """The modules that a file's import statements may name."""
    try:
        tree = ast.parse(content)
    except SyntaxError:  # edited since it was imported
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            relative = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(relative, package) if node.level else relative
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def _globals(thing: Any) -> Iterator[Any]:
    """The global values that the code of a function uses."""
    if type(thing) is FunctionType:
        yield from (thing.__globals__[name] for name in _names(thing.__code__) if name in thing.__globals__)


def _names(code: CodeType) -> set[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _words(thing: Any) -> Iterator[str]:
    """Words for code without a file: a class's plain attributes; a function's bytecode and the constants it uses."""
    if isinstance(thing, CodeType):
        yield from (thing.co_code.hex(), repr(thing.co_names), repr(thing.co_varnames))
        values: Iterable[Any] = thing.co_consts
    elif isinstance(thing, type):
        values = ((name, value) for name, value in vars(thing).items() if not name.startswith("__"))
    else:
        values = (thing.__code__, *_globals(thing))
    for value in values:
        value = tuple(sorted(map(repr, value))) if isinstance(value, frozenset) else value
        yield from _words(value) if isinstance(value, CodeType) else [repr(value)] if _is_plain(value) else []


def _is_plain(value: Any) -> bool:
    """True for numbers, text and tuples of them."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | complex | str | bytes)
