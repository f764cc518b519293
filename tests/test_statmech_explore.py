"""The explorer: sliders define a scenario, the page shows its theory and simulation, and its config can be copied."""

import html
import json
import os
import re
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from conftest import brief, start_of

pytest.importorskip("panel", reason="the extra [explore] is not installed")

import first_runs
from test_figures import NAMES, tiny

import simulate
import theory
from figures import curves as series
from figures import legends
from figures.explorer import computation, settings
from figures.explorer.chart_content import ChartContent
from figures.explorer.computation import LOW_PRIORITY, BackgroundSimulator, _solve_cached
from figures.explorer.page_charts import arrange_content, describe_chart
from figures.explorer.pages import View
from figures.explorer.settings import FILE_NOT_ALLOWED_MESSAGE
from figures.labels import plain_from_latex
from statmech import Inference, Results, Scenario, Stopping, StoredExamples
from statmech.config import config_files
from statmech.errors import ConfigError
from statmech.keys.scenario import get_kinds
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.parameters.parameter_fields import get_parameters, parameter
from statmech.results import export_and_citations
from statmech.results.comparison import distances
from statmech.results.results import as_results
from statmech.stores.sweep_cost import estimate_cost
from statmech.students.rules import RULES, Hebb

pytestmark = pytest.mark.quick

SMALL = {"N": 50, "seeds": 3}


@pytest.mark.parametrize("choice", settings.get_page_settings_by_kind())
def test_a_page_begins_with_a_scenario_that_theory_solves(choice):
    scenario = scenario_from(settings.expand_page_config(choice, settings.get_page_settings(choice).start))
    assert choice == settings.get_page_kind(scenario)
    assert not scenario.unsolved


PRESETS = {
    title: (choice, view)
    for choice, page in settings.get_page_settings_by_kind().items()
    for title, view in page.preset_views.items()
}


@pytest.mark.parametrize("title", PRESETS)
def test_a_preset_is_a_valid_view_that_its_link_restores(title):
    from figures.explorer.page import complete_view

    choice, view = PRESETS[title]
    made = complete_view(choice, view)
    config_, again = (
        settings.expand_page_config(choice, it.config, it.x)
        for it in (made, settings.read(settings.format_query(made)))
    )
    assert scenario_from(config_) == scenario_from(again)
    assert settings.read(settings.format_query(made)).x == made.x


def test_there_are_presets_of_figures_1_to_4_and_of_each_paper():
    for said in (*(f"Figure {n}" for n in (1, 2, 3, 4)), "MinOver", "Daume", "Attentive", "Jackson"):
        assert [title for title in PRESETS if said in title], said


def test_the_ensemble_opens_as_figure_3_does_and_variety_in_the_plane():
    from figures.explorer.page import make_opening_view, named

    scenario = config_files.load("ensemble")
    view = make_opening_view(scenario, named(scenario, "ensemble"))
    assert (view.x, view.over) == ("K", "one student")
    assert view.config["K"] == list(scenario.K)
    variety = config_files.load("variety")
    assert make_opening_view(variety, named(variety, "variety")).x == "R-q"
    assert make_opening_view(Scenario(rule="hebb", t=[1, 2], flip=[0.0, 0.1, 0.2])).x == "flip"
    assert make_opening_view(Scenario(rule="hebb", t=[1, 2])).x == "t"


def having(known, key):
    """The first of these classes that has a parameter, in a list; an empty one if none has."""
    return [name for name, kind in known.items() if key in get_parameters(kind)][:1]


@pytest.mark.parametrize("choice", settings.get_page_settings_by_kind())
def test_every_number_can_lie_along_x(choice):
    start = settings.get_page_settings(choice).start
    for x in settings.list_abscissas(choice):
        if settings.get_default_value(choice, settings.get_x_key(choice, x)) is None and x not in start:
            continue  # updates, where epochs are given
        key = settings.get_x_key(choice, x)
        kind = get_kinds()[choice]
        known = kind.choices()
        learning = {kind.CHOICE: [str(name) for name in np.ravel(start[kind.CHOICE])][:1]}
        learning |= {of: one for of in known if (one := having(known[of], key))}
        value = start.get(key, settings.get_default_value(choice, key))
        given = {**start, **learning, key: settings.get_axis_end(choice, key, value)}
        conditions = kind.list_key_conditions()
        if key in conditions:
            deciding_key, [value, *_] = conditions[key]
            given[deciding_key] = value
        others = conditions.keys() - settings.list_slider_keys(choice, given)
        given = {name: value for name, value in given.items() if name not in others}
        if kind.CHOICE == "rule":
            given["start"] = start_of(learning["rule"][0])
        scenario = scenario_from(settings.expand_page_config(choice, given, x))
        values = scenario.recorded_coordinates.get(key, scenario.axis_values().get(key))
        assert len(values) > 2, key


