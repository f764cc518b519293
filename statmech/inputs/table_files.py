"""Reading of table files with automatic detection of separator, decimal comma, encoding and header.

Notes report the recognised format, and each choice is an option of `TableFileFormat`. Only ordinary files of bounded
size are opened, and their content is never executed.

Tables of inputs are loaded as centred rows, with the eigenvalues of their covariance, and cached until their file
changes.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from statmech.errors import ConfigError, ScenarioError, format_option, quote_value
from statmech.inputs.table_columns import DEFAULT_COLUMN_OPTIONS, encode_columns
from statmech.runtime import files

if TYPE_CHECKING:
    import pandas as pd

MAX_TABLE_BYTES = 2**28  # uncompressed; pandas needs about four times as much memory
MAX_TABLE_COLUMNS = 20_000
MAX_NPY_BYTES = 2**30  # conversion to float64 and centring need several times as much memory
EIGENVALUE_ROUNDING_TOL = 1e-15  # relative to N times the largest eigenvalue; smaller eigenvalues are rounding errors
COLUMN_SEPARATORS = (",", ";", "\t", "|")
NUM_FORMAT_SAMPLE_ROWS = 200  # used to detect the separator, decimal commas and the header
MISSING_CELL_MARKS = ("", "?", "NA", "N/A", "na", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "null", "NULL")
MISSING_NUMBER_MARKS = ("-", "--", ".", "None")  # only in columns of numbers; a text target may have the values + and -
UNPACKERS_BY_MAGIC_BYTES: dict[
    bytes, Callable[[io.BytesIO], IO[bytes] | gzip.GzipFile]
] = {  # keys: first bytes of a file
    b"\x1f\x8b": lambda packed: gzip.GzipFile(fileobj=packed),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
ENCODINGS_BY_BYTE_ORDER_MARK = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}  # mark -> encoding
PANDAS_READERS_BY_SUFFIX = {  # suffix -> reader of pandas and the package that it requires
    ".parquet": ("read_parquet", "pyarrow"),
    ".feather": ("read_feather", "pyarrow"),
    ".xlsx": ("read_excel", "openpyxl"),
    ".xls": ("read_excel", "xlrd"),
    ".ods": ("read_excel", "odfpy"),
}
INTEGER_PATTERN = re.compile(r"\s*[+-]?\d+\s*")
DECIMAL_COMMA_PATTERN, DECIMAL_POINT_PATTERN = re.compile(r"\s*[+-]?\d+,\d+\s*"), re.compile(r"\s*[+-]?\d*\.\d+\s*")


@dataclass(frozen=True)
class TableFileFormat:
    """The format of a table file, with None for properties to be detected."""

    sep: str | None = None
    encoding: str | None = None
    header: bool | None = None
    na: tuple[str, ...] = ()  # additional marks of missing cells


DEFAULT_FILE_FORMAT = TableFileFormat()


class TableFile(NamedTuple):
    """The columns of a table file, notes on its format, and the row number of the first data."""

    frame: pd.DataFrame
    notes: tuple[str, ...]
    first_data_row: int


def read_table_file(path: str, file_format: TableFileFormat = DEFAULT_FILE_FORMAT) -> TableFile:
    """Read a table from a .csv, .tsv or .txt file, possibly compressed, or a Parquet, Feather or Excel file.

    Parameters
    ----------
    path
        The file.
    file_format
        The format of the file.

    Raises
    ------
    ConfigError
        If the file is not a readable table. The message gives the reason.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("x;y\\n1,5;2\\n2,5;3\\n")
    ...     found = read_table_file(f"{folder}/a.csv")
    >>> found.frame.to_dict("list"), found.notes
    ({'x': [1.5, 2.5], 'y': [2, 3]}, ('separated by ";"', 'decimal commas'))
    """
    try:
        content = files.read_bounded_file(Path(path), MAX_TABLE_BYTES)
        if reader := PANDAS_READERS_BY_SUFFIX.get(Path(path).suffix.lower()):
            return TableFile(_read_typed_file(path, content, *reader), (), 1)
        text, notes = _decode_text(_decompress(content), file_format.encoding)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, UnicodeError, LookupError) as failure:
        raise ConfigError(f"{path}: not a readable table: {_explain_read_failure(failure)}") from None
    return _parse_table_text(path, text, notes, file_format)


def _decompress(content: bytes) -> bytes:
    """Decompress the content of a table file if it is compressed."""
    for mark, unpack in UNPACKERS_BY_MAGIC_BYTES.items():
        if content.startswith(mark):
            with unpack(io.BytesIO(content)) as file:
                content = file.read(MAX_TABLE_BYTES + 1)
            if len(content) > MAX_TABLE_BYTES:
                raise OSError(f"has more than {MAX_TABLE_BYTES:,} bytes when it is unpacked")
    return content


def _decode_text(content: bytes, encoding: str | None) -> tuple[str, list[str]]:
    """Decode the content of a table file to text, with a note if it is not UTF-8."""
    if encoding:
        return content.decode(encoding), []
    marked = next((name for mark, name in ENCODINGS_BY_BYTE_ORDER_MARK.items() if content.startswith(mark)), None)
    if marked:
        return content.decode(marked), [f"encoded in {marked.upper()}"] if marked == "utf-16" else []
    try:
        return content.decode(), []
    except UnicodeDecodeError as failure:
        if b"\0" in content[:1000]:
            raise OSError("is not a text file") from None
        line = content.count(b"\n", 0, failure.start) + 1
        return content.decode("latin-1"), [
            f"not UTF-8 (row {line}) and read as Latin-1{_format_option_hint('--encoding NAME', 'names another')}"
        ]


def _format_option_hint(flag: str, effect: str) -> str:
    """Return a hint about the effect of an option, or an empty string if the running command lacks it."""
    return f"; {flag_text} {effect}" if (flag_text := format_option(flag)) else ""


def _explain_read_failure(failure: Exception) -> str:
    """Return the reason why a table file is not readable."""
    if isinstance(failure, EOFError | zlib.error | lzma.LZMAError):
        return "cannot be unpacked: it is cut or damaged"
    if isinstance(failure, UnicodeError):
        return f"is not encoded in {failure.encoding}" if isinstance(failure, UnicodeDecodeError) else str(failure)
    return getattr(failure, "strerror", None) or str(failure)


def _read_typed_file(path: str, content: bytes, reader: str, package: str) -> pd.DataFrame:
    """Read a file with typed columns using a reader of pandas and the package that it requires."""
    import pandas as pd

    try:
        frame: pd.DataFrame = getattr(pd, reader)(io.BytesIO(content))
    except ImportError:
        raise ConfigError(f"{path}: pandas requires {package} for such files: pip install {package}") from None
    except Exception as failure:  # every reader raises its own exceptions
        raise ConfigError(f"{path}: is not readable as {Path(path).suffix[1:]}: {failure}") from None
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    return frame.rename(columns=str)


def _parse_table_text(path: str, text: str, notes: list[str], file_format: TableFileFormat) -> TableFile:
    """Parse the text of a table file."""
    import pandas as pd

    sep = file_format.sep or recognise_separator(text)
    rows = _read_and_check_sample_rows(path, text, sep)
    notes += [f"separated by {quote_value(sep)}"] if sep != "," else []
    comma = sep != "," and _has_decimal_commas(rows)
    notes += ["decimal commas"] if comma else []
    header = file_format.header if file_format.header is not None else has_header(rows)
    names, row_names = _name_columns(rows, header, notes)
    whitespace = {"sep": r"\s+"} if sep == " " else {"sep": sep, "skipinitialspace": True}
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            header=None,
            skiprows=1 if header else 0,
            names=range(len(names)),
            index_col=False,
            decimal="," if comma else ".",
            na_values=[*MISSING_CELL_MARKS, *file_format.na],
            keep_default_na=False,
            low_memory=False,
            **whitespace,
        )
    except (ValueError, pd.errors.ParserError) as failure:
        raise ConfigError(f"{path}: not a readable table: {failure}") from None
    frame = frame.apply(_convert_missing_marks, comma=comma) if len(frame) else frame
    frame.columns = pd.Index(names)
    if row_names:
        notes.append("the names of the rows are left out")
        frame = frame.drop(columns=names[0])
    return TableFile(frame, tuple(notes), 1 + header)


def _convert_missing_marks(column: pd.Series, comma: bool) -> pd.Series:
    """Convert a column of numbers and missing-number marks to numbers, and keep other columns unchanged."""
    import pandas as pd

    if column.dtype.kind != "O" or not (marked := column.isin(MISSING_NUMBER_MARKS)).any():
        return column
    rest = column[~marked].dropna().astype(str)
    numbers = pd.to_numeric(rest.str.replace(",", ".") if comma else rest, errors="coerce")
    return column if numbers.isna().any() else numbers.reindex(column.index)


def recognise_separator(text: str) -> str:
    """Return the separator that splits the first rows of a text into the same number of columns, at least two.

    Parameters
    ----------
    text
        The text of a table.

    Examples
    --------
    >>> recognise_separator("a;b\\n1,5;2\\n"), recognise_separator("1 2\\n3 4\\n")
    (';', ' ')
    """
    counts = {}
    for sep in (*COLUMN_SEPARATORS, " "):
        lengths = [len(row) for row in islice(_iterate_rows(text, sep), NUM_FORMAT_SAMPLE_ROWS)]
        usual = max(set(lengths), key=lengths.count, default=1)
        counts[sep] = (lengths.count(usual) == len(lengths), usual > 1, usual) if usual > 1 else (False, False, 1)
    even = [sep for sep, (all_equal, several, _) in counts.items() if all_equal and several]
    if even:
        return even[0]
    return max(COLUMN_SEPARATORS, key=lambda sep: counts[sep][2])


def _iterate_rows(text: str, sep: str) -> Iterator[list[str]]:
    """Iterate over the nonempty rows of a table file's text."""
    csv.field_size_limit(MAX_TABLE_BYTES)
    lines = io.StringIO(text, newline="")
    if sep == " ":
        return (line.split() for line in lines if line.strip())
    return (row for row in csv.reader(lines, delimiter=sep, skipinitialspace=True) if row)


