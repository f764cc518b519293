"""Persistent caches of compiled and of traced programs, so that later processes need not repeat this work.

Tracing turns a Python function into StableHLO, which XLA compiles. The cache of XLA's binaries spares all runs after
the first of each kind the wait for the compiler. To find a binary, however, JAX has to trace the function first: a
second for the equations, 0.2 s for an engine. `cached_program` therefore stores the StableHLO as well, as `jax.export`
writes it.

**The folder** `STATMECH_CACHE`, by default in the user's cache folder, contains XLA's binaries by JAX's keys, which
include program, versions and hardware. Traced programs are in its subfolder `programs`. `STATMECH_CACHE=off` disables
both caches. A cache that the user has set up in JAX is respected. Programs in the folder are run, so a folder is not
used if another user owns it, may write to it or may exchange it, or if it is given by a relative path.

**The content** of every file is a checksum of its name and payload, then the payload. A file that is truncated, damaged
or belongs to another program is a miss, and is replaced: one flipped bit in a binary would crash every command that
runs it, and JAX does not notice flipped bits in data that zstd has compressed. Files contain no Python objects and are
written atomically.

**The name of a traced program's file** is the digest of all inputs that determine the program: the source of statmech,
simulate and theory, the versions of JAX and other libraries involved in tracing, JAX's settings, the kind of device,
and the function with its static argument and the shapes and types of its arrays.

**Programs without a file.** A program is traced in each process if the sources do not determine its static argument (a
rule that a user has defined, which may use anything that it imports). So is everything while a source file is younger
than the process, whose loaded code may be older than the file. And so is everything in a process that has replaced a
function of our packages, such as `Perceptron.g`: the program then depends on these functions.

**Loops compiled by Numba** are sequential updates that array operations cannot express (`compile_loop`).
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache, partial, update_wrapper
from pathlib import Path
from typing import Any

import numpy as np

from statmech.numerics.gaussian import Array
from statmech.runtime import files, operating_system, user_code_and_provenance
from statmech.runtime.installed_packages import require_modules
from statmech.runtime.jax_and_blas_settings import check_jax_platforms, has_jax

PROGRAMS_FOLDER = "programs"  # subfolder of the cache for traced programs
FASTMATH_FLAGS = {"reassoc", "contract", "nsz", "nnan"}  # let Numba vectorise sums and minima
MAX_PROGRAM_BYTES = 2**26
CHECKSUM_BYTES = hashlib.sha256().digest_size
# JAX's cache keys do not distinguish zlib compression from the zstd compression of Python 3.14
PYTHON_VERSION_SUFFIX = f"-{sys.implementation.cache_tag}"
TRACING_LIBRARIES = ("jax", "jaxlib", "numpy", "scipy")  # libraries that are called while a program is traced
# padded numbers of recorded times or batch elements; larger numbers are padded to multiples of the last
PADDED_ARRAY_LENGTHS = 1, 8, 32, 128
# XLA divides operations on as few as 2,000 numbers among threads, which then wait for each other at every step;
# units of work in parallel keep all cores busy anyway
SINGLE_THREAD_OPTIONS = {"xla_disable_hlo_passes": "cpu-parallel-task-assigner"}
MULTI_THREAD_OPTIONS = {"xla_disable_hlo_passes": ""}
# by default XLA uses only half of each AVX-512 vector register; CPUs without AVX-512 ignore this option
WIDE_VECTOR_OPTIONS = {"xla_cpu_prefer_vector_width": 512}
# on a GPU XLA would time several multiplication algorithms and keep the fastest, so that last digits would differ
# between processes
DETERMINISTIC_GPU_OPTIONS = {"xla_gpu_deterministic_ops": True}
# up to JAX 0.11 XLA also runs operations without a fixed order on several threads, even small operations; scheduling
# for minimum memory, without superfluous copies, leaves only one order
SEQUENTIAL_EXECUTION_OPTIONS = {
    "xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
    "xla_cpu_copy_insertion_use_region_analysis": True,
}
# the fusion of operations used by XLA up to JAX 0.10, compiled in one piece: compiling takes 40 % of the time, but
# programs run up to 25 % longer, and last digits differ
OLD_FUSION_OPTIONS = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}


def get_cache_folder() -> Path | None:
    """Return the folder of compiled programs, or None without a cache or if another user may have written to it."""
    setting = os.environ.get("STATMECH_CACHE")
    if setting == "off":
        return None
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # no HOME, and no entry for this user in the password file, as in some containers
        base = ""
    if not (setting or base):
        return None
    path = Path(setting) if setting else Path(base) / "statmech" / "compiled"
    if not path.is_absolute():  # the current folder may be untrusted
        return None
    path = Path(os.path.realpath(path))
    private = all(
        map(operating_system.is_writable_by_owner_only, (path, path / PROGRAMS_FOLDER))
    ) and not operating_system.is_replaceable_by_others(path)
    return path if private else None


def load_checked(path: Path) -> bytes | None:
    """Return the content of a cache file, or None if the file is missing, damaged or writable by others."""
    try:
        with (
            files.open_regular_file(path, MAX_PROGRAM_BYTES) as descriptor,
            open(descriptor, "rb", closefd=False) as file,
        ):
            stored = file.read() if operating_system.is_writable_by_owner_only(descriptor) else b""
    except OSError:
        return None
    content = stored[CHECKSUM_BYTES:]
    return content if stored[:CHECKSUM_BYTES] == compute_file_checksum(path, content) else None


def save_checked_file(path: Path, content: bytes) -> None:
    """Write a file of the cache for this user alone, if the folder can be written."""
    with suppress(OSError):
        for parent in reversed(path.parents):
            parent.mkdir(mode=0o700, exist_ok=True)
        files.write_atomically(path, compute_file_checksum(path, content) + content)
        path.chmod(0o600)


def compute_file_checksum(path: Path, content: bytes) -> bytes:
    """Return the digest of a file's name and content."""
    return hashlib.sha256(path.name.encode() + content).digest()


