r"""Distributions of the inputs: all centred; `isotropic` ones have covariance I/N.

**To add a distribution** write one class with `draw` and add one line to `INPUTS`: its config name, sweep axis and the
direct engine follow. Without parameters it is written in a config by its name, with parameters as a mapping, `inputs:
{anisotropic: {spectrum: [0.5, 1.5]}}` or, the first one as the value, `inputs: {spectrum: [0.2, 1.8], shares: [0.75,
0.25]}`. Errors of students are angles between vectors if the distribution of a field depends on the length of its
vector alone (`exact`), and are measured on new inputs otherwise. Inputs of different variance in different directions
state their `modes` (`statmech.modes`), which is all that theory needs of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statmech import input_table
from statmech.activations import ACTIVATIONS
from statmech.errors import Problem, ScenarioError, not_known, quoted, shortened
from statmech.modes import Modes, group_sizes, hermite, modes_of, of_features, power_law
from statmech.numerics.gaussian import Array
from statmech.random_numbers import normals, signs

LARGEST = 1e20  # largest eigenvalue, and inverse of the smallest: inputs and their squares are float32, over N
ALONG = ("random", "aligned")  # how a teacher lies among the groups of a spectrum
ROUNDING = 1e-6  # of shares that must add up to 1
STEEPEST = 10.0  # decay of a power law
MOST_MODES = 10**7
MOST_LATENT = 1000.0  # latent variables per feature, and features per latent variable
LEAST_REST = 1e-6  # deviation of what is not linear in features, below which they count as linear


class Axes(NamedTuple):
    """Directions, axis by axis, arrays (N,): variances, factors of the penalty, and the group's part of the teacher.

    `powers` None: the teacher has no preferred directions; else `group` numbers the groups.
    """

    variances: np.ndarray
    ridge: np.ndarray
    powers: np.ndarray | None
    group: np.ndarray | None = None


@dataclass(frozen=True)
class Inputs(ABC):
    """A distribution of inputs x; subclasses define `isotropic`, `exact` and `draw`."""

    isotropic: ClassVar[bool] = True  # covariance I/N: theory needs no `modes`
    exact: ClassVar[bool] = False  # eps_g is a function of angles at finite N, not only in the limit
    sized: ClassVar[bool] = False  # `modes` depends on N
    cites: ClassVar[tuple[str, ...]] = ()  # papers, by their keys in the bibliography

    @abstractmethod
    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        """M inputs, shape (M, N) in float32, from a JAX key and the result of `table`.

        Parameters
        ----------
        key
            A JAX key.
        M : int
            Number of inputs.
        N : int
            Number of components.
        table
            What the method `table` returns.

        Returns
        -------
        array (M, N)
            In float32.
        """

    def problem(self, N: int) -> Problem | None:
        """The reason why there are no such inputs of N components, None if there are.

        Parameters
        ----------
        N : int
            Number of components.

        Returns
        -------
        Problem or None
        """
        return None

    def modes(self, N: int) -> Modes | None:
        """The variances of the inputs and of the teacher's field in all directions; None if theory has no equations.

        Parameters
        ----------
        N : int
            Number of components; only tables and power laws depend on it.
        """
        return None

    @property
    def structured(self) -> bool:
        """True if fields have variances that differ from direction to direction, as `modes` says."""
        return not self.isotropic and type(self).modes is not Inputs.modes

    def table(self, N: int) -> np.ndarray:
        """Data for `draw`, computed once outside the compiled program."""
        return np.zeros(0, np.float32)

    def axes(self, N: int) -> Axes | None:
        """The variances along the axes; None of inputs that are not Gaussian with independent components."""
        return None

    def lacking(self, N: int) -> Problem | None:
        """The reason why files of the distribution are not usable, or None; stored results do not need them."""
        return None

    def digests(self) -> dict[str, str]:
        """The SHA-256 of the content of each file of the distribution, by its path."""
        return {}


@dataclass(frozen=True)
class Gaussian(Inputs):
    """Independent components from N(0, 1/N), as in the papers."""

    exact = True

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        return normals(key, (M, N)) / np.float32(N**0.5)


@dataclass(frozen=True)
class Rademacher(Inputs):
    """Independent components +1/sqrt(N) or -1/sqrt(N)."""

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        return signs(key, (M, N)) / np.float32(N**0.5)


@dataclass(frozen=True)
class Sphere(Inputs):
    """Uniform on the unit sphere."""

    exact = True

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        import jax.numpy as jnp

        x = normals(key, (M, N))
        return x / jnp.linalg.norm(x, axis=1, keepdims=True)


@dataclass(frozen=True)
class Anisotropic(Inputs):
    """Gaussian with these eigenvalues of N Cov(x), each on an equal number of axes."""

    isotropic = False
    spectrum: tuple[float, ...] = (1.0,)

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        return Gaussian().draw(key, M, N, table) * table

    def problem(self, N: int) -> Problem | None:
        return _spectrum_problem(self.spectrum)

    def modes(self, N: int) -> Modes:
        return modes_of(self.spectrum)

    def axes(self, N: int) -> Axes:
        index = np.arange(N) * len(self.spectrum) // N
        return Axes(np.asarray(self.spectrum, float)[index], np.ones(N), None)

    def table(self, N: int) -> np.ndarray:
        return np.sqrt(self.axes(N).variances).astype(np.float32)


class Grouped(Inputs):
    """Gaussian inputs whose directions fall into groups of equal variance, axis by axis."""

    isotropic = False
    exact = True

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        return Gaussian().draw(key, M, N, table) * table

    @abstractmethod
    def modes(self, N: int) -> Modes: ...

    @abstractmethod
    def axes(self, N: int) -> Axes: ...

    def table(self, N: int) -> np.ndarray:
        """The deviation of each axis, times sqrt(N)."""
        return np.sqrt(self.axes(N).variances).astype(np.float32)


@dataclass(frozen=True)
class Spectrum(Grouped):
    """Gaussian with these eigenvalues of N Cov(x), each on a fraction of the axes.

    The teacher's squared length is divided among them by `teacher`: as their shares (random), as shares times
    eigenvalues (aligned), or by a list. `misfit` is the part of the variance of the teacher's field that the inputs do
    not contain, `ridge` the factor of the l2 penalty in each group.
    """

    eigenvalues: tuple[float, ...] = (1.0,)
    shares: tuple[float, ...] = ()
    teacher: str | tuple[float, ...] = "random"
    misfit: float = 0.0
    ridge: tuple[float, ...] = ()

    def problem(self, N: int) -> Problem | None:
        if problem := _spectrum_problem(self.eigenvalues):
            return problem
        for sentence in self._sentences(N):
            return ("inputs",), sentence
        return None

    def _sentences(self, N: int) -> Iterator[str]:
        groups = len(self.eigenvalues)
        lists = {"shares": self.shares, "teacher": self.teacher, "ridge": self.ridge}
        for name, values in lists.items():
            if isinstance(values, tuple) and (values or name == "teacher"):
                if not _numbers(values) or min(values) < 0 or len(values) != groups:
                    numbers = f"{groups} numbers of 0 or more, one for each eigenvalue"
                    yield f"{name} of a spectrum must be {numbers}, not {list(values)}"
                elif name != "ridge" and abs(sum(values) - 1) > ROUNDING:
                    yield f"{name} of a spectrum must add up to 1, not to {sum(values):.6g}"
        if isinstance(self.teacher, str) and self.teacher not in ALONG:
            yield f"teacher of a spectrum is a list of powers or {' or '.join(ALONG)}, not {quoted(self.teacher)}"
        elif not isinstance(self.teacher, str) and not np.dot(self.teacher, self.eigenvalues) > 0:
            yield "the teacher must have power in a group whose eigenvalue is not 0"
        if self.ridge and not any(self.ridge):
            yield "ridge of a spectrum must not be 0 in all groups"
        if not 0 <= self.misfit < 1:
            yield f"misfit must be at least 0 and below 1, not {self.misfit:g}"
        if not np.all(group_sizes(modes_of(self.eigenvalues, self.shares).shares, N)):
            shares_note = f" with shares {list(self.shares)}" if self.shares else ""
            yield f"spectrum {list(self.eigenvalues)}{shares_note} on N = {N}: a group would be empty"

    def modes(self, N: int) -> Modes:
        return modes_of(self.eigenvalues, self.shares, self.teacher, self.misfit, self.ridge)

    def axes(self, N: int) -> Axes:
        modes = self.modes(N)
        sizes = group_sizes(modes.shares, N)
        ridge = np.broadcast_to(modes.ridge, modes.variances.shape)
        is_random = self.teacher == "random" or modes.teacher is None
        powers = None if is_random else np.repeat(np.asarray(modes.teacher), sizes)
        group = np.repeat(np.arange(len(sizes)), sizes)
        return Axes(np.repeat(modes.variances, sizes), np.repeat(ridge, sizes), powers, group)


@dataclass(frozen=True)
class PowerLaw(Grouped):
    """Gaussian with the N eigenvalues i^-decay, and powers i^-teacher_decay of the teacher's field."""

    sized = True
    decay: float = 1.5
    teacher_decay: float = 1.75

    def problem(self, N: int) -> Problem | None:
        for name, value in (("decay", self.decay), ("teacher_decay", self.teacher_decay)):
            if not 0 <= value <= STEEPEST:
                return ("inputs",), f"{name} of a power law must lie between 0 and {STEEPEST:g}, not {value:g}"
        if N > MOST_MODES:
            return ("N",), f"a power law has at most {MOST_MODES:,} directions, not {N:,}"
        return None

    def modes(self, N: int) -> Modes:
        return power_law(self.decay, self.teacher_decay, N)

    def axes(self, N: int) -> Axes:
        i = np.arange(1, N + 1.0)
        omega, T = i**-self.decay, i ** (self.decay - self.teacher_decay)
        return Axes(omega * (N / omega.sum()), np.ones(N), T / T.sum(), np.arange(N))


