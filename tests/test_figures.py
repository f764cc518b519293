"""Each published figure is drawn from a tiny config and agrees with the claims of the paper."""

from __future__ import annotations

import re
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image
from small import SMALL

import figures
import simulate
import theory
from figures import (
    OVERLAY,
    captions,
    curves,
    inspection,
    labels,
    legends,
    list_figures_by_kind,
    overlay,
    style,
)
from figures.classification.concepts import draw_concept_bars
from figures.interactive.axes_and_theme import compute_y_limits
from figures.matplotlib_drawing import encode_gif, save_film
from figures.published import fluctuations, optimal_rules, version_space
from statmech import (
    Boosting,
    ConfigError,
    Inference,
    LabelledRows,
    Network,
    Results,
    Risk,
    Scenario,
    StoredExamples,
    load,
    run,
)
from statmech.config.config_files import list_shipped_configs
from statmech.inputs.data_sets import load_data_set
from statmech.keys.figure_key import Composition
from theory.solutions import cache_theory_lines

pytestmark = pytest.mark.quick  # of claims about what is drawn, and about equations

FIGURES_BY_KIND = list_figures_by_kind()
NAMES = list(dict.fromkeys(name for figures_of in FIGURES_BY_KIND.values() for name in figures_of))
BOTH = ["eta=[1, {optimal: {segments: 2}}]", "protocol={optimal: {segments: 2}}"]
TINY = ["N=40", "seeds=4", "t=0.5,2"]


# parallel axes, shorter than those of their configs
RATES = """rule: [bayes, bayes, hebb, hebb, perceptron, perceptron], drift: [0.1, 1, 0.1, 1, 0.1, 1],
  decay: [0.1, 1, 0.37057, 1.50773, 0, 0]"""
FLIPS = """rule: [bayes, bayes, hebb, hebb, perceptron, perceptron], flip: [0, 0.1, 0, 0.1, 0, 0.1],
  assumed_flip: [0, 0.1, 0, 0, 0, 0], schedule: [{t0: 1e9}, {t0: 1e9}, {t0: 1e9}, {t0: 1e9}, {t0: 2.33}, {t0: 0.464}]"""
FEATURES = """N: [24, 120, 300], alpha: [7.5, 1.5, 0.6],
  inputs: [{features: {latent: 2.5}}, {features: {latent: 0.5}}, {features: {latent: 0.2}}]"""

POWER_LAWS = ", ".join(f"{{power_law: {{decay: 1.5, teacher_decay: {one}}}}}" for one in (1.5, 2.5))

