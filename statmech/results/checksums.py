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
from pathlib import Path
from typing import Any

SEALED, ROOT = "sealed", "zarr.json"


def write(store: Path) -> None:
    """Record the checksum of every file of a store, and flush the files to disk."""
    files = [file for file in sorted(store.rglob("*")) if file.is_file()]
    digests = {str(file.relative_to(store)): _digest(file.read_bytes()) for file in files}
    group = json.loads((store / ROOT).read_text())
    group["attributes"][SEALED] = {name: digest for name, digest in digests.items() if name != ROOT}
    group["attributes"][SEALED][ROOT] = _digest_of_group(group)
    (store / ROOT).write_text(json.dumps(group, indent=2))
    for file in files:
        with file.open("r+b") as written:
            os.fsync(written.fileno())


def corrupted(store: Path) -> list[str]:
    """The files with a checksum that are missing, or whose content has changed.

    >>> corrupted(Path("nowhere"))
    ['zarr.json']
    """
    try:
        group = json.loads((store / ROOT).read_bytes())
        digests: dict[str, str] = group["attributes"][SEALED]
        if _digest_of_group(group) != digests.pop(ROOT):
            return [ROOT]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return [ROOT]
    return [name for name, digest in digests.items() if not _has_content(store / name, digest)]


def repair(store: Path, names: list[str], twin: Path) -> list[str]:
    """Replace corrupted files by those of an identical store, `twin`; returns those that remain corrupted."""
    digests = json.loads((store / ROOT).read_bytes())["attributes"][SEALED]
    for name in names:
        if _has_content(twin / name, digests[name]):
            (store / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(twin / name, store / name)
    return corrupted(store)


def _digest_of_group(group: dict[str, Any]) -> str:
    """The checksum of a group's metadata without this checksum, independent of their layout as JSON."""
    attributes = group["attributes"]
    others = {name: digest for name, digest in attributes[SEALED].items() if name != ROOT}
    plain = {**group, "attributes": {**attributes, SEALED: others}}
    return _digest(json.dumps(plain, sort_keys=True).encode())


def _has_content(file: Path, digest: str) -> bool:
    try:
        return _digest(file.read_bytes()) == digest
    except OSError:
        return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
