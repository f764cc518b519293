"""Every convex loss is what it states, and its proximal point is the minimum, whatever h and V."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize_scalar
from scipy.special import expit, wrightomega

from statmech import LOSSES, ConfigError, Loss, Risk, ScenarioError
from statmech.config import user_files
from statmech.config.user_class_checks import find_loss_problem, find_teacher_problem, find_weights_problem
from statmech.convex.losses import (
    DESCENT_ONLY_LOSSES,
    Absolute,
    Exponential,
    Hinge,
    Huber,
    Logistic,
    Penalty,
    Square,
    SquaredHinge,
    compute_prox_derivative,
    compute_prox_force,
    convert_to_stability_loss,
    find_prox_by_newton,
    prox,
)
from statmech.convex.teachers import LogitTeacher, ProbitTeacher, SignTeacher
from statmech.convex.weight_distributions import Binary, MixtureComponent, Sparse
from statmech.numerics.gaussian import make_panel_rules
from statmech.parameters.parameter_fields import parameter
from theory.convex.example_averages import CENTRAL_PANEL_EDGES, find_loss_panel_edges

H = np.array(
    [0.0, *(sign * size for size in (1e-9, 1e-3, 0.3, 0.999, 1.0, 1.7, 5.0, 30.0, 200.0, 1e3) for sign in (1, -1))]
)
V = np.geomspace(1e-12, 1e12, 25)
ROUNDING = np.finfo(float).eps


@dataclass(frozen=True)
class Pinball(Loss):
    """Quantile regression."""

    label = "pinball"
    of = "residual"
    quantile: float = parameter(0.8, "quantile that is learnt", above=0, below=1)
    kinks = (0.0,)

    def value(self, x):
        return x * self.slope(x)

    def slope(self, x):
        return np.where(x > 0, self.quantile, self.quantile - 1)

    def curvature(self, x):
        return np.zeros_like(x)


@dataclass(frozen=True)
class Insensitive(Loss):
    """Support vector regression: residuals up to a width cost nothing."""

    label = "epsilon-insensitive"
    of = "residual"
    width: float = parameter(0.3, "residual that costs nothing", above=0)
    kinks = property(lambda self: (-self.width, self.width))

    def value(self, x):
        return np.maximum(0, np.abs(x) - self.width)

    def slope(self, x):
        return np.where(np.abs(x) > self.width, np.sign(x), 0.0)

    def curvature(self, x):
        return np.zeros_like(x)


@dataclass(frozen=True)
class SoftHinge(Loss):
    """A hinge whose kink is rounded over a width."""

    label = "soft hinge"
    width: float = parameter(0.1, "width over which the slope rises to 0", above=0)

    def value(self, x):
        return self.width * np.logaddexp(0, (1 - x) / self.width)

    def slope(self, x):
        return -expit((1 - x) / self.width)

    def curvature(self, x):
        return expit((1 - x) / self.width) * expit((x - 1) / self.width) / self.width


@dataclass(frozen=True)
class Catenary(Loss):
    """A loss that exceeds all floats on both sides, with a kink and a bend."""

    label = "catenary"
    of = "residual"
    kinks, bends = (-1.0,), (2.0,)

    def value(self, x):
        return np.cosh(x) + np.maximum(0, -1 - x) + 0.5 * np.maximum(0, x - 2) ** 2

    def slope(self, x):
        return np.sinh(x) - (x < -1) + np.maximum(0, x - 2)

    def curvature(self, x):
        return np.cosh(x) + (x > 2)


PLAIN = {name: kind() for name, kind in LOSSES.items()}
OWN = {"pinball": Pinball(), "insensitive": Insensitive(), "soft hinge": SoftHinge(), "catenary": Catenary()}
OTHERS = {
    "narrow Huber": Huber(0.3),
    "sharp hinge": SoftHinge(1e-3),
    "wide hinge": SoftHinge(20.0),
    "insensitive on labels": convert_to_stability_loss(Insensitive()),
}
ON_LABELS = {
    f"{name} on labels": convert_to_stability_loss(loss) for name, loss in PLAIN.items() if loss.of == "residual"
}
PERCEPTRONS = {name: kind() for name, kind in DESCENT_ONLY_LOSSES.items()}
ALL = PLAIN | OWN | OTHERS | ON_LABELS | PERCEPTRONS
every_loss = pytest.mark.parametrize("loss", ALL.values(), ids=ALL)


@every_loss
def test_a_loss_is_convex_smooth_but_at_its_kinks_and_has_the_slope_and_curvature_that_it_states(loss):
    useless = "no student is better than w = 0"  # which only a descent that stops before makes use of
    assert (useless in find_loss_problem(loss)) if loss in PERCEPTRONS.values() else find_loss_problem(loss) is None


@every_loss
def test_slopes_jump_at_every_kink_and_curvatures_but_not_slopes_at_every_bend(loss):
    kinks, bends = np.array(loss.kinks), np.array(loss.bends)
    left, right = loss.one_sided_slopes(kinks)
    assert np.all(right - left > 0.1)
    left, right = loss.one_sided_slopes(bends)
    assert right == pytest.approx(left, abs=1e-12)
    assert np.all(np.abs(loss.curvature(bends + 1e-9) - loss.curvature(bends - 1e-9)) > 0.1)


def excess(loss, p, h, V):
    """At most 0 where the root is within a few roundings of p, of h and of V l'(p) of p."""
    with np.errstate(over="ignore", invalid="ignore"):
        rise = 1 + V * loss.curvature(p)
        step = 8 * ROUNDING * (np.abs(p) + (np.abs(h) + V * np.abs(loss.slope(p))) / rise)
        below = p - step - h + V * loss.slope(p - step)
        above = p + step - h + V * loss.slope(p + step)
    return np.maximum(below, -above)


