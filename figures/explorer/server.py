"""The explorer's web server, which admits only local browsers and limits connections and pages.

Access: a browser needs the token in the printed address. Panel's own server answers any host name, and its websocket
accepts any origin that equals the host name.

Connections: another user of the same machine needs no token to open connections and send half a request on each. Such
incomplete requests can fill neither the server's file descriptors nor its log.
"""

from __future__ import annotations

import contextlib
import gc
import hmac
import logging
import os
import secrets
import signal
import socket
import threading
import webbrowser
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import panel as pn
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.util.token import check_token_signature, get_session_id
from panel.io import document as panel_document
from panel.io.application import build_applications
from panel.io.resources import DIST_DIR
from panel.io.server import WSHandler, get_static_routes
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPConnection, HTTPHeaders, HTTPMessageDelegate
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream
from tornado.web import OutputTransform, RequestHandler

from figures.interactive.typeface import make_font_css
from statmech.errors import ConfigError

LOCALHOST = "127.0.0.1"
WEBSOCKET_PATH = "/ws"
STATIC_PATHS = ("/static/", "/components/", "/favicon.ico")  # the only other paths that are served
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",  # prevents clickjacking by a site that embeds this page
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address contains the token
}
StatusAndMessage = tuple[HTTPStatus, str]


class RequestGuard:
    """Guard that checks requests against the token and host names of one server.

    Another site can let its name resolve to 127.0.0.1 (DNS rebinding). Browsers then send that name as Host and as
    Origin. The two are then equal, so Host is compared with the server's own names.
    """

    def __init__(self, port: int):
        self.token = secrets.token_urlsafe(32)
        self.cookie = f"statmech-{port}"  # browsers share cookies between the ports of a host
        self.hosts = {f"{name}:{port}" for name in (LOCALHOST, "localhost")}
        if port == 80:  # browsers omit the default port
            self.hosts |= {LOCALHOST, "localhost"}
        page = f"http://{LOCALHOST}:{port}/?token="
        self.address = page + self.token
        self.sentence = f"Open the whole address that `statmech explore` printed when it started: {page}..."

    def check_request(self, request: Any) -> StatusAndMessage | None:
        """Return the status and message of a rejected request, or None if the request is accepted."""
        if request.host.lower() not in self.hosts:
            return HTTPStatus.FORBIDDEN, f"This page is served as {' and '.join(sorted(self.hosts))} only."
        origin = request.headers.get("Origin")
        if origin != f"http://{request.host}" and (origin is not None or request.path == WEBSOCKET_PATH):
            return HTTPStatus.FORBIDDEN, "This page does not answer requests from other pages."
        if not (self.has_token_in_address(request) or self._has_token_cookie(request)):
            return HTTPStatus.FORBIDDEN, self.sentence
        if request.method not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED, "This page can only be read."
        if request.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in request.headers:
            return HTTPStatus.BAD_REQUEST, "Requests to this page must not have a body."
        if request.path not in ("/", WEBSOCKET_PATH) and not request.path.startswith(STATIC_PATHS):
            return HTTPStatus.NOT_FOUND, "This page does not exist."
        return None

    def has_token_in_address(self, request: Any) -> bool:
        """Return True if the address of a request contains the token."""
        return any(self._is_valid_token(value) for value in request.query_arguments.get("token", []))

    def _has_token_cookie(self, request: Any) -> bool:
        cookie = request.cookies.get(self.cookie)
        return cookie is not None and self._is_valid_token(cookie.value.encode())

    def _is_valid_token(self, value: bytes) -> bool:
        return hmac.compare_digest(value, self.token.encode())


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


DEFAULT_PORT = 5006
MAX_OPEN_PAGES = 20  # every open page keeps charts and datasets in memory
LOADING_TIMEOUT_SECONDS = 60  # for a loaded page to open its websocket
RECONNECT_TIMEOUT_SECONDS = 10  # a disconnected page may reconnect until it is discarded
PAGE_LEFT_WEBSOCKET_CODE = 1001  # browsers close the websocket of a closed or left page with this code
UNUSED_PAGE_CHECK_SECONDS = 2  # interval between checks for pages to discard
SESSION_TOKEN_LIFETIME_SECONDS = 7 * 24 * 3600  # one week: a page may reconnect while its session exists
STOPPED_MESSAGE = "statmech explore: stopped"
TOO_MANY_PAGES_TEMPLATE = "{} pages are open already. Close one and reload this page after {} seconds."


