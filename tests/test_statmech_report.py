"""A report is one file that loads nothing, contains all results, escapes foreign text, and is written completely."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from pages import Page

import simulate
import theory
from figures.interactive import html_report, report_charts
from figures.interactive.html_report import write_report
from figures.overlay import describe_figure
from simulate.execution.store_simulation import run_into
from statmech import RULES, Descent, Inference, Results, Risk, Scenario
from statmech.keys.figure_key import Composition
from statmech.keys.scenario import SCENARIOS
from statmech.runtime.installed_packages import get_install_command
from statmech.stores import zarr_store

pytestmark = pytest.mark.quick

pytest.importorskip("panel")  # a notebook may have loaded it; a report must contain nothing of it


def saved(folder: Path, simulation, solution) -> Path:
    zarr_store.save(simulation, folder / "simulation.zarr")
    if solution is not None:
        zarr_store.save(solution, folder / "theory.zarr")
    return folder


def computed(folder: Path, scenario) -> Path:
    return saved(folder, simulate.run(scenario), None if scenario.unsolved else theory.solve(scenario))


def paged(folder: Path) -> Page:
    return Page(write_report(folder).read_text())


@pytest.mark.slow
def test_a_simulation_that_is_wrong_is_marked_in_the_table(tmp_path):
    scenario = Scenario(rule=["hebb", "perceptron"], N=400, t=[1, 2], seeds=12)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    assert "<mark>" not in write_report(saved(tmp_path / "right", simulation, solution)).read_text()
    eps = simulation.eps_g.sel(rule="perceptron", t=2)
    simulation.eps_g.loc[{"rule": "perceptron", "t": 2}] += 10 * eps.std("seed", ddof=1) / np.sqrt(12)
    text = write_report(saved(tmp_path / "wrong", simulation, solution)).read_text()
    [marked] = re.findall(r"<mark>(.*?)</mark>", text)
    assert abs(float(marked)) > 7
    [row] = [row for row in Page(text).rows if marked in row]
    assert row[0] == "perceptron"
    assert re.search(r"Deviates: 1 of \d+ values beyond the bound \d\.\d, largest", Page(text).words)


def has_foreign_elements(page):
    pictures = [attrs["src"] for tag, attrs in page.elements if tag == "img"]
    embedded = all(source.startswith("data:image/svg+xml;base64,") for source in pictures)
    return not embedded or any("onerror" in attrs for _, attrs in page.elements)


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}"


@pytest.mark.slow
def test_foreign_text_is_escaped(tmp_path, monkeypatch):
    monkeypatch.setitem(RULES, HOSTILE, RULES["hebb"])
    scenario = Scenario(rule=[HOSTILE, "perceptron"], N=20, t=[1, 2], seeds=2, figure=HOSTILE)
    solution = theory.solve(scenario).assign_attrs(source=HOSTILE, machine=HOSTILE)
    folder = saved(tmp_path / "<img src=x onerror=alert(3)>", simulate.run(scenario), solution)
    page = paged(folder)
    assert [tag for tag, _ in page.elements].count("script") == 3  # the library, its log level, and its call
    assert not has_foreign_elements(page)
    assert page.words.count(HOSTILE) >= 4  # legend, table, config, provenance


@pytest.mark.slow
def test_foreign_labels_and_paths_are_escaped(tmp_path, monkeypatch):
    label = f"--><!--{HOSTILE.replace('{{ 7 * 7 }}', '')}]]>"
    monkeypatch.setitem(RULES, "mine", type("Mine", (RULES["hebb"],), {"label": label}))
    folder = tmp_path / "labels"
    page = paged(computed(folder, Scenario(rule=["mine", "perceptron"], N=20, t=[1, 2], seeds=2, figure="overlay")))
    assert [tag for tag, _ in page.elements].count("script") == 3
    assert not has_foreign_elements(page)
    monkeypatch.chdir(tmp_path)
    path = "<img src=x onerror=alert(1)>.csv"
    (tmp_path / path).write_text("1,2,3\n4,5,7\n0,1,0\n")
    laws = ["gaussian", {"rows": {"path": path}}]
    page = paged(computed(tmp_path / "paths", Scenario(rule="hebb", inputs=laws, N=3, t=[1, 2], seeds=2)))
    assert not has_foreign_elements(page)
    assert page.words.count(path) >= 2  # legend and config


@pytest.mark.slow
def test_many_points_give_few_charts_and_the_omitted_ones_are_mentioned():
    scenario = Scenario(
        rule="hebb", N=50, t=[1, 2, 3, 4], K=[1, 2, 3, 5], eta={"linspace": [0.5, 1.5, 12]}, flip=[0, 0.1]
    )
    drawn = report_charts.charts(Results(scenario, theory=theory.solve(scenario)))
    assert sum(map(len, drawn.sets)) <= report_charts.MAX_PAGE_CHARTS
    assert len({*drawn.choices}) == len(drawn.sets) > 1
    assert [item for item in drawn.omitted_values if re.match(r"\d+ of \d+ sets of charts \(", item)]


def test_values_of_a_long_axis_that_are_not_drawn_are_mentioned():
    scenario = Scenario(rule="hebb", N=50, t=[1, 2, 3], eta={"linspace": [0.5, 1.5, 14]})
    drawn = report_charts.charts(Results(scenario, theory=theory.solve(scenario)))
    assert drawn.omitted_values == ["all but 7 of 14 values of <i>η</i>"]


@pytest.mark.slow
def test_lines_of_iterations_are_those_of_the_last_step_as_are_the_points():
    scenario = Inference(prior="gauss", alpha=[1, 2], steps=5, N=20, seeds=2)
    results = report_charts._select_last_time(Results(scenario, simulate.run(scenario), theory.solve(scenario)))
    [panel] = describe_figure({"": results}, Composition(y="m")).panels
    [drawn] = panel.curves
    np.testing.assert_allclose(drawn.curve.theory[[0, -1]], drawn.curve.theory_at_x, rtol=1e-9)
    assert (drawn.curve.theory_at_x > 0.1).all()  # the first step has no overlap


def test_runs_that_are_missing_or_failed_are_reported_and_omitted(tmp_path, monkeypatch, capsys):
    small = ["boosting", "N=5", "tests=200", "s=1,3", "P=20", "seeds=70"]
    out = tmp_path / "part"
    assert called(monkeypatch, "simulate", *small, "--shard", "1/2", "--out", str(out)) == 0
    assert called(monkeypatch, "theory", *small, "--out", str(out)) == 0
    words = paged(out).words
    assert "Of 140 runs, 128 are finished, 12 are missing and 0 have failed" in words
    assert "Agrees: no bound is violated, of " in words  # a missing run violates no bound
    assert "64/64" in words


@pytest.mark.slow
def test_a_failed_run_is_reported_with_its_message(tmp_path, monkeypatch):
    def raising(self, kappa, length):
        raise ValueError("<b>no</b> such g")

    scenario = Scenario(rule=["hebb", "perceptron"], N=20, t=[1, 2], seeds=2)
    solved = {name: vars(RULES["hebb"])[name] for name in ("closed_form", "closed_form_pair")}  # theory without g
    monkeypatch.setitem(RULES, "perceptron", type("Raising", (RULES["hebb"],), {"g": raising, **solved}))
    zarr_store.save(theory.solve(scenario), tmp_path / "theory.zarr")
    assert run_into(tmp_path / "simulation.zarr", scenario).failed == 2
    page = paged(tmp_path)
    assert "2 have failed" in page.words
    assert "ValueError: <b>no</b> such g" in page.words
    assert any(row[0] == "perceptron" and set(row[1:]) == {"-"} for row in page.rows)


@pytest.mark.slow
def test_a_scenario_without_theory_or_not_solved_or_not_simulated_has_a_report(tmp_path, inputs_without_theory):
    scenario = Scenario(rule="hebb", N=20, t=[1, 2], seeds=2, inputs=inputs_without_theory)
    unsolved = computed(tmp_path / "unsolved", scenario)
    assert "there is nothing to compare with" in paged(unsolved).words
    scenario = Scenario(rule="hebb", N=20, t=1, seeds=2)
    assert "There is no theory" in paged(saved(tmp_path / "simulated", simulate.run(scenario), None)).words
    zarr_store.save(theory.solve(scenario), tmp_path / "solved" / "theory.zarr")
    assert "There is no simulation" in paged(tmp_path / "solved").words
    one = computed(tmp_path / "one", Scenario(rule="hebb", N=20, t=1, seeds=1))
    assert "single seed has no standard error" in paged(one).words


def test_a_page_begins_with_title_date_sizes_and_equations(tmp_path):
    scenario = Scenario(rule=["hebb", "perceptron"], N=20, t=[1, 2], seeds=2)
    page = paged(saved(tmp_path / "mine", simulate.run(scenario), theory.solve(scenario)))
    head = " ".join(page.words[: page.words.index("Provenance")].split())
    assert re.search(r"Online ensemble mine · \d{4}-\d\d-\d\d · N = 20 · K = 1 · seeds = 2 · statmech", head)
    stated = [attrs["aria-label"] for _, attrs in page.elements if attrs.get("role") == "img"]
    named = [scenario.get_equation(name) for name in scenario.rule]
    assert set(stated) >= {*scenario.displayed_equations, *named}
    assert "gram" not in " ".join(page.pres)
    titled = Scenario(rule="hebb", N=20, t=[1, 2], seeds=2, figure={"y": "R", "title": "The cosine."})
    page = paged(saved(tmp_path / "titled", simulate.run(titled), theory.solve(titled)))
    assert "The cosine titled · " in " ".join(page.words.split())
    assert "times at which order parameters are recorded" in page.words
    assert "recorded, increasing" not in page.words


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCENARIOS.values(), ids=SCENARIOS)
def test_every_equation_is_set_as_a_picture(kind):
    stated = [*kind.equations, *(kind.get_equation(name) for name in kind.classes())]
    assert [latex for latex in stated if latex and not html_report.svg_from_latex(latex)] == []


@pytest.mark.slow
def test_inputs_of_unequal_variance_have_equations_of_fields_and_are_named_in_the_caption(tmp_path):
    scenario = Risk(
        loss="square", teacher="linear", N=20, alpha=[1, 2], lam=[0.1, "best"], inputs={"spectrum": [0.2, 1.8]}, seeds=2
    )
    page = paged(computed(tmp_path / "mine", scenario))
    stated = [attrs["aria-label"] for _, attrs in page.elements if attrs.get("role") == "img"]
    assert any(latex.endswith("R_h") for latex in stated)
    assert "inputs: spectrum [0.2, 1.8]" in " ".join(page.words.split())
    assert "λ = 0.1, best" in page.words
    assert "$" not in page.words[page.words.index("Charts") : page.words.index("Config")]
    online = Scenario(rule="hebb", t=1, inputs={"spectrum": [0.2, 1.8]}).displayed_equations
    assert all(map(html_report.svg_from_latex, online))
    assert online[-1].endswith("R_h")


def test_an_equation_that_cannot_be_set_has_no_picture():
    assert html_report.svg_from_latex(r"\begin{matrix}1\end{matrix}") == ""


@pytest.mark.slow
def test_colour_is_an_axis_that_theory_knows_and_marker_one_that_it_does_not():
    scenario = Scenario(rule="perceptron", N=[20, 50], t=[0.5, 1, 2, 5, 10], eta=[0.5, 1, 2], seeds=2)
    drawn = report_charts.charts(Results(scenario, simulate.run(scenario), theory.solve(scenario)))
    assert [label for label, swatch in drawn.legend if "dasharray" in swatch] == ["η = 0.5", "η = 1", "η = 2"]
    assert [label for label, swatch in drawn.legend if "translate" in swatch] == ["N = 20", "N = 50"]
    assert drawn.choices == [""]
    points = [it for it in drawn.sets[0][0].figure.renderers if it.name == "points"][-1].data_source.data
    looks = set(zip(points["label"], points["color"], points["marker"], strict=True))
    assert len(looks) == 6
    assert len({colour for _, colour, _ in looks}) == 3
    assert {marker for label, _, marker in looks if "N = 50" in label} == {"square"}


def test_charts_lie_along_the_abscissa_of_the_figure_at_the_last_time_and_have_its_panels():
    figure = Composition(x="K", y="eps_g_majority_vote", series="rule", split="flip")
    scenario = Scenario(rule=["hebb", "adatron"], N=20, t=[1, 2], K=[1, 3, 5], flip=[0, 0.1], seeds=2)
    drawn = report_charts.charts(Results(scenario, simulate.run(scenario), theory.solve(scenario)), figure)
    assert drawn.choices == ["p_f = 0", "p_f = 0.1"]
    assert {chart.xlabel for charts in drawn.sets for chart in charts} == {"<i>K</i>"}
    assert [label for label, _ in drawn.legend] == ["Hebbian", "AdaTron"]
    assert "<i>t</i> before 2" in drawn.omitted_values


def test_wrapped_lines_of_the_config_continue_behind_their_own_indentation(tmp_path):
    scenario = Scenario(rule="hebb", N=20, t=[1, 2], seeds=2, figure={"y": "R", "caption": "long " * 60})
    page = paged(saved(tmp_path, simulate.run(scenario), None))
    styles = [attrs.get("style") or "" for tag, attrs in page.elements if tag == "span"]
    indents = [style for style in styles if "--indent" in style]
    lines = [line for pre in page.pres for line in pre.splitlines()][: len(indents)]
    assert indents == [f"--indent: {len(line) - len(line.lstrip()) + 4}ch" for line in lines]
    assert yaml.safe_load(page.pres[0])["figure"]["caption"] == scenario.figure.caption


def called(monkeypatch, *arguments: str) -> int:
    from statmech.cli import main

    monkeypatch.setattr(sys, "argv", ["statmech", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Results with two axes besides x and colour."""
    scenario = Scenario(rule=["hebb", "perceptron"], N=20, t=[0, 1, 2], K=[1, 2], flip=[0, 0.1], seeds=2)
    return computed(tmp_path_factory.mktemp("results") / "whole", scenario)


