"""The section `figure` of a config: the variables, x axis and series of a figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Annotated, Any, Protocol

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
)

from statmech.errors import ConfigError, Problem, format_unknown_name
from statmech.keys.error_messages import explain_problems
from statmech.keys.sweep_grid import PydanticTypeOverride
from statmech.keys.variables import DIMS_AVERAGED_IN_FIGURES, DIMS_HIDDEN_IN_FIGURES, NETWORK_UNIT_DIMS, Variable

_NAME_OR_LIST_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_SINGLE_NAME_CONVERTER = BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)
NameTuple = Annotated[
    Any, PydanticTypeOverride(Annotated[tuple[str, ...], _SINGLE_NAME_CONVERTER, WithJsonSchema(_NAME_OR_LIST_SCHEMA)])
]


class FigureScenario(Protocol):
    """The members of a scenario that decide which figures its results allow."""

    def axis_values(self) -> dict[str, Any]: ...
    def axis_names(self) -> list[str]: ...
    @property
    def dimensions(self) -> dict[str, dict[str, tuple[Any, ...]]]: ...
    @property
    def shape(self) -> dict[str, int]: ...
    @property
    def recorded_coordinates(self) -> dict[str, np.ndarray]: ...
    @property
    def variables(self) -> dict[str, Variable]: ...
    @property
    def theory_only_variables(self) -> dict[str, Variable]: ...


class Composition(BaseModel):
    """The composition of a figure: its variables, its x axis, and the axes that distinguish its curves.

    By default, a figure shows results, without details or diagnostics, against the usual x axis of the kind of
    scenario.

    >>> Composition(y="eps_g", x="alpha", series="loss")
    Composition(x='alpha', y=('eps_g',), series=('loss',))
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    x: str | None = Field(default=None, description="axis, or variable, along the horizontal axis")
    y: NameTuple = Field(default=(), description="variables, a panel each")
    series: NameTuple = Field(default=(), description="axes that colours and, of a second one, markers distinguish")
    split: NameTuple = Field(default=(), description="axes whose values have panels")
    over: str | None = Field(default=None, description="variable by which y is divided")
    points: str | None = Field(
        default=None, description="CSV file of further points, with columns x, y and, if it is known, error"
    )
    fit: bool = Field(default=False, description="whether exponents are fitted, on logarithmic axes")

    @model_serializer(mode="wrap")
    def _dump_given_keys(self, dump: ValidatorFunctionWrapHandler) -> dict[str, Any]:
        """Serialise only the keys that are set, and a single name as a string."""
        dumped: dict[str, Any] = dump(self)
        given_keys = {name: value for name, value in dumped.items() if value not in (None, [], (), False)}
        return {name: value[0] if np.shape(value) == (1,) else value for name, value in given_keys.items()}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        return ((name, value) for name, value in super().__repr_args__() if value not in (None, (), False))

    @property
    def name(self) -> str:
        """File name of the figure that a config composes, without its suffix.

        >>> Composition(y="eps_g", over="R_bayes", x="alpha", series="loss").name, Composition().name
        ('eps_g_over_R_bayes_against_alpha_by_loss', 'overlay')
        """
        parts = {
            "": self.y,
            "over": (self.over,),
            "against": (self.x,),
            "by": (*self.series, *self.split),
            "with": (self.points and PurePath(self.points).stem, "fit" if self.fit else None),
        }
        given_names = {prefix: [name for name in names if name] for prefix, names in parts.items()}
        name_parts = [part for prefix, names in given_names.items() if names for part in (prefix, *names)]
        return "_".join(prefix for prefix in name_parts if prefix) or "overlay"

    def problems(self, scenario: FigureScenario) -> Iterator[Problem]:
        """Find the keys of the section `figure` that the results of a scenario do not support, with reasons.

        Parameters
        ----------
        scenario
            A scenario of any kind.
        """
        axis_dims, variables = find_drawable_axes(scenario), find_drawable_variables(scenario)
        yield from _find_x_axis_problems(self.x, scenario, axis_dims, variables)
        for key, names in (("y", self.y), ("over", (self.over,) if self.over else ())):
            yield from (
                ((key,), sentence)
                for name in names
                for sentence in _explain_unusable_variable(name, scenario, variables)
            )
        for key in ("series", "split"):
            for name in getattr(self, key):
                if name not in axis_dims:
                    yield (key,), _explain_unusable_axis(name, scenario, axis_dims)
                elif self.x in axis_dims and axis_dims[name] == axis_dims[self.x]:
                    yield (key,), f"{name} lies along x"
                elif key == "split" and name in self.series:
                    yield (key,), f"{name} is among the series"
        if self.points is not None and len(self.y) != 1:
            yield ("points",), "the points are values of one variable, which y names"