class RefusalHandler(RequestHandler):
    """Handler that answers a rejected request with one sentence."""

    def initialize(self, status: HTTPStatus, sentence: str) -> None:
        self.status, self.sentence = status, sentence

    def prepare(self) -> None:
        self.set_status(self.status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{self.sentence}\n")


class SecurityHeaderTransform(OutputTransform):
    """Transform that adds security headers to every response.

    A cookie holds the token, so that the page's own requests need not contain it.
    """

    def __init__(self, guard: RequestGuard, request: Any):
        self.guard, self.sets_cookie = (
            guard,
            guard.check_request(request) is None and guard.has_token_in_address(request),
        )

    def transform_first_chunk(
        self, status_code: int, headers: Any, chunk: bytes, finishing: bool
    ) -> tuple[int, Any, bytes]:
        for name, value in SECURITY_HEADERS.items():
            headers[name] = value
        if self.sets_cookie:
            headers.add("Set-Cookie", f"{self.guard.cookie}={self.guard.token}; HttpOnly; SameSite=Strict; Path=/")
        return status_code, headers, chunk


class OrderedWebSocket(WSHandler):
    """Websocket that sends messages immediately and in order, and ignores messages of closed pages.

    A message of Bokeh has three parts. By default the second part waits until the browser has acknowledged the first,
    which takes 40 ms. A busy server finds messages of a closed page in its buffer, and Bokeh would search for the
    session that it has just detached. While a message is being sent, Panel makes the next one but sends it later. A
    message of Bokeh would overtake it and name models that the browser does not know ("reference p1478 isn't known").
    """

    def open(self) -> None:
        self.set_nodelay(True)
        super().open()

    async def send_message(self, message: Any) -> None:
        for earlier in self._take_pending_messages():
            await super().send_message(earlier)
        await super().send_message(message)

    def _take_pending_messages(self) -> list[Any]:
        """Remove and return the messages that Panel has prepared for this page but not sent."""
        connection = self.connection
        if connection is None or connection._session is None:
            return []
        # Panel 1.10 (Python 3.12) prepares no messages in advance
        prepared = getattr(panel_document, "_WRITE_MSGS", {})
        return prepared.get(connection._session.document, {}).pop(connection, [])

    def on_close(self) -> None:
        """Discard a page immediately if it was closed or left, to stop its simulation."""
        session = self.connection and self.connection._session
        super().on_close()
        if session is not None and self.close_code == PAGE_LEFT_WEBSOCKET_CODE:
            _discard_unconnected_session(session)

    async def _handle(self, message: Any) -> Any:
        if self.connection is None or self.connection._session is None:
            return None
        return await super()._handle(message)


class ExplorerApplication(BokehTornado):
    """Bokeh's application with a guard that checks every request."""

    def __init__(self, make_view: Callable[[], Any], guard: RequestGuard):
        self.guard = guard
        self.pending_requests: set[Any] = set()  # page requests that are still being answered
        super().__init__(
            # without `Location`, which fails at an address with two question marks
            build_applications(make_view, title="statmech", location=False),
            extra_websocket_origins=sorted(guard.hosts),
            extra_patterns=get_static_routes({}),
            ico_path=str(DIST_DIR / "images" / "favicon.ico"),
            transforms=[partial(SecurityHeaderTransform, guard)],
            secret_key=secrets.token_bytes(32),
            sign_sessions=True,
            session_token_expiration=SESSION_TOKEN_LIFETIME_SECONDS,
            include_cookies=[],  # keeps the token out of the page
            exclude_headers=["Cookie"],
            unused_session_lifetime_milliseconds=1000 * LOADING_TIMEOUT_SECONDS,
            check_unused_sessions_milliseconds=1000 * UNUSED_PAGE_CHECK_SECONDS,
        )

    def find_handler(self, request: Any, **kwargs: Any) -> Any:
        """Return the handler of a request, or the handler that rejects it.

        Tornado calls this method before it creates any handler.
        """
        rejection = self.guard.check_request(request) or self._reject_if_crowded(request)
        if rejection:
            return self.get_handler_delegate(
                request, RefusalHandler, dict(zip(("status", "sentence"), rejection, strict=True))
            )
        delegate = super().find_handler(request, **kwargs)
        if getattr(delegate, "handler_class", None) is WSHandler:
            delegate.handler_class = OrderedWebSocket
        return delegate

    def log_request(self, handler: RequestHandler) -> None:
        """Remove an answered request from the pending requests, without a log entry.

        Nothing is logged, as the address may contain the token.
        """
        self.pending_requests.discard(handler.request)

    def client_lost(self, connection: Any) -> None:
        """Discard a disconnected page after a short time.

        Bokeh would wait as long as for a page that is still loading.
        """
        session = connection.session
        super().client_lost(connection)
        self.io_loop.call_later(RECONNECT_TIMEOUT_SECONDS, _discard_unconnected_session, session)

    def _reject_if_crowded(self, request: Any) -> StatusAndMessage | None:
        """Reject a new page if too many are open, and otherwise count its request as pending.

        A websocket must join an existing page.
        """
        session_ids = [str(session.id) for session in self.applications["/"].sessions]
        if request.path == WEBSOCKET_PATH and not self._has_existing_session(request, session_ids):
            return HTTPStatus.FORBIDDEN, "This page no longer exists. Reload it."
        if request.path == "/":
            if len(session_ids) + len(self.pending_requests) >= MAX_OPEN_PAGES:
                return HTTPStatus.SERVICE_UNAVAILABLE, TOO_MANY_PAGES_TEMPLATE.format(
                    MAX_OPEN_PAGES, RECONNECT_TIMEOUT_SECONDS + UNUSED_PAGE_CHECK_SECONDS
                )
            self.pending_requests.add(request)
        return None

    def _has_existing_session(self, request: Any, session_ids: list[str]) -> bool:
        token = request.headers.get("Sec-WebSocket-Protocol", "").split(",")[-1].strip()
        try:
            signed = check_token_signature(token, secret_key=self.secret_key, signed=True)
            return signed and get_session_id(token) in session_ids
        except Exception:  # decoding an invalid token may raise any exception
            return False


def serve(
    make_page: Callable[[], Any], port: int | None, open_browser: bool, prepare: Callable[[], None] | None = None
) -> None:
    """Serve one page per visitor, only on this machine, until interrupted.

    Parameters
    ----------
    make_page
        Function that makes the page of one visitor, with methods `view` and `close`.
    port
        The port to listen on, by default 5006 or any free port.
    open_browser
        True to open the page in a browser.
    prepare
        Function that a thread calls while the browser starts.

    Raises `ConfigError` if the port is in use.
    """
    # Bokeh includes MathJax but not KaTeX's fonts for root signs
    pn.extension("mathjax", raw_css=[make_font_css()])
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)  # a closed tab is not worth a warning
    bound = _bind_socket(port)
    guard = RequestGuard(bound.getsockname()[1])
    loop = IOLoop.current()
    application = ExplorerApplication(lambda: _open_page_view(make_page()), guard)
    http = ConnectionLimitedServer(application)
    server = BaseServer(loop, application, http)
    http.accept_from(bound)
    _exit_on_signals()
    print(f"statmech explore: {guard.address} (Ctrl-C stops it)", flush=True)
    if open_browser:
        loop.add_callback(webbrowser.open, guard.address)
    server.start()
    gc.freeze()  # Panel's garbage collections then skip the imported modules
    if prepare is not None:
        threading.Thread(target=prepare, daemon=True).start()
    loop.start()