@pytest.mark.slow
def test_the_command_writes_to_the_given_path(whole, tmp_path, monkeypatch, capsys):
    file = tmp_path / "sub" / "mine.html"
    assert called(monkeypatch, "report", str(whole / "theory.zarr"), "--out", str(file)) == 0
    assert f"wrote {file}" in capsys.readouterr().err
    assert [path.name for path in file.parent.iterdir()] == ["mine.html"]
    assert "<h1>Online ensemble</h1>" in file.read_text()


def nothing(folder: Path) -> list[str]:
    folder.mkdir()
    return [str(folder)]


def damaged(folder: Path) -> list[str]:
    (folder / "simulation.zarr").mkdir(parents=True)
    (folder / "simulation.zarr" / "zarr.json").write_text("{")
    return [str(folder)]


def mixed(folder: Path) -> list[str]:
    scenario = Scenario(rule="hebb", N=20, t=1, seeds=2)
    other = Scenario(rule="hebb", N=20, t=2, seeds=2)
    return [str(saved(folder, simulate.run(scenario), theory.solve(other)))]


def taken(folder: Path) -> list[str]:
    (folder / "file.html").mkdir(parents=True)
    computed(folder / "results", Scenario(rule="hebb", N=20, t=1, seeds=2))
    return [str(folder / "results"), "--out", str(folder / "file.html")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (nothing, "no results. `statmech run CONFIG --out"),
        (damaged, "not a readable store"),
        (mixed, "is not the theory of simulation.zarr beside it"),
        (taken, "file.html: cannot be written: Is a directory"),
    ],
)
def test_an_impossible_report_is_one_message_and_nothing_is_written(prepare, message, tmp_path, monkeypatch, capsys):
    arguments = prepare(tmp_path / "here")
    before = sorted(tmp_path.rglob("*"))
    assert called(monkeypatch, "report", *arguments) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert "Traceback" not in errors
    assert sorted(tmp_path.rglob("*")) == before


