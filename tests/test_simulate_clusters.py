"""Chunks simulated on workers have the bits of a run in memory, whatever dies; and every wait ends."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import socket
import sys
import time

import numpy as np
import pytest
from conftest import assert_same_bits, quick_children

import simulate
from simulate.execution import dask_cluster
from simulate.execution.dask_cluster import check_cluster_name, run_on_cluster
from simulate.execution.store_simulation import run_into
from statmech import RULES, Boosting, ClusterError, ConfigError, Scenario, StoredExamples
from statmech.cli import main
from statmech.config import user_files
from statmech.runtime.installed_packages import MissingExtraError
from statmech.stores import zarr_store
from statmech.stores.store_status import read_status

dask = pytest.importorskip("dask", reason="needs pip install 'statmech[cluster]'")
distributed = pytest.importorskip("distributed", reason="needs pip install 'statmech[cluster]'")
psutil = pytest.importorskip("psutil", reason="comes with Dask")

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_chunks")]  # Dask alone takes eight seconds to import

SWEEP = {"rule": "perceptron", "eta": [0.5, 1], "N": [50, 70], "t": [0, 1], "seeds": 6}
STORED = {"learner": ["hebb", "max_stability"], "N": [50, 70], "alpha": 1.0, "seeds": 6}  # compiles nothing
USER_RULES = """
import os
from dataclasses import dataclass
from statmech import RULES, Rule

@dataclass(frozen=True)
class Brittle(Rule):
    label = "brittle"
    kinks = ()
    def g(self, kappa, length):
        raise RuntimeError("no such modulation")

@dataclass(frozen=True)
class Deadly(Brittle):
    label = "deadly"
    def g(self, kappa, length):
        os._exit(1)

RULES |= {"brittle": Brittle, "deadly": Deadly}
"""
EDITED = """
from dataclasses import dataclass
from statmech import RULES, Rule

@dataclass(frozen=True)
class Edited(Rule):
    label, kinks = "edited", ()
    def g(self, kappa, length):
        return {factor} + 0 * kappa

