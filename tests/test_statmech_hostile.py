"""Results from a stranger: nothing outside their folder is read or written, nothing hangs, and a message is one line.

The strangers of these tests recompute the seal of what they have changed, which is a plain checksum.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import pytest
from conftest import statmech

import theory
from simulate.execution.store_simulation import run_into
from statmech import Scenario
from statmech.stores import checksums, zarr_store
from statmech.stores.sweep_chunks import SweepStore

SWEEP = Scenario(rule="hebb", N=20, t=[1, 2], eta=[0.5, 1.0], seeds=2, figure={"y": "R"})
COMMANDS = {  # by name, on a folder of results in the current folder
    "status": ["status", "res"],
    "verify": ["verify", "res"],
    "compare": ["compare", "res"],
    "export": ["export", "res", "--to", "out.csv"],
    "report": ["report", "res"],
    "simulate": ["simulate", "res"],
    "run": ["run", "res"],
    "figure": ["figure", "res", "--formats", "png"],
    "grown": ["simulate", "res", "seeds=3"],
}
DEEP = "[" * 100_000 + "]" * 100_000
SIMULATION, THEORY, PRECIOUS = "simulation.zarr", "theory.zarr", "../../precious.txt"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder of results whose sweep is half simulated, in four chunks."""
    folder = tmp_path_factory.mktemp("original") / "res"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("statmech.stores.sweep_chunks.TARGET_CHUNK_SECONDS", 1e-9)
        run_into(folder / SIMULATION, SWEEP, figure=SWEEP.figure)
    found = SweepStore(folder / SIMULATION)
    found.mark_missing(found.list_chunks()[1])
    zarr_store.save(theory.solve(SWEEP), folder / THEORY, SWEEP.figure)
    return folder


@pytest.fixture
def unpacked(original, tmp_path, monkeypatch):
    """The current folder, which contains a copy of the results, `res`, and a file that is not theirs."""
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    (tmp_path / "precious.txt").write_text("years of work")
    shutil.copytree(original, here / "res")
    monkeypatch.chdir(here)
    return tmp_path


def everything(folder):
    """The content of all files in a folder, and the targets of its links, but those of the results."""
    files = [file for file in folder.rglob("*") if file.is_symlink() or file.is_file()]
    return {
        str(file.relative_to(folder)): os.readlink(file) if file.is_symlink() else file.read_bytes()
        for file in files
        if not file.is_relative_to(folder / "a/b/res") and file.name != "out.csv"
    }


def metadata(change, part=SIMULATION, variable=None):
    """A damage: the metadata of a store, or of one of its variables, are changed by a function."""

    def damage(folder):
        file = folder / part / (variable or ".") / "zarr.json"
        content = json.loads(file.read_text())
        change(content)
        file.write_text(json.dumps(content))
        sealed(folder / part)

    return damage


def attribute(name, value, part=SIMULATION):
    return metadata(lambda content: content["attributes"].update({name: value}), part)


def config(change, part=SIMULATION):
    """A damage of the config: a text, or a function that changes the mapping."""

    def changed(content):
        text = content["attributes"]["config"]
        if callable(change):
            mapping = json.loads(text)
            change(mapping)
            text = json.dumps(mapping)
        content["attributes"]["config"] = text if callable(change) else change

    return metadata(changed, part)


def names(**others):
    """A damage: the seal has more names."""
    return lambda folder: sealed(folder / SIMULATION, others)


def sealed(path, others=()):
    """The checksums of a store's own files computed again, with `others`."""
    file = path / "zarr.json"
    group = json.loads(file.read_text())
    known = [name for name in group["attributes"]["sealed"] if (path / name).is_file()]
    digests = {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in known}
    group["attributes"]["sealed"] = digests | dict(others)
    group["attributes"]["sealed"]["zarr.json"] = checksums._hash_group_metadata(group)
    file.write_text(json.dumps(group))


def each(*damages):
    """Several damages, none of which hides another from the commands."""
    return lambda folder: [damage(folder) for damage in damages]


def link(name, target):
    """A damage: a file or folder of the results is a link; what was there is moved to the target."""

    def damage(folder):
        place, there = folder / name, folder.parent / target
        if place.exists() and not there.exists() and there.parent.is_dir():
            place.rename(there)
        elif place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(os.path.relpath(there, place.parent))

    return damage


