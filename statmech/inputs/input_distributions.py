"""Centred distributions of the inputs, their config forms, and their limits for N -> infinity.

Distributions: `isotropic` distributions have the covariance :math:`I/N`. Errors of students are angles between vectors
if the distribution of a field depends only on the length of its vector (`has_errors_given_by_angles`), and are measured
on new inputs otherwise. Inputs with different variances in different directions define their `modes`
(`statmech.inputs.covariance_modes`); theory needs nothing else.

**To add a distribution** write one class with `draw` and add one line to `INPUTS`: its config name, sweep axis and the
direct engine follow. In a config, a distribution without parameters is written by its name. Parameters are written as a
mapping, `inputs: {anisotropic: {spectrum: [0.5, 1.5]}}`, or with the first parameter as the value, `inputs: {spectrum:
[0.2, 1.8], shares: [0.75, 0.25]}`.

Populations: an `InputPopulation` holds the properties of a distribution for N -> infinity, as a key of cached
solutions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statmech.errors import Problem, ScenarioError, format_unknown_name, quote_value, shorten_text
from statmech.inputs import table_files
from statmech.inputs.covariance_modes import (
    Modes,
    compute_group_sizes,
    hermite_coefficients,
    make_feature_modes,
    make_modes,
    make_power_law_modes,
)
from statmech.numerics.gaussian import Array
from statmech.numerics.random_numbers import draw_normals, draw_signs
from statmech.students.activations import ACTIVATIONS

MAX_INPUT_EIGENVALUE = 1e20  # the minimum is its inverse: inputs and their squares are float32
TEACHER_DIRECTION_NAMES = ("random", "aligned")
FRACTION_SUM_TOL = 1e-6  # allowed deviation of the sum from 1
MAX_POWER_LAW_DECAY = 10.0
MAX_POWER_LAW_MODES = 10**7
MAX_LATENT_RATIO = 1000.0  # limits latent variables per feature, and features per latent variable
MIN_NONLINEAR_COEFFICIENT = 1e-6  # features with a smaller nonlinear part are treated as linear
CLUSTER_INPUT_KINDS_NOTE = "inputs around a centre are gaussian, anisotropic or a spectrum"


class InputAxes(NamedTuple):
    """Arrays (N,) for the axes: variances, penalty factors, and the teacher's power in the group of each axis.

    `powers` is None if the teacher has no preferred direction. Otherwise `group` numbers the groups.
    """

    variances: np.ndarray
    ridge: np.ndarray
    powers: np.ndarray | None
    group: np.ndarray | None = None


@dataclass(frozen=True)
class Inputs(ABC):
    """A distribution of inputs x. Subclasses define `draw` and override the properties that differ from the defaults.

    Scenarios, simulation and theory ask a distribution for its properties, never for its class.
    """

    isotropic: ClassVar[bool] = True  # True: covariance I/N, so theory does not need `modes`
    has_errors_given_by_angles: ClassVar[bool] = False  # True: eps_g depends only on angles, even at finite N
    normal_fields: ClassVar[bool] = False  # True: fields are normal at finite N, and their overlaps are recorded
    modes_depend_on_N: ClassVar[bool] = False  # True: `modes` depends on N
    from_file: ClassVar[bool] = False  # True: `modes` reads a file, which may be missing
    cites: ClassVar[tuple[str, ...]] = ()  # bibliography keys of the papers

    @property
    def axis_label(self) -> str:
        """The label of the distribution on a dataset axis."""
        return format_inputs_label(self)

    @abstractmethod
    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        """Draw M inputs (M, N) in float32 from a JAX key and the result of `table`.

        Parameters
        ----------
        key
            A JAX key.
        M : int
            Number of inputs.
        N : int
            Number of components.
        table
            Result of the method `table`.

        Returns
        -------
        array (M, N)
            Inputs in float32.
        """

    def problem(self, N: int) -> Problem | None:
        """Return the reason why inputs with N components are not possible, or None.

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
        """Return the variances of the inputs and of the teacher's field along all directions.

        None means that theory does not have equations for these inputs.

        Parameters
        ----------
        N : int
            Number of components; only tables and power laws depend on it.
        """
        return None

    @property
    def has_unequal_variances(self) -> bool:
        """True if the variance of a field depends on the direction of its weight vector (`modes`)."""
        return not self.isotropic and type(self).modes is not Inputs.modes

    @property
    def has_field_variables(self) -> bool:
        """True if the overlaps of fields are recorded in addition to the overlaps of weight vectors."""
        return self.has_unequal_variances and self.normal_fields

    @property
    def has_isotropic_normal_fields(self) -> bool:
        """True if the fields of all vectors of one length have the same normal distribution at finite N."""
        return self.isotropic and self.normal_fields

    @property
    def num_variance_groups(self) -> int:
        """Number of groups of axes of equal variance, 0 if the distribution does not consist of a few groups."""
        return 0

    @property
    def menu_name(self) -> str:
        """Name for menus."""
        return format_inputs_label(self)

    @property
    def cluster_spectrum(self) -> Spectrum | None:
        """Groups of axes with this distribution around a cluster's centre, or None if not supported."""
        return None

    def find_cluster_problem(self, N: int) -> Problem | None:
        """Explain why inputs around the centre of a cluster cannot have this distribution, or return None."""
        if self.cluster_spectrum is None:
            return ("inputs",), f"{CLUSTER_INPUT_KINDS_NOTE}, not {format_inputs_label(self)}"
        return self.problem(N)

    def find_online_learning_problem(self) -> str:
        """Explain why the distribution has no meaning for online learning, or return ""."""
        return ""

    @property
    def has_unpenalised_axes(self) -> bool:
        """True if a penalty leaves some axes free."""
        return False

    def count_teacher_axes(self, N: int) -> int:
        """Return the number of axes on which a teacher has power."""
        return N

    def count_latent_variables(self, N: int) -> int:
        """Return the number of the teacher's latent variables, or 0 if the teacher acts on the inputs."""
        return 0

    def map_latent_fields(self, fields: np.ndarray) -> np.ndarray:
        """Return the inputs, in float64, for projections (...) of the latent variables."""
        raise NotImplementedError("inputs without latent variables")

    def table(self, N: int) -> np.ndarray:
        """Compute the data that `draw` needs, once and outside the compiled program."""
        return np.zeros(0, np.float32)

    def draw_examples(self, rng: np.random.Generator, P: int, N: int) -> np.ndarray:
        """Draw stored inputs from the distribution, times sqrt(N), as an array (P, N) in float64.

        The first rows are the same for every P. By default each row is drawn by `draw` with a key of its own.
        """
        import jax

        table, seeds = self.table(N), rng.integers(2**32, size=P, dtype=np.uint32)
        rows = jax.vmap(lambda seed: self.draw(jax.random.key(seed), 1, N, table)[0])(seeds)
        return np.asarray(rows, float) * np.sqrt(N)

    def axes(self, N: int) -> InputAxes | None:
        """Return the properties of the axes, or None if the components are not independent Gaussians."""
        return None

    def find_file_problem(self, N: int) -> Problem | None:
        """Return the reason why the files of the distribution cannot be used, or None.

        Stored results do not need these files.
        """
        return None

    def file_digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file that the distribution uses, by path."""
        return {}


@dataclass(frozen=True)
class Gaussian(Inputs):
    """Independent Gaussian components N(0, 1/N), as in the papers."""

    has_errors_given_by_angles = True
    normal_fields = True

    @property
    def cluster_spectrum(self) -> Spectrum:
        return Spectrum()

    def draw_examples(self, rng: np.random.Generator, P: int, N: int) -> np.ndarray:
        return rng.standard_normal((P, N))

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        return draw_normals(key, (M, N)) / np.float32(N**0.5)


@dataclass(frozen=True)
class Rademacher(Inputs):
    """Independent components +1/sqrt(N) or -1/sqrt(N)."""

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        return draw_signs(key, (M, N)) / np.float32(N**0.5)

    def draw_examples(self, rng: np.random.Generator, P: int, N: int) -> np.ndarray:
        return np.where(rng.random((P, N)) < 0.5, -1.0, 1.0)


@dataclass(frozen=True)
class Sphere(Inputs):
    """The uniform distribution on the unit sphere."""

    has_errors_given_by_angles = True

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        import jax.numpy as jnp

        x = draw_normals(key, (M, N))
        return x / jnp.linalg.norm(x, axis=1, keepdims=True)

    def draw_examples(self, rng: np.random.Generator, P: int, N: int) -> np.ndarray:
        X = rng.standard_normal((P, N))
        X *= np.sqrt(N) / np.linalg.norm(X, axis=1, keepdims=True)
        return X


@dataclass(frozen=True)
class Anisotropic(Inputs):
    """A Gaussian with given eigenvalues of N Cov(x), each on an equal number of axes."""

    isotropic = False
    spectrum: tuple[float, ...] = (1.0,)

    @property
    def cluster_spectrum(self) -> Spectrum:
        return Spectrum(self.spectrum)

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        return Gaussian().draw(key, M, N, table) * table

    def problem(self, N: int) -> Problem | None:
        return _find_spectrum_problem(self.spectrum)

    def modes(self, N: int) -> Modes:
        return make_modes(self.spectrum)

    def axes(self, N: int) -> InputAxes:
        index = np.arange(N) * len(self.spectrum) // N
        return InputAxes(np.asarray(self.spectrum, float)[index], np.ones(N), None)

    def table(self, N: int) -> np.ndarray:
        return np.sqrt(self.axes(N).variances).astype(np.float32)


class GroupedInputs(Inputs):
    """Gaussian inputs whose axes form groups of equal variance."""

    isotropic = False
    has_errors_given_by_angles = True
    normal_fields = True

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        return Gaussian().draw(key, M, N, table) * table

    @abstractmethod
    def modes(self, N: int) -> Modes: ...

    @abstractmethod
    def axes(self, N: int) -> InputAxes: ...

    def table(self, N: int) -> np.ndarray:
        """Return sqrt(N) times the standard deviation on each axis."""
        return np.sqrt(self.axes(N).variances).astype(np.float32)


@dataclass(frozen=True)
class Spectrum(GroupedInputs):
    """A Gaussian with given eigenvalues of N Cov(x), each on a fraction of the axes.

    `teacher` divides the teacher's squared length among the groups of axes: in proportion to `shares` (random), to
    `shares` times `eigenvalues` (aligned), or to a list. `misfit` is the fraction of the teacher's field variance that
    the inputs do not contain. `ridge` is the factor of the l2 penalty in each group.
    """

    eigenvalues: tuple[float, ...] = (1.0,)
    shares: tuple[float, ...] = ()
    teacher: str | tuple[float, ...] = "random"
    misfit: float = 0.0
    ridge: tuple[float, ...] = ()

    @property
    def num_variance_groups(self) -> int:
        return len(self.eigenvalues)

    @property
    def cluster_spectrum(self) -> Spectrum:
        return self

    def find_cluster_problem(self, N: int) -> Problem | None:
        if problem := self.problem(N):
            return problem
        if self.misfit:
            return ("inputs",), "misfit belongs to a teacher's field: clusters have no teacher"
        return (("inputs",), "ridge must be greater than 0 in all groups") if self.has_unpenalised_axes else None

    def find_online_learning_problem(self) -> str:
        if self.misfit > 0:
            return "the teacher of online learning has no misfit: learners of convex losses have it"
        return "online learning has no penalty: learners of convex losses have a `ridge`" if self.ridge else ""

    @property
    def has_unpenalised_axes(self) -> bool:
        return 0 in self.ridge

    def count_teacher_axes(self, N: int) -> int:
        modes = self.modes(N)
        if self.teacher == "random" or modes.teacher is None:
            return N
        return int(compute_group_sizes(modes.shares, N)[modes.teacher > 0].sum())

    def problem(self, N: int) -> Problem | None:
        if problem := _find_spectrum_problem(self.eigenvalues):
            return problem
        for sentence in self._find_parameter_problems(N):
            return ("inputs",), sentence
        return None

    def _find_parameter_problems(self, N: int) -> Iterator[str]:
        """Yield messages about invalid parameters of a distribution of inputs."""
        groups = len(self.eigenvalues)
        lists = {"shares": self.shares, "teacher": self.teacher, "ridge": self.ridge}
        for name, values in lists.items():
            if isinstance(values, tuple) and (values or name == "teacher"):
                if not _is_number_list(values) or min(values) < 0 or len(values) != groups:
                    numbers = f"{groups} numbers of 0 or more, one for each eigenvalue"
                    yield f"{name} of a spectrum must be {numbers}, not {list(values)}"
                elif name != "ridge" and abs(sum(values) - 1) > FRACTION_SUM_TOL:
                    yield f"{name} of a spectrum must add up to 1, not to {sum(values):.6g}"
        if isinstance(self.teacher, str) and self.teacher not in TEACHER_DIRECTION_NAMES:
            directions = " or ".join(TEACHER_DIRECTION_NAMES)
            yield f"teacher of a spectrum is a list of powers or {directions}, not {quote_value(self.teacher)}"
        elif not isinstance(self.teacher, str) and not np.dot(self.teacher, self.eigenvalues) > 0:
            yield "the teacher must have power in a group whose eigenvalue is not 0"
        if self.ridge and not any(self.ridge):
            yield "ridge of a spectrum must not be 0 in all groups"
        if not 0 <= self.misfit < 1:
            yield f"misfit must be at least 0 and below 1, not {self.misfit:g}"
        if not np.all(compute_group_sizes(make_modes(self.eigenvalues, self.shares).shares, N)):
            shares_note = f" with shares {list(self.shares)}" if self.shares else ""
            yield f"spectrum {list(self.eigenvalues)}{shares_note} on N = {N}: a group would be empty"

    def modes(self, N: int) -> Modes:
        return make_modes(self.eigenvalues, self.shares, self.teacher, self.misfit, self.ridge)

    def axes(self, N: int) -> InputAxes:
        modes = self.modes(N)
        sizes = compute_group_sizes(modes.shares, N)
        ridge = np.broadcast_to(modes.ridge, modes.variances.shape)
        is_random = self.teacher == "random" or modes.teacher is None
        powers = None if is_random else np.repeat(np.asarray(modes.teacher), sizes)
        group = np.repeat(np.arange(len(sizes)), sizes)
        return InputAxes(np.repeat(modes.variances, sizes), np.repeat(ridge, sizes), powers, group)


@dataclass(frozen=True)
class PowerLaw(GroupedInputs):
    """A Gaussian with eigenvalues i^-decay and powers i^-teacher_decay of the teacher's field, i = 1 ... N."""

    modes_depend_on_N = True
    decay: float = 1.5
    teacher_decay: float = 1.75

    def problem(self, N: int) -> Problem | None:
        for name, value in (("decay", self.decay), ("teacher_decay", self.teacher_decay)):
            if not 0 <= value <= MAX_POWER_LAW_DECAY:
                return (
                    "inputs",
                ), f"{name} of a power law must lie between 0 and {MAX_POWER_LAW_DECAY:g}, not {value:g}"
        if N > MAX_POWER_LAW_MODES:
            return ("N",), f"a power law has at most {MAX_POWER_LAW_MODES:,} directions, not {N:,}"
        return None

    def modes(self, N: int) -> Modes:
        return make_power_law_modes(self.decay, self.teacher_decay, N)

    def axes(self, N: int) -> InputAxes:
        i = np.arange(1, N + 1.0)
        omega, T = i**-self.decay, i ** (self.decay - self.teacher_decay)
        return InputAxes(omega * (N / omega.sum()), np.ones(N), T / T.sum(), np.arange(N))


