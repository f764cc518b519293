"""Stores that know what their own files held: a digest of each, in the attributes of the store's group.

zarr reads a chunk that is gone as missing values, and a changed `zarr.json` as another array. So whatever is written
once (metadata, coordinates, all of a theory) is sealed: its SHA-256 stands in the attribute `sealed` of the group's
`zarr.json`, with that file's own. Blocks, which come later, have checksums of their own.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

SEALED, ROOT = "sealed", "zarr.json"


def seal(store: Path) -> None:
    """Note what every file of a store holds, and ask the disk to keep it."""
    files = [file for file in sorted(store.rglob("*")) if file.is_file()]
    digests = {str(file.relative_to(store)): _digest(file.read_bytes()) for file in files}
    group = json.loads((store / ROOT).read_text())
    group["attributes"][SEALED] = {name: digest for name, digest in digests.items() if name != ROOT}
    group["attributes"][SEALED][ROOT] = _own(group)
    (store / ROOT).write_text(json.dumps(group, indent=2))
    for file in files:
        with file.open("rb") as written:
            os.fsync(written.fileno())


def broken(store: Path) -> list[str]:
    """The sealed files that are gone or do not hold what they held.

    >>> broken(Path("nowhere"))
    ['zarr.json']
    """
    try:
        group = json.loads((store / ROOT).read_bytes())
        sealed: dict[str, str] = group["attributes"][SEALED]
        if _own(group) != sealed.pop(ROOT):
            return [ROOT]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return [ROOT]
    return [name for name, digest in sealed.items() if not _holds(store / name, digest)]


def mend(store: Path, names: list[str], twin: Path) -> list[str]:
    """Take broken files from a store that was made alike; those that it does not have, either, remain broken."""
    digests = json.loads((store / ROOT).read_bytes())["attributes"][SEALED]
    for name in names:
        if _holds(twin / name, digests[name]):
            (store / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(twin / name, store / name)
    return broken(store)


def _own(group: dict[str, Any]) -> str:
    """The digest of a group's metadata but for this digest; of what they say, not how it is laid out."""
    attributes = group["attributes"]
    others = {name: digest for name, digest in attributes[SEALED].items() if name != ROOT}
    plain = {**group, "attributes": {**attributes, SEALED: others}}
    return _digest(json.dumps(plain, sort_keys=True).encode())


def _holds(file: Path, digest: str) -> bool:
    try:
        return _digest(file.read_bytes()) == digest
    except OSError:
        return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