def pipe(name):
    """A damage: a file of the results is a pipe without a writer."""

    def damage(folder):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return damage


def named_pipe(folder):
    """A pipe whose name is in the seal."""
    os.mkfifo(folder / SIMULATION / "pipe")
    sealed(folder / SIMULATION, {"pipe": "0" * 64})


def archive(folder):
    """A store behind a link, whose seal names a file of the user with the digest of one of the stranger's."""
    (folder / SIMULATION).rename(folder.parent / "store")
    (folder / SIMULATION).symlink_to("../store")
    evil = folder.parent / "precious.txt"  # where `../../precious.txt` leads from a scratch store in `res`
    evil.write_text("curl | sh")
    for ups in ("../../precious.txt", "../../../precious.txt"):
        sealed(folder.parent / "store", {ups: hashlib.sha256(evil.read_bytes()).hexdigest()})
    shutil.copy(evil, folder / "precious.txt")


def large(name):
    """A damage: a file of a tebibyte, which takes no space."""

    def damage(folder):
        os.truncate(folder / name, 2**40)

    return damage


def codec(name, **configuration):
    def change(content):
        content["codecs"].append({"name": name, "configuration": configuration})

    return metadata(change, variable="R")


R = {"variable": "R"}
HOSTILE = {
    "archive with links that stay inside": archive,
    "seal names a file above": names(**{"../../../precious.txt": "0" * 64}),
    "seal names a file by its absolute path": names(**{"/etc/hostname": "0" * 64}),
    "seal names a device": names(**{"/dev/zero": "0" * 64}),
    "seal names a device by dots": names(**{"../" * 30 + "dev/zero": "0" * 64}),
    "seal names a pipe": named_pipe,
    "seal names a folder": names(R="0" * 64),
    "seal names the store": names(**{".": "0" * 64, "": "0" * 64}),
    "seal with digests of another type": names(**{"R/zarr.json": 3}),
    "seal is a list": lambda folder: (folder / SIMULATION / "zarr.json").write_text(
        json.dumps({"attributes": {"sealed": ["zarr.json"]}, "zarr_format": 3, "node_type": "group"})
    ),
    "seal with a large file": lambda folder: (
        (folder / SIMULATION / "x").touch(),
        sealed(folder / SIMULATION, {"x": "0" * 64}),
        large(f"{SIMULATION}/x")(folder),
    ),
    "store is a link": link(SIMULATION, "store"),
    "theory is a link": link(THEORY, "store"),
    "store is a link to nothing": link(SIMULATION, "store/none"),
    "folder of a variable is a link": link(f"{SIMULATION}/R", "R"),
    "chunks of a variable are a link": link(f"{SIMULATION}/R/c", "chunks"),
    "chunk is a link": link(f"{SIMULATION}/R/c/0/0/0/0", "chunk"),
    "coordinate is a link": link(f"{SIMULATION}/eta/c/0", "eta"),
    "metadata of the group are a link": link(f"{SIMULATION}/zarr.json", "zarr.json"),
    "metadata of a variable are a device": link(f"{SIMULATION}/R/zarr.json", "../../../../../../../../dev/zero"),
    "chunk is a device": link(f"{SIMULATION}/R/c/0/0/0/0", "../../../../../../../../dev/zero"),
    "chunk is a pipe": pipe(f"{SIMULATION}/R/c/0/0/0/0"),
    "metadata of the group are a pipe": pipe(f"{SIMULATION}/zarr.json"),
    "chunk of theory is a pipe": pipe(f"{THEORY}/R/c/0/0/0"),
    "chunk of a tebibyte": large(f"{SIMULATION}/R/c/0/0/0/0"),
    "metadata of a tebibyte": large(f"{SIMULATION}/zarr.json"),
    "twin and figure are links": each(link(".simulation.zarr.new", "precious"), link("R.png", PRECIOUS)),
    "backup and report are links": each(link(".simulation.zarr.old", "precious"), link("report.html", PRECIOUS)),
    "log and table are links": each(link("simulation.log", PRECIOUS), link("R.tex", "../../none.txt")),
    "lock and caption are links, report is a pipe": each(
        link(".simulation.zarr.lock", PRECIOUS), link("R.txt", PRECIOUS), pipe("report.html")
    ),
    "data type string": metadata(lambda it: it.update(data_type="string", fill_value=""), **R),
    "data type int8": metadata(lambda it: it.update(data_type="int8", fill_value=0), **R),
    "data type unknown": metadata(lambda it: it.update(data_type="r8"), **R),
    "state of type string": metadata(lambda it: it.update(data_type="string", fill_value=""), variable="state"),
    "codec pickle": codec("numcodecs.pickle"),
    "codec unknown": codec("evil.codec"),
    "codecs none": metadata(lambda it: it.update(codecs=[]), **R),
    "variable without names of dimensions": metadata(lambda it: it.pop("dimension_names"), **R),
    "variable of other dimensions": metadata(lambda it: it.update(dimension_names=list("abcd")), **R),
    "variable of another shape": metadata(lambda it: it.update(shape=[2, 2, 7, 1]), **R),
    "variable of negative shape": metadata(lambda it: it.update(shape=[-2, 2, 2, 1]), **R),
    "variable of chunks of length 0": metadata(
        lambda it: it["chunk_grid"]["configuration"].update(chunk_shape=[0, 0, 0, 0]), **R
    ),
    "state of huge shape": metadata(lambda it: it.update(shape=[10**12, 10**12]), variable="state"),
    "state of one dimension": metadata(lambda it: it.update(shape=[2], dimension_names=["seed"]), variable="state"),
    "fingerprints of type string": metadata(
        lambda it: it.update(data_type="string", fill_value=""), variable="fingerprint"
    ),
    "fingerprints of another shape": metadata(lambda it: it.update(shape=[1, 1]), variable="fingerprint"),
    "coordinate of another type": metadata(lambda it: it.update(data_type="string", fill_value=""), variable="t"),
    "coordinate of another shape": metadata(lambda it: it.update(shape=[7]), variable="t"),
    "group without an array": lambda folder: (shutil.rmtree(folder / SIMULATION / "R"), sealed(folder / SIMULATION)),
    "group without state": lambda folder: (shutil.rmtree(folder / SIMULATION / "state"), sealed(folder / SIMULATION)),
    "group without a coordinate": lambda folder: (
        shutil.rmtree(folder / SIMULATION / "t"),
        sealed(folder / SIMULATION),
    ),
    "group of another format": metadata(lambda it: it.update(zarr_format=2)),
    "group is an array": metadata(lambda it: it.update(node_type="array")),
    "config is a list": config("[1, 2]"),
    "config is a number": config("3"),
    "config is no JSON": config("{"),
    "config is no text": attribute("config", {"rule": "hebb"}),
    "config is missing": metadata(lambda it: it["attributes"].pop("config")),
    "config nested 100,000 deep": config(DEEP),
    "config nested 900 deep": config('{"rule": ' + "[" * 900 + "]" * 900 + "}"),
    "config with an endless integer": config('{"rule": "hebb", "seeds": 1' + "0" * 5000 + "}"),
    "config of 10^12 seeds": config(lambda it: it.update(seeds=10**12)),
    "config of another rule": config(lambda it: it.update(rule="none")),
    "config with a path as its figure": config(lambda it: it.update(figure="../../precious")),
    "config with a device as its table": config(lambda it: it.update(inputs={"rows": "/dev/zero"})),
    "config of a theory is a list": config("[1, 2]", THEORY),
    "config of a theory nested 100,000 deep": config(DEEP, THEORY),
    "metadata nested 100,000 deep": lambda folder: (folder / SIMULATION / "zarr.json").write_text(DEEP),
    "versions are a list": attribute("versions", ["1.0"]),
    "versions are a list in JSON": attribute("versions", '["1.0"]'),
    "versions are no JSON": attribute("versions", "{"),
    "versions nested 100,000 deep": attribute("versions", DEEP),
    "earlier versions are a mapping": attribute("earlier", "{}"),
    "earlier versions are numbers": attribute("earlier", "[1]"),
    "code is a mapping of numbers": attribute("code", '{"a": 1}'),
    "versions are a number": attribute("versions", 3),
    "versions of a theory are a list": attribute("versions", ["1.0"], THEORY),
    "commit is a mapping": attribute("commit", {"a": 1}),
    "machine is a list": attribute("machine", [1]),
    "data are a list": attribute("data", ["a"]),
    "data are a text": attribute("data", "abc"),
    "chunks are a text": attribute("chunks", "abc"),
    "chunks are missing": metadata(lambda it: it["attributes"].pop("chunks")),
    "chunks are huge, and a file is missing": lambda folder: (
        attribute("chunks", [10**10, 10**10])(folder),
        (folder / SIMULATION / "R/zarr.json").unlink(),
    ),
    "chunks are zero, and a file is missing": lambda folder: (
        attribute("chunks", [0, 0])(folder),
        (folder / SIMULATION / "R/zarr.json").unlink(),
    ),
    "theory with a text for numbers": metadata(
        lambda it: it.update(data_type="string", fill_value=""), THEORY, variable="R"
    ),
    "theory without names of dimensions": metadata(lambda it: it.pop("dimension_names"), THEORY, variable="R"),
    "theory without a variable": lambda folder: (shutil.rmtree(folder / THEORY / "R"), sealed(folder / THEORY)),
    "theory without a coordinate": lambda folder: (shutil.rmtree(folder / THEORY / "t"), sealed(folder / THEORY)),
}


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("damage", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_folder_ends_every_command_with_one_line_and_changes_nothing_elsewhere(damage, unpacked, monkeypatch):
    damage(unpacked / "a/b/res")
    before, messages = everything(unpacked), []
    monkeypatch.setattr("statmech.cli.command_group.print", lambda message, file: messages.append(str(message)))
    for name, given in COMMANDS.items():
        code = statmech(*given)
        assert code in (0, 2) or (name == "verify" and code == 1), (name, messages)
        assert len(messages) == (code == 2), name
        message = messages.pop() if messages else ""
        print(f"{name}: {code} {message}")
        lines = message.splitlines()
        assert len(lines) <= 1 or "must be a number" in lines[-1] or "has no default" in lines[-1], name  # of a config
        assert len(message) < 1500, name
        assert everything(unpacked) == before, name


def test_an_archive_whose_links_stay_inside_it_overwrites_no_file_of_the_user(unpacked, monkeypatch, capsys):
    archive(unpacked / "a/b/res")
    before = everything(unpacked)
    assert statmech("simulate", "res") == 2
    sentence = "a store may contain ordinary files and folders only"
    assert capsys.readouterr().err == f"res/simulation.zarr: is a symbolic link; {sentence}\n"
    assert everything(unpacked) == before


@pytest.mark.parametrize(
    "name", ["../precious.txt", "R/../../precious.txt", "/etc/hostname", ".", "", "R//zarr.json", "./R/zarr.json"]
)
def test_a_seal_with_a_name_outside_the_store_is_none(name, unpacked):
    path = unpacked / "a/b/res" / SIMULATION
    sealed(path)
    assert checksums.find_corrupted_files(path) == []
    sealed(path, {name: hashlib.sha256(b"years of work").hexdigest()})
    assert checksums.find_corrupted_files(path) == ["zarr.json"]


def test_a_repair_writes_the_names_of_our_own_twin_alone_and_through_no_link(unpacked):
    path, twin = unpacked / "a/b/res" / SIMULATION, unpacked / "twin"
    shutil.copytree(path, twin)
    (twin / "R/stranger").symlink_to(unpacked / "precious.txt")
    (path / "t").rename(unpacked / "t")
    (path / "t").symlink_to(unpacked / "t")
    before = everything(unpacked)
    left = checksums.repair_files(path, ["t/zarr.json", "../../../precious.txt"], twin)
    assert "t/zarr.json" in left
    assert everything(unpacked) == before


def test_fresh_results_replace_links_themselves_and_not_what_they_point_to(unpacked, monkeypatch):
    for name, target in ((SIMULATION, "one"), (".simulation.zarr.old", "two"), (".simulation.zarr.new", "three")):
        link(name, target)(unpacked / "a/b/res")
        (unpacked / "a/b" / target).mkdir(exist_ok=True)
        (unpacked / "a/b" / target / "precious.txt").write_text("years of work")
    before = everything(unpacked)
    run_into(unpacked / "a/b/res" / SIMULATION, SWEEP, fresh=True)
    assert everything(unpacked) == before
    assert not (unpacked / "a/b/res" / SIMULATION).is_symlink()
    assert zarr_store.load(unpacked / "a/b/res" / SIMULATION).R.shape == (2, 2, 2, 1)
