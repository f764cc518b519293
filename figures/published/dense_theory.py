"""The theory of a published figure on a dense grid along one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statmech.results.dataset import scenario_of
from theory import smooth

if TYPE_CHECKING:
    import xarray as xr


def dense(theory: xr.Dataset, axis: str, **chosen: Any) -> xr.Dataset:
    """The theory on a dense grid along an axis, with its other axes; as it is where it has no such grid.

    `chosen` selects values of other axes: of a list the axis remains.
    """
    theory = theory.sel(chosen)
    if theory.sizes.get(axis, 1) < 2:
        return theory
    scenario = scenario_of(theory)
    lines = smooth(type(scenario)(**{**scenario.config(), **chosen}) if chosen else scenario, axis)
    return theory if lines is None else lines.expand_dims([dim for dim in theory.dims if dim not in lines.dims])
