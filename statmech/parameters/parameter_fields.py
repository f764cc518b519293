r"""Parameters of rules, learners, classifiers and boundaries, with their types, bounds, meanings and symbols.

A parameter is a dataclass field made by `parameter`. The annotation gives its type: `float`, `int`, `bool`, or one of
several `choices` (`str` or `Literal`). A `ConfigKey` describes the parameter. Config messages, the JSON Schema, the
attributes of datasets, axis labels, tables and sliders are made from this description.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True)
... class Patient:
...     patience: int = parameter(3, "updates without progress", symbol="$P$", at_least=1)
...     watches: str = parameter("field", "quantity that has to grow", choices=("field", "stability"))
>>> get_parameters(Patient)["patience"].problem(2.5), get_parameters(Patient)["patience"].problem(0)
('must be a whole number, not 2.5', 'must be at least 1, not 0')
>>> get_parameters(Patient)["watches"].problem("fields")
'"fields" is not a value of watches. Did you mean "field"? Known: field, stability.'
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np

from statmech.errors import ScenarioError, format_unknown_name, quote_value
from statmech.parameters.schedules_and_controls import get_control_values

INTEGER_METADATA_KEY = "of whole numbers"  # metadata key of fields annotated `float` that take integers
TYPE_NOUNS = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}
JSON_SCHEMA_TYPES = {float: "number", int: "integer", bool: "boolean", str: "string"}


class BoundKind(NamedTuple):
    """A kind of bound: its name, sign, JSON Schema keyword, and the comparison that must hold."""

    words: str
    sign: str
    schema: str
    is_satisfied: Callable[[Any, Any], bool]

    @property
    def pydantic(self) -> str:
        """The name of the bound in pydantic: "gt", "ge", "lt" or "le"."""
        return self.is_satisfied.__name__


BOUND_KINDS = {
    "above": BoundKind("greater than", ">", "exclusiveMinimum", operator.gt),
    "at_least": BoundKind("at least", "≥", "minimum", operator.ge),
    "below": BoundKind("less than", "<", "exclusiveMaximum", operator.lt),
    "at_most": BoundKind("at most", "≤", "maximum", operator.le),
}


@dataclass(frozen=True)
class ConfigKey:
    """A key of a config: its name, meaning, type and possible values.

    `above` and `below` are open bounds, `at_least` and `at_most` are closed bounds. `choices` may be a mapping from
    each choice to its meaning.
    """

    name: str
    meaning: str = ""
    type: type = float  # float, int, bool or str
    default: Any = None
    symbol: str = ""  # mathtext, such as "$\\eta$"
    unit: str = "1"
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    choices: Collection[str] = ()
    noun: str = ""  # name of a choice in messages, such as "a stop rule"

    @property
    def whole(self) -> bool:
        """True if the values are integers."""
        return self.type is int

    @property
    def numeric(self) -> bool:
        """True if the values are numbers."""
        return self.type in (int, float)

    @property
    def label(self) -> str:
        """The label on axes and in legends: the symbol, or the name if there is no symbol."""
        return self.symbol or self.name

    @property
    def lower(self) -> float:
        """The lower bound, open or closed, by default minus infinity."""
        return next((bound for bound in (self.above, self.at_least) if bound is not None), -np.inf)

    @property
    def upper(self) -> float:
        """The upper bound, open or closed, by default infinity."""
        return next((bound for bound in (self.below, self.at_most) if bound is not None), np.inf)

    @cached_property  # read for each value of a sweep
    def bounds(self) -> tuple[tuple[BoundKind, float], ...]:
        """The bounds as pairs of kind and value, with the lower bound first."""
        limits = ((bound, getattr(self, name)) for name, bound in BOUND_KINDS.items())
        return tuple((bound, value) for bound, value in limits if value is not None and np.isfinite(value))

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of one value."""
        if self.choices:
            return {"enum": list(self.choices)}
        return {"type": JSON_SCHEMA_TYPES[self.type], **{bound.schema: value for bound, value in self.bounds}}

    def problem(self, value: Any) -> str | None:
        """Return the reason why a value is not valid for a parameter or another config key, or None.

        Parameters
        ----------
        value
            The value in a config.

        Returns
        -------
        str or None
        """
        if problem := self.find_type_problem(value):
            return problem
        for bound, limit in self.bounds:
            if not bound.is_satisfied(value, limit):
                return f"must be {bound.words} {_format_exact_number(limit)}, not {_format_exact_number(value)}"
        return None

    def find_type_problem(self, value: Any) -> str | None:
        """Return the reason why a value has the wrong type for a parameter or another config key, or None."""
        if type(value) is self.type and not self.choices:
            return None
        if self.choices:
            is_choice = isinstance(value, str) and value in self.choices
            return (
                None if is_choice else format_unknown_name(value, self.noun or f"a value of {self.name}", self.choices)
            )
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        is_right_type = number if self.numeric else isinstance(value, self.type)
        if not is_right_type or (self.whole and value != np.round(value)):
            return (
                f"must be {TYPE_NOUNS[self.type]}, not {_format_exact_number(value) if number else quote_value(value)}"
            )
        return None

    def read(self, value: Any) -> Any:
        """Convert a value to the key's type, because configs and datasets may hold integers as floats.

        >>> ConfigKey("k", type=int).read(2.0)
        2
        """
        return self.type(value)