def _read_and_check_sample_rows(path: str, text: str, sep: str) -> list[list[str]]:
    """Return the first rows of a table, or raise `ConfigError` if the rows differ in length."""
    sample: list[list[str]] = []
    length = 0
    try:
        for number, row in enumerate(_iterate_rows(text, sep), 1):
            if number <= NUM_FORMAT_SAMPLE_ROWS:
                sample.append(row)
            if number == 2:
                length = len(row)
                short_header = len(sample[0]) == length - 1
                if len(sample[0]) != length and not short_header:
                    raise ConfigError(f"{path}: row 2 has {length} columns, but row 1 has {len(sample[0])}")
            elif number > 2 and len(row) != length:
                raise ConfigError(f"{path}: row {number} has {len(row)} columns, but row 1 has {len(sample[0])}")
    except csv.Error as failure:
        raise ConfigError(f"{path}: not a readable table: {failure}") from None
    if length > MAX_TABLE_COLUMNS:
        raise ConfigError(f"{path}: has {length:,} columns; the maximum is {MAX_TABLE_COLUMNS:,}")
    if len(sample) < 2:
        raise ConfigError(f"{path}: a table requires at least two rows")
    return sample


def _has_decimal_commas(rows: list[list[str]]) -> bool:
    """Return True if rows contain numbers with decimal commas, and no decimal points."""
    cells = [cell for row in rows for cell in row]
    return any(map(DECIMAL_COMMA_PATTERN.fullmatch, cells)) and not any(map(DECIMAL_POINT_PATTERN.fullmatch, cells))


