"""Initial pages and predefined views of kinds of scenarios in the explorer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class View:
    """A view in the explorer, defined by a config and the layout of its curves.

    Parameters
    ----------
    config : the keys that differ from the initial config of the page; a number for the x axis means its largest value
    x : the key of the x axis, or two variables of a plane, such as "R-q"; by default the page's own key
    show : the variables that have charts; by default the page's own
    over : the unit of the curves, a key of `figures.series.NORMALISATION_LABELS`
    log : the logarithmic axes, "x" and "y"
    at : the recorded time shown if time is not the x axis; by default the last
    runs : whether single runs are drawn, instead of their mean
    figures : the published figures that the view resembles; a config of such a figure opens with this view
    """

    config: dict[str, Any] = field(default_factory=dict)
    x: str = ""
    show: tuple[str, ...] = ()
    over: str = ""
    log: tuple[str, ...] = ()
    at: float | None = None
    runs: bool = False
    figures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """The explorer page of a kind of scenario: its initial config, sliders and views.

    Parameters
    ----------
    x_key : the usual key of the x axis for this kind
    start : the initial config, with the largest value of `x_key`; only the learning algorithm can have several values
    min_x : the smallest value of `x_key`
    num_points : the number of values of `x_key` on a line
    has_integer_x_values : whether these values are integers
    evenly_spaced : whether these values are spaced uniformly from 0, instead of logarithmically
    further_slider_keys : further keys with sliders, in addition to the numeric axes
    inputs : distributions of inputs of unequal variance that have sliders, by their names in a config
    protocols : orders of tasks that can be chosen, by their names in a config
    time_keys : keys with sliders that are times before the end of the time axis
    curves : further recorded dimensions whose values are drawn as curves, such as tasks
    keys_without_slider : numeric axes without a slider, because they apply only to some values of other keys
    view : the initial view, with the config `start`
    variable_planes : pairs of variables that can be drawn against each other, along `x_key`
    preset_views : further views, by their titles
    """

    x_key: str
    start: dict[str, Any] = field(default_factory=dict)
    min_x: float = 0.1
    num_points: int = 20
    has_integer_x_values: bool = False
    evenly_spaced: bool = False
    further_slider_keys: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    time_keys: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    keys_without_slider: tuple[str, ...] = ()
    view: View = View(log=("x",))
    variable_planes: tuple[tuple[str, str], ...] = ()
    preset_views: Mapping[str, View] = field(default_factory=dict)


def explain_missing_page(scenario: Any) -> str:
    """Explain why the explorer has no page for a scenario, or return an empty string.

    >>> from statmech import Scenario
    >>> explain_missing_page(Scenario(rule="hebb", t=1))
    ''
    """
    if scenario.PAGE is not None:
        return ""
    subject = "a study of data sets has" if scenario.on_data else f"{scenario.TITLE or scenario.CHOICE} has"
    return f"{subject} no sliders. Run it, and explore its results"
