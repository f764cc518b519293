"""The explorer answers this machine's own browser with the token of its address, and refuses everyone else."""

import asyncio
import base64
import contextlib
import gc
import os
import re
import signal
import socket
import subprocess
import sys
import time
import weakref
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="the extra [explore] is not installed")

from figures.explorer import server
from figures.explorer.server import LOCALHOST, RequestGuard

PAGES, GONE = 3, 1
SERVED = f"""
import panel as pn
from figures.explorer import server

class Small:
    def view(self):
        return pn.Column(pn.pane.HTML("a page"))

    def close(self):
        print("closed", flush=True)

server.MAX_OPEN_PAGES, server.RECONNECT_TIMEOUT_SECONDS = {PAGES}, {GONE}
server.serve(Small, None, False)
"""
SECONDS = 60
STATIC = "/static/js/bokeh.min.js"
EVIL = "evil.example"


class Explorer:
    """A server in another process, addressed through sockets: libraries would not send forged requests."""

    def __init__(self, folder, before=""):
        self.errors = folder / "stderr"
        with self.errors.open("w") as errors:
            command = [sys.executable, "-c", before + SERVED]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        self.address = re.search(r"http\S+", self.process.stdout.readline())[0]
        self.port, self.token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", self.address).groups()
        self.host = f"{LOCALHOST}:{self.port}"
        self.shown = f"/?token={self.token}"
        self.cookie = f"statmech-{self.port}={self.token}"

    def get(self, path, **headers):
        """Status, head and body of the answer; headers are given with _ for -, `Host` by default the right one."""
        with self.asked(path, **headers) as asked:
            answer = b""
            while part := asked.recv(2**16):
                answer += part
        return parted(answer)

    @contextlib.contextmanager
    def asked(self, path, method="GET", body="", **headers):
        lines = {"Host": self.host, "Connection": "close", **headers}
        head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items() if value is not None)
        with socket.create_connection((LOCALHOST, int(self.port)), timeout=SECONDS) as opened:
            opened.sendall(f"{method} {path} HTTP/1.1\r\n{head}\r\n{body}".encode())
            yield opened

    @contextlib.contextmanager
    def joined(self, session, **headers):
        """A websocket, and the head of its answer."""
        upgrade = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec_WebSocket_Version": 13,
            "Sec_WebSocket_Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec_WebSocket_Protocol": f"bokeh, {session}",
            "Origin": f"http://{self.host}",
            "Cookie": self.cookie,
        }
        with self.asked("/ws", **{**upgrade, **headers}) as asked:
            answer = b""
            while b"\r\n\r\n" not in answer:
                answer += asked.recv(1)
            if b" 101 " in answer:
                asked.recv(1)  # bokeh's first message on the page
            yield int(answer.split()[1])

    def session(self, **headers):
        """Bokeh's token of an opened page."""
        status, _, body = self.get(self.shown, **headers)
        assert status == 200
        return re.search(r'"token":"([^"]+)"', body)[1]

    def until(self, true):
        for _ in range(SECONDS * 5):
            if found := true():
                return found
            time.sleep(0.2)
        raise AssertionError("it never came to that")

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)
        code = self.process.wait(SECONDS)
        return code, self.process.stdout.read(), self.errors.read_text()


def parted(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = [line.split(": ", 1) for line in lines]
    return int(first.split()[1]), {name.lower(): value for name, value in headers}, body.decode("utf8", "replace")


@pytest.fixture
def alone(tmp_path):
    """An explorer for one test only."""
    started = Explorer(tmp_path)
    yield started
    started.process.kill()
    started.process.wait()
    started.process.stdout.close()


@pytest.fixture
def limited(tmp_path):
    """Makes explorers whose process runs some lines first."""
    with contextlib.ExitStack() as stopped:

        def begin(before):
            started = Explorer(tmp_path, before)
            stopped.callback(started.process.stdout.close)
            stopped.callback(started.process.wait)
            stopped.callback(started.process.kill)
            return started

        yield begin


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    started = Explorer(tmp_path_factory.mktemp("explorer"))
    yield started
    code, _, errors = started.stop()
    started.process.stdout.close()
    assert (code, errors) == (0, "")  # no request of the tests caused a traceback


@pytest.fixture(scope="module")
def session(explorer):
    """Bokeh's token of a page that stays open."""
    token = explorer.session()
    with explorer.joined(token) as status:
        assert status == 101
        yield token


@pytest.mark.parametrize("host", [f"{EVIL}:PORT", EVIL, "127.0.0.1", "localhost", "127.0.0.1:1", "[::1]:PORT", ""])
def test_another_host_is_refused_on_every_route(explorer, session, host):
    forged = {"Host": host.replace("PORT", explorer.port), "Cookie": explorer.cookie}
    for path in (explorer.shown, STATIC, "/favicon.ico", "/autoload.js?bokeh-autoload-element=1", "/metadata", "/x"):
        status, _, body = explorer.get(path, **forged)
        assert status == 403
        assert EVIL not in body
    with explorer.joined(session, **forged) as status:
        assert status == 403


def test_a_rebound_name_that_is_host_and_origin_reaches_no_websocket(explorer, session):
    evil = f"{EVIL}:{explorer.port}"
    with explorer.joined(session, Host=evil, Origin=f"http://{evil}") as status:
        assert status == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://evil.example:PORT", "https://127.0.0.1:PORT", "null", "", None]
)
def test_a_websocket_of_another_origin_or_of_none_is_refused(explorer, session, origin):
    with explorer.joined(session, Origin=origin and origin.replace("PORT", explorer.port)) as status:
        assert status == 403