@dataclass(frozen=True)
class Features(Inputs):
    """Random features: an activation of N random projections of `latent` N normal variables, which the teacher sees."""

    isotropic = False
    cites = ("goldt2020", "gerace2020", "mei2022")
    activation: str = "relu"
    latent: float = 0.5

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        raise ScenarioError([(("inputs",), "random features are inputs of stored examples (`loss`), not of a stream")])

    def width(self, N: int) -> int:
        """The number D of latent variables of N features."""
        return round(self.latent * N)

    def of(self, latent: np.ndarray) -> np.ndarray:
        """The features, in float64, of projections on the latent variables (...)."""
        activation = ACTIVATIONS[self.activation]()
        return np.asarray(activation.both(latent)[0], float) - hermite(activation).constant

    def problem(self, N: int) -> Problem | None:
        if self.activation not in ACTIVATIONS:
            return ("inputs",), not_known(self.activation, "an activation", ACTIVATIONS)
        if hermite(ACTIVATIONS[self.activation]()).rest < LEAST_REST:
            return ("inputs",), f"features of the activation {self.activation} are linear in the latent variables"
        if not 1 / MOST_LATENT <= self.latent <= MOST_LATENT:
            bounds = f"{1 / MOST_LATENT:g} and {MOST_LATENT:g}"
            return ("inputs",), f"latent variables per feature must lie between {bounds}, not {self.latent:g}"
        if self.width(N) < 1:
            return ("inputs",), f"{self.latent:g} latent variables per feature are none at N = {N}"
        return None

    def modes(self, N: int) -> Modes:
        return of_features(hermite(ACTIVATIONS[self.activation]()), self.latent)


