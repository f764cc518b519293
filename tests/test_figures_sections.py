"""The section `figure` of a config: formulas, guides, marks, limits, texts, and messages on its faults."""

from __future__ import annotations

import ast
import operator
import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import FIXED_EXAMPLES
from conftest import statmech as exit_code
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex, to_rgb

import figures
import simulate
import statmech
from figures import captions, curves, guides, labels, matplotlib_drawing, overlay
from figures.inspection import find_figure_faults
from figures.panels import ZERO_ARROW
from statmech import ConfigError, Risk, Scenario, ScenarioError
from statmech.config.shipped_configs import read_shipped_configs
from statmech.keys.figure_key import FIGURE_PART_KEYS, Composition, read_figure_composition
from statmech.numerics.formulas import (
    FORMULA_FUNCTIONS,
    MAX_FORMULA_LENGTH,
    MAX_NUMBER,
    evaluate_formula,
    find_formula_names,
)

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def rules():
    return statmech.run(Scenario(rule=["hebb", "adatron"], K=[1, 3], N=40, t=[0.5, 1, 2, 5], seeds=3))


@pytest.fixture(scope="module")
def losses():
    return statmech.run(Risk(loss=["square", "hinge"], N=20, alpha=[0.5, 1, 2, 4], lam=0.1, flip=0.05, seeds=3))


# formulas

FORBIDDEN = [
    "eps_g.values",
    "theory.eps_g.values",
    "().__class__.__bases__",
    "__import__('os')",
    "open('secret')",
    "eval('1')",
    "sqrt()",
    "sqrt(1, 2)",
    "sqrt(x=1)",
    "sqrt(*[1])",
    "minimum(1)",
    "(lambda: 1)()",
    "R[0]",
    "[1, 2]",
    "{1: 2}",
    "(1, 2)",
    "R < 1",
    "R == 1",
    "R and q",
    "not R",
    "~R",
    "+R",
    "R % 2",
    "R // 2",
    "R @ q",
    "R << 9",
    "R if q else 1",
    "[R for R in q]",
    "'a' * 3",
    "b'a'",
    "f'{R}'",
    "True",
    "None",
    "...",
    "1j",
    "1e301",
    "9" * 400,
    "R := 1",
    "R = 1",
    "R; q",
    "import os",
    "",
    " ",
    "R +",
    "(R",
    "R\nq",
    "R\0",
    "(" * 300 + "R" + ")" * 300,
    "R + " * 200 + "R",
    "R(1, t=2)",
    "R(t=[1])",
    "R(**q)",
    "(R + q)(t=1)",
    "R(t=1)(t=2)",
    "pi(t=1)",
    "R(t=-q)",
]


@pytest.mark.parametrize("formula", FORBIDDEN, ids=range(len(FORBIDDEN)))
def test_a_formula_is_arithmetic_and_nothing_else(formula):
    values = {"R": 0.5, "q": 0.2, "eps_g": 0.1, "sqrt": 1}
    with pytest.raises(ConfigError):
        evaluate_formula(formula, values, values)


def test_a_number_that_grows_without_end_is_not_computed_with_whole_numbers():
    assert evaluate_formula("9 ** 9 ** 9 ** 9", {}, {}) == np.inf
    assert evaluate_formula("-9 ** 9 ** 9", {}, {}) == -np.inf
    assert np.isnan(evaluate_formula("0 / 0", {}, {}))
    assert evaluate_formula("1 / 0", {}, {}) == np.inf


def test_the_length_of_a_formula_is_limited():
    long = "R" + " + R" * ((MAX_FORMULA_LENGTH - 1) // 4)
    assert find_formula_names(long) == (["R"], [])
    with pytest.raises(ConfigError, match="letters, and at most 500 are possible"):
        find_formula_names(long + " + R + R")
    assert np.finfo(float).max > MAX_NUMBER


@FIXED_EXAMPLES
@given(st.text(max_size=60))
def test_any_text_is_a_formula_or_refused_in_a_sentence(text):
    try:
        own, of_theory = find_formula_names(text)
    except ConfigError:
        return
    assert all(name.isidentifier() for name in (*own, *of_theory))


BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow}
VALUES = {name: np.array(values) for name, values in {"R": [0.1, 0.5, 0.9], "q": [0.3, 0.2, 2.5]}.items()}
THEORY = {"R": np.array([0.2, 0.4, 0.8])}
LEAVES = st.one_of(
    st.floats(0.1, 5, allow_subnormal=False).map(lambda number: (repr(number), np.float64(number))),
    st.sampled_from([("pi", np.pi), *VALUES.items(), ("theory.R", THEORY["R"])]),
)


