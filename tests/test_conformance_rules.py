"""Every rule of the registry, and one of the user, passes one suite: theory and simulation from one definition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import jax
import numpy as np
import pytest
from conftest import brief, disagreements, start_of

import simulate
import theory
from simulate.online import gram_engine, weight_vector_engine
from statmech import RULES, Scenario
from statmech.numerics.gaussian import step
from statmech.parameters.parameter_fields import get_parameters, parameter
from statmech.students.rules import AdaTron, AdaTronTextbook, Perceptron, Rule
from statmech.students.student_geometry import angle_between_students
from theory.online import order_parameter_equations, student_fluctuations
from theory.online.order_parameter_equations import StudentPair, integrate_pair_average, integrate_rule_averages

ANGLES = [np.pi / 2, 2.5, 1.0, 0.1, 1e-3, 1e-6]
COSINES = [-0.3, 0.0, 0.9, 1 - 1e-9, 1.0]


@dataclass(frozen=True)
class Cautious(Rule):
    """A user's rule: no closed forms, two kinks, an additional parameter, a modulation that depends on the length."""

    label = "cautious"
    depth: float = parameter(1.0, "stability below which an example is given up", above=0.0)

    @property
    def kinks(self):
        return (-self.depth, 0.0)

    def g(self, kappa, length):
        return step(-kappa) * step(kappa + self.depth) / (1 + length)


IN_BRIEF = "adatron"  # stands for all in `make test`: it has closed forms and a kink, and is linear
OTHERS = [*(name for name in RULES if name != IN_BRIEF), "cautious"]
# what does not depend on the rule is claimed for one with closed forms and for the user's, which is integrated
for_two_rules = pytest.mark.parametrize("rule", brief([IN_BRIEF, "cautious"]), indirect=True)


@pytest.fixture(params=brief([IN_BRIEF, *OTHERS]))
def rule(request, monkeypatch) -> str:
    monkeypatch.setitem(RULES, "cautious", Cautious)
    return request.param


@pytest.mark.quick
@pytest.mark.slow
def test_closed_forms_equal_the_quadrature(rule):
    kind = RULES[rule]()
    if not kind.has_closed_form:
        assert (
            kind.closed_form.__func__ is Rule.closed_form
        )  # a rule without a closed form has the default, and theory integrates
        return
    with jax.enable_x64(True):
        single = jax.jit(lambda theta, flip: integrate_rule_averages(kind, theta, 1.3, flip))
        double = jax.jit(lambda a, b, c, flip: integrate_pair_average(kind, StudentPair((a, b), c, (1.3, 0.7)), flip))
        for theta in np.asarray(ANGLES):
            for flip in (0.0, 0.2):
                np.testing.assert_allclose(
                    single(theta, flip), kind.closed_form(theta, 1.3, flip), rtol=1e-12, atol=1e-15
                )
                for other, c in [(theta, c) for c in COSINES] + [(0.6 * theta, 0.5), (1.2 * theta, 0.999)]:
                    between = angle_between_students(theta, other, np.float64(c))
                    closed = kind.closed_form_pair((theta, other), between, (1.3, 0.7), flip)
                    np.testing.assert_allclose(double(theta, other, c, flip), closed, rtol=1e-11)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("margin", [1e-6, 0.05, 1.0, -0.4])
def test_the_line_forms_of_a_margin_equal_the_quadrature(margin):
    kind = Perceptron(margin=margin)
    with jax.enable_x64(True):
        single = jax.jit(lambda theta, flip: integrate_rule_averages(kind, theta, 1.3, flip))
        double = jax.jit(lambda a, b, c, flip: integrate_pair_average(kind, StudentPair((a, b), c, (1.3, 0.7)), flip))
        for theta in (1e-6, 0.1, 1.2, 2.6):
            for flip in (0.0, 0.2):
                np.testing.assert_allclose(
                    single(theta, flip), kind.line_form(theta, 1.3, flip), rtol=1e-12, atol=1e-14
                )
                for other, c in [(theta, c) for c in (-1.0, 0.3, 1.0)] + [(0.6 * theta, 0.5), (1.2 * theta, -0.999)]:
                    between = angle_between_students(theta, other, np.float64(c))
                    line = kind.line_form_pair((theta, other), between, (1.3, 0.7), flip)
                    np.testing.assert_allclose(double(theta, other, c, flip), line, rtol=1e-11, atol=1e-13)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("rule", ["bayes", "cautious"], indirect=True)  # closed forms confirm that of all others
