"""The initial page of the explorer for a kind of scenario, and the views that it offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class View:
    """A page of the explorer: its config, and the layout of its curves.

    Parameters
    ----------
    config : the keys of the config that differ from those that the page starts with; a number along x is the largest
    x : the key along x, or two variables of a plane, such as "R-q"; by default the page's own key
    show : the variables that have charts; by default the page's own
    over : the unit of the curves, a key of `figures.series.NORMALISED`
    log : the logarithmic axes, "x" and "y"
    at : the recorded time that is shown where time does not lie along x; by default the last
    runs : whether single runs are drawn, instead of their mean
    figures : the published figures that it resembles; a config of such a figure opens with this view
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
    """The config that a page starts with, and how its curves are laid out.

    Parameters
    ----------
    along : the key that this kind is usually drawn against
    start : the keys of the config, one value each but for what learns; of `along`, the largest value
    first : the smallest value of `along`
    places : the number of values of `along`
    whole : whether they are whole numbers
    even : whether they are uniform, from 0 on, and not uniform in the logarithm
    sliders : further keys that have sliders, beside the numeric axes
    inputs : distributions of inputs of unequal variance that have sliders, by their names in a config
    protocols : orders of tasks that can be chosen, by their names in a config
    within : keys with sliders that are times before the last one, which lies along x
    curves : recorded dimensions beside `along` whose positions are curves, such as tasks
    without : numeric axes that have none, for they concern only some values of other keys
    view : how the page opens; its config is `start`
    planes : pairs of variables that may be drawn against each other, along `along`
    presets : further views, by their titles
    """

    along: str
    start: dict[str, Any] = field(default_factory=dict)
    first: float = 0.1
    places: int = 20
    whole: bool = False
    even: bool = False
    sliders: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    within: tuple[str, ...] = ()
    curves: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    view: View = View(log=("x",))
    planes: tuple[tuple[str, str], ...] = ()
    presets: Mapping[str, View] = field(default_factory=dict)


def without_page(scenario: Any) -> str:
    """The reason why the explorer has no page for a scenario; empty if it has one.

    >>> from statmech import Scenario
    >>> without_page(Scenario(rule="hebb", t=1))
    ''
    """
    if scenario.PAGE is not None:
        return ""
    subject = "a study of data sets has" if scenario.on_data else f"{scenario.TITLE or scenario.CHOICE} has"
    return f"{subject} no sliders. Run it, and explore its results"