def _combine(parts):
    def apply(function, *arguments):
        with np.errstate(all="ignore"):
            return function(*arguments)

    binary = st.tuples(parts, st.sampled_from([*BINARY]), parts).map(
        lambda it: (f"({it[0][0]} {it[1]} {it[2][0]})", apply(BINARY[it[1]], it[0][1], it[2][1]))
    )
    negative = parts.map(lambda it: (f"(-{it[0]})", -it[1]))
    unary = st.tuples(st.sampled_from([name for name, it in FORMULA_FUNCTIONS.items() if it.nin == 1]), parts).map(
        lambda it: (f"{it[0]}({it[1][0]})", apply(FORMULA_FUNCTIONS[it[0]], it[1][1]))
    )
    extremes = st.tuples(st.sampled_from(["minimum", "maximum"]), parts, parts).map(
        lambda it: (f"{it[0]}({it[1][0]}, {it[2][0]})", apply(getattr(np, it[0]), it[1][1], it[2][1]))
    )
    return st.one_of(binary, negative, unary, extremes)


@FIXED_EXAMPLES
@given(st.recursive(LEAVES, _combine, max_leaves=8).filter(lambda it: len(it[0]) < MAX_FORMULA_LENGTH))
def test_a_formula_has_the_value_that_numpy_gives(drawn):
    formula, expected = drawn
    np.testing.assert_array_equal(evaluate_formula(formula, VALUES, THEORY), expected)
    named = {node.id for node in ast.walk(ast.parse(formula)) if isinstance(node, ast.Name)}
    own, of_theory = find_formula_names(formula)
    assert {*own} == named - {"pi", "theory", *FORMULA_FUNCTIONS}
    assert {*of_theory} == {"R"} & {*re.findall(r"theory\.(\w+)", formula)}


# messages

MISSPELT = {  # section, path and position of the misspelt key, and the part whose keys are listed
    "section": ({"yy": "eps_g"}, "yy", "figure"),
    "guide of a panel": ({"panels": [{"guides": [{"colour": 1}]}]}, "panels[0].guides[0].colour", "figure.guides"),
    "second panel": ({"panels": [{"y": "R"}, {"fit": True}]}, "panels[1].fit", "figure.panels"),
    "guide": ({"guides": [{"y": 1, "lable": "a"}]}, "guides[0].lable", "figure.guides"),
    "mark": ({"marks": [{"x": 1, "star": "a"}]}, "marks[0].star", "figure.marks"),
    "formula": ({"derive": {"a": {"formula": "R", "label": "a"}}}, "derive.a.label", "figure.derive"),
}


@pytest.mark.parametrize(("section", "path", "part"), MISSPELT.values(), ids=MISSPELT)
def test_a_misspelt_key_is_one_sentence_with_its_place_and_the_keys_of_its_part(section, path, part, tmp_path):
    with pytest.raises(ConfigError) as refused:
        read_figure_composition(section)
    [line] = str(refused.value).splitlines()
    assert line.startswith(f'figure.{path}: "{path.rpartition(".")[2]}" is not a key of ')
    if len(FIGURE_PART_KEYS[part]) < 14:
        assert line.endswith(f"Known: {', '.join(FIGURE_PART_KEYS[part])}.")
    with pytest.raises(ScenarioError) as refused:
        Risk(loss="square", alpha=[1, 2], figure=section)
    assert str(refused.value) == line
    config = tmp_path / "mine.yaml"
    config.write_text(
        "loss: square\nalpha: [1, 2]\nfigure:\n  title: mine\n  panels:\n  - y: R\n"
        "    guides:\n    - x: 1\n    - lable: one\n      x: 1\n"
    )
    with pytest.raises(ConfigError) as refused:
        statmech.load(config)
    message = str(refused.value)
    assert message.startswith(f'{config}:9: figure.panels[0].guides[1].lable: "lable" is not a key of guides.')
    assert message.endswith('Did you mean "label"? Known: x, y, label, text, line, runs.')


