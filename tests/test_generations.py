"""Generations of learners that label the examples of their successors: recorded values, limits, runs at finite N."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import disagreements

import simulate
import theory
from simulate.kinds import risk_generations
from statmech import Generations, Risk, ScenarioError, load
from statmech.convex.losses import LOSSES, Logistic, Penalty, convert_to_stability_loss
from statmech.convex.teachers import LogitTeacher, ProbitTeacher, SignTeacher
from statmech.convex.weight_distributions import Gauss
from statmech.kinds.selection_and_vocabulary import scenario_from
from theory.convex.empirical_risk import solve_loss_minimum
from theory.convex.label_mixtures import GenerationChain, LabelMixtureEquations, solve_label_mixture
from theory.convex.saddle_point import PenaltyPoint

NOISY = SignTeacher(flip=0.1)
STUDIED = {"loss": "logistic", "alpha": 3, "lam": 0.1, "flip": 0.1}
ALL_LOSSES = {
    name: convert_to_stability_loss(kind()) for name, kind in LOSSES.items() if kind().of == "stability" or kind().even
}


def logistic_chain(real, teacher=NOISY):
    return GenerationChain(Logistic(), teacher, real, 3.0, 0.1)


@pytest.mark.parametrize(
    ("real", "recorded", "limit"),
    [(0.2, [0.77820689, 0.72844487, 0.69379416, 0.66957971], 0.61237420), (0.5, [0.77820689], 0.74156292)],
)
def test_recorded_cosines_and_fixed_points(real, recorded, limit):
    chain = logistic_chain(real)
    np.testing.assert_allclose(chain.solve_generations(3).R[: len(recorded)], recorded, rtol=0, atol=6e-9)
    assert chain.solve_fixed_point() == pytest.approx(limit, abs=6e-9)


def test_flips_belong_to_true_labels_alone():
    """With flips on the students' labels, R of generation 1 would be .64923."""
    cosine = float(logistic_chain(0.2).solve_generations(0).R[0])
    wrong = LabelMixtureEquations(Logistic(), (NOISY, NOISY), (0.2, 0.8), cosine)
    assert float(solve_label_mixture(wrong, 3.0, 0.1)[0].R[0]) == pytest.approx(0.64923, abs=6e-6)
    assert float(logistic_chain(0.2).solve_generations(1).R[1]) == pytest.approx(0.72844487, abs=6e-9)


def test_cosines_multiply_without_true_labels_and_no_student_beats_its_teacher():
    chain, rho = logistic_chain(0.0), logistic_chain(0.0, SignTeacher()).solve_generations(0).R[0]
    R = chain.solve_generations(5).R
    np.testing.assert_allclose(R, R[0] * rho ** np.arange(6), rtol=1e-14)
    assert np.all(np.diff(R) < 0)
    assert chain.solve_fixed_point() == 0
    few_true_labels = logistic_chain(1e-9).solve_generations(5)
    np.testing.assert_allclose(few_true_labels.R, R, rtol=0, atol=1e-8)


@pytest.mark.parametrize("loss", ALL_LOSSES.values(), ids=ALL_LOSSES)
@pytest.mark.parametrize("teacher", [NOISY, ProbitTeacher(0.5), LogitTeacher(2.0)], ids=["sign", "probit", "logit"])
def test_two_sources_with_one_teacher_are_one_learner(loss, teacher):
    equal = LabelMixtureEquations(loss, (teacher, teacher), (0.3, 0.7), 1.0)
    for alpha, lam in [(0.4, 0.01), (3.0, 0.3), (8.0, 2.0)]:
        mixed = solve_label_mixture(equal, alpha, lam)[0]
        single = solve_loss_minimum(loss, teacher, Penalty(0.0), Gauss(), np.array([alpha]), np.array([lam]))
        for name in mixed._fields:
            if name != "residual":
                np.testing.assert_allclose(
                    getattr(mixed, name), getattr(single, name), rtol=1e-9, atol=1e-16, err_msg=name
                )


@pytest.mark.parametrize("loss", ["square", "hinge", "squared_hinge"])
@pytest.mark.parametrize("alpha", [0.5, 4.0])
def test_a_vanishing_penalty_is_the_limit_of_small_ones(loss, alpha):
    chains = [GenerationChain(ALL_LOSSES[loss], NOISY, 0.4, alpha, lam) for lam in (0.0, 1e-6)]
    limit, small = (chain.solve_generations(3) for chain in chains)
    np.testing.assert_allclose(limit.R, small.R, rtol=1e-4)
    np.testing.assert_allclose(limit.length, small.length, rtol=1e-3)


def test_the_jacobian_is_the_derivative_of_the_residuals():
    equations = LabelMixtureEquations(Logistic(), (NOISY, SignTeacher()), (0.3, 0.7), 0.8)
    x, alpha, point = np.array([[0.1], [-0.4], [0.3], [0.5]]), np.array([2.0]), PenaltyPoint(np.zeros(1), np.zeros(1))
    step = 1e-6
    for unknown, column in enumerate(equations.linearise(x, alpha, point).J[..., 0].T):
        shift = step * np.eye(4)[:, [unknown]]
        up, down = (equations.linearise(x + sign * shift, alpha, point).F[:, 0] for sign in (1, -1))
        np.testing.assert_allclose(column, (up - down) / (2 * step), rtol=0, atol=1e-7)


