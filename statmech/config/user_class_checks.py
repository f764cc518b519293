"""Checks of the rules, activations, losses, descents, teachers and weight distributions that users add.

Classes: each check tests the properties that a class declares, and finds the reason why the class cannot be used.

Functions: undeclared jumps and wrong derivatives are found numerically.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from statmech.convex.descent_methods import DESCENTS, Descent
from statmech.convex.losses import LOSSES, Loss
from statmech.convex.teachers import TEACHERS, LabelTeacher, Teacher
from statmech.convex.weight_distributions import WEIGHT_DISTRIBUTIONS, WeightDistribution
from statmech.errors import ConfigError, ScenarioError
from statmech.numerics.gaussian import make_clipped_composite_rule, normal_density
from statmech.parameters.parameter_fields import get_parameters
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.students.activations import ACTIVATIONS, Activation
from statmech.students.rules import RULES

MAX_TEST_FIELD = 8.0  # functions are tested at fields and stabilities up to this magnitude
FINITE_DIFFERENCE_STEP, DECLARED_SLOPE_TOL = 1e-6, 1e-4  # for finite differences
MIN_JUMP_HEIGHT, MAX_JUMP_WIDTH = 1e-3, 1e-9  # a larger change over a smaller width is a jump
# small penalties lead to large fields
WIDE_RANGE_TEST_FIELDS = np.append(-np.geomspace(1e3, 1e-3, 61), np.geomspace(1e-3, 1e3, 61))
DECLARED_PROPERTY_TOL = 1e-9  # for slopes and averages, relative to 1 + their magnitude
FIELD_MEAN_DIFFERENCE_STEP = 1e-5  # for finite differences with respect to the mean field
TEST_FIELD_MEANS = np.array([[-1.5], [0.0], [0.7]])
TEST_FIELD_VARIANCES = np.array([0.05, 0.5, 2.0])
ARRAY_BRANCH_HINT = "\nx is an array: write np.where(x < 0, a, b) for `a if x < 0 else b`"


def list_smooth_intervals(kinks: Iterable[float]) -> Iterator[tuple[float, float]]:
    """Return the intervals between the kinks, within the examined range."""
    inside = (kink for kink in map(float, kinks) if -MAX_TEST_FIELD < kink < MAX_TEST_FIELD)
    return itertools.pairwise(np.sort([-MAX_TEST_FIELD, MAX_TEST_FIELD, *inside]))


def find_jump(g: Callable[[np.ndarray], np.ndarray], kinks: Iterable[float]) -> float | None:
    """Find a point where g of a user-defined class jumps outside its kinks, or return None if g has no such jump.

    Quadrature across an undeclared jump would not converge.

    >>> round(find_jump(lambda x: np.sign(x - 0.25), kinks=(0.0,)), 6)
    0.25
    """
    for low, high in list_smooth_intervals(kinks):
        margin, steps = 1e-6 * (high - low), np.zeros(1)
        while high - low > MAX_JUMP_WIDTH:
            x = np.linspace(low + margin, high - margin, 1001)
            margin, steps = 0.0, abs(np.diff(np.broadcast_to(g(x), x.shape)))
            low, high = x[(index := int(np.argmax(steps)))], x[index + 1]
        if steps.max() > MIN_JUMP_HEIGHT:
            return float(low)
    return None


def find_wrong_slope(
    g: Callable[[np.ndarray], np.ndarray], slope: Callable[[np.ndarray], np.ndarray], kinks: Iterable[float]
) -> float | None:
    """Find a point where the slope of g in a user's class differs from finite differences, or return None.

    >>> find_wrong_slope(np.sin, np.cos, kinks=()) is None
    True
    """
    for low, high in list_smooth_intervals(kinks):
        margin = FINITE_DIFFERENCE_STEP + 1e-6 * (high - low)
        x = np.linspace(low + margin, high - margin, 101)
        declared = slope(x)
        by_differences = (g(x + FINITE_DIFFERENCE_STEP) - g(x - FINITE_DIFFERENCE_STEP)) / (2 * FINITE_DIFFERENCE_STEP)
        wrong = abs(by_differences - declared) > DECLARED_SLOPE_TOL * (1 + abs(declared))
        if wrong.any():
            return float(x[wrong][0])
    return None


def find_loss_problem(loss: Loss) -> str | None:
    """Return the reason why a user's loss cannot be used, or None if it can.

    The tests check shape, finite values, convexity, kinks and bends, and derivatives.
    """
    tests = (
        _find_shape_problem,
        _find_nonfinite_value,
        _find_kink_order_problem,
        _find_decreasing_slope,
        _find_undeclared_jump,
        _find_wrong_derivative,
        _find_minimum_at_w_zero,
    )
    with np.errstate(all="ignore"):  # large x may overflow
        return next(filter(None, (test(loss) for test in tests)), None)


def find_descent_problem(descent: Descent) -> str | None:
    """Return the reason why a user's descent cannot be used, or None if it can.

    Weights are vectors in the simulation, and components along arbitrary directions in theory: the two agree if all
    functions of the descent are linear. A coordinatewise descent may not mix weights.
    """
    first, second = np.random.default_rng(0).standard_normal((2, 4, 9))  # each with a start and three forces
    paths = [_record_descent_steps(descent, arrays) for arrays in (first, second, first - 2 * second, first[:, :4])]
    if any(np.shape(array) != (9,) for array in paths[0]):
        return "start, query and next must return arrays of the shape of the weights"
    if not descent.largest_curvature > 0:
        return f"largest_curvature must be positive, not {descent.largest_curvature}"
    first_path, second_path, combined_path, partial_path = map(np.array, paths)
    if descent.coordinatewise:
        is_coordinatewise = np.allclose(first_path[:, :4], partial_path, rtol=1e-9, atol=1e-9)
        return (
            None
            if is_coordinatewise
            else "it is coordinatewise, and next must move each weight by the force on it alone"
        )
    if not np.allclose(first_path - 2 * second_path, combined_path, rtol=1e-9, atol=1e-9):
        return (
            "next must be linear in its arrays (the sum of two descents' weights descends as they do) or coordinatewise"
        )
    return None


def _record_descent_steps(descent: Descent, arrays: np.ndarray) -> list[np.ndarray]:
    """Return states and query points of a user-defined descent, for forces that depend on the query point."""
    state = descent.start(arrays[0])
    visited = [*state]
    for step, force in enumerate(arrays[1:]):
        z = descent.query(state)
        state = descent.next(state, force + 0.5 * z, 0.3, step)
        visited += [z, *state]
    return visited


def _find_shape_problem(loss: Loss) -> str | None:
    """Describe a result of the wrong shape or an unknown kind of a user-defined loss, or return None."""
    if loss.of not in ("stability", "residual"):
        return f'`of` must be "stability" or "residual", not "{loss.of}"'
    x = np.linspace(-8, 8, 18).reshape(2, 9)
    for name in ("value", "slope", "curvature"):
        if np.shape(getattr(loss, name)(x)) != x.shape:
            return f"{name}(x) must return an array of the shape of x"
    return None


def _find_nonfinite_value(loss: Loss) -> str | None:
    """Describe a non-finite value of a user-defined loss at moderate x or a NaN at large x, or return None."""
    near = np.linspace(-MAX_TEST_FIELD, MAX_TEST_FIELD, 801)
    for name in ("value", "slope", "curvature"):
        far, finite = np.isnan(getattr(loss, name)(WIDE_RANGE_TEST_FIELDS)), np.isfinite(getattr(loss, name)(near))
        if not finite.all():
            return f"{name} is not a finite number at {loss.of} {near[~finite][0]:.3g}"
        if far.any():
            field = f"{loss.of} {WIDE_RANGE_TEST_FIELDS[far][0]:.3g}"
            return f"{name} is not a number at {field}: is there a form of it that does not overflow?"
    return None


def _find_kink_order_problem(loss: Loss) -> str | None:
    """Describe kinks or bends of a user-defined loss that are not in increasing order, or return None."""
    for name, positions in (("kinks", loss.kinks), ("bends", loss.bends)):
        if not np.all(np.isfinite(positions)) or np.any(np.diff(positions) <= 0):
            return f"its {name} must be finite and in increasing order, not {tuple(map(float, positions))}"
    return None


def _find_decreasing_slope(loss: Loss) -> str | None:
    """Describe a decrease of the slope of a user-defined loss, or return None if the loss is convex.

    Slopes are also compared at kinks and at large x.
    """
    edges = np.array([*loss.kinks, *loss.bends], dtype=float)
    side = DECLARED_PROPERTY_TOL * np.maximum(1, np.abs(edges))
    x = np.unique(
        [*np.linspace(-MAX_TEST_FIELD, MAX_TEST_FIELD, 4001), *WIDE_RANGE_TEST_FIELDS, *(edges - side), *(edges + side)]
    )
    slope = loss.slope(x)
    falls = np.diff(slope) < -DECLARED_PROPERTY_TOL * (1 + np.abs(slope[1:]))
    if not falls.any():
        return None
    index = int(np.argmax(falls))
    before, after = slope[index : index + 2] + 0.0  # adding 0 turns -0 into 0
    return f"is not convex: its slope falls from {before:.3g} to {after:.3g} near {loss.of} {x[index]:.3g}"


def _find_undeclared_jump(loss: Loss) -> str | None:
    """Describe a jump of the slope or curvature of a user-defined loss outside its kinks and bends, or return None.

    The jumps are searched on the arcsinh scale, because the steps of a steep slope would hide them.
    """
    edges = (*loss.kinks, *loss.bends)
    if (position := find_jump(lambda x: np.arcsinh(loss.slope(x)), loss.kinks)) is not None:
        return f"its slope jumps at {loss.of} {position:.3g}, which is not among its kinks"
    if (position := find_jump(lambda x: np.arcsinh(loss.curvature(x)), edges)) is not None:
        return f"its curvature jumps at {loss.of} {position:.3g}, which is not among its bends"
    return None


def _find_wrong_derivative(loss: Loss) -> str | None:
    """Describe a slope or curvature of a user-defined loss that disagrees with finite differences, or return None."""
    edges = (*loss.kinks, *loss.bends)
    if (position := find_wrong_slope(loss.value, loss.slope, edges)) is not None:
        return f"slope is not the derivative of value at {loss.of} {position:.3g}"
    if (position := find_wrong_slope(loss.slope, loss.curvature, edges)) is not None:
        return f"curvature is not the derivative of slope at {loss.of} {position:.3g}"
    return None


def _find_minimum_at_w_zero(loss: Loss) -> str | None:
    """Describe a loss of stabilities that is minimal for the student w = 0, or return None."""
    if loss.of == "stability" and loss.one_sided_slopes(0.0)[1] >= 0:
        return "its slope at stability 0 must be negative on both sides, or no student is better than w = 0"
    return None


def find_teacher_problem(teacher: Teacher) -> str | None:
    """Return the reason why a user's teacher cannot be used, or None if it can."""
    u = np.linspace(-MAX_TEST_FIELD, MAX_TEST_FIELD, 800)
    if np.shape(teacher.draw(np.random.default_rng(0), u)) != u.shape:
        return "draw(rng, u) must return an array of the shape of u"
    return _find_label_teacher_problem(teacher, u) if isinstance(teacher, LabelTeacher) else None


