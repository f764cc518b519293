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

from figures import curves as series
from figures.curves import Layout
from figures.derived_data import add_time_dependent_keys
from figures.explorer import computation, settings, sliders
from figures.explorer.chart_content import ChartContent, has_theory_lines
from figures.explorer.computation import NUM_PREVIEW_SEEDS, BackgroundSimulator, describe_exception
from figures.explorer.key_menus import (
    find_first_constant,
    make_input_menu,
    make_protocol_menu,
    make_time_function_menus,
)
from figures.explorer.pages import View
from figures.explorer.settings import FILE_NOT_ALLOWED_MESSAGE
from figures.explorer.sliders import (
    CELL_STYLE,
    MENU_STYLE,
    CallScheduler,
    TimeAnimation,
    format_value_line,
    parse_value_line,
)
from figures.labels import make_value_labeller
from statmech.config.config_files import apply_overrides
from statmech.errors import ConfigError
from statmech.keys.scenario import AbstractScenario, get_kinds
from statmech.keys.sweep_grid import ensure_tuple
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.results.results import Results
from statmech.stores.sweep_cost import estimate_cost

if TYPE_CHECKING:
    import xarray as xr

DRAG_DEBOUNCE_MILLISECONDS = 1  # Panel's default of 50 would be a visible delay
DRAG_END_DELAY_MILLISECONDS = 300  # a drag ends after this time without a step
MAX_NARROW_FIELD_LETTERS, MAX_NARROW_MENU_LETTERS = 16, 12
NUM_PROMINENT_CONTROLS = 4  # always visible, with at least two sliders
NUM_EARLIER_TIME_SLIDER_STEPS = 100  # for times before the end of the x axis
MAX_SMOOTH_LINE_SOLVING_SECONDS = 1.5  # limits the time for solving theory on a fine grid after a drag
MAX_SECONDS_WITHOUT_PREVIEW = 1.0  # a preview would cost longer: it needs another compilation
SIMULATION_TIME_LIMIT_OPTIONS = {"10 seconds": 10.0, "a minute": 60.0, "10 minutes": 600.0, "never": 0.0}
CORRECTIONS_KEY, BAND_SWITCH_LABEL = "corrections", "band of one run"  # a key, and the label of its switch
NOTICED_SECONDS, SOLVING_MESSAGE = 0.3, "solving"  # for solutions that are likely to take longer
OPTIMUM_SEARCH_MESSAGE = "searching for the optimum: a minute or more"
PREVIOUS_SETTINGS_NOTE = "; the charts show the settings before"
SHOWN_WITHOUT_OPTIMUM_NOTE = "; until then without it"
SINGLE_STUDENT_HAS_NO_Q_MESSAGE = "q compares two students, and K = 1: set K to 2 or more"


