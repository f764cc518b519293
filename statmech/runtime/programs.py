"""Programs that are kept between processes: what JAX traced once it calls without tracing again.

Tracing turns a Python function into StableHLO, which XLA compiles. XLA's binaries are cached
(`statmech.runtime.jax_cache`), but to find one JAX has to trace the function first: a second for the equations, 0.2 s
for an engine. `cached_program` keeps the StableHLO as well, as `jax.export` writes it, in the folder `programs` of that
cache.

**A file's name** is the digest of all that determines the program: the source of statmech, simulate and theory, the
versions of JAX and of what traces with it, JAX's settings, the kind of device, and the function with its static
argument and the shapes and types of its arrays. Static arguments that the sources do not determine (a rule that a user
has defined, which may use anything that it imports) are traced in each process. So is everything while a source file is
younger than the process: what it has loaded may be older than the file. And so is everything in a process that has
replaced a function of ours, such as `Perceptron.g`: the program then belongs to these functions.

**The content** has the checksum of every file of the cache: a program that is damaged is traced again and replaced.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache, partial, update_wrapper
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from statmech.numerics.gaussian import Array
from statmech.runtime import jax_cache, own_code

ROOT = Path(__file__).parents[2]
PACKAGES = ("statmech", "simulate", "theory")  # all that is traced
TRACING = ("jax", "jaxlib", "numpy", "scipy")  # and what is called meanwhile
STARTED = time.time() - 5.0  # modules may have been imported this long before
COUNTS = 1, 8, 32, 128  # of recorded times or lanes, for which programs are compiled; beyond, multiples of the last
# XLA divides operations of as few as 2,000 numbers among threads, which then wait for each other at every step;
# units of work side by side keep all cores busy anyway
UNDIVIDED = {"xla_disable_hlo_passes": "cpu-parallel-task-assigner"}
DIVIDED = {"xla_disable_hlo_passes": ""}
# XLA uses half of the vector registers of a CPU with AVX-512; a CPU without takes no notice
WHOLE_VECTORS = {"xla_cpu_prefer_vector_width": 512}
# XLA times several ways to multiply on a GPU and keeps the fastest: each process would have last digits of its own
REPEATABLE = {"xla_gpu_deterministic_ops": True}
# up to JAX 0.11 XLA also gives operations whose order is free to several threads, however small they are; the schedule
# of least memory, without copies that this analysis finds superfluous, leaves one order
IN_SEQUENCE = {
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
    "xla_cpu_copy_insertion_use_region_analysis": True,
}
# the way of fusing operations that XLA had up to JAX 0.10, in one piece: compiles in two fifths of the time, what it
# compiles takes up to a quarter longer, and last digits differ
QUICK = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}


class _Undetermined(Exception):
    """A static argument that the sources do not determine."""


class CachedProgram:
    """A compiled function of one static argument and arrays that returns a tuple of arrays.

    With groups of `options` of the compiler for a static argument; a group is left out where the compiler's version
    does not know all of it. No operation is divided among threads, unless a group is `DIVIDED`, and a GPU computes the
    same bits in every process.
    """

    def __init__(
        self,
        function: Callable[..., tuple[Array, ...]],
        options: Callable[[Any], Sequence[dict[str, Any]]] = lambda static: (),
    ):
        update_wrapper(self, function)
        self.function, self.options = function, options
        self.clear_cache()

    def clear_cache(self) -> None:
        """Forget this process's programs; those in files remain."""
        self.programs: dict[Any, Callable[..., tuple[Array, ...]]] = {}
        self._lock = threading.Lock()

    def compiler_options(self, static: Any) -> dict[str, Any]:
        """All options with which the program of a static argument is compiled; what `XLA_FLAGS` states prevails."""
        asked = [UNDIVIDED, *self.options(static)] + ([] if _platform()[0] == "cpu" else [REPEATABLE])
        groups = [group for group in asked if _known(tuple(group.items()))]
        stated = os.environ.get("XLA_FLAGS", "")
        return {name: value for group in groups for name, value in group.items() if name not in stated}

    def __call__(self, static: Any, *arguments: Any) -> tuple[Array, ...]:
        import jax

        arrays, tree = jax.tree.flatten(arguments)
        shapes = tuple((np.shape(array), np.dtype(getattr(array, "dtype", type(array))).name) for array in arrays)
        signature = (static, tree, shapes, own_code.noticed(), *_environment())
        with self._lock:  # units of work that start together wait for one program
            if signature not in self.programs:
                program = self._find(static, tree, shapes, arrays)
                self.programs[signature] = jax.jit(program, compiler_options=self.compiler_options(static))
        return self.programs[signature](*arrays)

    def _find(self, static: Any, tree: Any, shapes: Any, arrays: list[Any]) -> Callable[..., tuple[Array, ...]]:
        """The program from its file, else traced and kept, else the function itself."""
        import jax.export

        def flat(*arrays: Any) -> tuple[Array, ...]:
            return self.function(static, *jax.tree.unflatten(tree, arrays))

        path = self._path(static, str(tree), shapes)
        if path is None:
            return flat
        if (program := jax_cache.load(path)) is not None:
            with suppress(Exception):  # of another version of the format
                return jax.export.deserialize(bytearray(program)).call
        try:
            platforms = ["cpu"] if _platform()[0] == "cpu" else None  # None is the default, a GPU where there is one
            exported = jax.export.export(jax.jit(flat), platforms=platforms)(*arrays)
            program = bytes(exported.serialize())
        except (NotImplementedError, ValueError, ImportError):  # a call that JAX does not keep; no flatbuffers
            return flat
        jax_cache.save(path, program)
        return exported.call

    def _path(self, static: Any, tree: str, shapes: Any) -> Path | None:
        """The program's file; None if it cannot be kept."""
        import jax

        base, sources = jax_cache.folder(), _sources()
        elsewhere = _platform()[0] not in ("cpu", jax.default_backend())  # for which `export` is not asked
        unknown = own_code.noticed() or getattr(jax.config, "jax_disable_jit", False)
        if base is None or sources is None or elsewhere or unknown:
            return None
        try:
            words = [*_named(self.function), *_named(static), tree, repr(shapes), sources, *_environment()]
        except _Undetermined:
            return None
        return base / jax_cache.PROGRAMS / hashlib.sha256("\n".join(words).encode()).hexdigest()