def test_theory_is_dense_between_the_values_along_x_and_has_them():
    for values in ([0.0, 0.5, 2.0], [0.1, 1.0, 20.0]):
        dense = settings.make_theory_grid("rule", "t", values, settings.RECORDED_LINE_POINTS)
        assert len(dense) > settings.RECORDED_LINE_POINTS
        assert set(values) <= set(dense)
        assert dense == sorted(set(dense))
    assert settings.make_theory_grid("rule", "K", [1, 3, 5, 11], 40) == list(range(1, 12))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("rule=hebb&t=50&view.x=seeds", "abscissa"),
        ("rule=hebbb&t=50", "hebb"),
        ("rule=hebb&t=50&nonsense=1", "nonsense"),
        ("rule=hebb&t=50&flip=0.7", "flip"),
        ("rule=hebb&t=[", "t=["),
        ("K=3", "must contain one of the keys"),
        ("rule=hebb&t=50&inputs=rows", "files"),
        ("rule=hebb&t=50&inputs.rows.path=/etc/passwd", "files"),
        ("rule=hebb&t=50&view.show=beauty", "beauty"),
        ("rule=hebb&t=50&view.at=now", "view.at"),
        ("rule=hebb&t=50&view.color=red", "color"),
        ("rule=hebb&t=50&view=1", "section"),
        ("rule=hebb&t=50&view.over=pi", "unit"),
        ("rule=3&t=50", "rule"),
        ("rule=3&t=50&eta=0.5", "rule"),
        ("rule=hebbb&t=50&eta=0.5", "hebbb"),
        ("rule=hebb&t=x", "t"),
        ("rule=hebb&K=0&t=50&view.x=K", "K"),
    ],
)
def test_a_bad_link_is_refused_with_one_message(query, said):
    with pytest.raises(ConfigError, match=r"^link: ") as refused:
        settings.read(query)
    assert said in str(refused.value)


def test_a_link_of_one_rule_may_state_its_parameters():
    assert settings.read("rule=perceptron&t=50&eta=0.5").config["eta"] == 0.5


@pytest.mark.parametrize("choice", settings.get_page_settings_by_kind())
def test_the_address_of_a_page_opens_a_page_of_the_same_kind(choice):
    """Descents and tables have losses, too."""
    from figures.explorer.page import choose_opening_page, complete_view

    view = complete_view(choice, settings.get_page_settings(choice).view)
    again = settings.read(settings.format_query(view))
    assert choose_opening_page(view=again)[0] == choice
    assert again.config == view.config


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Both 'variant':PendingDeprecationWarning")  # Panel's own, of its downloads
def test_a_page_of_a_bad_link_shows_the_message_and_opens_as_usual():
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer.page import ExplorerPage

    with set_curdoc(Document()):
        page = ExplorerPage(query=[("rule", "nonsense<b>")])
        assert page.message.visible
        assert "<" not in page.message.object
        assert page.source.choice == "rule"
        page.close()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Both 'variant':PendingDeprecationWarning")
def test_a_notebook_shows_the_same_controls_and_charts():
    import asyncio

    import statmech

    async def cell():
        view = statmech.explore("ensemble", rule="hebb", K=[1, 3], N=50, t=[1, 2], seeds=2)
        await asyncio.sleep(2)
        return view

    view = asyncio.run(cell())
    assert hasattr(view, "_repr_mimebundle_")
    assert hasattr(view, "servable")
    from panel.pane import Bokeh

    assert len(list(view.select(Bokeh))) == 2
    with pytest.raises(ConfigError, match="study of data sets"):
        statmech.explore("passes")


def test_a_slider_keeps_the_digits_that_its_steps_add_and_the_config_has_none():
    """A rounded value would be sent to the browser, which may have moved on."""
    from figures.explorer.sliders import make_typed_slider

    slider = make_typed_slider(0.05, 3, 0.05, 1)
    slider._process_events({"value": 1.3000000000000003})
    assert slider.value == 1.3000000000000003
    assert settings.choose_list_or_slider_value(1.0, slider.value) == 1.3


def test_every_kind_of_scenario_with_a_theory_can_be_dragged():
    without = {"rule_clusters", "rule_population"}  # have no sliders yet
    assert (
        set(settings.get_page_settings_by_kind())
        == {choice for choice, kind in get_kinds().items() if not kind.on_data} - without
    )


@pytest.mark.parametrize("choice", settings.get_page_settings_by_kind())
def test_every_number_that_may_be_an_axis_has_a_slider(choice):
    dragged, kind = settings.list_slider_keys(choice), get_kinds()[choice]
    numbers = {name for name in kind.axis_names() if kind.describe(name).numeric}
    assert numbers - set(settings.get_page_settings(choice).keys_without_slider) <= set(dragged)
    for name in dragged:
        if not settings.get_slider_stops(choice, name):
            low, high, step = settings.get_slider_range(choice, name)
            assert low < high
            assert 0 < step < high - low


