"""Jobs of SLURM, on loopback: a worker's job is cancelled in the middle, and no bit changes.

A real SLURM of one machine needs slurmctld and slurmd, installed, or unpacked into the folder that STATMECH_SLURM
names. Elsewhere its commands are scripts that start a job in the background and end it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest
from conftest import assert_same_bits

import simulate
from statmech import ConfigError, Scenario, load
from statmech.stores import zarr_store
from statmech.stores.store_status import read_status

pytest.importorskip("dask_jobqueue", reason="needs pip install 'statmech[cluster]'")
pytest.importorskip("distributed", reason="needs pip install 'statmech[cluster]'")
ROOT = Path(os.environ.get("STATMECH_SLURM", "/"))
PLACES = [ROOT / place for place in ("usr/bin", "usr/sbin", "usr/lib/x86_64-linux-gnu/slurm-wlm")]
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
PluginDir={plugins}
StateSaveLocation={state}
SlurmdSpoolDir={state}/spool
SlurmctldPidFile={state}/ctld.pid
SlurmdPidFile={state}/d.pid
SlurmctldLogFile={state}/ctld.log
SlurmdLogFile={state}/d.log
SlurmctldPort={port}
SlurmdPort={other}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=10
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=cpu Nodes={host} Default=YES MaxTime=01:00:00 State=UP
"""
JOBS = """
jobs: 2
cores: 1
processes: 1
memory: 1GB
walltime: "00:10:00"
queue: {queue}
interface: lo
job_extra_directives: ["--mem=0"]
log_directory: {logs}
"""


def program(name):
    """The path of a SLURM program; Debian renames the daemons."""
    found = (shutil.which(one, path=":".join(map(str, PLACES))) for one in (name, f"{name}-wlm"))
    return next((one for one in found if one), None)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A SLURM with two cores."""
    if not (program("slurmctld") and program("slurmd")):
        pytest.skip("needs slurmctld and slurmd (Debian: slurmctld, slurmd, slurm-client), or STATMECH_SLURM")
    ports = [_free_port() for _ in range(2)]
    host, state = socket.gethostname(), tmp_path / "slurm"
    (state / "spool").mkdir(parents=True)
    conf = tmp_path / "slurm.conf"
    names = {"host": host, "user": os.environ.get("USER", "root"), "state": state, "plugins": PLACES[2]}
    conf.write_text(CONF.format(port=ports[0], other=ports[1], **names))
    monkeypatch.setenv("SLURM_CONF", str(conf))
    monkeypatch.setenv("PATH", f"{PLACES[0]}:{os.environ['PATH']}")
    if Path("/") != ROOT:
        monkeypatch.setenv("LD_LIBRARY_PATH", f"{PLACES[2].parent}:{PLACES[2]}")
    with ExitStack() as ending:
        for name, more in (("slurmctld", []), ("slurmd", ["-d", program("slurmstepd")])):
            daemon = subprocess.Popen([program(name), "-D", "-f", str(conf), *more], stderr=subprocess.DEVNULL)
            ending.callback(daemon.wait, timeout=20)
            ending.callback(daemon.terminate)
        _await(lambda: "idle" in _output("sinfo"), 30)
        yield


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def _output(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout


def _await(ready, seconds):
    until = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < until, "waited for too long"
        time.sleep(0.5)


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_cancelled_job_costs_the_time_of_its_chunks_and_no_bit(slurm, tmp_path, monkeypatch):
    from simulate.execution.dask_cluster import run_on_cluster

    monkeypatch.setattr("statmech.stores.sweep_chunks.TARGET_CHUNK_SECONDS", 1e-3)
    scenario = Scenario(rule=["hebb", "perceptron", "adatron"], K=[1, 2, 3], N=50, t=[0, 100], seeds=128)
    (tmp_path / "jobs.yaml").write_text(JOBS.format(queue="cpu", logs=tmp_path / "logs"))
    cancelled = []

    def cancel(event):
        if event["event"] == "written" and not cancelled:
            cancelled.append(_output("squeue", "-h", "-t", "R", "-o", "%i").split()[0])
            _output("scancel", cancelled[0])

    path = tmp_path / "simulation.zarr"
    assert run_on_cluster(f"slurm:{tmp_path / 'jobs.yaml'}", path, scenario, tell=cancel, patience=90) == (
        9 * 128,
        0,
        0,
    )
    assert cancelled
    assert read_status(path)["missing"] == 0
    found, expected = zarr_store.load(path), simulate.run(scenario)
    for name in expected.variables:
        np.testing.assert_array_equal(found[name].values, expected[name].values)


@pytest.mark.slow
@pytest.mark.timeout(100)
def test_a_job_that_slurm_rejects_is_one_message(slurm, tmp_path):
    from simulate.execution.dask_cluster import run_on_cluster

    (tmp_path / "jobs.yaml").write_text(JOBS.format(queue="nowhere", logs=tmp_path / "logs"))
    scenario = Scenario(rule="hebb", N=50, t=[1], seeds=2)
    with pytest.raises(ConfigError, match=r"SLURM rejected the job: .*nowhere"):
        run_on_cluster(f"slurm:{tmp_path / 'jobs.yaml'}", tmp_path / "simulation.zarr", scenario)
    assert not (tmp_path / "simulation.zarr").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "wrong", "message"),
    [
        ("interface: lo", "interface: ib7", "'ib7' is not a valid network interface"),
        ("jobs: 2", "jobs: 0", "jobs must be at least 1, not 0"),
    ],
)
def test_a_description_of_jobs_that_cannot_start_is_one_message(line, wrong, message, tmp_path):
    from simulate.execution.dask_cluster import _start_slurm_cluster

    (tmp_path / "jobs.yaml").write_text(JOBS.format(queue="cpu", logs=tmp_path).replace(line, wrong))
    with pytest.raises(ConfigError, match=rf"jobs.yaml: is not a valid SLURM cluster description: .*{message}"):
        _start_slurm_cluster(tmp_path / "jobs.yaml")


@pytest.mark.slow
def test_no_job_is_submitted_before_an_interrupt_would_cancel_it(tmp_path, monkeypatch):
    """Those that were submitted while the cluster started outlived a command that was interrupted meanwhile."""
    from simulate.execution import dask_cluster

    monkeypatch.setattr(dask_cluster, "_test_slurm_submission", lambda file, cluster: None)
    (tmp_path / "jobs.yaml").write_text(JOBS.format(queue="cpu", logs=tmp_path))
    cluster, _ = dask_cluster._start_slurm_cluster(tmp_path / "jobs.yaml")
    try:
        assert cluster.worker_spec == {}
    finally:
        cluster.close(timeout=20)


COMMANDS = {  # a job is a process group: its number is that of the process
    "sbatch": """#!/bin/bash
