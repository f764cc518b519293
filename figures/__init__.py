"""The figures of statmech: what the section `figure` of a config describes, and figures with code of their own.

The section of a shipped config describes its figure, which has the name of the config. Where the section has
`drawn_by: FOLDER.FILE.NAME`, the `PublishedFigure` with this name in a file of `figures/published` or
`figures/classification` draws the figure. Other configs refer to it by `drawn_by: NAME`.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from statmech.config.config_files import list_shipped_configs
from statmech.config.shipped_configs import read_shipped_config, read_shipped_configs
from statmech.errors import ConfigError, StatmechError, format_unknown_name
from statmech.keys.figure_key import Composition, FigureKeyValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import xarray as xr
    from matplotlib.figure import Figure

    from figures.published_figure import PublishedFigure
    from statmech.results.results import Results

OVERLAY = "overlay"
OVERLAY_DESCRIPTION = "any scenario: errors and order parameters, with the other keys of the section `figure`"


def list_figures(kind_name: str) -> dict[str, str]:
    """Return the names and titles of the figures for a kind of scenario, such as "rule".

    The overlay is the last.

    >>> list(list_figures("attention")), list(list_figures("key of a kind of scenario without published figures"))
    (['attention', 'overlay'], ['overlay'])
    """
    shipped = read_shipped_configs()
    kind_figures = {name: config.figure for name, config in shipped.items() if config.kind_name == kind_name}
    titles = {name: figure.title for name, figure in kind_figures.items() if figure.drawn_by_name in ("", name)}
    return titles | {OVERLAY: OVERLAY_DESCRIPTION}


def list_figures_by_kind() -> dict[str, dict[str, str]]:
    """Return the names and titles of the figures, by the key of the kind of scenario."""
    kinds = dict.fromkeys(config.kind_name for config in read_shipped_configs().values())
    return {name: list_figures(name) for name in kinds}


def choose_figure(figure: FigureKeyValue, config_name: str, kind_name: str) -> str | Composition:
    """Choose the figure named in a config, the figure of a shipped config, or the overlay.

    Parameters
    ----------
    figure
        The name of a figure or a composition from a config, or None.
    config_name
        The name of a shipped config, or "" for any other config.
    kind_name
        The key of the kind of scenario, such as "rule".

    Returns
    -------
    str or Composition
        The name of a figure with code of its own, "overlay", or a composition.

    Raises
    ------
    ConfigError
        For a figure that does not exist, or belongs to another kind of scenario.

    Examples
    --------
    >>> choose_figure(None, "fluctuations", "rule"), choose_figure(None, "", "rule")
    ('fluctuations', 'overlay')
    >>> choose_figure(None, "variety", "rule").y
    ('q',)
    """
    if isinstance(figure, Composition) and not figure.drawn_by:
        if not figure.model_dump():  # an empty section
            return OVERLAY
        return figure.model_copy(update={"name": figure.name or config_name}) if config_name else figure
    name = figure.drawn_by_name if isinstance(figure, Composition) else figure or config_name or OVERLAY
    if name == OVERLAY:
        return OVERLAY
    shipped = read_shipped_config(name) if name in list_shipped_configs() else None
    if shipped is None or shipped.kind_name != kind_name:
        noun = "a figure" if shipped is None else f"a figure of a config with `{kind_name}`"
        raise ConfigError(f"figure: {format_unknown_name(name, noun, list_figures(kind_name))}")
    drawn_by_name = shipped.figure.drawn_by_name
    if drawn_by_name not in ("", name):  # the figure of another config
        return choose_figure(drawn_by_name, "", kind_name)
    return drawn_by_name or shipped.figure


class DrawnFigure(NamedTuple):
    """A drawn figure with its name, and the reason if it replaces the requested figure."""

    name: str
    figure: Figure
    reason: str = ""


def draw_with_fallback(name: str | Composition, results: Results) -> DrawnFigure:
    """Draw a figure, or the overlay if a published figure cannot show these results.

    Parameters
    ----------
    name
        The name of a figure, or a composition.
    results
        Simulation and theory.

    Returns
    -------
    DrawnFigure
        The figure, its name, and the reason if it is an overlay instead.

    Raises
    ------
    ConfigError
        For a composition of the user that these results do not support.

    Examples
    --------
    >>> import statmech
    >>> swept = statmech.run("fluctuations", rule="hebb", K=1, N=50, t=[1, 2], eta=[0.5, 1], seeds=2)
    >>> name, figure, reason = draw_with_fallback("fluctuations", swept)
    >>> name, reason
    ('overlay', 'the figure fluctuations cannot show the axis eta')
    """
    file_name = name.file_name if isinstance(name, Composition) else name
    if isinstance(name, Composition) and name.name not in list_shipped_configs():
        return DrawnFigure(file_name, draw(name, results))
    try:
        if isinstance(name, Composition):
            _check_several_abscissae(name, results)
        return DrawnFigure(file_name, draw(name, results))
    except ConfigError as failure:
        reason = str(failure)
        if not reason.startswith("the figure"):  # a problem of a section does not name its figure
            reason = f"the figure {file_name} cannot show these results ({reason.splitlines()[0].rstrip('.')})"
    except (LookupError, ValueError, StatmechError) as failure:  # a published figure may fail on unusual values
        reason = f"the figure {file_name} cannot show these results ({type(failure).__name__}: {failure})"
    return DrawnFigure(OVERLAY, draw(OVERLAY, results), reason)


def _check_several_abscissae(composition: Composition, results: Results) -> None:
    """Raise `ConfigError` if the key along x has a single value in every panel of a shipped figure."""
    abscissae = {content.x for content in composition.list_contents()}
    coordinates = results.either.coords
    if all(name in coordinates and coordinates[name].size == 1 for name in abscissae):
        listing = ", ".join(sorted(map(str, abscissae)))
        raise ConfigError(f"the figure {composition.file_name} needs several values of {listing}")


def draw(name: str | Composition, simulation: xr.Dataset | Results | None, theory: xr.Dataset | None = None) -> Figure:
    """Draw simulation and theory as the figure with this name.

    Parameters
    ----------
    name
        The name of a published figure, "overlay" (`statmech figure --list`), or a composition.
    simulation, theory
        The results of `simulate.run` and `theory.solve`, or `Results`, which hold both. A study on data has no theory.
        Axes of the figure that are not swept become axes with one value.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ConfigError
        For a figure that does not exist, belongs to another kind of scenario, or cannot show these results.

    Examples
    --------
    >>> import simulate, theory
    >>> from statmech import Scenario
    >>> scenario = Scenario(rule="hebb", N=50, t=[1, 2], seeds=4)
    >>> len(draw("overlay", simulate.run(scenario), theory.solve(scenario)).axes) > 0
    True
    """
    results = _as_results(simulation, theory)
    choice = results.scenario.CHOICE
    name = choose_figure(name, "", choice)
    if isinstance(name, Composition) or name == OVERLAY:
        return compose(results, name if isinstance(name, Composition) else Composition())
    published, data = get_published_figure(name), results.either
    assert published is not None
    if not results.complete:
        raise ConfigError(f"the figure {name} requires both simulation and theory")
    if extra_axes := [dim for dim in results.scenario.shape if dim in data.dims and dim not in published.axes]:
        raise ConfigError(f"the figure {name} cannot show the axis {', '.join(extra_axes)}")
    scenario_keys = type(results.scenario).list_keys()
    keys = [axis for axis in published.axes if axis in scenario_keys]  # a parallel axis is not a key
    if missing_names := [need for need in (*keys, *published.required_variables) if need not in data]:
        raise ConfigError(f"the figure {name} needs {', '.join(missing_names)}, which these results lack")
    for key, possible in published.supported_values.items():
        present_values = {*map(str, data[key].values.flat)} if key in data.coords else set()
        if unsupported := sorted(present_values - {*possible}):
            raise ConfigError(
                f"the figure {name} shows the {key} {' and '.join(possible)}, not {', '.join(unsupported)}"
            )
    missing = [axis for axis in published.axes if axis not in data.dims]
    parts = [None if part is None else part.expand_dims(missing) for part in (results.simulation, results.theory)]
    from figures.panels import finish_figure  # lazy import: listing figures must stay fast
    from figures.style import apply_style

    mark_texts = published.points_caption, published.lines_caption
    return apply_style(lambda: finish_figure(published.draw(*parts), results, *mark_texts))()


def _as_results(simulation: xr.Dataset | Results | None, theory: xr.Dataset | None = None) -> Results:
    from statmech.results.results import as_results  # lazy import: listing figures must stay fast

    return as_results(simulation, theory)


def compose(results: Results | Mapping[str, Results], composition: Composition) -> Figure:
    """Draw variables of results against an axis or another variable.

    Parameters
    ----------
    results
        Simulation and theory, or a mapping from labels to results of any kinds.
    composition
        The variables and axes to draw (`statmech.keys.figure_key.Composition`).

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ConfigError
        For variables or axes that these results lack, and for points that cannot be read.

    Examples
    --------
    >>> import statmech
    >>> from statmech.keys.figure_key import Composition
    >>> rules = statmech.run(statmech.Scenario(rule=["hebb", "adatron"], N=50, t=[1, 2, 4], seeds=4))
    >>> [ax.get_xlabel() for ax in compose(rules, Composition(x="R", y="q")).axes]
    Traceback (most recent call last):
    statmech.errors.ConfigError: figure: q has no value in these results. Variables with values: R, length, eps_g, \