def _find_label_teacher_problem(teacher: LabelTeacher, u: np.ndarray) -> str | None:
    """Return the reason why the functions of a user-defined label teacher are inconsistent, or None if they agree."""
    p = teacher.probability(u)
    if np.any((p < 0) | (p > 1)) or np.any(np.diff(p) < -DECLARED_PROPERTY_TOL):
        return "the probability of +1 must increase with the field and lie between 0 and 1"
    if np.any(np.abs(p + p[::-1] - 1) > DECLARED_PROPERTY_TOL):
        return "the probability of +1 at -u must be that of -1 at u"
    right = teacher.right(TEST_FIELD_MEANS, TEST_FIELD_VARIANCES)
    if np.shape(right) != (3, 3) or np.any(np.abs(right - _average_probability(teacher)) > 1e-6):
        return "right is not the average of probability over a normal field"
    by_differences = (
        teacher.right(TEST_FIELD_MEANS + FIELD_MEAN_DIFFERENCE_STEP, TEST_FIELD_VARIANCES)
        - teacher.right(TEST_FIELD_MEANS - FIELD_MEAN_DIFFERENCE_STEP, TEST_FIELD_VARIANCES)
    ) / (2 * FIELD_MEAN_DIFFERENCE_STEP)
    if np.any(np.abs(teacher.mean_probability_slope(TEST_FIELD_MEANS, TEST_FIELD_VARIANCES) - by_differences) > 1e-6):
        return "mean_probability_slope is not the derivative of right with respect to the mean"
    return _find_log_derivative_problem(teacher)


