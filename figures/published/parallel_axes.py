"""Check for the parallel axes (`zip`) that a figure requires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statmech.errors import ConfigError

if TYPE_CHECKING:
    import xarray as xr


def check_parallel_axes(figure_name: str, data: xr.Dataset, axes: tuple[str, ...]) -> None:
    """Raise `ConfigError` unless exactly these axes are swept in parallel."""
    if not set(axes) <= data.coords.keys() or data[axes[-1]].dims != ("_".join(axes),):
        raise ConfigError(f'the figure "{figure_name}" requires {", ".join(axes)} as parallel axes (zip)')
