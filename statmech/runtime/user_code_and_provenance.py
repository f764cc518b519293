"""The code behind a result: files of the user, replaced functions of our packages, versions, and the commit.

A stored number belongs to the code that computed it. `digest_user_code` returns the SHA-256 of the files that
define the classes of a scenario and their bases. Modules that these files import are not included. Code without a file
(a cell of a notebook) is represented by its bytecode and the values that it uses. A file is read again only when its
module's functions have changed, so that the digest belongs to the code in memory, not to a later edit.

`find_replaced_functions` lists functions in our packages that come from elsewhere, such as `Perceptron.g` set by a
notebook.

`reset_inherited_attributes` resets closed forms that a subclass must not inherit if it overrides their function.

`provenance` returns the versions and the machine that are recorded with a result.
"""

from __future__ import annotations

import dis
import hashlib
import os
import platform
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property, partialmethod
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from statmech.runtime.operating_system import get_processor_name

REPOSITORY_FOLDER = Path(__file__).parents[2]
TRACED_PACKAGES = ("statmech", "simulate", "theory")
# seconds since 1970: modules may have been imported up to 5 s before this module
MAX_SOURCE_TIME = time.time() - 5.0
VERSION_PROVENANCE_KEYS = ("commit", "versions")  # entries of a provenance that identify a version
ROUNDING_ENV_VARIABLES = ("XLA_FLAGS", "OPENBLAS_CORETYPE")  # environment variables that change the last digits
RECORDED_PACKAGES = ("statmech", "numpy", "scipy", "jax", "xarray", "zarr")
STATMECH_PACKAGES = ("statmech", "simulate", "theory", "figures")
STANDARD_LIBRARY_FOLDERS = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
LIBRARY_FOLDER_NAMES = {"site-packages", "dist-packages"}
UNCALLABLE_WRAPPERS = (classmethod, property, cached_property, partialmethod)
NON_NUMERICAL_MODULES = (  # replacing functions of these modules does not change results
    "statmech.cli",
    "statmech.results",
    "statmech.stores",
    "statmech.runtime",
    "simulate.execution",
    "figures",
)

ModuleGlobals = Mapping[str, Any]  # the globals of a module

# for each file, the definitions of its module when the file was read, and its digest
_digest_cache: dict[str, tuple[list[Any], str]] = {}
_replaced_functions: tuple[FunctionType, ...] = ()


def digest_user_code(classes: Iterable[type]) -> dict[str, str]:
    """Return the SHA-256 of each user file that defines one of these classes or a replaced function, by file name.

    >>> from statmech.students.rules import Hebb
    >>> digest_user_code([Hebb])
    {}
    """
    digest_by_file: dict[str, str] = {}
    descriptions: dict[str, list[str]] = {}  # descriptions by name, for code without a file
    things: tuple[Any, ...] = (*classes, *_replaced_functions)
    for thing in things:
        bases = thing.__mro__ if isinstance(thing, type) else (thing,)
        parts = [*bases, *(method for base in bases for method in _iterate_functions(vars(base)))]
        for part in parts:
            space = _get_module_globals(part)
            if _is_user_module(space):
                try:
                    digest_by_file[space["__file__"]] = _digest_module(space)
                except (KeyError, OSError):
                    name = f"{thing.__qualname__} (no file)"
                    descriptions.setdefault(name, []).append(_describe_code(part, space, []))
    digest_by_name = {name: _sha256(repr(sorted(parts)).encode()) for name, parts in descriptions.items()}
    names = [Path(file).name for file in digest_by_file]
    for (file, digest), name in zip(digest_by_file.items(), names, strict=True):
        digest_by_name[name if names.count(name) == 1 else "/".join(Path(file).parts[-2:])] = digest
    return dict(sorted(digest_by_name.items()))


def is_module_current(module: ModuleType) -> bool:
    """Return True if a module's file has not changed since the module was executed."""
    return _digest_module(vars(module)) == _sha256(Path(str(module.__file__)).read_bytes())


def find_replaced_functions() -> tuple[FunctionType, ...]:
    """Return the user's functions that replace original functions of our packages.

    >>> find_replaced_functions()
    ()
    """
    spaces = [vars(module) for name, module in [*sys.modules.items()] if _is_numerical_module(name)]
    return tuple(
        function
        for space in spaces
        for function in _list_definitions(space)[1]
        if _is_user_module(function.__globals__)
    )


def record_replaced_functions() -> None:
    """Search for replaced functions, and record them.

    Public functions call this once, since it takes about 3 ms.
    """
    global _replaced_functions
    _replaced_functions = find_replaced_functions()


