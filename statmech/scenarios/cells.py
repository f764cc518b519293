"""Cells, the points of a scenario's grid, and the hashes that identify them."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import is_dataclass
from types import SimpleNamespace
from typing import Any

IDENTITY_ENCODER = json.JSONEncoder(sort_keys=True)  # shared: `json.dumps` would create one at each call


class Cell:
    """A point of the grid: a learning algorithm with its parameters, and one value of every other axis key."""

    index: tuple[int, ...]  # index along each dimension of the sweep


class GridPoint(Cell, SimpleNamespace):
    """The cell of kinds without a cell class of their own: its attributes are the values of the keys."""

    @property
    def identity(self) -> dict[str, Any]:
        """Values that identify this point, independent of its position in a grid."""
        plain = {name: value for name, value in vars(self).items() if name != "index"}
        kinds = {
            name: {"name": type(value).__name__, **vars(value)} for name, value in plain.items() if is_dataclass(value)
        }
        return plain | kinds


def map_to_seed_names(values: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Return values by the names that enter random seeds.

    Renaming a key of configs must not change its random numbers, so seeds keep the original names.

    >>> map_to_seed_names({"noise": 0.1, "eta": 1.0}, {"noise": "sigma"})
    {'sigma': 0.1, 'eta': 1.0}
    """
    return {names.get(name, name): value for name, value in values.items()}


def hash_identity(identity: dict[str, Any]) -> tuple[int, ...]:
    """Hash the identity of a run to eight 32-bit integers, independent of its position in a grid.

    Random keys are made from this hash: adding values to an axis changes no random numbers of the other cells.
    """
    return struct.unpack(">8I", hashlib.sha256(IDENTITY_ENCODER.encode(identity).encode()).digest())
