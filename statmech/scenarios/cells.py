"""Cells, the points of a scenario's grid, and the words that name them."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import is_dataclass
from types import SimpleNamespace
from typing import Any

ENCODER = json.JSONEncoder(sort_keys=True)  # `json.dumps` makes a new one at each call


class Cell:
    """A point of the grid: what learns with its parameters, and one value of every other key that may be an axis."""

    index: tuple[int, ...]  # its place along the sweep's dimensions


class GridPoint(Cell, SimpleNamespace):
    """The cell of kinds that state none of their own: its values by the names of their keys."""

    @property
    def identity(self) -> dict[str, Any]:
        """The values that name this point, whatever its place in a grid."""
        plain = {name: value for name, value in vars(self).items() if name != "index"}
        kinds = {
            name: {"name": type(value).__name__, **vars(value)} for name, value in plain.items() if is_dataclass(value)
        }
        return plain | kinds


def in_seed_names(values: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Return values by the names that seed their random numbers, which a change of a key's name must not change.

    >>> in_seed_names({"noise": 0.1, "eta": 1.0}, {"noise": "sigma"})
    {'sigma': 0.1, 'eta': 1.0}
    """
    return {names.get(name, name): value for name, value in values.items()}


def words_of(identity: dict[str, Any]) -> tuple[int, ...]:
    """Eight 32-bit words that name a run by its own parameters, never by its place in a grid.

    Random keys are made of them: adding values to an axis changes no other cell's numbers.
    """
    return struct.unpack(">8I", hashlib.sha256(ENCODER.encode(identity).encode()).digest())