def get_replaced_functions() -> tuple[FunctionType, ...]:
    """Return the functions found by the latest call of `record_replaced_functions`."""
    return _replaced_functions


@cache
def _is_numerical_module(name: str) -> bool:
    return name.partition(".")[0] in STATMECH_PACKAGES and not name.startswith(NON_NUMERICAL_MODULES)


def _list_definitions(space: ModuleGlobals) -> tuple[list[type], list[FunctionType]]:
    """Return the classes that a module defines, and the functions in it and in these classes."""
    values, name = [*space.values()], space.get("__name__")
    kinds = [value for value in values if isinstance(value, type) and value.__module__ == name]
    return kinds, [function for scope in (space, *map(vars, kinds)) for function in _iterate_functions(scope)]


def _iterate_functions(space: ModuleGlobals) -> Iterator[FunctionType]:
    """Yield the functions of a module, or the methods of a class."""
    for member in [*space.values()]:
        if isinstance(function := _unwrap_function(member), FunctionType):
            yield function


def _unwrap_function(member: Any) -> Any:
    """Return the user's function inside a method, a property, or a wrapper such as `jax.jit` or `partial`."""
    if type(member) is FunctionType or not (callable(member) or isinstance(member, UNCALLABLE_WRAPPERS)):
        return member
    for attribute in ("__func__", "fget", "__wrapped__", "func"):
        if isinstance(member, (FunctionType, type)):
            break
        member = getattr(member, attribute, member)
    return member


def _get_module_globals(thing: Any) -> ModuleGlobals:
    """Return the globals of the module that defines a class or a function, empty if the module is unknown."""
    if isinstance(thing, FunctionType):
        return thing.__globals__
    return vars(sys.modules[thing.__module__]) if thing.__module__ in sys.modules else {}


def _is_user_module(space: ModuleGlobals) -> bool:
    """Return True for a module of the user: neither ours, nor a library, nor generated."""
    name, file = space.get("__name__", ""), space.get("__file__")
    if name.partition(".")[0] in STATMECH_PACKAGES:
        return False
    return name == "__main__" if file is None else not _is_library_file(file)


@cache
def _is_library_file(file: str) -> bool:
    """Return True for a file of the standard library or of an installed distribution.

    The project of an editable installation is the user's own code: its distribution does not list the files.
    """
    path = Path(file)
    resolved = path.resolve()
    return (
        not LIBRARY_FOLDER_NAMES.isdisjoint(resolved.parts)
        or any(map(resolved.is_relative_to, STANDARD_LIBRARY_FOLDERS))
        # links may lead into or out of the folder of a distribution
        or any(map(_is_installed_file, (path, resolved)))
    )


def _is_installed_file(path: Path) -> bool:
    """Return True if a distribution in one of the folders above has installed this file."""
    return any(
        row.partition(",")[0] == path.relative_to(folder).as_posix()
        for folder in path.parents
        for record in folder.glob("*.dist-info/RECORD")
        for row in record.read_text(encoding="utf-8").splitlines()
    )


def _digest_module(space: ModuleGlobals) -> str:
    """Return the digest of a user-defined file, read when the current functions of its module were defined."""
    file = space["__file__"]
    kinds, functions = _list_definitions(space)
    defined = [*kinds, *functions, *(function.__code__ for function in functions)]
    if file not in _digest_cache or _digest_cache[file][0] != defined:
        _digest_cache[file] = defined, _sha256(Path(file).read_bytes())
    return _digest_cache[file][1]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _describe_code(thing: Any, space: ModuleGlobals, visited: list[Any]) -> str:
    """Describe a user's code without a file: its bytecode, and the functions, classes and values that it uses."""
    thing = _unwrap_function(thing)
    if isinstance(thing, FunctionType | type):
        space = _get_module_globals(thing)
        if thing in visited or not _is_user_module(space):
            return thing.__qualname__
        visited.append(thing)
    parts: Iterable[Any]
    if isinstance(thing, type):
        members = {name: _unwrap_function(value) for name, value in vars(thing).items() if name != "_abc_impl"}
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
    return repr([_describe_code(part, space, visited) for part in parts])


def reset_inherited_attributes(cls: type, function_name: str, attribute_names: tuple[str, ...], base: type) -> None:
    """Reset attributes, such as closed forms and kinks, if a user's subclass overrides the function they describe.

    >>> class Base:
    ...     kinks = ()
    ...     def __init_subclass__(cls):
    ...         reset_inherited_attributes(cls, "g", ("kinks",), Base)
    ...     def g(self, x): ...
    >>> class Step(Base):
    ...     kinks = (0.0,)
    ...     def g(self, x): ...
    >>> class Smooth(Step):
    ...     def g(self, x): ...
    >>> Step.kinks, Smooth.kinks
    ((0.0,), ())
    """

    def find_depth(name: str) -> int:
        return next(depth for depth, parent in enumerate(cls.__mro__) if name in vars(parent))

    for name in attribute_names:
        if find_depth(name) > find_depth(function_name):
            setattr(cls, name, vars(base)[name])


