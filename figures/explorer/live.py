"""A scenario with sliders: theory is solved at every step of a drag, a simulation follows in the background."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import panel as pn
import panel_material_ui as pmui

from figures.explorer import settings
from figures.explorer.background import Background, sentence
from figures.series import Layout, axes, sliced
from statmech.config import overridden
from statmech.errors import ConfigError
from statmech.results.results import Results
from statmech.scenarios.cost import estimate
from statmech.scenarios.registry import SCENARIOS, scenario_from

if TYPE_CHECKING:
    import xarray as xr

SOON = 1  # milliseconds that a step waits for the next; Panel's own 50 would be visible
REST = 250  # milliseconds without a step after which a drag has ended
FILES = "other keys: files (inputs: rows) can only be named in a config: statmech explore CONFIG.yaml"
LONGEST = {"10 seconds": 10.0, "a minute": 60.0, "10 minutes": 600.0, "never": 0.0}


class Live:
    """The sliders of one kind of scenario.

    `shown()` is called at every step of a drag, `settled()` at its end, and `message(severity, text)` with errors and
    progress.
    """

    def __init__(
        self,
        given: dict[str, Any],
        choice: str,
        shown: Callable[[], None],
        settled: Callable[[], None],
        message: Callable[[str, str], None],
    ):
        self.choice, self.given, self.shown, self.settled, self.message = choice, given, shown, settled, message
        self.scenario: Any = None
        self.theory: xr.Dataset | None = None
        self.simulation: xr.Dataset | None = None
        self.document: Any = pn.state.curdoc
        self.background = Background(self._arrived)
        kinds = SCENARIOS[choice].KINDS
        self.chosen = pmui.MultiChoice(
            label=choice,
            options=settings.labelled(kinds),
            value=given[choice],
            max_items=7,
            sizing_mode="stretch_width",
        )
        self.sliders = {name: self._slider(name) for name in settings.draggable(choice)}
        self.seeds = self._stops("seeds")
        self.more = pmui.TextInput(label="other keys", placeholder="key=value key=value", sizing_mode="stretch_width")
        self.longest = pmui.Select(label="simulate if it takes up to", options=LONGEST, value=10.0)
        for widget in (self.chosen, *self.sliders.values(), self.seeds, self.more, self.longest):
            widget._debounce = SOON
            widget.param.watch(lambda event: self.update(), "value")
        self.view = pmui.Column(
            self.chosen, *self.sliders.values(), self.seeds, self.longest, self.more, sizing_mode="stretch_width"
        )

    def update(self) -> None:
        """Read the sliders, solve, show, and simulate in the background."""
        for name, slider in self.sliders.items():
            slider.visible = settings.has(self.choice, self.chosen.value or (), name)
        try:
            scenario = self._read()
            theory = _solved(scenario)
        except Exception as problem:  # a user's rule may raise anything
            self._failed(problem)
            return
        self.scenario, self.theory, self.simulation = scenario, theory, None
        self.background.stop()
        if theory is not None:
            self.shown()
        self._rest()

    @property
    def results(self) -> Results:
        """All that has been solved and simulated."""
        return Results(self.scenario, self.simulation, self.theory, figure=self.scenario.figure)

    @property
    def layout(self) -> Layout:
        """Rules, learners, ... in colour, against the key that this kind is usually drawn against."""
        x = settings.page_of(self.choice).along
        shown = (x, self.choice)
        return Layout(x, (self.choice,), tuple(axis for axis in axes(self.results.either) if axis not in shown))

    @property
    def slice(self) -> Results:
        """The results at the last recorded time, where that is not along x."""
        return sliced(self.results, dict.fromkeys(self.layout.rest, -1))

    def close(self) -> None:
        """Stop the simulation."""
        self.background.stop()

    def _rest(self) -> None:
        """Do at the end of a drag whatever would delay the next curve."""
        token = self.background.token

        def settle() -> None:
            if token == self.background.token:
                self.message("", "")
                self._settle()

        self.document.add_timeout_callback(settle, REST)

    def _settle(self) -> None:
        try:
            self.settled()
            self._simulate()
        except Exception as problem:  # as above: equations, too, come from the user's rule
            self._failed(problem)

    def _failed(self, problem: Exception) -> None:
        """Stop the simulation and show why there is nothing new."""
        self.background.stop()
        self.message("error", sentence(problem))
        self.message("progress", "")

    def _read(self) -> Any:
        if not self.chosen.value:
            raise ConfigError(f"choose at least one {self.choice}")
        given = {**self.given, self.choice: list(self.chosen.value), "seeds": self.seeds.value}
        for name, slider in self.sliders.items():
            if slider.visible:
                given[name] = settings.moved(given.get(name), slider.value)
        try:
            given, _ = overridden(settings.config_of(self.choice, given), shlex.split(self.more.value or ""))
        except ValueError as problem:
            raise ConfigError(f"other keys: {problem}") from None
        if any(file not in settings.files(self.given) for file in settings.files(given)):
            raise ConfigError(FILES)
        return scenario_from(given)

    def _simulate(self) -> None:
        seconds = estimate(self.scenario).seconds
        if seconds > self.longest.value:
            self.background.stop()
            self.message("progress", f"a simulation would take about {_duration(seconds)} and was not started")
        else:
            self.background.start(self.scenario)

    def _arrived(self, simulation: xr.Dataset | None, text: str) -> None:
        """Pass a result from the thread of the simulation to that of the page."""
        token = self.background.token

        def land() -> None:
            if token != self.background.token:
                return
            self.message("progress", text)
            if simulation is not None:
                self.simulation = simulation
                self.shown()

        self.document.add_next_tick_callback(land)

    def _slider(self, name: str) -> Any:
        title = f"{name} up to" if name == settings.page_of(self.choice).along else name
        if settings.stops_of(self.choice, name):
            slider = self._stops(name, title)
        else:
            low, high, step = settings.range_of(self.choice, name)
            given = self.given.get(name, _default(self.choice, name))
            slider = pmui.EditableFloatSlider(
                label=title,
                start=min(low, given),
                end=max(high, given),
                step=step,
                value=given,
                sizing_mode="stretch_width",
            )
        slider.visible = settings.has(self.choice, self.given[self.choice], name)
        return slider

    def _stops(self, name: str, title: str = "") -> Any:
        given = self.given.get(name, _default(self.choice, name))
        given = given[-1] if isinstance(given, list) else given
        stops = sorted({*settings.stops_of(self.choice, name), given})
        return pmui.DiscreteSlider(
            label=title or name, options={f"{stop:g}": stop for stop in stops}, value=given, sizing_mode="stretch_width"
        )


def _default(choice: str, name: str) -> Any:
    return SCENARIOS[choice].describe(name).default


def _solved(scenario: Any) -> xr.Dataset | None:
    """The theory of each rule, learner, ... in turn; None where there is no theory."""
    import xarray as xr

    from theory import solve

    if scenario.unsolved:
        return None
    parts = [solve(one) for one in settings.one_by_one(scenario)]
    joined: xr.Dataset = xr.concat(parts, dim=scenario.CHOICE, coords="minimal", compat="override", join="override")
    return joined.assign_attrs(config=json.dumps(scenario.config()))


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} seconds"
