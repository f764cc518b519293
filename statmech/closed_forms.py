"""Reset of closed forms that a subclass must not inherit if it overrides their function."""

from __future__ import annotations


def reset_inherited_attributes(cls: type, function_name: str, attribute_names: tuple[str, ...], base: type) -> None:
    """Reset attributes that describe a function if a subclass overrides the function.

    >>> class Base:
    ...     kinks = ()
    ...     def __init_subclass__(cls):
    ...         reset_inherited_attributes(cls, "g", ("kinks",), Base)
    ...     def g(self, x): ...
    >>> class Step(Base):
    ...     kinks = (0.0,)
    ...     def g(self, x): ...
    >>> class Smooth(Step):
    ...     def g(self, x): ...
    >>> Step.kinks, Smooth.kinks
    ((0.0,), ())
    """

    def find_depth(name: str) -> int:
        return next(depth for depth, parent in enumerate(cls.__mro__) if name in vars(parent))

    for name in attribute_names:
        if find_depth(name) > find_depth(function_name):
            setattr(cls, name, vars(base)[name])
