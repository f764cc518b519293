"""A persistent cache of compiled programs, so that only the first run of each kind waits for the compiler.

The files are JAX's, keyed by program, versions and hardware, in the folder `STATMECH_CACHE`, by default the user's
cache folder; `statmech.runtime.programs` keeps what was traced beside them. `STATMECH_CACHE=off` disables both; a cache
that the user has set up in JAX is respected. Programs in the folder are run, so that one that another user owns or may
write is not used, nor one that a relative path names.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from statmech.runtime import own_code, system

PROGRAMS = "programs"  # the folder, in that of the cache, of `statmech.runtime.programs`


def folder() -> Path | None:
    """The folder of compiled programs; None if there is no cache, or if another user may have written it."""
    setting = os.environ.get("STATMECH_CACHE")
    if setting == "off":
        return None
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # neither HOME nor an entry of this user in the password file, as in some containers
        base = ""
    if not (setting or base):
        return None
    path = Path(setting) if setting else Path(base) / "statmech" / "compiled"
    if not path.is_absolute():  # the current folder may be a stranger's
        return None
    return path if all(map(system.is_private, (path, path / PROGRAMS))) else None


def make(path: Path) -> None:
    """Create a folder of the cache, and the one around it, for this user alone. Raises `OSError`."""
    for place in (path.parent, path):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)


def use_cache() -> None:
    """Let JAX cache the programs it compiles from now on, and notice functions of ours that were replaced."""
    own_code.notice()
    cache_programs()


def cache_programs() -> None:
    """Let JAX cache the programs it compiles from now on: nothing is compiled where nothing has imported it."""
    if not sys.modules.get("jax"):
        return
    import jax

    path = folder()
    if path is None or getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    try:
        make(path)
    except OSError:  # without a writable folder programs are compiled again
        return
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
