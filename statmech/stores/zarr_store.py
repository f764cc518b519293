"""Results on disk: Zarr stores that contain their config and are either complete or absent.

A simulation may be spread over several stores, each written by one process. The store of such a shard,
`simulation.2-of-4.zarr`, has the coordinates of the entire sweep, and the runs that its process has simulated. Readers
combine all stores in a folder, including `simulation.zarr`: a run is done if one of the stores has it.
"""

from __future__ import annotations

import contextlib
import glob
import json
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech.errors import (
    DamagedStoreError,
    StoreError,
    format_option,
    get_running_command_name,
    make_unreadable_store_error,
    make_unwritable_file_error,
)
from statmech.keys.figure_key import FigureKeyValue
from statmech.keys.scenario import AbstractScenario
from statmech.runtime.user_code_and_provenance import get_recorded_version, provenance, record_replaced_functions
from statmech.stores import checksums
from statmech.stores.checksums import FINGERPRINT_VARIABLE, compute_fingerprint_salt, compute_fingerprints
from statmech.stores.dataset import (
    add_figure,
    config_from_attributes,
    decode_attributes,
    encode_attributes,
    find_invalid_variables,
    list_config_differences,
)

if TYPE_CHECKING:
    import xarray as xr


MAX_SHARDS = 99_999
SHARD_NAME_PATTERN = re.compile(r"\.([1-9]\d{0,4})-of-([1-9]\d{0,4})\.zarr$")


RUN_STATE_VARIABLE = "state"  # stored variable with the state of each run (`statmech.stores.sweep_chunks`)
STORE_ID_ATTRIBUTE = "store"  # distinguishes stores of the same config
MISSING_STATE, DONE_STATE, FAILED_STATE = 0, 1, 2
RUN_VERSION_VARIABLE = "made_by"  # stored variable with the index of the version that computed each run
TEXT_ATTRIBUTES = ("commit", "machine", "python", "source")


def save(dataset: xr.Dataset, path: Path, figure: FigureKeyValue = None) -> None:
    """Write a dataset atomically as a Zarr store.

    The store is first written under a temporary name, so that a store at `path` is always complete.

    Parameters
    ----------
    dataset
        A dataset from a simulation or a theory.
    path
        The store.
    figure
        The figure that the folder of results remembers.

    Raises
    ------
    StoreError
        If the store cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import theory
    >>> from statmech import Scenario
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(theory.solve(Scenario(rule="hebb", t=10)), Path(folder) / "theory.zarr")
    ...     round(load(Path(folder) / "theory.zarr").eps_g.item(), 4)
    0.1254
    """
    attrs = encode_attributes(provenance())
    if figure is not None:
        attrs["config"] = json.dumps(add_figure(config_from_attributes(dataset.attrs), figure))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _make_scratch_folder(path) as scratch, ignore_zarr_warnings():
            dataset.assign_attrs(attrs).to_zarr(scratch / "store", consolidated=False, mode="w")
            consolidate_store(scratch / "store")
            checksums.write_checksums(scratch / "store")
            if path.exists() or path.is_symlink():
                path.rename(scratch / "old")
            (scratch / "store").rename(path)
    except OSError as failure:
        raise make_unwritable_file_error(path, failure) from None


def record_figure(path: Path, figure: FigureKeyValue) -> None:
    """Record the figure of the latest run in a store, whose other files do not change.

    Parameters
    ----------
    path
        A store that is complete or can be resumed.
    figure
        The figure that the folder of results remembers; None keeps the recorded figure.
    """
    group = checksums.read_group_metadata(path)
    recorded = config_from_attributes(group["attributes"])
    config = add_figure(recorded, figure)
    if config != recorded:
        group["attributes"]["config"] = json.dumps(config)
        checksums.write_group_metadata(path, group)


def load(path: str | Path) -> xr.Dataset:
    """Read a store and its shards into memory, as one dataset.

    Parameters
    ----------
    path
        The store, such as `results/ensemble/simulation.zarr`. It need not exist if it has shards, such as
        `simulation.1-of-4.zarr`.

    Returns
    -------
    xarray.Dataset
        With the coordinate `done` if runs are missing or have failed, False for these runs.

    Raises
    ------
    StoreError
        If there is no store, or if shards have different configs, data or code.
    DamagedStoreError
        If a stored number has changed.

    Examples
    --------
    >>> load("nowhere.zarr")
    Traceback (most recent call last):
    statmech.errors.StoreError: nowhere.zarr: no such result. `statmech run CONFIG` computes one
    """
    first, *shards = list_stores(Path(path)) or [Path(path)]
    dataset = _load_single_store(first)
    for shard in shards:
        _add_finished_runs(dataset, first, shard)
    return _add_done_coordinate(dataset) if RUN_STATE_VARIABLE in dataset else dataset