WRONG_VALUES = {
    "guide": ({"guides": [{"x": [1, 2]}]}, "figure.guides[0].x: must be a number, not [1, 2]"),
    "names": ({"y": 3}, "figure.y: must be a list, not 3"),
    "label": ({"y": {"R": 1}}, "figure.y.R: must be a string, not 1"),
    "panel": ({"panels": "R"}, 'figure.panels: must be a list, not "R"'),
    "dashes": ({"guides": [{"y": 1, "line": "dots"}]}, "figure.guides[0].line: must be 'dotted', 'dashed' or"),
}


@pytest.mark.parametrize(("section", "said"), WRONG_VALUES.values(), ids=WRONG_VALUES)
def test_a_wrong_value_is_one_sentence_with_its_place(section, said):
    with pytest.raises(ConfigError) as refused:
        read_figure_composition(section)
    [line] = str(refused.value).splitlines()
    assert line.startswith(said)


UNKNOWN_NAMES = {
    "guide": ({"guides": [{"y": "eps_gg"}]}, "figure.guides[0].y"),
    "guide of a panel": ({"panels": [{"y": "R"}, {"guides": [{"x": "alpah"}]}]}, "figure.panels[1].guides[0].x"),
    "theory": ({"guides": [{"y": "eps_g / theory.eps_gg"}]}, "figure.guides[0].y"),
    "mark": ({"marks": [{"x": 1, "y": "eps_gg"}]}, "figure.marks[0].y"),
    "derived": ({"derive": {"a": {"formula": "eps_gg"}}, "y": "a"}, "figure.derive.a.formula"),
    "attribute of theory": ({"guides": [{"y": "theory.__class__"}]}, "figure.guides[0].y"),
    "function": ({"guides": [{"y": "sqrt"}]}, "figure.guides[0].y"),
    "syntax": ({"guides": [{"y": "eps_g.values"}]}, "figure.guides[0].y"),
    "two positions": ({"guides": [{"x": 1, "y": 1}]}, "figure.guides[0]"),
    "axis of a value": ({"guides": [{"y": "eps_g(los=hinge)"}]}, "figure.guides[0].y"),
    "value of an axis": ({"derive": {"a": {"formula": "eps_g(loss=logistic)"}}, "y": "a"}, "figure.derive.a.formula"),
    "variable of a panel": ({"panels": [{"y": "eps_gg"}]}, "figure.panels[0].y"),
}


@pytest.mark.parametrize(("section", "place"), UNKNOWN_NAMES.values(), ids=UNKNOWN_NAMES)
def test_an_unknown_name_in_a_formula_is_refused_before_anything_runs(section, place, in_scratch, capsys, monkeypatch):
    monkeypatch.setattr(simulate, "run", lambda *_: pytest.fail("a simulation"))
    document = f"loss: [square, hinge]\nalpha: [1, 2]\nN: 10\nfigure: {section}\n"
    in_scratch.joinpath("mine.yaml").write_text(document)
    assert exit_code("run", "mine.yaml") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"mine.yaml:4: {place}: ")
    assert said.count("\n") == 1
    assert [path.name for path in in_scratch.iterdir()] == ["mine.yaml"]


# guides, marks and limits


def described(results, **keys):
    return overlay.describe_figure({"": results}, Composition(**keys))


def test_guides_of_each_curve_have_the_colour_of_the_curve(losses):
    swept = statmech.run(Risk(loss="square", lam=[0.1, 1], N=20, alpha=[1, 2, 4], seeds=2))
    [panel] = described(swept, y="eps_g", series="lam", guides=[{"y": "R / 2"}, {"y": "alpha / 10"}]).panels
    colours = {drawn.style.points["color"]: drawn for drawn in panel.curves}
    lines = [line for line in panel.lines if line.style["color"] in colours]
    assert len(lines) == len(colours) == 2
    for line, lam in zip(lines, (0.1, 1), strict=True):
        of_curve = colours[line.style["color"]]
        assert of_curve.label.endswith(f"{lam:g}")
        at_alphas = np.interp([1, 2, 4], line.x, line.y)
        np.testing.assert_allclose(at_alphas, swept.theory.R.sel(lam=lam) / 2, rtol=1e-3)
    [common] = [line for line in panel.lines if line not in lines]  # alike for all curves: one line in grey
    assert len({*to_rgb(common.style["color"])}) == 1