OWN = {  # overrides of figures whose configs need more than those of their kind
    "votes": ["folds=2", "seeds=2", "data=votes,promoters", "classifier=tree,ordinary,boosting", "stages=3"],
    "table1": ["folds=2", "seeds=1", "data=votes,coding", "classifier=tree,ordinary,boosting", "stages=3"],
    "table2": ["folds=2", "seeds=1", "data=votes,coding", "classifier=tree,ordinary,boosting", "stages=3"],
    "votes_concept": ["folds=2", "stages=5"],
    "promoters_concept": ["folds=2", "stages=5", "discount=1"],
    "codons": ["folds=2", "stages=8", "discount=0.5,1"],
    "discount": ["folds=2", "stages=3", "discount=0,1", "seeds=1"],
    "passes": ["folds=2", "seeds=1", "passes=1,3"],
    "digits_attention": ["folds=2", "passes=2"],
    "digits_theta": ["folds=2", "passes=2", "seeds=1", "theta=1,100"],
    "boundaries": ["folds=2"],
    "digits": ["folds=2", "passes=2"],
    "version_space": ["alpha=1,2", "updates=1,2,3"],
    "plateau": ["N=60", "seeds=4", "t={linspace: [0, 120, 41]}"],
    "plateau_spread": [
        "inputs=[{spectrum: [0.7, 1.3]}, {spectrum: [0.4, 1.6]}]",
        "N=40",
        "seeds=4",
        "t={linspace: [0, 200, 21]}",
    ],
    "learning_curves": ["K=2", *TINY],
    "advantage": ["K=2", *TINY],
    "averaged_perceptron": ["N=40", "seeds=4", "t=1,2,10,20,30"],
    "own_examples": ["K=3", *TINY],
    "ensemble_teachers": TINY,
    "moving_teacher": TINY,
    "generations": ["N=20", "seeds=3"],
    "fluctuations": ["rule=hebb,adatron_textbook", *TINY],
    "hitting_times": ["N=20,30", "seeds=4"],
    "hitting_law": ["N=30", "seeds=16"],
    "best_search_rate": ["N=20", "seeds=4", "eta=0.2,0.4"],
    "wedge_width": ["N=20", "seeds=4", "wedge_width=1.1,1.15"],
    "escape": ["N=40,60", "seeds=8", "t={linspace: [0, 120, 41]}"],
    "activations": ["network=erf,linear", *TINY],
    "noise_floor": ["zip={M: [1, 1, 2], K: [1, 2, 2]}", "N=40", "seeds=4", "t=2,5"],
    "committee": ["M=1", "N=40", "seeds=4", "t=0.5,2"],
    "forgetting": ["N=40", "seeds=4", "overlap=0,0.5"],
    "replay": ["N=40", "seeds=4", "t=0,2,3", "switch=2", "protocol=[blocked, {replay: 0.5}]"],
    "optimal_rate": ["N=40", "seeds=4", "t=1,2,3"],
    "optimal_protocol": [
        "network=linear",
        "N=40",
        "seeds=4",
        "t=0,1,2",
        "switch=1",
        "M=1",
        "K=1",
        "start=drawn",
        *BOTH,
    ],
    "double_descent": ["N=20", "seeds=3", "alpha=0.3,0.8,1.5,3"],
    "best_lambda": ["N=20", "seeds=3", "alpha=3", "lam=0.1,1,10"],
    "logistic_threshold": ["N=20", "seeds=3", "gain=1,3", "alpha=1.5,3,6"],
    "bayes_gap": ["N=20", "seeds=3", "alpha=1,3"],
    "bagging": ["N=20", "seeds=3", "resample=[{share: 0.3}, {share: 0.6}, {share: 1}]"],
    "bagged_stability": ["N=20", "seeds=3", "alpha=1,2", "resample=[{share: 0.5}, {share: 1}]"],
    "random_features": [f"zip={{{FEATURES}}}", "seeds=2", "lam=0,1e-3"],
    "multiple_descent": ["N=40", "seeds=2", "alpha=0.05,0.3,0.8,2"],
    "aligned": ["N=40", "seeds=2", "lam=0.01,0.1,1"],
    "clusters": ["N=20", "seeds=3", "alpha=1,3", "lam=0.1,1,10"],
    "mnist_curves": ["P=20,40", "seeds=3"],
    "where_it_fails": ["P=12,24", "seeds=3"],
    "early_stopping": ["N=40", "seeds=3", "epochs=1,3,10", "alpha=1,2"],
    "batches": ["N=40", "seeds=3", "epochs=1,2,3", "batch=1,0.5"],
    "momentum": ["N=40", "seeds=3", "epochs=1,3,10", "momentum=0,0.8"],
    "implicit_bias": ["N=40", "seeds=3", "epochs=1,5,20,60"],
    "batch_perceptron": ["N=40", "seeds=3", "epochs={geomspace: [1, 12, 7]}", "alpha=0.5,0.75"],
    "binary_perceptron": ["N=40", "seeds=3", "alpha=1,1.3,1.6", "steps=20"],
    "amp_steps": ["N=40", "seeds=3", "alpha=1,1.6", "steps=8"],
    "optimal": TINY,
    "noise_optimal": [f"zip={{{FLIPS}}}", "N=40", "seeds=4", "t=2"],
    "drift": [f"zip={{{RATES}}}", "N=40", "seeds=4", "t=2"],
    "sgd_power_law": [f"inputs=[{POWER_LAWS}]", "N=40", "seeds=4", "t=0.1,1,5"],
    "curriculum": ["N=40", "seeds=4", "t=0,5,12"],
    "clusters_online": ["N=40", "seeds=4", "t=0,1,5"],
}


FEWER = {  # places of lines that are solved one by one
    "aligned": {"TEACHER_PART_POINTS": 41},
    "random_features": {"WIDTH_LINE_POINTS": 41, "WIDTH_PEAK_FACTORS": 10 ** np.linspace(-0.1, 0.1, 21)},
    "noise_optimal": {"FLIP_LINE_POINTS": 8},
    "drift": {"DRIFT_LINE_POINTS": 8},
    "plateau_spread": {"SPREAD_LINE_POINTS": 8},
}
UPDATES = ("minover_a", "minover_updates", "minover_c")  # whose configs count updates


def tiny(name):
    """A small scenario that a figure can draw."""
    if name in OWN:
        return load(name, OWN[name])
    if name in FIGURES_BY_KIND["rule"]:
        config = name if name in list_shipped_configs() else "variety"
        return load(config, [*TINY, *([] if config == "variety" else ["K=1,2"])])
    if name in FIGURES_BY_KIND["booster"]:
        if name == "boosting_flip":
            return load(name, ["N=5", "seeds=2", "P=40", "tests=200", "flip=0,0.1,0.2", "cap=3,10,100,1000"])
        return load("boosting", ["N=6", "seeds=2", "s=1,5,9,25", "P=30,100,1000,10000", "tests=200"])
    small = {
        "boundary": ["N=30,40,55,70,90" if name == "stopping_law" else "N=30", "seeds=2", "walks=20"],
        "attention": ["N=30", "seeds=2", "t=0.2,0.5", "error_rate=0.05,0.3"],
    }
    for choice in small:
        if name in FIGURES_BY_KIND[choice]:
            return load(name, small[choice])
    if name == "proof":
        return load("proof", ["N=10", "seeds=2", "alpha=2"])
    stored = ["N=10", "seeds=4", "alpha=1,2", "updates=30,300" if name in UPDATES else "epochs=5,30"]
    return load(name, [*stored, *(["sweeps=20", "votes=5"] if name == "stored_curves" else [])])


