"""Sliders of the inputs: they state a spectrum of the grammar of configs, and theory follows."""

import numpy as np
import pytest
from conftest import brief

pytest.importorskip("panel", reason="the extra [explore] is not installed")

import theory
from figures.explorer import settings
from figures.explorer.key_menus import INPUT_MENU_FORMS, RANDOM_TEACHER, make_input_menu, make_two_variance_spectrum
from figures.explorer.pages import View
from figures.explorer.settings import FILE_NOT_ALLOWED_MESSAGE
from statmech import Clusters, Network, Risk, Scenario
from statmech.config import config_files
from statmech.errors import ConfigError
from statmech.inputs.input_distributions import inputs_from_config

PAGES = [name for name, page in settings.get_page_settings_by_kind().items() if page.inputs]
pytestmark = pytest.mark.quick
WARNED = pytest.mark.filterwarnings("ignore:Both 'variant':PendingDeprecationWarning")  # Panel's own, of its downloads
FEW = {"t": [1.0, 10.0], "alpha": [1.0, 2.0], "N": 50, "seeds": 2}


@pytest.fixture
def opened():
    """Opens the sliders of a scenario, whose simulation never starts; `messages` are those shown."""
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer.live_scenario import ScenarioControls

    pages, messages = [], []

    def open_(scenario):
        given = settings.reduce_config(scenario)
        with set_curdoc(Document()):
            live = ScenarioControls(
                View(given), scenario.CHOICE, lambda: None, lambda: None, lambda *it: messages.append(it)
            )
        live.scheduler.call_later = lambda *_: None
        pages.append(live)
        live.update()
        return live

    open_.messages = messages
    yield open_
    for live in pages:
        live.close()


def of_kind(choice, **given):
    made = {"rule": Scenario, "network": Network, "loss": Risk, "clusters": Clusters}[choice]
    kind = {"rule": "perceptron", "network": "erf", "loss": "logistic", "clusters": "gaussian"}[choice]
    of_clusters = {"loss": "square"} if choice == "clusters" else {}
    few = {name: value for name, value in FEW.items() if name in made.model_fields}
    return made(**{choice: kind, **of_clusters, **few, **given})


def slider(live, name):
    """The visible slider of this name."""
    return next(it for it in live.menus[0].widgets if it.label == name and it.visible)


def copied(live, tmp_path):
    """The scenario of the config that the page would copy."""
    (tmp_path / "copied.yaml").write_text(config_files.format_config(live.scenario))
    return config_files.load(tmp_path / "copied.yaml")


def test_these_kinds_have_sliders_of_their_inputs():
    assert set(PAGES) == {"rule", "network", "loss", "clusters"}


@pytest.mark.parametrize(
    ("choice", "form", "moved", "expected"),
    [
        ("rule", "spectrum", {"spread": 0.8}, {"spectrum": [0.2, 1.8]}),
        ("rule", "spectrum", {"spread": 0.8, "alignment": 0.9}, {"spectrum": [0.2, 1.8], "teacher": [0.5, 0.5]}),
        ("rule", "power_law", {"decay": 0.5, "teacher decay": 0.75}, {"power_law": 0.5, "teacher_decay": 0.75}),
        ("loss", "spectrum", {"spread": 0.5, "alignment": 1.0}, {"spectrum": [0.5, 1.5], "teacher": [0, 1.0]}),
        ("loss", "power_law", {"teacher decay": 2.5}, {"power_law": 1.0, "teacher_decay": 2.5}),
        pytest.param(
            "network",
            "spectrum",
            {"alignment": 0.25},
            {"spectrum": [0.5, 1.5], "teacher": [0.9, 0.1]},
            marks=pytest.mark.slow,
        ),
        ("clusters", "spectrum", {"spread": 0.6}, {"spectrum": [0.4, 1.6]}),
    ],
)
def test_a_slider_sets_the_spectrum_and_theory_and_the_copied_config_follow(
    choice, form, moved, expected, opened, tmp_path
):
    live = opened(of_kind(choice))
    before = live.theory.eps_g.values
    live.menus[0].menu.value = form
    for name, value in moved.items():
        slider(live, name).value = value
    assert not [said for severity, said in opened.messages if severity == "error" and said]
    scenario = copied(live, tmp_path)
    assert scenario == live.scenario
    assert scenario.inputs == inputs_from_config(expected)
    assert np.abs(live.theory.eps_g.values - before).max() > 1e-3
    solved = theory.solve(scenario)
    for variable in ("eps_g", "R_field"):
        if variable in solved:
            np.testing.assert_allclose(live.theory[variable], solved[variable], rtol=1e-4)


