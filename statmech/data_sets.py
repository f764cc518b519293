"""Real data for learners: where each set lies in a local folder, what its columns are, and its number at OpenML.

The folder is given (`--data-dir`, or the environment variable STATMECH_DATA); where there is none, a set comes from
OpenML through scikit-learn, which keeps its own copy. No data are part of this package.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from statmech import files
from statmech.errors import ConfigError, ScenarioError, not_known

FOLDER = "STATMECH_DATA"
PAIR = re.compile(r"digits-(\d)-(\d)")
MISSING = "?"


class Data(NamedTuple):
    """Attributes X (m, columns), words or numbers; classes y (m,); the columns' names; a fold (m,) of each example
    where the set has folds of its own."""

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    folds: np.ndarray | None


@dataclass(frozen=True)
class Source:
    """A data set: its file, its columns there, its class's column, and what else must be known of it.

    `attributes` names the columns that are kept, `dropped` those left out, in the file's order; a set of sequences has
    them in one column, a letter an attribute.
    """

    title: str
    file: str
    columns: tuple[str, ...]  # of the file
    label: str
    dropped: tuple[str, ...] = ()
    sequence: str = ""  # the column that holds all attributes
    length: int = 0  # of the sequences
    fold: str = ""  # the column of the set's own folds
    folds: int = 0  # how many those are
    numeric: bool = False
    header: bool = False
    openml: int | None = None
    classes: tuple[str, ...] = ()  # only examples of these, if any are named
    note: str = ""  # what a reader of a number must know
    codons: bool = False  # whether each three letters of the sequences are a codon

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes that are learnt from."""
        if self.sequence:
            return tuple(f"p{i}" for i in range(1, self.length + 1))
        return tuple(name for name in self.columns if name not in (self.label, self.fold, *self.dropped))


