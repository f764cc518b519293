"""The results of one scenario: the scenario with its simulation, its theory, or both.

Comparison, tables, figures, export, report and explorer take `Results`. A dataset carries its scenario as text, which
is parsed once, when the dataset is wrapped here.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech.errors import StoreError
from statmech.keys.figure_key import FigureKeyValue
from statmech.keys.scenario import AbstractScenario
from statmech.stores import zarr_store
from statmech.stores.dataset import decode_attributes, scenario_from_dataset
from statmech.stores.store_status import read_status
from statmech.stores.stored_theory import adapt_theory, load_theory
from statmech.stores.zarr_store import list_stores

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)  # comparing datasets gives no single truth value
class Results:
    """Simulation and theory of one scenario.

    Parameters
    ----------
    scenario
        The scenario of both datasets.
    simulation, theory
        Datasets from `statmech.run` or `simulate.run`, and from `theory.solve`; None if missing.
    status
        Finished, failed and missing runs of a stored simulation (`statmech.stores.store_status.read_status`).
    name
        Name of the config or folder.
    figure
        The figure of the config, or the figure that the folder remembers: its name, or its axes and variables.
    folder
        The folder of stored results.
    command
        The command that computes and draws them, if they come from one.
    lines
        Theory on a dense grid along the axis that results are drawn against (`theory.smooth`).

    >>> import statmech
    >>> statmech.run(statmech.Scenario(rule="hebb", N=50, t=[1, 2], seeds=4, eta=[0.5, 1]))
    Results: Scenario, 2 eta, 4 seeds; simulation and theory
    """

    scenario: AbstractScenario
    # None if missing. The type Any spares a check for None at every access
    simulation: xr.Dataset | Any = None
    theory: xr.Dataset | Any = None
    status: dict[str, Any] | None = None
    name: str = ""
    figure: FigureKeyValue = None
    folder: Path | None = None
    command: str = ""
    lines: xr.Dataset | None = None

    def __post_init__(self) -> None:
        if self.folder is None:  # results computed in this process need no check
            return
        datasets = [dataset for dataset in (self.simulation, self.theory) if dataset is not None]
        codes = [decode_attributes(dataset.attrs)["code"] for dataset in datasets if "code" in dataset.attrs]
        if len(codes) == 2 and codes[0] != codes[1]:
            names = ", ".join(sorted(codes[0] | codes[1]))
            raise StoreError(f"{self.folder}: simulation and theory were computed with different versions of {names}")

    @property
    def either(self) -> xr.Dataset:
        """The simulation if there is one, else the theory."""
        dataset = self.simulation if self.simulation is not None else self.theory
        assert dataset is not None, "results without simulation and theory"
        return dataset

    @property
    def complete(self) -> bool:
        """True if the results can be compared and drawn: a simulation and, where theory exists, its theory."""
        return self.simulation is not None and (self.theory is not None or self.scenario.on_data)

    def __repr__(self) -> str:
        shape = [f"{length} {name}" for name, length in self.scenario.shape.items()]
        seeds = f"{self.scenario.seeds} seed{'s' if self.scenario.seeds > 1 else ''}"
        parts = [part for part in ("simulation", "theory") if getattr(self, part) is not None]
        title = f"Results {self.name}".rstrip()
        kind = type(self.scenario).__name__
        return f"{title}: {', '.join([kind, *shape, seeds])}; {' and '.join(parts) or 'no data'}"


def load_results(folder: str | Path) -> Results:
    """Load the results in a folder.

    `statmech.load_results` returns them as an object that notebooks display as a picture.
    """
    path = Path(folder)
    folder = path.parent if path.suffix == ".zarr" else path
    simulation_path, theory_path = folder / "simulation.zarr", folder / "theory.zarr"
    has_simulation = bool(list_stores(simulation_path))
    if not (has_simulation or theory_path.is_dir()):
        raise StoreError(f"{path}: no results. `statmech run CONFIG --out {folder}` computes them")
    simulation, theory, status = None, None, None
    if has_simulation:
        simulation = zarr_store.load(simulation_path)
        scenario = scenario_from_dataset(simulation)
        zarr_store.check_dataset_form(simulation_path, simulation, scenario)
        theory = load_theory(theory_path, scenario)
        with suppress(StoreError):  # a store written in one piece does not record the states of runs
            status = read_status(simulation_path)
    else:
        theory = zarr_store.load(theory_path)
        scenario = scenario_from_dataset(theory)
        zarr_store.check_dataset_form(theory_path, theory, scenario)
    return Results(scenario, simulation, theory, status, folder.absolute().name, scenario.figure, folder)


def as_results(simulation: xr.Dataset | Results | None, theory: xr.Dataset | None = None) -> Results:
    """Return results unchanged, or wrap a simulation and its theory as results.

    Either dataset may be None, but not both.
    """
    if isinstance(simulation, Results):
        return simulation
    either = simulation if simulation is not None else theory
    if either is None:
        raise TypeError("results require a simulation, a theory, or both")
    if isinstance(either, AbstractScenario):
        raise TypeError("a scenario has no results yet: statmech.run(scenario) returns them")
    scenario = scenario_from_dataset(either)
    if simulation is not None and theory is not None and "config" in theory.attrs:
        adapted = adapt_theory(theory, scenario)
        theory = theory if adapted is None else adapted
    return Results(scenario, simulation, theory, figure=scenario.figure)