@pytest.mark.slow
def test_every_figure_but_the_overlay_has_a_config_and_every_config_a_figure():
    every = {name: load(name) for name in list_shipped_configs()}
    drawn = [figures.choose_figure(scenario.figure, name, scenario.CHOICE) for name, scenario in every.items()]
    described = {figure.name for figure in drawn if isinstance(figure, Composition)}
    coded = {figure for figure in drawn if isinstance(figure, str)}
    assert described | coded == set(NAMES) - {OVERLAY}
    assert all(figures.get_published_figure(name).draw.__doc__ for name in coded)
    assert not any(figures.get_published_figure(name) for name in described)


QUICK = ("stopping_law",)
IN_EVERY_FORMAT = ("minover", "codons", "version_space")  # lines, bars, a sphere
DRAWN_TWICE = (*IN_EVERY_FORMAT, "digits_attention", "drift")  # whose lines are solved while it is drawn


def to_a_thousandth(picture):
    """An SVG with lengths to a thousandth of a point, without names that are hashes of all digits.

    The layout of a figure in a process can differ in its last bits from one drawing to the next (digits_attention).
    """
    plain = re.sub(r"\b[a-z]?[0-9a-f]{10}\b", "", picture.read_text())
    return re.sub(r"-?\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.3f}", plain)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_a_figure_draws_from_a_tiny_config(name, tmp_path, data_folder, monkeypatch):
    for constant, value in FEWER.get(name, {}).items():
        monkeypatch.setitem(figures.get_published_figure(name).draw.__globals__, constant, value)
    scenario = tiny(name)
    simulation, solution = simulate.run(scenario), None if scenario.on_data else theory.solve(scenario)
    before, given = dict(mpl.rcParams), [None if it is None else it.copy(deep=True) for it in (simulation, solution)]
    figure = figures.draw(name, simulation, solution)
    formats = ["svg", "png", "pdf"] if name in IN_EVERY_FORMAT else ["svg"]
    with style._lay_out_once(figure):  # once for the files and for what is said of them
        files = style.save_figure(figure, tmp_path / name, formats)
        faults = inspection.find_figure_faults(figure, Results(scenario, simulation, solution))
    assert dict(mpl.rcParams) == before  # the reader's settings are unchanged
    assert [file.suffix for file in files] == [f".{suffix}" for suffix in formats]
    assert all(file.stat().st_size > 5000 for file in files)
    for one, other in zip((simulation, solution), given, strict=True):
        assert one is other or one.identical(other)
    if name in DRAWN_TWICE:
        [again] = style.save_figure(figures.draw(name, simulation, solution), tmp_path / "again", ["svg"])
        assert to_a_thousandth(again) == to_a_thousandth(files[0])
    drawn = [line for ax in figure.axes for line in ax.lines]
    assert drawn, "a figure without a line"
    assert faults == []


def test_the_walk_of_the_version_space_is_the_stored_run():
    """The weights regenerated from key and strengths have the recorded stabilities; another key's examples do not."""
    simulation = simulate.run(tiny("version_space"))
    wrong = simulation.assign_attrs(config=simulation.attrs["config"].replace('"key": 227', '"key": 228'))
    assert wrong.attrs != simulation.attrs
    for index, (walk, other) in enumerate(
        zip(version_space.make_walks(simulation), version_space.make_walks(wrong), strict=True)
    ):
        recorded = simulation.kappa.isel(alpha=index, seed=0)
        np.testing.assert_allclose(walk.stability, recorded.sel(learner="minover"), atol=1e-12)
        np.testing.assert_allclose(walk.max_stability, recorded.sel(learner="max_stability")[-1], rtol=1e-12)
        assert np.all(walk.stability <= walk.max_stability)
        assert not np.allclose(other.stability, recorded.sel(learner="minover"))


def test_the_version_space_needs_three_dimensions_and_strengths():
    flat = StoredExamples(learner=["minover", "max_stability"], N=4, alpha=1, updates=[1], seeds=1, strengths=True)
    with pytest.raises(ConfigError, match='version_space" requires N: 3, `updates`, `strengths: true`'):
        figures.draw("version_space", simulate.run(flat), theory.solve(flat))


@pytest.mark.slow
def test_a_film_is_written_beside_its_figure_and_is_the_same_each_time(tmp_path):
    scenario = tiny("version_space")
    results = Results(scenario, simulate.run(scenario), theory.solve(scenario))
    [file] = save_film(figures.get_film_frames("version_space", results), tmp_path / "version_space")
    assert file.name == "version_space.gif"
    assert encode_gif(figures.get_film_frames("version_space", results)) == file.read_bytes()
    with Image.open(file) as picture:
        assert picture.n_frames == 4 + 3  # 1, 2, 3 and 6 examples, then updates
    assert figures.get_film_frames("minover", results) is None


