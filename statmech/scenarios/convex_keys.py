"""Keys that scenarios of convex losses and of inference share: the teacher, its noise, alpha and N."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Any

from pydantic import Field

from statmech.convex.teachers import TEACHERS, Teacher
from statmech.errors import Problem
from statmech.scenarios.axes import axis_of, points
from statmech.scenarios.keys import Number, one_of

MAX_EXAMPLES = 10**8  # P = alpha N beyond it is a typing error
AlphaAxis = axis_of(Annotated[Number, Field(gt=0)], {"type": "number", "exclusiveMinimum": 0})
GainAxis = axis_of(Annotated[Number, Field(ge=0)], {"type": "number", "minimum": 0})
ShareAxis = axis_of(Annotated[Number, Field(gt=0, le=1)], {"type": "number", "exclusiveMinimum": 0, "maximum": 1})
TeacherAxis = one_of(TEACHERS, "a teacher")
OF_TEACHERS = ("flip", "noise", "gain")  # keys that some teachers have


def teacher_of(values: dict[str, Any]) -> Teacher:
    """The teacher at a point of a grid, with those of the keys that it has."""
    kind = TEACHERS[values["teacher"]]
    return kind(**{field.name: values[field.name] for field in fields(kind) if field.name in OF_TEACHERS})


def teacher_problems(scenario: Any) -> Iterator[Problem]:
    """Keys that no teacher has, and teachers whose outputs say nothing about them."""
    names = points(scenario.teacher)
    for key in OF_TEACHERS:
        default = type(scenario).model_fields[key].default
        having = [name for name, kind in TEACHERS.items() if key in {field.name for field in fields(kind)}]
        if getattr(scenario, key) != default and not set(having) & set(names):
            of = " and ".join(having)
            yield (key,), f"belongs to teachers {of}, and the teacher is {' and '.join(names)}"
    for values, _ in scenario.grid():
        if why := teacher_of(values).uninformative:
            key = why.split(" ")[0]
            yield (key,), f"at {why} the labels say nothing about the teacher: nothing can be learnt"
            return


def examples_problems(scenario: Any) -> Iterator[Problem]:
    """Numbers of examples P = alpha N below 1 or beyond counting."""
    for alpha, N in scenario.pairs("alpha", "N"):
        if round(alpha * N) < 1:
            yield ("alpha",), f"alpha = {alpha:g} at N = {N} leaves no example: P = alpha N is below 1"
            return
        if alpha * N > MAX_EXAMPLES:
            yield ("alpha",), f"{alpha * N:g} examples are more than {MAX_EXAMPLES:,}"
            return
