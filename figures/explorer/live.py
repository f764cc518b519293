"""A scenario with sliders: theory is solved at every step of a drag, and a simulation follows in the background."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import panel_material_ui as pmui

from figures import series
from figures.explorer import page_theory, settings, sliders
from figures.explorer.background import FIRST, Background, sentence
from figures.explorer.chart_content import Picture, caption, has_lines, said_of
from figures.explorer.curricula import constant_in, control_menus
from figures.explorer.delayed_calls import Clock
from figures.explorer.link import FILES
from figures.explorer.spectrum import input_menu
from figures.explorer.task_order import protocol_menu
from figures.explorer.time_slider import Player
from figures.explorer.value_list import config_from, line_from
from figures.functions_of_time import with_functions
from figures.series import Layout
from statmech.config import overridden
from statmech.errors import ConfigError
from statmech.results.results import Results
from statmech.scenarios.axes import points
from statmech.scenarios.base import AbstractScenario
from statmech.scenarios.cost import estimate
from statmech.scenarios.page import View
from statmech.scenarios.registry import kinds, scenario_from

if TYPE_CHECKING:
    import xarray as xr

SOON = 1  # delay before a step is handled: Panel's default of 50 would be visible
REST = 250  # milliseconds without a step until a drag counts as ended
STEPS = 100  # steps of a slider for times before the last time
PATIENCE = 1.5  # allowed for the smooth line at the end of a drag
AT_ONCE = 1.0  # shorter simulations show all seeds at once: fewer seeds would need another program
LONGEST = {"10 seconds": 10.0, "a minute": 60.0, "10 minutes": 600.0, "never": 0.0}
CORRECTIONS, BAND = "corrections", "band of one run"  # a key, and the label of its switch
SEARCHING = "searching for the optimum: a minute or more"
BEFORE = "; the charts show the settings before"
UNTIL_THEN = "; until then without it"
NO_PAIR = "q compares two students, and K = 1: set K to 2 or more"


class Live:
    """The controls of one kind of scenario.

    `on_results()` is called at every step of a drag, `on_settled()` at its end, and `message(severity, text)` with
    errors and progress. `get_single_runs()` returns True if single runs are drawn. `row` and `strip` hold the controls
    that are always visible, `more` the others. `functions` holds the values of keys whose functions of time menus
    offer.
    """

    def __init__(
        self,
        view: View,
        choice: str,
        shown: Callable[[], None],
        settled: Callable[[], None],
        message: Callable[[str, str], None],
        runs: Callable[[], bool] = lambda: False,
        functions: Mapping[str, list[Any]] | None = None,
    ):
        self.runs, self.functions = runs, functions or {}
        self.choice, self.given, self.shown, self.settled, self.message = choice, view.config, shown, settled, message
        self.kind = kinds()[choice]
        self.learning = self.kind.CHOICE
        self.scenario: AbstractScenario
        self.theory: xr.Dataset | None = None
        self.smooth: xr.Dataset | None = None
        self.simulation: xr.Dataset | None = None
        self.clock = Clock()
        self.background = Background(self._arrived)
        self.spent, self.refined = 0.0, False
        self.left_out = ""
        self.x = self._abscissas(view.x or settings.page_of(choice).along)
        self.chosen = pmui.MultiChoice(
            label=self.learning,
            options=settings.learners(choice),
            value=view.config[self.learning],
            max_items=7,
            chip=False,
            width=190,
            margin=(4, 6),
            visual_size="small",
        )
        self.controls = {menu.key: menu for menu in control_menus(choice, view.config, self.functions)}
        self.menus = (input_menu(choice, view.config), protocol_menu(choice, view.config), *self.controls.values())
        listed = {**view.config, **{menu.key: None for menu in self.menus}}  # menus show a list themselves
        several = settings.several_in(choice, listed, self.along)
        self.listed = several, view.config.get(several, [])
        curves = {"(none)": "", **{settings.symbol(choice, name): name for name in self._may_be_curves(several)}}
        menu: dict[str, Any] = {"margin": (4, 6), "size": "small"}
        self.several = pmui.Select(label="curves", options=curves, value=several, width=110, **menu)
        text = line_from(self.listed[1])
        self.values = pmui.TextInput(
            label="values", value=text, visible=bool(several), width=min(300, max(130, 30 + 9 * len(text))), **menu
        )
        self.sliders: dict[str, Any] = {}
        for name in settings.draggable(choice):  # ordered, as some times lie before the last one
            self.sliders[name] = self._slider(name)
        self.player = Player(self.clock, self.shown, view.at)
        self.seeds = self._stops("seeds")
        self.band = pmui.Switch(
            label=BAND,
            value=bool(view.config.get(CORRECTIONS)),
            visible=CORRECTIONS in self.kind.model_fields,
            margin=(4, 8),
        )
        self.anyway = pmui.Button(
            label="Simulate all the same", variant="outlined", size="small", visible=False, margin=(2, 4)
        )
        self.more_keys = pmui.TextInput(
            label="other keys", placeholder="key=value key=value", sizing_mode="stretch_width"
        )
        self.longest = pmui.Select(label="simulate for up to", options=LONGEST, value=10.0, sizing_mode="stretch_width")
        self.moved: Any = None  # the slider that was moved last
        forms = [widget for menu in self.menus for widget in menu.widgets]
        of_scenario = (self.chosen, self.values, *forms, *self.sliders.values(), self.seeds, self.band)
        for widget in (*of_scenario, self.more_keys, self.longest):
            widget._debounce = SOON
            widget.param.watch(self._changed, "value")
        self.several.param.watch(lambda event: self._part(), "value")
        self.anyway.on_click(lambda event: self._simulate_all())
        self.x.param.watch(lambda event: self._turn(), "value")
        self.strip = [self.band, *self.player.parts, self.anyway]
        self.row = [self.x, self.chosen, self.several, self.values, *forms, *self.sliders.values()]
        self.more = [self.seeds, self.longest, self.more_keys]
        self._retitle()

    @property
    def along(self) -> str:
        """The key on the x axis of the curves."""
        return settings.key_along(self.choice, self.x.value)

    @property
    def plane(self) -> tuple[str, str] | None:
        """The two variables that are drawn against each other, or None if x is a key."""
        return settings.planes(self.choice).get(self.x.value)

    def update(self) -> None:
        """Read the controls, show theory, and start the simulation."""
        self._retitle()
        try:
            scenario = self._read()
            if page_theory.is_to_be_searched(scenario):
                self._wait_for_search(scenario)
                return
            self._solve(scenario)
        except Exception as problem:  # a user's rule may raise any exception
            self._failed(problem)
            return
        self._rest()

    def _solve(self, scenario: AbstractScenario) -> None:
        """Solve and show theory, and discard the simulation of the previous scenario."""
        began = time.perf_counter()
        theory, smooth = page_theory.both(scenario, self.along)
        self.spent = time.perf_counter() - began
        self.scenario, self.theory, self.simulation, self.refined = scenario, theory, None, smooth is not None
        self.smooth = smooth if self.refined else page_theory.broken(scenario, theory, self.along)
        self.background.stop()
        self.anyway.visible = False
        self.player.offer(*self._times())
        if theory is not None:
            self.shown()

    def _wait_for_search(self, scenario: AbstractScenario) -> None:
        """Search for the optimum of a scenario at the end of a drag, then show it.

        Until then a new page shows the scenario without optima.
        """
        without_optimum = page_theory.without_optima(scenario)
        if self.theory is None:
            self._solve(without_optimum)
        token = self.background.stop()
        self.message("progress", SEARCHING + (UNTIL_THEN if self.scenario == without_optimum else BEFORE))

        def search() -> None:
            if token == self.background.token:
                find_optimum, on_found = partial(page_theory.search, scenario), partial(self.clock.soon, self.update)
                self.background.search(find_optimum, on_found)

        self.clock.later(REST, search)

    @property
    def results(self) -> Results:
        """The theory and the simulation that are available."""
        return Results(self.scenario, self.simulation, self.theory, figure=self.scenario.figure, lines=self.smooth)

    @property
    def layout(self) -> Layout:
        """The layout: the chosen key is x, and rules, learners, tasks or listed values have colours."""
        either = self.results.either
        swept = [axis for axis in self.scenario.axis_names() if axis in either.dims and axis != self.along]
        curves = [axis for axis in settings.page_of(self.choice).curves if axis != self.along]
        curve_axes = [axis for axis in (*swept, *curves) if either.sizes[axis] > 1]
        ignored = series.ignored_in_the_limit(self.scenario)
        curve_axes.sort(key=lambda axis: axis not in ignored)  # so that colours repeat with the next marker
        colours = tuple(curve_axes) or (self.learning,)
        rest = tuple(axis for axis in series.axes(either) if axis not in (self.along, *colours))
        return Layout(self.along, colours, rest)

    @property
    def picture(self) -> Picture:
        """The content of the charts, at the selected recorded time if time is not x."""
        layout = self.layout
        last: dict[str, Any] = dict.fromkeys(layout.rest, -1)
        if self.player.axis in layout.rest:
            last[self.player.axis] = self.player.index
        results = series.sliced(with_functions(self.results), last)
        if self.plane is not None:
            results = self._so_far(results)
        axis, time_text = self.player.axis, ""
        if axis in layout.rest:
            time_text = said_of(self.scenario, axis, self.player.at)
        return Picture(
            results, layout, self.plane, caption(self.results, (self.along, *layout.colours), time_text, self.runs())
        )

    @property
    def view(self) -> View:
        """The settings of the controls, which restore the same page."""
        scenario_keys, _ = overridden(self._given(), shlex.split(self.more_keys.value or ""))
        fixed = {name: self.kind.describe(name).default for name in self.kind.known_keys() if name not in ("zip",)}
        config = {name: v for name, v in scenario_keys.items() if name == self.learning or v != fixed.get(name)}
        return View(config, x=self.x.value, at=self.player.chosen)

    def close(self) -> None:
        """Stop the simulation and the animation."""
        self.background.stop()
        self.player.stop()

    def _turn(self) -> None:
        """Change the key on the x axis.

        The slider of the new key sets the end of the axis. Keys that had a list of values get their last value.
        """
        list_keys = (self.learning, *(name for name in self.given if settings.is_recorded(self.choice, name)))
        if self.several.value == self.along:
            self.several.value = ""
        list_keys += (self.several.value,)
        lists = {name: v[-1] for name, v in self.given.items() if isinstance(v, list) and name not in list_keys}
        self.given = {**self.given, **lists}
        if self.plane is None and self.along in self.sliders:
            slider = self.sliders[self.along]
            end = settings.end_of(self.choice, self.along, slider.value)
            if end != slider.value:
                slider.value = end  # this updates the page
                return
        self.update()

    def _so_far(self, results: Results) -> Results:
        """Return the results up to the selected recorded time, as a plane shows them."""
        if self.player.axis != self.along:
            return results
        lines = results.lines
        results = series.sliced(replace(results, lines=None), {self.along: slice(0, self.player.index + 1)})
        if lines is None:
            return results
        return replace(results, lines=lines.isel({self.along: lines[self.along].values <= self.player.at}))

    def _times(self) -> tuple[str, np.ndarray]:
        """Return the recorded times (epochs, ...) that can be shown one by one, with their axis.

        There are no such times if they are on the x axis.
        """
        for axis, values in series.times(self.scenario).items():
            if axis in settings.page_of(self.choice).curves:
                continue
            if len(values) > 1 and (axis != self.along or self.plane is not None):
                return axis, values
        return "", np.zeros(0)

    def _rest(self) -> None:
        """Postpone the work that would delay the next curve to the end of a drag."""
        token = self.background.token

        def settle() -> None:
            if token == self.background.token:
                self.message("", "")
                self._settle()

        self.clock.later(REST, settle)

    def _settle(self) -> None:
        try:
            self.settled()
            self._refine()
            self._simulate()
        except Exception as problem:  # as above: a user's rule also defines equations
            self._failed(problem)
            return
        if self.plane is not None and points(self.scenario.axis_values().get("K", 2))[-1] == 1:
            self.message("error", NO_PAIR)

    def _failed(self, problem: Exception) -> None:
        """Stop the simulation and show the error."""
        self.background.stop()
        self.message("error", sentence(problem))
        self.message("progress", "")

    def _given(self) -> dict[str, Any]:
        """Return the keys with the values of the controls.

        A key on the x axis has its largest value.
        """
        if not self.chosen.value:
            raise ConfigError(f"choose at least one {self.learning}")
        config = {**self.given, self.learning: list(self.chosen.value), "seeds": self.seeds.value}
        for menu in self.menus:
            config |= menu.config if menu.key != self.along else {}
        if self.band.visible:
            config[CORRECTIONS] = self.band.value
        for name, slider in self.sliders.items():
            if slider.visible:
                config[name] = settings.moved(config.get(name), slider.value)
        if self.several.value:
            listed = self.listed[1] if self.several.value == self.listed[0] else ()
            typed = config_from(self.values.value or "", listed)
            several, _ = overridden({}, [f"{self.several.value}=[{typed}]"])
            config |= {name: values[0] if len(values) == 1 else values for name, values in several.items()}
        return {name: value for name, value in config.items() if name not in self._inapplicable}

    def _read(self) -> Any:
        try:
            config = settings.config_of(self.choice, self._given(), self.x.value)
            full_config, _ = overridden(config, shlex.split(self.more_keys.value or ""))
        except ValueError as problem:
            raise ConfigError(f"other keys: {problem}") from None
        if any(file not in settings.files(self.given) for file in settings.files(full_config)):
            raise ConfigError(FILES.format("other keys"))
        return scenario_from(full_config)

    def _refine(self) -> None:
        """Draw theory as a smooth line if the line would have delayed a drag."""
        from theory import smooth

        values = page_theory.values_along(self.scenario, self.along)
        if self.theory is None or self.refined or len(values) < 2:
            return
        number = min(settings.LINE, int(len(values) * PATIENCE / max(self.spent, 1e-3)))
        if number > len(values):
            lines = smooth(self.scenario, self.along, number)
            self.smooth = self.smooth if lines is None else lines
            self.shown()

    def _simulate(self) -> None:
        seeds, seconds = self.scenario.seeds, estimate(self.scenario).seconds
        num_seeds = seeds
        while num_seeds > FIRST and seconds * num_seeds / seeds > self.longest.value:
            num_seeds = max(FIRST, num_seeds // 2)
        if seconds * num_seeds / seeds > self.longest.value:
            self.background.stop()
            self.message("progress", f"not simulated: it would take about {_duration(seconds * num_seeds / seeds)}")
            self.anyway.visible = True
            return
        self.left_out = f" of {seeds}: all would take about {_duration(seconds)}" if num_seeds < seeds else ""
        first = num_seeds if seconds * num_seeds / seeds <= AT_ONCE else self._first
        self.background.start(self.scenario.model_copy(update={"seeds": num_seeds}), first)

    def _simulate_all(self) -> None:
        """Simulate all seeds regardless of the time limit."""
        self.anyway.visible, self.left_out = False, ""
        self.background.start(self.scenario, self._first)

    @property
    def _first(self) -> int:
        """Number of seeds that are shown before all are simulated.

        It is 1 if the charts would be empty without a simulation.
        """
        return FIRST if has_lines(self.results) else 1

    def _arrived(self, simulation: xr.Dataset | None, text: str) -> None:
        """Pass a result from the simulation's thread to the page's thread."""
        token = self.background.token

        def land() -> None:
            if token != self.background.token:
                return
            self.message("progress", text + (self.left_out if simulation is not None else ""))
            if simulation is not None:
                self.simulation = simulation
                self.shown()

        self.clock.soon(land)

    def _abscissas(self, x: str) -> Any:
        symbols = {settings.symbol(self.choice, name): name for name in self._may_lie_along_x()}
        plane_labels = {
            f"{first}–{second} plane": name for name, (first, second) in settings.planes(self.choice).items()
        }
        return pmui.Select(label="x", options=symbols | plane_labels, value=x, width=124, margin=(4, 6), size="small")

    def _may_lie_along_x(self) -> list[str]:
        page = settings.page_of(self.choice)
        possible = [name for name in settings.draggable(self.choice) if name in settings.abscissas(self.choice)]
        return [name for name in possible if name not in page.sliders or self._is_given(name)]

    def _is_given(self, name: str) -> bool:
        """Return True if a key has a value, as `epochs` or `updates` may be absent."""
        return self.given.get(name, settings.default_of(self.choice, name)) is not None

    def _slider(self, name: str) -> Any:
        if name in settings.page_of(self.choice).within:
            low, high, step = self._times_within()
            return sliders.typed(low, high, step, self.given.get(name) or settings.rounded(high / 2))
        if settings.stops_of(self.choice, name):
            return self._stops(name)
        low, high, step = settings.range_of(self.choice, name)
        return sliders.typed(low, high, step, self._value(name))

    def _stops(self, name: str) -> Any:
        return sliders.stopping(name, settings.stops_of(self.choice, name), self._value(name))

    def _value(self, name: str) -> Any:
        """Return the initial value of a slider.

        It is the last value of a list, or the first stop for a key without a value.
        """
        value = self.given.get(name, settings.default_of(self.choice, name))
        if name in self.controls:
            return constant_in(self.functions.get(name, value), settings.default_of(self.choice, name))
        value = settings.stops_of(self.choice, name)[0] if value is None else value
        return value[-1] if isinstance(value, list) else value

    def _retitle(self) -> None:
        """Update the titles of the sliders, and hide sliders of inapplicable keys."""
        for menu in self.menus:
            menu.arrange()
        for name, control in self.controls.items():
            control.show(name != self.along)
        self._keep_within()
        end_keys = {self.along, *([settings.page_of(self.choice).along] if self._usual_is_recorded() else [])}
        learner_names = settings.chosen_in(self.choice, {**self.given, self.learning: self.chosen.value or ()})
        for name, slider in self.sliders.items():
            needed = settings.has(self.choice, learner_names, name) and name not in self._inapplicable
            needed &= name in settings.page_of(self.choice).within or self._is_given(name)
            needed &= name not in self.controls or name == self.along or self.controls[name].is_constant
            title = settings.symbol(self.choice, name) + (" up to" if name in end_keys else "")
            sliders.entitle(slider, title, needed and name != self.several.value)

    @property
    def _inapplicable(self) -> set[str]:
        """The keys that do not apply to the selected forms of the menus."""
        return set().union(*(menu.inapplicable for menu in self.menus))

    def _keep_within(self) -> None:
        """Limit the sliders of earlier times to the last time, which ends the x axis."""
        for name in settings.page_of(self.choice).within:
            low, high, step = self._times_within()
            slider = self.sliders[name]
            if slider.end != high:
                value = settings.rounded(min(max(slider.value, low), high))
                slider.param.update(start=low, end=high, step=step, value=value)

    def _times_within(self) -> tuple[float, float, float]:
        """Return low, high and step of a slider for times before the last time."""
        last = self.sliders[settings.page_of(self.choice).along].value
        step = last / STEPS
        return settings.rounded(step), settings.rounded(last - step), settings.rounded(step)

    def _changed(self, event: Any) -> None:
        self.moved = event.obj if event.obj in self.sliders.values() else self.moved
        self.update()

    def _part(self) -> None:
        """Show the values of the selected key, which are drawn as curves."""
        name = self.several.value
        values_text = ""
        if name:
            slider = self.sliders.get(name)  # None for names and sections that a config lists
            values_text = line_from(settings.values_near(self.choice, name, slider.value) if slider else self.listed[1])
        if self.values.value == values_text:
            self.update()
        self.values.param.update(visible=bool(name), value=values_text)

    def _may_be_curves(self, given: str) -> list[str]:
        """Return the keys whose values can be curves: keys with sliders, and the key with listed values."""
        possible = [name for name in self._may_lie_along_x() if name not in self.controls]
        names = [name for name in possible if not settings.is_recorded(self.choice, name)]
        return [*dict.fromkeys([*names, *([given] if given else [])])]

    def described(self, name: str) -> str:
        """Describe the values of a key and the control that changes them."""
        value, title = self.given[name], settings.symbol(self.choice, name)
        values_text = line_from(value if isinstance(value, list) else [value])
        has_control = name in self.sliders or any(menu.key == name for menu in self.menus if menu.menu.visible)
        control_hint = f"with the control {title}" if has_control else "under other keys, in the drawer"
        if name == self.several.value:
            control_hint = "in the field values"
        return f"{title} = {values_text} (choose others {control_hint})"

    def step(self, number: int) -> str:
        """Move the last used or the first slider by a number of steps, and return its text."""
        visible_sliders = [slider for slider in self.sliders.values() if slider.visible]
        slider = (
            self.moved
            if self.moved in visible_sliders
            else self.player.slider
            if self.player.slider.visible
            else visible_sliders[0]
        )
        sliders.step(slider, number)
        return f"← {slider.label} = {slider.value:g} →" if not isinstance(slider.value, str) else slider.label

    def _usual_is_recorded(self) -> bool:
        return settings.is_recorded(self.choice, settings.page_of(self.choice).along)


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} seconds"