def test_a_rule_of_the_user_has_its_slider(monkeypatch):
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Cautious(Hebb):
        caution: float = parameter(0.5, "how cautious", above=0.0, below=1.0)

    monkeypatch.setitem(RULES, "cautious", Cautious)
    assert "caution" in settings.list_slider_keys("rule")
    assert settings.get_slider_range("rule", "caution") == pytest.approx((0.01, 0.99, 0.01))
    assert settings.is_applicable_key("rule", ["cautious"], "caution")
    assert not settings.is_applicable_key("rule", ["hebb"], "caution")


@pytest.mark.parametrize("name", config_files.list_shipped_configs())
def test_a_config_written_and_read_is_the_same_config(name, tmp_path):
    scenario = config_files.load(name)
    (tmp_path / "again.yaml").write_text(config_files.format_config(scenario))
    assert config_files.load(tmp_path / "again.yaml") == scenario


@pytest.mark.parametrize(
    "name", [name for name in config_files.list_shipped_configs() if not config_files.load(name).on_data]
)
def test_every_shipped_config_with_a_theory_opens(name):
    given = settings.reduce_config(config_files.load(name))
    choice = settings.get_page_kind(config_files.load(name))
    assert choice == settings.get_page_kind(scenario_from(settings.expand_page_config(choice, given)))


@pytest.mark.slow
def test_theory_solved_one_by_one_equals_theory_of_all():
    scenario = Scenario(rule=["hebb", "perceptron"], margin=0.2, K=3, flip=0.1, t=[0.5, 2.0])
    joined, whole = _solve_cached(scenario), theory.solve(scenario)
    for name in whole.data_vars:
        np.testing.assert_allclose(joined[name], whole[name], rtol=1e-7)
    assert json.loads(joined.attrs["config"]) == scenario.config()


def curves_of(results, layout, name, unit=""):
    """The curves of a chart of one variable."""
    part = arrange_content(ChartContent(results, layout))
    return [drawn.curve for drawn in describe_chart(part, name, results.scenario.variables[name], unit).curves]


def test_points_are_means_with_the_standard_errors_that_compare_uses():
    scenario = StoredExamples(learner=["max_stability", "hebb"], alpha=[1, 2, 3], epochs=10, **SMALL)
    sim, sol = simulate.run(scenario), theory.solve(scenario)
    layout = series.choose_default_layout(as_results(sim))
    assert (layout.x, layout.colour_axes, layout.single_position_axes) == ("alpha", ("learner",), ("epochs",))
    made = curves_of(series.select_position(as_results(sim, sol), {"epochs": 0}), layout, "eps_g")
    expected = distances(sim, sol).eps_g.isel(epochs=0).values
    for curve, distance in zip(made, expected, strict=True):
        np.testing.assert_allclose((curve.mean - curve.theory) / curve.error, distance, rtol=1e-9)


@pytest.mark.slow
def test_divided_by_theory_every_theory_is_one():
    scenario = Scenario(rule="hebb", K=3, t=[1.0, 2.0], **SMALL)
    sim, sol = simulate.run(scenario), theory.solve(scenario)
    layout = series.choose_default_layout(as_results(sim))
    [curve] = curves_of(as_results(sim, sol), layout, "eps_g", "theory")
    np.testing.assert_allclose(curve.theory, 1.0)
    [vote] = curves_of(as_results(sim, sol), layout, "eps_g_majority_vote", "one student")
    np.testing.assert_allclose(vote.theory, sol.eps_g_majority_vote / sol.eps_g.isel(student=0))


@pytest.mark.slow
def test_a_newer_scenario_ends_an_older_one():
    landed, done = [], threading.Event()

    def show(made, message):
        if made is not None:
            landed.append(made.attrs["config"])
        if len(landed) == 2:
            done.set()

    background = BackgroundSimulator(show)
    scenarios = [Scenario(rule="hebb", t=[1.0], eta=eta, N=100, seeds=8) for eta in (0.5, 1.0, 2.0)]
    for scenario in scenarios:
        background.start(scenario)
    assert done.wait(120)
    assert [(json.loads(it)["eta"], json.loads(it)["seeds"]) for it in landed] == [(2.0, 4), (2.0, 8)]


def simulated_while_busy(background, scenarios, may_end, begun):
    """Start scenarios one after the other while the first is being compiled, and wait for the last."""
    background.start(scenarios[0])
    assert begun.wait(60)
    for scenario in scenarios[1:]:
        background.start(scenario)
    may_end.set()


