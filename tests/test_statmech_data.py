"""Real data are read completely or refused with a clear message; their properties are tested where available."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pandas as pd
import pytest
from conftest import statmech, write
from sklearn.utils import Bunch

from statmech import ConfigError, ScenarioError
from statmech.inputs import data_sets
from statmech.inputs.data_sets import find_data_source, list_distinct_values, load_data_set
from statmech.runtime import files

REAL = {
    "votes": (435, 15, 30, {"democrat": 267, "republican": 168}),
    "promoters": (106, 57, 228, {"other": 53, "promoter": 53}),
    "coding": (20000, 15, 60, {"coding": 10000, "noncoding": 10000}),
    "splice": (3190, 60, 287, {"EI": 767, "IE": 768, "N": 1655}),
    "kr-vs-kp": (3196, 36, 73, {"nowin": 1527, "won": 1669}),
    "tic-tac-toe": (958, 9, 27, {"negative": 332, "positive": 626}),
    "mushroom": (8124, 22, 116, {"e": 4208, "p": 3916}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_the_real_data_have_the_stated_examples_attributes_and_indicators(name, real_data):
    m, columns, indicators, classes = REAL[name]
    data = load_data_set(name)
    assert data.X.shape == (m, columns)
    assert len(data.names) == columns
    assert sum(map(len, list_distinct_values(data.X))) == indicators
    assert dict(zip(*np.unique(data.y, return_counts=True), strict=True)) == classes


@pytest.mark.slow
def test_the_real_digits_come_in_pairs(real_data):
    data = load_data_set("digits-3-8")
    assert data.X.shape == (1000, 784)
    assert set(data.y) == {"3", "8"}
    assert data.X.max() == 255


def test_coding_has_four_folds_by_gene(real_data):
    assert np.unique(load_data_set("coding").folds).size == 4


def test_physician_fee_freeze_is_omitted(data_folder):
    data = load_data_set("votes")
    assert data.X.shape == (160, 15)
    assert "physician-fee-freeze" not in data.names
    assert set(np.unique(data.X)) == {"?", "n", "y"}


def test_positions_of_promoters_and_junctions_are_counted_from_their_sites():
    promoters, splice = find_data_source("promoters").attributes, find_data_source("splice").attributes
    assert (promoters[0], promoters[49], promoters[50], promoters[-1]) == ("-50", "-1", "+1", "+7")
    assert (splice[0], splice[29], splice[30], splice[-1]) == ("-30", "-1", "+1", "+30")
    assert "0" not in (*promoters, *splice)
    assert all(set(ends) <= set(promoters) for ends in find_data_source("promoters").regions.values())


def test_a_class_follows_its_attributes(data_folder):
    data = load_data_set("coding")
    expected = (data.X[:, 3] == "a") | (data.X[:, 4] == "c")
    np.testing.assert_array_equal(data.y == "coding", expected)


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("votes", [["democrat", *["y"] * 15]], "votes-84.data:1: has 16 columns, but must have 17"),
        ("votes", [], "has no examples"),
        ("promoters", [["+", "x", "acgt"]], "example 1 has 4 letters, but must have 57"),
        ("coding", [["fold", "gene", "frame", "seq"], [0, "g", 0, "A" * 15]], "has no column label"),
        ("digits", [["nan", *[0] * 783, "3"]], "contains NaN or infinite values"),
        ("digits", [[0, "secret", *[0] * 782, "3"]], "is not a table of numbers: example 1, column pixel2"),
    ],
)
def test_a_file_of_the_wrong_form_is_refused(name, rows, message, tmp_path, monkeypatch):
    path = tmp_path / find_data_source(name).file
    write(path, rows, gzip.open if path.suffix == ".gz" else open)
    monkeypatch.setenv("STATMECH_DATA", str(tmp_path))
    with pytest.raises(ScenarioError, match=message) as refused:
        load_data_set(name)
    assert "secret" not in str(refused.value)


def test_a_folder_without_the_file_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("STATMECH_DATA", str(tmp_path))
    with pytest.raises(ConfigError, match=r"house-votes-84\.data: cannot be read: No such file"):
        load_data_set("votes")


def test_an_unknown_name_is_answered_with_the_likely_one():
    with pytest.raises(ValueError, match=r'"vote" is not a data set\. Did you mean "votes"'):
        find_data_source("vote")
    with pytest.raises(ValueError, match="not a data set"):
        find_data_source("digits-3-3")


@pytest.fixture
def openml(monkeypatch, made_data):
    """OpenML as scikit-learn returns it, with the generated votes, whose missing words are None."""
    monkeypatch.setenv("STATMECH_DATA", str(made_data))
    votes = load_data_set("votes")
    monkeypatch.setenv("STATMECH_DATA", "")
    frame = pd.DataFrame(votes.X, columns=list(votes.names), dtype=object).replace({"?": None})
    frame.insert(3, "physician-fee-freeze", "y")
    asked = []

    def fetch_openml(data_id, **given):
        asked.append(data_id)
        if asked[1:]:
            raise OSError("no network")
        return Bunch(data=frame, target=pd.Series(votes.y))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    return votes


def test_without_a_folder_the_same_data_come_from_openml(openml):
    found = load_data_set("votes")
    assert found.X.tolist() == openml.X.tolist()
    assert found.y.tolist() == openml.y.tolist()
    with pytest.raises(ConfigError, match=r"could not be downloaded from OpenML \(no network\)"):
        load_data_set("promoters")
    with pytest.raises(ConfigError, match="coding is not publicly available"):
        load_data_set("coding")


DAMAGED = {  # the damage of a data file, with what is said of it; `plain` is its content
    "pipe": (lambda path, plain: os.mkfifo(path), "is a pipe or a device, not an ordinary file"),
    "device": (lambda path, plain: path.symlink_to("/dev/zero"), "is a pipe or a device, not an ordinary file"),
    "folder": (lambda path, plain: path.mkdir(), "is a folder, not an ordinary file"),
    "bomb": (lambda path, plain: path.write_bytes(gzip.compress(bytes(2**20))), "is larger than 1,000 bytes"),
    "large": (lambda path, plain: path.write_bytes(os.urandom(2**12)), "is larger than 1,000 bytes"),
    "cut": (lambda path, plain: path.write_bytes(gzip.compress(plain)[:20]), "is cut or damaged"),
    "flipped": (lambda path, plain: path.write_bytes(gzip.compress(plain)[:-1] + b"x"), "is cut or damaged"),
    "plain": (lambda path, plain: path.write_bytes(plain), "is cut or damaged"),
    "binary": (lambda path, plain: path.write_bytes(gzip.compress(b"\xff\xfe\x00\x01")), "is not text in UTF-8"),
    "word": (
        lambda path, plain: path.write_bytes(gzip.compress(b"a,b\n1," + b"x" * 300)),
        "line 2 has an entry of more",
    ),
    "wide": (lambda path, plain: path.write_bytes(gzip.compress(b"," * 20)), "line 1 has 21 columns, more than 10"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_data_file_is_one_sentence_and_ends_at_once(name, tmp_path, monkeypatch, capsys):
    damage, said = DAMAGED[name]
    monkeypatch.setattr(data_sets, "MAX_DATA_FILE_BYTES", 1000)
    if name == "wide":
        monkeypatch.setattr(files, "MAX_COLUMNS", 10)
    path = tmp_path / find_data_source("digits").file
    path.parent.mkdir(exist_ok=True)
    damage(path, b"0,1,2\n" * 100)
    assert statmech("run", "digits_theta", "--data-dir", tmp_path, "--out", tmp_path / "res") == 2
    [line] = capsys.readouterr().err.splitlines()
    assert f"{path}: cannot be read: {said}" in line
    assert not (tmp_path / "res").exists()


def test_an_empty_data_file_with_column_names_has_no_examples(tmp_path, monkeypatch):
    path = tmp_path / find_data_source("coding").file
    write(path, [], gzip.open if path.suffix == ".gz" else open)
    monkeypatch.setenv("STATMECH_DATA", str(tmp_path))
    with pytest.raises(ScenarioError, match="has no examples"):
        load_data_set("coding")