test "$1" = --test-only && exit
cp "$1" "$0.$$"
setsid bash "$0.$$" >"$0.$$.out" 2>&1 &
touch "{started}/$!"
echo "Submitted batch job $!"
""",
    "scancel": """#!/bin/bash
kill -KILL -- "-$1" && touch "{cancelled}/$1"
""",
}
SWEEP = {
    "learner": ["hebb", "max_stability"],
    "N": [50, 70],
    "alpha": 1.0,
    "figure": "overlay",
}  # compiles nothing


@pytest.fixture
def start_on_slurm(tmp_path):
    """A function that starts the command on jobs of a replaced SLURM, in a process that has imported nothing."""
    folders = {name: tmp_path / name for name in ("bin", "started", "cancelled")}
    for folder in folders.values():
        folder.mkdir()
    for name, script in COMMANDS.items():
        (folders["bin"] / name).write_text(script.format(**folders))
        (folders["bin"] / name).chmod(0o700)
    (tmp_path / "jobs.yaml").write_text(JOBS.format(queue="cpu", logs=tmp_path))
    environment = os.environ | {"PATH": f"{folders['bin']}:{os.environ['PATH']}"}

    def start(seeds):
        (tmp_path / "sweep.yaml").write_text(json.dumps(SWEEP | {"seeds": seeds}))
        command = [
            sys.executable,
            "-m",
            "statmech",
            "simulate",
            "sweep.yaml",
            "--out",
            "out",
            "--dask",
            "slurm:jobs.yaml",
        ]
        return subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)

    yield start
    for job in folders["started"].iterdir():
        with suppress(ProcessLookupError):
            os.killpg(int(job.name), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_fresh_process_has_the_bits_of_its_own_runs_from_jobs_and_no_message_of_dask(start_on_slurm, tmp_path):
    with ExitStack() as taken:
        with suppress(OSError):  # Dask would report that its HTTP server has another port than this
            taken.enter_context(socket.create_server(("", 8787)))
        process = start_on_slurm(seeds=6)
        messages = process.communicate(timeout=150)[1]
    assert messages.splitlines() == ["simulating 24 runs", "wrote out/simulation.zarr"]
    assert process.returncode == 0
    assert_same_bits(tmp_path / "out/simulation.zarr", load(tmp_path / "sweep.yaml"))


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_an_interrupt_of_a_fresh_process_cancels_its_jobs_and_has_the_exit_code_of_ctrl_c(start_on_slurm, tmp_path):
    process, log = start_on_slurm(seeds=20_000), tmp_path / "out/simulation.log"
    _await(lambda: process.poll() is not None or (log.exists() and '"written"' in log.read_text()), 100)
    process.send_signal(signal.SIGINT)
    messages = process.communicate(timeout=60)[1]
    assert messages.endswith("Interrupted. Completed work is saved; rerun the command to resume.\n")
    assert process.returncode == 130
    started, cancelled = ({job.name for job in (tmp_path / name).iterdir()} for name in ("started", "cancelled"))
    assert started == cancelled
    assert len(started) == 2