@dataclass(frozen=True)
class Features(Inputs):
    """Random features: activations of N random projections of the teacher's `latent` N normal inputs."""

    isotropic = False
    cites = ("goldt2020", "gerace2020", "mei2022")
    activation: str = "relu"
    latent: float = 0.5

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        raise ScenarioError([(("inputs",), "random features require stored examples (`loss`), not a stream")])

    def find_online_learning_problem(self) -> str:
        return "features need a teacher on latent variables: learners of convex losses have them"

    def count_latent_variables(self, N: int) -> int:
        return round(self.latent * N)

    def map_latent_fields(self, fields: np.ndarray) -> np.ndarray:
        activation = ACTIVATIONS[self.activation]()
        return np.asarray(activation.both(fields)[0], float) - hermite_coefficients(activation).constant

    def problem(self, N: int) -> Problem | None:
        if self.activation not in ACTIVATIONS:
            return ("inputs",), format_unknown_name(self.activation, "an activation", ACTIVATIONS)
        if hermite_coefficients(ACTIVATIONS[self.activation]()).nonlinear_norm < MIN_NONLINEAR_COEFFICIENT:
            return ("inputs",), f"features of the activation {self.activation} are linear in the latent variables"
        if not 1 / MAX_LATENT_RATIO <= self.latent <= MAX_LATENT_RATIO:
            bounds = f"{1 / MAX_LATENT_RATIO:g} and {MAX_LATENT_RATIO:g}"
            return ("inputs",), f"latent variables per feature must lie between {bounds}, not {self.latent:g}"
        if self.count_latent_variables(N) < 1:
            return ("inputs",), f"{self.latent:g} latent variables per feature leave no latent variable at N = {N}"
        return None

    def modes(self, N: int) -> Modes:
        return make_feature_modes(hermite_coefficients(ACTIVATIONS[self.activation]()), self.latent)


