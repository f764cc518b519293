"""Access control of the explorer, which admits only local browsers with the token in the printed address."""

from __future__ import annotations

import hmac
import secrets
from http import HTTPStatus
from typing import Any

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