def test_a_drag_during_a_compilation_begins_the_last_simulation_alone(monkeypatch):
    compiled, begun, may_end, done = [], threading.Event(), threading.Event(), threading.Event()

    def run(scenario, progress, before_unit):
        compiled.append(scenario.K)
        begun.set()
        assert may_end.wait(60)

    monkeypatch.setattr(simulate, "run", run)
    background = BackgroundSimulator(lambda made, message: done.set() if message == "simulated 2 seeds" else None)
    scenarios = [Scenario(rule="hebb", t=[1.0], N=50, K=K, seeds=2) for K in range(1, 21)]
    simulated_while_busy(background, scenarios, may_end, begun)
    assert done.wait(60)
    assert compiled == [1, 20]


def test_no_unit_of_a_superseded_simulation_begins(monkeypatch):
    """Not even those that it had started ahead: each may have a program of its own."""
    from simulate.execution import work_units as units_of_work
    from simulate.kinds import online_perceptron

    units, begun, may_end, done = [], threading.Event(), threading.Event(), threading.Event()

    def run(self, unit):
        units.append(unit.cells[0].rule.eta)
        begun.set()
        assert may_end.wait(60)
        return []

    monkeypatch.setattr(online_perceptron.Simulator, "run", run)
    background = BackgroundSimulator(lambda made, message: done.set() if made is not None and made.eta == 2 else None)
    scenarios = [Scenario(rule="hebb", t=[1.0], N=50, K=[*range(1, 9)], eta=eta, seeds=2) for eta in (1, 2)]
    monkeypatch.setattr(units_of_work, "count_cores", lambda: 1)
    simulated_while_busy(background, scenarios, may_end, begun)
    assert done.wait(60)
    assert units == [1, *[2] * 8]


def test_an_impossible_simulation_is_reported_and_not_raised():
    messages, done = [], threading.Event()

    def show(made, message):
        messages.append(message)
        if "memory" in message or "bytes" in message or "GiB" in message:
            done.set()

    BackgroundSimulator(show).start(Scenario(rule="hebb", engine="vectors", N=10**12, t=[1e-12], seeds=4))
    assert done.wait(60), messages


@pytest.mark.parametrize("problem", [ZeroDivisionError("by zero"), ArithmeticError("hebb has diverged"), SystemExit(3)])
def test_every_error_of_a_simulation_is_shown_on_the_page(problem, monkeypatch):
    messages, done = [], threading.Event()

    def run(scenario, progress, before_unit):
        progress(1, 2)
        raise problem

    def show(made, message):
        messages.append(message)
        if not message.startswith("simulating"):
            done.set()

    monkeypatch.setattr(simulate, "run", run)
    BackgroundSimulator(show).start(Scenario(rule="hebb", t=[1.0], **SMALL))
    assert done.wait(60), messages
    assert messages[-1] == f"{type(problem).__name__}: {problem}"


@pytest.mark.slow
def test_a_rule_that_diverges_is_reported_on_the_page():
    messages, done = [], threading.Event()

    def show(made, message):
        messages.append(message)
        if "diverged" in message:
            done.set()

    BackgroundSimulator(show).start(Scenario(rule="perceptron", eta=1e308, t=[1.0, 10.0], **SMALL))
    assert done.wait(60), messages


@pytest.fixture
def live():
    """Sliders of a rule, with the messages shown."""
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer.live_scenario import ScenarioControls

    messages = []
    with set_curdoc(Document()):
        made = ScenarioControls(
            View(dict(settings.get_page_settings("rule").start), x="t"),
            "rule",
            lambda: None,
            lambda: None,
            lambda *message: messages.append(message),
        )
        yield made, messages
        made.close()


@pytest.mark.parametrize(("seconds", "lines", "first"), [(0.9, True, 16), (1.1, True, 4), (1.1, False, 1)])
def test_all_seeds_come_together_where_they_take_no_longer_than_a_second(seconds, lines, first, live, monkeypatch):
    """The program of fewer seeds is another one, which would be compiled as well."""
    started = []
    monkeypatch.setattr(
        "figures.explorer.live_scenario.estimate_cost", lambda scenario: SimpleNamespace(seconds=seconds)
    )
    monkeypatch.setattr("figures.explorer.live_scenario.has_theory_lines", lambda results: lines)
    made, _ = live
    made.background.start = lambda scenario, first: started.append((scenario.seeds, first))
    made.scenario = Scenario(rule="hebb", t=[1.0], seeds=16)
    made._simulate_within_time_limit()
    assert started == [(16, first)]


def test_the_time_of_a_simulation_is_that_of_the_seeds_that_the_button_starts(live, monkeypatch):
    monkeypatch.setattr("figures.explorer.live_scenario.estimate_cost", lambda scenario: SimpleNamespace(seconds=90))
    made, messages = live
    made.scenario = Scenario(rule="hebb", t=[1.0], seeds=20)
    made._simulate_within_time_limit()
    assert messages[-1] == ("progress", "not simulated: all 20 seeds would take about 90 seconds")
    assert made.simulate_anyway.visible
    started = []
    made.background.start = lambda scenario, first: started.append(scenario.seeds)
    made._simulate_all_seeds()
    assert started == [20]