def test_a_page_is_not_given_to_scripts_of_another_origin(explorer):
    assert explorer.get(explorer.shown, Origin="http://evil.example")[0] == 403


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/?token=%ff", STATIC, "/favicon.ico"])
@pytest.mark.parametrize("cookie", [None, "statmech-1=TOKEN", "statmech-PORT=wrong", "statmech-PORT="])
def test_without_the_token_all_is_refused_and_no_page_is_made(explorer, path, cookie):
    if cookie:
        cookie = cookie.replace("TOKEN", explorer.token).replace("PORT", explorer.port)
    for _ in range(PAGES + 1):
        status, headers, body = explorer.get(path, Cookie=cookie)
        assert (status, headers["content-type"]) == (403, "text/plain; charset=utf-8")
        address = f"http://127.0.0.1:{explorer.port}/?token=..."
        assert body == f"Open the whole address that `statmech explore` printed when it started: {address}\n"
        assert "set-cookie" not in headers
    assert explorer.get(explorer.shown, Cookie=explorer.cookie)[0] in (200, 503)


@pytest.mark.parametrize("cookie", [None, "statmech-PORT=wrong", "statmech-1=TOKEN"])
def test_a_websocket_without_the_token_is_refused(explorer, session, cookie):
    cookie = cookie and cookie.replace("TOKEN", explorer.token).replace("PORT", explorer.port)
    with explorer.joined(session, Cookie=cookie) as status:
        assert status == 403


@pytest.mark.parametrize("made", ["", "x", "e30.e30", "YWJj.YWJj"])
def test_a_websocket_joins_only_a_page_that_was_made_here(explorer, made):
    with explorer.joined(made) as status:
        assert status == 403


def test_a_websocket_joins_no_page_by_a_token_signed_elsewhere(explorer, session):
    from bokeh.util.token import generate_jwt_token, get_session_id

    forged = generate_jwt_token(get_session_id(session), secret_key=b"another", signed=True, expiration=300)
    with explorer.joined(forged) as status:
        assert status == 403


def test_the_token_opens_the_page_and_its_cookie_all_the_rest(alone):
    status, headers, body = alone.get(alone.shown)
    assert (status, headers["cache-control"]) == (200, "no-store")
    assert headers["set-cookie"] == f"{alone.cookie}; HttpOnly; SameSite=Strict; Path=/"
    assert "access-control-allow-origin" not in headers
    assert headers["x-frame-options"] == "DENY"
    remembered = {"Cookie": headers["set-cookie"].partition(";")[0], "Host": f"localhost:{alone.port}"}
    assert alone.get(STATIC, **remembered)[0] == 200
    assert alone.get("/", **remembered)[0] == 200  # reloaded
    assert alone.get(f"{alone.shown}&rule=a?b")[0] == 200  # the same link again, with a second question mark
    joining = re.search(r'"token":"([^"]+)"', body)[1]
    with alone.joined(joining) as status:
        assert status == 101
    code, _, errors = alone.stop()
    assert (code, errors) == (0, "")


def test_nothing_but_the_page_is_served(explorer, session):
    for path in ("/autoload.js?bokeh-autoload-element=1", "/metadata", "/index.html", "/..//etc/passwd"):
        status, headers, _ = explorer.get(path, Cookie=explorer.cookie)
        assert status == 404
        assert "access-control-allow-origin" not in headers
    for method in ("POST", "PUT", "OPTIONS", "DELETE"):
        assert explorer.get("/", method=method, Cookie=explorer.cookie)[0] == 405
    assert explorer.get("/", Cookie=explorer.cookie, Content_Length=1, body="x")[0] == 400


def test_every_handler_is_guarded():
    from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

    guard = RequestGuard(5006)
    application = server.ExplorerApplication(lambda: None, guard)
    application.add_handlers(r".*", [(r"/static/later", server.RequestHandler)])
    for path in ("/", "/ws", "/static/later", "/static/js/bokeh.min.js", "/components/a", "/autoload.js", "/later"):
        line, headers = RequestStartLine("GET", path, "HTTP/1.1"), HTTPHeaders({"Host": EVIL})
        request = HTTPServerRequest(start_line=line, headers=headers, connection=Nothing())
        assert application.find_handler(request).handler_class is server.RefusalHandler