def test_a_mark_lies_on_its_curve_and_outside_its_line_it_is_not_drawn(losses):
    inside, outside = {"x": 2, "label": "two"}, {"x": 40, "label": "forty"}
    [panel] = described(losses, y="eps_g", series="loss", marks=[inside, outside]).panels
    assert [mark.x for mark in panel.marks] == [2, 2]
    for mark, loss in zip(panel.marks, ("square", "hinge"), strict=True):
        assert mark.y == pytest.approx(float(losses.theory.eps_g.sel(loss=loss, alpha=2)), rel=1e-3)
    figure = figures.compose(losses, Composition(y="eps_g", series="loss", marks=[inside]))
    assert find_figure_faults(figure) == []


@pytest.mark.parametrize("ends", [[0.1, 0.3], [None, 0.2], [0.25, None]])
def test_limits_leave_nothing_outside_the_axes(losses, ends):
    figure = figures.compose(losses, Composition(y="eps_g", x="alpha", log="x", limits={"y": ends}))
    [ax] = figure.axes
    for drawn, wanted in zip(ax.get_ylim(), ends, strict=True):
        assert wanted is None or drawn == wanted
    free = figures.compose(losses, Composition(y="eps_g", x="alpha", log="x"))
    low, high = (end if end is not None else other for end, other in zip(ends, (-np.inf, np.inf), strict=True))
    for drawn, all_inside in ((figure, True), (free, False)):
        means_and_lines = [line for line in drawn.axes[0].lines if line.get_marker() != "_"]  # no caps of error bars
        y = np.concatenate([line.get_ydata() for line in means_and_lines])
        assert ((y >= low) & (y <= high))[np.isfinite(y)].all() == all_inside
        x = np.concatenate([line.get_xdata() for line in means_and_lines])[np.isfinite(y)]
        assert x.min() >= drawn.axes[0].get_xlim()[0]
        assert x.max() <= drawn.axes[0].get_xlim()[1]


def test_a_derived_variable_is_the_formula_of_the_means_of_theory_and_of_each_run(rules):
    derive = {"gain": {"formula": "eps_g_majority_vote / theory.eps_g", "symbol": "$g$"}}
    [panel] = described(rules, y="gain", x="t", series=["rule", "K"], derive=derive).panels
    assert panel.ylabel == "$g$"
    vote, one = rules.simulation.eps_g_majority_vote, rules.theory.eps_g.mean("student")
    expected = {mean.tobytes() for mean in (vote / one).mean("seed").transpose("rule", "K", "t").values.reshape(-1, 4)}
    drawn = {np.asarray(curve.curve.mean).tobytes() for curve in panel.curves}
    assert drawn == expected
    added = guides.add_derived_variables(rules, Composition(derive=derive).derive)
    assert "gain" not in rules.simulation
    assert "gain" in added.simulation


def test_one_value_of_an_axis_is_selected_by_its_value_or_its_position(rules):
    for value, index in (("first", 0), ("last", -1), (2, 2)):
        [panel] = described(rules, y="eps_g_majority_vote", x="K", series="rule", at={"t": value}).panels
        expected = rules.simulation.eps_g_majority_vote.isel(t=index).mean("seed").sel(rule="hebb")
        np.testing.assert_allclose(panel.curves[0].curve.mean, expected)
    with pytest.raises(ConfigError, match=r"figure\.at: t has no value 3\. Possible: first, last, 0\.5, 1, 2, 5\."):
        described(rules, y="eps_g_majority_vote", x="K", at={"t": 3})


def test_several_values_of_an_axis_are_shown_alone(rules):
    [panel] = described(rules, y="eps_g_majority_vote", x="K", series="t", at={"rule": "hebb", "t": [5, 1]}).panels
    expected = rules.simulation.eps_g_majority_vote.sel(rule="hebb", t=[5, 1]).mean("seed").transpose("t", "K")
    np.testing.assert_allclose([curve.curve.mean for curve in panel.curves], expected)


