r"""Checksums of the files of a store, and fingerprints of its runs.

**Checksums.** zarr reads a missing chunk as missing values, and a changed `zarr.json` as another array. So the
attribute `sealed` in the `zarr.json` of the store's group holds the SHA-256 of every file that is written once
(metadata, coordinates, all of a theory), and of this `zarr.json` itself. The chunks of a simulation are written later,
and have their own checksums.

**Fingerprints.** A checksum detects that a file has changed, but not that it belongs elsewhere. A fingerprint has 64
bits per run, which tie the run's numbers to a sweep, their variables and a position. The fingerprint of run p is

.. math:: F_p = p\,a + \sum_v \sum_j k_{vj}\,(x_{vj} \oplus \lfloor x_{vj} / 2^{32} \rfloor) \mod 2^{64}

where x are the 64-bit words of the run's values of each variable v, and a and k are odd numbers that are derived from
the config, the digests of its data and the variable's name. Runs are numbered over the entire sweep, with the seeds and
then its last axis varying fastest. Two runs, variables or sweeps that are exchanged agree with a probability of about
:math:`2^{-32}`. This guards against accidents, not against forgery. Each run has its own fingerprint, so that a chunk
may be filled in several passes, and a kill between two files leaves finished runs verifiable.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from statmech.errors import StoreError
from statmech.runtime import files
from statmech.stores.dataset import remove_figure

CHECKSUMS_ATTRIBUTE, GROUP_METADATA_FILE = "sealed", "zarr.json"
MAX_CHECKED_FILE_BYTES, MAX_GROUP_METADATA_BYTES = 2**32, 2**28
FINGERPRINT_VARIABLE = "fingerprint"  # stored variable of a sweep, with one value per run
MAX_WORDS_PER_BLOCK = 2**20  # limits the memory of temporary arrays


def write_checksums(store: Path) -> None:
    """Record the checksum of every file of a store, and flush the files to disk."""
    names = _list_file_names(store)
    digests = {name: _hash_file(store / name) for name in names}
    group = json.loads((store / GROUP_METADATA_FILE).read_text(encoding="utf-8"))
    group["attributes"][CHECKSUMS_ATTRIBUTE] = {
        name: digest for name, digest in digests.items() if name != GROUP_METADATA_FILE
    }
    write_group_metadata(store, group)
    for name in names:
        with (store / name).open("r+b") as file:
            os.fsync(file.fileno())


def write_group_metadata(store: Path, group: dict[str, Any]) -> None:
    """Write the metadata of a store's group with their checksum."""
    group["attributes"][CHECKSUMS_ATTRIBUTE][GROUP_METADATA_FILE] = _hash_group_metadata(group)
    files.write_atomically(store / GROUP_METADATA_FILE, json.dumps(group, indent=2).encode())


def check_regular_files(store: Path) -> None:
    """Raise `StoreError` for a store that is or contains a link, a pipe or a device, which have no checksum.

    A link in an untrusted store may point anywhere. No file is read: checking 10,000 chunks takes 0.3 s.
    """
    special_file = (
        store if store.is_symlink() else next(files.find_special_files(store), None) if store.is_dir() else None
    )
    if special_file is not None:
        kind = "a symbolic link" if special_file.is_symlink() else "a pipe or a device"
        raise StoreError(f"{special_file}: is {kind}; a store may contain ordinary files and folders only")


def find_corrupted_files(store: Path) -> list[str]:
    """Return the names of files that are missing or do not match their checksum.

    If the checksums include a name outside the store, only the group's metadata are returned, as if they had changed.

    >>> find_corrupted_files(Path("nowhere"))
    ['zarr.json']
    """
    try:
        group = read_group_metadata(store)
        digests: dict[str, str] = group["attributes"][CHECKSUMS_ATTRIBUTE]
        if _hash_group_metadata(group) != digests.pop(GROUP_METADATA_FILE) or not all(map(_is_inside_store, digests)):
            return [GROUP_METADATA_FILE]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return [GROUP_METADATA_FILE]
    return [name for name, digest in digests.items() if not _matches_digest(store, name, digest)]


def read_group_metadata(store: Path) -> Any:
    """Return the metadata of a store's group, parsed from JSON but not checked.

    Raises `OSError` and `ValueError`. Use `find_corrupted_files` to check the content.
    """
    if _has_link_in_path(store, GROUP_METADATA_FILE):
        raise OSError(f"{store / GROUP_METADATA_FILE}: is a symbolic link")
    return json.loads(files.read_bounded_file(store / GROUP_METADATA_FILE, MAX_GROUP_METADATA_BYTES))