def test_more_quadrature_nodes_change_nothing(rule):
    kind = RULES[rule]()
    assert not kind.has_closed_form
    with jax.enable_x64(True):
        double = jax.jit(lambda pair, nodes: integrate_pair_average(kind, pair, 0.1, nodes=nodes), static_argnums=1)
        single = jax.jit(
            lambda theta, nodes: integrate_rule_averages(kind, theta, 1.0, 0.1, nodes=nodes), static_argnums=1
        )
        for theta, c in [(1.0, 0.3), (0.1, 0.99), (1e-4, 0.5)]:
            pair = StudentPair((theta, 0.7 * theta), c, (1.0, 1.5))
            np.testing.assert_allclose(double(pair, 32), double(pair, 64), rtol=1e-11)
            np.testing.assert_allclose(single(theta, 32), single(theta, 64), rtol=1e-11)


def scenario_of(rule: str, **given) -> Scenario:
    defaults = {"K": 3, "N": 1000, "t": [0.5, 1, 3], "seeds": 64, "eta": 0.8, "flip": 0.05}
    return Scenario(rule=rule, **{**defaults, **given, "start": start_of(rule, given.get("start"))})


@pytest.mark.quick
@pytest.mark.parametrize(
    ("rule", "engine"),
    brief([*((name, "gram") for name in (IN_BRIEF, *OTHERS)), (IN_BRIEF, "vectors"), ("cautious", "vectors")]),
    indirect=["rule"],
)
def test_simulation_agrees_with_theory_within_its_own_errors(rule, engine):
    size = {} if engine == "gram" else {"N": 400, "seeds": 64, "t": [0.5, 1.5]}
    scenario = scenario_of(rule, engine=engine, start={"R": 0.2, "q": 0.3, "length": 1.2}, **size)
    assert disagreements(simulate.run(scenario), theory.solve(scenario)) == []


@pytest.mark.quick
@pytest.mark.slow
@for_two_rules
def test_every_entry_of_the_gram_matrix_agrees_for_unequal_students(rule):
    start = {"R": [0.1, 0.5, 0.3], "length": [0.5, 1.0, 2.0], "q": [[1, 0.3, 0.2], [0.3, 1, 0.6], [0.2, 0.6, 1]]}
    scenario = scenario_of(rule, start=start, gram=True)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    assert disagreements(simulation, solution) == []
    upper = np.triu_indices(4)
    difference = (simulation.gram.mean("seed") - solution.gram).values[:, *upper][:, 1:]
    error = (simulation.gram.std("seed", ddof=1) / 64**0.5).values[:, *upper][:, 1:]
    assert np.abs(difference / error).max() < 4.6  # 27 values: 1 in 2,000 for one of them, Student's t


@pytest.mark.quick
@pytest.mark.slow
@for_two_rules
def test_a_deliberate_error_is_detected(rule, monkeypatch):
    """Without <f_i f_j> the correlation q of the students, and with it the ensemble, is wrong."""
    right = order_parameter_equations.compute_pair_average
    monkeypatch.setattr(order_parameter_equations, "compute_pair_average", lambda *args: 0.0 * right(*args))
    monkeypatch.setenv("STATMECH_CACHE", "off")  # programs are kept by what the files of the package say
    order_parameter_equations.solve_batch.clear_cache()
    scenario = scenario_of(rule)
    try:
        found = disagreements(simulate.run(scenario), theory.solve(scenario))
    finally:
        order_parameter_equations.solve_batch.clear_cache()
    assert any(" q:" in line for line in found)


@pytest.mark.quick
@pytest.mark.slow
@for_two_rules
def test_the_finite_size_bias_falls_with_N(rule):
    """At N = 10 the means deviate by more than their errors; at ten times the size at least three times less."""
    off = {}
    for N in (10, 100):
        scenario = scenario_of(rule, N=N, K=1, t=[0.5, 1, 2], seeds=4096)  # one student: no votes
        simulation, solution = (made.sel(t=2) for made in (simulate.run(scenario), theory.solve(scenario)))
        off[N] = max(float(abs(simulation[n].mean() - solution[n].mean())) for n in ("R", "length"))
    assert off[10] > 3 * off[100]