def format_parameter_value(value: Any) -> str:
    """Format a parameter's value for labels and messages, such as `2` for 2.0.

    >>> format_parameter_value(2.0), format_parameter_value(1e-6), format_parameter_value("random")
    ('2', '1e-06', 'random')
    """
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _format_exact_number(number: float) -> str:
    """Format a number for messages, with all digits of an integer."""
    is_integer = abs(number) < 1e15 and number == round(number)
    return f"{round(number):,}" if is_integer else f"{number:g}"


def parameter(
    default: Any,
    doc: str,
    *,
    symbol: str = "",
    unit: str = "1",
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    choices: Collection[str] = (),
    noun: str = "",
    whole: bool = False,
) -> Any:
    r"""Make a dataclass field for a parameter, whose type is given by the annotation.

    Parameters
    ----------
    default
        Value if a config does not contain the parameter.
    doc
        Meaning in one line, for messages, tables and datasets.
    symbol
        Mathtext for axes and legends, as ``r"$\eta$"``.
    unit
        Unit; "1" for numbers without a unit.
    above, below
        Open bounds.
    at_least, at_most
        Closed bounds.
    choices
        The possible strings, or a mapping from each string to its meaning. `Literal[...]` is an alternative.
    noun
        Noun for a choice in messages, as "a stop rule".
    whole
        Makes a parameter annotated `float` an integer, for files of earlier versions. Write `int` instead.

    Returns
    -------
    dataclasses.Field
        The field, with this description as metadata.
    """
    bounds = {"above": above, "at_least": at_least, "below": below, "at_most": at_most}
    other_metadata = {"choices": choices, "noun": noun, INTEGER_METADATA_KEY: whole}
    return field(default=default, metadata={"meaning": doc, "symbol": symbol, "unit": unit, **bounds, **other_metadata})


def get_parameters(kind: Any) -> dict[str, ConfigKey]:
    """Return the parameters of a class or object by name, or raise `ScenarioError` if one is not valid.

    >>> from statmech.students.rules import Perceptron
    >>> [(key.name, key.symbol, key.default) for key in get_parameters(Perceptron).values()]
    [('eta', '$\\\\eta$', 1.0), ('margin', '$c$', 0.0)]
    """
    return dict(_get_class_parameters(_get_class(kind)))


def _get_class(kind: Any) -> type:
    """Return a class unchanged, or the class of an object."""
    return kind if isinstance(kind, type) else type(kind)


@cache  # called for each value of a sweep
def _get_class_parameters(cls: type) -> dict[str, ConfigKey]:
    """Return the parameters of a class by name, from its dataclass fields."""
    if any(isinstance(value, Field) for value in vars(cls).values()):
        raise ScenarioError(
            [((), f"the class {cls.__name__} has parameters: decorate it with @dataclass(frozen=True)")]
        )
    return {f.name: _config_key_from_field(cls, f) for f in fields(cls)} if is_dataclass(cls) else {}


