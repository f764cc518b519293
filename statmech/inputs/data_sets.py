"""Real data for learners, read from a local folder or downloaded from OpenML.

The folder is set by `--data-dir` or the environment variable STATMECH_DATA. Without a folder, scikit-learn downloads a
data set from OpenML and caches it. Some data sets are generated, or bundled with scikit-learn. This package contains
only their descriptions (`data_sets.toml`).
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from statmech.errors import (
    MAX_QUOTED_TEXT_LENGTH,
    ConfigError,
    ScenarioError,
    format_option,
    format_unknown_name,
    join_alternatives,
    shorten_text,
)
from statmech.runtime import files
from statmech.runtime.files import read_csv_rows
from statmech.runtime.installed_packages import require_modules

DATA_FOLDER_ENV_VARIABLE = "STATMECH_DATA"
DIGIT_PAIR_PATTERN = re.compile(r"digits-(\d)-(\d)")
NUMBERED_COLUMNS_PATTERN = re.compile(r"(\D+)(\d+)\.\.(\d+)")
MISSING_VALUE_MARK = "?"
MAX_DATA_FILE_BYTES = 2**26  # compressed or not; in memory, the entries take 16 times as much


class DataSetContent(NamedTuple):
    """The examples of a data set.

    X (m, columns) are attributes, text or numbers. y (m,) are classes or a numerical target. `names` are the names of
    the columns, and `folds` (m,) the fold of each example, or None if the data set does not define folds.
    """

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    folds: np.ndarray | None


@dataclass(frozen=True)
class DataSource:
    """The description of a data set, an entry of `data_sets.toml`.

    Attributes are all columns but the label, the fold and the columns `dropped`, in the order of the file. A set of
    sequences has all attributes in one column, one letter per attribute.

    >>> (
    ...     find_data_source("coding").attributes[:2], find_data_source("promoters").attributes[49:51],
    ...     find_data_source("promoters").title_with_stand_in_mark
    ... )
    (('p1', 'p2'), ('-1', '+1'), 'promoters (stand-in)')
    """

    title: str
    examples: int
    columns: tuple[str, ...]  # names of the file's columns
    label: str  # name of the class column
    file: str = ""  # name in the data folder, empty for data that are generated or bundled with scikit-learn
    dropped: tuple[str, ...] = ()
    sequence: str = ""  # name of the column with the sequence, one attribute per letter
    length: int = 0  # letters per sequence
    start: int | None = None  # position of the first letter relative to a site; position 0 does not exist
    regions: dict[str, list[str]] = field(default_factory=dict)  # known parts of a sequence: first and last positions
    fold: str = ""  # name of the column with predefined folds
    folds: int = 0  # number of predefined folds
    numeric: bool = False
    header: bool = False  # the first row names the columns
    openml: int | None = None  # OpenML's id of the data set
    classes: tuple[str, ...] = ()  # classes to use, all if empty
    meanings: dict[str, str] = field(default_factory=dict)  # readable names of the file's classes
    note: str = ""  # differences from the paper's data
    stand_in: bool = False  # True: the data are a substitute for the paper's data
    codons: bool = False  # True: every three letters of a sequence form a codon

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        if self.sequence:
            return tuple(map(self._format_letter_position, range(self.length)))
        return tuple(name for name in self.columns if name not in (self.label, self.fold, *self.dropped))

    @property
    def title_with_stand_in_mark(self) -> str:
        """The title, marked as "stand-in" if the data are a substitute for the paper's data."""
        return f"{self.title} (stand-in)" if self.stand_in else self.title

    def _format_letter_position(self, letter: int) -> str:
        """Name the attribute of a data set's letter by its position in the sequence or relative to a site."""
        if self.start is None:
            return f"p{letter + 1}"
        position = self.start + letter
        return f"{position + 1 if position >= 0 else position:+d}"


def _read_data_sources(path: Path) -> dict[str, DataSource]:
    """Read the descriptions of data sets from a TOML file."""
    tables: dict[str, dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: DataSource(**{key: _convert_toml_value(value) for key, value in table.items()})
        for name, table in tables.items()
    }


