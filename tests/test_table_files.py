"""Tables as people have them are read with the right numbers, or refused in one sentence; what was done is said."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import statmech
from statmech.cli.command_group import app
from statmech.errors import ConfigError
from statmech.inputs.real_tables import make_labelled_table, read_labelled_table
from statmech.inputs.table_columns import ColumnOptions
from statmech.inputs.table_files import TableFileFormat, read_table_file

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((60, 3)).round(4)
WORDS = np.where(ROWS[:, 0] + RNG.standard_normal(60) > 0, "sick", "well")
HEADER = "label,a,b,c"


def text(sep=",", header=HEADER, decimal=".", rows=ROWS, words=WORDS, first=""):
    """The table as text; `first` stands before each row and is formatted with its number."""
    lines = [header.replace(",", sep)] if header else []
    for number, (word, row) in enumerate(zip(words, rows, strict=True)):
        cells = [str(value).replace(".", decimal) for value in row]
        lines.append(first.format(number, 7 * number % 60) + sep.join([word, *cells]))
    return "\n".join(lines) + "\n"


PECULIAR = {
    "plain": (text().encode(), []),
    "a byte order mark": (text().encode("utf-8-sig"), []),
    "UTF-16": (text().encode("utf-16"), ["encoded in UTF-16"]),
    "Latin-1": (text(header="label,größe,b,c").encode("latin-1"), ["not UTF-8 (row 1) and read as Latin-1"]),
    "semicolons": (text(";").encode(), ['separated by ";"']),
    "tabs": (text("\t").encode(), ["separated by"]),
    "spaces": (text(" ").encode(), ['separated by " "']),
    "decimal commas": (text(";", decimal=",").encode(), ["decimal commas"]),
    "Windows' line ends": (text().replace("\n", "\r\n").encode(), []),
    "quotes": (text().replace("sick", '"sick"').encode(), []),
    "no header": (text(header="").encode(), []),
    "a name given twice": (
        text(header="label,a,a,c").encode(),
        ["the name a is given twice: the second is called a.1"],
    ),
    "gzip": (gzip.compress(text().encode()), []),
    "bzip2": (bz2.compress(text().encode()), []),
    "xz": (lzma.compress(text().encode()), []),
    "a nameless index": (text(header="," + HEADER, first="{0},").encode(), ["left out: the nameless first column"]),
    "a shuffled nameless index": (text(header="," + HEADER, first="{1},").encode(), ["the nameless first column"]),
    "R's row names": (text(first="r{0},").encode(), ["the names of the rows are left out"]),
    "numbered rows": (text(header="id," + HEADER, first="{0},").encode(), ["left out: id"]),
}


@pytest.mark.parametrize(("content", "notes"), PECULIAR.values(), ids=PECULIAR)
def test_peculiarities_of_a_file_change_no_number_and_are_said(content, notes, tmp_path):
    (tmp_path / "t.csv").write_bytes(content)
    bare = text(header="").encode() == content
    table = read_labelled_table(str(tmp_path / "t.csv"), "0" if bare else "label")
    np.testing.assert_array_equal(table.X, ROWS)
    assert table.labels == ("well", "sick")
    np.testing.assert_array_equal(table.y, np.where(WORDS == "well", 1, -1))
    for note in notes:
        assert note in "\n".join(table.notes)


@pytest.mark.parametrize("header", ["0,1,2", "1,2,3", "1998,1999,2000"])
def test_numbers_that_count_columns_or_years_are_names_unless_they_are_data(header, tmp_path):
    """Counted as a row they make the squared error a hundred times too large."""
    (tmp_path / "t.csv").write_text(text(header="").replace("sick,", "").replace("well,", ""))
    content = (tmp_path / "t.csv").read_text()
    (tmp_path / "t.csv").write_text(header + "\n" + content)
    found = read_table_file(str(tmp_path / "t.csv"))
    assert len(found.frame) == 60
    assert "is taken for names" in "\n".join(found.notes)
    assert len(read_table_file(str(tmp_path / "t.csv"), TableFileFormat(header=False)).frame) == 61
    (tmp_path / "t.csv").write_text(content)
    assert len(read_table_file(str(tmp_path / "t.csv")).frame) == 60


def frame(**columns):
    given = pd.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 1]} | columns | {"label": WORDS})
    return make_labelled_table(given, "label", options=ColumnOptions())


def test_words_booleans_dates_and_missing_cells_become_numbers():
    colour = np.array(["red", "green", "blue"])[np.arange(60) % 3]
    holes = np.where(np.arange(60) == 7, np.nan, ROWS[:, 2])
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta((7 * np.arange(60)) % 60, unit="D")
    table = frame(colour=colour, flag=np.arange(60) % 2 == 0, c=holes, day=days.strftime("%Y-%m-%d"))
    blue, green, flag, filled, since = table.X[:, 2:].T
    np.testing.assert_array_equal([blue, green], [colour == "blue", colour == "green"])
    np.testing.assert_array_equal(flag, np.arange(60) % 2 == 0)
    assert filled[7] == pytest.approx(np.nanmean(holes))
    np.testing.assert_array_equal(since, (7 * np.arange(60)) % 60)
    assert table.notes[0] == "60 rows, 6 columns: 4 of numbers, 1 of words, 1 of dates (2 indicators)"
    assert "1 missing cell replaced by the mean of the column" in table.notes


def test_a_mark_is_a_word_among_words_and_a_missing_cell_among_numbers(tmp_path):
    signs, grades = np.where(WORDS == "sick", "+", "-"), np.where(WORDS == "sick", "None", "mild")
    for words in (signs, grades):
        (tmp_path / "t.csv").write_text(text(words=words))
        table = read_labelled_table(str(tmp_path / "t.csv"), "label")
        assert (len(table.y), set(table.labels)) == (60, set(words.tolist()))
    for sep, decimal in ((",", "."), (";", ",")):
        for mark in ("-", ".", "None", "--"):
            cell = str(ROWS[4, 1]).replace(".", decimal)
            (tmp_path / "t.csv").write_text(text(sep=sep, decimal=decimal).replace(cell, mark))
            table = read_labelled_table(str(tmp_path / "t.csv"), "label")
            assert table.notes[0].startswith("60 rows, 3 columns: 3 of numbers")
            assert table.X[4, 1] == pytest.approx(np.delete(ROWS[:, 1], 4).mean())


def test_few_values_of_which_some_are_words_are_words_and_a_single_one_is_a_mistake():
    doors = np.tile(["2", "3", "4", "5more"], 15)
    assert frame(doors=doors).notes[0] == "60 rows, 3 columns: 2 of numbers, 1 of words (3 indicators)"
    assert frame(sex=np.tile(["f", "m"], 30)).notes[0].endswith("1 of words (1 indicator)")
    doors[:3], doors[3::4] = "5more", "5"
    assert frame(doors=doors).notes[0].startswith("60 rows, 3 columns: 2 of numbers, 1 of words")
    doors[1:3] = "3"
    with pytest.raises(ConfigError, match='row 1, column "doors" is not a number'):
        frame(doors=doors)


@pytest.mark.parametrize(
    ("columns", "note"),
    [
        ({"copy": np.where(WORDS == "sick", 1, 0)}, "warning: column copy determines the target"),
        ({"score": np.where(WORDS == "sick", 3, 0) + RNG.random(60)}, "warning: column score determines the target"),
        ({"empty": np.full(60, np.nan)}, "1 empty column left out"),
        ({"time": pd.date_range("2024-01-01", periods=60, freq="h")}, "left out: time (numbers or names of the rows"),
        ({"comment": [f"said {i % 50}" for i in range(60)]}, "left out: comment (text that differs in most rows)"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_columns_that_leak_or_say_nothing_are_named(columns, note):
    assert note in "\n".join(frame(**columns).notes)


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (text(words=[*"abcd"] * 15), [], "the target has 4 values, a, b, c, d"),
        (text(words=["sick"] * 60), [], 'the target has one value, "sick"'),
        (text().replace(str(ROWS[4, 1]), ""), ["--missing", "refuse"], 'row 6, column "b" is empty'),
        (text().replace(str(ROWS[4, 1]), "high"), [], 'row 6, column "b": "high" is not a number'),
        (text().replace(str(ROWS[4, 1]), "inf"), [], 'row 6, column "b" is infinite'),
        (text().replace(f",{ROWS[4, 1]}", ""), [], "row 6 has 3 columns, but row 1 has 4"),
        (text(), ["--target", "lable"], 'Did you mean "label"'),
        (
            text(header="label,a", rows=[[i, "abc"[i % 3]] for i in range(60)]),
            ["--target", "-1"],
            "the target (the last column; --target COLUMN chooses another) has 3 values, a, b, c",
        ),
        (text(), ["--drop", "d"], '"d" is not a column'),
        (text(), ["--positive", "ill"], 'no row has the target "ill": its values are sick, well'),
        (text(), ["--encoding", "klingon"], "unknown encoding: klingon"),
        (text(), ["--lam", "0"], "--lam must be a number above 0, or best, not 0.0"),
        (text(), ["--lam", "small"], "--lam must be a number above 0, or best, not 'small'"),
        (text(), ["--examples", "0,20"], "--examples must be integers of at least 2, not [0, 20]"),
        (
            text(header="label,a,b", rows=[[f"a{i}", f"b{i}"] for i in range(60)]),
            [],
            "no input varies: all columns are constant or dropped; left out: a, b (text that differs in most rows)",
        ),
        (HEADER + "\n", [], "a table requires at least two rows"),
        ("", [], "a table requires at least two rows"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_in_the_words_of_the_table(content, options, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(content)
    given = options if "--target" in options else ["--target", "label", *options]
    result = CliRunner().invoke(app, ["predict", "t.csv", *given])
    assert isinstance(result.exception, ConfigError | SystemExit), result.exception
    assert said in str(result.exception) + result.output
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize("content", [b"PK\x03\x04junk", gzip.compress(text().encode())[:200], b"\0\1\2\xff" * 50])
def test_a_file_that_is_no_text_is_refused(content, tmp_path):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ConfigError, match=r"t\.csv: "):
        read_labelled_table(str(tmp_path / "t.csv"), "label")


def test_a_small_file_that_unpacks_to_much_and_a_pipe_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("statmech.inputs.table_files.MAX_TABLE_BYTES", 10_000)
    (tmp_path / "bomb.csv").write_bytes(gzip.compress(b"1,2\n" * 100_000))
    os.mkfifo(tmp_path / "pipe.csv")
    for name, said in (("bomb", "more than 10,000 bytes when it is unpacked"), ("pipe", "not an ordinary file")):
        with pytest.raises(ConfigError, match=said):
            read_labelled_table(str(tmp_path / f"{name}.csv"), "0")


def test_one_of_several_labels_is_predicted_against_the_others(tmp_path):
    (tmp_path / "t.csv").write_text(text(words=[*"abc"] * 20))
    table = read_labelled_table(str(tmp_path / "t.csv"), "label", positive="b")
    assert table.labels == ("b", "not b")
    assert np.sum(table.y > 0) == 20


def test_a_parquet_file_a_data_frame_and_a_csv_file_are_one_table(tmp_path):
    given = pd.read_csv(io.StringIO(text()))
    (tmp_path / "t.csv").write_text(text())
    curves = [statmech.predict_learning_curve(given, "label", lam=0.1, P=[30, 60])]
    curves.append(statmech.predict_learning_curve(tmp_path / "t.csv", "label", lam=0.1, P=[30, 60]))
    if hasattr(pytest.importorskip("pyarrow", reason="pandas reads Parquet with it"), "__version__"):
        given.to_parquet(tmp_path / "t.parquet")
        curves.append(statmech.predict_learning_curve(tmp_path / "t.parquet", "label", lam=0.1, P=[30, 60]))
    for curve in curves[1:]:
        np.testing.assert_array_equal(curve.eps_y, curves[0].eps_y)


def test_a_table_of_digits_takes_a_bounded_multiple_of_its_size(tmp_path):
    path = tmp_path / "digits.csv"
    rows = np.random.default_rng(0).integers(0, 10, (3000, 40))
    path.write_text("\n".join(",".join(map(str, row)) for row in rows))
    tracemalloc.start()
    try:
        read_labelled_table(str(path), "-1")
        assert tracemalloc.get_traced_memory()[1] < 25 * path.stat().st_size
    finally:
        tracemalloc.stop()