@pytest.mark.slow
def test_a_sweep_that_a_figure_cannot_show_is_drawn_as_an_overlay():
    scenario = load("fluctuations", ["eta=0.5,1", "rule=hebb", "N=20", "seeds=2", "t=1,2"])
    drawn = figures.draw_with_fallback("fluctuations", computed(scenario))
    assert (drawn.name, drawn.reason) == (OVERLAY, "the figure fluctuations cannot show the axis eta")
    ensemble = run(load("adatron_ensemble", ["K=1", "eta=0.5,1", "N=20", "seeds=2", "t=1"]))
    drawn = figures.draw_with_fallback(figures.choose_figure(None, "adatron_ensemble", "rule"), ensemble)
    assert drawn.reason == "the figure adatron_ensemble needs several values of K"
    assert drawn.figure.axes[0].get_xlabel() == r"$\eta$"
    assert figures.choose_figure(None, "", "rule") == OVERLAY
    assert figures.choose_figure(None, "fluctuations", "rule") == "fluctuations"
    assert figures.choose_figure(None, "variety", "rule").name == "variety"


@pytest.fixture
def lines_once():
    """Overlays of the same results take the place of most figures of a kind, and their lines are the same."""
    with cache_theory_lines():
        yield


FOREIGN = {  # results of the kind of a figure, but not those that it is drawn of
    "rule": [
        Scenario(rule="perceptron", flip=0.1, K=2, N=20, t=[1, 2], seeds=3),
        Scenario(
            zip={"rule": ["hebb"] * 2, "assumed_flip": [0, 0], "flip": [0, 0.1], "schedule": [{"t0": 1}, {"t0": 2}]},
            N=20,
            t=1,
            seeds=2,
        ),
    ],
    "network": [
        Network(network="relu", M=1, K=2, N=20, t=[1, 2], seeds=3),
        Network(network="erf", M=2, K=2, N=20, t=[1], seeds=2),
    ],
    "learner": [StoredExamples(learner="perceptron", N=10, alpha=[1.0, 2.0], seeds=3)],
    "boundary": [load("stopping", ["N=16", "seeds=2", "walks=20", "error_rate=0.1", "boundary=constant"])],
    "attention": [load("attention", ["N=16,20", "seeds=2", "t=0.5", "error_rate=0.1"])],
    "booster": [Boosting(booster="adaboost", N=6, s=1, P=20, tests=100, seeds=2)],
    "loss": [Risk(loss="hinge", N=10, alpha=[1.0, 2.0], lam="best", seeds=3)],
    "prior": [Inference(prior="gauss", N=20, alpha=1.0, start="informed", seeds=3)],
    "population": [LabelledRows(population="table", loss="square", inputs={"rows": "clouds-60"}, P=[20, 40], seeds=3)],
    "classifier": [load("votes", ["folds=2", "seeds=1", "classifier=tree"])],
}


@pytest.mark.slow
@pytest.mark.parametrize("choice", FOREIGN)
def test_a_figure_that_cannot_show_results_of_its_kind_is_replaced_by_the_overlay(choice, lines_once, data_folder):
    for results in map(computed, FOREIGN[choice]):
        for name in set(FIGURES_BY_KIND[choice]) - {OVERLAY}:
            drawn = figures.draw_with_fallback(name, results)
            assert drawn.name == (OVERLAY if drawn.reason else name)
            assert not re.search(r"\((Key|Index|Value)Error", drawn.reason), drawn.reason


def test_a_figure_that_fails_on_results_is_replaced_by_the_overlay_and_says_why(monkeypatch):
    results = computed(Scenario(rule="hebb", N=20, t=[1, 2], seeds=2, corrections=True))
    assert figures.draw_with_fallback("fluctuations", results)[::2] == ("fluctuations", "")
    failing = replace(fluctuations.fluctuations, draw=lambda simulation, theory: simulation["lost"])
    monkeypatch.setattr(fluctuations, "fluctuations", failing)
    name, figure, reason = figures.draw_with_fallback("fluctuations", results)
    assert name == "overlay"
    assert len(figure.axes) > 1
    assert reason.startswith("the figure fluctuations cannot show these results (KeyError: ")
    assert "lost" in reason


@pytest.mark.slow
def test_a_single_recorded_time_is_drawn_against_the_longest_numeric_axis():
    swept = load("hebb_ensemble", ["K=1,2", "eta=0.5,1,2", "N=20", "seeds=2", "t=1"])
    simulation, solution = simulate.run(swept), theory.solve(swept)
    [ax] = [ax for ax in figures.draw("overlay", simulation, solution).axes if ax.get_ylabel() == r"$\epsilon_g$"]
    assert ax.get_xlabel() == r"$\eta$"
    eta, line = ax.lines[0].get_xydata().T
    assert eta[[0, -1]].tolist() == [0.5, 2]
    ends = solution.eps_g.isel(t=0, K=0, student=0, eta=[0, -1])
    np.testing.assert_allclose(line[[0, -1]], ends, rtol=1e-6)
    side = Scenario(rule="hebb", N=20, t=1, seeds=2, zip={"eta": [1, 2], "flip": [0, 0.1]})
    figures.draw("overlay", simulate.run(side), theory.solve(side))
    rules = Scenario(rule=["hebb", "perceptron"], N=20, t=1, seeds=2)
    assert figures.draw("overlay", simulate.run(rules), theory.solve(rules)).axes[1].get_xlabel() == "$t$ (steps / $N$)"