def _convert_toml_value(value: Any) -> Any:
    return _expand_column_names(value) if isinstance(value, list) else value


def _expand_column_names(patterns: list[str]) -> tuple[str, ...]:
    """Return a data set's column names, expanding numbered ranges such as `a1..3`.

    >>> _expand_column_names(["a1..3", "class"])
    ('a1', 'a2', 'a3', 'class')
    """
    names: list[str] = []
    for pattern in patterns:
        match = NUMBERED_COLUMNS_PATTERN.fullmatch(pattern)
        names += [f"{match[1]}{i}" for i in range(int(match[2]), int(match[3]) + 1)] if match else [pattern]
    return tuple(names)


DATA_SOURCES = _read_data_sources(Path(__file__).with_suffix(".toml"))
FILE_DATA_SOURCES = {name: data_source for name, data_source in DATA_SOURCES.items() if data_source.file}
# generated, or bundled with scikit-learn
GENERATED_DATA_SOURCES = {name: data_source for name, data_source in DATA_SOURCES.items() if not data_source.file}


def find_data_source(name: str) -> DataSource:
    """Return the description of a data set, or of a pair of digits such as `digits-3-8`.

    Raises `ValueError` for an unknown name. The message suggests the most similar name.
    """
    if pair := DIGIT_PAIR_PATTERN.fullmatch(name):
        if len(set(pair.groups())) == 2:
            digits = FILE_DATA_SOURCES["digits"]
            title, examples = f"digits {pair[1]} and {pair[2]}", digits.examples // 5
            return replace(digits, title=title, examples=examples, classes=pair.groups())
    elif name in DATA_SOURCES:
        return DATA_SOURCES[name]
    raise ValueError(
        format_unknown_name(name, "a data set", [*FILE_DATA_SOURCES, "digits-3-8 (any pair)", *GENERATED_DATA_SOURCES])
    )


def load_data_set(name: str) -> DataSetContent:
    """Load a data set from the data folder, or from OpenML if no folder is set.

    Raises `ConfigError` if the data set is not available, `ScenarioError` if a file lacks the described columns.
    """
    data_source = find_data_source(name)
    if name in GENERATED_DATA_SOURCES:
        return _generate_data(name, data_source)
    folder = os.environ.get(DATA_FOLDER_ENV_VARIABLE, "")
    if folder:
        return _select_classes(data_source, *_read_data_file(data_source, Path(folder) / data_source.file))
    if data_source.openml is None:
        raise ConfigError(
            f"data: {name} is not publicly available: set the folder of data, {_format_data_folder_option()}"
        )
    return _select_classes(data_source, *_download_data_set(name, data_source))


def get_cached_data_set(name: str) -> DataSetContent:
    """Return a data set, cached until its file changes."""
    return _load_data_set_version(name, get_data_file_version(name))


@cache
def _load_data_set_version(name: str, version: tuple[object, ...]) -> DataSetContent:
    return load_data_set(name)


def get_data_file_version(name: str) -> tuple[object, ...]:
    """Return the data folder and the version of a data set's file (`files.get_file_signature`)."""
    folder = os.environ.get(DATA_FOLDER_ENV_VARIABLE, "")
    return folder, *files.get_file_signature(Path(folder) / find_data_source(name).file)


def get_data_digest(name: str) -> str:
    """Return the SHA-256 of a data set's content, independent of the file format."""
    return _compute_data_digest(name, get_data_file_version(name))


@cache
def _compute_data_digest(name: str, version: tuple[object, ...]) -> str:
    data = _load_data_set_version(name, version)
    digest = hashlib.sha256(repr((data.names, data.X.shape, data.folds is None)).encode())
    for array in (data.X, data.y, data.folds):
        if array is not None:
            is_text = array.dtype.kind in "OU"
            digest.update("\x1f".join(map(str, array.ravel())).encode() if is_text else array.tobytes())
    return digest.hexdigest()