RULES["edited"] = Edited
"""


@pytest.fixture(scope="module")
def user_rules(tmp_path_factory):
    """A file of rules that workers load at their start."""
    file = tmp_path_factory.mktemp("rules") / "user_rules.py"
    file.write_text(USER_RULES)
    return file


@pytest.fixture
def known_here(user_rules):
    before = dict(RULES)
    spec = importlib.util.spec_from_file_location("user_rules", user_rules)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    yield
    RULES.clear()
    RULES.update(before)


def started(workers, **config):
    """A scheduler on the loopback interface with its workers."""
    with dask.config.set({"logging": dask_cluster.SILENT_LOG_LEVELS, **config}):
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=50,
        )


@pytest.fixture
def quick_workers():
    """Workers that start compile with few optimisations, as their test does."""
    with quick_children():
        yield


@pytest.fixture(scope="module")
def scheduler(user_rules):
    """The address of a scheduler with two workers, which compile with few optimisations."""
    with quick_children():
        cluster = started(2, **{"distributed.worker.preload": [str(user_rules)]})
    yield cluster.scheduler_address
    cluster.close(timeout=20)


@pytest.mark.quick
@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(**SWEEP),
        Boosting(booster="adaboost", N=6, s=[1, 3], P=[20, 40], tests=100, seeds=2),
        StoredExamples(learner=["minover", "perceptron"], N=10, alpha=[1, 2], epochs=[1, 5], seeds=3),
    ],
    ids=lambda scenario: scenario.CHOICE,
)
def test_a_sweep_on_workers_has_the_bits_of_one_in_memory(scenario, path, scheduler):
    outcome = run_on_cluster(scheduler, path, scenario)
    assert outcome.missing == outcome.failed == 0
    assert_same_bits(path, scenario)


@pytest.mark.quick
def test_a_rule_that_raises_on_a_worker_is_recorded_and_stops_no_other_run(path, scheduler, known_here):
    scenario = Scenario(rule=["hebb", "brittle", "perceptron"], N=50, t=[1], seeds=3)
    assert run_on_cluster(scheduler, path, scenario) == (6, 3, 0)
    failures = read_status(path)["failures"]
    assert [event["attempt"] for event in failures] == [2, 3]
    assert "RuntimeError: no such modulation" in failures[-1]["error"]
    assert np.isfinite(zarr_store.load(path).R.sel(rule=["hebb", "perceptron"])).all()


@pytest.mark.quick
def test_a_living_worker_loads_an_edited_file_again(path, scheduler, tmp_path, monkeypatch):
    """The first run loads the file on the workers; the second must not get the old rule from them."""
    file = tmp_path / "edited.py"
    monkeypatch.setattr(user_files, "_loaded_modules", {})
    monkeypatch.setitem(RULES, "edited", None)
    lengths = []
    for factor in (1.0, 3.0):
        file.write_text(EDITED.format(factor=factor))
        user_files.load_plugin(file)
        scenario = Scenario(rule="edited", N=50, t=[1], seeds=6)
        assert run_on_cluster(scheduler, path, scenario, fresh=True) == (6, 0, 0)
        assert_same_bits(path, scenario)
        lengths.append(zarr_store.load(path).length)
    assert (lengths[1] > 1.5 * lengths[0]).all()


def stranger(address, security=None):
    """The process that another user with nothing but the port runs code in; None if the connection is refused."""
    try:
        with distributed.Client(address, timeout=4, set_as_default=False, security=security) as client:
            return client.run_on_scheduler(os.getpid)
    except OSError:
        return None


@pytest.mark.timeout(120)
def test_other_users_of_the_machine_cannot_run_code_in_a_local_cluster(scheduler):
    assert stranger(scheduler) == os.getpid()  # the port of a cluster without a key is enough
    cluster, _ = dask_cluster._start_local_cluster("1")
    try:
        port = cluster.scheduler_address.rpartition(":")[2]
        worker = next(iter(cluster.scheduler_info["workers"]))
        assert stranger(cluster.scheduler_address, cluster.security) == os.getpid()
        assert stranger(f"tcp://127.0.0.1:{port}") is None
        assert stranger(f"tls://127.0.0.1:{port}", distributed.Security.temporary()) is None
        assert worker.startswith("tls://")
    finally:
        cluster.close(timeout=20)


def worker_processes():
    """The child processes that are workers; one that ends during the query is omitted."""
    found = []
    for one in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found += [one] if "spawn_main" in " ".join(one.cmdline()) else []
    return found


@pytest.mark.timeout(120)
def test_workers_that_are_killed_repeatedly_change_no_bit(path):
    """First all, with results that nobody has fetched, and then one of the next."""
    scenario = StoredExamples(learner="max_stability", alpha=[0.5, 0.75, 1, 1.25, 1.5, 2], N=20, seeds=128)
    before, kills, rng = {one.pid for one in worker_processes()}, [], random.Random(0)

    def kill(event):
        mine = [one for one in worker_processes() if one.pid not in before]
        if event["event"] == "written" and len(kills) < 3 and mine:
            time.sleep(0 if kills else 3.0)  # the next chunks have ended
            chosen = [rng.choice(mine)] if kills else mine
            for one in chosen:
                with contextlib.suppress(psutil.NoSuchProcess):  # it has ended meanwhile
                    one.kill()
                    kills.append(one)

    outcome = run_on_cluster("local:2", path, scenario, tell=kill)
    assert len(kills) == 3
    assert outcome == (6 * 128, 0, 0)
    assert_same_bits(path, scenario)
    assert not [one for one in worker_processes() if one.pid not in before]


@pytest.mark.quick
@pytest.mark.usefixtures("quick_workers")
@pytest.mark.timeout(120)
def test_a_chunk_that_kills_its_workers_fails_alone(path, user_rules, known_here, monkeypatch):
    monkeypatch.setattr("statmech.stores.sweep_chunks.TARGET_CHUNK_SECONDS", 1e-6)
    scenario = Scenario(rule=["hebb", "deadly", "perceptron"], N=50, t=[1], seeds=3)
    preload = {"distributed.worker.preload": [str(user_rules)], "distributed.scheduler.allowed-failures": 1}
    with dask.config.set(preload):
        assert run_on_cluster("local:2", path, scenario) == (6, 3, 0)
    assert "died repeatedly" in read_status(path)["failures"][-1]["error"]
    same_of = Scenario(rule=["hebb", "perceptron"], N=50, t=[1], seeds=3)
    np.testing.assert_array_equal(zarr_store.load(path).R.sel(rule=["hebb", "perceptron"]), simulate.run(same_of).R)


@pytest.mark.timeout(120)
def test_a_scheduler_that_dies_loses_no_written_chunk(path, monkeypatch):
    """All optimisations of the compiler leave the bits on workers those in memory."""
    monkeypatch.setattr(dask_cluster, "ANSWER_TIMEOUT_SECONDS", 3.0)
    scenario, cluster, written = Scenario(**SWEEP | {"rule": "adatron"}), started(1), []

    def end(event):
        if event["event"] == "written" and not written:
            written.append(event["block"])
            cluster.close(timeout=20)

    begun = time.monotonic()
    with pytest.raises(ClusterError, match="rerun the same command to resume"):
        run_on_cluster(cluster.scheduler_address, path, scenario, tell=end)
    assert time.monotonic() - begun < 60
    assert read_status(path)["done"] > 0
    run_into(path, scenario)
    assert_same_bits(path, scenario)


class AnsweredByNobody:
    """A finished task of a scheduler that dies before its result is fetched."""

    status = "finished"

    def result(self, timeout):
        raise distributed.comm.core.CommClosedError("the connection is closed")


def test_a_scheduler_that_dies_before_a_result_is_fetched_is_not_a_fault_of_files():
    workers = dask_cluster.DaskWorkers(None, "tcp://127.0.0.1:8786", 1.0, lambda: None)
    with pytest.raises(ClusterError, match=r"scheduler is gone \(CommClosedError\).*rerun the same command"):
        workers._get_task_result(AnsweredByNobody())


class Late:
    """A finished task whose result arrives after half a minute."""

    status = "finished"

    def result(self, timeout):
        if timeout < 30:
            raise TimeoutError
        return "late"


def test_a_result_that_a_busy_machine_sends_late_is_waited_for():
    """Half of the runs whose workers were killed ended after eight seconds, at a load of 8: "the scheduler is gone"."""
    workers = dask_cluster.DaskWorkers(None, "tcp://127.0.0.1:8786", 1.0, lambda: None)
    assert workers._get_task_result(Late()) == "late"


def test_without_workers_a_run_ends_in_time_and_its_store_is_intact(path):
    scenario, cluster = StoredExamples(**STORED), started(0)
    with pytest.raises(ClusterError, match="no worker has been active for 3 seconds") as failure:
        run_on_cluster(cluster.scheduler_address, path, scenario, patience=3)
    cluster.close(timeout=20)
    assert failure.value.status == 1
    assert read_status(path)["missing"] == 24
    run_into(path, scenario)
    assert_same_bits(path, scenario)


def test_a_scheduler_that_does_not_answer_is_reported_within_seconds(in_scratch, monkeypatch, capsys):
    monkeypatch.setattr(dask_cluster, "ANSWER_TIMEOUT_SECONDS", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setattr(sys, "argv", ["statmech", "simulate", "ensemble", "--dask", where])
        begun = time.monotonic()
        with pytest.raises(SystemExit, match="2"):
            main()
    assert time.monotonic() - begun < 20
    assert capsys.readouterr().err.startswith(f"--dask {where}: the scheduler does not answer")
    assert not list(in_scratch.iterdir())


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("ssh://host", "is not a cluster. Known: local, "),
        ("local:0", "is not a cluster"),
        ("local:two", "is not a cluster"),
        ("tcp:", "is not a cluster"),
        ("tcp://", "is not a cluster"),
        ("slurm:nowhere.yaml", "no such file"),
    ],
)
def test_a_name_that_is_not_a_cluster_is_refused(where, message):
    with pytest.raises(ConfigError, match=message):
        check_cluster_name(where)


def test_without_dask_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"a Dask cluster needs distributed: pip install .*\[cluster\]'"):
        check_cluster_name("local")


@pytest.mark.parametrize("options", [["--shard", "1/2"], ["--memory", "1GiB"]])
def test_dask_and_the_options_it_replaces_are_mutually_exclusive(options, in_scratch, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["statmech", "simulate", "ensemble", "--dask", "local", *options])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "omit --shard and --memory" in capsys.readouterr().err
    assert not list(in_scratch.iterdir())
