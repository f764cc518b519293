"""Check of figures of sweeps with parallel axes (`zip`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statmech.errors import ConfigError

if TYPE_CHECKING:
    import xarray as xr


def check(figure: str, data: xr.Dataset, along: tuple[str, ...]) -> None:
    """Raise `ConfigError` unless exactly these axes are parallel."""
    if not set(along) <= data.coords.keys() or data[along[-1]].dims != ("_".join(along),):
        raise ConfigError(f"the figure {figure} needs {', '.join(along)} as parallel axes (zip)")