def has_header(rows: list[list[str]]) -> bool:
    """Return True if the first row of a table names its columns.

    This is the case if a text stands above numbers, if its texts do not occur below, or if its numbers count the
    columns or years and the numbers of the next row do not.

    Parameters
    ----------
    rows
        The first rows of a table, as text.

    Examples
    --------
    >>> has_header([["0", "1"], ["0.3", "5"]]), has_header([["1.5", "yes"], ["0.3", "no"], ["2", "yes"]])
    (True, False)
    """
    first, *later_rows = rows
    if len(first) < len(later_rows[0]):  # R writes row names in a column without a header
        return True
    text_columns = [index for index, cell in enumerate(first) if not _is_missing_mark(cell) and not is_number(cell)]
    below = [[row[index] for row in later_rows if not _is_missing_mark(row[index])] for index in range(len(first))]
    if any(below[index] and all(map(is_number, below[index])) for index in text_columns):
        return True
    if any(first[index] in below[index] for index in text_columns):
        return False
    numbers = [index for index in range(len(first)) if index not in text_columns and not _is_missing_mark(first[index])]
    if not numbers:
        return bool(text_columns)
    return _counts_upwards(first, numbers) and not _counts_upwards(later_rows[0], numbers)


def _counts_upwards(row: list[str], columns: list[int]) -> bool:
    """Return True if these entries of a table file's row are consecutive integers, as in a header."""
    if len(columns) < 2 or not all(INTEGER_PATTERN.fullmatch(row[index]) for index in columns):
        return False
    values = [int(row[index]) for index in columns]
    return all(after - before == 1 for before, after in pairwise(values))