def _find_log_derivative_problem(teacher: LabelTeacher) -> str | None:
    """Return the reason why the logarithmic derivatives of a user-defined teacher are inconsistent, or None."""
    slope = teacher.log_probability_slope(TEST_FIELD_MEANS, TEST_FIELD_VARIANCES)
    bend = teacher.log_probability_concavity(TEST_FIELD_MEANS, TEST_FIELD_VARIANCES)
    if np.any(
        np.abs(
            slope * teacher.right(TEST_FIELD_MEANS, TEST_FIELD_VARIANCES)
            - teacher.mean_probability_slope(TEST_FIELD_MEANS, TEST_FIELD_VARIANCES)
        )
        > 1e-6
    ):
        return "log_probability_slope is not mean_probability_slope divided by right"
    ahead, behind = (
        teacher.log_probability_slope(TEST_FIELD_MEANS + step, TEST_FIELD_VARIANCES)
        for step in (FIELD_MEAN_DIFFERENCE_STEP, -FIELD_MEAN_DIFFERENCE_STEP)
    )
    if np.any(np.abs(bend + (ahead - behind) / (2 * FIELD_MEAN_DIFFERENCE_STEP)) > 1e-5 * (1 + np.abs(bend))):
        return "log_probability_concavity is not minus the derivative of log_probability_slope with respect to the mean"
    return None