def test_digits_of_numbers_of_seeds_are_grouped_as_in_the_legend(monkeypatch):
    monkeypatch.setattr("simulate.run", lambda *_: None)
    messages = []
    background = BackgroundSimulator(lambda made, message: messages.append(message))
    background._run_seeds(Scenario(rule="hebb", t=1, seeds=1024), background.token)
    assert messages == ["simulating 1,024 seeds: 0%", "simulated 1,024 seeds"]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_proposed_values_of_curves_fit_into_a_chart(count, live):
    made, _ = live
    made.chosen.value = ["hebb", "perceptron", "adatron", "adatron_textbook"][:count]
    made.sliders["K"].value = 3
    made.update()
    made.curves_key.value = "K"
    assert made.values.value == {1: "2, 3, 4", 2: "2, 3, 4", 3: "2, 3", 4: "3"}[count]


@pytest.mark.parametrize(
    "typed",
    [
        "'inputs={rows: {path: FILE}}' K=1",
        "inputs.rows.path=FILE",
        "inputs=rows",
        "'inputs=[sphere, {rows: {path: FILE}}]'",
        "'zip={inputs: [{rows: {path: FILE}}, sphere], K: [1, 3]}'",
    ],
)
def test_no_file_is_named_on_a_page(typed, live, tmp_path, monkeypatch):
    from statmech.inputs import table_files

    monkeypatch.setattr(table_files, "load_input_table", lambda path: pytest.fail(f"{path} is read"))
    made, messages = live
    made.more_keys.value = typed.replace("FILE", str(tmp_path / "private"))
    assert [text for _, text in messages if text] == [FILE_NOT_ALLOWED_MESSAGE.format("other keys")]


def test_a_file_that_the_config_names_is_kept_as_it_is(tmp_path):
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer.live_scenario import ScenarioControls

    np.savetxt(tmp_path / "rows.csv", np.random.default_rng(0).normal(size=(20, 5)), delimiter=",")
    rows = {"rows": {"path": str(tmp_path / "rows.csv")}}
    given = settings.reduce_config(Scenario(rule="hebb", N=5, t=[1.0], seeds=2, inputs=rows))
    messages = []
    with set_curdoc(Document()):
        made = ScenarioControls(
            View(given, x="t"), "rule", lambda: None, lambda: None, lambda *message: messages.append(message)
        )
        made.more_keys.value = "flip=0.1"
        assert made.scenario.flip == 0.1
        assert made.scenario.config()["inputs"] == rows
        made.more_keys.value = "'inputs={rows: {path: /etc/passwd}}'"
        made.close()
    assert messages[-2:] == [("error", FILE_NOT_ALLOWED_MESSAGE.format("other keys")), ("progress", "")]


@pytest.fixture
def page():
    """A page as it opens, whose document a browser shows."""
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer.page import ExplorerPage

    document = Document()
    with set_curdoc(document):
        made = ExplorerPage(query=[("rule", "hebb"), ("t", "5"), ("K", "3"), ("view.x", "t")])
        made.view().server_doc(document)
        made.source.scheduler.call_later = lambda *_: None  # nothing is simulated
        made.source.update()
        yield made
        made.close()


WARNED = pytest.mark.filterwarnings("ignore:Both 'variant':PendingDeprecationWarning")  # Panel's own, of its downloads


@pytest.mark.slow
@WARNED
def test_a_step_of_a_drag_replaces_data_and_no_models(page, monkeypatch):
    """Whenever a model is replaced Bokeh lists all of them, which takes longer than solving."""
    from bokeh.document.models import DocumentModelManager

    calls = []
    recompute = DocumentModelManager.recompute
    monkeypatch.setattr(DocumentModelManager, "recompute", lambda self: calls.append(self) or recompute(self))
    before = page.charts.charts["eps_g_majority_vote"].curves["theory"].data["y"]
    page.source.sliders["eta"].value = 0.55
    page.source.x.value = "K"  # other axes need other charts
    assert calls
    calls.clear()
    for eta in (0.6, 0.65):
        page.source.sliders["eta"].value = eta
    assert page.charts.charts["eps_g_majority_vote"].curves["theory"].data["y"] != before
    assert not calls


@pytest.mark.slow
@WARNED
def test_a_busy_server_does_not_change_the_page(page):
    """Panel would send all that the page holds through the list of its models, twice a step."""
    from panel.io.state import state

    state._add_busy_event("a step")
    assert state.busy
    assert not page.whole.busy
    state._remove_busy_event("a step")


