"""The Python interface, `statmech.run`, `statmech.draw` and others, and the display of results in notebooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statmech import config
from statmech.errors import ConfigError, StatmechError
from statmech.results import results
from statmech.results.comparison import distances as distances
from statmech.results.results import results_of
from statmech.results.study_tables import tables
from statmech.runtime.hidden_packages import check_packages
from statmech.runtime.progress import Bar, shown
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.composition import composition_of
from statmech.scenarios.registry import scenario_from

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

Several = list[results.Results] | tuple[results.Results, ...] | dict[str, results.Results]
WIDTH = 720  # pixels


class Results(results.Results):
    """Simulation and theory of one scenario (`statmech.results.results`), displayed as tables and a figure.

    >>> import statmech
    >>> results = statmech.run(statmech.Scenario(rule="hebb", N=50, t=[1, 2], seeds=4, eta=[0.5, 1]))
    >>> results
    Results: Scenario, 2 eta, 4 seeds; simulation and theory
    >>> len(results.draw().axes) > 0
    True
    """

    def draw(self, figure: str | None = None, **composed: Any) -> Figure:
        """Draw a published figure, a figure of some variables, or by default the figure of the results (`draw`).

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
        return html(self)


def load_results(folder: str | Path) -> Results:
    """Load the results from a folder that `statmech run` has written.

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
    """Simulate a scenario and solve its theory, in memory.

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
    check_packages()
    import figures
    import simulate
    import theory

    parsed_scenario, name, shipped_config = _scenario(scenario)
    if overrides:
        parsed_scenario = scenario_from({**parsed_scenario.config(), **overrides})
    figure = figures.named(parsed_scenario.figure, shipped_config, parsed_scenario.CHOICE)
    with shown("simulation", progress) as bar:
        simulation = simulate.run(parsed_scenario, _shown_on(bar))
    if parsed_scenario.unsolved:
        return Results(parsed_scenario, simulation, None, name=name, figure=figure)
    with shown("theory", progress) as bar:
        solution = theory.solve(parsed_scenario, _shown_on(bar))
    return Results(parsed_scenario, simulation, solution, name=name, figure=figure)


def _shown_on(bar: Bar) -> Callable[[int, int], None]:
    """Return a callback that reports progress to a bar.

    Until the first call, the bar reports that programs are compiled or loaded.
    """
    bar.running("compiling or loading programs")

    def progress(done: int, total: int) -> None:
        bar.part = ""
        bar.progress(done, total)

    return progress


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
    check_packages("theory")
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
    """Draw one or several results, or a simulation and its theory, as a matplotlib figure.

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
    check_packages("figures")
    import figures
    from figures.style import drawn_for

    options = {"x": x, "y": y, "series": series, "split": split, "over": over, "points": points, "fit": fit}
    given_options = {name: str(value) if isinstance(value, Path) else value for name, value in options.items() if value}
    if figure and (given_options or isinstance(simulation, list | tuple | dict)):
        raise ConfigError("a published figure determines its own variables and style: remove all other arguments")
    with drawn_for(style, residuals):
        if isinstance(simulation, list | tuple | dict):
            return figures.compose(_labelled(simulation), composition_of(given_options))
        single_results = results_of(simulation, theory)
        if given_options:
            return figures.compose(single_results, composition_of(given_options))
        name = figures.named(figure or single_results.figure, "", single_results.scenario.CHOICE)
        return figures.draw(figure, single_results) if figure else figures.drawn(name, single_results).figure


def _labelled(
    several: list[results.Results] | tuple[results.Results, ...] | dict[str, results.Results],
) -> dict[str, results.Results]:
    """Return a dict of results by label.

    Labels are the names of the configs or folders. If two of these names are equal, they are the names of the
    learners or rules, with a number if necessary.
    """
    if isinstance(several, dict):
        return several
    kinds = [str(getattr(item.scenario, item.scenario.CHOICE)) for item in several]
    for labels in ([item.name for item in several], kinds):
        if all(labels) and len({*labels}) == len(labels):
            return dict(zip(labels, several, strict=True))
    return {f"{label} {number}": item for number, (label, item) in enumerate(zip(kinds, several, strict=True), 1)}


def compare(simulation: results.Results | xr.Dataset, theory: xr.Dataset | None = None) -> Any:
    """Compare simulation and theory: return tables of their deviation in standard errors.

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
    return tables(simulation, theory)


def explore(scenario: AbstractScenario | results.Results | str | Path | None = None, **overrides: Any) -> Any:
    """Make interactive controls and charts of a scenario or of results for a notebook.

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
    from figures.explorer import notebook

    return notebook.explore(scenario, overrides)


def html(shown: results.Results) -> str:
    """Return results as HTML for a notebook: one sentence, the comparison tables and the figure."""
    return f"<p>{escape(repr(shown))}</p>{_tables(shown)}{_figure(shown)}"


def _scenario(given: AbstractScenario | str | Path) -> tuple[AbstractScenario, str, str]:
    """Return a scenario, the name of its config, and the name of its shipped config or an empty string."""
    if isinstance(given, AbstractScenario):
        return given, "", ""
    return config.load(given), config.find(given).stem, config.shipped_name(given)


def _tables(shown: results.Results) -> str:
    """Return the comparison tables of results as HTML, or the message of an error."""
    try:
        return tables(shown)._repr_html_()
    except StatmechError as failure:
        return f"<p>{escape(str(failure))}</p>"


def _figure(shown: results.Results) -> str:
    """Return the figure of results as an HTML image, or an empty string if the results are not complete."""
    from base64 import b64encode

    from figures import style

    if not shown.complete:
        return ""
    try:
        picture = b64encode(style.element(draw(shown)).encode()).decode()
    except StatmechError as failure:
        return f"<p>{escape(str(failure))}</p>"
    return f'<img alt="figure" style="max-width: {WIDTH}px" src="data:image/svg+xml;base64,{picture}">'