def test_a_formula_takes_a_variable_at_one_value_of_an_axis(rules):
    derive = {"ratio": {"formula": "eps_g_majority_vote / eps_g_majority_vote(rule=hebb, t=last)"}}
    [panel] = described(rules, y="ratio", x="t", series="rule", at={"K": 1}, derive=derive).panels
    vote = rules.simulation.eps_g_majority_vote.sel(K=1)
    expected = (vote / vote.sel(rule="hebb", t=5)).mean("seed").transpose("rule", "t")
    np.testing.assert_allclose([curve.curve.mean for curve in panel.curves], expected)
    hebb = next(curve for curve in panel.curves if curve.label == "Hebbian")
    assert hebb.curve.theory[-1] == pytest.approx(1)  # the line, too, is divided by its last value
    assert hebb.curve.theory[0] > 1
    with pytest.raises(
        ConfigError, match=r"formula: t has no value 3\. Possible: first, last, 0\.5, 1\.0, 2\.0, 5\.0\."
    ):
        described(rules, y="ratio", derive={"ratio": {"formula": "eps_g(t=3)"}})
    with pytest.raises(ConfigError, match='formula: "tt" is not an axis of these results'):
        described(rules, y="ratio", derive={"ratio": {"formula": "eps_g(tt=3)"}})


def test_texts_are_renamed_as_a_whole_or_between_commas(rules):
    rename = {"$t$ (steps / $N$)": "time", "Hebbian": "Hebb", "$K$ = 3": "three", "$\\epsilon_g$": "error"}
    figure = described(rules, y="eps_g", x="t", series=["rule", "K"], rename=rename)
    [panel] = figure.panels
    assert (panel.xlabel, panel.ylabel) == ("time", "error")
    assert {curve.label for curve in panel.curves} >= {"Hebb, $K$ = 1", "AdaTron, three"}
    assert {"Hebb", "AdaTron", "$K$ = 1", "three"} <= {entry.label for entry in figure.curve_entries}


def test_without_theory_a_figure_has_no_lines_and_its_guides_are_functions_of_axes(rules):
    section = Composition(y="eps_g", x="t", series="rule", at={"K": 1}, theory=False, guides=[{"y": "t / 50"}])
    [ax] = figures.compose(rules, section).axes
    [line] = [line for line in ax.lines if line.get_linestyle() != "None"]
    np.testing.assert_allclose(np.interp(rules.simulation.t, *line.get_data()), rules.simulation.t / 50)
    assert "Lines: theory" not in captions.make_caption(rules, section)
    assert "Lines: theory" in captions.make_caption(rules, section.model_copy(update={"theory": True}))


def test_lines_of_theory_extend_to_the_limits_of_x_and_end_there(rules):
    [panel] = described(rules, y="R", x="t", series="rule", at={"K": 1}, limits={"x": [1, 50]}).panels
    for curve in panel.curves:
        shown = curve.curve.theory_x[np.isfinite(curve.curve.theory_x)]
        assert (shown.min(), shown.max()) == (1, 50)
        np.testing.assert_array_equal(curve.curve.x, [np.nan, 1, 2, 5])
    [impossible] = described(rules, y="R", x="t", series="rule", at={"K": 1}, limits={"x": [-1, None]}).panels
    assert np.nanmax(impossible.curves[0].curve.theory_x) == 5


def test_a_guide_in_a_plane_of_variables_follows_the_values_of_x(rules):
    [panel] = described(rules, x="R", y="eps_g", series="rule", at={"K": 3}, guides=[{"y": "q"}]).panels
    theory = rules.theory.sel(K=3).isel(student=0)
    assert len(panel.lines) == 2
    for line, rule in zip(panel.lines, ("hebb", "adatron"), strict=True):
        at_times = theory.sel(rule=rule)
        np.testing.assert_allclose(np.interp(at_times.R, line.x, line.y), at_times.q, atol=2e-3)


def test_panels_that_show_other_axes_by_colour_have_other_colours_and_markers(rules):
    panels = [{"x": "t", "series": "rule", "at": {"K": 1}}, {"x": "K", "series": "t", "at": {"rule": "hebb"}}]
    first, second = described(rules, y="eps_g", panels=panels).panels
    looks = [
        {(str(it.style.points["color"]), it.style.points["marker"]) for it in part.curves} for part in (first, second)
    ]
    assert [len(look) for look in looks] == [2, 4]
    assert not {colour for colour, _ in looks[0]} & {colour for colour, _ in looks[1]}
    again = described(rules, y="eps_g", panels=[panels[0], panels[0]]).panels
    assert again[0].curves[0].style == again[1].curves[0].style