@every_loss
def test_the_proximal_point_is_exact_for_all_h_and_v(loss):
    h, v = np.broadcast_arrays(H[:, None], V)
    p = prox(loss, h, v)
    assert np.isfinite(p).all()
    assert np.all(excess(loss, p, h, v) <= 0)
    assert np.any(excess(loss, p + 1e-13 * (1 + np.abs(p)), h, v) > 0)  # the planted error


@every_loss
def test_the_proximal_point_is_the_minimum_found_by_brute_force(loss):
    for h, v in ((-3.0, 0.5), (0.2, 2.0), (1.4, 0.1), (-0.7, 30.0), (2.5, 4.0)):

        def energy(p, h=h, v=v):
            return (p - h) ** 2 / (2 * v) + loss.value(np.array(p))

        found = minimize_scalar(energy, bounds=(-40, 40), method="bounded", options={"xatol": 1e-10})
        assert float(prox(loss, h, v)) == pytest.approx(found.x, abs=2e-6)


@every_loss
def test_the_proximal_point_rises_with_h_and_not_faster(loss):
    h = np.sort(np.random.default_rng(0).normal(0, 3, 400))
    for v in (0.01, 1.0, 100.0):
        rise = np.diff(prox(loss, h, v))
        assert np.all(rise >= -1e-14)
        assert np.all(rise <= np.diff(h) + 1e-14)


@every_loss
def test_its_derivative_and_its_force_follow_from_it(loss):
    h, v, d = np.linspace(-4.03, 4.01, 201), 0.8, 1e-6
    p, smooth = (
        prox(loss, h, v),
        ~np.isin(prox(loss, h + d, v), loss.kinks) & ~np.isin(prox(loss, h - d, v), loss.kinks),
    )
    for edge in (*loss.kinks, *loss.bends):
        smooth &= np.abs(p - edge) > 2 * d
    by_differences = (prox(loss, h + d, v) - prox(loss, h - d, v)) / (2 * d)
    assert compute_prox_derivative(loss, p, v)[smooth] == pytest.approx(by_differences[smooth], abs=1e-8)
    assert np.all(compute_prox_derivative(loss, p, v)[np.isin(p, loss.kinks)] == 0)
    assert compute_prox_force(loss, p, h, v) == pytest.approx((p - h) / v, abs=1e-13)
    assert smooth.sum() > 100


