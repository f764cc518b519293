"""The section `figure` of a config: the variables, x axis and series of a figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_serializer,
)

from statmech.errors import ConfigError, Problem, ScenarioError, format_unknown_name
from statmech.keys.error_messages import explain_problems
from statmech.keys.sweep_grid import PydanticTypeOverride, ensure_tuple
from statmech.keys.variables import DIMS_AVERAGED_IN_FIGURES, DIMS_HIDDEN_IN_FIGURES, NETWORK_UNIT_DIMS, Variable
from statmech.numerics.formulas import find_formula_names, find_formula_selections

_NAME_OR_LIST_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_NAMES_OR_LABELS_SCHEMA = {
    "anyOf": [*_NAME_OR_LIST_SCHEMA["anyOf"], {"type": "object", "additionalProperties": {"type": "string"}}]
}
_SINGLE_NAME_CONVERTER = BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)
NameTuple = Annotated[
    Any, PydanticTypeOverride(Annotated[tuple[str, ...], _SINGLE_NAME_CONVERTER, WithJsonSchema(_NAME_OR_LIST_SCHEMA)])
]
NamesOrLabels = Annotated[  # a mapping from names to labels draws all variables in one panel
    Any,
    PydanticTypeOverride(
        Annotated[
            Annotated[tuple[str, ...], Tag("value")] | Annotated[dict[str, str], Tag("given")],
            Discriminator(lambda given: "given" if isinstance(given, dict) else "value"),
            _SINGLE_NAME_CONVERTER,
            WithJsonSchema(_NAMES_OR_LABELS_SCHEMA),
        ]
    ),
]
NumberOrFormula = Annotated[
    Annotated[float, Tag("value")] | Annotated[str, Tag("word")],
    Discriminator(lambda given: "word" if isinstance(given, str) else "value"),
]
SelectedValues = Annotated[
    Annotated[float, Tag("value")] | Annotated[str, Tag("word")] | Annotated[tuple[float | str, ...], Tag("list")],
    Discriminator(
        lambda given: "word" if isinstance(given, str) else "list" if isinstance(given, list | tuple) else "value"
    ),
]
OPTION_KEYS = ("x", "y", "series", "split", "over", "points", "fit")  # keys with an option of the command `figure`
LogAxes = Literal["", "x", "y", "xy", "none"]
LineDashes = Literal["dotted", "dashed", "solid"]


class FigureScenario(Protocol):
    """The members of a scenario that decide which figures its results allow."""

    def axis_values(self) -> dict[str, Any]: ...
    def axis_names(self) -> list[str]: ...
    def list_keys(self) -> Any: ...
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


class FigurePart(BaseModel):
    """A part of the section `figure`, which is serialised without the keys that are not set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_serializer(mode="wrap")
    def _dump_given_keys(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serialise only the keys that are set, and a single name as a string."""
        dumped: dict[str, Any] = dump(self)
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        given_keys = {name: value for name, value in dumped.items() if value not in (None, [], (), {}, defaults[name])}
        return {name: value[0] if _is_single_name(value) else value for name, value in given_keys.items()}

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        return ((name, value) for name, value in super().__repr_args__() if value not in (None, (), {}, "", False))


def _is_single_name(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 1 and isinstance(value[0], str)


class GuideLine(FigurePart):
    """A line that helps to read a panel: at a value of x or of y, or along the values of a variable.

    A guide whose value depends on the colour axis has one line for each curve, in its colour.
    """

    x: NumberOrFormula | None = Field(default=None, description="number or formula of a vertical line")
    y: NumberOrFormula | None = Field(default=None, description="number or formula along which a line is drawn")
    label: str = Field(default="", description="entry in the legend")
    text: str = Field(default="", description="text beside the line")
    line: LineDashes = Field(default="dotted", description="dashes of the line")
    runs: bool = Field(default=False, description="whether the runs' means of the formula are drawn as crosses, too")


class MarkedPoint(FigurePart):
    """A marked point of each curve, such as its minimum."""

    x: NumberOrFormula = Field(description="number or formula for the position along x")
    y: NumberOrFormula | None = Field(
        default=None, description="number or formula for the height, by default on the line"
    )
    label: str = Field(default="", description="entry in the legend")
    marker: Literal["star", "tick"] = Field(default="star", description="shape of the mark")


class DerivedVariable(FigurePart):
    """A variable computed from others by a formula, with its symbol."""

    formula: str = Field(description="formula of variables, axes, numbers and theory.NAME")
    symbol: str = Field(default="", description="label of its axis, the name by default")


class PanelContent(FigurePart):
    """Keys that a single panel and the whole figure have."""

    x: str | None = Field(default=None, description="axis, or variable, along the horizontal axis")
    y: NamesOrLabels = Field(default=(), description="variables, a panel each, or labels of variables in one panel")
    series: NameTuple = Field(default=(), description="axes that colours and, of a second one, markers distinguish")
    split: NameTuple = Field(default=(), description="axes whose values have panels")
    at: dict[str, SelectedValues] = Field(  # style: ok
        default_factory=dict, description="values of axes that the figure shows alone, or first or last"
    )
    label: str = Field(default="", description="label of the vertical axis, the symbol by default")
    log: LogAxes = Field(default="", description="logarithmic axes; by default those whose values span decades")
    limits: dict[Literal["x", "y"], tuple[float | None, float | None]] = Field(
        default_factory=dict, description="ends of an axis, such as {y: [0, 1]}; null leaves an end free"
    )
    nested: bool = Field(default=False, description="whether markers differ in size, because points overlap")
    join: bool = Field(default=False, description="whether thin grey lines join the points of each curve")
    single_runs: bool = Field(default=False, description="whether single runs are drawn instead of their means")
    guides: tuple[GuideLine, ...] = Field(default=(), description="lines that help to read the panel")
    marks: tuple[MarkedPoint, ...] = Field(default=(), description="marked points of the curves")


class Panel(PanelContent):
    """One panel of a figure, with the keys of the whole figure by default."""

    title: str = Field(default="", description="title of the panel")


class Composition(PanelContent):
    """The section `figure` of a config: what a figure shows, and how.

    By default, a figure shows results, without details or diagnostics, against the usual x axis of the kind of
    scenario.

    >>> Composition(y="eps_g", x="alpha", series="loss")
    Composition(x='alpha', y=('eps_g',), series=('loss',), theory=True)
    """

    name: str = Field(default="", description="name of the files of the figure, without suffix")
    title: str = Field(default="", description="one line on what the figure shows, for lists of figures")
    question: str = Field(default="", description="question that the config answers")
    caption: str = Field(default="", description="first sentences of the caption, by default the variables and axes")
    drawn_by: str = Field(default="", description="published figure whose own code draws these results")
    panels: tuple[Panel, ...] = Field(default=(), description="panels; by default one for each variable")
    over: str | None = Field(default=None, description="variable by which y is divided")
    derive: dict[str, DerivedVariable] = Field(
        default_factory=dict, description="variables computed by formulas, by name"
    )
    rename: dict[str, str] = Field(
        default_factory=dict, description="other texts of titles, axes and legend entries, by the text"
    )
    share: Literal["", "x", "y", "xy"] = Field(default="", description="axes with common limits in all panels")
    columns: Annotated[int, Field(ge=1)] | None = Field(default=None, description="largest number of panels in a row")
    note: str = Field(default="", description="note above the legend")
    width: Literal["page", "column", "wide column"] | None = Field(default=None, description="width of the figure")
    points: str | None = Field(
        default=None, description="CSV file of further points, with columns x, y and, if it is known, error"
    )
    theory: bool = Field(default=True, description="whether lines of theory are drawn")
    fit: bool = Field(default=False, description="whether exponents are fitted, on logarithmic axes")

    @property
    def drawn_by_name(self) -> str:
        """Name of the published figure in `drawn_by`, without its folder and file.

        >>> Composition(drawn_by="published.plateaus.escape").drawn_by_name
        'escape'
        """
        return self.drawn_by.rpartition(".")[2]

    @property
    def file_name(self) -> str:
        """File name of the figure without its suffix.

        >>> Composition(y="eps_g", over="R_bayes", x="alpha", series="loss").file_name, Composition().file_name
        ('eps_g_over_R_bayes_against_alpha_by_loss', 'overlay')
        """
        if self.name:
            return self.name
        parts = {
            "": self.variable_names,
            "over": (self.over,),
            "against": (self.x,),
            "by": (*self.series, *self.split),
            "with": (self.points and PurePath(self.points).stem, "fit" if self.fit else None),
        }
        given_names = {prefix: [name for name in names if name] for prefix, names in parts.items()}
        name_parts = [part for prefix, names in given_names.items() if names for part in (prefix, *names)]
        return "_".join(prefix for prefix in name_parts if prefix) or "overlay"

    @property
    def variable_names(self) -> tuple[str, ...]:
        """The variables of all panels, without repetition."""
        return tuple(dict.fromkeys(name for content in (self, *self.panels) for name in content.y))

    def list_contents(self) -> list[Composition]:
        """Return a composition for each of the panels, with the keys of the figure that the panel does not have.

        >>> [content.y for content in Composition(x="t", panels=[{"y": "R"}, {"y": "q"}]).list_contents()]
        [('R',), ('q',)]
        """
        contents = []
        for panel in self.panels:
            panel_values = {name: getattr(panel, name) for name in panel.model_fields_set - {"title"}}
            titles = {"": panel.title} if panel.title else {}
            contents.append(self.model_copy(update={"panels": (), "rename": {**self.rename, **titles}, **panel_values}))
        return contents or [self]

    def find_derived_variables(self) -> dict[str, Variable]:
        """Return the variables that this figure computes by formulas."""
        return {name: Variable((), name, item.symbol or name) for name, item in self.derive.items()}

    def problems(self, scenario: FigureScenario) -> Iterator[Problem]:
        """Find the keys of this figure that the results of a scenario do not support, with reasons.

        Parameters
        ----------
        scenario
            A scenario of any kind.
        """
        axis_dims, variables = find_drawable_axes(scenario), find_drawable_variables(scenario)
        variables |= self.find_derived_variables()
        names = find_formula_variables(scenario) | {*self.derive}
        for name, item in self.derive.items():
            yield from _find_formula_problems(("derive", name, "formula"), item.formula, scenario, names)
        for location, content in (((), self), *((("panels", index), panel) for index, panel in enumerate(self.panels))):
            yield from _find_content_problems(location, content, scenario, axis_dims, variables, names)
        yield from (
            (("over",), sentence)
            for sentence in (_explain_unusable_variable(self.over, scenario, variables) if self.over else ())
        )
        series_dims = {axis_dims.get(name, name) for name in self.series}
        for key in ("series", "split", "at"):
            for name in getattr(self, key):
                if name not in axis_dims and not _is_single_axis(name, scenario):
                    yield (key,), format_unknown_name(name, "an axis of these results", axis_dims)
                elif self.x in axis_dims and axis_dims.get(name) == axis_dims[self.x]:
                    yield (key,), f"{name} lies along x"
                elif key == "split" and axis_dims.get(name, name) in series_dims:
                    yield (key,), f"{name} is among the series"
        if self.points is not None and len(self.variable_names) != 1:
            yield ("points",), "the points are values of one variable, which y names"


def _find_content_problems(
    location: tuple[str | int, ...],
    content: PanelContent,
    scenario: FigureScenario,
    axis_dims: dict[str, str],
    variables: dict[str, Variable],
    formula_names: set[str],
) -> Iterator[Problem]:
    """Find the axes, variables and formulas of a panel, or of a whole figure, that a scenario does not have."""
    for x_location, sentence in _find_x_axis_problems(content.x, scenario, axis_dims, variables):
        yield (*location, *x_location), sentence
    for name in content.y:
        yield from (((*location, "y"), sentence) for sentence in _explain_unusable_variable(name, scenario, variables))
    for index, guide in enumerate(content.guides):
        location_of_formula = (*location, "guides", index)
        if (guide.x is None) == (guide.y is None):
            yield location_of_formula, "a guide has either x, for a vertical line, or y"
        for key in ("x", "y"):
            yield from _find_formula_problems((*location_of_formula, key), getattr(guide, key), scenario, formula_names)
    for index, mark in enumerate(content.marks):
        for name in ("x", "y"):
            location_of_formula = (*location, "marks", index, name)
            yield from _find_formula_problems(location_of_formula, getattr(mark, name), scenario, formula_names)


def _find_formula_problems(
    location: tuple[str | int, ...], formula: float | str | None, scenario: FigureScenario, names: set[str]
) -> Iterator[Problem]:
    """Find the reason why a formula cannot be evaluated: its syntax, or an unknown name or value."""
    if not isinstance(formula, str):
        return
    try:
        own_names, theory_names = find_formula_names(formula)
    except ConfigError as failure:
        yield location, str(failure)
        return
    for name in (*own_names, *theory_names):
        if name not in names:
            yield location, format_unknown_name(name, "a variable or an axis of these results", names)
    possible_values = {name: ("first", "last", *ensure_tuple(value)) for name, value in scenario.axis_values().items()}
    for name, numbers in get_drawable_coordinates(scenario).items():
        possible_values[name] = ("first", "last", *numbers.tolist())
    for axis, value in find_formula_selections(formula):
        if axis not in possible_values:
            yield location, format_unknown_name(axis, "an axis of these results", possible_values)
        elif value not in possible_values[axis]:
            yield location, f"{axis} has no value {value}. Possible: {', '.join(map(str, possible_values[axis]))}."


def find_formula_variables(scenario: FigureScenario) -> set[str]:
    """Return the names that a formula of a figure may contain: variables, axes and numeric keys."""
    coordinates = {*scenario.axis_names(), *scenario.dimensions, *scenario.recorded_coordinates}
    return {*scenario.variables, *scenario.theory_only_variables, *coordinates}


def _is_single_axis(name: str, scenario: FigureScenario) -> bool:
    """Return True if a name is a key or a recorded coordinate that has a single value here."""
    return name in {*scenario.list_keys(), *scenario.axis_names(), *get_drawable_coordinates(scenario)}


_FIGURE_PARTS: dict[str, type[FigurePart]] = {
    "figure": Composition,
    "figure.panels": Panel,
    "figure.derive": DerivedVariable,
    **{f"figure.{where}guides": GuideLine for where in ("", "panels.")},
    **{f"figure.{where}marks": MarkedPoint for where in ("", "panels.")},
}
FIGURE_PART_KEYS = {name: [*part.model_fields] for name, part in _FIGURE_PARTS.items()}  # keys of section and parts
_SECTION_ADAPTER = TypeAdapter(dict[str, Composition])
FigureKeyValue = str | Composition | None  # possible values of the config key `figure`


def read_figure_composition(section: dict[str, Any]) -> Composition:
    """Read the section `figure` of a config, or raise `ConfigError` with its invalid keys.

    >>> read_figure_composition({"y": "eps_g", "marks": [{"x": 1, "lable": "minimum"}]})
    Traceback (most recent call last):
    statmech.errors.ConfigError: figure.marks[0].lable: "lable" is not a key of marks. Did you mean "label"? Known: \
x, y, label, marker.
    """
    try:
        return _SECTION_ADAPTER.validate_python({"figure": section})["figure"]
    except ValidationError as failure:
        problems = explain_problems(failure, [], FIGURE_PART_KEYS)
        raise ConfigError("\n".join(ScenarioError(problems).lines())) from None


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
    """Find the reason why a key or variable cannot be the x axis."""
    if x is None or x in axis_dims or x in variables or _is_single_axis(x, scenario):
        return
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


def _format_names(names: Iterable[str]) -> str:
    """Format the known names as one line."""
    return f"Known: {', '.join(names) or 'none'}."