def is_number(cell: str) -> bool:
    """Return True if the text of a table file's cell is a number, possibly with a decimal comma."""
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def _is_missing_mark(cell: str) -> bool:
    """Return True if the text of a cell marks a missing value."""
    return cell.strip() in (*MISSING_CELL_MARKS, *MISSING_NUMBER_MARKS)


def _name_columns(rows: list[list[str]], header: bool, notes: list[str]) -> tuple[list[str], bool]:
    """Return unique column names of a table file, and whether its first column holds row names without a header."""
    width = len(rows[1])
    if not header:
        return [str(index) for index in range(width)], False
    names = [name.strip() for name in rows[0]]
    short = len(names) < width
    names = ["", *names] if short else names
    if all(map(is_number, names)):
        unless = _format_option_hint("--no-header", "takes it for data")
        notes.append(f"the first row, {', '.join(names[:3])}, ..., is taken for names{unless}")
    counts: dict[str, int] = {}
    for index, name in enumerate(names):
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > 1 and name:
            names[index] = f"{name}.{counts[name] - 1}"
            notes.append(f"the name {name} is given twice: the second is called {names[index]}")
        elif not name:
            names[index] = f"Unnamed: {index}"
    return names, short


def load_input_table(path: str) -> np.ndarray:
    """Load the rows of a .npy file or a table in float32, centred and with mean |x|^2 = 1.

    Raises `ScenarioError` if the file is not a table of finite real numbers whose rows differ.
    """
    return _load_cached_table(path, files.get_file_signature(path))


def get_input_table_digest(path: str) -> str:
    """Return the SHA-256 of a table's content, independent of the file format."""
    return _compute_input_table_digest(path, files.get_file_signature(path))


def get_covariance_eigenvalues(path: str) -> np.ndarray:
    """Return the eigenvalues (N,) of N times the covariance of a table, which sum to N."""
    return _compute_covariance_eigenvalues(path, files.get_file_signature(path))


@lru_cache(maxsize=4)
def _compute_covariance_eigenvalues(path: str, state: tuple[int, ...]) -> np.ndarray:
    rows = _load_cached_table(path, state).astype(float)
    count, N = rows.shape
    squares = rows.T @ rows if count >= N else rows @ rows.T
    values = np.linalg.eigvalsh(squares) * N / count
    return np.concatenate(
        [np.zeros(N - len(values)), np.where(values > N * EIGENVALUE_ROUNDING_TOL * values[-1], values, 0.0)]
    )


@lru_cache(maxsize=4)
def _compute_input_table_digest(path: str, state: tuple[int, ...]) -> str:
    rows = _load_cached_table(path, state)
    return hashlib.sha256(f"{rows.shape}".encode() + rows.tobytes()).hexdigest()


@lru_cache(maxsize=4)
def _load_cached_table(path: str, state: tuple[int, ...]) -> np.ndarray:
    try:
        rows = _read_table_numbers(path)
    except ConfigError as failure:
        raise ScenarioError([(("inputs",), str(failure))]) from None
    rows = rows - rows.mean(axis=0)
    scale = np.sqrt(np.mean(np.sum(rows**2, axis=1)))
    if rows.ndim != 2 or not np.isfinite(scale) or scale == 0:
        raise ScenarioError([(("inputs",), f"{path}: must be a table of finite numbers whose rows differ")])
    return (rows / scale).astype(np.float32)


def _read_table_numbers(path: str) -> np.ndarray:
    """Read the numbers of a .npy file or a table file, encoding text columns as indicators."""
    if Path(path).suffix != ".npy":
        table_file = read_table_file(path)
        try:
            return encode_columns(table_file.frame, None, DEFAULT_COLUMN_OPTIONS, table_file.first_data_row).X
        except ConfigError as failure:
            raise ConfigError(f"{path}: {failure}") from None
    try:
        with (
            files.open_regular_file(Path(path), MAX_NPY_BYTES) as descriptor,
            open(descriptor, "rb", closefd=False) as file,
        ):
            rows = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as failure:
        reason = getattr(failure, "strerror", None) or "its content is not an array"
        raise ConfigError(f"{path}: not a readable table: {reason}") from None
    if rows.dtype.kind not in "buif" or not rows.size:
        problem = f"real numbers are needed, not {rows.dtype.name}" if rows.size else "it is empty"
        raise ConfigError(f"{path}: not a readable table: {problem}")
    return np.atleast_2d(rows.astype(float))