def _load_single_store(path: Path) -> xr.Dataset:
    """Read one Zarr store into memory, with the states of its runs."""
    import xarray as xr

    if not path.is_dir():
        raise StoreError(f"{path}: no such result. `statmech run CONFIG` computes one")
    if stores := [store.name for store in sorted(path.glob("*.zarr"))]:
        raise StoreError(f"{path}: is a folder of results. Load one of its stores: {', '.join(stores)}")
    checksums.check_regular_files(path)
    folder = path.stat().st_ino
    if names := checksums.find_corrupted_files(path):
        raise DamagedStoreError(path, names)
    try:
        with ignore_zarr_warnings(), xr.open_zarr(path, consolidated=False, chunks=None) as dataset:
            # states first, the reverse of the writer's order: values of finished runs are then complete
            states = {
                name: dataset[name].load() for name in (RUN_STATE_VARIABLE, FINGERPRINT_VARIABLE) if name in dataset
            }
            loaded = dataset.drop_vars(RUN_VERSION_VARIABLE, errors="ignore").load().assign(states)
            check_attribute_types(loaded.attrs)
            names = (
                [*_list_missing_chunk_files(path, loaded), *_describe_misplaced_runs(loaded)]
                if RUN_STATE_VARIABLE in loaded
                else []
            )
    except Exception as failure:  # zarr and its codecs raise various errors on a corrupted store
        raise make_unreadable_store_error(path, failure) from None
    if path.stat().st_ino != folder:  # the sweep was extended while it was read
        return _load_single_store(path)
    if names:
        raise DamagedStoreError(path, names)
    for name in (checksums.CHECKSUMS_ATTRIBUTE, STORE_ID_ATTRIBUTE):
        loaded.attrs.pop(name, None)
    return loaded


def _add_finished_runs(dataset: xr.Dataset, path: Path, shard: Path) -> None:
    """Copy the finished runs of a shard into the dataset of another store of the sweep, at `path`."""
    import xarray as xr

    added = _load_single_store(shard)
    check_same_sweep(path, dataset.attrs, shard, added.attrs)
    try:
        xr.align(dataset, added, join="exact", copy=False)  # raises ValueError if coordinates differ
        states, added_states = dataset[RUN_STATE_VARIABLE].values, added[RUN_STATE_VARIABLE].values
        is_new = (added_states == DONE_STATE) & (states != DONE_STATE)
        for name, variable in dataset.data_vars.items():
            if "seed" in variable.dims:
                variable.values[is_new] = added[name].values[is_new]
    except (LookupError, ValueError) as failure:
        raise make_unreadable_store_error(shard, failure) from None
    recorded = list_provenances(dataset.attrs)
    versions = [get_recorded_version(entry) for entry in recorded]
    earlier = [entry for entry in list_provenances(added.attrs) if get_recorded_version(entry) not in versions]
    dataset.attrs |= encode_attributes({"earlier": [encode_attributes(entry) for entry in [*earlier, *recorded[:-1]]]})


def check_same_sweep(
    path: Path, attributes: Mapping[str, Any], shard: Path, shard_attributes: Mapping[str, Any]
) -> None:
    """Raise `StoreError` if a shard has another config, data or code than the store at `path`."""
    remedy = f"Delete {shard.name}, or compute it again"
    configs = config_from_attributes(attributes), config_from_attributes(shard_attributes)
    if changed := list_config_differences(*configs, path.name, shard.name):
        raise StoreError(describe_other_config(shard, changed, remedy))
    values, shard_values = decode_attributes(attributes), decode_attributes(shard_attributes)
    for name in ("data", "code"):
        if values.get(name, {}) != shard_values.get(name, {}):
            raise StoreError(f"{shard}: was computed from other {name} than {path.name}. {remedy}")