def test_the_force_keeps_its_digits_where_v_is_small():
    h = np.array([-0.3, 0.2, 2.0])
    tiny = 1e-12
    p = prox(Logistic(), h, tiny)
    assert compute_prox_force(Logistic(), p, h, tiny) == pytest.approx(expit(-h), rel=1e-11)
    assert abs((p - h) / tiny - expit(-h)).max() > 1e-6  # which the difference loses


@pytest.mark.parametrize("loss", [loss for loss in ALL.values() if loss.closed_prox(H, H * 0) is not None])
def test_closed_forms_equal_newtons_method(loss):
    h, v = (of.ravel() for of in np.broadcast_arrays(H[:, None], V))
    closed, found = loss.closed_prox(h, v), find_prox_by_newton(loss, h, v)
    assert np.all(
        np.abs(closed - found) <= 8 * ROUNDING * (np.abs(found) + (np.abs(h) + v) / (1 + v * loss.curvature(found)))
    )
    assert np.array_equal(np.isin(closed, loss.kinks), np.isin(found, loss.kinks))


def test_the_proximal_point_of_the_exponential_loss_is_wrights_function():
    h, v = np.broadcast_arrays(np.linspace(-20, 20, 41)[:, None], np.geomspace(1e-6, 1e6, 13))
    assert prox(Exponential(), h, v) == pytest.approx(h + wrightomega(np.log(v) - h), rel=1e-13, abs=3e-14)


@pytest.mark.parametrize(
    "loss", [Logistic(), Catenary(), convert_to_stability_loss(Huber())], ids=["logistic", "catenary", "Huber"]
)
def test_a_proximal_point_does_not_depend_on_the_others(loss):
    rng = np.random.default_rng(1)
    h, v = rng.normal(0, 30, 500), 10 ** rng.uniform(-6, 6, 500)
    every = prox(loss, h, v)
    some = rng.choice(500, 60, replace=False)
    assert np.array_equal(prox(loss, h[some], v[some]), every[some])
    assert np.array_equal([float(prox(loss, h[i], v[i])) for i in some], every[some])
    assert np.array_equal(prox(loss, h.reshape(20, 25), v.reshape(20, 25)).ravel(), every)


@every_loss
def test_without_v_nothing_moves_and_a_field_that_is_not_a_number_stays_alone(loss):
    assert np.array_equal(prox(loss, H, 0.0), H)
    p = prox(loss, np.array([np.nan, 0.3]), 1.0)
    assert np.isnan(p[0])
    assert p[1] == prox(loss, 0.3, 1.0)


@pytest.mark.parametrize("name", [name for name, loss in (PLAIN | OWN).items() if loss.of == "residual" and loss.even])
def test_an_even_loss_of_residuals_is_one_of_stabilities_on_labels(name):
    loss, h, y = (PLAIN | OWN)[name], np.linspace(-5, 5, 41), np.array([[1.0], [-1.0]])
    on = convert_to_stability_loss(loss)
    assert on.value(y * h) == pytest.approx(loss.value(y - h), rel=1e-14)
    assert on.slope(y * h) == pytest.approx(
        -y * loss.slope(y - h), rel=1e-14
    )  # d/dh = -l' of residuals, y l' of stabilities
    assert on.curvature(y * h) == pytest.approx(loss.curvature(y - h), rel=1e-14)
    assert on.kinks == tuple(sorted(1 - kink for kink in loss.kinks))


def test_a_loss_that_is_not_even_has_no_form_for_labels():
    assert convert_to_stability_loss(Hinge()) is not None
    assert not Pinball().even
    assert Pinball(0.5).even
    with pytest.raises(ScenarioError, match="the loss pinball is not even in y - h: it needs outputs, not labels"):
        convert_to_stability_loss(Pinball())
    LOSSES["pinball"] = Pinball
    try:
        with pytest.raises(ScenarioError, match="loss: the loss pinball is not even"):
            Risk(loss="pinball", quantile=[0.5, 0.8], teacher="sign", alpha=1)
        assert len(list(Risk(loss="pinball", quantile=0.5, teacher="sign", alpha=1).cells())) == 1
    finally:
        del LOSSES["pinball"]


