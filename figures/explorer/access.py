"""Access control of the explorer: only browsers on this machine that send the token of the printed address."""

from __future__ import annotations

import hmac
import secrets
from http import HTTPStatus
from typing import Any

HERE = "127.0.0.1"
SOCKET = "/ws"
SERVED = ("/static/", "/components/", "/favicon.ico")  # valid in addition to the page and its websocket
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",  # no other site may show this page in a frame and have it clicked
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address contains the token
}
Refused = tuple[HTTPStatus, str]


class Guard:
    """Checks requests against the token and the host names of one server.

    Another site can let its name resolve to 127.0.0.1 (DNS rebinding). Browsers then send that name as Host and as
    Origin. The two are then equal, so Host is compared with the server's own names.
    """

    def __init__(self, port: int):
        self.token = secrets.token_urlsafe(32)
        self.cookie = f"statmech-{port}"  # browsers do not distinguish the cookies of two ports
        self.hosts = {f"{name}:{port}" for name in (HERE, "localhost")}
        if port == 80:  # browsers omit this port
            self.hosts |= {HERE, "localhost"}
        page = f"http://{HERE}:{port}/?token="
        self.address = page + self.token
        self.sentence = f"Open the whole address that `statmech explore` printed when it started: {page}..."

    def refusal(self, request: Any) -> Refused | None:
        """Return the status and message of a rejected request, or None if the request is accepted."""
        if request.host.lower() not in self.hosts:
            return HTTPStatus.FORBIDDEN, f"This page is served as {' and '.join(sorted(self.hosts))} only."
        origin = request.headers.get("Origin")
        if origin != f"http://{request.host}" and (origin is not None or request.path == SOCKET):
            return HTTPStatus.FORBIDDEN, "This page does not answer requests from other pages."
        if not (self.shown(request) or self._remembered(request)):
            return HTTPStatus.FORBIDDEN, self.sentence
        if request.method not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED, "This page can only be read."
        if request.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in request.headers:
            return HTTPStatus.BAD_REQUEST, "Requests to this page must not have a body."
        if request.path not in ("/", SOCKET) and not request.path.startswith(SERVED):
            return HTTPStatus.NOT_FOUND, "This page does not exist."
        return None

    def shown(self, request: Any) -> bool:
        """Return True if the address of a request contains the token."""
        return any(self._is_token(value) for value in request.query_arguments.get("token", []))

    def _remembered(self, request: Any) -> bool:
        cookie = request.cookies.get(self.cookie)
        return cookie is not None and self._is_token(cookie.value.encode())

    def _is_token(self, value: bytes) -> bool:
        return hmac.compare_digest(value, self.token.encode())