def test_zeros_on_a_logarithmic_axis_are_marked_at_its_foot_and_bars_to_zero_leave_the_frame(rules):
    values = np.array([[0, 0.4, 0.3, 0.1], [0, 0, 0.3, 0.2], [0, 0, 0.3, 0.1]])
    runs = rules.simulation.sel(rule="hebb", K=1)
    runs = runs.assign(eps_g_majority_vote=(("seed", "t"), values))
    section = Composition(y="eps_g_majority_vote", x="t", log="y", theory=False)
    figure = figures.compose(statmech.Results(rules.scenario, runs, None), section)
    [ax] = figure.axes
    [foot] = [line for line in ax.lines if line.get_marker() is ZERO_ARROW]
    assert foot.get_xdata() == [0.5]
    assert ax.get_ylim()[0] > 0.01
    assert matplotlib_drawing.ZEROS_NOTE in figure.get_supxlabel()


def test_neighbouring_zeros_of_joined_points_have_one_arrow(rules):
    values = np.array([[0.4, 0, 0, 0.1], [0.3, 0, 0, 0.2], [0.4, 0, 0, 0.1]])
    runs = rules.simulation.sel(rule="hebb", K=1)
    results = statmech.Results(rules.scenario, runs.assign(eps_g_majority_vote=(("seed", "t"), values)), None)
    for is_joined, count in ((True, 1), (False, 2)):
        section = Composition(y="eps_g_majority_vote", x="t", log="y", theory=False, join=is_joined)
        [ax] = figures.compose(results, section).axes
        arrows = [line for line in ax.lines if line.get_marker() is ZERO_ARROW]
        assert len(arrows) == count
        assert arrows[0].get_xdata() == runs.t.values[1]


def test_a_derived_variable_of_folds_has_their_standard_error_and_separate_samples_that_of_seeds(data_folder):
    study = statmech.load("passes", ["folds=3", "seeds=4", "passes=1,3", "classifier=perceptron", "order=every"])
    runs = simulate.run(study)
    derive = {"error": {"formula": "1 - accuracy"}}
    for examples, dim in ((500, "seed"), (None, "fold")):
        scenario = study.model_copy(update={"examples": examples})
        [panel] = described(statmech.Results(scenario, runs, None), y="error", x="passes", derive=derive).panels
        values = runs.accuracy.mean("fold") if dim == "seed" else runs.accuracy
        expected = (values.std(dim, ddof=1) / np.sqrt(runs.sizes[dim])).squeeze()
        expected = expected if dim == "seed" else expected.mean("seed")
        np.testing.assert_allclose(panel.curves[0].curve.error, expected)


def test_a_panel_has_its_own_keys_and_the_others_of_the_figure(losses):
    panels = [{"y": "R", "title": "one", "log": "x"}, {"y": "eps_g", "label": "error"}]
    first, second = described(losses, series="loss", panels=panels, log="none", guides=[{"x": 2}]).panels
    assert (first.title, first.log, second.title, second.log) == ("one", "x", "", "")
    assert second.ylabel == "error"
    assert [len(panel.lines) for panel in (first, second)] == [1, 1]


# Matplotlib and Bokeh

DRAWN_TWICE = {
    "losses": {"y": ["eps_g", "R"], "series": "loss", "guides": [{"y": 0.2, "label": "a"}, {"x": 1.5}]},
    "logarithmic": {"y": "eps_g", "log": "xy", "guides": [{"y": "R / 2"}]},
    "labels": {"y": {"eps_g": "error", "R": "overlap"}, "split": "loss"},
}