@dataclass(frozen=True)
class Rows(Inputs):
    """Rows drawn with replacement from a .npy file or a table, centred, with mean |x|^2 = 1.

    `target` is the column to predict: `statmech.LabelledRows` and `statmech.OnlineRows` use rows with a target. The
    columns of a file with a target are standardised unless `raw` is True.
    """

    isotropic = False
    modes_depend_on_N = True
    from_file = True
    path: str = ""
    target: str | int | None = None
    raw: bool = False

    @property
    def menu_name(self) -> str:
        return Path(self.path).name

    def problem(self, N: int) -> Problem | None:
        from statmech.inputs.real_tables import is_data_set_name  # imported here: other inputs do not need data sets

        if self.target is None and not is_data_set_name(self.path):
            return None
        return (
            "inputs",
        ), "rows have a target where a config has a `population`: table or held_out, and a `loss` or a `rule`"

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        import jax

        return table[jax.random.randint(key, (M,), 0, table.shape[0], np.int32)]

    def find_file_problem(self, N: int) -> Problem | None:
        try:
            columns = table_files.load_input_table(self.path).shape[1]
        except ScenarioError as failure:
            return failure.problems[0]
        return None if columns == N else (("N",), f"{self.path} has {columns} columns, so N must be {columns}, not {N}")

    def modes(self, N: int) -> Modes:
        return make_modes(table_files.get_covariance_eigenvalues(self.path))

    def table(self, N: int) -> np.ndarray:
        return table_files.load_input_table(self.path)

    def file_digests(self) -> dict[str, str]:
        return {self.path: table_files.get_input_table_digest(self.path)}


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