def computed(scenario):
    """Results of a small scenario."""
    return Results(scenario, simulate.run(scenario), None if scenario.unsolved else theory.solve(scenario))


@pytest.mark.slow
def test_weights_point_from_the_negative_to_the_positive_class(data_folder):
    perceptron = figures.draw("boundaries", computed(tiny("boundaries"))).axes[0]
    [arrow] = [text for text in perceptron.texts if getattr(text, "arrow_patch", None)]
    data = load_data_set("separable")
    centres = [data.X[data.y == name].mean(axis=0) for name in "-+"]
    assert np.subtract(arrow.xy, arrow.xyann) @ np.subtract(*reversed(centres)) > 0


def test_a_kind_of_scenario_without_published_figures_is_drawn_by_the_overlay():
    assert figures.choose_figure(None, "", "unit") == "overlay"
    assert figures.choose_figure("overlay", "something", "unit") == "overlay"
    with pytest.raises(ConfigError, match='"ensemble" is not a figure of a config with `unit`'):
        figures.choose_figure("ensemble", "something", "unit")


def test_every_symbol_has_a_plain_text_form():
    for choice, scenario in SMALL.items():
        keys = [labels.get_symbol(scenario, name) for name in scenario.axis_names()]
        for symbol in [*keys, *(variable.symbol for variable in scenario.variables.values())]:
            text = labels.plain_from_latex(symbol)
            assert text, (choice, symbol)
            assert not set("\\${}") & set(text), (choice, symbol, text)


def test_an_axis_with_a_zero_stays_linear_in_a_picture():
    import xarray as xr

    scenario = Scenario(rule="hebb", N=20, t=[0, 1, 100, 1000], seeds=2)
    means = xr.Dataset({"eps_g": (("seed", "t"), [[0.5, 0.1, 1e-3, 0.0]] * 2)}, {"t": list(scenario.t)})
    for part, axes in ((means, ""), (means.isel(t=slice(1, 3)), "y")):
        [panel] = overlay.describe_figure({"": Results(scenario, part)}, Composition(y="eps_g")).panels
        assert panel.log == axes


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_no_axis_shows_what_a_comparison_calls_rounding(value):
    import xarray as xr

    scenario = Scenario(rule="hebb", N=20, t=[1, 2, 3], seeds=2)
    runs = value + np.array([[1e-16, 2e-14, 3e-12], [0.0, 1e-14, 1e-12]])
    means = xr.Dataset({"eps_g": (("seed", "t"), runs)}, {"t": list(scenario.t)})
    [ax] = figures.draw(OVERLAY, Results(scenario, means)).axes
    curve = curves.Curve("", np.array(scenario.t), runs.mean(axis=0), np.full(3, 1e-12))
    for low, high in (ax.get_ylim(), compute_y_limits([curve], False, False)):
        assert (low, high) == pytest.approx((value - curves.EQUAL_LIMITS_MARGIN, value + curves.EQUAL_LIMITS_MARGIN))
    finer = compute_y_limits([replace(curve, mean=value + 1e-6 * curve.x)], False, False)
    assert finer.high - finer.low < 1e-5


def test_folds_give_the_standard_error_of_each_shuffle():
    import xarray as xr

    folds = xr.DataArray([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]], dims=("seed", "fold"))
    mean, error = curves.compute_mean_and_error(folds)
    assert mean == 1.0
    np.testing.assert_allclose(error, (1 / np.sqrt(3) + 0) / 2)


def test_boosting_along_one_value_of_s_and_P_and_along_others_still_draws():
    one = load("boosting", ["N=6", "seeds=1", "s=3", "P=50", "tests=500"])
    figures.draw("boosting", simulate.run(one), theory.solve(one))
    other = load("boosting", ["N=6", "seeds=2", "s=3", "P=50", "tests=500", "discount=0,0.5,1"])
    assert figures.draw_with_fallback("boosting", computed(other)).reason == ""


def overlapping(figure):
    """Pairs of overlapping texts in a figure."""
    figure.canvas.draw()
    [ax] = figure.axes
    texts = [*ax.get_yticklabels(), *ax.texts]
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    return [(i, j) for i in range(len(boxes)) for j in range(i) if boxes[i].overlaps(boxes[j])]


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_a_concept_is_drawn_with_one_bar_per_conjunction_and_no_overlaps(classes, tmp_path):
    from simulate.learners import SparsePerceptron

    rng = np.random.default_rng(classes)
    X = rng.choice(["$much_", "a long word for little"], (200, 12)).astype(object)
    y = rng.integers(0, classes, 200)
    model = SparsePerceptron(stages=25, discount=1.0).fit(X, y)
    figure = draw_concept_bars(model, max_bars=25)
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert len(widths) == min(25, model.n_weights_)
    assert max(map(abs, widths)) == pytest.approx(max(term.weight for term in model.terms_))
    assert len({bar.get_facecolor() for bar in figure.axes[0].patches}) == classes
    assert overlapping(figure) == []
    assert all(file.stat().st_size > 5000 for file in style.save_figure(figure, tmp_path / "concept"))
    with pytest.raises(ValueError, match="no bars to draw"):
        draw_concept_bars([])