def _named(prefix: str, number: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{i}" for i in range(1, number + 1))


VOTES = [
    "handicapped-infants",
    "water-project-cost-sharing",
    "adoption-of-the-budget-resolution",
    "physician-fee-freeze",
    "el-salvador-aid",
    "religious-groups-in-schools",
    "anti-satellite-test-ban",
    "aid-to-nicaraguan-contras",
    "mx-missile",
    "immigration",
    "synfuels-corporation-cutback",
    "education-spending",
    "superfund-right-to-sue",
    "crime",
    "duty-free-exports",
    "export-administration-act-south-africa",
]
MUSHROOM = [
    "class",
    "capshape",
    "capsurface",
    "capcolor",
    "bruises",
    "odor",
    "gillattachment",
    "gillspacing",
    "gillsize",
    "gillcolor",
    "stalkshape",
    "stalkroot",
    "stalksurfaceabovering",
    "stalksurfacebelowring",
    "stalkcolorabovering",
    "stalkcolorbelowring",
    "veiltype",
    "veilcolor",
    "ringnumber",
    "ringtype",
    "sporeprintcolor",
    "population",
    "habitat",
]
SOURCES: dict[str, Source] = {
    "votes": Source(
        "voting",
        "votes/house-votes-84.data",
        ("class", *VOTES),
        "class",
        dropped=("physician-fee-freeze",),
        openml=56,
        note="the paper's data: UCI 1984 votes without physician-fee-freeze",
    ),
    "promoters": Source(
        "promoters",
        "promoters/promoters.data",
        ("class", "name", "sequence"),
        "class",
        sequence="sequence",
        length=57,
        openml=164,
        note="a stand-in: the 106 examples of UCI, of which the paper's set was a superset",
    ),
    "coding": Source(
        "coding",
        "coding/ecoli_coding15.csv",
        ("fold", "gene", "frame", "seq", "label"),
        "label",
        sequence="seq",
        length=15,
        fold="fold",
        folds=4,
        header=True,
        note="a stand-in: windows of 15 bases of E. coli genes, made for this comparison, not the paper's files",
        codons=True,
    ),
    "splice": Source(
        "splice junctions",
        "splice/splice.data",
        ("class", "name", "sequence"),
        "class",
        sequence="sequence",
        length=60,
        openml=46,
    ),
    "kr-vs-kp": Source("chess endgames", "boolean/kr-vs-kp.data", (*_named("a", 36), "class"), "class", openml=3),
    "tic-tac-toe": Source(
        "tic-tac-toe", "boolean/tic-tac-toe.data", (*_named("square", 9), "class"), "class", openml=50
    ),
    "mushroom": Source("mushrooms", "boolean/agaricus-lepiota.csv", tuple(MUSHROOM), "class", header=True, openml=24),
    "digits": Source(
        "handwritten digits",
        "digits/mnist_5k.csv.gz",
        (*_named("pixel", 784), "class"),
        "class",
        numeric=True,
        openml=554,
        note="from a folder 5,000 examples of MNIST, from OpenML all 70,000",
    ),
}


MADE = {
    "clouds": Source("two Gaussian clouds", "", ("x1", "x2", "class"), "class", numeric=True, note="made on the spot"),
    "moons": Source("two half-moons", "", ("x1", "x2", "class"), "class", numeric=True, note="made on the spot"),
}


def source(name: str) -> Source:
    """The data set of a name; `digits-3-8` is a pair of the digits. Raises `ValueError` with the likely name."""
    if pair := PAIR.fullmatch(name):
        if len(set(pair.groups())) == 2:
            return replace(SOURCES["digits"], title=f"digits {pair[1]} and {pair[2]}", classes=pair.groups())
    elif name in SOURCES | MADE:
        return (SOURCES | MADE)[name]
    raise ValueError(not_known(name, "a data set", [*SOURCES, "digits-3-8 (any pair)", *MADE]))


def load(name: str) -> Data:
    """A data set from the folder, or from OpenML where no folder is given.

    Raises `ConfigError` where it cannot be had, `ScenarioError` where a file is not what it should be.
    """
    one = source(name)
    if name in MADE:
        return _made(name, one)
    folder = os.environ.get(FOLDER, "")
    if folder:
        return _cut(one, *_of_file(one, Path(folder) / one.file))
    if one.openml is None:
        raise ConfigError(f"data: {name} lies in no public place: give its folder, --data-dir DIR or {FOLDER}")
    return _cut(one, *_of_openml(name, one))


def kept(name: str) -> Data:
    """A data set, read once, and again when its file is another or has changed."""
    return _kept(name, version(name))


@cache
def _kept(name: str, version: tuple[object, ...]) -> Data:
    return load(name)


def version(name: str) -> tuple[object, ...]:
    """Where a data set lies, and what tells its file from another of that place."""
    folder = os.environ.get(FOLDER, "")
    return folder, *files.version(Path(folder) / source(name).file)


def digest(name: str) -> str:
    """The SHA-256 of what a data set holds: names, attributes, classes and folds, however they are written down."""
    return _digest(name, version(name))


@cache
def _digest(name: str, version: tuple[object, ...]) -> str:
    one = _kept(name, version)
    made = hashlib.sha256(repr((one.names, one.X.shape, one.folds is None)).encode())
    for part in (one.X, one.y, one.folds):
        if part is not None:
            words = part.dtype.kind in "OU"
            made.update("\x1f".join(map(str, part.ravel())).encode() if words else part.tobytes())
    return made.hexdigest()


def _made(name: str, one: Source, size: int = 200) -> Data:
    """Points of a plane, always the same."""
    from sklearn.datasets import make_blobs, make_moons

    if name == "moons":
        X, y = make_moons(size, noise=0.25, random_state=0)
    else:
        X, y = make_blobs(size, centers=[[-1.0, 0.0], [1.0, 1.0]], cluster_std=0.9, random_state=0)
    return Data(X, np.array(["-", "+"])[y], one.attributes, None)


def _of_file(one: Source, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            rows = [row for row in csv.reader(lines) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as failure:
        told = getattr(failure, "strerror", None) or "it is not text in columns"
        raise ConfigError(f"{path}: cannot be read: {told}. {FOLDER} or --data-dir names the folder of data") from None
    if one.header:
        names, rows = tuple(rows[0]), rows[1:]
        missing = [name for name in one.columns if name not in names]
        if missing:
            raise ScenarioError([(("data",), f"{path} has no column {', '.join(missing)}. It has: {', '.join(names)}")])
        keep = [names.index(name) for name in one.columns]
        rows = [[row[i] for i in keep] if len(row) == len(names) else row for row in rows]
    for number, row in enumerate(rows, 2 if one.header else 1):
        if len(row) != len(one.columns):
            told = f"{path}:{number}: has {len(row)} columns, and should have {len(one.columns)}"
            raise ScenarioError([(("data",), told)])
    if not rows:
        raise ScenarioError([(("data",), f"{path}: has no examples")])
    table = np.char.strip(np.array(rows))
    return _attributes(one, table, path), _column(one, table, one.label), _folds(one, table)


def _column(one: Source, table: np.ndarray, name: str) -> np.ndarray:
    column: np.ndarray = table[:, one.columns.index(name)]
    return column


def _folds(one: Source, table: np.ndarray) -> np.ndarray | None:
    return np.unique(_column(one, table, one.fold), return_inverse=True)[1] if one.fold else None


def _attributes(one: Source, table: np.ndarray, path: Path) -> np.ndarray:
    if one.sequence:
        sequences = _column(one, table, one.sequence)
        for number, sequence in enumerate(sequences, 1):
            if len(sequence) != one.length:
                told = f"{path}: example {number} has {len(sequence)} letters, and should have {one.length}"
                raise ScenarioError([(("data",), told)])
        return np.array([list(sequence.lower()) for sequence in sequences], object)
    return table[:, [one.columns.index(name) for name in one.attributes]].astype(object)


def _of_openml(name: str, one: Source) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of each of its tries; the message below is enough
            found = fetch_openml(data_id=one.openml, as_frame=True, parser="liac-arff")
    except Exception as failure:  # whatever a network does
        told = " ".join(str(failure).split()) or type(failure).__name__
        raise ConfigError(
            f"data: {name} is not to be had from OpenML ({told}). Give a folder of data: --data-dir DIR or {FOLDER}"
        ) from None
    frame = found.data.drop(columns=[column for column in one.dropped if column in found.data.columns])
    count = len(one.attributes)
    if frame.shape[1] < count:
        raise ScenarioError([(("data",), f"{name} of OpenML has {frame.shape[1]} columns, and should have {count}")])
    X = frame.iloc[:, -count:].astype(object)  # what stands before are names of examples
    return X.where(X.notna(), MISSING).to_numpy(), found.target.astype(str).to_numpy(), None


def _cut(one: Source, X: np.ndarray, y: np.ndarray, folds: np.ndarray | None) -> Data:
    """The examples of the classes asked for, as words or numbers."""
    if one.classes:
        kept = np.isin(y, one.classes)
        X, y, folds = X[kept], y[kept], folds[kept] if folds is not None else None
    if one.numeric:
        try:
            X = X.astype(float)
        except ValueError:
            raise ScenarioError([(("data",), f"{one.file}: is not a table of numbers: {_where(one, X)}")]) from None
        if not np.isfinite(X).all():
            raise ScenarioError([(("data",), f"{one.file}: holds a number that is none, nan or inf")])
    else:
        X = X.astype(str).astype(object)
    return Data(X, y.astype(str), one.attributes, folds)


def _where(one: Source, X: np.ndarray) -> str:
    """The first entry that is not a number: its place alone, for messages quote nothing of a file."""
    for number, row in enumerate(X, 1):
        for name, entry in zip(one.attributes, row, strict=True):
            try:
                float(entry)
            except (TypeError, ValueError):
                among = f" of the classes {', '.join(one.classes)}" if one.classes else ""
                return f"example {number}{among}, column {name}"
    return "an entry cannot be read"


def words(columns: np.ndarray) -> list[Sequence[str]]:
    """The words of each column of X (m, columns), without the missing: the domain of its attribute."""
    return [sorted({*map(str, column)} - {MISSING}) for column in columns.T]