FigureKeyValue = str | Composition | None  # possible values of the config key `figure`


def read_figure_composition(section: dict[str, Any]) -> Composition:
    """Read the section `figure` of a config, or raise `ConfigError` with its invalid keys.

    >>> read_figure_composition({"y": "eps_g", "serie": "loss"})
    Traceback (most recent call last):
    statmech.errors.ConfigError: figure.serie: "serie" is not a key of figure. Did you mean "series"? Known: x, y, \
series, split, over, points, fit.
    """
    try:
        return Composition(**section)
    except ValidationError as failure:
        keys = {"figure": [*Composition.model_fields]}
        section_problems = [
            ((*location,), sentence) for location, sentence in explain_problems(failure, keys["figure"])
        ]
        lines = [f"figure.{location[0]}: {sentence}" for location, sentence in section_problems]
        raise ConfigError("\n".join(lines).replace("a key of a config", "a key of figure")) from None


def find_drawable_axes(scenario: FigureScenario) -> dict[str, str]:
    """Map the sweep axes that a section `figure` can name, because they have several values, to their dimensions.

    >>> from statmech import Scenario
    >>> find_drawable_axes(Scenario(rule=["hebb", "adatron"], t=[1, 2], zip={"eta": [1, 2], "flip": [0, 0.1]}))
    {'rule': 'rule', 'eta': 'eta_flip', 'flip': 'eta_flip', 't': 't'}
    """
    swept = {name: dim for dim, coordinates in scenario.dimensions.items() for name in coordinates}
    sorted_names = sorted(swept, key=list(scenario.axis_values()).index) if swept else []
    several = {name: swept[name] for name in sorted_names if scenario.shape[swept[name]] > 1}
    return several | {dim: dim for dim, values in get_drawable_coordinates(scenario).items() if values.size > 1}


def get_drawable_coordinates(scenario: FigureScenario) -> dict[str, np.ndarray]:
    """Return the recorded coordinates that a section `figure` can name as x axis, such as times."""
    return {
        dim: np.asarray(values)
        for dim, values in scenario.recorded_coordinates.items()
        if dim not in DIMS_HIDDEN_IN_FIGURES
    }


def find_drawable_variables(scenario: FigureScenario) -> dict[str, Variable]:
    """Find the variables that a section `figure` can name: numbers with at most one value per student.

    The overlaps of single units are excluded.
    """
    inner = {*get_drawable_coordinates(scenario), *DIMS_AVERAGED_IN_FIGURES}
    all_variables = {**scenario.variables, **scenario.theory_only_variables}
    return {
        name: variable
        for name, variable in all_variables.items()
        if variable.missing is np.nan and {*variable.dims} <= inner
    }


def _find_x_axis_problems(
    x: str | None, scenario: FigureScenario, axis_dims: dict[str, str], variables: dict[str, Variable]
) -> Iterator[Problem]:
    """Find the reason why a section `figure` cannot name a key or variable as x axis."""
    if x is None or x in axis_dims or x in variables:
        return
    if x in scenario.axis_names() or x in get_drawable_coordinates(scenario):
        possible = f"; axes with several: {', '.join(axis_dims)}" if axis_dims else ""
        yield ("x",), f"{x} has a single value, and an axis needs several{possible}"
    else:
        yield ("x",), format_unknown_name(x, "an axis or a variable of these results", [*axis_dims, *variables])


def _explain_unusable_variable(name: str, scenario: FigureScenario, variables: dict[str, Variable]) -> Iterator[str]:
    """Explain why a section `figure` cannot name a variable."""
    variable = scenario.variables.get(name)
    if variable is not None and {*variable.dims} & {*NETWORK_UNIT_DIMS}:
        yield f"{name} has a value per pair of units, but figures do not show single units. {_format_names(variables)}"
    elif variable is not None and name not in variables:
        yield f"{name} is not a number, so figures cannot show it. {_format_names(variables)}"
    elif name not in variables:
        yield format_unknown_name(name, "a variable of these results", variables)


def _explain_unusable_axis(name: str, scenario: FigureScenario, axis_dims: dict[str, str]) -> str:
    """Explain why an axis cannot distinguish curves in a section `figure`."""
    if name in scenario.axis_names() or name in get_drawable_coordinates(scenario):
        several = _format_names(axis_dims, "axes with several")
        return f"{name} has a single value, so nothing distinguishes its curves. {several}"
    return format_unknown_name(name, "an axis with several values", axis_dims)


def _format_names(names: Iterable[str], heading: str = "known") -> str:
    """Format names as one line with a heading."""
    return f"{heading.capitalize()}: {', '.join(names) or 'none'}."
