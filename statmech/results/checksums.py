"""Checksums of a store's own files, in the attributes of its group.

zarr reads a missing chunk as missing values, and a changed `zarr.json` as another array. So the SHA-256 of everything
that is written once (metadata, coordinates, all of a theory) stands in the attribute `sealed` of the group's
`zarr.json`, together with that of this file itself. The chunks of a simulation, which are written later, have checksums
of their own.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path, PurePosixPath
from typing import Any

from statmech.errors import StoreError
from statmech.runtime import files

SEALED, ROOT = "sealed", "zarr.json"
LARGEST, LARGEST_ROOT = 2**32, 2**28  # bytes of a file with a checksum, and of the group's metadata


def write(store: Path) -> None:
    """Record the checksum of every file of a store, and flush the files to disk."""
    own = _names(store)
    digests = {name: _digest(store / name) for name in own}
    group = json.loads((store / ROOT).read_text(encoding="utf-8"))
    group["attributes"][SEALED] = {name: digest for name, digest in digests.items() if name != ROOT}
    group["attributes"][SEALED][ROOT] = _digest_of_group(group)
    (store / ROOT).write_text(json.dumps(group, indent=2), encoding="utf-8")
    for name in own:
        with (store / name).open("r+b") as written:
            os.fsync(written.fileno())


def check_ordinary(store: Path) -> None:
    """Raise `StoreError` for a store that is or contains a link, a pipe or a device: a stranger's may lead anywhere.

    Reads no file; 10,000 chunks take 0.3 s.
    """
    found = store if store.is_symlink() else next(files.unusual(store), None) if store.is_dir() else None
    if found is not None:
        kind = "a symbolic link" if found.is_symlink() else "a pipe or a device"
        raise StoreError(f"{found}: is {kind}; a store may contain ordinary files and folders only")


def corrupted(store: Path) -> list[str]:
    """The files with a checksum that are missing, or whose content has changed.

    A seal with a name outside the store is none: only the group's own metadata are returned, as if they had changed.

    >>> corrupted(Path("nowhere"))
    ['zarr.json']
    """
    try:
        group = group_of(store)
        digests: dict[str, str] = group["attributes"][SEALED]
        if _digest_of_group(group) != digests.pop(ROOT) or not all(map(_is_inside, digests)):
            return [ROOT]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return [ROOT]
    return [name for name, digest in digests.items() if not _has_content(store, name, digest)]


def group_of(store: Path) -> Any:
    """The metadata of a store's group, as JSON. Raises `OSError` and `ValueError`; `corrupted` checks them."""
    if _is_linked(store, ROOT):
        raise OSError(f"{store / ROOT}: is a symbolic link")
    return json.loads(files.read(store / ROOT, LARGEST_ROOT))


def repair(store: Path, names: list[str], twin: Path) -> list[str]:
    """Replace corrupted files by those of an identical store, `twin`; returns those that remain corrupted."""
    digests = group_of(store)["attributes"][SEALED]
    for name in set(names).intersection(_names(twin)):  # a stranger's seal may have others
        if _has_content(twin, name, digests[name]) and not _is_linked(store, name):
            (store / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(twin / name, store / name)
    return corrupted(store)


def _digest_of_group(group: dict[str, Any]) -> str:
    """The checksum of a group's metadata without this checksum, independent of their layout as JSON."""
    attributes = group["attributes"]
    others = {name: digest for name, digest in attributes[SEALED].items() if name != ROOT}
    plain = {**group, "attributes": {**attributes, SEALED: others}}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _names(store: Path) -> list[str]:
    """The names of a store's files, relative to it."""
    return [str(file.relative_to(store)) for file in sorted(store.rglob("*")) if file.is_file()]


def _is_inside(name: str) -> bool:
    """True if a name of a seal, which may be a stranger's, is that of a file below the store."""
    path = PurePosixPath(name)
    return str(path) == name != "." and not path.is_absolute() and ".." not in path.parts


def _is_linked(store: Path, name: str) -> bool:
    """True if a part of a file's path is a symbolic link, from the store itself on."""
    path = store / name
    return any(part.is_symlink() for part in (path, *path.parents) if part.is_relative_to(store))


def _has_content(store: Path, name: str, digest: str) -> bool:
    try:
        return not _is_linked(store, name) and _digest(store / name) == digest
    except (OSError, ValueError):  # a name with a null character is a ValueError
        return False


def _digest(path: Path) -> str:
    with files.opened(path, LARGEST) as descriptor, open(descriptor, "rb", closefd=False) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
