"""Pages of protocols and of functions of time: one is chosen, its step dragged, and it is drawn below the errors."""

from __future__ import annotations

import threading

import numpy as np
import pytest

pytest.importorskip("panel", reason="the extra [explore] is not installed")

from figures.explorer import computation, settings
from statmech.config import config_files

WARNED = pytest.mark.filterwarnings("ignore:Both 'variant':PendingDeprecationWarning")  # Panel's own, of its downloads
pytestmark = [pytest.mark.quick, WARNED]


@pytest.fixture
def opened():
    """Opens the page of a config, whose simulation never starts."""
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer.page import ExplorerPage, named

    pages = []

    def open_(name, overrides=()):
        scenario, document = config_files.load(name, [*overrides]), Document()
        with set_curdoc(document):
            made = ExplorerPage(scenario, view=named(scenario, name))
            made.view().server_doc(document)
        made.source.scheduler.call_later = lambda *_: None
        pages.append(made)
        made.source.update()
        return made

    yield open_
    for made in pages:
        made.close()


def protocol(page, name):
    """Choose a protocol, and return its visible sliders."""
    menu = page.source.menus[1]
    menu.menu.value = name
    return [slider for slider in menu.widgets[1:] if slider.visible]


@pytest.mark.slow
def test_the_switch_is_dragged_and_both_errors_and_the_shares_below_them_change_there(opened):
    page = opened("replay", ["t={linspace: [0, 100, 5]}"])
    errors, shares = (page.charts.charts[name] for name in ("eps_g", "task_share"))
    assert [curve.label for curve in page.charts.charts["eps_g"].shown] == ["task 1", "task 2"]
    assert shares.figure.x_range is errors.figure.x_range
    assert errors.rows.log_y
    assert not shares.rows.log_y  # a share may be 0
    for switch in (50, 20):
        page.source.sliders["switch"].value = switch
        x, first = (np.array(shares.curves["theory"].data[part][0]) for part in ("x", "y"))
        assert first[x < switch].min() == 1
        assert first[x > switch + 1].max() == 0
        assert x[first == 1].max() == x[first == 0].min()  # a step
        error = page.charts.charts["eps_g"].shown[0].curve
        assert error.theory_x[error.theory.argmin()] == pytest.approx(switch, abs=1)


@pytest.mark.slow
def test_a_protocol_has_its_own_sliders_and_keys(opened):
    page = opened("replay", ["protocol=blocked", "t=0,50,100"])
    live = page.source
    assert [slider.label for slider in protocol(page, "replay")] == ["fraction"]
    assert live.scenario.config()["protocol"] == {"replay": 0.1}
    protocol(page, "replay")[0].value = 0.3
    assert page.charts.charts["task_share"].shown[0].curve.theory[-1] == pytest.approx(0.3)
    assert settings.read(settings.format_query(live.view)).config["protocol"] == {"replay": 0.3}
    assert not protocol(page, "interleaved")
    assert not live.sliders["switch"].visible
    assert live.scenario.switch is None
    protocol(page, "blocked")
    assert live.scenario.switch == 50
    live.sliders["t"].value = 20  # which ends the slider of the switch, too
    assert live.scenario.switch == live.sliders["switch"].end == pytest.approx(19.8)
    assert not page.message.visible or page.message.severity == "info"


@pytest.mark.slow
def test_a_protocol_without_sliders_stays_as_it_was_written(opened):
    page = opened("replay", ["protocol={blocks: [0, 40, 80]}", "switch=null", "t=0,50,100"])
    assert page.source.menus[1].menu.value == "as given"
    assert page.source.scenario.config()["protocol"] == {"blocks": [0, 40, 80]}
    second = page.charts.charts["task_share"].shown[1].curve
    np.testing.assert_array_equal(second.theory, (second.theory_x >= 40) & (second.theory_x < 80))


def test_perceptrons_of_two_tasks_open_at_their_errors():
    start = settings.get_page_settings("rule_tasks").start
    view = settings.read("rule=hebb,perceptron&tasks=2&t=5&switch=2")
    assert {name: view.config[name] for name in ("tasks", "switch", "t")} == {"tasks": 2, "switch": 2, "t": 5}
    assert settings.find_page_kind(view.config) == "rule_tasks"
    assert settings.expand_page_config("rule_tasks", start)["t"][0] == 0