@pytest.mark.parametrize("keys", DRAWN_TWICE.values(), ids=DRAWN_TWICE)
def test_matplotlib_and_bokeh_draw_the_same_description(losses, keys):
    pytest.importorskip("bokeh")
    from figures.interactive.axes_and_theme import ChartTheme
    from figures.interactive.chart import Chart

    description = described(losses, **keys)
    figure = matplotlib_drawing.draw_description(description)
    for ax, panel in zip(figure.axes, description.panels, strict=True):
        chart = Chart(panel, 300, ChartTheme())
        scales = [type(getattr(chart.figure, f"{axis}_scale")).__name__ for axis in "xy"]
        assert [name == "LogScale" for name in scales] == [ax.get_xscale() == "log", ax.get_yscale() == "log"]
        assert chart.figure.yaxis[0].axis_label == panel.ylabel.replace("$", "$$")
        points = chart.curves["simulation"].data
        by_bokeh = {(x, y, colour) for x, y, colour in zip(points["x"], points["y"], points["color"], strict=True)}
        marked = [line for line in ax.lines if line.get_marker() in "os^D" and line.get_linestyle() == "None"]
        by_matplotlib = {(x, y, to_hex(line.get_color())) for line in marked for x, y in line.get_xydata().tolist()}
        assert by_bokeh == by_matplotlib != set()
        theory = chart.curves["theory"].data
        assert len(theory["y"]) == len(panel.curves)
        for curve, colour, y in zip(panel.curves, theory["color"], theory["y"], strict=True):
            assert colour == to_hex(curve.style.line["color"])
            of_colour = [line for line in ax.lines if to_hex(line.get_color()) == colour]
            assert np.isin(curve.curve.theory, y).all()
            assert any(np.isin(curve.curve.theory, line.get_ydata()).all() for line in of_colour)
        assert {*points["label"]} == {labels.plain_from_latex(curve.label) for curve in panel.curves}
        spans = [it for it in chart.figure.center if type(it).__name__ == "Span"]
        straight = [line for line in panel.lines if line.x is None or line.y is None]
        assert len(spans) == len(straight)
        for span, line in zip(spans, straight, strict=True):
            assert span.location == (line.x if line.y is None else line.y)
            assert span.line_color == to_hex(line.style["color"])
    named = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert {entry.label for entry in description.curve_entries} <= {*named}


# shipped sections and stored results

SECTIONS = [name for name, config in read_shipped_configs().items() if not config.figure.drawn_by]


def test_a_title_that_changes_is_the_same_sweep_and_is_drawn_anew(in_scratch, capsys):
    config = in_scratch / "mine.yaml"
    document = (
        "loss: [square, hinge]\nalpha: [1, 2]\nN: 10\nseeds: 2\nfigure: {{title: {0}, y: eps_g, name: mine{1}}}\n"
    )
    config.write_text(document.format("first", ""))
    assert exit_code("run", "mine.yaml") == 0
    stored = statmech.load_results("results/mine")
    capsys.readouterr()
    config.write_text(document.format("second", "_again"))
    assert exit_code("run", "mine.yaml") == 0
    said = capsys.readouterr().err
    assert "another config" not in said
    assert statmech.load_results("results/mine").simulation.equals(stored.simulation)
    assert (in_scratch / "results/mine/mine_again.png").is_file()


@pytest.mark.parametrize("content", ["", ", y: eps_g"])
def test_stored_results_are_drawn_with_the_section_of_the_latest_run(in_scratch, content):
    config, document = (
        in_scratch / "mine.yaml",
        "loss: square\nalpha: [1, 2]\nN: 10\nseeds: 2\nfigure: {{caption: {0}, name: mine{1}}}\n",
    )
    for caption in ("Before.", "After."):
        config.write_text(document.format(caption, content))
        assert exit_code("run", "mine.yaml") == 0
    assert exit_code("figure", "results/mine") == 0
    assert (in_scratch / "results/mine/mine.txt").read_text().startswith("After.")
    assert exit_code("verify", "results/mine") == 0
    (in_scratch / "results/mine/simulation.zarr").rename(in_scratch / "simulation.zarr")
    assert statmech.load_results("results/mine").figure.caption == "After."


@pytest.mark.slow
def test_the_command_draws_a_shipped_section_for_results_of_the_user(in_scratch, capsys):
    in_scratch.joinpath("mine.yaml").write_text("rule: [hebb, perceptron]\nK: [1, 3]\nN: 20\nt: [1, 2]\nseeds: 2\n")
    assert exit_code("run", "mine.yaml") == 0
    assert exit_code("figure", "results/mine", "figure=ensemble") == 0
    assert (in_scratch / "results/mine/ensemble.png").is_file()
    caption = (in_scratch / "results/mine/ensemble.txt").read_text()
    assert "divided by the mean error of the same students" in caption
    assert "Command: `statmech run ensemble seeds=2 rule=hebb,perceptron K=1,3 N=20 t=1,2`" in caption
    assert exit_code("figure", "results/mine", "figure=hebb_ensemble", "--formats", "png") == 0
    assert exit_code("figure", "results/mine", "figure=double_descent") == 2
    assert '"double_descent" is not a figure of a config with `rule`' in capsys.readouterr().err


