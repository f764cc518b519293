"""Fifty simultaneous visitors of one explorer, repeatedly: how many are admitted, in which time and memory.

    python benchmarks/visitors.py           # four rounds, about three minutes on two cores
    python benchmarks/visitors.py --tiny    # one round of four visitors

A visitor requests the page with its token and joins its websocket, as a browser does, and draws nothing. All arrive at
the same time and leave together; the next round begins 20 seconds later.
"""

from __future__ import annotations

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
LEFT = 20.0  # seconds from one round to the next; without them at toy size


class Explorer(NamedTuple):
    """A running explorer: its process and the address that it printed."""

    process: subprocess.Popen[str]
    address: str

    @property
    def megabytes(self) -> float:
        """Its resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def request(self, token: bool = True, socket: bool = False) -> HTTPRequest:
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


async def visit(client: AsyncHTTPClient, explorer: Explorer, connected: list[Any]) -> tuple[int, float]:
    """The status of the answer to a visitor, and the seconds from the request to the first message of the websocket."""
    start = time.perf_counter()
    try:
        page = await client.fetch(explorer.request())
    except HTTPClientError as refused:
        return refused.code, time.perf_counter() - start
    token = re.search(r'"token":"([^"]+)"', page.body.decode())[1]
    joined = await websocket_connect(explorer.request(socket=True), subprotocols=["bokeh", token])
    await joined.read_message()
    connected.append(joined)
    return page.code, time.perf_counter() - start


async def rounds(explorer: Explorer, visitors: int, number: int, left: float) -> list[list[object]]:
    """A row per round: visitors admitted and refused, seconds until all were answered, memory, time of a refusal."""
    AsyncHTTPClient.configure(None, max_clients=2 * visitors)
    client, rows = AsyncHTTPClient(), list[list[object]]()
    for one in range(number):
        connected: list[Any] = []
        start = time.perf_counter()
        answers = await asyncio.gather(*[visit(client, explorer, connected) for _ in range(visitors)])
        took = time.perf_counter() - start
        codes = [code for code, _ in answers]
        held = explorer.megabytes
        for joined in connected:
            joined.close()
        await asyncio.sleep(left)
        rows.append(
            [one + 1, codes.count(200), codes.count(503), took, held, explorer.megabytes, await refusal(explorer)]
        )
    return rows


async def refusal(explorer: Explorer) -> float:
    """Milliseconds until a request without the token is refused."""
    start = time.perf_counter()
    answer = await AsyncHTTPClient().fetch(explorer.request(token=False), raise_error=False)
    assert answer.code == 403
    return 1e3 * (time.perf_counter() - start)


def main() -> None:
    tiny = timing.tiny(__doc__)
    print(timing.machine())
    explorer = started()
    with explorer.process:
        try:
            rows = asyncio.run(rounds(explorer, *((2, 1, 0.0) if tiny else (50, 4, LEFT))))
        finally:
            explorer.process.terminate()
            explorer.process.wait(60)
    header = [
        "round",
        "admitted",
        "refused (503)",
        "seconds",
        "MB, all connected",
        "MB, 20 s after they left",
        "no token, ms",
    ]
    timing.table(f"{'Two' if tiny else 'Fifty'} simultaneous visitors of the explorer", header, rows)


if __name__ == "__main__":
    main()