def _generate_data(name: str, data_source: DataSource) -> DataSetContent:
    """Generate a data set with a fixed random state, or load it from scikit-learn."""
    require_modules(f"the data set {name}", "estimators", "sklearn")
    from sklearn.datasets import make_blobs, make_moons

    def make_clouds(size: int, deviation: float) -> Any:
        return make_blobs(size, centers=[[-1.0, 0.0], [1.0, 1.0]], cluster_std=deviation, random_state=0)

    makers: dict[str, Callable[[], Any]] = {
        "separable": lambda: make_clouds(40, 0.35),
        "clouds": lambda: make_clouds(200, 0.9),
        "moons": lambda: make_moons(200, noise=0.25, random_state=0),
        "clouds-60": lambda: _generate_two_clusters(data_source.examples, len(data_source.attributes)),
        "noisy": lambda: _generate_noisy_majority(len(data_source.attributes)),
        "breast-cancer": _load_scaled_breast_cancer,
        "digits-linear": _make_digits_with_linear_target,
    }
    X, y = makers[name]()
    if y.dtype == float:
        return DataSetContent(X, y, data_source.attributes, None)
    classes = [data_source.meanings.get(sign, sign) for sign in "-+"]
    return DataSetContent(X, np.array(classes)[y], data_source.attributes, None)


def _generate_two_clusters(size: int, attributes: int, distance: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Generate two clusters of normal attributes, with a distance in standard deviations."""
    rng = np.random.default_rng(0)
    y, away = np.arange(size) % 2, rng.standard_normal(attributes)
    centre = distance / 2 * away / np.linalg.norm(away)
    return rng.standard_normal((size, attributes)) + np.outer(2 * y - 1, centre), y


def _generate_noisy_majority(attributes: int, size: int = 20_000, flip: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Generate random attributes of -1 or 1, with the majority of the first three as the class.

    A fraction `flip` of the classes is flipped.
    """
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (size, attributes))
    return X, ((X[:, :3].sum(axis=1) > 0) ^ (rng.random(size) < flip)).astype(int)


def _load_scaled_breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    """Load scikit-learn's breast-cancer measurements, each scaled to a standard deviation of 1."""
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return X / X.std(axis=0), y


def _make_digits_with_linear_target() -> tuple[np.ndarray, np.ndarray]:
    """Load scikit-learn's digits with a random linear function of the pixels as target, scaled to variance 1."""
    from sklearn.datasets import load_digits

    X, _ = load_digits(return_X_y=True)
    target = X @ np.random.default_rng(0).standard_normal(X.shape[1])
    return X, target / target.std()