def test_a_figure_of_the_other_kind_is_refused():
    with pytest.raises(ConfigError, match='"ensemble" is not a figure of a config with `learner`'):
        figures.choose_figure("ensemble", "minover", "learner")
    with pytest.raises(ConfigError, match='"ensembl" is not a figure'):
        figures.choose_figure("ensembl", "something", "rule")


def test_a_figure_that_cannot_be_drawn_is_refused_by_name():
    swept = Scenario(rule="hebb", eta=[0.5, 1], N=20, seeds=2, t=1)
    simulation, solution = simulate.run(swept), theory.solve(swept)
    with pytest.raises(ConfigError, match='Did you mean "adatron_ensemble"'):
        figures.draw("adatron", simulation, solution)
    with pytest.raises(ConfigError, match="cannot show the axis eta"):
        figures.draw("fluctuations", simulation, solution)
    figures.draw("hebb_ensemble", simulation.sel(eta=1), solution.sel(eta=1))


@pytest.mark.slow
def test_one_seed_draws_without_error_bars():
    scenario = load("learning_curves", ["K=2", "N=20", "seeds=1", "t=1,2", "rule=hebb"])
    figures.draw("learning_curves", simulate.run(scenario), theory.solve(scenario))


def test_a_figure_holds_the_values_of_its_datasets():
    scenario = load("hebb_ensemble", ["K=1,3", "N=40", "seeds=4", "t=1,2"])
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    [ax] = figures.draw("hebb_ensemble", simulation, solution).axes
    K, line = ax.lines[0].get_xydata().T
    expected = solution.eps_g_majority_vote.isel(t=-1) / solution.eps_g.isel(t=-1, K=-1, student=0)
    np.testing.assert_array_equal(K, [1, 2, 3])
    np.testing.assert_allclose(line[[0, 2]], expected)
    assert line[1] == pytest.approx(line[0], rel=1e-8)  # two students vote no better than one


# The claims of the paper on theory at t = 50 from its initial conditions (section 5, Figures 1 to 4).


@pytest.fixture(scope="module")
def paper():
    rules = ["hebb", "perceptron", "adatron"]
    return theory.solve(Scenario(rule=rules, K=[1, 3, 11, 101], t=[0.5, 1, 2, 5, 10, 20, 50]))


def gain(paper, output):
    return (paper[output] / paper.eps_g.isel(student=0)).sel(t=50, K=101).to_series()


@pytest.mark.slow
def test_improvement_is_small_for_hebbian_and_large_for_adatron(paper):
    ratio = gain(paper, "eps_g_majority_vote")
    assert ratio.hebb > 0.99
    assert ratio.adatron < ratio.perceptron < 0.75


@pytest.mark.slow
def test_all_three_rules_are_improved_and_more_students_never_hurt(paper):
    assert np.all(np.diff(paper.eps_g_majority_vote.sel(t=50), axis=1) < 0)


@pytest.mark.slow
def test_the_weight_mean_beats_the_majority_vote(paper):
    several = paper.sel(K=[3, 11, 101])
    assert np.all(several.eps_g_weight_mean < several.eps_g_majority_vote)


@pytest.mark.slow
def test_adatron_has_the_smallest_q_at_a_given_R():
    R, rules = np.linspace(0.3, 0.97, 30), ["hebb", "perceptron", "adatron"]
    fine = theory.solve(Scenario(rule=rules, K=2, t=list(np.geomspace(0.1, 60, 120)))).isel(student=0)
    curve = {rule: np.interp(R, fine.R.sel(rule=rule), fine.q.sel(rule=rule)) for rule in rules}
    assert np.all(curve["adatron"] < curve["perceptron"])
    assert np.all(curve["perceptron"] < curve["hebb"])


CORRECTED = Scenario(rule="hebb", eta=[0.5, 1], N=[20, 500], t=[0.5, 1, 5, 20], seeds=3, corrections=True)


@pytest.fixture(scope="module")
def corrected():
    return computed(CORRECTED)


def fills(ax):
    """The vertices of every band in axes."""
    paths = [path.vertices for collection in ax.collections for path in getattr(collection, "get_paths", list)()]
    return [np.asarray(one) for one in paths if len(one) > 20]


