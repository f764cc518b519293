"""An HTTP server whose file descriptors and log cannot be filled by incomplete requests.

Another user of the same machine needs no token to open connections and send half a request on each.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPConnection, HTTPHeaders, HTTPMessageDelegate
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream

MAX_WAITING_CONNECTIONS = 64  # a browser opens up to six connections at once
REQUEST_TIMEOUT_SECONDS = 20  # for the header of a request, and again for its body
NO_DESCRIPTOR_PAUSE_SECONDS = 1.0
MAX_BODY_BYTES = 2**16  # valid requests have no body


class ConnectionLimitedServer(HTTPServer):
    """HTTP server that limits the number of connections without a complete request.

    A new connection replaces the oldest one.
    """

    def initialize(self, *args: Any, **options: Any) -> None:
        limits = {"idle_connection_timeout": REQUEST_TIMEOUT_SECONDS, "body_timeout": REQUEST_TIMEOUT_SECONDS}
        super().initialize(*args, **{**options, **limits, "max_body_size": MAX_BODY_BYTES})
        self.waiting_streams: dict[IOStream, None] = {}  # oldest first

    def accept_from(self, listener: socket.socket) -> None:
        """Accept the connections of a listening socket."""
        IOLoop.current().add_handler(listener, self._accept, IOLoop.READ)

    def _accept(self, listener: Any, events: int) -> None:
        """Accept one connection, or pause while no file descriptor is free.

        Tornado would retry without a pause.
        """
        try:
            connection, address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:
            loop = IOLoop.current()
            loop.remove_handler(listener)
            loop.call_later(NO_DESCRIPTOR_PAUSE_SECONDS, self.accept_from, listener)
            return
        self._handle_connection(connection, address)

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        self._register_waiting_stream(stream)
        super().handle_stream(stream, address)

    def start_request(self, server_conn: Any, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        stream = server_conn.stream
        self._register_waiting_stream(stream)
        return _ArrivalReportingRequest(
            super().start_request(server_conn, request_conn), lambda: self.waiting_streams.pop(stream, None)
        )

    def on_close(self, server_conn: Any) -> None:
        self.waiting_streams.pop(server_conn.stream, None)
        super().on_close(server_conn)

    def _register_waiting_stream(self, stream: IOStream) -> None:
        self.waiting_streams[stream] = None
        if len(self.waiting_streams) > MAX_WAITING_CONNECTIONS:
            oldest = next(iter(self.waiting_streams))
            del self.waiting_streams[oldest]
            oldest.close()


class _ArrivalReportingRequest(HTTPMessageDelegate):
    """A request that calls `on_arrival()` when it is complete."""

    def __init__(self, request: HTTPMessageDelegate, on_arrival: Callable[[], Any]):
        self.request, self.on_arrival = request, on_arrival

    def headers_received(self, start_line: Any, headers: HTTPHeaders) -> Awaitable[None] | None:
        return self.request.headers_received(start_line, headers)

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        return self.request.data_received(chunk)

    def finish(self) -> None:
        self.on_arrival()
        self.request.finish()

    def on_connection_close(self) -> None:
        self.request.on_connection_close()
