"""Fifty visitors of one explorer at once, again and again: how many are let in, and what time and memory that takes.

    python benchmarks/visitors.py           # four rounds, about three minutes on two cores
    python benchmarks/visitors.py --tiny    # one round of four visitors

A visitor asks for the page with its token and joins its websocket, as a browser does, and draws nothing. All arrive at
the same time and leave together; after 20 seconds the next round begins.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import timing
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

ROOT = Path(__file__).parent.parent
PATIENCE = 300.0  # seconds that a visitor waits
LEFT = 20.0  # seconds from one round to the next


class Explorer(NamedTuple):
    """A running explorer: its process and the address that it printed."""

    process: subprocess.Popen[str]
    address: str

    @property
    def megabytes(self) -> float:
        """The memory that it holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def asked(self, token: bool = True, socket: bool = False) -> HTTPRequest:
        """A request for the page, or for its websocket."""
        base, shown = self.address.split("/?token=")
        port = base.rpartition(":")[2]
        url = f"{base.replace('http', 'ws')}/ws" if socket else self.address if token else base
        headers = {"Cookie": f"statmech-{port}={shown}", "Origin": base} if socket else {}
        return HTTPRequest(url, headers=headers, request_timeout=PATIENCE, connect_timeout=PATIENCE)


def started() -> Explorer:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "statmech.cli", "explore", "--no-browser", "--port", str(5500 + os.getpid() % 400)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    return Explorer(process, re.search(r"http://\S+", process.stdout.readline())[0])


async def visit(client: AsyncHTTPClient, explorer: Explorer, here: list[Any]) -> tuple[int, float]:
    """The status that a visitor is answered, and the seconds from asking to the websocket's first word."""
    begun = time.perf_counter()
    try:
        page = await client.fetch(explorer.asked())
    except HTTPClientError as refused:
        return refused.code, time.perf_counter() - begun
    token = re.search(r'"token":"([^"]+)"', page.body.decode())[1]
    joined = await websocket_connect(explorer.asked(socket=True), subprotocols=["bokeh", token])
    await joined.read_message()
    here.append(joined)
    return page.code, time.perf_counter() - begun


async def rounds(explorer: Explorer, visitors: int, number: int) -> list[list[object]]:
    """A row per round: visitors let in and refused, seconds until all were answered, memory, time of a refusal."""
    AsyncHTTPClient.configure(None, max_clients=2 * visitors)
    client, rows = AsyncHTTPClient(), list[list[object]]()
    for one in range(number):
        here: list[Any] = []
        begun = time.perf_counter()
        answers = await asyncio.gather(*[visit(client, explorer, here) for _ in range(visitors)])
        took = time.perf_counter() - begun
        codes = [code for code, _ in answers]
        held = explorer.megabytes
        for joined in here:
            joined.close()
        await asyncio.sleep(LEFT)
        rows.append(
            [one + 1, codes.count(200), codes.count(503), took, held, explorer.megabytes, await refusal(explorer)]
        )
    return rows


async def refusal(explorer: Explorer) -> float:
    """Milliseconds until a request without the token is refused."""
    begun = time.perf_counter()
    answer = await AsyncHTTPClient().fetch(explorer.asked(token=False), raise_error=False)
    assert answer.code == 403
    return 1e3 * (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    tiny = parser.parse_args().tiny
    print(timing.machine())
    explorer = started()
    try:
        rows = asyncio.run(rounds(explorer, *((4, 1) if tiny else (50, 4))))
    finally:
        explorer.process.terminate()
        explorer.process.wait(60)
    header = ["round", "let in", "refused (503)", "seconds", "MB, all here", "MB, 20 s after they left", "no token, ms"]
    timing.table("Visitors of the explorer", header, rows)


if __name__ == "__main__":
    main()