@pytest.mark.slow
def test_an_overlay_draws_the_band_of_one_run_for_each_N_around_one_line(corrected):
    figure = figures.draw("overlay", corrected)
    drawn = [ax for ax in figure.axes if ax.axison]
    assert not any("std" in ax.get_ylabel() or "bias" in ax.get_ylabel() for ax in drawn)
    [ax] = [ax for ax in drawn if ax.get_ylabel() == r"$\epsilon_g$"]
    assert len(fills(ax)) == 4  # 2 eta, 2 N
    known = corrected.theory.sel(eta=1, t=20).isel(student=0)
    for N in (20, 500):
        middle, std = float((known.eps_g + known.eps_g_bias).sel(N=N)), float(known.eps_g_std.sel(N=N))
        for edge in (middle - std, middle + std):
            assert any(np.isclose(band, [20, edge], rtol=1e-6).all(axis=1).any() for band in fills(ax)), (N, edge)
    solid = [line for line in ax.lines if line.get_linewidth() > 1 and line.get_marker() == "None"]
    assert len(solid) == 2  # one per eta: the limit does not depend on N
    legend = [text for it in figure.legends for text in (it.get_title(), *it.get_texts())]
    texts = [text.get_text().replace("\n", " ") for text in legend]
    assert any("one standard deviation of a run, to order $1/N$" in text for text in texts)
    assert inspection.find_figure_faults(figure) == []


@pytest.mark.slow
def test_without_corrections_no_band_is_drawn(corrected):
    plain = Results(CORRECTED.model_copy(update={"corrections": False}), corrected.simulation, None)
    assert not any(fills(ax) for ax in figures.draw("overlay", plain).axes)


@pytest.mark.slow
def test_the_caption_and_the_report_name_the_band(corrected):
    pytest.importorskip("bokeh")
    from figures import captions
    from figures.interactive import html_report, report_charts

    said = "theory + bias ± one standard deviation of a run, to order 1/N"
    assert said in labels.plain_from_latex(captions.make_caption(corrected, "overlay"))
    assert html_report._describe_bands(corrected) == f"{said}; of the vote without bias, which has no equation"
    shown = report_charts.charts(corrected)
    assert [label for label, *_ in shown.legend] == ["η = 0.5", "η = 1", "N = 20", "N = 500"]
    titles = {chart.figure.name for charts in shown.sets for chart in charts}
    assert not any("std" in title or "bias" in title for title in titles)


@pytest.mark.slow
def test_a_sweep_over_names_alone_has_a_bar_for_the_band_of_one_run():
    rules = Scenario(rule=["hebb", "adatron_textbook"], N=50, t=2, seeds=3, corrections=True)
    results = computed(rules)
    for x in (results, Results(rules, None, results.theory)):
        figure = figures.draw("overlay", x)
        assert any(line.get_linewidth() == 7 for ax in figure.axes for line in ax.lines)


@pytest.mark.slow
def test_the_gain_of_an_ensemble_is_drawn_to_its_limit():
    scenario = load("advantage", ["K=2", "N=40", "seeds=3", "t=1,2", "rule=hebb,perceptron"])
    [ax] = figures.draw("advantage", simulate.run(scenario), theory.solve(scenario)).axes
    ends = [line.get_xydata()[-1] for line in ax.lines if line.get_linestyle() == "--"]  # infinite ensembles
    np.testing.assert_allclose(ends, [[1e4, 1], [1e4, 1 / np.sqrt(2)]], rtol=5e-4)


@pytest.mark.slow
def test_the_lines_of_fluctuations_are_smooth_between_whole_steps_too(monkeypatch):
    solution = theory.solve(load("fluctuations", ["rule=[hebb]", "N=20,100", "t=1,10"]))

    def bend():
        """The largest second difference of a line of the bias, over its range."""
        line = fluctuations._solve_until_late_times(solution).isel(rule=0, t=slice(None, -1))
        relative = (line.eps_g_bias / line.eps_g).values.ravel()
        return np.abs(np.diff(relative, 2)).max() / np.ptp(relative)

    assert bend() < 0.01
    monkeypatch.setattr(fluctuations, "solve_line", theory.solve)  # whole steps: at N = 20 every 0.05
    assert bend() > 0.1


@pytest.mark.slow
def test_fluctuations_times_N_lie_on_one_line_that_tends_to_the_constant_of_late_times():
    scenario = load("fluctuations", ["rule=hebb", "N=20,80", "seeds=400", "t=1,10"])
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    bias, variance, density = figures.draw("fluctuations", simulation, solution).axes
    for ax, limit in ((bias, -3 / 4), (variance, 1 / 2)):
        line, dotted = (next(it for it in ax.lines if it.get_linestyle() == dashes) for dashes in ("-", ":"))
        assert line.get_ydata()[-1] == pytest.approx(limit, rel=0.02)
        assert dotted.get_ydata()[0] == pytest.approx(limit, rel=1e-3)
    assert {len(line.get_xdata()) for line in density.lines} >= {200}
    plain = theory.solve(scenario.model_copy(update={"corrections": False}))
    with pytest.raises(ConfigError, match='fluctuations" requires `corrections: true`'):
        figures.draw("fluctuations", simulation, plain)