@pytest.mark.slow
@WARNED
def test_what_is_prepared_is_what_the_page_opens_with(monkeypatch):
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer import computation, page

    computation._solve_config.cache_clear()
    page.prepare()
    assert computation._solve_config.cache_info().misses == 1
    with set_curdoc(Document()):
        made = page.ExplorerPage()
        made.source.scheduler.call_later = lambda *_: None
        made.source.update()
        assert made.source.theory is not None
        made.close()
    assert computation._solve_config.cache_info().misses == 1


@pytest.mark.slow
def test_a_rule_that_is_defined_again_is_solved_again(monkeypatch):
    class Again(Hebb):
        pass

    scenario = Scenario(rule=["hebb"], t=[1.0])
    first = _solve_cached(scenario)
    assert np.shares_memory(_solve_cached(scenario).R.values, first.R.values)
    monkeypatch.setitem(RULES, "hebb", Again)
    assert not np.shares_memory(_solve_cached(scenario).R.values, first.R.values)


@pytest.mark.slow
def test_the_band_of_one_run_follows_N_and_nothing_is_solved_for_it():
    from figures.explorer import computation

    made = {N: Scenario(rule="hebb", N=N, t=[1.0, 10.0], corrections=True) for N in (20, 500)}
    _solve_cached(made[20])
    before = computation._solve_config.cache_info().misses
    for N, scenario in made.items():
        found, expected = _solve_cached(scenario), theory.solve(scenario)
        assert int(found.N) == N
        assert found.attrs["config"] == expected.attrs["config"]
        for name in expected:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, err_msg=str(name))
    assert computation._solve_config.cache_info().misses == before


@pytest.mark.slow
@WARNED
def test_the_switch_of_the_band_adds_it_to_the_charts_and_to_the_link(page):
    chart = page.charts.charts["eps_g_majority_vote"]
    assert chart.curves["bands"].data["x"] == []
    page.charts.variables.value = ["eps_g"]
    page.source.sliders["N"].value = 100
    page.source.band.value = True
    [wide, *_] = page.charts.charts["eps_g"].curves["bands"].data["y"]
    page.source.sliders["N"].value = 10_000
    [narrow, *_] = page.charts.charts["eps_g"].curves["bands"].data["y"]
    width = [np.subtract(y[-1], y[0]) for y in (wide, narrow)]  # of the first place: the band runs there and back
    assert width[0] / width[1] == pytest.approx(10, rel=1e-9)
    assert settings.read(settings.format_query(page.source.view)).config["corrections"] is True
    page.source.band.value = False
    assert page.charts.charts["eps_g"].curves["bands"].data["x"] == []
    assert "corrections" not in page.source.view.config


@pytest.mark.slow
@WARNED
def test_ratios_have_common_limits_and_a_time_that_is_not_along_x_is_defined(page):
    page.charts.variables.value = ["eps_g_majority_vote", "eps_g_weight_mean"]
    page.source.x.value = "K"
    limits = [chart.limits for chart in page.charts.charts.values()]
    assert limits[0] != limits[1]
    page.charts.unit.value = "one student"
    low, high = (chart.limits for chart in page.charts.charts.values())
    assert low == high
    assert "<i>t</i>: steps / <i>N</i>" in page.charts.notes.object
    page.source.x.value = "t"
    assert "<i>t</i>: steps" not in page.charts.notes.object


@pytest.mark.slow
@WARNED
def test_the_legend_names_keys_as_the_sliders_do_and_N_only_beside_runs(page):
    page.source.sliders["flip"].value = 0.1
    assert "flip = 0.1" in page.charts.legend.object
    assert "flip: probability that a label is flipped" in page.charts.notes.object
    assert "<i>N</i> = " not in page.charts.legend.object  # theory is the limit of large N
    page.source.simulation = simulate.run(page.source.scenario.model_copy(update={"seeds": 2}))
    page.source.shown()
    assert "<i>N</i> = 10,000, 2 seeds" in page.charts.legend.object
    page.charts.page_note = settings.get_page_settings("prior").note + ", and sqrt(N)"
    page.source.shown()
    assert "Finite <i>N</i> smears out the transitions between fixed points, and √<i>N</i>" in page.charts.notes.object


@pytest.mark.slow
@WARNED
def test_the_legend_counts_curves_that_have_no_colour_left(page):
    page.source.chosen.value = ["hebb", "perceptron", "adatron"]
    page.source.curves_key.value = "K"
    assert "curves" not in page.charts.legend.object
    page.source.values.value = "2, 3, 4"
    assert "7 of 9 curves" in page.charts.legend.object


@pytest.mark.slow
@WARNED
def test_recorded_times_have_one_slider_in_the_first_row_and_long_menus_are_wide(page):
    page.source.chosen.value = ["hebb", "perceptron", "adatron"]
    assert page.source.chosen.styles == {"grid-column": "span 2"}
    page.source.chosen.value = ["hebb"]
    assert page.source.chosen.styles == {}
    view = View({"learner": ["minover"], "alpha": 2, "epochs": [1, 5000], "N": 20, "seeds": 2}, x="alpha")
    page._open_view("learner", view)
    controls = page.source
    controls.update()
    assert controls.sliders["epochs"] not in controls.row
    assert controls.sliders["epochs"] in controls.further_controls
    assert [*controls.player.slider.options] == ["1", "5,000"]