CLUSTERS_HINT = "clusters are a key at the top level, instead of a teacher: clusters: gaussian"


def inputs_from_config(form: Any) -> Inputs:
    """Make a distribution of inputs from its config form: a name, or a mapping of a name to parameters.

    >>> inputs_from_config("sphere")
    Sphere()
    >>> inputs_from_config({"anisotropic": {"spectrum": [0.5, 1.5]}})
    Anisotropic(spectrum=(0.5, 1.5))
    """
    if isinstance(form, Inputs):
        return form
    name, parameters = _split_name_and_parameters(form) if isinstance(form, dict) else (form, {})
    if not isinstance(name, str) or name not in INPUTS:
        unknown = format_unknown_name(name, "a distribution of inputs", INPUTS)
        raise ValueError(CLUSTERS_HINT if name == "clusters" else unknown)
    defaults = {field.name: field.default for field in fields(INPUTS[name])}
    parameters = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in parameters.items()}
    parameters = {key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()}
    for key, value in parameters.items():
        if key not in defaults:
            raise ValueError(format_unknown_name(key, f"a parameter of {name}", defaults))
        if not _matches_default_type(value, defaults[key]):
            text = shorten_text(" ".join(repr(value).split()))
            raise ValueError(f"{key} of {name} must be {_describe_form(defaults[key])}, not {text}")
    return INPUTS[name](**parameters)