@pytest.mark.quick  # one program gives both
def test_the_same_key_gives_the_same_bits_and_another_key_others(rule):
    scenario = scenario_of(rule, N=100)
    first, again = simulate.run(scenario), simulate.run(scenario)
    assert first.identical(again)
    other = simulate.run(Scenario(**{**scenario.config(), "key": 1}))
    assert not np.any(first.R.values == other.R.values)


@pytest.mark.slow
@pytest.mark.parametrize(  # other rules: tests/test_simulate_lanes.py and tests/test_simulate_engines.py
    ("rule", "engine"),
    [
        (IN_BRIEF, "gram"),
        (IN_BRIEF, "vectors"),
        *(
            pytest.param(*case, marks=pytest.mark.quick)
            for case in (("adatron_textbook", "gram"), ("cautious", "gram"), ("cautious", "vectors"))
        ),
    ],
    indirect=["rule"],
)
def test_extending_a_sweep_changes_no_earlier_number(rule, engine):
    few = simulate.run(scenario_of(rule, N=50, seeds=3, eta=[0.5], engine=engine))
    many = simulate.run(scenario_of(rule, N=50, seeds=70, eta=[0.3, 0.5], engine=engine))
    np.testing.assert_array_equal(few.R.sel(eta=0.5), many.R.sel(eta=0.5, seed=few.seed))


@pytest.mark.quick
@pytest.mark.slow
def test_students_are_exchangeable(rule):
    """Students with equal initial conditions have the same distribution: their differences vanish on average."""
    R = simulate.run(scenario_of(rule)).R.sel(t=3)
    difference = R.sel(student=1) - R.sel(student=3)
    assert abs(difference.mean()) < 4 * difference.std(ddof=1) / 64**0.5


@pytest.mark.quick
@pytest.mark.slow
def test_gram_matrices_are_positive_semidefinite(rule):
    scenario = scenario_of(rule, gram=True, N=20)
    for dataset in (simulate.run(scenario), theory.solve(scenario)):
        eigenvalues = np.linalg.eigvalsh(dataset.gram.values)
        assert eigenvalues.min() > -1e-12 * eigenvalues.max()


@pytest.mark.quick
@pytest.mark.slow
def test_identical_students_stay_identical(rule):
    scenario = scenario_of(rule, start={"q": 1.0, "R": 0.3}, N=50, t=[0, 1, 20])
    for dataset in (simulate.run(scenario), theory.solve(scenario)):
        np.testing.assert_allclose(dataset.q, 1.0, rtol=1e-12)
        np.testing.assert_allclose(dataset.eps_g_majority_vote, dataset.eps_g.mean("student"), rtol=1e-9)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("engine", [gram_engine, weight_vector_engine])
@for_two_rules
def test_one_compilation_serves_all_values_of_a_scenario(rule, engine):
    """Rates, flips, sizes (Gram engine) and times of one shape are numbers, not programs."""
    engine._simulate_all_seeds.clear_cache()
    for eta, flip, t in [(0.5, 0.0, [0.5, 1, 3]), (1.0, 0.1, [0.2, 1, 1.5]), (2.0, 0.3, [0.1, 0.3, 0.5])]:
        name = "gram" if engine is gram_engine else "vectors"
        N = int(50 * eta) if engine is gram_engine else 50
        simulate.run(scenario_of(rule, N=N, eta=eta, flip=flip, t=t, seeds=2, engine=name))
    assert len(engine._simulate_all_seeds.programs) == 1


def test_a_rule_states_its_parameters_and_label(rule):
    kind = RULES[rule]
    assert isinstance(kind.label, str)
    assert all(key.meaning for key in get_parameters(kind).values())


@pytest.mark.quick
@pytest.mark.slow
def test_a_rule_without_its_closed_form_is_integrated_to_the_same_solution():
    """The complete equations, not only their averages: the AdaTron by quadrature equals the AdaTron."""

    @dataclass(frozen=True)
    class Open(AdaTron):
        has_closed_form = False

    scenario = Scenario(rule="adatron", K=2, t=[1, 10], flip=0.1)
    [cell] = scenario.cells()
    [closed] = order_parameter_equations.solve_cells([cell], scenario.t)
    [integrated] = order_parameter_equations.solve_cells([replace(cell, rule=Open())], scenario.t)
    for one, other in zip(closed, integrated, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)


def squared(self, kappa, length):
    """A modulation that is neither linear nor has closed forms here."""
    return kappa**2 * step(-kappa)