cached_program = CachedProgram
quickly_compiled = partial(
    CachedProgram, options=lambda static: [QUICK]
)  # for programs that take less time to run than to compile


def filled_up(count: int) -> int:
    """The number of recorded times, or of lanes, up to which so many are filled: one program serves many numbers.

    >>> [filled_up(count) for count in (1, 2, 8, 9, 129)]
    [1, 8, 8, 32, 256]
    """
    return next((least for least in COUNTS if count <= least), -(-count // COUNTS[-1]) * COUNTS[-1])


def nothing() -> int:
    """The program that asks the compiler whether it knows its options."""
    return 0


@cache
def _known(options: tuple[tuple[str, Any], ...]) -> bool:
    """Whether the compiler knows all options and their values, which come and go with its versions."""
    import jax

    try:
        jax.jit(nothing, compiler_options=dict(options)).lower().compile()
    except jax.errors.JaxRuntimeError:  # there is nothing else that it could refuse
        return False
    return True


def _named(thing: Any) -> Iterator[str]:
    """Words that name a static argument: numbers and text, classes and functions of the packages, tuples of them."""
    if isinstance(thing, type) or (callable(thing) and hasattr(thing, "__qualname__")):
        yield _defined(thing)
    elif isinstance(thing, tuple):
        yield f"{len(thing)} of"
        for part in thing:
            yield from _named(part)
    elif is_dataclass(thing):
        yield _defined(type(thing))
        for field in fields(thing):
            yield field.name
            yield from _named(getattr(thing, field.name))
    elif thing is None or type(thing) in (bool, int, float, str):
        yield repr(thing)
    else:
        raise _Undetermined


def _defined(thing: Any) -> str:
    """Name the module and the class or function, if it is defined in one of the packages."""
    name, module = thing.__qualname__, sys.modules.get(thing.__module__)
    file = Path(getattr(module, "__file__", None) or ".")
    known = any(file.is_relative_to(ROOT / package) for package in PACKAGES)
    found = getattr(module, name, None)
    if not known or getattr(found, "function", found) is not thing:  # a decorated function is found as Kept
        raise _Undetermined
    return f"{thing.__module__}:{name}"


def _sources() -> str | None:
    """A digest of the packages' source; None if a file is younger than the process, or missing."""
    paths = _files()
    states = [path.stat() for path in paths]
    if not paths or max(max(state.st_mtime, state.st_ctime) for state in states) > STARTED:
        return None
    return _digest(paths)


def source_digest() -> str:
    """A digest of the source of statmech, simulate and theory."""
    return _digest(_files())


def _files() -> tuple[Path, ...]:
    """The source files of the packages; none if a package has none."""
    paths = [sorted((ROOT / package).rglob("*.py")) for package in PACKAGES]
    return tuple(path for package in paths for path in package) if all(paths) else ()


@cache
def _digest(paths: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _environment() -> list[str]:
    """Versions, the kind of device, and JAX's settings: every call asks for them."""
    import jax

    values = jax.config.values  # a new dict at every reading
    # a setting that this thread may change for a while is an attribute, any other is a value alone
    settings = [getattr(jax.config, name, values[name]) for name in _settings()]
    return [*_versions(), *_platform(), repr(settings)]


@cache
def _settings() -> list[str]:
    """The names of JAX's settings, but those of its cache and of the one device among many."""
    import jax

    return [name for name in sorted(jax.config.values) if "cache" not in name and name != "jax_default_device"]


@cache
def _versions() -> list[str]:
    """The versions of Python, and of what is called while a program is traced."""
    return [sys.version, *(f"{name} {version_of(name)}" for name in TRACING)]


@cache
def version_of(name: str) -> str:
    """The version of a package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _platform() -> tuple[str, str]:
    """The platform of JAX's default device, and its kind."""
    import jax

    device = getattr(jax.config, "jax_default_device", None) or jax.local_devices()[0]
    return (device, device) if isinstance(device, str) else (device.platform, device.device_kind)