def list_provenances(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the provenance of each version that has computed runs, from the attributes of a store or dataset."""
    values = decode_attributes(attributes)
    return [*values.get("earlier", []), {name: values[name] for name in provenance() if name in values}]


def check_attribute_types(attrs: Mapping[str, Any]) -> None:
    """Raise `ValueError` if an attribute of a Zarr store does not have the type that its readers expect."""
    config_from_attributes(attrs)
    values = decode_attributes(attrs)
    for version in (values, *values.get("earlier", [])):
        if wrong := [name for name in TEXT_ATTRIBUTES if not isinstance(version.get(name, ""), str)]:
            raise ValueError(f"its attribute {wrong[0]} is not a string")


def _add_done_coordinate(dataset: xr.Dataset) -> xr.Dataset:
    finished = dataset[RUN_STATE_VARIABLE] == DONE_STATE
    dataset = dataset.drop_vars([RUN_STATE_VARIABLE, FINGERPRINT_VARIABLE], errors="ignore")
    return dataset if finished.all() else dataset.assign_coords(done=finished)


def get_chunk_file(path: Path, name: str, position: tuple[int, ...], ndim: int) -> Path:
    """Return the file of a variable's chunk in a sweep's store, from its position in the grid of chunks."""
    return path / name / "c" / "/".join(map(str, (*position, *[0] * (ndim - len(position)))))


def _list_missing_chunk_files(path: Path, dataset: xr.Dataset) -> Iterator[str]:
    """Yield the missing files of finished runs, which zarr would read as missing values."""
    import numpy as np

    state, lengths = dataset[RUN_STATE_VARIABLE], dataset[RUN_STATE_VARIABLE].encoding["chunks"]
    begun = np.argwhere(state.values)
    for position in np.unique(begun // np.asarray(lengths, int), axis=0):
        for name, array in dataset.data_vars.items():
            file = get_chunk_file(path, str(name), tuple(position), array.ndim)
            if not file.is_file():
                yield str(file.relative_to(path))


def _describe_misplaced_runs(dataset: xr.Dataset) -> Iterator[str]:
    """Yield a message if finished runs contain numbers computed for another position."""
    import numpy as np

    if FINGERPRINT_VARIABLE not in dataset:
        return
    runs = np.arange(dataset[RUN_STATE_VARIABLE].size).reshape(dataset[RUN_STATE_VARIABLE].shape)
    values = {str(name): variable.values for name, variable in dataset.data_vars.items() if "seed" in variable.dims}
    attributes = decode_attributes(dataset.attrs)
    data, code = (attributes.get(name, {}) for name in ("data", "code"))
    computed = compute_fingerprints(
        {name: array for name, array in values.items() if name not in (RUN_STATE_VARIABLE, FINGERPRINT_VARIABLE)},
        runs,
        compute_fingerprint_salt(config_from_attributes(dataset.attrs), {**data, **code}),
    )
    wrong = int(
        ((computed != dataset[FINGERPRINT_VARIABLE].values) & (dataset[RUN_STATE_VARIABLE].values == DONE_STATE)).sum()
    )
    if wrong:
        yield f"{wrong} runs whose numbers were not computed for their place; `statmech verify` lists them"


def load_simulation(path: Path, scenario: AbstractScenario) -> xr.Dataset | None:
    """Return the stored simulation of exactly this scenario, with its shards, or None if nothing is stored.

    Raises `StoreError` if the simulation belongs to another config, with a line per difference, or if the code in the
    user's files has changed.
    """
    if not list_stores(path):
        return None
    dataset = load(path)
    if changed := list_config_differences(scenario.config(), config_from_attributes(dataset.attrs)):
        remedy = f"`statmech {get_running_command_name() or 'figure'} {path.parent}` uses the stored config"
        raise StoreError(describe_other_config(path, changed, remedy))
    check_dataset_form(path, dataset, scenario)
    if changed_code := describe_changed_code(path, scenario, decode_attributes(dataset.attrs).get("code")):
        raise StoreError(f"{changed_code}. {get_recomputation_hint(path)}")
    return dataset


def check_dataset_form(path: Path, dataset: xr.Dataset, scenario: AbstractScenario) -> None:
    """Raise `DamagedStoreError` if a dataset lacks dimensions, coordinates or numbers of its scenario."""
    if names := find_invalid_variables(dataset, scenario):
        raise DamagedStoreError(path, names)


def describe_changed_data(path: Path, stored: AbstractScenario, recorded: dict[str, str]) -> str:
    """Return the message for a store whose data sets have changed since they were recorded, or an empty string."""
    changed = [name for name, digest in stored.data_digests().items() if recorded.get(name) != digest]
    if not changed:
        return ""
    when = f"from other data than {', '.join(changed)} contains now" if recorded else "before digests of data were kept"
    return f"{path}: was computed {when}, so its runs cannot be mixed with new ones"


def describe_changed_code(path: Path, stored: AbstractScenario, recorded: dict[str, str] | None) -> str:
    """Return the message for a result computed by other user code, or an empty string."""
    if recorded is None:  # an early version did not record the code
        return ""
    record_replaced_functions()
    current = stored.user_code_digests()
    changed = sorted(name for name in current | recorded if current.get(name) != recorded.get(name))
    if not changed:
        return ""
    return f"{path}: was computed with other code than {', '.join(changed)} contains now"


def describe_changed_inputs(
    path: Path, stored: AbstractScenario, data: dict[str, str], code: dict[str, str] | None
) -> str:
    """Return the message for a store of other data or user code than there are now, or an empty string."""
    return describe_changed_data(path, stored, data) or describe_changed_code(path, stored, code)


def describe_other_config(path: Path, changed: list[str], remedy: str) -> str:
    """Return the message for a store of another config, with all differences and a remedy."""
    return "\n".join([f"{path}: holds the result of another config. Differences:", *changed, f"{remedy}."])


def get_replacement_hint() -> str:
    """Return a hint for writers: how to replace the existing store, or how to keep both."""
    fresh, out = format_option("--fresh", "fresh=True"), format_option("--out DIR", "another path")
    return f"Use {fresh} to replace it, or {out} to keep both"


def get_recomputation_hint(path: Path) -> str:
    """Return a hint for readers: the command that computes the content of a store again."""
    command = "statmech theory {} --fresh" if path.name == "theory.zarr" else "statmech simulate {} --fresh"
    return f"`{command.format(path.parent)}` computes it again"


def get_shard_path(path: Path, shard: tuple[int, int]) -> Path:
    """Return the store of shard (k, n) of the simulation at `path`, or `path` itself for a single shard.

    >>> get_shard_path(Path("simulation.zarr"), (2, 4)).name, get_shard_path(Path("simulation.zarr"), (1, 1)).name
    ('simulation.2-of-4.zarr', 'simulation.zarr')
    """
    k, n = shard
    return path if n == 1 else path.with_name(f"{path.stem}.{k}-of-{n}.zarr")


def list_stores(path: Path) -> list[Path]:
    """Return the existing stores of the simulation at `path`: itself and its shards."""
    shards = [store for store in path.parent.glob(f"{glob.escape(path.stem)}.*-of-*.zarr") if _get_shard(store)]
    return [store for store in (path, *sorted(shards, key=_get_shard)) if store.exists() or store.is_symlink()]


def list_absent_shards(stores: Iterable[Path]) -> list[str]:
    """Return the shards without a store next to the shards in `stores`.

    >>> list_absent_shards([Path("simulation.zarr"), Path("simulation.2-of-3.zarr")])
    ['1 of 3', '3 of 3']
    """
    shards = {shard for shard in map(_get_shard, stores) if shard}
    counts = sorted({shard[0] for shard in shards})
    return [f"{k} of {n}" for n in counts for k in range(1, n + 1) if (n, k) not in shards]


def _get_shard(store: Path) -> tuple[int, ...]:
    """Return the numbers (n, k) in the name of a shard's store, or an empty tuple for another name."""
    match = SHARD_NAME_PATTERN.search(store.name)
    return (int(match[2]), int(match[1])) if match else ()


def consolidate_store(store: Path) -> None:
    """Copy the metadata of a store's arrays, which never change, into the metadata of its group.

    `xarray.open_zarr` of other programs then opens the store at once and without a warning. Our readers use the
    metadata of each array.
    """
    import zarr

    with ignore_zarr_warnings():
        zarr.consolidate_metadata(str(store))


@contextlib.contextmanager
def _make_scratch_folder(path: Path) -> Iterator[Path]:
    """Open a context with a temporary folder next to `path`, for a store that is being written or replaced."""
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.partial-", dir=path.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def ignore_zarr_warnings() -> Iterator[None]:
    """Open a context that suppresses zarr's warnings about strings and consolidated metadata.

    Neither is part of the third version of the Zarr format.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not have a Zarr V3 specification.*")
        warnings.filterwarnings("ignore", message=".*not part in the Zarr format 3 specification.*")
        yield