@pytest.mark.slow
def test_options_of_the_command_replace_the_panels_of_a_section(in_scratch, capsys):
    assert exit_code("run", "ensemble", "N=20", "seeds=2", "t=1,2", "K=1,3", "rule=hebb,adatron") == 0
    before = (in_scratch / "results/ensemble/ensemble.png").read_bytes()
    assert exit_code("figure", "results/ensemble", "--y", "R", "--series", "rule", "--formats", "png") == 0
    assert (in_scratch / "results/ensemble/ensemble.png").read_bytes() == before
    assert (in_scratch / "results/ensemble/R_by_rule.png").is_file()
    assert "statmech figure ensemble --y R --series rule" in (in_scratch / "results/ensemble/R_by_rule.txt").read_text()
    capsys.readouterr()


def test_a_section_that_does_not_suit_overridden_keys_falls_back_to_the_overlay():
    results = statmech.run("variety", K=1, rule="hebb", N=20, t=[1, 2], seeds=2)  # one student has no q
    drawn = figures.draw_with_fallback("variety", results)
    assert drawn.name == figures.OVERLAY
    beginning = "the figure variety cannot show these results (figure: q has no value in these results. Variables"
    assert drawn.reason.startswith(beginning)
    own = Composition(y="q")
    with pytest.raises(ConfigError, match="q has no value in these results"):
        figures.draw_with_fallback(own, results)
    with pytest.raises(ConfigError, match="q has no value in these results"):
        figures.draw("variety", results)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_shipped_section_says_what_it_shows_and_survives_a_round_trip(name):
    figure = read_shipped_configs()[name].figure
    assert {*figure.model_dump()} - {"name", "title", "question", "caption"}
    assert figure.caption or name == "curriculum"
    guides_of_panels = [guide for part in (figure, *figure.panels) for guide in part.guides]
    assert [guide for guide in guides_of_panels if not (guide.label or guide.text)] == []
    scenario = statmech.load(name)
    assert [*scenario.figure.problems(scenario)] == []
    assert Composition(**scenario.figure.model_dump(mode="json")) == scenario.figure


def test_symbols_in_a_figure_are_defined_once_unless_an_axis_defines_them(rules):
    rename = {"$t$ (steps / $N$)": "time $t$ of $N$ inputs", "$q$": "student-student cosine $q$"}
    figure = described(rules, panels=[{"y": "q"}, {"y": "eps_g"}], x="t", series=["rule", "K"], rename=rename)
    defined = dict(text.split(": ") for text in figure.definitions)
    assert (defined["$K$"], defined["$\\epsilon_g$"]) == ("number of students", "generalization error")
    assert {"$q$", "$t$", "$p_f$", "$c$"}.isdisjoint(defined)  # defined on its axis, on every axis, not in the figure
    assert defined["$N$"] == "input dimension"
    drawn = figures.compose(rules, Composition(y="eps_g", x="t", series=["rule", "K"], width="page"))
    assert "number of students" in drawn.legends[0].get_title().get_text()


def test_an_axis_of_markers_has_dashes_in_the_legend_only_where_theory_has_values(rules):
    theory = rules.theory.where(rules.theory.K == 1)
    entries = {
        part.label: part.style["linestyle"]
        for part in described(replace(rules, theory=theory, lines=None), y="eps_g", series=["rule", "K"]).curve_entries
    }
    assert entries["$K$ = 1"] != "none"
    assert entries["$K$ = 3"] == "none"


def test_panels_keep_labels_that_their_neighbours_do_not_have(rules):
    section = Composition(panels=[{"y": "eps_g", "split": "K"}, {"y": "R", "at": {"K": 1}}], x="t", share="y")
    labels = [ax.get_ylabel() for ax in figures.compose(rules, section).axes]
    assert labels == ["$\\epsilon_g$", "", "$R$"]


def test_equally_spaced_points_are_thinned_with_the_last_one_and_the_peaks_of_theory():
    x = np.arange(51.0)
    peaked = curves.Curve("", x, mean=x, theory_at_x=-abs(x - 17))
    assert curves.thin_curve(peaked, log=False).x.tolist() == sorted([*x[::5], 17])
    assert figures.choose_figure("minover_a", "", "learner").y == figures.choose_figure("minover", "", "learner").y
    assert curves.thin_curve(curves.Curve("", x, mean=x), log=False).x.tolist() == x[::5].tolist()