@dataclass(frozen=True)
class Rows(Inputs):
    """Rows of a table drawn with replacement: a .npy file of numbers or a table, centred, with mean |x|^2 = 1.

    With a `target`, the column that is predicted, they are those of `statmech.LabelledRows` and `statmech.OnlineRows`.
    Columns of a file with a target are standardised, unless it is taken `raw`.
    """

    isotropic = False
    sized = True
    path: str = ""
    target: str | int | None = None
    raw: bool = False

    def problem(self, N: int) -> Problem | None:
        from statmech.real_table import is_data_set  # here: other inputs need no data sets

        if self.target is None and not is_data_set(self.path):
            return None
        return (
            "inputs",
        ), "rows have a target where a config has a `population`: table or held_out, and a `loss` or a `rule`"

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        import jax

        return table[jax.random.randint(key, (M,), 0, table.shape[0], np.int32)]

    def lacking(self, N: int) -> Problem | None:
        try:
            columns = input_table.table(self.path).shape[1]
        except ScenarioError as failure:
            return failure.problems[0]
        return None if columns == N else (("N",), f"{self.path} has {columns} columns, so N must be {columns}, not {N}")

    def modes(self, N: int) -> Modes:
        return modes_of(input_table.eigenvalues(self.path))

    def table(self, N: int) -> np.ndarray:
        return input_table.table(self.path)

    def digests(self) -> dict[str, str]:
        return {self.path: input_table.digest(self.path)}


