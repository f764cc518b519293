"""Results on disk: Zarr stores that are whole or not there, and that know the config they came from."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech.errors import StoreError
from statmech.sweep import Sweep

if TYPE_CHECKING:
    import xarray as xr

RECORDED = ("statmech", "numpy", "scipy", "jax", "diffrax", "xarray", "zarr")


def save(dataset: xr.Dataset, path: Path) -> None:
    """Write a dataset as a Zarr store: under a temporary name first, so that a store of this name is always whole."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _scratch(path) as scratch, _quiet():
            dataset.assign_attrs(provenance()).to_zarr(scratch / "store", consolidated=False, mode="w")
            if path.exists():
                path.rename(scratch / "old")
            (scratch / "store").rename(path)
    except OSError as failure:
        raise StoreError(f"{path}: cannot be written: {failure.strerror or failure}") from None


def load(path: Path) -> xr.Dataset:
    """Read a store into memory; raises `StoreError` if there is none or it cannot be read."""
    import xarray as xr

    if not path.is_dir():
        raise StoreError(f"{path}: no such result. `statmech run CONFIG` makes one")
    try:
        with _quiet(), xr.open_zarr(path, consolidated=False) as dataset:
            return dataset.load()
    except Exception as failure:  # whatever zarr and its codecs raise on a damaged store
        raise StoreError(f"{path}: not a readable store ({type(failure).__name__}: {failure})") from None


def kept(path: Path, scenario: Sweep, fresh: bool) -> xr.Dataset | None:
    """The stored result of this very scenario, or None if there is none (or `fresh` asks to make it anew).

    Raises `StoreError`, with a line a difference, rather than let a result of another config be overwritten.
    """
    if fresh or not path.exists():
        return None
    dataset = load(path)
    mine, theirs = _identity(scenario.config()), _identity(json.loads(dataset.attrs.get("config", "{}")))
    changed = [name for name in mine | theirs if mine.get(name) != theirs.get(name)]
    if changed:
        lines = [f"  {name}: stored {_shown(theirs, name)}, asked for {_shown(mine, name)}" for name in changed]
        told = "\n".join([f"{path}: holds the result of another config. Differences:", *lines])
        raise StoreError(f"{told}\nUse --fresh to replace it, or --out DIR to keep both.")
    return dataset


def provenance() -> dict[str, Any]:
    """What made a result: versions, machine."""
    return {
        "versions": {name: _version(name) for name in RECORDED},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "Conventions": "ACDD-1.3",
    }


@contextlib.contextmanager
def _scratch(path: Path) -> Iterator[Path]:
    """A folder beside `path` for what is not yet, or no longer, the result; removed in the end."""
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.partial-", dir=path.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without zarr's remark that strings are not yet in the text of its format's third version."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not have a Zarr V3 specification.*")
        yield


def _identity(config: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != "figure"}


def _shown(config: dict[str, Any], name: str) -> str:
    text = json.dumps(config[name]) if name in config else "nothing"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