def _split_name_and_parameters(form: dict[Any, Any]) -> tuple[Any, dict[Any, Any]]:
    """Split a mapping in a config into the name and the parameters of a distribution of inputs.

    The form is {name: {parameter: value, ...}}, or {name: value of the first parameter, parameter: value, ...}.
    """
    names = [key for key in form if key in INPUTS] or [*form]
    if len(names) != 1:
        raise ValueError(f"must name one distribution of inputs, not {quote_value(form)}")
    if names[0] not in INPUTS:
        return names[0], {}
    [name], remaining = names, {key: value for key, value in form.items() if key != names[0]}
    if isinstance(form[name], dict):
        return name, form[name] | remaining
    field_names = [field.name for field in fields(INPUTS[name])]
    if field_names and field_names[0] not in remaining:
        return name, {field_names[0]: form[name], **remaining}
    raise ValueError(f"{name} takes its parameters by name, as in {{{name}: {{parameter: value}}}}")


def _describe_form(default: Any) -> str:
    """Describe the possible values of a parameter, for messages."""
    if default is None or default in TEACHER_DIRECTION_NAMES:
        return "a column's name or index" if default is None else f"{' or '.join(TEACHER_DIRECTION_NAMES)}, or a list"
    return {bool: "true or false", str: "a string", tuple: "a list"}.get(type(default), "a number")


