r"""Distributions of the inputs: all centred; `isotropic` ones have covariance I/N, so that the theory applies.

**To add a distribution** write one class with `draw` and add one line to `INPUTS`: its config name, sweep axis and the
direct engine follow. With parameters it is written in a config as a mapping, `inputs: {anisotropic: {spectrum: [0.5,
1.5]}}`, without by its name. Errors of students are angles between vectors if the distribution of a field depends on
the length of its vector alone (`exact`), and are measured on new inputs otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from statmech import input_table
from statmech.errors import Problem, ScenarioError, not_known
from statmech.numerics.gaussian import Array
from statmech.random_numbers import normals, signs

LARGEST = 1e20  # largest eigenvalue, and inverse of the smallest: inputs and their squares are float32, over N


@dataclass(frozen=True)
class Inputs(ABC):
    """A distribution of inputs x; subclasses define `isotropic`, `exact` and `draw`."""

    isotropic: ClassVar[bool] = True  # covariance I/N: the equations of theory.online.equations hold in the limit
    exact: ClassVar[bool] = False  # eps_g is a function of angles at finite N, not only in the limit

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

    def table(self, N: int) -> np.ndarray:
        """Data for `draw`, computed once outside the compiled program."""
        return np.zeros(0, np.float32)

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
        try:
            values = np.asarray(self.spectrum, float)
        except (TypeError, ValueError):
            values = np.asarray([np.nan])
        if values.ndim != 1 or not values.size or not np.all(np.isfinite(values) & (values >= 0)) or not values.any():
            return ("inputs",), "a spectrum is a list of finite eigenvalues, none negative and not all 0"
        if np.any((values > 0) & ((values < 1 / LARGEST) | (values > LARGEST))):
            bounds = f"between {1 / LARGEST:g} and {LARGEST:g}, the range of float32 inputs"
            return ("inputs",), f"eigenvalues of a spectrum must be 0 or {bounds}"
        return None

    def table(self, N: int) -> np.ndarray:
        index = np.arange(N) * len(self.spectrum) // N
        return np.sqrt(np.asarray(self.spectrum)[index]).astype(np.float32)


@dataclass(frozen=True)
class Rows(Inputs):
    """Rows of a table drawn with replacement: a .npy or .csv file of numbers, centred, with mean |x|^2 = 1."""

    isotropic = False
    path: str = ""

    def draw(self, key: Array, M: int, N: int, table: Array) -> Array:
        import jax

        return table[jax.random.randint(key, (M,), 0, table.shape[0], np.int32)]

    def lacking(self, N: int) -> Problem | None:
        try:
            columns = input_table.table(self.path).shape[1]
        except ScenarioError as failure:
            return failure.problems[0]
        return None if columns == N else (("N",), f"{self.path} has {columns} columns, so N must be {columns}, not {N}")

    def table(self, N: int) -> np.ndarray:
        return input_table.table(self.path)

    def digests(self) -> dict[str, str]:
        return {self.path: input_table.digest(self.path)}


INPUTS: dict[str, type[Inputs]] = {
    "gaussian": Gaussian,
    "rademacher": Rademacher,
    "sphere": Sphere,
    "anisotropic": Anisotropic,
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
    name, parameters = next(iter(given.items())) if isinstance(given, dict) and len(given) == 1 else (given, {})
    if not isinstance(name, str) or name not in INPUTS:
        raise ValueError(not_known(name, "a distribution of inputs", INPUTS))
    if not isinstance(parameters, dict):
        raise ValueError(f"{name} takes its parameters by name, as in {{{name}: {{parameter: value}}}}")
    known = {field.name: field.default for field in fields(INPUTS[name])}
    parameters = {key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()}
    for key, value in parameters.items():
        if key not in known:
            raise ValueError(not_known(key, f"a parameter of {name}", known))
        if not isinstance(value, type(known[key])):
            raise ValueError(f"{key} of {name} must be like {written_value(known[key])}, not {value!r}")
    return INPUTS[name](**parameters)


def written_value(value: Any) -> Any:
    """A parameter's value in the form of a config."""
    return list(value) if isinstance(value, tuple) else value


def written(law: Inputs) -> Any:
    """A distribution in the form of a config; `inputs_from(written(law)) == law`."""
    name = next(name for name, kind in INPUTS.items() if type(law) is kind)
    values = {f.name: getattr(law, f.name) for f in fields(law)}
    return {name: {key: written_value(value) for key, value in values.items()}} if values else name


def label_of(law: Inputs) -> str:
    """The name of a distribution on the axis of a dataset."""
    form = written(law)
    if isinstance(form, str):
        return form
    [(name, values)] = form.items()
    return f"{name} {' '.join(str(value) for value in values.values())}"