def test_without_bokeh_one_line_says_what_to_install(tmp_path, monkeypatch, capsys):
    zarr_store.save(theory.solve(Scenario(rule="hebb", t=1)), tmp_path / "theory.zarr")
    monkeypatch.setitem(sys.modules, "bokeh", None)
    assert called(monkeypatch, "report", str(tmp_path)) == 2
    assert capsys.readouterr().err == f"a report needs bokeh: {get_install_command('explore')}\n"


@pytest.mark.slow
def test_a_browser_draws_the_charts_and_requests_nothing(whole, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium here")
    file, requests, complaints = write_report(whole, tmp_path / "report.html"), [], []
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_context(offline=True, viewport={"width": 390, "height": 800}).new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda failure: complaints.append(str(failure)))
        page.goto(file.as_uri())
        page.wait_for_function("Bokeh.index.roots.every(view => view.has_finished())")
        assert shown(page) == [0]
        assert drawn(page, 0) > 0
        page.locator("fieldset").first.locator("input").first.focus()
        page.keyboard.press("ArrowRight")
        [now] = shown(page)
        assert now != 0
        page.wait_for_function(f"({CANVASES})({now}) > 0")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        browser.close()
    assert requests == [file.as_uri()]
    assert complaints == []


CANVASES = """at => [...document.querySelectorAll(".set")[at].querySelectorAll("[data-root-id]")].filter(
  it => [...it.children].some(child => child.shadowRoot?.querySelector(".bk-Canvas")?.shadowRoot
    ?.querySelector("canvas")?.width > 100)).length"""