def repair_files(store: Path, names: list[str], twin: Path) -> list[str]:
    """Replace corrupted files by copies from an identical store, `twin`.

    Returns the names of files that remain corrupted.
    """
    digests = read_group_metadata(store)["attributes"][CHECKSUMS_ATTRIBUTE]
    for name in set(names).intersection(_list_file_names(twin)):  # an untrusted store may list other names
        if _matches_digest(twin, name, digests[name]) and not _has_link_in_path(store, name):
            (store / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(twin / name, store / name)
    return find_corrupted_files(store)


def _hash_group_metadata(group: dict[str, Any]) -> str:
    """Return the checksum of a group's metadata.

    The checksum excludes itself, and does not depend on the layout of the JSON.
    """
    attributes = group["attributes"]
    digests = {name: digest for name, digest in attributes[CHECKSUMS_ATTRIBUTE].items() if name != GROUP_METADATA_FILE}
    metadata = {**group, "attributes": {**attributes, CHECKSUMS_ATTRIBUTE: digests}}
    return hashlib.sha256(json.dumps(metadata, sort_keys=True).encode()).hexdigest()


def _list_file_names(store: Path) -> list[str]:
    """Return the names of a store's files, relative to the store."""
    return [str(file.relative_to(store)) for file in sorted(store.rglob("*")) if file.is_file()]


def _is_inside_store(name: str) -> bool:
    """Return True if a name from an untrusted list of checksums refers to a file inside the store."""
    path = PurePosixPath(name)
    return str(path) == name != "." and not path.is_absolute() and ".." not in path.parts


def _has_link_in_path(store: Path, name: str) -> bool:
    """Return True if the store, or any part of a file's path inside it, is a symbolic link."""
    path = store / name
    return any(part.is_symlink() for part in (path, *path.parents) if part.is_relative_to(store))


def _matches_digest(store: Path, name: str, digest: str) -> bool:
    try:
        return not _has_link_in_path(store, name) and _hash_file(store / name) == digest
    except (OSError, ValueError):  # a null character in the name raises ValueError
        return False


def _hash_file(path: Path) -> str:
    with (
        files.open_regular_file(path, MAX_CHECKED_FILE_BYTES) as descriptor,
        open(descriptor, "rb", closefd=False) as file,
    ):
        return hashlib.file_digest(file, "sha256").hexdigest()


def compute_fingerprint_salt(config: Mapping[str, Any], data: Mapping[str, str]) -> bytes:
    """Return the hash key of a sweep's fingerprints, from its config (without the figure) and its data digests.

    >>> salt = compute_fingerprint_salt({"rule": "hebb"}, {})
    >>> compute_fingerprint_salt({"rule": "hebb", "figure": "overlay"}, {}) == salt
    True
    """
    return hashlib.sha256(json.dumps([remove_figure(config), dict(data)], sort_keys=True).encode()).digest()


def compute_fingerprints(values: Mapping[str, np.ndarray], runs: np.ndarray, salt: bytes) -> np.ndarray:
    """Compute the fingerprint of each run.

    Parameters
    ----------
    values
        The values of each variable, of shape (*runs.shape, ...).
    runs
        The number of each run in its sweep.
    salt
        The key of the sweep (`compute_fingerprint_salt`).

    Returns
    -------
    64-bit numbers in the shape of `runs`.

    >>> runs, salt = np.arange(3), compute_fingerprint_salt({"rule": "hebb"}, {})
    >>> one = compute_fingerprints({"R": np.array([0.1, 0.2, 0.3])}, runs, salt)
    >>> other = compute_fingerprints({"R": np.array([0.2, 0.1, 0.3])}, runs, salt)
    >>> (one == other).tolist()
    [False, False, True]
    """
    sums = runs.astype(np.uint64).ravel() * _derive_odd_keys(salt, "", 1)[0]
    for name, array in sorted(values.items()):
        flat = np.ascontiguousarray(array).reshape(runs.size, -1)
        numbers = _derive_odd_keys(salt, name, _pack_as_uint64(flat[:1]).shape[1])
        step = max(1, MAX_WORDS_PER_BLOCK // max(1, numbers.size))
        for start in range(0, runs.size, step):
            integers = _pack_as_uint64(flat[start : start + step])
            sums[start : start + step] += (integers ^ (integers >> np.uint64(32))) @ numbers
    return sums.reshape(runs.shape)


def _pack_as_uint64(flat: np.ndarray) -> np.ndarray:
    """Return the bytes of each row as 64-bit integers, padded with zeros at the end."""
    octets = flat.view(np.uint8).reshape(len(flat), -1) if flat.size else np.zeros((len(flat), 0), np.uint8)
    padding = -octets.shape[1] % 8
    return (np.pad(octets, ((0, 0), (0, padding))) if padding else octets).view(np.uint64)


def _derive_odd_keys(salt: bytes, name: str, count: int) -> np.ndarray:
    """Derive odd 64-bit keys for a variable, identical on every machine."""
    random_bytes = hashlib.shake_128(salt + name.encode()).digest(8 * count)
    return np.frombuffer(random_bytes, "<u8").astype(np.uint64) | np.uint64(1)