def test_a_number_of_steps_is_stated_once():
    scenario = Inference(prior="gauss", alpha=[1, 2], steps=3, N=20, seeds=2)
    results = Results(scenario, simulate.run(scenario))
    part = arrange_content(ChartContent(results, series.Layout("alpha", (), ()), title_texts=("step 3",)))
    texts = legends.make_title_texts([part])
    assert "3 steps" in texts
    assert "step 3" not in texts
    earlier = arrange_content(ChartContent(results, series.Layout("alpha", (), ()), title_texts=("step 2",)))
    assert {"step 2", "3 steps"} <= {*legends.make_title_texts([earlier])}


def test_a_schedule_is_one_number_on_the_page():
    start = {"rule": "hebb", "N": 50, "seeds": 3, "t": 5}
    assert "schedule" not in settings.expand_page_config("rule", start)
    assert scenario_from(settings.expand_page_config("rule", {**start, "schedule": 5})).schedule == 5
    assert settings.reduce_config(Scenario(rule="hebb", t=[1, 2], schedule={"t0": [2, 5]}))["schedule"] == [2, 5]


def test_every_error_of_theory_is_shown_on_the_page(live, monkeypatch):
    def solve(scenario):
        raise ZeroDivisionError("of a user's own rule")

    monkeypatch.setattr(sys.modules["theory.solutions"], "solve_each", solve)
    made, messages = live
    made.more_keys.value = "flip=0.1"
    assert messages[-2:] == [("error", "ZeroDivisionError: of a user's own rule"), ("progress", "")]


def words_on(page):
    """Everything that the menus, fields, sliders, charts and messages of a page say in words."""
    live = page.source
    lists = [live.x, live.curves_key, live.chosen, page.charts.variables, page.charts.unit]
    lists += [menu.menu for menu in live.menus if menu.menu.visible]
    yield from (word for menu in lists for word in menu.options)
    yield from (slider.label for slider in live.sliders.values() if slider.visible)
    yield from (plain_from_latex(curve.label) for chart in page.charts.charts.values() for curve in chart.shown)
    for pane in (page.charts.legend, page.charts.notes):
        yield html.unescape(re.sub("<[^>]*>", "", pane.object))
    yield live.values.value
    if page.message.visible:
        yield html.unescape(page.message.object)


SHOWN = [*settings.get_page_settings_by_kind(), *NAMES]


@pytest.mark.slow
@WARNED
@pytest.mark.parametrize("name", SHOWN)
def test_no_word_of_a_page_is_html_json_latex_or_the_name_of_a_key(name, data_folder):
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer.page import ExplorerPage, complete_view, named
    from figures.explorer.pages import explain_missing_page

    if name in settings.get_page_settings_by_kind():
        given = {"view": complete_view(name, settings.get_page_settings(name).view)}
    else:
        scenario = tiny(name)
        if explain_missing_page(scenario):
            return
        given = {"scenario": scenario, "view": named(scenario, name)}
    with set_curdoc(Document()):
        page = ExplorerPage(**given)
        page.view()
        page.source.scheduler.call_later = lambda *_: None
        page.source.update()
        words = list(words_on(page))
        page.close()
    assert not [word for word in words if re.search(r"[<>{}$\\_]|&\w+;", word)]
    keys = {"hebb", "adatron", "relu", "brownian-bridge", "as-printed"}
    assert not keys & set(words)


@WARNED
def test_sections_are_listed_by_their_names_and_can_be_edited():
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer.page import ExplorerPage

    scenario = config_files.load("forgetting")
    starts = scenario.config()["start"]
    with set_curdoc(Document()):
        live = ExplorerPage(scenario).source
        live.scheduler.call_later = lambda *_: None
        assert live.values.value == "one unit, both units"
        assert live._get_config_from_controls()["start"] == starts
        for name in ("", "start"):  # and chosen again
            live.curves_key.value = name
        assert live._get_config_from_controls()["start"] == starts
        live.values.value = "both units"
        assert live._get_config_from_controls()["start"] == starts[1]
        live.close()


def test_names_that_contain_html_are_drawn_as_written():
    from figures.explorer import page

    evil = "</textarea>$$<img src=x onerror=alert(1)>\\{"
    assert "<" not in page._escape_markup(evil)
    assert not set("<$\\{") & set(page._sanitise_latex_name(evil))
    assert not {"<", "$$"} & {
        page._sanitise_equation(evil)[at : at + size] for size in (1, 2) for at in range(len(evil))
    }