def _exit_on_signals() -> None:
    """Exit the process at SIGINT or SIGTERM, even while its main thread is compiling.

    A compiling thread handles no signals, and an ordinary exit would also wait for compilations in other threads.
    Nothing is lost, as pages store nothing.
    """
    reader, writer = socket.socketpair()  # Python writes the number of each signal to the writer immediately
    writer.setblocking(False)

    def wait() -> None:
        reader.recv(1)
        with contextlib.suppress(OSError):  # stdout may be a closed pipe
            print(STOPPED_MESSAGE, flush=True)
        os._exit(0)

    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda *_: None)
    threading.Thread(target=wait, name="signals", daemon=True).start()


def _open_page_view(page: Any) -> Any:
    def close(session_context: Any) -> None:
        """Close the page after Panel has released its parts.

        The server's loop calls this function, while any thread may call `_open_page_view`.
        """
        IOLoop.current().add_callback(page.close)

    pn.state.on_session_destroyed(close)
    return page.view()


def _discard_unconnected_session(session: Any) -> None:
    if not session.connection_count:
        session.request_expiration()


def _bind_socket(port: int | None) -> socket.socket:
    """Return a socket bound to the given port, or else to the default or any free port."""
    for candidate_port in [DEFAULT_PORT, 0] if port is None else [port]:
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((LOCALHOST, candidate_port))
            bound.listen(128)
        except OSError:
            bound.close()
            continue
        bound.setblocking(False)
        return bound
    raise ConfigError(f"--port {port}: the port is in use. Choose another port, or omit --port to use any free port")
