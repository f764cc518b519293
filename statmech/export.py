"""Results for other programs: a table of means, standard errors and theory as CSV, or all of it as NetCDF."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech.dataset import scenario_of
from statmech.errors import ConfigError, unwritable

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

FORMATS = (".csv", ".nc")
WITHIN = {"row", "column", "example"}  # dimensions of one run's matrices and vectors, which have no place in a table


def write(simulation: xr.Dataset, theory: xr.Dataset | None, path: Path) -> None:
    """Write a file of the kind that its name ends with. Raises `ConfigError` for another kind."""
    if path.suffix not in FORMATS:
        raise ConfigError(f"{path}: the file's name must end with {' or '.join(FORMATS)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".csv":
            table(simulation, theory).to_csv(path, index=False)
        else:
            merged(simulation, theory).to_netcdf(path, engine="scipy")
    except OSError as failure:
        raise unwritable(path, failure) from None


def table(simulation: xr.Dataset, theory: xr.Dataset | None = None) -> pd.DataFrame:
    """A row for each cell of the sweep and each moment: means over seeds, `_stderr` their standard errors, `_theory`.

    Students that start alike are averaged. Where theory has a bound, `_theory` is that bound.

    >>> import simulate, theory
    >>> from statmech import Scenario
    >>> scenario = Scenario(rule="hebb", K=3, eta=[0.5, 1], N=100, t=[1, 2], seeds=4)
    >>> found = table(simulate.run(scenario), theory.solve(scenario))
    >>> found[["eta", "t", "eps_g_theory"]].round(4).values.tolist()
    [[0.5, 1.0, 0.3909], [0.5, 2.0, 0.3162], [1.0, 1.0, 0.3365], [1.0, 2.0, 0.263]]
    """
    scenario = scenario_of(simulation)
    over = ["student"] if scenario.exchangeable else []
    found: dict[str, Any] = {}
    for name in filter(simulation.__contains__, scenario.variables):
        if simulation[name].dtype.kind in "fiub" and not WITHIN & set(simulation[name].dims):
            found |= _columns(name, simulation, theory, over)
    dropped = [dim for dim in ("seed", *over, *WITHIN) if dim in simulation.dims]
    made = simulation.drop_dims(dropped).assign(found)
    order = [dim for dim in (*scenario.shape, *scenario.recorded) if dim in made.dims]
    return made.to_dataframe(dim_order=order).reset_index()


def _columns(name: str, simulation: xr.Dataset, theory: xr.Dataset | None, over: list[str]) -> dict[str, Any]:
    values = _mean(simulation[name].astype(float), over)
    found = {name: values.mean("seed"), f"{name}_stderr": values.std("seed", ddof=1) / values.count("seed") ** 0.5}
    if theory is not None and name in theory:
        found[f"{name}_theory"] = _mean(theory[name], over)
    return found


def merged(simulation: xr.Dataset, theory: xr.Dataset | None = None) -> xr.Dataset:
    """All runs, and what theory has of each variable as `_theory`; attributes that are no text are written as JSON."""
    if theory is not None:
        simulation = simulation.assign({f"{name}_theory": values for name, values in theory.data_vars.items()})
    text = {name: value if isinstance(value, str) else json.dumps(value) for name, value in simulation.attrs.items()}
    return simulation.drop_attrs(deep=False).assign_attrs(text)


def _mean(values: xr.DataArray, over: list[str]) -> xr.DataArray:
    return values.mean([dim for dim in over if dim in values.dims])