class Nothing:
    """A connection without a context."""

    context = None


@pytest.mark.slow
def test_the_number_of_open_pages_is_limited_and_a_closed_one_makes_room(alone):
    with contextlib.ExitStack() as opened:
        for _ in range(PAGES):
            assert opened.enter_context(alone.joined(alone.session())) == 101
        status, _, body = alone.get(alone.shown)
        assert status == 503
        assert body == f"{PAGES} pages are open already. Close one and reload this page after {GONE + 2} seconds.\n"
    alone.until(lambda: alone.get(alone.shown)[0] == 200)
    code, printed, errors = alone.stop()
    assert (code, errors) == (0, "")  # a page that closes leaves no traceback
    assert "closed" in printed  # and its simulation ends


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Both 'variant':PendingDeprecationWarning")  # Panel's own, of its downloads
@pytest.mark.quick
def test_nothing_of_a_closed_page_is_kept():
    from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine
    from tornado.ioloop import IOLoop

    from figures.explorer.page import ExplorerPage

    line, headers = RequestStartLine("GET", "/", "HTTP/1.1"), HTTPHeaders({"Host": f"{LOCALHOST}:5006"})
    request = HTTPServerRequest(start_line=line, headers=headers, connection=Nothing())
    made = []

    def make():
        page = ExplorerPage()
        made.append(weakref.ref(page))
        return server._open_page_view(page)

    async def visit():
        application = server.ExplorerApplication(make, RequestGuard(5006))
        application.initialize(IOLoop.current())
        context = application.applications["/"]
        (await context.create_session_if_needed("one", request)).request_expiration()
        await context._cleanup_sessions(1000)
        await asyncio.sleep(0.2)

    asyncio.run(visit())
    gc.collect()
    assert [page() for page in made] == [None]


@pytest.mark.parametrize(("code", "calls"), [(1001, ["lost", "client", "expired"]), (1006, ["lost", "client"])])
def test_a_page_that_was_left_is_discarded_at_once_and_a_disconnected_one_may_return(code, calls):
    made = []
    session = SimpleNamespace(
        connection_count=0,
        notify_connection_lost=lambda: made.append("lost"),
        request_expiration=lambda: made.append("expired"),
    )
    handler = server.OrderedWebSocket.__new__(server.OrderedWebSocket)
    handler.connection = SimpleNamespace(session=session, _session=session)
    handler.application = SimpleNamespace(client_lost=lambda connection: made.append("client"))
    handler.close_code, handler.close_reason = code, None
    handler.on_close()
    assert made == calls


def test_what_a_closed_page_sent_is_ignored_without_a_traceback(caplog):
    from bokeh.protocol import Protocol
    from panel.io.server import WSHandler

    class Closed:
        """A connection whose session is detached, as when a tab closes while the server is busy."""

        _session = None

        @property
        def session(self):
            raise AssertionError

        def error(self, message, text):
            return text

    def handled(kind):
        handler = kind.__new__(kind)
        handler.connection, handler.handler = Closed(), ProtocolHandler()
        return asyncio.run(handler._handle(Protocol().create("PATCH-DOC", [changed()])))

    from bokeh.server.protocol_handler import ProtocolHandler

    assert handled(WSHandler) is not None  # Bokeh's own logs a traceback
    assert "AssertionError" in caplog.text
    caplog.clear()
    assert handled(server.OrderedWebSocket) is None
    assert not caplog.text


def changed():
    """An event of a document."""
    from bokeh.document import Document
    from bokeh.document.events import TitleChangedEvent

    return TitleChangedEvent(Document(), "a title")


@pytest.mark.slow
def test_the_explorers_websockets_are_those_that_ignore_closed_pages():
    from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine

    guard = RequestGuard(5006)
    application = server.ExplorerApplication(lambda: None, guard)
    application._reject_if_crowded = lambda request: None
    headers = HTTPHeaders({"Host": f"{LOCALHOST}:5006", "Origin": f"http://{LOCALHOST}:5006"})
    line = RequestStartLine("GET", f"/ws?token={guard.token}", "HTTP/1.1")
    request = HTTPServerRequest(start_line=line, headers=headers, connection=Nothing())
    assert application.find_handler(request).handler_class is server.OrderedWebSocket


