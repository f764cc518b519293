"""Results on disk: Zarr stores that are whole or not there, and that know the config they came from."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech.errors import DamagedError, StoreError, unwritable
from statmech.results.checksums import SEALED, broken, seal
from statmech.results.fingerprints import FINGERPRINT, fingerprints, salt_of
from statmech.scenarios.base import Sweep

if TYPE_CHECKING:
    import xarray as xr

STATE = "state"  # of each run, in a store that grows (`statmech.results.block_store`)
NAMED = "store"  # the attribute that tells a store from any other of the same config
DONE = 1  # the state of a run that is there
REPLACE = "Use --fresh to replace it, or --out DIR to keep both"
RECORDED = ("statmech", "numpy", "scipy", "jax", "diffrax", "xarray", "zarr")


def save(dataset: xr.Dataset, path: Path) -> None:
    """Write a dataset as a Zarr store: under a temporary name first, so that a store of this name is always whole.

    Raises `StoreError` where the disk takes no file.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _scratch(path) as scratch, quiet():
            dataset.assign_attrs(provenance()).to_zarr(scratch / "store", consolidated=False, mode="w")
            seal(scratch / "store")
            if path.exists():
                path.rename(scratch / "old")
            (scratch / "store").rename(path)
    except OSError as failure:
        raise unwritable(path, failure) from None


def load(path: str | Path) -> xr.Dataset:
    """Read a store into memory; where not all runs are done, the coordinate `done` tells which are.

    Raises `StoreError` if there is none, and `DamagedError` rather than to return a number that was not written.
    """
    import xarray as xr

    path = Path(path)
    if not path.is_dir():
        raise StoreError(f"{path}: no such result. `statmech run CONFIG` makes one")
    if stores := [found.name for found in sorted(path.glob("*.zarr"))]:
        raise StoreError(f"{path}: a folder of results; load one of {', '.join(stores)} in it")
    folder = path.stat().st_ino
    if names := broken(path):
        raise DamagedError(path, names)
    try:
        with quiet(), xr.open_zarr(path, consolidated=False) as dataset:
            # the reverse of a writer's order: runs that were done when their states were read are whole
            first = {name: dataset[name].load() for name in (STATE, FINGERPRINT) if name in dataset}
            found = dataset.load().assign(first)
            names = [*_lost(path, found), *_misplaced(found)] if STATE in found else []
    except Exception as failure:  # whatever zarr and its codecs raise on a damaged store
        raise DamagedError(path, [f"{type(failure).__name__}: {failure}"]) from None
    if path.stat().st_ino != folder:  # the sweep has grown meanwhile, and another store stands here
        return load(path)
    if names:
        raise DamagedError(path, names)
    for name in (SEALED, NAMED):
        found.attrs.pop(name, None)
    return _with_done(found) if STATE in found else found


def _with_done(dataset: xr.Dataset) -> xr.Dataset:
    done, dataset = dataset[STATE] == DONE, dataset.drop_vars([STATE, FINGERPRINT], errors="ignore")
    return dataset if done.all() else dataset.assign_coords(done=done)


def chunk_file(path: Path, name: str, place: tuple[int, ...], ndim: int) -> Path:
    """The file of a variable's chunk at a place of the grid of blocks, of a store that grows."""
    return path / name / "c" / "/".join(map(str, (*place, *[0] * (ndim - len(place)))))


def _lost(path: Path, dataset: xr.Dataset) -> Iterator[str]:
    """The chunks that hold a run that is done, and are gone: zarr reads them as missing values."""
    import numpy as np

    state, chunks = dataset[STATE], dataset[STATE].encoding["chunks"]
    begun = np.argwhere(state.values)
    for place in np.unique(begun // np.asarray(chunks, int), axis=0):
        for name, array in dataset.data_vars.items():
            file = chunk_file(path, str(name), tuple(place), array.ndim)
            if not file.is_file():
                yield str(file.relative_to(path))


def _misplaced(dataset: xr.Dataset) -> Iterator[str]:
    """How many runs are said to be done and hold other numbers than were computed for their place, if any."""
    import numpy as np

    if FINGERPRINT not in dataset:
        return
    runs = np.arange(dataset[STATE].size).reshape(dataset[STATE].shape)
    values = {str(name): it.values for name, it in dataset.data_vars.items() if "seed" in it.dims}
    made = fingerprints(
        {name: it for name, it in values.items() if name not in (STATE, FINGERPRINT)},
        runs,
        salt_of(json.loads(dataset.attrs["config"]), dataset.attrs.get("data", {})),
    )
    wrong = int(((made != dataset[FINGERPRINT].values) & (dataset[STATE].values == DONE)).sum())
    if wrong:
        yield f"{wrong} runs whose numbers were not computed for their place; `statmech verify` lists them"


def kept(
    path: Path, scenario: Sweep, fresh: bool, outgrown: Callable[[Sweep, dict[str, Any]], bool] | None = None
) -> xr.Dataset | None:
    """The stored result of this very scenario, or None if there is none (or `fresh` asks to make it anew).

    None, too, for the result of a config that the scenario has `outgrown`, if that may be made anew. Raises
    `StoreError`, with a line a difference, rather than let a result of another config be overwritten.
    """
    if fresh or not path.exists():
        return None
    dataset = load(path)
    config = json.loads(dataset.attrs.get("config", "{}"))
    if changed := differences(scenario.config(), config):
        if outgrown and outgrown(scenario, config):
            return None
        raise StoreError(another_config(path, changed))
    return dataset


def differences(mine: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """A line for each key in which two configs differ, the figure apart."""
    mine, theirs = _identity(mine), _identity(theirs)
    changed = [name for name in mine | theirs if mine.get(name) != theirs.get(name)]
    return [f"  {name}: stored {_shown(theirs, name)}, asked for {_shown(mine, name)}" for name in changed]


def other_data(path: Path, stored: Sweep, noted: dict[str, str]) -> str:
    """The message for a store whose config names data that are others now than were `noted`; empty if they are not."""
    changed = [name for name, digest in stored.data_digests().items() if noted.get(name) != digest]
    if not changed:
        return ""
    when = f"from other data than {', '.join(changed)} holds now" if noted else "before digests of data were kept"
    return (
        f"{path}: was computed {when}, so its runs cannot be mixed with new ones. {REPLACE}. "
        "`statmech figure DIR` and `export DIR` read what is stored"
    )


def another_config(path: Path, changed: list[str]) -> str:
    """The message for a store that holds the result of another config."""
    lines = [f"{path}: holds the result of another config. Differences:", *changed]
    return "\n".join([*lines, f"{REPLACE}. `statmech figure DIR` draws what is stored."])


def provenance() -> dict[str, Any]:
    """What made a result: versions, commit of a checkout, machine."""
    return {
        "commit": _commit(),
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
def quiet() -> Iterator[None]:
    """Without zarr's remark that strings are not yet in the text of its format's third version."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not have a Zarr V3 specification.*")
        yield


def _identity(config: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != "figure"}


def _shown(config: dict[str, Any], name: str) -> str:
    text = json.dumps(config[name]) if name in config else "nothing"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _commit() -> str:
    """The commit of the checkout that this package runs from, `-dirty` if it was changed; empty if it is installed."""
    asked = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