class ScenarioControls:
    """The controls of one kind of scenario.

    `on_results()` is called at every step of a drag, `on_settled()` at its end, and `message(severity, text)` with
    errors and progress. `row` holds the controls that are always visible, `further_controls` those that one
    button shows, and `more` those in the drawer. `functions` holds the values of keys whose functions of time menus
    offer.
    """

    def __init__(
        self,
        view: View,
        kind_name: str,
        on_results: Callable[[], None],
        on_settled: Callable[[], None],
        message: Callable[[str, str], None],
        functions: Mapping[str, list[Any]] | None = None,
    ):
        self.functions = functions or {}
        self.choice, self.given, self.shown, self.on_settled, self.message = (
            kind_name,
            view.config,
            on_results,
            on_settled,
            message,
        )
        self.kind = get_kinds()[kind_name]
        self.learner_key = self.kind.CHOICE
        self.scenario: AbstractScenario
        self.theory: xr.Dataset | None = None
        self.smooth: xr.Dataset | None = None
        self.simulation: xr.Dataset | None = None
        self.scheduler = CallScheduler()
        self.background = BackgroundSimulator(self._receive_result)
        self.solve_seconds, self.solved_x_key, self.is_refined = 0.0, "", False
        self.left_out = ""
        self.x = self._make_abscissa_menu(view.x or get_kinds()[kind_name].USUAL_X_KEY)
        self.chosen = pmui.MultiChoice(
            label=self.learner_key,
            options=settings.learners(kind_name),
            value=view.config[self.learner_key],
            max_items=7,
            chip=False,
            searchable=True,  # only then can a selected entry be removed
            visual_size="small",
            **{name: style for name, style in MENU_STYLE.items() if name != "size"},
        )
        self.controls = {menu.key: menu for menu in make_time_function_menus(kind_name, view.config, self.functions)}
        self.menus = (
            make_input_menu(kind_name, view.config),
            make_protocol_menu(kind_name, view.config),
            *self.controls.values(),
        )
        listed = {**view.config, **{menu.key: None for menu in self.menus}}  # menus list their values themselves
        several = settings.find_several_valued_key(kind_name, listed, self.x_key)
        self.listed_curves = several, view.config.get(several, [])
        curves = {
            "(none)": "",
            **{settings.get_slider_label(kind_name, name): name for name in self._list_curve_keys(several)},
        }
        self.curves_key = pmui.Select(label="curves", options=curves, value=several, **MENU_STYLE)
        text = format_value_line(self.listed_curves[1])
        self.values = pmui.TextInput(
            label=self._get_values_title(several),
            value=text,
            visible=bool(several),
            styles=_get_field_style(text),
            **MENU_STYLE,
        )
        self.sliders: dict[str, Any] = {}
        # sliders of earlier times need the slider of the last time
        for name in settings.list_slider_keys(kind_name, view.config):
            self.sliders[name] = self._make_slider(name)
        self.player = TimeAnimation(self.scheduler, self.shown, view.at)
        self.seeds = self._make_slider("seeds")
        self.band = pmui.Switch(
            label=BAND_SWITCH_LABEL,
            value=bool(view.config.get(CORRECTIONS_KEY)),
            visible=CORRECTIONS_KEY in self.kind.model_fields,
            styles={"grid-column": "span 2"},  # in one line
            **CELL_STYLE,
        )
        self.simulate_anyway = pmui.Button(
            label="Simulate anyway", variant="outlined", size="small", visible=False, margin=(2, 4)
        )
        self.more_keys = pmui.TextInput(
            label="other keys", placeholder="key=value key=value", sizing_mode="stretch_width"
        )
        self.longest = pmui.Select(
            label="simulate for up to", options=SIMULATION_TIME_LIMIT_OPTIONS, value=10.0, sizing_mode="stretch_width"
        )
        self.last_moved_slider: Any = None  # the arrow keys move it in lecture mode
        forms = [widget for menu in self.menus for widget in menu.widgets]
        of_scenario = (self.chosen, self.values, *forms, *self.sliders.values(), self.seeds, self.band)
        for widget in (*of_scenario, self.more_keys, self.longest):
            widget._debounce = DRAG_DEBOUNCE_MILLISECONDS
            widget.param.watch(self._handle_change, "value")
        self.curves_key.param.watch(lambda event: self._fill_curve_values_field(), "value")
        self.simulate_anyway.on_click(lambda event: self._simulate_all_seeds())
        self.x.param.watch(lambda event: self._change_abscissa(), "value")
        self.row, self.further_controls = self._arrange_controls()
        self.more = [self.seeds, self.longest, self.more_keys]
        self.seeds.margin = 10
        self._retitle_and_hide_sliders()

    def _arrange_controls(self) -> tuple[list[Any], list[Any]]:
        """Return the controls that are always visible, and all others.

        The former are the menus of x, learners and keys with a form, and the most interesting sliders.
        """
        forms = [widget for menu in self.menus for widget in menu.widgets]
        used = [widget for menu in self.menus if menu.menu.value for widget in menu.widgets]
        row = [self.x, self.chosen, self.values, *used]
        num_menus = sum(widget.visible for widget in row)
        lists = {name for name, value in self.given.items() if isinstance(value, list) and name != self.x_key}
        animated = [name for name in lists if settings.is_recorded_key(self.choice, name)]
        names = sorted(
            (name for name in self.sliders if name not in (self.curves_key.value, *animated)),
            key=lambda name: (name == self.x_key, [*settings.PROMINENT_KEYS, name].index(name)),
        )
        row += [self.sliders[name] for name in names[: max(2, NUM_PROMINENT_CONTROLS - num_menus)]]
        row.append(self.player.controls)
        further = [self.curves_key, *forms, *self.sliders.values()]
        return row, [*(widget for widget in further if widget not in row), self.band]

    @property
    def x_key(self) -> str:
        """The key on the x axis of the curves."""
        return settings.get_x_key(self.choice, self.x.value)

    @property
    def plane(self) -> tuple[str, str] | None:
        """The two variables drawn against each other, or None if x is a key."""
        return settings.get_planes(self.choice).get(self.x.value)

    def update(self) -> None:
        """Read the controls, show theory, and start the simulation."""
        self._retitle_and_hide_sliders()
        try:
            scenario = self._make_scenario()
            if computation.has_unknown_optimum(scenario):
                self._schedule_optimum_search(scenario)
                return
            self._solve_and_show_theory(scenario)
        except Exception as problem:  # a user's rule may raise any exception
            self._report_failure(problem)
            return
        self._schedule_refinement()

    def _solve_and_show_theory(self, scenario: AbstractScenario) -> None:
        """Solve and show theory with any stored runs, and discard the simulation of the previous scenario."""
        if self.solve_seconds > NOTICED_SECONDS or self.x_key != self.solved_x_key:
            self.message("progress", SOLVING_MESSAGE)
        self.solved_x_key = self.x_key
        began = time.perf_counter()
        theory, smooth = computation.solve_with_dense_grid(scenario, self.x_key)
        self.solve_seconds = time.perf_counter() - began
        self.scenario, self.theory, self.is_refined = scenario, theory, smooth is not None
        self.simulation = computation.load_first_runs(scenario)
        self.smooth = smooth if self.is_refined else computation.break_at_transitions(scenario, theory, self.x_key)
        self.background.stop()
        self.simulate_anyway.visible = False
        self.player.offer_times(*self._list_recorded_times())
        self.message("progress", "" if self.simulation is None else computation.describe_stored_runs(self.simulation))
        if theory is not None or self.simulation is not None:
            self.shown()

    def _schedule_optimum_search(self, scenario: AbstractScenario) -> None:
        """Search for the optimum of a scenario at the end of a drag, then show it.

        Until then a new page shows the scenario without optima.
        """
        without_optimum = computation.remove_optima(scenario)
        if self.theory is None:
            self._solve_and_show_theory(without_optimum)
        token = self.background.stop()
        self.message(
            "progress",
            OPTIMUM_SEARCH_MESSAGE
            + (SHOWN_WITHOUT_OPTIMUM_NOTE if self.scenario == without_optimum else PREVIOUS_SETTINGS_NOTE),
        )

        def search() -> None:
            if token == self.background.token:
                find_optimum, on_found = (
                    partial(computation.search_optima, scenario),
                    partial(self.scheduler.call_soon, self.update),
                )
                self.background.search_optimum(find_optimum, on_found)

        self.scheduler.call_later(DRAG_END_DELAY_MILLISECONDS, search)

    @property
    def results(self) -> Results:
        """The theory and simulation available so far."""
        return Results(self.scenario, self.simulation, self.theory, figure=self.scenario.figure, lines=self.smooth)

    @property
    def layout(self) -> Layout:
        """The roles of the axes: the selected key lies along x, and colours distinguish the lines of theory.

        Markers distinguish an axis that theory does not depend on, unless it is the only one.
        """
        either = self.results.either
        swept = [axis for axis in self.scenario.axis_names() if axis in either.dims and axis != self.x_key]
        curves = [axis for axis in settings.get_page_settings(self.choice).curves if axis != self.x_key]
        curve_axes = [axis for axis in (*swept, *curves) if either.sizes[axis] > 1]
        ignored = series.get_axes_ignored_by_theory(self.scenario)
        colours = [axis for axis in curve_axes if axis not in ignored] or curve_axes[:1] or [self.learner_key]
        markers = [axis for axis in curve_axes if axis not in colours]
        shown_axes = (self.x_key, *colours, *markers)
        rest = tuple(axis for axis in series.get_chart_axes(either) if axis not in shown_axes)
        return Layout(self.x_key, tuple(colours), rest, tuple(markers))

    @property
    def chart_content(self) -> ChartContent:
        """The content of the charts, at the selected recorded time if time is not x."""
        layout = self.layout
        last: dict[str, Any] = dict.fromkeys(layout.single_position_axes, -1)
        if self.player.axis in layout.single_position_axes:
            last[self.player.axis] = self.player.index
        results = series.select_position(add_time_dependent_keys(self.results), last)
        if self.plane is not None:
            results = self._select_results_up_to_time(results)
        axis = self.player.axis
        texts: tuple[str, ...] = ()
        if axis in layout.single_position_axes:
            texts = (make_value_labeller(self.scenario)(axis, self.player.selected_time),)
        return ChartContent(results, layout, self.plane, texts)

    @property
    def view(self) -> View:
        """The settings of the controls, from which the page can be restored."""
        scenario_keys, _ = apply_overrides(self._get_config_from_controls(), shlex.split(self.more_keys.value or ""))
        fixed = {name: self.kind.describe(name).default for name in self.kind.list_keys() if name not in ("zip",)}
        config = {name: v for name, v in scenario_keys.items() if name == self.learner_key or v != fixed.get(name)}
        return View(config, x=self.x.value, at=self.player.chosen)

    def close(self) -> None:
        """Stop the simulation and the animation."""
        self.background.stop()
        self.player.stop()

    def _change_abscissa(self) -> None:
        """Change the key on the x axis.

        The slider of the new key sets the end of the axis. Keys that had a list of values get their last value.
        """
        list_keys = (self.learner_key, *(name for name in self.given if settings.is_recorded_key(self.choice, name)))
        if self.curves_key.value == self.x_key:
            self.curves_key.value = ""
        list_keys += (self.curves_key.value,)
        lists = {name: v[-1] for name, v in self.given.items() if isinstance(v, list) and name not in list_keys}
        self.given = {**self.given, **lists}
        if self.plane is None and self.x_key in self.sliders:
            slider = self.sliders[self.x_key]
            end = settings.get_axis_end(self.choice, self.x_key, slider.value)
            if end != slider.value:
                slider.value = end  # the slider's callback updates the page
                return
        self.update()

    def _select_results_up_to_time(self, results: Results) -> Results:
        """Return the results up to the selected time: a plane shows the path so far."""
        if self.player.axis != self.x_key:
            return results
        lines = results.lines
        results = series.select_position(replace(results, lines=None), {self.x_key: slice(0, self.player.index + 1)})
        if lines is None:
            return results
        return replace(results, lines=lines.isel({self.x_key: lines[self.x_key].values <= self.player.selected_time}))

    def _list_recorded_times(self) -> tuple[str, np.ndarray]:
        """Return the axis and the values of recorded times (epochs, ...) that can be shown one by one.

        There are no such times if they are on the x axis.
        """
        for axis, values in series.get_recorded_times(self.scenario).items():
            if axis in settings.get_page_settings(self.choice).curves:
                continue
            if len(values) > 1 and (axis != self.x_key or self.plane is not None):
                return axis, values
        return "", np.zeros(0)

    def _schedule_refinement(self) -> None:
        """Postpone slow work to the end of a drag."""
        token = self.background.token

        def settle() -> None:
            if token == self.background.token:
                self.message("", "")
                self._refine_and_simulate()

        self.scheduler.call_later(DRAG_END_DELAY_MILLISECONDS, settle)

    def _refine_and_simulate(self) -> None:
        try:
            self.on_settled()
            self._refine_theory()
            self._simulate_within_time_limit()
        except Exception as problem:  # the equations of a rule that a user wrote may raise any exception
            self._report_failure(problem)
            return
        if self.plane is not None and ensure_tuple(self.scenario.axis_values().get("K", 2))[-1] == 1:
            self.message("error", SINGLE_STUDENT_HAS_NO_Q_MESSAGE)

    def _report_failure(self, problem: Exception) -> None:
        """Stop the simulation and show the error."""
        self.background.stop()
        self.message("error", describe_exception(problem))
        self.simulate_anyway.visible = False
        self.message("progress", "")

    def _get_config_from_controls(self) -> dict[str, Any]:
        """Return a config with the values of the controls.

        A key on the x axis has its largest value.
        """
        if not self.chosen.value:
            raise ConfigError(f"choose at least one {self.learner_key}")
        config = {**self.given, self.learner_key: list(self.chosen.value), "seeds": self.seeds.value}
        for menu in self.menus:
            config |= menu.config if menu.key != self.x_key else {}
        if self.band.visible:
            config[CORRECTIONS_KEY] = self.band.value
        for name, slider in self.sliders.items():
            if slider.visible:
                config[name] = settings.choose_list_or_slider_value(config.get(name), slider.value)
        if self.curves_key.value:
            listed = self.listed_curves[1] if self.curves_key.value == self.listed_curves[0] else ()
            typed = parse_value_line(self.values.value or "", listed)
            several, _ = apply_overrides({}, [f"{self.curves_key.value}=[{typed}]"])
            config |= {name: values[0] if len(values) == 1 else values for name, values in several.items()}
        return {name: value for name, value in config.items() if name not in self._inapplicable_keys}

    def _make_scenario(self) -> Any:
        config = settings.expand_page_config(self.choice, self._get_config_from_controls(), self.x.value)
        try:
            full_config, _ = apply_overrides(config, shlex.split(self.more_keys.value or ""))
        except ValueError as problem:
            raise ConfigError(f"other keys: {problem}") from None
        if any(file not in settings.files(self.given) for file in settings.files(full_config)):
            raise ConfigError(FILE_NOT_ALLOWED_MESSAGE.format("other keys"))
        return scenario_from(full_config)

    def _refine_theory(self) -> None:
        """Solve theory on a fine grid if this was too slow during the drag."""
        from theory import smooth

        values = computation.get_key_values(self.scenario, self.x_key)
        if self.theory is None or self.is_refined or len(values) < 2:
            return
        number = min(
            settings.RECORDED_LINE_POINTS,
            int(len(values) * MAX_SMOOTH_LINE_SOLVING_SECONDS / max(self.solve_seconds, 1e-3)),
        )
        if number > len(values):
            lines = smooth(self.scenario, self.x_key, number, self.theory)
            self.smooth = self.smooth if lines is None else lines
            self.shown()

    def _simulate_within_time_limit(self) -> None:
        seeds, seconds = self.scenario.seeds, estimate_cost(self.scenario).seconds
        num_seeds = seeds
        while num_seeds > NUM_PREVIEW_SEEDS and seconds * num_seeds / seeds > self.longest.value:
            num_seeds = max(NUM_PREVIEW_SEEDS, num_seeds // 2)
        stored = 0 if self.simulation is None else self.simulation.sizes["seed"]
        if seconds * num_seeds / seeds > self.longest.value or num_seeds <= stored < seeds:
            self.background.stop()
            text = f"not simulated: all {seeds:,} seeds would"
            if self.simulation is not None:
                text = f"{computation.describe_stored_runs(self.simulation, seeds)}: all"
            self.message("progress", f"{text} take about {_format_duration(seconds)}")
            self.simulate_anyway.visible = True
            return
        self.left_out = f" of {seeds:,}: all take about {_format_duration(seconds)}" if num_seeds < seeds else ""
        first = num_seeds if seconds * num_seeds / seeds <= MAX_SECONDS_WITHOUT_PREVIEW else self._num_preview_seeds
        self.background.start(self.scenario.model_copy(update={"seeds": num_seeds}), first)

    def _simulate_all_seeds(self) -> None:
        """Simulate all seeds regardless of the time limit."""
        self.simulate_anyway.visible, self.left_out = False, ""
        self.background.start(self.scenario, self._num_preview_seeds)

    @property
    def _num_preview_seeds(self) -> int:
        """Number of seeds shown before the remaining seeds are simulated.

        It is 1 if the charts would be empty without a simulation, and includes all seeds if stored seeds are shown.
        """
        if self.simulation is not None:
            return int(self.scenario.seeds)
        return NUM_PREVIEW_SEEDS if has_theory_lines(self.results) else 1

    def _receive_result(self, simulation: xr.Dataset | None, text: str) -> None:
        """Pass a result from the simulation's thread to the page's thread."""
        token = self.background.token

        def land() -> None:
            if token != self.background.token:
                return
            self.message("progress", text + (self.left_out if simulation is not None else ""))
            if simulation is not None:
                self.simulation = simulation
                self.shown()

        self.scheduler.call_soon(land)

    def _make_abscissa_menu(self, x: str) -> Any:
        symbols = {settings.get_slider_label(self.choice, name): name for name in self._list_abscissa_keys()}
        plane_labels = {
            f"{first}–{second} plane": name for name, (first, second) in settings.get_planes(self.choice).items()
        }
        return pmui.Select(label="x", options=symbols | plane_labels, value=x, **MENU_STYLE)

    def _list_abscissa_keys(self) -> list[str]:
        page, abscissas = settings.get_page_settings(self.choice), settings.list_abscissas(self.choice)
        possible = [name for name in settings.list_slider_keys(self.choice, self.given) if name in abscissas]
        return [name for name in possible if name not in page.further_slider_keys or self._has_key_value(name)]

    def _has_key_value(self, name: str) -> bool:
        """Return True if a key has a value (`epochs` and `updates` may be absent)."""
        return self.given.get(name, settings.get_default_value(self.choice, name)) is not None

    def _make_slider(self, name: str) -> Any:
        if name in settings.get_page_settings(self.choice).time_keys:
            low, high, step = self._get_earlier_time_slider_range()
            return sliders.make_typed_slider(low, high, step, self.given.get(name) or settings.round_float(high / 2))
        value, stops = self._get_initial_slider_value(name), settings.get_slider_stops(self.choice, name)
        if stops:
            return sliders.make_stop_slider(name, stops, value)
        low, high, step = settings.get_slider_range(self.choice, name)
        if isinstance(value, str):  # e.g. "best" is a stop before the numbers
            numbers = [settings.round_float(number) for number in np.arange(low, high + step / 2, step)]
            return sliders.make_stop_slider(name, numbers, value)
        return sliders.make_typed_slider(low, high, step, value)

    def _get_initial_slider_value(self, name: str) -> Any:
        """Return the initial value of a slider.

        It is the last value of a list, or the first stop for a key without a value.
        """
        value = self.given.get(name, settings.get_default_value(self.choice, name))
        if name in self.controls:
            return find_first_constant(self.functions.get(name, value), settings.get_default_value(self.choice, name))
        value = settings.get_slider_stops(self.choice, name)[0] if value is None else value
        return value[-1] if isinstance(value, list) else value

    def _retitle_and_hide_sliders(self) -> None:
        """Update the titles of the sliders, and hide sliders of keys that do not apply."""
        for menu in self.menus:
            menu.show_selected_sliders()
        for name, control in self.controls.items():
            control.set_visible(name != self.x_key)
        self._limit_earlier_time_sliders()
        names = [label for label, name in self.chosen.options.items() if name in (self.chosen.value or ())]
        self.chosen.styles = _get_field_style(", ".join(names), MAX_NARROW_MENU_LETTERS)
        end_keys = {self.x_key, *([get_kinds()[self.choice].USUAL_X_KEY] if self._is_default_axis_recorded() else [])}
        learner_names = settings.list_learner_names(
            self.choice, {**self.given, self.learner_key: self.chosen.value or ()}
        )
        for name, slider in self.sliders.items():
            needed = (
                settings.is_applicable_key(self.choice, learner_names, name) and name not in self._inapplicable_keys
            )
            needed &= name in settings.get_page_settings(self.choice).time_keys or self._has_key_value(name)
            needed &= name not in self.controls or name == self.x_key or self.controls[name].is_constant
            title = settings.get_slider_label(self.choice, name) + (" up to" if name in end_keys else "")
            sliders.set_slider_title(slider, title, needed and name != self.curves_key.value)

    @property
    def _inapplicable_keys(self) -> set[str]:
        """The keys that do not apply to the selected forms of the menus."""
        return set().union(*(menu.inapplicable_keys for menu in self.menus))

    def _limit_earlier_time_sliders(self) -> None:
        """Limit the sliders of earlier times to the end of the x axis."""
        for name in settings.get_page_settings(self.choice).time_keys:
            low, high, step = self._get_earlier_time_slider_range()
            slider = self.sliders[name]
            if slider.end != high:
                value = settings.round_float(min(max(slider.value, low), high))
                slider.param.update(start=low, end=high, step=step, value=value)

    def _get_earlier_time_slider_range(self) -> tuple[float, float, float]:
        """Return the minimum, maximum and step of a slider for times before the last time."""
        last = self.sliders[get_kinds()[self.choice].USUAL_X_KEY].value
        step = last / NUM_EARLIER_TIME_SLIDER_STEPS
        return settings.round_float(step), settings.round_float(last - step), settings.round_float(step)

    def _handle_change(self, event: Any) -> None:
        self.last_moved_slider = event.obj if event.obj in self.sliders.values() else self.last_moved_slider
        self.update()

    def _fill_curve_values_field(self) -> None:
        """Show the values of the selected key, one per curve, in the text field."""
        name = self.curves_key.value
        values_text = ""
        if name:
            values = self.listed_curves[1]
            if slider := self.sliders.get(name):  # None for names and sections that a config lists
                axes, sizes = settings.get_page_settings(self.choice).curves, getattr(self.theory, "sizes", {})
                num_curves = int(np.prod([len(self.chosen.value or "1"), *(sizes.get(axis, 1) for axis in axes)]))
                values = settings.list_nearby_values(self.choice, name, slider.value, num_curves)
            values_text = format_value_line(values)
        if self.values.value == values_text:
            self.update()
        self.values.param.update(
            label=self._get_values_title(name),
            visible=bool(name),
            value=values_text,
            styles=_get_field_style(values_text),
        )

    def _get_values_title(self, name: str) -> str:
        return settings.get_slider_label(self.choice, name) if name else ""

    def _list_curve_keys(self, listed_key: str) -> list[str]:
        """Return the keys whose values can be curves: keys with sliders, and the key with listed values."""
        possible = [name for name in self._list_abscissa_keys() if name not in self.controls]
        names = [name for name in possible if not settings.is_recorded_key(self.choice, name)]
        return [*dict.fromkeys([*names, *([listed_key] if listed_key else [])])]

    @property
    def _arrow_key_slider(self) -> Any:
        """The last used slider, or else the slider of recorded times or the first one."""
        visible_sliders = [slider for slider in self.sliders.values() if slider.visible]
        if self.last_moved_slider in visible_sliders:
            return self.last_moved_slider
        return self.player.slider if self.player.controls.visible else visible_sliders[0]

    def move_last_slider(self, num_steps: int) -> None:
        """Move the last used slider."""
        sliders.move_slider(self._arrow_key_slider, num_steps)

    @property
    def arrow_key_hint(self) -> str:
        """The label and the value of the slider that the arrow keys move."""
        slider = self._arrow_key_slider
        return f"← {slider.label} = {slider.value:g} →" if not isinstance(slider.value, str) else slider.label

    def _is_default_axis_recorded(self) -> bool:
        return settings.is_recorded_key(self.choice, get_kinds()[self.choice].USUAL_X_KEY)


def _get_field_style(text: str, max_narrow_letters: int = MAX_NARROW_FIELD_LETTERS) -> dict[str, str]:
    """Return the style of a field in the grid of controls, which is wide for a long text."""
    return {"grid-column": "span 2"} if len(text) > max_narrow_letters else {}


def _format_duration(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{float(f'{seconds / size:.2g}'):g} {unit}"
    return f"{float(f'{seconds:.2g}'):g} seconds"