@pytest.mark.slow
def test_simultaneous_requests_do_not_exceed_the_limit_of_open_pages(alone):
    with contextlib.ExitStack() as asked:
        all_at_once = [asked.enter_context(alone.asked(alone.shown)) for _ in range(4 * PAGES)]
        statuses = [int(one.recv(64).split()[1]) for one in all_at_once]
    assert sorted(statuses) == [200] * PAGES + [503] * 3 * PAGES


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_at_once_while_a_page_is_open(alone, how):
    with alone.joined(alone.session()) as status:
        assert status == 101
        code, printed, errors = alone.stop(how)
    assert (code, errors) == (0, "")
    assert server.STOPPED_MESSAGE in printed.splitlines()


FEW_DESCRIPTORS = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))\n"
UNFINISHED = {
    "half a head": "GET / HTTP/1.1\r\nHost: HOST\r\n",
    "no body": "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9\r\n\r\n",
    "half a chunked body": "POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "half a handshake": "GET /ws HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
    "no second request": "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "nothing": "",
}


def begun(explorer, number, text, opened):
    """Begin so many requests, which stay as they are until `opened` is left."""
    for _ in range(number):
        one = opened.enter_context(socket.create_connection((LOCALHOST, int(explorer.port)), timeout=SECONDS))
        with contextlib.suppress(OSError):  # it was closed in favour of a newer one
            one.sendall(text.replace("HOST", explorer.host).encode())


@pytest.mark.slow
def test_unfinished_requests_neither_keep_the_page_from_others_nor_fill_the_log(limited):
    served = limited(FEW_DESCRIPTORS)
    with contextlib.ExitStack() as opened:
        for text in UNFINISHED.values():
            begun(served, 150, text, opened)
            assert served.get(served.shown)[0] in (200, 503)  # pages are limited, too
            assert served.get(STATIC, Cookie=served.cookie)[0] == 200
    code, _, errors = served.stop()
    assert (code, errors) == (0, "")


@pytest.mark.slow
def test_an_unfinished_request_is_closed_after_some_time(limited):
    served = limited("from figures.explorer import server as connections; connections.REQUEST_TIMEOUT_SECONDS = 0.5\n")
    for text in UNFINISHED.values():
        with socket.create_connection((LOCALHOST, int(served.port)), timeout=SECONDS) as one:
            one.sendall(text.replace("HOST", served.host).encode())
            while one.recv(2**16):  # until it is closed
                pass


@pytest.mark.slow
def test_without_a_free_descriptor_the_explorer_waits_in_silence_and_then_answers(limited):
    unbounded = "from figures.explorer import server as connections; connections.MAX_WAITING_CONNECTIONS = 10**6\n"
    served = limited(FEW_DESCRIPTORS + unbounded)
    with contextlib.ExitStack() as opened:
        begun(served, 200, UNFINISHED["half a head"], opened)
        time.sleep(2)
    assert served.get(served.shown)[0] == 200
    code, _, errors = served.stop()
    assert (code, errors) == (0, "")


COMPILING = """
import ctypes
from concurrent.futures import ThreadPoolExecutor

def compile():
    "Never return, and let other threads run, as a long compilation does: a mutex that this thread holds already."
    mutex = ctypes.create_string_buffer(64)
    print("compiling", flush=True)
    for _ in range(2):
        ctypes.CDLL(None).pthread_mutex_lock(mutex)

pool = ThreadPoolExecutor()

class Compiling:
    def view(self):
        WHERE
        return pn.pane.HTML("a page")

import panel as pn
from figures.explorer import server
server.serve(Compiling, None, False)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "signals"),
    [
        ("compile()", [signal.SIGINT]),
        ("compile()", [signal.SIGTERM, signal.SIGTERM]),
        ("pool.submit(compile)", [signal.SIGTERM]),
    ],
)
def test_a_signal_ends_the_explorer_in_the_middle_of_a_compilation(limited, where, signals):
    served = limited(COMPILING.replace("WHERE", where))
    with served.asked(served.shown):
        assert served.process.stdout.readline() == "compiling\n"
        for one in signals:
            served.process.send_signal(one)
        assert served.process.wait(10) == 0
    assert served.process.stdout.read().strip() == server.STOPPED_MESSAGE


@pytest.mark.slow
def test_it_listens_on_this_machine_alone(explorer):
    with server._bind_socket(None) as bound:
        assert bound.getsockname()[0] == LOCALHOST
    for other in ("127.0.0.2", "::1"):
        with pytest.raises(OSError):  # noqa: PT011 - which one depends on the system
            socket.create_connection((other, int(explorer.port)), timeout=5).close()


@pytest.mark.slow
def test_a_port_in_use_is_refused(explorer):
    with pytest.raises(server.ConfigError, match="the port is in use"):
        server._bind_socket(int(explorer.port))


@pytest.mark.slow
def test_two_servers_have_two_tokens_and_two_cookies():
    one, other = RequestGuard(5006), RequestGuard(5007)
    assert one.token != other.token
    assert one.cookie != other.cookie
    assert len(one.token) >= 43  # 256 bits