def _read_data_file(data_source: DataSource, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    try:
        rows = list(read_csv_rows(path, MAX_DATA_FILE_BYTES))
    except OSError as failure:
        problem = f"{path}: cannot be read: {failure.strerror}. Set the folder of data: {_format_data_folder_option()}"
        raise ConfigError(problem) from None
    if data_source.header and rows:
        names, rows = tuple(rows[0]), rows[1:]
        missing = [name for name in data_source.columns if name not in names]
        if missing:
            column_names = shorten_text(" ".join(", ".join(names).split()), MAX_QUOTED_TEXT_LENGTH)
            raise ScenarioError([(("data",), f"{path} has no column {', '.join(missing)}. It has: {column_names}")])
        keep = [names.index(name) for name in data_source.columns]
        rows = [[row[i] for i in keep] if len(row) == len(names) else row for row in rows]
    for number, row in enumerate(rows, 2 if data_source.header else 1):
        if len(row) != len(data_source.columns):
            problem = f"{path}:{number}: has {len(row)} columns, but must have {len(data_source.columns)}"
            raise ScenarioError([(("data",), problem)])
    if not rows:
        raise ScenarioError([(("data",), f"{path}: has no examples")])
    # dtype str would give every entry the size of the longest
    table = np.array([[cell.strip() for cell in row] for row in rows], object)
    return (
        _get_attributes(data_source, table, path),
        _get_column(data_source, table, data_source.label),
        _get_fold_numbers(data_source, table),
    )


def _get_column(data_source: DataSource, table: np.ndarray, name: str) -> np.ndarray:
    return table[:, data_source.columns.index(name)]


def _get_fold_numbers(data_source: DataSource, table: np.ndarray) -> np.ndarray | None:
    return (
        np.unique(_get_column(data_source, table, data_source.fold), return_inverse=True)[1]
        if data_source.fold
        else None
    )


def _get_attributes(data_source: DataSource, table: np.ndarray, path: Path) -> np.ndarray:
    if data_source.sequence:
        sequences = _get_column(data_source, table, data_source.sequence)
        for number, sequence in enumerate(sequences, 1):
            if len(sequence) != data_source.length:
                problem = f"{path}: example {number} has {len(sequence)} letters, but must have {data_source.length}"
                raise ScenarioError([(("data",), problem)])
        return np.array([list(sequence.lower()) for sequence in sequences], object)
    return table[:, [data_source.columns.index(name) for name in data_source.attributes]]


def _format_data_folder_option() -> str:
    """Return the option or environment variable that sets the data folder."""
    return join_alternatives(format_option("--data-dir DIR"), DATA_FOLDER_ENV_VARIABLE)


def _download_data_set(name: str, data_source: DataSource) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    require_modules(f"the data set {name}", "estimators", "sklearn")
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn warns at every attempt; the message below suffices
            fetched = fetch_openml(data_id=data_source.openml, as_frame=True, parser="liac-arff")
    except Exception as failure:  # the network can fail in many ways
        reason = " ".join(str(failure).split()) or type(failure).__name__
        raise ConfigError(
            f"data: {name} could not be downloaded from OpenML ({reason}). "
            f"Set a folder of data: {_format_data_folder_option()}"
        ) from None
    frame = fetched.data.drop(columns=[column for column in data_source.dropped if column in fetched.data.columns])
    count = len(data_source.attributes)
    if frame.shape[1] < count:
        raise ScenarioError([(("data",), f"{name} of OpenML has {frame.shape[1]} columns, but must have {count}")])
    X = frame.iloc[:, -count:].astype(object)  # earlier columns name the examples
    return X.where(X.notna(), MISSING_VALUE_MARK).to_numpy(), fetched.target.astype(str).to_numpy(), None


def _select_classes(data_source: DataSource, X: np.ndarray, y: np.ndarray, folds: np.ndarray | None) -> DataSetContent:
    """Return the examples of a data set's selected classes, with text or numerical attributes."""
    if data_source.classes:
        selected = np.isin(y, data_source.classes)
        X, y, folds = X[selected], y[selected], folds[selected] if folds is not None else None
    if data_source.numeric:
        try:
            X = X.astype(float)
        except ValueError:
            raise ScenarioError(
                [(("data",), f"{data_source.file}: is not a table of numbers: {_locate_non_number(data_source, X)}")]
            ) from None
        if not np.isfinite(X).all():
            raise ScenarioError([(("data",), f"{data_source.file}: contains NaN or infinite values")])
    else:
        X = np.frompyfunc(str, 1, 1)(X)
    classes = np.array([data_source.meanings.get(label, label) for label in map(str, y)])
    return DataSetContent(X, classes, data_source.attributes, folds)


def _locate_non_number(data_source: DataSource, X: np.ndarray) -> str:
    """Return the position of the first attribute of a data set that is not a number.

    Messages do not quote the content of files.
    """
    for number, row in enumerate(X, 1):
        for name, entry in zip(data_source.attributes, row, strict=True):
            try:
                float(entry)
            except (TypeError, ValueError):
                class_note = f" of the classes {', '.join(data_source.classes)}" if data_source.classes else ""
                return f"example {number}{class_note}, column {name}"
    return "an entry cannot be read"


def list_distinct_values(columns: np.ndarray) -> list[Sequence[str]]:
    """Return the sorted distinct values of each column of X (m, columns), without missing values."""
    return [sorted({*map(str, column)} - {MISSING_VALUE_MARK}) for column in columns.T]