def test_sliders_at_rest_keep_what_the_config_says_and_the_menu_leads_back_to_it(opened):
    given = {"spectrum": {"eigenvalues": [0.2, 1.8], "teacher": "aligned"}}
    live = opened(of_kind("rule", inputs=given))
    assert (live.menus[0].menu.value, slider(live, "spread").value) == ("spectrum", 0.8)
    assert slider(live, "alignment").value == pytest.approx(1.8**2 / (0.2**2 + 1.8**2), abs=1e-5)
    assert live.scenario.config()["inputs"] == given
    slider(live, "spread").value = 0.5
    assert live.scenario.inputs.teacher != "aligned"
    slider(live, "spread").value = 0.8
    assert live.scenario.config()["inputs"] == given
    live.menus[0].menu.value = ""
    assert "inputs" not in config_files.format_config(live.scenario)
    assert not [it for it in live.menus[0].widgets[1:] if it.visible]
    live.menus[0].menu.value = "spectrum"
    assert live.scenario.config()["inputs"] == given


@pytest.mark.parametrize("inputs", ["sphere", {"spectrum": [0.5, 1.0, 2.0]}, {"spectrum": [0.2, 1.8], "misfit": 0.1}])
def test_inputs_that_no_slider_describes_stay_in_the_menu(inputs, opened):
    live = opened(of_kind("loss", inputs=inputs))
    held = live.scenario.config()["inputs"]
    assert inputs_from_config(held) == inputs_from_config(inputs)
    live.menus[0].menu.value = "power_law"
    live.menus[0].menu.value = "as given"
    assert live.scenario.config()["inputs"] == held


@pytest.mark.parametrize("form", INPUT_MENU_FORMS)
def test_every_place_of_the_sliders_is_found_from_its_inputs(form):
    one, other = INPUT_MENU_FORMS[form].sliders
    for first in one.stops:
        for second in (*other.stops, *([other.text_option] if other.text_option else [])):
            inputs = inputs_from_config(INPUT_MENU_FORMS[form].make_config_value(first, second))
            assert INPUT_MENU_FORMS[form].get_slider_values(inputs) == (first, second)


def test_the_alignment_is_the_part_of_the_variance_of_the_teachers_field():
    for spread in (0.1, 0.95):
        powers = make_two_variance_spectrum(spread, 0.3).modes(2).powers
        np.testing.assert_allclose(powers, [0.7, 0.3], atol=1e-6)
    assert make_two_variance_spectrum(0.5, RANDOM_TEACHER).teacher == "random"


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """The folder with a table of 30 rows, from which the explorer is started."""
    monkeypatch.chdir(tmp_path)
    np.savetxt("digits.csv", np.random.default_rng(0).normal(size=(30, 5)), delimiter=",")
    return {"rows": {"path": "digits.csv"}}


@pytest.mark.parametrize("choice", ["rule", "loss"])
def test_rows_of_a_file_are_explored_under_its_name(choice, rows, opened, tmp_path):
    live = opened(of_kind(choice, N=5, inputs={"rows": "digits.csv"}))
    assert live.menus[0].menu.options["digits.csv"] == live.menus[0].menu.value == "as given"
    scenario = copied(live, tmp_path)
    assert scenario.config()["inputs"] == rows
    np.testing.assert_allclose(live.theory.eps_g, theory.solve(scenario).eps_g, rtol=1e-4)
    assert not [said for severity, said in opened.messages if severity == "error" and said]


@WARNED
def test_a_page_of_rows_can_be_reloaded_and_names_no_other_file(rows):
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer.page import ExplorerPage

    scenario = of_kind("rule", N=5, inputs=rows)
    written = settings.format_query(View({"rule": ["perceptron"], "N": 5, "t": 20, "inputs": rows}))
    assert settings.read(written, [{"path": "digits.csv"}]).config["inputs"] == rows
    for query in (written.replace("digits", "private"), written.replace("path", "file")):
        with pytest.raises(ConfigError, match=FILE_NOT_ALLOWED_MESSAGE.format("link").partition("(")[0]):
            settings.read(query, [{"path": "digits.csv"}])
    with set_curdoc(Document()):
        page = ExplorerPage(scenario, query=[(name, value) for name, value in _pairs(written)])
        assert not page.message.visible
        assert page.source.menus[0].config == {"inputs": rows}
        page.close()


def _pairs(query):
    from urllib.parse import parse_qsl

    return parse_qsl(query)


@pytest.mark.parametrize(
    ("name", "charts"),
    [
        ("plateau_spread", ("eps_g", "specialisation")),
        ("sgd_power_law", ("eps_g", "R_field")),
        ("multiple_descent", ("mse", "R_field")),
        ("random_features", ("mse", "R_field")),
        ("aligned", ("mse", "R_field")),
    ],
)
def test_a_shipped_config_of_structured_inputs_opens_on_the_charts_of_its_figure(name, charts):
    from figures import curves
    from figures.explorer.page import make_opening_view, named

    scenario = config_files.load(name)
    view = make_opening_view(scenario, named(scenario, name))
    assert settings.check_and_complete_view(view, scenario.CHOICE).show == charts
    assert {*charts} <= {*curves.get_chart_variables(scenario)}


