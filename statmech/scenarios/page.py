"""The initial page of the explorer for a kind of scenario."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Page:
    """The config that a page starts with, and how its curves are laid out.

    Parameters
    ----------
    along : the key along x
    start : the keys of the config, one value each but for what learns; of `along`, the largest value
    first : the smallest value along x
    places : the number of values along x
    whole : whether they are whole numbers
    sliders : further keys that have sliders, beside the numeric axes
    """

    along: str
    start: dict[str, Any] = field(default_factory=dict)
    first: float = 0.1
    places: int = 20
    whole: bool = False
    sliders: tuple[str, ...] = ()
