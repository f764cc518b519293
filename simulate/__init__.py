"""The simulation of statmech: students learn example by example at finite N."""

import typing

from simulate.run import run as run

if typing.TYPE_CHECKING:
    from simulate.classification.estimators.linear_classifiers import margin as margin


def __getattr__(name: str) -> typing.Any:
    """Import `margin` on first use, because importing scikit-learn takes a second."""
    if name != "margin":
        raise AttributeError(f"module 'simulate' has no attribute {name!r}")
    from simulate.classification.estimators.linear_classifiers import margin

    return margin
