"""The Python interface (`statmech.run`, `statmech.draw`, ...) and the display of results in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech.config import config_files
from statmech.errors import ConfigError, StatmechError
from statmech.keys.figure_key import read_figure_composition
from statmech.keys.scenario import AbstractScenario
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.results import results
from statmech.results.comparison import distances as distances
from statmech.results.results import as_results
from statmech.results.tables import make_results_tables
from statmech.runtime.installed_packages import check_shadowing
from statmech.runtime.progress_bar import make_progress_callback, show_progress_bar

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

ResultsCollection = list[results.Results] | tuple[results.Results, ...] | dict[str, results.Results]
NOTEBOOK_FIGURE_WIDTH = 720  # pixels


class Results(results.Results):
    """Simulation and theory of one scenario, displayed in notebooks as tables and a figure.

    >>> import statmech
    >>> results = statmech.run(statmech.Scenario(rule="hebb", N=50, t=[1, 2], seeds=4, eta=[0.5, 1]))
    >>> results
    Results: Scenario, 2 eta, 4 seeds; simulation and theory
    >>> len(results.draw().axes) > 0
    True
    """

    def draw(self, figure: str | None = None, **composed: Any) -> Figure:
        """Draw a published figure, a figure of chosen variables, or by default the figure of these results.

        Parameters
        ----------
        figure
            The name of a published figure, or "overlay".
        composed
            Variables and style, as for `draw`: `x`, `y`, `series`, `split`, `over`, `points`, `fit`, `style` and
            `residuals`.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        ConfigError
            If the figure is unknown or cannot show these results.
        """
        return draw(self, figure=figure, **composed)

    def _repr_html_(self) -> str:
        return format_results_html(self)


def load_results(folder: str | Path) -> Results:
    """Load results from a folder written by `statmech run`.

    Parameters
    ----------
    folder
        A folder of results, or a store in it.

    Returns
    -------
    Results
        The attribute `figure` is the published figure that is stored in the folder.

    Raises
    ------
    StoreError
        If there are no results, if they are corrupted, or if simulation and theory belong to different scenarios.

    Examples
    --------
    >>> load_results("nowhere")
    Traceback (most recent call last):
    statmech.errors.StoreError: nowhere: no results. `statmech run CONFIG --out nowhere` computes them
    """
    return Results(**vars(results.load_results(folder)))


def run(scenario: AbstractScenario | str | Path, *, progress: bool | None = None, **overrides: Any) -> Results:
    """Simulate a scenario and solve its theory, in memory, from Python or a notebook.

    Parameters
    ----------
    scenario
        A scenario, the name of a shipped config, or the path of a config or results folder.
    progress
        Whether to show a progress bar; by default on a terminal and in a notebook.
    overrides
        Keys of the config with other values.

    Returns
    -------
    Results, without a theory if the scenario is not solvable.

    Raises
    ------
    ConfigError, ScenarioError
        If the config is not valid or cannot be simulated.
    SolverError
        If the equations of theory cannot be solved.

    Examples
    --------
    >>> results = run("ensemble", rule="hebb", K=[1, 3], N=50, t=[1, 2], seeds=4)
    >>> dict(results.simulation.R.sizes)
    {'K': 2, 'seed': 4, 't': 2, 'student': 3}
    """
    check_shadowing()
    import figures
    import simulate
    import theory

    parsed_scenario, name, shipped_config = _load_scenario(scenario)
    if overrides:
        parsed_scenario = scenario_from({**parsed_scenario.config(), **overrides})
    figure = figures.choose_figure(parsed_scenario.figure, shipped_config, parsed_scenario.CHOICE)
    with show_progress_bar("simulation", progress) as bar:
        simulation = simulate.run(parsed_scenario, make_progress_callback(bar))
    if parsed_scenario.unsolved:
        return Results(parsed_scenario, simulation, None, name=name, figure=figure)
    with show_progress_bar("theory", progress) as bar:
        solution = theory.solve(parsed_scenario, make_progress_callback(bar))
    return Results(parsed_scenario, simulation, solution, name=name, figure=figure)


def solve(scenario: AbstractScenario) -> xr.Dataset:
    """Solve the theory of a scenario in the limit N -> infinity (`theory.solve`).

    Parameters
    ----------
    scenario
        A scenario of any kind.

    Returns
    -------
    xarray.Dataset
        Variables with the dimensions (sweep axes, recorded times, student).

    Examples
    --------
    >>> from statmech import Scenario
    >>> round(solve(Scenario(rule="hebb", t=10)).eps_g.item(), 4)
    0.1254
    """
    check_shadowing("theory")
    import theory

    return theory.solve(scenario)


def draw(
    simulation: results.Results
    | xr.Dataset
    | list[results.Results]
    | tuple[results.Results, ...]
    | dict[str, results.Results],
    theory: xr.Dataset | None = None,
    figure: str | None = None,
    *,
    x: str | None = None,
    y: str | Sequence[str] = (),
    series: str | Sequence[str] = (),
    split: str | Sequence[str] = (),
    over: str | None = None,
    points: str | Path | None = None,
    fit: bool = False,
    style: str | None = None,
    residuals: bool = False,
) -> Figure:
    """Draw one or several results, or a simulation and its theory, as a matplotlib figure for Python or a notebook.

    Parameters
    ----------
    simulation
        `Results`, a dataset of `simulate.run`, or several results of any kind, in a list or in a dict by label.
    theory
        A dataset of `theory.solve`; None without a theory, or with `Results`.
    figure
        A published figure (`statmech figure --list`). The default is the figure of the results, or the overlay of
        simulation and theory if the results have no figure or their figure cannot show them.
    x
        The sweep axis or the variable on the horizontal axis.
    y
        Variables, one panel each; by default errors and order parameters.
    series, split
        Axes that colours and markers distinguish, and axes with a panel for each value.
    over
        A variable that divides y: its theoretical value, or the mean over runs if theory does not have this variable.
    points
        A CSV file of further points, with columns x, y and, if it is known, error.
    fit
        True to fit exponents on logarithmic axes.
    style
        "page" (the default), "pre" (a column of 8.6 cm, 8 points, serif) or "talk" (large type).
    residuals
        True for a strip below each panel with the deviations from theory in standard errors.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ConfigError
        If the figure or the style is unknown, the figure cannot show these results, a variable or an axis is
        missing from the results, or the points cannot be read.

    Examples
    --------
    >>> from statmech import Scenario
    >>> drawn = draw(run(Scenario(rule=["hebb", "adatron"], K=2, N=50, t=[1, 2], seeds=4)), x="R", y="q")
    >>> [(ax.get_xlabel(), ax.get_ylabel()) for ax in drawn.axes]
    [('$R$', '$q$')]
    """
    check_shadowing("figures")
    import figures
    from figures.style import use_medium

    options = {"x": x, "y": y, "series": series, "split": split, "over": over, "points": points, "fit": fit}
    given_options = {name: str(value) if isinstance(value, Path) else value for name, value in options.items() if value}
    if figure and (given_options or isinstance(simulation, list | tuple | dict)):
        raise ConfigError("a published figure determines its own variables and style: remove all other arguments")
    with use_medium(style, residuals):
        if isinstance(simulation, list | tuple | dict):
            return figures.compose(_label_results(simulation), read_figure_composition(given_options))
        single_results = as_results(simulation, theory)
        if given_options:
            return figures.compose(single_results, read_figure_composition(given_options))
        name = figures.choose_figure(figure or single_results.figure, "", single_results.scenario.CHOICE)
        return (
            figures.draw(figure, single_results) if figure else figures.draw_with_fallback(name, single_results).figure
        )


def _label_results(
    collection: list[results.Results] | tuple[results.Results, ...] | dict[str, results.Results],
) -> dict[str, results.Results]:
    """Return the results that a user passes to a function of `statmech` as a dict with their labels as keys.

    Labels are the names of the configs or folders. If two of these names are equal, they are the names of the
    learners or rules, with a number if necessary.
    """
    if isinstance(collection, dict):
        return collection
    kinds = [str(getattr(item.scenario, item.scenario.CHOICE)) for item in collection]
    for labels in ([item.name for item in collection], kinds):
        if all(labels) and len({*labels}) == len(labels):
            return dict(zip(labels, collection, strict=True))
    return {f"{label} {number}": item for number, (label, item) in enumerate(zip(kinds, collection, strict=True), 1)}


def compare(simulation: results.Results | xr.Dataset, theory: xr.Dataset | None = None) -> Any:
    """Return tables of the deviations between simulation and theory, in standard errors.

    Parameters
    ----------
    simulation
        Results, or the dataset of a simulation.
    theory
        The dataset of its theory.

    Returns
    -------
    Tables
        One per student or data set, or a sentence if there is nothing to compare.

    Examples
    --------
    >>> import statmech
    >>> results = statmech.run(statmech.Scenario(rule="hebb", N=50, t=[1, 2], seeds=4))
    >>> len(compare(results))
    1
    """
    return make_results_tables(simulation, theory)


def explore(scenario: AbstractScenario | results.Results | str | Path | None = None, **overrides: Any) -> Any:
    """Make interactive controls and charts to explore a scenario or results in a notebook.

    Parameters
    ----------
    scenario
        A scenario, results, the name of a shipped config, or the path of a config. The default is the ensemble that
        `statmech explore` shows first.
    overrides
        Keys of the config with other values.

    Returns
    -------
    panel.Column
        A notebook displays it, and `panel serve` serves it with its method `servable`.

    Raises
    ------
    ConfigError
        If the config does not exist, or is a study of data sets, which has no sliders.
    ScenarioError
        If overrides are not valid.
    """
    from figures.explorer import page

    return page.explore(scenario, overrides)


def format_results_html(run_results: results.Results) -> str:
    """Return results as HTML for a notebook: a summary sentence, the comparison tables and the figure."""
    return f"<p>{escape(repr(run_results))}</p>{_format_tables_html(run_results)}{_format_figure_html(run_results)}"


def _load_scenario(source: AbstractScenario | str | Path) -> tuple[AbstractScenario, str, str]:
    """Return the scenario that a user passes, its config name, and its shipped-config name (empty if not shipped)."""
    if isinstance(source, AbstractScenario):
        return source, "", ""
    return (
        config_files.load(source),
        config_files.find_config(source).stem,
        config_files.get_shipped_config_name(source),
    )


def _format_tables_html(run_results: results.Results) -> str:
    """Return the comparison tables of results as HTML for a notebook, or the message if they cannot be compared."""
    try:
        return make_results_tables(run_results)._repr_html_()
    except StatmechError as failure:
        return f"<p>{escape(str(failure))}</p>"


def _format_figure_html(run_results: results.Results) -> str:
    """Return the figure of results as an HTML image for a notebook, or an empty string for incomplete results."""
    from base64 import b64encode

    from figures import style

    if not run_results.complete:
        return ""
    try:
        picture = b64encode(style.make_svg_element(draw(run_results)).encode()).decode()
    except StatmechError as failure:
        return f"<p>{escape(str(failure))}</p>"
    return f'<img alt="figure" style="max-width: {NOTEBOOK_FIGURE_WIDTH}px" src="data:image/svg+xml;base64,{picture}">'