def _average_probability(teacher: LabelTeacher) -> np.ndarray:
    """Average `probability` of a user-defined teacher over normal fields of each test mean and variance."""
    width = np.sqrt(TEST_FIELD_VARIANCES)
    averages = np.empty((len(TEST_FIELD_MEANS), len(TEST_FIELD_VARIANCES)))
    for index in np.ndindex(averages.shape):
        mean, scale = TEST_FIELD_MEANS[index[0], 0], width[index[1]]
        t, weight = make_clipped_composite_rule(
            np.array([-MAX_TEST_FIELD, -mean / scale - 1, -mean / scale, -mean / scale + 1, MAX_TEST_FIELD])
        )
        averages[index] = np.sum(weight * normal_density(t) * teacher.probability(mean + scale * t))
    return averages


def find_weights_problem(weights: WeightDistribution) -> str | None:
    """Return the reason why a user's distribution of weights cannot be used, or None if it can."""
    fraction, mean, variance = np.array(weights.pieces, dtype=float).T
    if np.any(fraction <= 0) or np.any(variance < 0) or abs(fraction.sum() - 1) > DECLARED_PROPERTY_TOL:
        return (
            f"the shares of its pieces must be positive, of sum 1, not {fraction.sum():.6g}, and no variance negative"
        )
    square = float(fraction @ (mean**2 + variance))
    if abs(square - 1) > DECLARED_PROPERTY_TOL:
        return f"its mean square must be 1, not {square:.6g}"
    return None


def check_plugin_rule(name: str) -> None:
    """Check a user's rule at its default parameters in NumPy and JAX, or raise `ConfigError`.

    >>> check_plugin_rule("adatron")
    """
    import jax

    with (
        _convert_plugin_failures(f'the rule "{name}"', _make_tracing_hint("stabilities", "kappa")),
        use_cpu_double_precision(),
    ):
        rule = RULES[name]()
        get_parameters(rule)
        str(rule.label)
        rule.g(np.linspace(-8, 8, 9), 1.0)
        jax.eval_shape(rule.g, *[jax.ShapeDtypeStruct((2,), np.float32)] * 2)
        jump_position = find_jump(lambda kappa: rule.g(kappa, 1.0), rule.kinks)
    if jump_position is not None:
        raise ConfigError(f'the rule "{name}": g jumps at stability {jump_position:.3g}, which is not among its kinks')


def check_plugin_activation(name: str) -> None:
    """Check a user's activation at its default parameters in NumPy and JAX, or raise `ConfigError`.

    >>> check_plugin_activation("relu")
    """
    import jax

    with (
        _convert_plugin_failures(f'the activation "{name}"', _make_tracing_hint("fields", "x")),
        use_cpu_double_precision(),
    ):
        activation = ACTIVATIONS[name]()
        get_parameters(activation)
        str(activation.label)
        traced = jax.eval_shape(activation.both, jax.ShapeDtypeStruct((2, 9), np.float32))
        results = (traced, activation.both(np.linspace(-8, 8, 18).reshape(2, 9)))
        problem = None
        if any([np.shape(array) for array in jax.tree.leaves(result)] != [(2, 9)] * 2 for result in results):
            problem = "both(x) must return two arrays of the shape of x, g and its derivative"
        problem = problem or _describe_wrong_derivative(activation)
    if problem is not None:
        raise ConfigError(f'the activation "{name}": {problem}')


