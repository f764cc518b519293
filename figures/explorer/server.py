"""The explorer's server: on this machine alone, for those who have the token, with a bounded number of pages."""

from __future__ import annotations

import logging
import secrets
import signal
import socket
import webbrowser
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import panel as pn
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from bokeh.util.token import check_token_signature, get_session_id
from panel.io.application import build_applications
from panel.io.resources import DIST_DIR
from panel.io.server import get_static_routes
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import OutputTransform, RequestHandler

from figures.explorer.guard import HEADERS, HERE, SOCKET, Guard, Refused
from statmech.errors import ConfigError

USUAL = 5006
PAGES = 20  # that may be open at once; each holds its own charts and datasets
LOADING = 60  # seconds in which a page must connect
GONE = 10  # seconds after which a page that has disconnected is forgotten: it may be a connection that comes back
SWEEP = 2  # seconds between two looks for pages to forget
WEEK = 7 * 24 * 3600  # seconds that a page may reconnect in, while its session is there
BODY = 2**16  # bytes of a request's body; none has one
FULL = "{} pages are open already. Close one, and reload this page after {} seconds."


class Refusal(RequestHandler):
    """The answer to a request that is refused: a sentence."""

    def initialize(self, status: HTTPStatus, sentence: str) -> None:
        self.status, self.sentence = status, sentence

    def prepare(self) -> None:
        self.set_status(self.status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{self.sentence}\n")


class Sealed(OutputTransform):
    """Headers of every answer; who shows the token is remembered, so that the page's own requests need not show it."""

    def __init__(self, guard: Guard, request: Any):
        self.guard, self.remember = guard, guard.refusal(request) is None and guard.shown(request)

    def transform_first_chunk(
        self, status_code: int, headers: Any, chunk: bytes, finishing: bool
    ) -> tuple[int, Any, bytes]:
        for name, value in HEADERS.items():
            headers[name] = value
        if self.remember:
            headers.add("Set-Cookie", f"{self.guard.cookie}={self.guard.token}; HttpOnly; SameSite=Strict; Path=/")
        return status_code, headers, chunk


class Explorer(BokehTornado):
    """Bokeh's application behind a guard that every request passes, whichever handler it is for."""

    def __init__(self, make: Callable[[], Any], guard: Guard):
        self.guard = guard
        self.coming: set[Any] = set()  # requests whose pages are not made yet
        super().__init__(
            build_applications(make, title="statmech"),
            extra_websocket_origins=sorted(guard.hosts),
            extra_patterns=get_static_routes({}),
            ico_path=str(DIST_DIR / "images" / "favicon.ico"),
            transforms=[partial(Sealed, guard)],
            secret_key=secrets.token_bytes(32),
            sign_sessions=True,
            session_token_expiration=WEEK,
            include_cookies=[],  # the token is not written into the page
            exclude_headers=["Cookie"],
            unused_session_lifetime_milliseconds=1000 * LOADING,
            check_unused_sessions_milliseconds=1000 * SWEEP,
        )

    def find_handler(self, request: Any, **kwargs: Any) -> Any:
        """The handler of a request, or the one that refuses it: tornado asks here before any handler is made."""
        refused = self.guard.refusal(request) or self._crowded(request)
        if refused:
            return self.get_handler_delegate(request, Refusal, dict(zip(("status", "sentence"), refused, strict=True)))
        return super().find_handler(request, **kwargs)

    def log_request(self, handler: RequestHandler) -> None:
        """What tornado calls when a request is answered; it is not logged, for its address may hold the token."""
        self.coming.discard(handler.request)

    def client_lost(self, connection: Any) -> None:
        """Forget a closed page soon; Bokeh itself would wait as long as for one that is still loading."""
        session = connection.session
        super().client_lost(connection)
        self.io_loop.call_later(GONE, _forget, session)

    def _crowded(self, request: Any) -> Refused | None:
        """Reserve the place of a page that is to be made; a websocket joins a page that is there, and makes none."""
        known = [str(session.id) for session in self.applications["/"].sessions]
        if request.path == SOCKET and not self._joins(request, known):
            return HTTPStatus.FORBIDDEN, "This page is no longer there. Reload it."
        if request.path == "/":
            if len(known) + len(self.coming) >= PAGES:
                return HTTPStatus.SERVICE_UNAVAILABLE, FULL.format(PAGES, GONE + SWEEP)
            self.coming.add(request)
        return None

    def _joins(self, request: Any, known: list[str]) -> bool:
        token = request.headers.get("Sec-WebSocket-Protocol", "").split(",")[-1].strip()
        try:
            signed = check_token_signature(token, secret_key=self.secret_key, signed=True)
            return signed and get_session_id(token) in known
        except Exception:  # whatever a token that is none makes of decoding it
            return False


def serve(make: Callable[[], Any], port: int | None, show: bool) -> None:
    """Serve a page for each visitor on this machine alone, until it is interrupted.

    Parameters
    ----------
    make : makes what is shown to one visitor, with methods `view` and `close`
    port : the port to listen on; by default 5006, or any free one
    show : whether to open the page in a browser

    Raises `ConfigError` if the port is taken.
    """
    pn.extension("mathjax")  # Bokeh brings it; KaTeX comes without its fonts, and drops the roots' signs
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)  # that a tab has closed is no warning
    bound = _bound(port)
    guard = Guard(bound.getsockname()[1])
    loop = IOLoop.current()
    application = Explorer(lambda: _view(make()), guard)
    http = HTTPServer(application, max_body_size=BODY)
    server = BaseServer(loop, application, http)
    http.add_sockets([bound])
    print(f"statmech explore: {guard.address} (Ctrl-C ends it)", flush=True)
    if show:
        loop.add_callback(webbrowser.open, guard.address)
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda *_: loop.add_callback_from_signal(loop.stop))
    server.start()
    loop.start()
    server.stop()


def _view(page: Any) -> Any:
    later = IOLoop.current().add_callback  # when Panel has let go of the page's parts
    pn.state.on_session_destroyed(lambda session_context: later(page.close))
    return page.view()


def _forget(session: Any) -> None:
    if not session.connection_count:
        session.request_expiration()


def _bound(port: int | None) -> socket.socket:
    """A socket on the port asked for, or else on the usual one, or else on any."""
    for asked in [USUAL, 0] if port is None else [port]:
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((HERE, asked))
            bound.listen(128)
        except OSError:
            bound.close()
            continue
        bound.setblocking(False)
        return bound
    raise ConfigError(f"--port {port}: something else listens there. Leave it out, and a free one is taken")
