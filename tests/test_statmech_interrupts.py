"""An interrupt ends a command even where Python swallows exceptions, or where an exception would crash it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

BEGIN = """
import os, signal, sys
from statmech import cli

signal.signal(signal.SIGINT, signal.default_int_handler)
sent = int(sys.argv.pop())

def send():
    os.kill(os.getpid(), sent)
    for _ in range(1000):  # here the signal becomes an exception
        pass
"""

SWALLOWED = """
from statmech.cli import command_group as commands

class Collected:
    def __del__(self):
        send()  # Python prints and forgets the exception

def begun(*_):
    Collected()
    print("went on", flush=True)

commands.app = begun
"""

# compiled libraries that create Python types while they are loaded crash if one of these raises an exception
IMPORTING = """
class Finder:
    def find_spec(name, *_):
        if name == "typer":
            try:
                send()
            except BaseException:
                os.abort()

sys.meta_path.insert(0, Finder)
"""

PREPARING = """
import typer.main

typer.main.get_command = lambda app: send()
"""


@pytest.mark.parametrize("where", [SWALLOWED, IMPORTING, PREPARING], ids=["swallowed", "importing", "preparing"])
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_the_command_with_one_message(where, sent, code):
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + where + "\ncli.main()", str(int(sent))],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "STATMECH_CACHE": "off"},
    )
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr == "Interrupted. Completed work is saved; rerun the command to resume.\n"


LEAVING = """
import atexit, sys, threading, time
from statmech.cli import interrupts
atexit.register(print, "exit functions")
threading.Thread(target=lambda: (time.sleep(0.2), print("threads"))).start()
print("output")
interrupts.exit_without_unloading(3)
"""


def test_a_command_that_leaves_waits_for_threads_calls_exit_functions_and_writes_its_output():
    done = subprocess.run([sys.executable, "-c", LEAVING], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split("\n")) == (3, ["output", "threads", "exit functions", ""]), done.stderr


def test_output_that_nobody_reads_ends_a_command_with_the_exit_code_of_python():
    command = "from statmech.cli import interrupts; print('lost'); interrupts.exit_without_unloading(0)"
    read, written = os.pipe()
    os.close(read)
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}  # or printing itself would fail
    done = subprocess.run([sys.executable, "-c", command], stdout=written, env=buffered, timeout=60)
    os.close(written)
    assert done.returncode == 120
