"""A persistent cache of compiled programs, so that only the first run of each kind waits for the compiler.

The folder `STATMECH_CACHE`, by default in the user's cache folder, contains XLA's binaries by JAX's keys, which include
program, versions and hardware. `statmech.runtime.programs` stores traced programs next to the binaries.
`STATMECH_CACHE=off` disables both. A cache that the user has set up in JAX is respected.

**The content** of every file is a checksum of its name and payload, then the payload. A file that is truncated, damaged
or belongs to another program is a miss, and is replaced: one flipped bit in a binary would crash every command that
runs it, and JAX does not notice flipped bits in data that zstd has compressed. Files contain no Python objects and are
written atomically. Programs in the folder are run, so a folder is not used if another user owns it, may write to it or
may exchange it, or if it is given by a relative path.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from statmech.runtime import files, own_code, system
from statmech.runtime.devices import check_jax_platforms, has_jax

PROGRAMS_FOLDER = "programs"  # subfolder of the cache for `statmech.runtime.programs`
MAX_PROGRAM_BYTES = 2**26
CHECKSUM_BYTES = hashlib.sha256().digest_size
# JAX's cache keys do not distinguish zlib compression from the zstd compression of Python 3.14
PYTHON_VERSION_SUFFIX = f"-{sys.implementation.cache_tag}"


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
        map(system.is_writable_by_owner_only, (path, path / PROGRAMS_FOLDER))
    ) and not system.is_replaceable_by_others(path)
    return path if private else None


def load_checked(path: Path) -> bytes | None:
    """Return the content of a cache file, or None if the file is missing, damaged or writable by others."""
    try:
        with (
            files.open_regular_file(path, MAX_PROGRAM_BYTES) as descriptor,
            open(descriptor, "rb", closefd=False) as file,
        ):
            stored = file.read() if system.is_writable_by_owner_only(descriptor) else b""
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
    own_code.record_replaced_functions()
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