def drawn(page, at: int) -> int:
    """The number of charts of a point that have a canvas."""
    return page.evaluate(f"({CANVASES})({at})")


def shown(page) -> list[int]:
    """The visible sets of charts."""
    return page.evaluate("[...document.querySelectorAll('.set')].flatMap((it, at) => it.checkVisibility() ? [at] : [])")


@pytest.mark.slow
def test_names_are_symbols_and_variables_that_the_figure_leaves_out_are_folded(tmp_path):
    section = {"y": "eps_t", "series": "loss"}
    keys = {"loss": ["square", "logistic"], "descent": "gradient", "alpha": 2, "epochs": [1, 3], "figure": section}
    folder = computed(tmp_path / "own", Descent(lam=0.1, N=50, seeds=2, **keys))
    html = html_report.write_report(folder).read_text()
    shown, folded = html.partition('<div class="set">')[2].partition("<details>")[::2]
    assert re.findall('class="y">(.*?)</p>', shown) == ["<i>ε</i><sub>t</sub>"]
    assert "<i>R</i>" in folded.partition("</details>")[0]
    headings = re.findall(r'<th scope="col".*?>(.*?)</th>', html)
    assert {"loss", "<i>R</i>", "<i>ε</i><sub>g</sub>"} <= {*headings}
    assert not [heading for heading in headings if "_" in heading]
    assert html.count("@font-face { font-family") == 4
    assert len(re.findall("<source media=.* srcset=.data:image/svg", html)) == 1


@pytest.mark.slow
def test_the_vote_and_mean_of_a_single_student_have_no_charts_of_their_own():
    scenarios = [Scenario(rule=["hebb", "perceptron"], N=50, t=[1, 2, 4], K=K) for K in (1, 3)]
    drawn = [report_charts.charts(Results(scenario, theory=theory.solve(scenario))) for scenario in scenarios]
    one, three = ([chart.ylabel for chart in it.sets[0]] for it in drawn)
    assert len(three) > len(one)
    assert not any("vote" in title or "mean" in title for title in one)
    assert any("vote" in title for title in three)
