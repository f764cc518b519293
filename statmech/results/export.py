"""Results for other programs: a table of means for spreadsheets, a NetCDF file for everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from statmech import files
from statmech.results.dataset import scenario_of
from statmech.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


FORMATS = (".csv", ".nc")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what begins one in a spreadsheet


def write(simulation: xr.Dataset | None, theory: xr.Dataset | None, path: Path) -> None:
    """Write a file of the kind that its name ends with, whole or not at all.

    Raises `ConfigError` for another kind, `StoreError` if the file cannot be written.
    """
    if path.suffix not in FORMATS:
        raise ConfigError(f"{path}: the file's name must end with {' or '.join(FORMATS)}")
    files.write(path, csv(simulation, theory) if path.suffix == ".csv" else netcdf(simulation, theory))


def csv(simulation: xr.Dataset | None, theory: xr.Dataset | None) -> bytes:
    """The `table` as a file for spreadsheets; a text that one would take for a formula has an apostrophe before it."""
    made = table(simulation, theory)
    return bytes(made.map(_no_formula).to_csv(index=False).encode())


def _no_formula(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def table(simulation: xr.Dataset | None, theory: xr.Dataset | None) -> pd.DataFrame:
    """A row for each place of the sweep and variable: mean over seeds (simulation), its standard error, seeds, theory.

    >>> import simulate, theory
    >>> from statmech import Scenario
    >>> scenario = Scenario(rule="hebb", N=100, t=[1, 2], seeds=4)
    >>> made = table(simulate.run(scenario), theory.solve(scenario))
    >>> list(made.columns)
    ['t', 'student', 'variable', 'simulation', 'standard_error', 'seeds', 'theory']
    >>> made[made.variable == "R"].theory.round(6).tolist()
    [0.491379, 0.677581]
    """
    import pandas as pd

    either = simulation if simulation is not None else theory
    assert either is not None
    choice = scenario_of(either).CHOICE
    parts = [_rows(str(name), choice, simulation, theory) for name in either.data_vars]
    whole = pd.concat([part for part in parts if not part.empty], ignore_index=True)
    last = [name for name in ("variable", "simulation", "standard_error", "seeds", "theory") if name in whole]
    order = list(either.sizes)
    places = sorted(
        set(whole) - set(last), key=lambda name: (order.index(either[name].dims[0]) if either[name].dims else -1, name)
    )
    return whole[[*places, *last]]


def _rows(name: str, choice: str, simulation: xr.Dataset | None, theory: xr.Dataset | None) -> pd.DataFrame:
    import xarray as xr

    columns = {}
    if simulation is not None and name in simulation:
        runs = simulation[name].astype(float)
        columns["simulation"], columns["seeds"] = runs.mean("seed"), runs.count("seed")
        few = runs.sizes["seed"] < 2
        columns["standard_error"] = (
            runs.mean("seed") * np.nan if few else runs.std("seed", ddof=1) / runs.count("seed") ** 0.5
        )
    if theory is not None and name in theory:
        columns["theory"] = theory[name]
    made = xr.Dataset({column: array.drop_attrs() for column, array in columns.items()})
    swept = {str(dim) for dim in made.dims}
    made = made.drop_vars([coordinate for coordinate, it in made.coords.items() if not set(it.dims) & swept])
    if not swept:
        made = made.expand_dims(choice)
    frame = made.to_dataframe().reset_index()
    return frame.assign(variable=name)


def netcdf(simulation: xr.Dataset | None, theory: xr.Dataset | None) -> bytes:
    """Both datasets as one NetCDF file: the simulation's variables, and theory's with `_theory` behind their names."""
    import xarray as xr

    parts = [] if simulation is None else [simulation]
    if theory is not None:
        parts.append(theory.rename({name: f"{name}_theory" for name in theory.data_vars}))
    made = xr.merge(parts, combine_attrs="override", compat="override")
    attrs = {name: it if isinstance(it, str | int | float) else json.dumps(it) for name, it in made.attrs.items()}
    return bytes(made.assign_attrs(attrs).to_netcdf(engine="scipy"))