class CheckedCache:
    """A cache of XLA's binaries in files with checksums, with the interface of JAX's own cache."""

    def __init__(self, path: Path):
        self._path = path  # JAX logs this attribute

    def get(self, key: str) -> bytes | None:
        return load_checked(self._path / (key + PYTHON_VERSION_SUFFIX))

    def put(self, key: str, value: bytes) -> None:
        save_checked_file(self._path / (key + PYTHON_VERSION_SUFFIX), value)


def set_up_compilation_cache() -> None:
    """Let JAX cache the programs that it compiles, and record replaced functions of our packages."""
    if os.environ.get("JAX_PLATFORMS", "cpu") not in ("", "cpu") and has_jax():
        check_jax_platforms()  # fail before the first run, because a failed run would be repeated
    user_code_and_provenance.record_replaced_functions()
    enable_jax_cache()


def enable_jax_cache() -> None:
    """Let JAX cache the programs that it compiles.

    Does nothing if JAX is not imported, since then nothing has been compiled.
    """
    cache: Any = sys.modules.get("jax._src.compilation_cache")
    if getattr(cache, "_cache", "no cache of this form") is not None:  # a cache is set up, or this JAX has no `_cache`
        return
    import jax

    path = get_cache_folder()
    if path is not None and getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        cache._cache = CheckedCache(path)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


class _UncacheableArgumentError(Exception):
    """Error for a static argument that the source files do not determine."""