eps_g_majority_vote, eps_g_weight_mean.
    >>> [ax.get_ylabel().count("/") for ax in compose(rules, Composition(y="eps_g", over="R")).axes]
    [1]
    """
    from figures import arrangement, matplotlib_drawing, overlay, panels  # listing must stay fast
    from figures.style import apply_style
    from statmech.results.results import Results

    results_by_label = {"": results} if isinstance(results, Results) else results
    if not composition.theory:
        results_by_label = {label: replace(part, theory=None) for label, part in results_by_label.items()}
    first = next(iter(results_by_label.values()))
    if arrangement.is_drawn_in_rows(results_by_label, composition):
        figure = matplotlib_drawing.draw_combination_rows(first, composition)
    else:
        figure = matplotlib_drawing.draw_description(overlay.describe_figure(results_by_label, composition))
    finish = apply_style(lambda: panels.finish_figure(figure, first, with_heading=len(results_by_label) == 1))
    return finish()


def get_published_figure(figure: str | Composition) -> PublishedFigure | None:
    """Import a figure with code of its own, or return None for a figure that a section describes.

    >>> get_published_figure("plateau_spread").axes, get_published_figure("overlay")
    (('inputs',), None)
    """
    if isinstance(figure, Composition) or figure not in list_shipped_configs():
        return None
    module_name, _, own_name = read_shipped_config(figure).figure.drawn_by.rpartition(".")
    return getattr(import_module(f"figures.{module_name}"), own_name) if own_name == figure else None


def get_film_frames(name: str, results: Results) -> Iterable[tuple[Figure, int]] | None:
    """Return the frames of a figure's film with their durations in milliseconds, or None without a film.

    >>> get_film_frames("overlay", None) is None
    True
    """
    published = get_published_figure(name)
    return published.film(results.simulation, results.theory) if published and published.film else None