def test_a_netcdf_file_contains_both_datasets():
    import io

    import xarray as xr

    scenario = Stopping(boundary=["constant", "brownian-bridge"], error_rate=[0.1, 0.2], walks=50, **SMALL)
    sim, sol = simulate.run(scenario), theory.solve(scenario)
    with xr.open_dataset(io.BytesIO(export_and_citations.make_netcdf(sim, sol)), engine="scipy") as found:
        np.testing.assert_array_equal(found.features, sim.features)
        np.testing.assert_array_equal(found.features_theory, sol.features)
        assert json.loads(found.attrs["config"]) == scenario.config()


def test_a_table_has_a_row_per_point_and_variable():
    scenario = Stopping(boundary=["constant", "brownian-bridge"], error_rate=[0.1, 0.2], walks=50, **SMALL)
    sim, sol = simulate.run(scenario), theory.solve(scenario)
    made = export_and_citations.make_export_table(sim, sol).set_index(["boundary", "error_rate", "variable"])
    row = made.loc[("constant", 0.2, "features")]
    here = sim.features.sel(boundary="constant", error_rate=0.2)
    assert row["simulation"] == pytest.approx(here.mean().item())
    assert row["standard_error"] == pytest.approx(here.std(ddof=1).item() / 3**0.5)
    assert row["theory"] == pytest.approx(sol.features.sel(boundary="constant", error_rate=0.2).item())


def test_parallel_axes_open_along_a_number_that_all_rules_have_with_each_value_once():
    scenario = config_files.load("noise_optimal")
    assert settings.choose_abscissa_key(scenario) == "flip"  # assumed_flip is a parameter of the optimal rule alone
    given = settings.reduce_config(scenario, "flip")
    assert given["rule"] == ["bayes", "hebb", "perceptron"]
    assert given["flip"] == [0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
    assert (given["assumed_flip"], given["schedule"]) == (0, [1e9, 0.149])


@pytest.mark.slow
def test_the_optimal_rule_says_on_the_page_which_start_to_write_and_takes_it(live):
    made, messages = live
    made.chosen.value = ["hebb", "bayes"]
    made.update()
    sentence = (
        'start: the rule "bayes" starts from students shorter than 1, drawn students have length 1: write start: '
    )
    assert messages[-2] == ("error", sentence + "{length: 0.2, R: 0.2}")
    for typed in ("'start={length: 0.2, R: 0.2}'", "start.length=0.2 start.R=0.2"):
        made.more_keys.value = typed
        made.update()
        assert made.scenario.rule == ("hebb", "bayes")
        assert np.isfinite(made.theory.eps_g).all()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a thread has the priority of its process")
def test_simulations_run_with_a_low_priority_and_theory_does_not():
    priorities, ended = [], threading.Event()

    class Recorder(BackgroundSimulator):
        def _run_seeds(self, scenario, token):
            child = threading.Thread(target=lambda: priorities.append(os.getpriority(os.PRIO_PROCESS, 0)))
            child.start()
            child.join()
            ended.set()

    before = os.getpriority(os.PRIO_PROCESS, 0)
    Recorder(lambda *_: None).start(Scenario(rule="hebb", t=1))
    assert ended.wait(60)
    assert {*priorities} == {LOW_PRIORITY}
    assert os.getpriority(os.PRIO_PROCESS, 0) == before < LOW_PRIORITY


ENTRIES = first_runs.list_entry_scenarios()


def test_every_entry_page_has_stored_runs_and_nothing_else_is_stored():
    paths = {computation.get_first_runs_path(scenario) for scenario in ENTRIES.values()}
    assert {*computation.FIRST_RUNS_FOLDER.iterdir()} == paths
    assert sum(path.stat().st_size for path in paths) < 3e5


@pytest.mark.parametrize("name", brief([*ENTRIES]))
def test_stored_runs_are_those_that_the_page_of_their_config_would_simulate(name):
    if estimate_cost(ENTRIES[name]).seconds > 10:
        pytest.skip("it takes too long")
    stored, simulated = computation.load_first_runs(ENTRIES[name]), first_runs.simulate_first_runs(ENTRIES[name])
    assert json.loads(stored.config) == json.loads(simulated.config)
    xr.testing.assert_allclose(stored, simulated, rtol=1e-5, atol=1e-7)


def test_stored_runs_are_not_those_of_another_config_or_of_a_class_of_the_same_name(monkeypatch):
    scenario = ENTRIES["rule page"]
    assert computation.load_first_runs(scenario.model_copy(update={"seeds": 50})).sizes["seed"] == 4
    assert computation.load_first_runs(scenario_from({**scenario.config(), "eta": 0.9})) is None
    monkeypatch.setitem(RULES, "hebb", type("Own", (Hebb,), {"__module__": "own_rules"}))
    assert computation.load_first_runs(scenario) is None