class CachedProgram:
    """A compiled function that takes one static argument and arrays, and returns a tuple of arrays.

    `options` returns groups of compiler options for a static argument. A group is omitted if the compiler's version
    does not know all its options. No operation is divided among threads, unless a group is `MULTI_THREAD_OPTIONS`, and
    a GPU computes the same bits in every process.
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
        """Discard the programs in memory, but keep the programs on disk."""
        self.programs: dict[Any, Callable[..., tuple[Array, ...]]] = {}
        self._lock = threading.Lock()

    def compiler_options(self, static: Any) -> dict[str, Any]:
        """Return all compiler options for the program of a static argument.

        Options in `XLA_FLAGS` take precedence.
        """
        requested = [SINGLE_THREAD_OPTIONS, *self.options(static)] + (
            [] if _get_platform()[0] == "cpu" else [DETERMINISTIC_GPU_OPTIONS]
        )
        groups = [group for group in requested if _are_options_known(tuple(group.items()))]
        environment_flags = os.environ.get("XLA_FLAGS", "")
        return {name: value for group in groups for name, value in group.items() if name not in environment_flags}

    def __call__(self, static: Any, *arguments: Any) -> tuple[Array, ...]:
        import jax

        arrays, tree = jax.tree.flatten(arguments)
        shapes = tuple((np.shape(array), np.dtype(getattr(array, "dtype", type(array))).name) for array in arrays)
        signature = (static, tree, shapes, user_code_and_provenance.get_replaced_functions(), *_describe_environment())
        with self._lock:  # units of work that start together wait for the same program
            if signature not in self.programs:
                program = self._load_or_trace(static, tree, shapes, arrays)
                self.programs[signature] = jax.jit(program, compiler_options=self.compiler_options(static))
        return self.programs[signature](*arrays)

    def _load_or_trace(
        self, static: Any, tree: Any, shapes: Any, arrays: list[Any]
    ) -> Callable[..., tuple[Array, ...]]:
        """Load the program from its file, or trace it, and store it if possible."""
        import jax.export

        def flat(*arrays: Any) -> tuple[Array, ...]:
            return self.function(static, *jax.tree.unflatten(tree, arrays))

        path = self._get_program_file(static, str(tree), shapes)
        if path is None:
            return flat
        if (program := load_checked(path)) is not None:
            with suppress(Exception):  # the file may have another version of the format
                return jax.export.deserialize(bytearray(program)).call
        try:
            platforms = ["cpu"] if _get_platform()[0] == "cpu" else None  # None means JAX's default, such as a GPU
            exported = jax.export.export(jax.jit(flat), platforms=platforms)(*arrays)
            program = bytes(exported.serialize())
        except (NotImplementedError, ValueError, ImportError):  # a call that JAX cannot export, or no flatbuffers
            return flat
        save_checked_file(path, program)
        return exported.call

    def _get_program_file(self, static: Any, tree: str, shapes: Any) -> Path | None:
        """Return the program's file, or None if the program cannot be stored."""
        import jax

        base, sources = get_cache_folder(), user_code_and_provenance.digest_old_sources()
        elsewhere = _get_platform()[0] not in ("cpu", jax.default_backend())  # `_load_or_trace` only supports these
        cannot_be_shared = user_code_and_provenance.get_replaced_functions() or getattr(
            jax.config, "jax_disable_jit", False
        )
        if base is None or sources is None or elsewhere or cannot_be_shared:
            return None
        try:
            identifiers = [
                *_describe_argument(self.function),
                *_describe_argument(static),
                tree,
                repr(shapes),
                sources,
                *_describe_environment(),
            ]
        except _UncacheableArgumentError:
            return None
        return base / PROGRAMS_FOLDER / hashlib.sha256("\n".join(identifiers).encode()).hexdigest()


cached_program = CachedProgram
# for programs that take less time to run than to compile
fast_compiled_program = partial(CachedProgram, options=lambda static: [OLD_FUSION_OPTIONS])


