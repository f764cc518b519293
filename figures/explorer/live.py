"""A scenario that is dragged: theory is solved at every step, a simulation follows in the background."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import panel as pn
import panel_material_ui as pmui

from figures.explorer import settings
from figures.explorer.background import Background, sentence
from statmech.config import overridden
from statmech.errors import ConfigError
from statmech.scenarios.cost import estimate
from statmech.scenarios.registry import KINDS, scenario_from

if TYPE_CHECKING:
    import xarray as xr

SOON = 1  # milliseconds that a step waits for another; Panel's own 50 would be seen
REST = 250  # milliseconds without a step, after which a drag has ended
FILES = "other keys: a page names no files (inputs: rows). Put them in a config: statmech explore CONFIG.yaml"
LONGEST = {"10 seconds": 10.0, "a minute": 60.0, "10 minutes": 600.0, "never": 0.0}


class Live:
    """The sliders of one kind of scenario; `shown()` is called at every step of a drag, `settled()` at its end."""

    def __init__(
        self,
        given: dict[str, Any],
        choice: str,
        shown: Callable[[], None],
        settled: Callable[[], None],
        told: Callable[[str, str], None],
    ):
        self.choice, self.given, self.shown, self.settled, self.told = choice, given, shown, settled, told
        self.scenario: Any = None
        self.theory: xr.Dataset | None = None
        self.simulation: xr.Dataset | None = None
        self.document: Any = pn.state.curdoc
        self.background = Background(self._arrived)
        kinds = KINDS[choice].KINDS
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
        self.longest = pmui.Select(label="simulate what takes up to", options=LONGEST, value=10.0)
        for widget in (self.chosen, *self.sliders.values(), self.seeds, self.more, self.longest):
            widget._debounce = SOON
            widget.param.watch(lambda event: self.update(), "value")
        self.view = pmui.Column(
            self.chosen, *self.sliders.values(), self.seeds, self.longest, self.more, sizing_mode="stretch_width"
        )

    def update(self) -> None:
        """Read the sliders, solve, show, and play in the background."""
        for name, slider in self.sliders.items():
            slider.visible = settings.has(self.choice, self.chosen.value or (), name)
        try:
            scenario = self._read()
            theory = _solved(scenario)
        except Exception as problem:  # a user's own rule may raise anything
            self._failed(problem)
            return
        self.scenario, self.theory, self.simulation = scenario, theory, None
        self.background.stop()
        self.shown()
        self._rest()

    @property
    def both(self) -> tuple[xr.Dataset | None, xr.Dataset | None]:
        """What is to be downloaded."""
        return self.simulation, self.theory

    def close(self) -> None:
        self.background.stop()

    def _rest(self) -> None:
        """When the drag has come to rest: whatever is not a curve would hold up the next one."""
        token = self.background.token

        def settle() -> None:
            if token == self.background.token:
                self.told("", "")
                self._settle()

        self.document.add_timeout_callback(settle, REST)

    def _settle(self) -> None:
        try:
            self.settled()
            self._play()
        except Exception as problem:  # as above: equations, too, are of the user's own rule
            self._failed(problem)

    def _failed(self, problem: Exception) -> None:
        """Show why there is nothing new to show; what was being simulated has ended."""
        self.background.stop()
        self.told("error", sentence(problem))
        self.told("progress", "")

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
        if any(named not in settings.files(self.given) for named in settings.files(given)):
            raise ConfigError(FILES)
        return scenario_from(given)

    def _play(self) -> None:
        seconds = estimate(self.scenario).seconds
        if seconds > self.longest.value:
            self.background.stop()
            self.told("progress", f"a simulation of this would take about {_long(seconds)}, and is not begun")
        else:
            self.background.play(self.scenario)

    def _arrived(self, made: xr.Dataset | None, message: str) -> None:
        """From the thread that plays: hand it to the page's own."""
        token = self.background.token

        def land() -> None:
            if token != self.background.token:
                return
            self.told("progress", message)
            if made is not None:
                self.simulation = made
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
    return KINDS[choice].describe(name).default


def _solved(scenario: Any) -> xr.Dataset | None:
    """Theory of each that learns, one after the other; None where there is none."""
    import xarray as xr

    from theory import solve

    if scenario.unsolved:
        return None
    parts = [solve(one) for one in settings.one_by_one(scenario)]
    joined: xr.Dataset = xr.concat(parts, dim=scenario.CHOICE, coords="minimal", compat="override", join="override")
    return joined.assign_attrs(config=json.dumps(scenario.config()))


def _long(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} seconds"