def test_only_true_labels_repeat_the_first_generation():
    scenario = Generations(generations=[0, 1, 4], real=1, **STUDIED)
    solved = theory.solve(scenario)
    assert np.ptp(solved.R.values) == 0
    assert float(solved.R_fixed_point) == float(solved.R[0])


def test_students_with_many_noisy_labels_gain_from_their_noiseless_predecessors():
    """Labels of a student carry the information of earlier examples, and R grows if true labels are noisier."""
    R = GenerationChain(Logistic(), SignTeacher(flip=0.4), 0.3, 8.0, 0.5).solve_generations(4).R
    assert np.all(np.diff(R) > 0)


def test_the_fixed_point_is_the_limit_of_the_iteration():
    chain = GenerationChain(ALL_LOSSES["hinge"], NOISY, 0.3, 2.0, 0.2)
    assert chain.solve_fixed_point() == pytest.approx(float(chain.solve_generations(120).R[-1]), abs=1e-10)


def test_the_first_generation_is_a_risk_with_the_same_examples():
    given = {**STUDIED, "N": 30, "seeds": 3}
    chain, risk = simulate.run(Generations(generations=[0, 1], **given)), simulate.run(Risk(**given))
    for name in ("R", "length", "eps_g", "train_loss", "separable"):
        np.testing.assert_array_equal(chain[name].sel(generations=0).values, risk[name].values, err_msg=name)


def test_generations_recorded_alone_are_those_of_the_chain():
    given = {**STUDIED, "N": 30, "seeds": 2, "real": 0.3}
    chain, last = (simulate.run(Generations(generations=recorded, **given)) for recorded in ([0, 1, 2, 3], 3))
    np.testing.assert_array_equal(chain.R.sel(generations=[3]).values, last.R.values)


def chain_runs(**changes):
    given = {**STUDIED, "N": 150, "seeds": 40, "generations": [0, 1, 2, 4], "real": [0, 0.2, 0.5]}
    scenario = Generations(**given | changes)
    return simulate.run(scenario)[["R", "eps_y"]], theory.solve(scenario)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"loss": "square", "lam": 0, "flip": 0.2, "real": [0.25]},
        {"loss": "hinge", "alpha": 1.5, "lam": 0.2, "real": [0, 0.4], "flip": 0.05},
        {"teacher": "probit", "noise": 0.7, "flip": 0, "real": 0.6},
    ],
    ids=["logistic", "least squares", "hinge", "probit"],
)
def test_runs_agree_with_theory(changes):
    assert not disagreements(*chain_runs(**changes))


@pytest.mark.slow
def test_flipped_labels_of_students_are_noticed(monkeypatch):
    draw = risk_generations.draw_successor_data

    def draw_with_flips(cell, key, seed, generation, teacher, student):
        data = draw(cell, key, seed, generation, teacher, student)
        flips = np.random.default_rng([seed, generation]).random(cell.P) < cell.teacher.flip
        flips[: cell.num_real] = False
        return data._replace(y=np.where(flips, -data.y, data.y))

    monkeypatch.setattr(risk_generations, "draw_successor_data", draw_with_flips)
    assert disagreements(*chain_runs())


def test_theory_uses_the_rounded_number_of_true_labels():
    cells = Generations(generations=1, N=10, **STUDIED | {"alpha": 0.5}, real=0.3).cells()
    assert [(cell.P, cell.num_real) for cell in cells] == [(5, 2)]
    given = {**STUDIED, "alpha": 0.5, "generations": 1}
    rounded, exact = (theory.solve(Generations(N=10, real=real, **given)).R for real in (0.3, 0.4))
    np.testing.assert_array_equal(rounded.values, exact.values)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"teacher": "linear", "loss": "square", "flip": 0}, "teacher linear is not supported"),
        ({"penalty": "l1"}, "l2 penalty only, not with l1"),
        ({"inputs": "gaussian"}, "new labels of the same inputs"),
        ({"lam": 0}, "no minimum at any alpha"),
        ({"lam": 0, "real": 0.5, "alpha": 2}, "no minimum below alpha = 2.99229"),
        ({"lam": "best"}, "must be a number"),
        ({"real": 1.2}, "at most 1"),
        ({"generations": [0, 0.5]}, "generations"),
        ({"generations": -1}, "generations"),
        ({"generations": [3, 1]}, "generations must increase"),
        ({"K": 3}, "remove K"),
        ({"bayes": True}, "remove bayes"),
    ],
)
def test_unsupported_chains_are_refused_in_one_sentence(changes, words):
    with pytest.raises(ScenarioError, match=words) as refusal:
        scenario_from({**STUDIED, "generations": [0, 1], **changes})
    assert len(refusal.value.problems) == 1


def test_labels_that_can_be_separated_leave_later_generations_unknown():
    """The labels of few true and many noiseless examples can be separated, although true labels alone cannot."""
    scenario = Generations(loss="logistic", lam=0, alpha=3.5, flip=0.1, real=0.01, generations=[0, 1], N=20, seeds=2)
    solved, runs = theory.solve(scenario), simulate.run(scenario)
    assert np.isfinite(solved.R[0])
    assert np.isnan(solved.R[1])
    assert not runs.converged.sel(generations=1).values.all()


def test_the_shipped_config_is_a_chain():
    assert isinstance(load("generations"), Generations)