@pytest.mark.slow
def test_an_optimum_is_searched_while_the_page_answers(opened, monkeypatch):
    """And solved with the charts once it is found; a search that the visitor did not wait for shows nothing."""
    page = opened("replay", ["protocol=blocked", "t=0,50,100"])
    live, searched, may_end = page.source, [], threading.Event()
    ended = threading.Event()
    live.scheduler.call_later = lambda _, call: call()
    live.scheduler.call_soon = lambda call: ended.set()
    live.background.start = lambda *_: None

    def search(scenario):
        searched.append(scenario)
        may_end.wait(60)

    monkeypatch.setattr(computation, "search_optima", search)
    monkeypatch.setattr(
        computation, "has_unknown_optimum", lambda scenario: "control" in scenario.theory_only_variables
    )
    before = live.scenario
    protocol(page, "optimal")
    assert live.scenario is before
    assert page.progress.object.startswith("searching for the optimum")
    may_end.set()
    assert ended.wait(60)
    assert [str(one.protocol) for one in searched] == ["optimal"]
    ended.clear(), may_end.clear()
    protocol(page, "optimal"), protocol(page, "blocked")
    assert live.scenario.config()["protocol"] == "blocked"
    may_end.set()
    assert not ended.wait(0.5)


def control(page, name, form):
    """Choose a form of a key that changes with time, and return its visible sliders."""
    menu = page.source.controls[name]
    menu.menu.value = form
    return {slider.label: slider for slider in menu.widgets[1:] if slider.visible}


@pytest.mark.slow
def test_a_function_of_time_stays_in_force_and_its_step_is_dragged_below_the_errors(opened, tmp_path):
    page = opened("curriculum", ["N=100", "t={linspace: [0, 20, 5]}"])
    live, charts = page.source, page.charts
    assert [*charts.charts] == ["eps_g", "flip_of_t"]
    assert charts.charts["flip_of_t"].figure.x_range is charts.charts["eps_g"].figure.x_range
    falls, rises = ({"at": [0, 10], "is": [one, 0.2 - one]} for one in (0.2, 0))
    assert live.scenario.config()["flip"] == falls
    options = live.controls["flip"].menu.options
    assert {"0.2 → 0 at t = 10", "0 → 0.2 at t = 10", "constant", "one step", "as listed"} == {*options}
    assert not control(page, "flip", options["0 → 0.2 at t = 10"])
    assert live.scenario.config()["flip"] == rises
    step = control(page, "flip", "step")
    step["step at t"].value = 5
    page._show_config_and_equations()
    curve = page.charts.charts["flip_of_t"].shown[0].curve
    assert curve.theory_x[curve.theory == 0].min() == 5
    assert curve.theory_x[curve.theory == 0.2].max() == pytest.approx(5, abs=0.5)
    assert settings.read(settings.format_query(live.view)).config["flip"] == {"at": [0, 5], "is": [0.2, 0]}
    (tmp_path / "copied.yaml").write_text(page.yaml.value)
    assert config_files.load(tmp_path / "copied.yaml") == live.scenario
    assert not live.sliders["flip"].visible
    control(page, "flip", "constant")
    assert live.sliders["flip"].visible
    assert live.scenario.config()["flip"] == 0.1  # as its curriculum without an order


@pytest.mark.slow
def test_a_key_that_changes_with_time_lies_along_x_as_a_number(opened):
    page = opened("curriculum", ["N=100", "t=1,20", "rule=hebb", "figure.split=[]"])
    before = page.source.scenario
    page.source.x.value = "flip"
    assert not page.source.controls["flip"].menu.visible
    assert page.charts.charts["eps_g"].figure.xaxis.axis_label == r"$$\textsf{flip }p_f$$"
    assert page.source.theory.eps_g.sizes["flip"] > 5
    page.source.x.value = "t"
    assert page.source.scenario == before


def test_several_functions_of_time_are_curves_in_the_colours_of_their_errors(opened):
    page = opened("curriculum", ["N=100", "t=1,5,20", "rule=perceptron", "figure.split=[]"])
    errors, flips = (page.charts.charts[name].shown for name in ("eps_g", "flip_of_t"))
    assert [curve.label for curve in errors] == [curve.label for curve in flips]
    assert [curve.curve.theory[-1] for curve in flips] == [0, 0.2, 0.1]


@pytest.mark.slow
def test_a_page_whose_optimum_is_unknown_opens_without_it(opened, monkeypatch):
    monkeypatch.setattr(
        computation, "has_unknown_optimum", lambda scenario: "control" in scenario.theory_only_variables
    )
    page = opened("optimal_rate", ["N=100", "t=1,5,20"])
    assert page.progress.object == "searching for the optimum: a minute or more; until then without it"
    assert [curve.label for curve in page.charts.charts["eps_g"].shown] == ["η = 0.3", "η = 1"]
    assert page.source.view.config["eta"] == [0.3, 1, "optimal"]