def check_plugin_loss(name: str) -> None:
    """Check that a user's loss is convex and has the properties it declares, or raise `ConfigError`.

    >>> check_plugin_loss("huber")
    """
    _check_convex_plugin("loss", LOSSES, name, find_loss_problem)


def check_plugin_descent(name: str) -> None:
    """Check that a user's descent is linear in the weights, or raise `ConfigError`.

    >>> check_plugin_descent("nesterov")
    """
    _check_convex_plugin("descent", DESCENTS, name, find_descent_problem)


def check_plugin_teacher(name: str) -> None:
    """Check that a user's teacher has the properties it declares, or raise `ConfigError`.

    >>> check_plugin_teacher("probit")
    """
    _check_convex_plugin("teacher", TEACHERS, name, find_teacher_problem)


def check_plugin_weight_distribution(name: str) -> None:
    """Check that a user's distribution of weights has mean square 1, or raise `ConfigError`.

    >>> check_plugin_weight_distribution("sparse")
    """
    _check_convex_plugin("distribution of weights", WEIGHT_DISTRIBUTIONS, name, find_weights_problem)


def _check_convex_plugin(
    noun: str, kinds: dict[str, Any], name: str, find_problem: Callable[[Any], str | None]
) -> None:
    """Check a user's class of `statmech.convex` at its default parameters with `find_problem`."""
    with _convert_plugin_failures(f'the {noun} "{name}"', ARRAY_BRANCH_HINT):
        thing = kinds[name]()
        get_parameters(thing)
        str(thing.label)
        problem = find_problem(thing)
    if problem is not None:
        raise ConfigError(f'the {noun} "{name}": {problem}')


@contextmanager
def _convert_plugin_failures(subject: str, hint: str) -> Iterator[None]:
    """Convert a failure in a user's class to a `ConfigError` that names the class.

    The hint is appended if the failure is a branch on an array.
    """
    try:
        yield
    except ScenarioError as problem:
        raise ConfigError(f"{subject}: {problem}") from None
    except Exception as failure:
        message = str(failure).splitlines()[0]
        branches = "Tracer" in type(failure).__name__ or "truth value" in str(failure)
        raise ConfigError(f"{subject}: {type(failure).__name__}: {message}{hint if branches else ''}") from None


def _make_tracing_hint(arrays: str, variable: str) -> str:
    """Return a hint on how to write functions of arrays for tracing by JAX."""
    instead = f"write step(-{variable}) for `if {variable} < 0`"
    module = f"get_array_module({variable})"
    functions = f"{module}.tanh({variable}) for np.tanh({variable})"
    minima = f"{module}.minimum(-{variable}, 1) for min(-{variable}, 1)"
    return f"\n{arrays} are arrays, traced by JAX: {instead},\n{functions}, and {minima}"


def _describe_wrong_derivative(activation: Activation) -> str | None:
    """Describe a jump or a wrong derivative of a user-defined activation, or return None for a correct activation."""
    g, derivative = (lambda x, part=part: activation.both(x)[part] for part in (0, 1))
    for function, description in ((g, "g jumps"), (derivative, "g bends")):
        if (position := find_jump(function, activation.kinks)) is not None:
            return f"{description} at field {position:.3g}, which is not among its kinks"
    if (position := find_wrong_slope(g, derivative, activation.kinks)) is not None:
        return f"the second array that both returns is not the derivative of g at field {position:.3g}"
    return None


REGISTRY_CHECKS: tuple[tuple[dict[str, Any], Callable[[str], None]], ...] = (
    (RULES, check_plugin_rule),
    (ACTIVATIONS, check_plugin_activation),
    (LOSSES, check_plugin_loss),
    (DESCENTS, check_plugin_descent),
    (TEACHERS, check_plugin_teacher),
    (WEIGHT_DISTRIBUTIONS, check_plugin_weight_distribution),
)