def _matches_default_type(value: Any, default: Any) -> bool:
    """Return True if the value of a distribution's parameter has the type of its default.

    A list is allowed for the teacher's direction, a string or an integer for the default None, and an integer for a
    float.
    """
    if isinstance(value, bool):
        return isinstance(default, bool)
    if default is None:
        return isinstance(value, str | int)
    if default in TEACHER_DIRECTION_NAMES:
        return isinstance(value, str | tuple)
    return isinstance(value, (int, float) if isinstance(default, float) else type(default))


def parameter_to_config(value: Any) -> Any:
    """Convert a parameter's value to its config form, with a list instead of a tuple."""
    return list(value) if isinstance(value, tuple) else value


def inputs_to_config(inputs: Inputs) -> Any:
    """Convert a distribution of inputs to its config form, the inverse of `inputs_from_config`.

    Parameters with default values are omitted, except for the first parameter.
    """
    name = next(name for name, kind in INPUTS.items() if type(inputs) is kind)
    values_and_defaults = {field.name: (getattr(inputs, field.name), field.default) for field in fields(inputs)}
    first = next(iter(values_and_defaults), None)
    values = {
        key: parameter_to_config(value)
        for key, (value, default) in values_and_defaults.items()
        if key == first or value != default
    }
    return {name: values} if values else name


def format_inputs_label(inputs: Inputs) -> str:
    """Return the label of a distribution of inputs on a dataset axis."""
    form = inputs_to_config(inputs)
    if isinstance(form, str):
        return form
    [(name, values)] = form.items()
    parts = (key if value is True else str(value) for key, value in values.items())
    return f"{name} {' '.join(parts)}"


def _find_spectrum_problem(spectrum: Any) -> Problem | None:
    """Return the reason why a list is not a valid covariance spectrum, or None."""
    if not _is_number_list(spectrum) or min(spectrum) < 0 or not any(spectrum):
        return ("inputs",), "a spectrum is a list of finite eigenvalues, none negative and not all 0"
    if any(value > 0 and not 1 / MAX_INPUT_EIGENVALUE <= value <= MAX_INPUT_EIGENVALUE for value in spectrum):
        bounds = f"between {1 / MAX_INPUT_EIGENVALUE:g} and {MAX_INPUT_EIGENVALUE:g}, the range of float32 inputs"
        return ("inputs",), f"eigenvalues of a spectrum must be 0 or {bounds}"
    return None


def _is_number_list(values: Any) -> bool:
    """Return True for a spectrum's list of finite numbers."""
    try:
        array = np.asarray(values, float)
    except (TypeError, ValueError):
        return False
    return array.ndim == 1 and array.size > 0 and bool(np.isfinite(array).all())


@dataclass(frozen=True)
class InputPopulation:
    """Inputs with unequal variances in N dimensions, and the digests of their files.

    N is 0 if theory does not depend on N.

    >>> from statmech.inputs.input_distributions import Gaussian, inputs_from_config
    >>> make_input_population(Gaussian(), 100) is None                 # isotropic
    True
    >>> make_input_population(inputs_from_config({"spectrum": [0.5, 1.5]}), 100).modes.variances
    array([0.5, 1.5])
    """

    inputs: Inputs
    N: int
    files: tuple[tuple[str, str], ...] = ()

    @property
    def modes(self) -> Modes:
        """The variances of the inputs and of the teacher's field."""
        return _compute_population_modes(self)


def make_input_population(inputs: Inputs, N: int) -> InputPopulation | None:
    """Return the population of a distribution of inputs, or None for isotropic inputs.

    Parameters
    ----------
    inputs
        The distribution.
    N
        Number of components.
    """
    if inputs.isotropic:
        return None
    return InputPopulation(inputs, N if inputs.modes_depend_on_N else 0, tuple(sorted(inputs.file_digests().items())))


@lru_cache(maxsize=16)
def _compute_population_modes(population: InputPopulation) -> Modes:
    """Compute the modes of a population of inputs, or raise `ScenarioError` if theory does not support the inputs."""
    modes = population.inputs.modes(population.N)
    if modes is None:
        raise ScenarioError([(("inputs",), "theory has no equations for these inputs")])
    return modes