def test_a_subclass_with_another_slope_forgets_kinks_bends_and_closed_form():
    class Renamed(Absolute):
        label = "the same"

    class Another(Renamed):
        def value(self, x):
            return np.cosh(x)

        def slope(self, x):
            return np.sinh(x)

        def curvature(self, x):
            return np.cosh(x)

    assert Renamed().kinks == (0.0,)
    assert (Another().kinks, Another().equation, Another().closed_prox(H, H)) == ((), "", None)
    assert find_loss_problem(Another()) is None
    assert prox(Another(), 0.5, 1.0) + np.sinh(prox(Another(), 0.5, 1.0)) == pytest.approx(0.5, abs=1e-15)


WRONG = {
    "is not convex: its slope falls from 0 to -1 near stability": (
        "x: np.clip(1 - x, 0, 1)",
        "x: -1.0 * ((0 < x) & (x < 1))",
        "0 * x",
        "(0.0, 1.0)",
    ),
    "is not convex: its slope falls from": (
        "x: 1 - np.tanh(x)",
        "x: -1 / np.cosh(x) ** 2",
        "2 * np.tanh(x) / np.cosh(x) ** 2",
        "()",
    ),
    "its slope jumps at stability 1, which is not among its kinks": (
        "x: np.maximum(0, 1 - x)",
        "x: np.where(x < 1, -1.0, 0.0)",
        "0 * x",
        "()",
    ),
    "its curvature jumps at stability 1, which is not among its bends": (
        "x: 0.5 * np.maximum(0, 1 - x) ** 2",
        "x: np.minimum(0, x - 1)",
        "1.0 * (x < 1)",
        "()",
    ),
    "slope is not the derivative of value at stability": (
        "x: np.exp(-x)",
        "x: -1.001 * np.exp(-x)",
        "1.001 * np.exp(-x)",
        "()",
    ),
    "curvature is not the derivative of slope at stability": (
        "x: np.exp(-x)",
        "x: -np.exp(-x)",
        "1.001 * np.exp(-x)",
        "()",
    ),
    "slope is not a number at stability -1e.03: is there a form": (
        "x: np.logaddexp(0, -x)",
        "x: -np.exp(-x) / (1 + np.exp(-x))",
        "np.exp(-x) / (1 + np.exp(-x)) ** 2",
        "()",
    ),
    r"value is not a finite number at stability -8": (
        "x: np.where(x < 0, np.nan, np.exp(-x))",
        "x: -np.exp(-x)",
        "np.exp(-x)",
        "()",
    ),
    "curvature.x. must return an array of the shape of x": ("x: 1 - x", "x: 0 * x - 1", "0.0", "()"),
    "its kinks must be finite and in increasing order, not .1.0, 0.0.": (
        "x: np.exp(-x)",
        "x: -np.exp(-x)",
        "np.exp(-x)",
        "(1.0, 0.0)",
    ),
    "must be negative on both sides, or no student is better than w = 0": (
        "x: np.exp(x)",
        "x: np.exp(x)",
        "np.exp(x)",
        "()",
    ),
    "write np.where.x < 0, a, b. for": ("x: 1 - x if x < 1 else 0 * x", "x: -1.0 * (x < 1)", "0 * x", "(1.0,)"),
    "no attribute 'logexp'": ("x: np.logexp(x)", "x: -expit(-x)", "0 * x", "()"),
}
MINE = """
import numpy as np
from statmech.convex.losses import LOSSES, Loss

class Mine(Loss):
    label, kinks = "mine", {kinks}
    value = lambda self, {value}
    slope = lambda self, {slope}
    curvature = lambda self, x: {curvature}

LOSSES["mine"] = Mine
"""


@pytest.fixture
def load(tmp_path):
    """A function that writes and loads a file; the losses that it adds are removed after the test."""
    before = dict(LOSSES)

    def written(content):
        file = tmp_path / "mine.py"
        file.write_text(content)
        user_files.load_plugin(file)

    yield written
    LOSSES.clear()
    LOSSES.update(before)
    user_files._loaded_modules.clear()


@pytest.mark.parametrize("message", WRONG)
def test_a_loss_that_is_not_what_it_states_is_refused_when_it_is_loaded(message, load):
    value, slope, curvature, kinks = WRONG[message]
    with pytest.raises(ConfigError, match=f'(?s)the loss "mine": .*{message}'):
        load(MINE.format(value=value, slope=slope, curvature=curvature, kinks=kinks))