def provenance() -> dict[str, Any]:
    """Return the provenance of a result: package versions, commit of a checkout, and machine.

    The machine includes the settings that change the last digits of results.

    Returns
    -------
    dict
        Attributes of a dataset.

    Examples
    --------
    >>> {"commit", "machine", "versions"} <= set(provenance())
    True
    """
    return {
        "commit": _describe_commit(),
        "versions": {name: get_package_version(name) for name in RECORDED_PACKAGES},
        "python": platform.python_version(),
        "machine": _describe_machine(),
        "Conventions": "ACDD-1.3",
    }


def get_recorded_version(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a provenance that identify the version."""
    return {name: provenance.get(name) for name in VERSION_PROVENANCE_KEYS}


def is_running_version(recorded: Mapping[str, Any]) -> bool:
    """Return True if a provenance records the running version."""
    return get_recorded_version(recorded) == get_recorded_version(provenance())


def format_version(provenance: Mapping[str, Any]) -> str:
    """Return the version in a provenance as text.

    >>> format_version({"commit": "4d1c2e7", "versions": {"statmech": "0.1.0", "jax": "0.10.2", "numpy": "2.4.6"}})
    'statmech 0.1.0 (4d1c2e7), jax 0.10.2, numpy 2.4.6'
    """
    commit, versions = provenance.get("commit"), provenance.get("versions", {})
    statmech_version, *other_versions = (f"{name} {versions.get(name, '?')}" for name in ("statmech", "jax", "numpy"))
    return ", ".join([f"{statmech_version} ({commit})" if commit else statmech_version, *other_versions])


@cache
def _describe_machine() -> str:
    """Return the system, the processor and the settings that determine the last digits of results."""
    parts = (f"{platform.system()} {platform.machine()}", get_processor_name(), f"{os.cpu_count()} cores")
    settings = (f"{name}={os.environ[name]}" for name in ROUNDING_ENV_VARIABLES if os.environ.get(name))
    return ", ".join([*filter(None, parts), *settings])


@cache
def _describe_commit() -> str:
    """Return the commit of our checkout, with a digest of its source if it is modified.

    An installed package has a digest alone. Only a repository at the root of our source is used. A repository further
    up, such as a project whose virtual environment contains this package, has commits of other code.
    """
    tracked = (REPOSITORY_FOLDER / ".git").exists() and _run_git("ls-files", "statmech/__init__.py")
    commit = _run_git("describe", "--always", "--dirty", "--exclude=*") if tracked else ""
    if commit and not commit.endswith("-dirty"):
        return commit
    return f"{commit or 'source'}-{digest_package_sources()[:8]}"


def _run_git(*arguments: str) -> str:
    """Return the output of git in our checkout, empty if it fails.

    Variables such as GIT_DIR, which git sets for its hooks, would name another repository. A relative entry of PATH
    is relative to the checkout: the current folder may contain a `git` of somebody else.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        process = subprocess.run(
            ["git", *arguments],
            cwd=REPOSITORY_FOLDER,
            env=environment,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if process.returncode else process.stdout.strip()


def digest_old_sources() -> str | None:
    """Return a digest of the packages' source, or None if a file is missing or newer than the process."""
    paths = _list_source_files()
    states = [path.stat() for path in paths]
    if not paths or max(max(state.st_mtime, state.st_ctime) for state in states) > MAX_SOURCE_TIME:
        return None
    return _digest_files(paths)


def is_traced_file(file: Path) -> bool:
    """Return True if a file belongs to a package whose functions are traced."""
    return any(file.is_relative_to(REPOSITORY_FOLDER / package) for package in TRACED_PACKAGES)


def digest_package_sources() -> str:
    """Return a digest of the source of statmech, simulate and theory."""
    return _digest_files(_list_source_files())


def _list_source_files() -> tuple[Path, ...]:
    """Return the source files of the packages, or no files if a package is missing."""
    paths = [sorted((REPOSITORY_FOLDER / package).rglob("*.py")) for package in TRACED_PACKAGES]
    return tuple(path for package in paths for path in package) if all(paths) else ()


@cache
def _digest_files(paths: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(REPOSITORY_FOLDER)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@cache
def get_package_version(name: str) -> str:
    """Return the version of an installed package, for the provenance of results."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