def pad_array_length(count: int) -> int:
    """Round up a number of recorded times or batch elements, so that one program serves many sizes.

    >>> [pad_array_length(count) for count in (1, 2, 8, 9, 129)]
    [1, 8, 8, 32, 256]
    """
    return next(
        (padded for padded in PADDED_ARRAY_LENGTHS if count <= padded),
        -(-count // PADDED_ARRAY_LENGTHS[-1]) * PADDED_ARRAY_LENGTHS[-1],
    )


def trivial_program() -> int:
    """Return 0, a minimal program for testing compiler options."""
    return 0


@cache
def _are_options_known(options: tuple[tuple[str, Any], ...]) -> bool:
    """Return True if this version of the compiler knows all options and their values."""
    import jax

    try:
        jax.jit(trivial_program, compiler_options=dict(options)).lower().compile()
    except jax.errors.JaxRuntimeError:  # only unknown options can make this program fail
        return False
    return True


def _describe_argument(thing: Any) -> Iterator[str]:
    """Yield strings that identify a static argument of a program.

    The argument may consist of numbers, strings, classes and functions of the packages, their dataclasses, and tuples.
    """
    if isinstance(thing, type) or (callable(thing) and hasattr(thing, "__qualname__")):
        yield _get_qualified_name(thing)
    elif isinstance(thing, tuple):
        yield f"{len(thing)} of"
        for part in thing:
            yield from _describe_argument(part)
    elif is_dataclass(thing):
        yield _get_qualified_name(type(thing))
        for field in fields(thing):
            yield field.name
            yield from _describe_argument(getattr(thing, field.name))
    elif thing is None or type(thing) in (bool, int, float, str):
        yield repr(thing)
    else:
        raise _UncacheableArgumentError


def _get_qualified_name(thing: Any) -> str:
    """Return the module and name of a class or function that a cached program uses from the packages."""
    name, module = thing.__qualname__, sys.modules.get(thing.__module__)
    file = Path(getattr(module, "__file__", None) or ".")
    is_in_packages = user_code_and_provenance.is_traced_file(file)
    definition = getattr(module, name, None)
    # a decorated function is a CachedProgram, with the function as an attribute
    if not is_in_packages or getattr(definition, "function", definition) is not thing:
        raise _UncacheableArgumentError
    return f"{thing.__module__}:{name}"


def _describe_environment() -> list[str]:
    """Return library versions, the kind of device and JAX's settings as strings, at every call of a program."""
    import jax

    values = jax.config.values  # read once, since every access creates a new dict
    # attributes of jax.config include changes made in this thread, but some settings have no attribute
    settings = [getattr(jax.config, name, values[name]) for name in _list_jax_settings()]
    return [*_list_versions(), *_get_platform(), repr(settings)]


@cache
def _list_jax_settings() -> list[str]:
    """Return the names of JAX's settings, except for its cache and the default device."""
    import jax

    return [name for name in sorted(jax.config.values) if "cache" not in name and name != "jax_default_device"]


@cache
def _list_versions() -> list[str]:
    """Return the versions of Python, and of the libraries that are called while a program is traced."""
    return [
        sys.version,
        *(f"{name} {user_code_and_provenance.get_package_version(name)}" for name in TRACING_LIBRARIES),
    ]


def _get_platform() -> tuple[str, str]:
    """Return the platform and the kind of JAX's default device."""
    import jax

    device = getattr(jax.config, "jax_default_device", None) or jax.local_devices()[0]
    return (device, device) if isinstance(device, str) else (device.platform, device.device_kind)


class CompiledLoop:
    """A function that Numba compiles once per process, at its first call, for the types of its signature.

    It is also compiled when a loop that calls it is compiled. Numba's own cache on disk is not used, because it
    unpickles files.
    """

    def __init__(self, signature: str, function: Callable[..., Any]):
        update_wrapper(self, function)
        self.function, self.signature = function, signature
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return (self._compiled or self.dispatcher())(*arguments)

    def dispatcher(self) -> Any:
        """Return Numba's dispatcher, compiling the function first if necessary."""
        require_modules("a compiled loop", "estimators", "numba")
        import numba
        from numba.core.compiler_lock import global_compiler_lock

        with global_compiler_lock:  # concurrent units of work wait for one compilation
            if self._compiled is None:
                self._compiled = numba.njit(self.signature, fastmath=FASTMATH_FLAGS, nogil=True)(self.function)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of the loop, for calls by other compiled loops."""
        import numba

        return numba.typeof(self.dispatcher())


def compile_loop(signature: str) -> Callable[[Callable[..., Any]], CompiledLoop]:
    """Make a decorator that compiles a loop for arguments of this signature."""
    return partial(CompiledLoop, signature)