def _config_key_from_field(cls: type, f: Field[Any]) -> ConfigKey:
    """Make the key for a dataclass field, or raise `ScenarioError` for an invalid type or default."""
    metadata = {name: value for name, value in f.metadata.items() if name in ConfigKey.__dataclass_fields__}
    annotation = _resolve_annotation(cls, f)
    if get_origin(annotation) is Literal:
        metadata["choices"] = metadata.get("choices") or get_args(annotation)
        annotation = str
    annotation = int if annotation is float and f.metadata.get(INTEGER_METADATA_KEY) else annotation
    if annotation not in TYPE_NOUNS or (annotation is str and not metadata.get("choices")):
        possible = "float, int, bool, Literal[...], or str with `choices`"
        raise ScenarioError([((), f"the parameter {f.name} of {cls.__name__} needs a type: {possible}")])
    key = ConfigKey(f.name, type=annotation, default=f.default, **metadata)
    if problem := key.find_type_problem(key.default):
        raise ScenarioError([((), f"the default of the parameter {f.name} of {cls.__name__}: {problem}")])
    return key


def _resolve_annotation(cls: type, f: Field[Any]) -> Any:
    """Return the annotation of a parameter's field, evaluated in the module of the class that defines the field."""
    owner = next((base for base in cls.__mro__ if f.name in vars(base)), cls)
    module = vars(sys.modules[owner.__module__]) if owner.__module__ in sys.modules else {}
    try:
        return get_type_hints(SimpleNamespace(__annotations__={f.name: f.type}), module)[f.name]
    except NameError:
        return None


@dataclass(frozen=True)
class RealParameterFamily:
    """Objects of a class that differ only in real parameters and therefore share a compiled program.

    A call with real parameters, which JAX may trace, makes an object of the family.
    """

    kind: type
    fixed: tuple[tuple[str, Any], ...]  # strings and integers: each value needs its own compiled program

    @property
    def real_parameter_names(self) -> list[str]:
        """The names of the real parameters."""
        return list(_split_real_parameter_names(self.kind)[0])

    def __call__(self, **reals: Any) -> Any:
        """Make the object with these real parameters."""
        return self.kind(**dict(self.fixed), **reals)


def get_real_parameter_family(thing: Any) -> RealParameterFamily:
    """Return the family of objects that differ from an object in their real parameters only.

    >>> from statmech.students.rules import Perceptron
    >>> get_real_parameter_family(Perceptron(margin=0.5)) == get_real_parameter_family(Perceptron(eta=2.0))
    True
    """
    kind: type = type(thing)
    return RealParameterFamily(
        kind, tuple([(name, getattr(thing, name)) for name in _split_real_parameter_names(kind)[1]])
    )


@cache
def _split_real_parameter_names(cls: type) -> tuple[list[str], list[str]]:
    """Split the names of a class's parameters into real parameters and all others."""
    real = {name: key.type is float for name, key in get_parameters(cls).items()}
    return [name for name in real if real[name]], [name for name in real if not real[name]]


def collect_parameters(kinds: Mapping[str, Any]) -> dict[str, ConfigKey]:
    """Collect the parameters of all registered classes, each as defined by the first class that has it."""
    return {name: key for kind in reversed([*kinds.values()]) for name, key in get_parameters(kind).items()}


def find_parameter_definitions(kinds: Mapping[str, Any], name: str) -> dict[str, ConfigKey]:
    """Return the definitions of a parameter in all registered classes, by class name.

    >>> from statmech.students.learners import LEARNERS
    >>> {learner: key.default for learner, key in find_parameter_definitions(LEARNERS, "sweeps").items()}
    {'gibbs': 4000, 'bayes': 20000}
    """
    definitions = {kind: get_parameters(cls).get(name) for kind, cls in kinds.items()}
    return {kind: key for kind, key in definitions.items() if key is not None}


def find_parameter_problem(noun: str, kinds: Mapping[str, Any], kind: str, name: str, value: Any) -> str | None:
    """Explain why a class cannot take a parameter's value, or return None.

    The default value is valid even for a class without the parameter.

    Parameters
    ----------
    noun
        Noun of the classes, such as "rule".
    kinds
        The registered classes by name.
    kind
        Name of the class.
    name, value
        The parameter and its value.
    """
    if (key := _get_class_parameters(_get_class(kinds[kind])).get(name)) is not None:
        return next(filter(None, map(key.problem, get_control_values(value))), None)
    having = find_parameter_definitions(kinds, name)
    if value == next(iter(having.values())).default:
        return None
    return f'the {noun} "{kind}" has no {name}. It is a parameter of: {", ".join(having)}.'
