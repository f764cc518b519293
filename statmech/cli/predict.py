"""The command that predicts the learning curve of a table of data: statmech predict."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statmech.cli.options import path_of
from statmech.cli.terminal import print
from statmech.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

BEST = "best"
PLACES = 60  # of the line in the picture


def predict(
    table: Annotated[str, typer.Argument(metavar="TABLE.csv", help="Rows of numbers, with or without names.")],
    target: Annotated[
        str,
        typer.Option(
            "--target", metavar="COLUMN", help="Name or number (from 0) of the column to predict; -1 is the last."
        ),
    ] = "-1",
    loss: Annotated[str, typer.Option("--loss", metavar="LOSS", help="Loss that is minimised.")] = "logistic",
    lam: Annotated[str, typer.Option("--lam", metavar="NUMBER|best", help="Strength of the penalty.")] = BEST,
    examples: Annotated[
        str | None,
        typer.Option(
            "--examples", metavar="P,P,...", help="Numbers of examples to predict at.", show_default="n/16 to 16 n"
        ),
    ] = None,
    check: Annotated[
        int, typer.Option("--check", min=0, metavar="SETS", help="Also fit to this many random sets of rows.")
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", parser=path_of, metavar="FILE", help="Picture to write.", show_default="TABLE-curve.png"),
    ] = None,
) -> None:
    """Predict the error of a linear learner on fresh rows of a table at any number of examples, without fitting.

    The learner has no intercept.

    Examples:

    - `statmech predict table.csv --target label`
    - `statmech predict table.csv --target 0 --loss square --lam 0.1 --examples 100,1000 --check 20`
    """
    from figures.style import FORMATS, save
    from figures.table_curve import draw
    from statmech.labelled_table import read
    from statmech.learning_curve import curve_of, described, prepared

    path = out or Path(f"{Path(table).stem}-curve.png")
    if path.suffix[1:] not in FORMATS:
        raise ConfigError(f"{path}: a picture ends in .{', .'.join(FORMATS)}")
    rows = read(table, target)
    predicted = partial(curve_of, prepared(rows.X, rows.y, loss, rows.labels), lam=_strength(lam))
    curve = predicted(P=_numbers(examples), check=check)
    [written] = save(draw(curve, predicted(P=_between(curve.P.values))), path.with_suffix(""), [path.suffix[1:]])
    print(f"{described(curve)}\nwrote {written}")


def _between(P: np.ndarray) -> list[int]:
    """Numbers of examples from the least to the most; around it, if there is one."""
    import numpy as np

    ends = (P[0], P[-1]) if len(P) > 1 else (max(P[0] // 2, 2), 2 * P[0])
    numbers: list[int] = np.unique(np.rint(np.geomspace(*ends, PLACES)).astype(int)).tolist()
    return numbers


def _strength(given: str) -> float | str:
    if given == BEST:
        return BEST
    try:
        return float(given)
    except ValueError:
        raise ConfigError(f"--lam must be a number above 0, or {BEST}, not {given}") from None


def _numbers(given: str | None) -> list[int] | None:
    if given is None:
        return None
    try:
        return [int(part) for part in given.split(",")]
    except ValueError:
        raise ConfigError(f"--examples must be whole numbers that commas separate, not {given}") from None
