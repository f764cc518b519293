"""Compiled programs kept between processes, so that only the first run of a kind waits for the compiler.

They lie in a folder of the user's own (`STATMECH_CACHE`, else the platform's cache folder) and are JAX's own files,
keyed by program, versions and hardware. `STATMECH_CACHE=off`, or a cache that the user has set up in JAX, is respected.
"""

from __future__ import annotations

import os
from pathlib import Path


def folder() -> Path | None:
    """Where compiled programs are kept; None if they are not."""
    given = os.environ.get("STATMECH_CACHE")
    if given == "off":
        return None
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(base) / "statmech" / "compiled"


def use_cache() -> None:
    """Let JAX keep what it compiles from here on; small programs, too, for most of ours are."""
    import jax

    where = folder()
    if where is None or getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    try:
        where.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home only costs time
        return
    jax.config.update("jax_compilation_cache_dir", str(where))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