def test_a_loss_in_a_file_is_known_like_any_other_with_its_parameters(load):
    load(
        """
import numpy as np
from dataclasses import dataclass
from statmech import LOSSES, Loss
from statmech.parameters.parameter_fields import parameter

@dataclass(frozen=True)
class Insensitive(Loss):
    label, of = "insensitive", "residual"
    width: float = parameter(0.3, "residual that costs nothing", above=0)
    kinks = property(lambda self: (-self.width, self.width))
    value = lambda self, x: np.maximum(0, np.abs(x) - self.width)
    slope = lambda self, x: np.where(np.abs(x) > self.width, np.sign(x), 0.0)
    curvature = lambda self, x: 0.0 * x

LOSSES["insensitive"] = Insensitive
"""
    )
    cells = list(Risk(loss="insensitive", width=[0.1, 0.5], teacher="linear", noise=0.2, alpha=2, N=50).cells())
    assert [cell.loss_for_teacher_outputs.kinks for cell in cells] == [(-0.1, 0.1), (-0.5, 0.5)]
    with pytest.raises(ScenarioError, match=r"width.* must be greater than 0"):
        Risk(loss="insensitive", width=0, teacher="linear", alpha=2)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_proximal_point_of_a_penalty_is_the_minimum(share):
    penalty, w, lam, step = Penalty(share), np.array([-2.0, -0.1, 0.0, 0.7]), 0.8, 1.5
    for u, given in zip(penalty.prox(w, lam, step), w, strict=True):
        found = minimize_scalar(
            lambda u, given=given: (u - given) ** 2 / 2 + step * float(penalty.value(np.array([u]), lam)),
            bounds=(-3, 3),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert u == pytest.approx(found.x, abs=1e-6)


def fits():
    """What scikit-learn minimises on labels or outputs: the loss, the fraction of the l1 norm, and its model."""
    from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, QuantileRegressor, Ridge
    from sklearn.svm import LinearSVC

    fine: dict = {"tol": 1e-10, "max_iter": 10**6, "fit_intercept": False}
    drawn = fine | {"random_state": 0}
    return {
        "LogisticRegression": (Logistic(), 0.0, lambda lam, P: LogisticRegression(C=1 / lam, **fine)),
        "LinearSVC hinge": (Hinge(), 0.0, lambda lam, P: LinearSVC(loss="hinge", C=1 / lam, **drawn)),
        "LinearSVC": (SquaredHinge(), 0.0, lambda lam, P: LinearSVC(loss="squared_hinge", C=0.5 / lam, **drawn)),
        "Ridge": (Square(), 0.0, lambda lam, P: Ridge(alpha=lam, fit_intercept=False)),
        "Lasso": (Square(), 1.0, lambda lam, P: Lasso(alpha=lam / P, **fine)),
        "ElasticNet": (Square(), 0.3, lambda lam, P: ElasticNet(alpha=lam / P, l1_ratio=0.3, **fine)),
        "QuantileRegressor": (
            Absolute(),
            1.0,
            lambda lam, P: QuantileRegressor(alpha=lam / (2 * P), fit_intercept=False),
        ),
    }


def force_left(loss, x, B, w, parts, near=1e-4):
    """The largest component of the gradient with the slopes at kinks that leave least of it; 0 at the minimum."""
    l1, l2 = parts
    held = l1 * (np.abs(w) < near)
    low, high = np.append(loss.slope(x - near), -held), np.append(loss.slope(x + near), held)
    known = l2 * w + np.where(held > 0, 0.0, l1 * np.sign(w))
    left = lsq_linear(np.hstack([B.T, np.eye(len(w))]), -known, (low, high + 1e-12), max_iter=500).fun
    return np.abs(left).max()


@pytest.mark.parametrize("name", fits())
def test_scikit_learn_minimises_the_same_sum_with_the_constants_of_the_page(name):
    loss, share, model = fits()[name]
    rng, N, P, lam = np.random.default_rng(0), 20, 50, 0.7
    F, teacher = rng.standard_normal((P, N)) / np.sqrt(N), rng.standard_normal(N)
    outputs = F @ teacher + 0.5 * rng.standard_normal(P)
    y = np.sign(outputs) if loss.of == "stability" else outputs
    w = model(lam, P).fit(F, y).coef_.ravel()
    B, c = (F * y[:, None], np.zeros(P)) if loss.of == "stability" else (-F, y)
    left = {
        lam: force_left(loss, c + B @ w, B, w, Penalty(share).split_strength(lam)) for lam in (lam / 2, lam, 2 * lam)
    }
    assert left[lam] < 1e-6
    assert min(left[lam / 2], left[2 * lam]) > 1e-2  # the planted errors: constants of another convention


def test_teachers_and_weights_that_are_not_what_they_state_are_refused():
    @dataclass(frozen=True)
    class Steep(LogitTeacher):
        def mean_probability_slope(self, mean, variance):
            return 1.01 * super().mean_probability_slope(mean, variance)

    @dataclass(frozen=True)
    class Bent(ProbitTeacher):
        def log_probability_concavity(self, mean, variance):
            return 1.01 * super().log_probability_concavity(mean, variance)

    @dataclass(frozen=True)
    class Biased(SignTeacher):
        def probability(self, u):
            return 0.9 * super().probability(u)

    @dataclass(frozen=True)
    class Averaged(SignTeacher):
        def right(self, mean, variance):
            return super().right(mean, 1.1 * variance)

    @dataclass(frozen=True)
    class Long(Binary):
        pieces = (MixtureComponent(1.0, 1.0, 0.1),)

    @dataclass(frozen=True)
    class Lacking(Sparse):
        pieces = (MixtureComponent(0.5, 0.0, 2.0),)

    assert find_teacher_problem(Steep()) == (
        "mean_probability_slope is not the derivative of right with respect to the mean"
    )
    assert find_teacher_problem(Bent()) == (
        "log_probability_concavity is not minus the derivative of log_probability_slope with respect to the mean"
    )
    assert find_teacher_problem(Biased()) == "the probability of +1 at -u must be that of -1 at u"
    assert find_teacher_problem(Averaged()) == "right is not the average of probability over a normal field"
    assert find_weights_problem(Long()) == "its mean square must be 1, not 1.1"
    assert find_weights_problem(Lacking()).startswith("the shares of its pieces must be positive, of sum 1, not 0.5")


@every_loss
def test_panels_resolve_a_loss_on_whatever_scale_its_slope_changes(loss):
    def errors(edges):
        """Of the integrals of l' and of l' l'', relative to the integral of |l'| and to l'^2, between the edges."""
        low, high = np.array(edges[:-1]), np.array(edges[1:])
        (left, right), p, dp = loss.one_sided_slopes([low, high]), *make_panel_rules(np.array(edges))
        slope, after, before = loss.slope(p), right[0], left[1]
        first = np.abs((dp * slope).sum(axis=-1) - (loss.value(high) - loss.value(low)))
        second = np.abs((dp * slope * loss.curvature(p)).sum(axis=-1) - (before**2 - after**2) / 2)
        return max(np.max(first / (1 + np.abs(slope).max(axis=-1))), np.max(second / (1 + before**2 + after**2)))

    assert errors(find_loss_panel_edges(loss)) < 1e-11
    if isinstance(loss, SoftHinge) and loss.width < 1:
        assert errors(CENTRAL_PANEL_EDGES) > 1e-10  # the planted error: panels that do not know of the width
    assert {0.0, *loss.kinks, *loss.bends} <= set(find_loss_panel_edges(loss))
    assert len(find_loss_panel_edges(loss)) < 30


@every_loss
def test_a_proximal_point_to_a_given_accuracy_has_it(loss):
    h, v = np.broadcast_arrays(H[H != 0][:, None], V)
    p = find_prox_by_newton(loss, h, v, rtol=1e-3)
    with np.errstate(over="ignore", invalid="ignore"):
        left = np.abs(p - h + v * loss.slope(p))
    assert np.all((left <= 1e-3 * np.abs(h)) | (excess(loss, p, h, v) <= 0))
