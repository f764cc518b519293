"""Export of results: a table of means for spreadsheets, or a NetCDF file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech.errors import ConfigError
from statmech.numerics.statistics import compute_run_standard_error
from statmech.results.results import Results, as_results
from statmech.runtime import files

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    ResultsOrDataset = xr.Dataset | Results | None

EXPORT_SUFFIXES = (".csv", ".nc")
# spreadsheets treat text that starts with one of these as a formula
SPREADSHEET_FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")


def write_export(simulation: ResultsOrDataset, theory: xr.Dataset | None, path: Path) -> None:
    """Write results atomically to a CSV or NetCDF file.

    The suffix of the file's name selects the format. Raises `ConfigError` for another suffix, `StoreError` if the file
    cannot be written.
    """
    if path.suffix not in EXPORT_SUFFIXES:
        raise ConfigError(f"{path}: the file's name must end with {' or '.join(EXPORT_SUFFIXES)}")
    files.write_atomically(
        path,
        make_csv(simulation, theory) if path.suffix == ".csv" else make_netcdf(simulation, theory),
        named_by_user=True,
    )


def make_csv(simulation: ResultsOrDataset, theory: xr.Dataset | None = None) -> bytes:
    """Return the table of means as the content of a CSV file.

    Texts that a spreadsheet would read as a formula are preceded by an apostrophe.
    """
    frame = make_export_table(simulation, theory)
    return bytes(frame.map(_escape_formula).to_csv(index=False).encode())


def _escape_formula(entry: Any) -> Any:
    return f"'{entry}" if isinstance(entry, str) and entry.startswith(SPREADSHEET_FORMULA_PREFIXES) else entry


def make_export_table(simulation: ResultsOrDataset, theory: xr.Dataset | None = None) -> pd.DataFrame:
    """Return a table with a row per variable and sweep point: mean over seeds, standard error, seeds, theory.

    Parameters
    ----------
    simulation, theory
        Two datasets, one possibly None; or the first argument alone, as `Results`.

    Returns
    -------
    pandas.DataFrame

    Examples
    --------
    >>> import simulate, theory
    >>> from statmech import Scenario
    >>> scenario = Scenario(rule="hebb", N=100, t=[1, 2], seeds=4)
    >>> frame = make_export_table(simulate.run(scenario), theory.solve(scenario))
    >>> list(frame.columns)
    ['t', 'student', 'variable', 'simulation', 'standard_error', 'seeds', 'theory']
    >>> frame[frame.variable == "R"].theory.round(6).tolist()
    [0.491379, 0.677581]
    """
    import pandas as pd

    results = as_results(simulation, theory)
    either = results.either
    parts = [_make_variable_rows(str(name), results) for name in either.data_vars]
    combined = pd.concat([part for part in parts if not part.empty], ignore_index=True)
    final_columns = [
        name for name in ("variable", "simulation", "standard_error", "seeds", "theory") if name in combined
    ]
    order = list(either.sizes)
    sweep_columns = sorted(
        set(combined) - set(final_columns),
        key=lambda name: (order.index(either[name].dims[0]) if either[name].dims else -1, name),
    )
    return combined[[*sweep_columns, *final_columns]]


def _make_variable_rows(name: str, results: Results) -> pd.DataFrame:
    import xarray as xr

    columns = {}
    if results.simulation is not None and name in results.simulation:
        runs = results.simulation[name].astype(float)
        columns["simulation"], columns["seeds"] = runs.mean("seed"), runs.count("seed")
        columns["standard_error"] = compute_run_standard_error(runs)
    if results.theory is not None and name in results.theory:
        columns["theory"] = results.theory[name]
    points = xr.Dataset(columns)
    swept = {str(dim) for dim in points.dims}
    points = points.drop_vars(
        [coordinate for coordinate, array in points.coords.items() if not set(array.dims) & swept]
    )
    if not swept:
        points = points.expand_dims(results.scenario.CHOICE)
    frame = points.to_dataframe().reset_index()
    return frame.assign(variable=name)


def make_netcdf(simulation: ResultsOrDataset, theory: xr.Dataset | None = None) -> bytes:
    """Return both datasets as the content of one NetCDF file, where theory's variables have the suffix `_theory`."""
    import xarray as xr

    results = as_results(simulation, theory)
    parts = [] if results.simulation is None else [results.simulation]
    if results.theory is not None:
        parts.append(results.theory.rename({name: f"{name}_theory" for name in results.theory.data_vars}))
    merged = xr.merge(parts, combine_attrs="override", compat="override")
    return bytes(merged.to_netcdf(engine="scipy"))
