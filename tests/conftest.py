"""Shared by all tests: theory and simulation run with every NaN an error, and one tolerance for statistics."""

from __future__ import annotations

import pytest
import xarray as xr

from statmech import compare


def disagreements(simulation: xr.Dataset, theory: xr.Dataset) -> list[str]:
    """The values that lie further apart than a right theory's do in 99 of 100 sweeps, by the run's own errors."""
    distance = compare.distances(simulation, theory)
    bound = compare.bound(distance)
    return [
        f"{row.cell} {name}: {z:+.1f} standard errors, bound {bound:.1f}"
        for row in compare.rows(distance)
        for name, z in row.largest.items()
        if abs(z) > bound
    ]


@pytest.fixture
def in_scratch(tmp_path, monkeypatch):
    """A folder of the test's own to stand in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
