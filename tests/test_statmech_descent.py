"""Configs of descent: what they mean, what is refused with which sentence, and how theory's own error is judged."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

import simulate
from simulate.execution.work_units import check_can_simulate, make_simulator, remarks
from statmech import LOSSES, ConfigError, Descent, Risk, ScenarioError
from statmech.cli.options_and_jobs import ConfigOptions, job_from_source
from statmech.config import user_class_checks
from statmech.convex.descent_methods import DESCENTS, Gradient, HeavyBall, Nesterov, compute_max_stable_eta
from statmech.convex.losses import DESCENT_LOSSES, DESCENT_ONLY_LOSSES, Huber, Square
from statmech.keys.scenario import find_used_classes
from statmech.kinds.gradient_descent import choose_descent_engine
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.parameters.parameter_fields import parameter
from statmech.results.comparison import distances, get_deviation_bound
from statmech.results.results import Results
from statmech.stores.dataset import make_empty_dataset
from theory import solve

GIVEN = {"descent": "gradient", "loss": "logistic", "alpha": 3}


def test_a_config_of_a_figure_of_descent_is_one_of_descent_though_it_has_a_loss(tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text("{descent: gradient, loss: hinge, alpha: 1, epochs: [1], figure: early_stopping}")
    assert job_from_source(ConfigOptions(config)).figure.name == "early_stopping"
    config.write_text("{descent: gradient, loss: hinge, alpha: 1, epochs: [1], figure: bayes_gap}")
    with pytest.raises(ConfigError, match="not a figure of a config with `descent`"):
        job_from_source(ConfigOptions(config))


def cells(**keys):
    return list(Descent(**{**GIVEN, **keys}).cells())


def cell(**keys):
    [one] = cells(**keys)
    return one


@pytest.mark.parametrize(
    ("keys", "place", "sentence"),
    [
        ({"lam": "best"}, "lam", "must be a number: `best` is supported only for a `loss` without `descent`"),
        ({"lam": [0.1, "best"]}, "lam", "must be a number: `best` is supported only"),
        ({"lam": -1}, "lam", "must be at least 0, not -1"),
        (
            {"loss": "square", "eta": 0.5},
            "eta",
            "eta = 0.5 diverges: the square loss at alpha = 3 needs eta below 0.268",
        ),
        ({"eta": 0}, "eta", "must be greater than 0"),
        ({"teacher": "linear"}, "loss", "logistic needs labels, which teacher linear does not give"),
        ({"loss": "perceptron", "teacher": "linear"}, "loss", "losses that do not: square, huber, absolute"),
        ({"loss": "perceptro"}, "loss", 'Did you mean "perceptron"?'),
        ({"batch": 0.3}, "batch", "sampling shuffle needs a batch of 1/2, 1/3, ...: 0.3 does not divide the examples"),
        ({"batch": 0.3, "sampling": "replacement"}, "epochs", "1 is not an integer number of steps of batch 0.3"),
        ({"batch": 0.25, "epochs": [0, 0.3]}, "epochs", "0.3 is not an integer number of steps of batch 0.25"),
        ({"batch": 1 / 64, "N": 2, "epochs": 1}, "batch", "0.015625 of 6 examples is less than one"),
        ({"epochs": [2, 1]}, "epochs", "epochs must increase"),
        ({"start": {"R": 0.5}}, "start", "a student of length 0 has no R"),
        ({"start": {"length": -1}}, "start", "must be at least 0"),
        (
            {"descent": "adam", "penalty": "l1"},
            "penalty",
            "l1 needs a descent with steps along the force: gradient, momentum, nesterov, not adam",
        ),
        (
            {"penalty": "elastic_net", "engine": "deferred"},
            "engine",
            "deferred has no single weights, on which penalty elastic_net acts (engine: explicit)",
        ),
        ({"descent": "sign", "engine": "deferred"}, "engine", "no single weights, on which descent sign acts"),
        ({"descent": "adam", "beta2": [0.9, 0]}, "beta2", "beta2 must be at least 1e-08, or epsilon at least 0.0001"),
        ({"rho": 0.5}, "rho", "applies only to `weights: sparse`, not to gauss"),
        ({"descent": "adamw"}, "descent", 'Did you mean "adam"?'),
        ({"momentum": 0.5}, "momentum", 'the descent "gradient" has no momentum'),
        ({"descent": "momentum", "momentum": 1}, "momentum", "must be less than 1"),
        ({"width": 2}, "width", 'the loss "logistic" has no width'),
        ({"loss": ["huber", "square"], "width": [1, 2], "eta": 0.01}, "width", 'the loss "square" has no width'),
        ({"solver": "amp"}, "solver", "not a key of this config"),
        ({"flip": 0.5}, "flip", "at flip = 0.5 labels are random"),
        ({"alpha": 1e-5}, "alpha", "leaves no example"),
    ],
)
def test_a_config_is_refused_in_a_sentence(keys, place, sentence):
    with pytest.raises(ScenarioError) as refused:
        Descent(**{**GIVEN, **keys})
    [(where, why)] = refused.value.problems
    assert (where[0], sentence in why) == (place, True), why


@pytest.mark.parametrize("given", [{"beta1": 0, "beta2": 0}, {"beta2": 1e-8}, {"beta2": 0, "epsilon": 0.01}])
def test_adam_has_a_limit_where_small_forces_leave_short_steps(given):
    assert len(list(Descent(**{**GIVEN, "descent": "adam"} | given).cells())) == 1


def test_the_loss_of_a_minimum_is_not_that_of_a_perceptron():
    for name in DESCENT_ONLY_LOSSES:
        with pytest.raises(ScenarioError, match=r"its minimum is w = 0: it learns only by descent"):
            Risk(loss=name, alpha=1)


def test_a_loss_without_labels_must_be_even_where_there_are_some():
    @dataclass(frozen=True)
    class Pinball(Huber):
        label = "pinball"

        def value(self, x):
            return x * self.slope(x)

        def slope(self, x):
            return np.where(x > 0, 0.8, -0.2)

    LOSSES["pinball"] = Pinball
    try:
        with pytest.raises(ScenarioError, match="the loss pinball is not even in y - h: it needs outputs, not labels"):
            Descent(descent="gradient", loss="pinball", alpha=1)
        assert cell(loss="pinball", teacher="linear").loss_for_teacher_outputs == Pinball()
    finally:
        del LOSSES["pinball"]


def test_a_config_with_a_descent_and_a_loss_is_one_of_descent_and_with_a_loss_alone_one_of_its_minimum():
    assert type(scenario_from(GIVEN)) is Descent
    assert type(scenario_from({"loss": "logistic", "alpha": 3})) is Risk
    zipped = {"zip": {"descent": ["gradient", "momentum"], "loss": ["hinge", "logistic"]}, "alpha": 3}
    assert [(it.descent, it.name) for it in scenario_from(zipped).cells()] == [
        (Gradient(), "hinge"),
        (HeavyBall(), "logistic"),
    ]
    with pytest.raises(ScenarioError, match="a config requires one of"):
        scenario_from({**GIVEN, "learner": "hebb"})


def test_defaults_are_those_of_the_page():
    one, scenario = cell(), Descent(**GIVEN)
    assert (one.eta, one.lam, one.t0, one.batch, one.sampling, one.engine) == (0.1, 0, None, 1, "shuffle", "auto")
    assert (one.length, one.R, one.N, one.P, one.steps) == (0, 0, 10_000, 30_000, (1, 2, 5, 10, 20, 50, 100))
    assert scenario.config().keys().isdisjoint({"l1_ratio", "schedule", "noise", "gain", "rho"})


def test_a_config_is_made_again_from_what_it_states():
    keys = {
        **{"descent": ["gradient", "nesterov"], "momentum": 0.5, "loss": ["huber", "square"], "width": 2, "eta": 0.01},
        **{"schedule": {"t0": [5, 10]}, "batch": [1, 0.25], "start": {"length": 1, "R": 0.2}},
    }
    scenario = Descent(**{**GIVEN, **keys})
    assert scenario_from(json.loads(json.dumps(scenario.config()))) == scenario
    assert scenario.shape == {"descent": 2, "loss": 2, "schedule": 2, "batch": 2}


def test_parameters_of_the_descent_and_of_the_loss_are_keys():
    grid = cells(descent=["gradient", "nesterov"], momentum=0.5, loss=["huber", "hinge"], width=2)
    assert {it.descent for it in grid} == {Gradient(), Nesterov(0.5)}
    assert {it.loss for it in grid} == {Huber(2.0), DESCENT_LOSSES["hinge"]()}
    assert [it.descent.momentum for it in cells(descent="momentum", momentum=[0.5, 0.9])] == [0.5, 0.9]
    properties = Descent.make_schema()["properties"]
    assert {"momentum", "width"} <= properties.keys()
    assert properties["loss"]["anyOf"][0]["enum"] == [*LOSSES, *DESCENT_ONLY_LOSSES]
    used = find_used_classes(Descent(**{**GIVEN, "loss": ["huber", "perceptron"], "descent": "nesterov"}))
    assert {Huber, DESCENT_ONLY_LOSSES["perceptron"], Nesterov, Descent} <= used
    assert DESCENTS["momentum"] not in used


def test_epochs_are_whole_numbers_of_steps():
    assert cell(batch=0.25, epochs=[0, 0.25, 2]).steps == (0, 1, 8)
    assert cell(batch=0.333333333, epochs=[1, 5]).steps == (3, 15)
    assert cell(batch=0.333333333).batch == 1 / 3
    assert cell(batch=0.4, sampling="replacement", epochs=[2, 4]).steps == (5, 10)
    assert cell(epochs={"geomspace": [1, 10, 5]}).steps == (1, 2, 3, 6, 10)
    assert Descent(**GIVEN, epochs={"linspace": [0, 1, 3]}, batch=0.5).epochs == (0, 0.5, 1)


def test_the_learning_rate_falls_with_epochs():
    one = cell(schedule={"t0": 10}, batch=0.25, eta=0.2)
    assert [one.rate(step) for step in (0, 40)] == pytest.approx([0.2, 0.1])
    assert cell(eta=0.2).rate(40) == 0.2


def test_a_bound_on_the_learning_rate_is_where_the_square_loss_begins_to_diverge():
    """Around it a run of 60 steps in 400 dimensions grows or does not; the edge of its examples is 2 % off."""
    for name, kind in DESCENTS.items():
        edge = compute_max_stable_eta(kind(), 2, 0.5, 1.0)
        assert np.isfinite(edge) != kind.coordinatewise
        for share, grows in () if kind.coordinatewise else ((0.9, False), (1.2, True)):
            keys = {"descent": name, "loss": "square", "alpha": 2, "lam": 0.5, "N": 400, "seeds": 1}
            scenario = Descent(**keys, eta=0.01, epochs=[100, 200]).model_copy(update={"eta": share * edge})
            length = simulate.run(scenario).length.values.ravel()
            assert (length[1] > 2 * length[0]) == grows, (name, share)
    strong = {**GIVEN, "loss": "square", "eta": 0.2, "lam": 10}
    assert Descent(**strong, penalty="l1").eta == 0.2  # a norm without curvature
    with pytest.raises(ScenarioError, match=r"needs eta below 0\.115"):
        Descent(**strong)
    assert Descent(**{**GIVEN, "loss": "square"}, eta=0.5, batch=0.25).eta == 0.5  # not surely: no batch is full


def test_a_large_learning_rate_is_remarked_on():
    assert remarks(Descent(**GIVEN, eta=2)) == [
        "eta = 2 exceeds 1.07: descent of the logistic loss at alpha = 3 may oscillate or diverge"
    ]
    assert remarks(Descent(**GIVEN, eta=1)) == []
    assert remarks(Descent(**{**GIVEN, "descent": "sign", "loss": "hinge"})) == []  # both have no largest curvature


def test_the_engine_is_the_faster_one_or_the_given_one():
    assert choose_descent_engine(cell(N=300, epochs=100)) == "deferred"
    assert choose_descent_engine(cell(N=100, epochs=100)) == "explicit"
    assert choose_descent_engine(cell(N=300, epochs=100, batch=0.25)) == "explicit"
    assert choose_descent_engine(cell(N=100, epochs=100, engine="deferred")) == "deferred"


def test_a_run_that_this_machine_cannot_hold_is_refused():
    for engine, place in (("deferred", "epochs"), ("explicit", "alpha")):
        with pytest.raises(ScenarioError, match="GiB are available per core") as refused:
            check_can_simulate(make_simulator(Descent(**GIVEN, N=10**9, engine=engine)))
        assert refused.value.problems[0][0] == (place,)


def test_runs_state_their_best_epoch_and_whether_they_overflowed():
    keys = {"loss": "exponential", "N": 60, "eta": 5.0, "epochs": [0, 1, 1000], "seeds": 2}
    runs = simulate.run(Descent(**{**GIVEN, **keys}))
    assert runs.diverged.all()
    assert np.isnan(runs.eps_g[:, -1]).all()
    best = runs.epochs[runs.eps_g.fillna(1).argmin("epochs")]
    assert (runs.best_epoch == best.values).all()
    calm = simulate.run(Descent(**GIVEN, N=60, epochs=[0, 1], seeds=2))
    assert not calm.diverged.any()
    assert (calm.eps_g[:, 0] == 0.5).all()
    assert (calm.best_epoch == 1).all()


def planted(shift, error):
    """Runs of 16 seeds, and a theory that is off by so many of their standard errors and states so large an error."""
    scenario = Descent(**GIVEN, epochs=[1, 2], seeds=16, N=100)
    runs, theory = make_empty_dataset(scenario, seeds=16), make_empty_dataset(scenario, seeds=None)
    draws = np.random.default_rng(0).standard_normal((16, 2))
    draws = 0.7 + 0.04 * (draws - draws.mean(axis=0)) / draws.std(axis=0, ddof=1)  # standard error 0.01
    runs["R"][:] = draws
    theory["R"][:], theory["R_error"][:] = 0.7 - 0.01 * shift, 0.01 * error
    runs["best_epoch"][:], theory["best_epoch"][...] = 2, 1
    return distances(Results(scenario, runs, theory))


@pytest.mark.slow
def test_the_error_of_theory_adds_in_quadrature():
    assert planted(10, 0).R.values == pytest.approx([10, 10])
    assert planted(10, 1).R.values == pytest.approx([10 / np.sqrt(2)] * 2)
    assert (
        abs(planted(10, 10).R.values).max() < get_deviation_bound(planted(10, 10)) < abs(planted(10, 0).R.values).min()
    )


def test_a_best_epoch_is_not_judged():
    assert "best_epoch" not in planted(0, 0)


def test_a_descent_of_a_user_must_be_linear_or_act_on_single_weights():
    @dataclass(frozen=True)
    class Clipped(Gradient):
        label = "clipped"
        largest_step: float = parameter(0.1, "largest step of a weight")

        def next(self, state, force, rate, step):
            return (state[0] - np.clip(rate * force, -self.largest_step, self.largest_step),)

    class OfOneWeight(Clipped):
        coordinatewise = True

    class Normalised(OfOneWeight):
        def next(self, state, force, rate, step):
            return (state[0] - rate * force / np.linalg.norm(force),)

    refused = {Clipped: "next must be linear", Normalised: "next must move each weight by the force on it alone"}
    try:
        for kind, why in refused.items():
            DESCENTS["mine"] = kind
            with pytest.raises(ConfigError, match=f'the descent "mine": .*{why}'):
                user_class_checks.check_plugin_descent("mine")
        DESCENTS["mine"] = OfOneWeight
        user_class_checks.check_plugin_descent("mine")
    finally:
        del DESCENTS["mine"]


def test_a_curvature_is_bounded_as_a_loss_states():
    x = np.linspace(-20, 20, 4001)
    for name, kind in DESCENT_LOSSES.items():
        largest = kind().largest_curvature
        assert np.isinf(largest) or kind().curvature(x).max() == pytest.approx(largest), name

    class Steep(Square):
        label = "steep"

        def slope(self, x):
            return 3 * x

    assert np.isinf(Steep().largest_curvature)


def test_the_explorer_draws_the_minimum_and_the_best_penalty_in_the_colour_of_the_loss_and_bayes_once():
    pytest.importorskip("bokeh")
    from figures.curves import Layout
    from figures.explorer.chart_content import ChartContent
    from figures.explorer.page_charts import ExplorerCharts, arrange_content, describe_chart
    from figures.interactive.chart import Chart

    scenario = Descent(descent="gradient", loss=["square", "exponential"], alpha=3, flip=0.1, eta=0.01, epochs=[1, 5])
    solved, variable = solve(scenario), scenario.variables["eps_g"]
    content = ChartContent(Results(scenario, None, solved), Layout("epochs", ("loss",), ()))
    chart = Chart(describe_chart(arrange_content(content), "eps_g", variable))
    drawn = chart.curves["theory"].data
    assert drawn["dash"] == ["solid", "solid", "2 4", "9 5", "9 4 2 4", "2 4", "9 5"]
    square, exponential, *levels = drawn["color"]
    shared_level = levels.pop(2)
    assert levels == [square, square, exponential, exponential]
    assert len({square, exponential, shared_level}) == 3
    assert drawn["y"][4] == [float(solved.eps_bayes[0])] * 2
    levels = ["<i>ε</i><sub>∞</sub>", "<i>ε</i><sub>λ<sup>*</sup></sub>", "<i>ε</i><sub>Bayes</sub>"]
    charts = ExplorerCharts()
    charts.show(content)
    assert [level for level in levels if f"<span>{level}</span>" in charts.legend.object] == levels
    assert [level for level in levels if f"{level}: generalization error" in charts.notes.object] == levels
