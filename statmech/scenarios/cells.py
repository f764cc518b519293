"""Cells, the points of a scenario's grid, and hashes that identify their runs."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import is_dataclass
from types import SimpleNamespace
from typing import Any

IDENTITY_JSON_ENCODER = json.JSONEncoder(sort_keys=True)  # shared, as `json.dumps` would create an encoder at each call


class Cell:
    """A point of the grid: a learning algorithm with its parameters, and one value of each other key."""

    index: tuple[int, ...]  # position along each dimension of the sweep


class GenericCell(Cell, SimpleNamespace):
    """A generic cell, for kinds without their own cell class, with the values of the keys as attributes."""

    @property
    def identity(self) -> dict[str, Any]:
        """Values that identify this point, wherever it lies in a grid."""
        plain = {name: value for name, value in vars(self).items() if name != "index"}
        kinds = {
            name: {"name": type(value).__name__, **vars(value)} for name, value in plain.items() if is_dataclass(value)
        }
        return plain | kinds


def rename_keys_for_seeds(values: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Rename values to the original key names, which enter random seeds.

    If a config key is renamed, seeds keep its original name, so that no random number changes.

    >>> rename_keys_for_seeds({"noise": 0.1, "eta": 1.0}, {"noise": "sigma"})
    {'sigma': 0.1, 'eta': 1.0}
    """
    return {names.get(name, name): value for name, value in values.items()}


def hash_identity(identity: dict[str, Any]) -> tuple[int, ...]:
    """Hash the identity of a run to eight 32-bit integers, wherever the run lies in a grid.

    The hash seeds the run: values added to an axis do not change the random numbers of other cells.
    """
    return struct.unpack(">8I", hashlib.sha256(IDENTITY_JSON_ENCODER.encode(identity).encode()).digest())