INPUTS: dict[str, type[Inputs]] = {
    "gaussian": Gaussian,
    "rademacher": Rademacher,
    "sphere": Sphere,
    "anisotropic": Anisotropic,
    "spectrum": Spectrum,
    "power_law": PowerLaw,
    "features": Features,
    "rows": Rows,
}


def inputs_from(given: Any) -> Inputs:
    """A distribution from its form in a config: a name, or a mapping of a name to parameters.

    >>> inputs_from("sphere")
    Sphere()
    >>> inputs_from({"anisotropic": {"spectrum": [0.5, 1.5]}})
    Anisotropic(spectrum=(0.5, 1.5))
    """
    if isinstance(given, Inputs):
        return given
    name, parameters = _named(given) if isinstance(given, dict) else (given, {})
    if not isinstance(name, str) or name not in INPUTS:
        raise ValueError(not_known(name, "a distribution of inputs", INPUTS))
    defaults = {field.name: field.default for field in fields(INPUTS[name])}
    parameters = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in parameters.items()}
    parameters = {key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()}
    for key, value in parameters.items():
        if key not in defaults:
            raise ValueError(not_known(key, f"a parameter of {name}", defaults))
        if not _like(value, defaults[key]):
            text = shortened(" ".join(repr(value).split()))
            raise ValueError(f"{key} of {name} must be like {written_value(defaults[key])}, not {text}")
    return INPUTS[name](**parameters)


def _named(given: dict[Any, Any]) -> tuple[Any, dict[Any, Any]]:
    """The name and the parameters of a mapping: {name: {parameters}}, or {name: the first one, and others}."""
    names = [key for key in given if key in INPUTS] or [*given]
    if len(names) != 1:
        raise ValueError(f"names one distribution of inputs, not {quoted(given)}")
    if names[0] not in INPUTS:
        return names[0], {}
    [name], remaining = names, {key: value for key, value in given.items() if key != names[0]}
    if isinstance(given[name], dict):
        return name, given[name] | remaining
    field_names = [field.name for field in fields(INPUTS[name])]
    if field_names and field_names[0] not in remaining:
        return name, {field_names[0]: given[name], **remaining}
    raise ValueError(f"{name} takes its parameters by name, as in {{{name}: {{parameter: value}}}}")


def _like(value: Any, default: Any) -> bool:
    """True if a parameter's value has the type of its default; a list may stand for a word and a number for another."""
    if isinstance(value, bool):
        return isinstance(default, bool)
    if default is None:
        return isinstance(value, str | int)
    if default in ALONG:
        return isinstance(value, str | tuple)
    return isinstance(value, (int, float) if isinstance(default, float) else type(default))


def written_value(value: Any) -> Any:
    """A parameter's value in the form of a config."""
    return list(value) if isinstance(value, tuple) else value


def written(law: Inputs) -> Any:
    """A distribution in the form of a config, without defaults but the first; `inputs_from(written(law)) == law`."""
    name = next(name for name, kind in INPUTS.items() if type(law) is kind)
    values_and_defaults = {field.name: (getattr(law, field.name), field.default) for field in fields(law)}
    first = next(iter(values_and_defaults), None)
    values = {
        key: written_value(value)
        for key, (value, default) in values_and_defaults.items()
        if key == first or value != default
    }
    return {name: values} if values else name


def label_of(law: Inputs) -> str:
    """The name of a distribution on the axis of a dataset."""
    form = written(law)
    if isinstance(form, str):
        return form
    [(name, values)] = form.items()
    parts = (key if value is True else str(value) for key, value in values.items())
    return f"{name} {' '.join(parts)}"


def _spectrum_problem(spectrum: Any) -> Problem | None:
    """Why these are not the eigenvalues of a covariance."""
    if not _numbers(spectrum) or min(spectrum) < 0 or not any(spectrum):
        return ("inputs",), "a spectrum is a list of finite eigenvalues, none negative and not all 0"
    if any(value > 0 and not 1 / LARGEST <= value <= LARGEST for value in spectrum):
        bounds = f"between {1 / LARGEST:g} and {LARGEST:g}, the range of float32 inputs"
        return ("inputs",), f"eigenvalues of a spectrum must be 0 or {bounds}"
    return None


def _numbers(values: Any) -> bool:
    """True for a list of finite numbers."""
    try:
        array = np.asarray(values, float)
    except (TypeError, ValueError):
        return False
    return array.ndim == 1 and array.size > 0 and bool(np.isfinite(array).all())