@WARNED
def test_several_inputs_are_curves():
    from bokeh.document import Document
    from panel.io.state import set_curdoc

    from figures.explorer.page import ExplorerPage

    with set_curdoc(Document()):
        page = ExplorerPage(of_kind("loss", inputs=[{"spectrum": [0.2, 1.8]}, {"power_law": {"decay": 2.0}}]))
        page.source.update()
        assert not page.message.visible
        assert len(page.source.scenario.inputs) == 2
        assert page.source.layout.colour_axes == ("inputs",)
        page.close()


@pytest.mark.parametrize("label", ["η = 0.5", "η = 2"])
def test_the_menu_of_curves_draws_each_of_its_values_and_not_another(opened, label):
    """A curve under the label of another would be found: those of the two rates differ."""
    from figures.explorer.page_charts import arrange_content, describe_chart
    from figures.labels import plain_from_latex

    live = opened(of_kind("rule"))
    live.curves_key.value = "eta"
    live.values.value = "0.5, 2"
    picture = live.chart_content
    assert picture.layout.colour_axes == ("eta",)
    panel = describe_chart(arrange_content(picture), "eps_g", live.scenario.variables["eps_g"])
    [curve] = [drawn.curve for drawn in panel.curves if plain_from_latex(drawn.label) == label]
    alone = {eta: theory.solve(of_kind("rule", eta=eta, t=list(curve.theory_x))).eps_g for eta in (0.5, 2.0)}
    agree = {eta: np.allclose(curve.theory, np.ravel(values), rtol=1e-6) for eta, values in alone.items()}
    assert agree == {eta: label == f"η = {eta:g}" for eta in alone}
    assert not live.sliders["eta"].visible
    assert "t" not in live.curves_key.options.values()


def test_a_chart_without_values_or_equal_to_another_is_not_among_the_first(opened):
    from figures.explorer.page_charts import ExplorerCharts

    for noise, given in (("eps_y", {"teacher": "linear"}), ("eps_y", {"teacher": "sign", "flip": 0})):
        charts = ExplorerCharts()
        charts.show(opened(of_kind("loss", loss="square", **given)).chart_content)
        assert noise in charts.drawn
        assert noise not in charts.variables.value
        assert len(charts.variables.value) == 2


@pytest.mark.parametrize(("teacher", "taken"), [("linear", {"noise"}), ("sign", {"flip"}), ("logit", {"gain"})])
def test_keys_of_other_teachers_have_no_sliders_and_no_place_in_the_menus(teacher, taken, opened):
    live = opened(of_kind("loss", loss="square", teacher=teacher))
    for names in (live.sliders, live.x.options.values(), live.curves_key.options.values()):
        assert {"noise", "flip", "gain", "rho", "l1_ratio"} & {*names} == taken
    [name] = taken
    live.sliders[name].value = live.sliders[name].start + 3 * live.sliders[name].step
    assert not [text for severity, text in opened.messages if severity == "error"]
    assert getattr(live.scenario, name) == pytest.approx(live.sliders[name].value)


def test_a_penalty_that_is_the_best_one_has_a_slider(opened):
    live = opened(of_kind("loss", lam="best"))
    assert live.sliders["lam"].value == live.scenario.lam == "best"
    live.sliders["lam"].value = 0.5
    assert live.scenario.lam == 0.5


def test_a_file_name_is_shown_as_it_is(rows):
    menu = make_input_menu("rule", {"inputs": {"rows": {"path": "<b>.csv"}}}).menu
    assert menu.options["<b>.csv"] == "as given"


@pytest.mark.parametrize(("eta", "t"), brief([(0.5, 50.0), (2.0, 1e4)]))
def test_a_drag_over_power_laws_is_as_accurate_as_a_chart_can_show(eta, t):
    """A planted fourth of the digits would be seen; all digits would take four times as long."""
    from figures.explorer.computation import _solve_cached, solve_to_full_accuracy
    from statmech.results.results import Results

    power_law = {"power_law": {"decay": 1.5, "teacher_decay": 1.75}}
    scenario = Scenario(rule="perceptron", inputs=power_law, N=1000, K=3, eta=eta, t=np.geomspace(0.1, t, 20).tolist())
    drawn, exact = _solve_cached(scenario), theory.solve(scenario)
    for name in ("eps_g", "eps_g_majority_vote", "q"):
        np.testing.assert_allclose(drawn[name], exact[name], rtol=1e-4, err_msg=name)
    assert not np.array_equal(drawn.eps_g, exact.eps_g)
    if t == 50:  # a file that is downloaded has all digits
        np.testing.assert_allclose(
            solve_to_full_accuracy(Results(scenario, None, drawn)).theory.eps_g, exact.eps_g, rtol=1e-12
        )