@pytest.mark.slow
def test_the_limits_of_noise_are_approached_and_cross_at_one_quarter():
    """Solid lines against the equations at a late time, where the optimal rule and Hebb's have reached their powers."""
    from figures.published.optimal_rules import compute_scaled_error_limit

    flips, t = [0.0, 0.1, 0.25], 1e6
    start = {"length": 0.2, "R": 0.2}
    best = theory.solve(Scenario(rule="bayes", start=start, t=t, zip={"flip": flips, "assumed_flip": flips}))
    hebb = theory.solve(Scenario(rule="hebb", start=start, t=t, flip=flips))
    np.testing.assert_allclose(best.eps_g.values.ravel() * t, compute_scaled_error_limit("bayes", flips), rtol=1e-4)
    np.testing.assert_allclose(hebb.eps_g.values.ravel() * t**0.5, compute_scaled_error_limit("hebb", flips), rtol=1e-4)
    assert compute_scaled_error_limit("perceptron", 0.249) < compute_scaled_error_limit("hebb", 0.249)
    assert compute_scaled_error_limit("perceptron", 0.251) > compute_scaled_error_limit("hebb", 0.251)


@pytest.mark.slow
def test_a_caption_says_why_points_are_expected_off_the_lines():
    scenario = Network(network="erf", M=2, K=2, N=50, t=[0, 1], seeds=2)
    text = captions.make_caption(run(scenario), "overlay")
    assert "Lines: theory. The start is symmetric: " in text.replace(r" in the limit $N\to\infty$", "")
    alone = Results(scenario, None, theory.solve(scenario))
    assert "symmetric" not in captions.make_caption(alone, "overlay")


@pytest.mark.slow
def test_a_caption_states_the_values_of_parallel_axes_once():
    together = {"rule": ["hebb", "hebb", "perceptron"], "schedule": [{"t0": 5}, {"t0": 7}, {"t0": 5}]}
    scenario = Scenario(N=10, t=1, seeds=2, zip=together)
    results = Results(scenario, simulate.run(scenario))
    text = labels.plain_from_latex(captions.make_caption(results, "overlay"))
    assert "Rule: Hebbian, perceptron;" in text
    assert "; t_0 = 5, 7" in text


def test_a_caption_states_the_range_of_many_parallel_values_in_any_order():
    rates = [0.5, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    scenario = Scenario(rule="hebb", N=10, t=1, seeds=2, zip={"flip": [0.1] * 9, "eta": rates})
    results = Results(scenario, simulate.run(scenario))
    assert "η = 0.1 to 0.9 (9 values)" in labels.plain_from_latex(captions.make_caption(results, "overlay"))


def legend_of_explorer(results, x, *colours):
    """The legend of the explorer's charts of results, as HTML."""
    from figures.explorer.chart_content import ChartContent
    from figures.explorer.page_charts import ExplorerCharts

    charts = ExplorerCharts()
    charts.show(ChartContent(results, curves.Layout(x, colours, ())))
    return charts.legend.object


@pytest.mark.slow
def test_no_band_is_drawn_where_terms_beyond_order_1_over_n_are_not_small():
    """The length of a noisy AdaTron reaches eta/2 in every run: its spread of order 1/sqrt(N) vanishes."""
    pytest.importorskip("bokeh")
    noisy = Scenario(rule="adatron", flip=0.1, N=100, t=[1, 2, 5, 20], corrections=True)
    solved = Results(noisy, None, theory.solve(noisy))
    low, high = curves.make_curve(solved, "length", "t").band
    assert np.isfinite(low).tolist() == np.isfinite(high).tolist() == [True, True, True, False]
    assert np.isfinite(curves.make_curve(solved, "eps_g", "t").band).all()
    said = "none where terms beyond order 1/N are not small"
    assert said in legends.describe_bands(solved)
    assert said in legend_of_explorer(solved, "t")


@pytest.mark.slow
def test_a_band_says_nothing_of_gaps_where_there_are_none(corrected):
    assert legends.UNRESOLVED_BAND_NOTE not in legends.describe_bands(corrected)
    first_N = curves.select_position(corrected, {"N": 0})
    assert "theory + bias ± std of a run" in legend_of_explorer(first_N, "t", "eta")
    assert legends.UNRESOLVED_BAND_NOTE not in legend_of_explorer(first_N, "t", "eta")


@pytest.mark.parametrize("name", ["drift", "noise_optimal"])
def test_a_figure_of_parallel_axes_says_that_it_needs_them(name):
    single = run(Scenario(rule="hebb", N=10, t=1, seeds=2))
    with pytest.raises(ConfigError, match=f'the figure "{name}" requires rule, .* as parallel axes'):
        figures.draw(name, single)


@pytest.mark.slow
def test_one_rule_at_one_fraction_of_flips_is_drawn_by_the_overlay(monkeypatch):
    monkeypatch.setattr(optimal_rules, "FLIP_LINE_POINTS", 8)
    t0 = [{"t0": time} for time in (0.1, 0.15, 0.2)]
    zipped = {"rule": ["perceptron"] * 3, "assumed_flip": [0] * 3, "flip": [0.3] * 3, "schedule": t0}
    results = run(tiny("noise_optimal"))
    assert figures.draw_with_fallback("noise_optimal", results).name == "noise_optimal"
    one = run(Scenario(zip=zipped, N=20, t=1, seeds=2))
    assert figures.draw_with_fallback("noise_optimal", one).name == "overlay"
    with pytest.raises(ConfigError, match="requires each of bayes, hebb, perceptron at several increasing flips"):
        figures.draw("noise_optimal", one)