@pytest.mark.parametrize("parent", [AdaTron, AdaTronTextbook, Perceptron])
def test_a_subclass_with_another_modulation_does_not_inherit_what_holds_for_its_parent_s_alone(parent):
    child = type("Child", (parent,), {"g": squared, "label": "child"})
    for kind in (child, type("Grandchild", (child,), {})):
        assert not any((kind().has_closed_form, kind().has_line_integral_form, kind().linear))


@pytest.mark.quick
@pytest.mark.slow
def test_a_subclass_with_another_modulation_is_solved_as_a_rule_without_parents():
    child = type("Child", (AdaTron,), {"g": squared, "label": "child"})()
    alone = type("Alone", (Rule,), {"g": squared, "label": "alone", "kinks": (0.0,)})()

    def solved(rule, theta):
        rates = order_parameter_equations.compute_logarithmic_rates(
            rule, rule.has_closed_form, (0.0, jax.numpy.log(theta)), 0.1, None
        )
        return rates, student_fluctuations.compute_step_moments(rule, theta, 1.0, 0.1)

    with jax.enable_x64(True):
        one, other, parent = (jax.tree.leaves(jax.jit(partial(solved, it))(1.0)) for it in (child, alone, AdaTron()))
    np.testing.assert_allclose(np.hstack(one), np.hstack(other), rtol=1e-14)
    assert np.abs(np.hstack(one) / np.hstack(parent) - 1).min() > 0.01


def test_a_subclass_with_the_same_modulation_keeps_what_its_parent_has():
    child = type("Child", (AdaTron,), {"label": "child"})()
    assert child.has_closed_form
    assert child.linear
    mixed = type("Mixed", (type("Other", (), {"g": lambda self, kappa, length: kappa}), AdaTron), {"label": "mixed"})()
    assert not mixed.has_closed_form
    assert not mixed.linear


@pytest.mark.quick
def test_one_step_drives_the_fluctuations_as_it_does_the_order_parameters(rule):
    """F as the average of the step whose products and second order are noise, against the order-parameter equations."""
    kind = RULES[rule](eta=0.8)
    with jax.enable_x64(True):
        one = jax.jit(
            lambda theta, length, flip: student_fluctuations.compute_step_moments(kind, theta, length, flip).first
        )
        closed = kind.has_closed_form
        rates = jax.jit(
            lambda state, flip: order_parameter_equations.compute_logarithmic_rates(kind, closed, state, flip, None)
        )
        for theta in (2.5, 1.0, 0.1, 1e-3, 1e-6):
            for length, flip in [(1.3, 0.0), (0.4, 0.2)]:
                expected = rates((np.log(length), np.log(theta)), flip)
                np.testing.assert_allclose(one(theta, length, flip), expected, rtol=2e-9, atol=1e-12)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("N", [20, 100])
def test_means_and_spreads_at_finite_n_are_those_of_the_corrections(rule, N):
    scenario = scenario_of(rule, K=1, N=N, seeds=1000, corrections=True, start={"R": 0.3})
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    assert disagreements(simulation, solution) == []
    for name in ("R", "length", "eps_g"):
        ratio = simulation[name].std("seed", ddof=1) / solution[f"{name}_std"]
        assert np.abs(ratio - 1).max() < 4.5 / 2000**0.5 + 2 / N, name  # the next order is 1/N


@pytest.mark.quick
def test_few_nodes_serve_linear_rules(rule):
    kind = RULES[rule](eta=0.8)
    if not kind.linear:
        return
    with jax.enable_x64(True):

        def means(places, theta, flip):
            terms = jax.vmap(
                lambda place: student_fluctuations.compute_weighted_step_terms(kind, place, theta, 0.9, flip)
            )(places)
            return jax.numpy.array([part.sum() for part in jax.tree.leaves(terms)])

        @jax.jit
        def by_few_and_by_many(at, flip):
            panels = student_fluctuations.make_stability_nodes(
                student_fluctuations.compute_stability_panel_edges(kind, at, 0.9), at, flip, nodes=64
            )
            return means(student_fluctuations.make_linear_rule_nodes(at, flip), at, flip), means(panels, at, flip)

        for theta in (3.0, 1.6, 1.0, 0.1, 1e-3):
            for flip in (0.0, 0.2):
                few, many = by_few_and_by_many(theta, flip)
                np.testing.assert_allclose(few, many, rtol=2e-9, atol=2e-9 * np.abs(many).max())
