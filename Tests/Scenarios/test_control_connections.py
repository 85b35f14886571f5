"""Connections as resources of the REST interface: opening, listing, using and closing them over HTTP."""

import asyncio
import base64
import contextlib
import signal
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import websockets.asyncio.server
import websockets.sync.client

from support import configuration
from support.control import Control
from support.deadlines import eventually, seconds


@pytest.fixture
def serve(sluice, tmp_path):
    """A gateway whose control plane has a port of its own: (gateway, control)."""

    def start(listeners=(), routes=(), control=None, **more):
        listeners = list(listeners) or [configuration.listener("web", "ws://127.0.0.1:0")]
        routes = list(routes) or [configuration.route("echo", "echo", path="/echo")]
        file = configuration.write(
            tmp_path / "sluice.yaml", listeners, routes, control={"address": "http://127.0.0.1:0", **(control or {})}, **more)
        gateway = sluice("serve", "--config", file)
        return gateway, Control.of(gateway)

    return start


@pytest.fixture
def control(serve):
    return serve()[1]


@pytest.fixture
def python_echo():
    """An echo server of the `websockets` package: its URL, and the close code and reason of each connection."""
    ends, ready = [], threading.Event()
    loop = asyncio.new_event_loop()

    async def handle(connection):
        with contextlib.suppress(websockets.exceptions.ConnectionClosedError):
            async for message in connection:
                await connection.send(message)
        ends.append((connection.close_code, connection.close_reason))

    async def run():
        async with websockets.asyncio.server.serve(handle, "127.0.0.1", 0, select_subprotocol=lambda _, offers: offers[-1] if offers else None) as server:
            loop.port = server.sockets[0].getsockname()[1]
            loop.finished = asyncio.Event()
            ready.set()
            await loop.finished.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    assert ready.wait(seconds(10))
    yield f"ws://127.0.0.1:{loop.port}", ends
    loop.call_soon_threadsafe(loop.finished.set)
    thread.join(seconds(10))


def test_a_websocket_is_opened_used_and_closed_over_rest(control, python_echo):
    url, ends = python_echo
    name = control.open(url, subprotocols=["chat.v1", "chat.v2"], labels={"team": "blue"}, headers={"X-Test": "1"})
    control.send(name, "grüße")
    assert control.receive(name) == "grüße"
    control.send(name, bytes(range(256)))
    assert control.receive(name) == bytes(range(256))
    assert 0 < control.verb(name, "ping").expect(200)["rttMs"] < 5000

    shown = control.show(name)
    assert (shown["state"], shown["kind"], shown["direction"]) == ("open", "webSocket", "opened")
    assert shown["subprotocol"] == "chat.v2" and shown["labels"] == {"team": "blue"} and shown["url"] == url + "/"
    assert (shown["sentMessages"], shown["receivedMessages"], shown["sentBytes"]) == (2, 2, 256 + len("grüße".encode()))
    assert (shown["sentFrames"], shown["receivedFrames"]) == (3, 3) and shown["ping"]["count"] == 1
    assert {"name": "X-Test", "value": "1"} in shown["handshake"]["request"]["headers"]
    assert shown["handshake"]["response"]["line"].startswith("HTTP/1.1 101")

    over = control.close(name, code=4001, reason="enough")
    assert (over["state"], over["closeCode"], over["closeReason"]) == ("closed", 4001, "enough")
    assert eventually(lambda: ends, "the end at the peer") == [(4001, "enough")]
    found = control.closed(name)
    assert (found["closeCode"], found["closeReason"], found["terminationReason"]) == (4001, "enough", "operator/relaying/stopped")
    gone = control.get(f"/v1/connections/{name}").problem(410, "closed")
    assert gone["connection"]["closeCode"] == 4001
    control.verb(name, "send", {"text": "late"}).problem(410, "closed")


def test_unread_messages_are_received_after_the_close(control, python_echo):
    url, _ = python_echo
    name = control.open(url)
    for number in range(5):
        control.send(name, f"{number}")
    eventually(lambda: control.show(name)["unreadMessages"] == 5, "five messages back")
    control.close(name)
    assert [control.receive(name) for _ in range(5)] == [f"{number}" for number in range(5)]
    control.verb(name, "receive").problem(410, "closed")


def test_receive_waits_and_an_abandoned_receive_consumes_no_message(serve, python_echo):
    gateway, control = serve()
    url, _ = python_echo
    name = control.open(url)
    assert control.verb(name, "receive", {"timeoutMs": 50}).status == 204
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(control.receive, name)
        control.send(name, "first")
        assert waiting.result(seconds(10)) == "first"
    connection = control.connection()
    connection.request("POST", f"/v1/connections/{name}:receive", b'{"timeoutMs": 60000}', {"Content-Type": "application/json"})
    connection.sock.close()
    connection.close()
    gateway.wait_log("operation=receive .*code=client-gone")
    control.send(name, "second")
    assert control.receive(name) == "second"


def test_a_stream_is_read_written_and_half_closed(control, listener):
    name = control.open(listener.url("tcp"), description="to the test")
    peer = listener.accept()
    control.send(name, b"hello\r\n")
    assert peer.socket.recv(100) == b"hello\r\n"
    peer.socket.sendall(b"0123456789")
    assert control.receive(name, minimumBytes=4, maximumBytes=4) == b"0123"
    assert control.receive(name, minimumBytes=6) == b"456789"
    control.verb(name, "closeWrite").expect(200)
    assert peer.socket.recv(100) == b""
    assert control.show(name)["outputClosed"] is True
    control.verb(name, "closeWrite").problem(409, "direction-closed")
    peer.socket.sendall(b"rest")
    peer.socket.shutdown(socket.SHUT_WR)
    last = control.verb(name, "receive", {"minimumBytes": 100, "maximumBytes": 100}).expect(200)
    assert (last["sizeBytes"], last["isAtEnd"]) == (4, True)
    over = control.closed(name)
    assert (over["sentBytes"], over["receivedBytes"], over["description"]) == (7, 14, "to the test")
    assert over["terminationReason"] == "upstream/relaying/clean"


def test_a_stream_is_secured_with_tls(control, listener, authority, server_certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*map(str, server_certificate))
    name = control.open(listener.url("tcp"))
    peer = listener.accept().socket
    control.send(name, b"STARTTLS\r\n")
    assert peer.recv(100) == b"STARTTLS\r\n"
    with ThreadPoolExecutor(1) as pool:
        secured = pool.submit(context.wrap_socket, peer, server_side=True)
        shown = control.verb(
            name, "startSecureConnection", {"authorities": authority.certificate.read_text(), "serverName": "localhost"}).expect(200)
        inside = secured.result(seconds(10))
    assert shown["tls"]["version"] == "TLS 1.3" and shown["tls"]["serverName"] == "localhost"
    control.send(name, b"secret")
    assert inside.recv(100) == b"secret"
    inside.sendall(b"answer")
    assert control.receive(name) == b"answer"
    control.verb(name, "startSecureConnection", {}).problem(409, "state-conflict")


def test_an_untrusted_certificate_ends_the_connection(control, listener, server_certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*map(str, server_certificate))

    def refuse():
        with pytest.raises((ssl.SSLError, OSError)):
            context.wrap_socket(listener.accept().socket, server_side=True).recv(1)

    with ThreadPoolExecutor(1) as pool:
        refused = pool.submit(refuse)
        problem = control.post("/v1/connections", {"url": listener.url("tls")}).problem(502, "tls-failed")
        refused.result(seconds(10))
    assert problem["connection"]["terminationReason"] == "upstream/connecting/tls"


@pytest.mark.parametrize("kind", ["ws", "tcp"])
def test_the_send_queue_of_a_suspended_connection_is_bounded(serve, python_echo, listener, kind):
    """Concurrent requests: each is checked against the queue at its own turn."""
    gateway, control = serve()
    name = control.open(python_echo[0] if kind == "ws" else listener.url("tcp"))
    control.verb(name, "suspend").expect(200)
    before = gateway.memory()
    payload = base64.b64encode(bytes(512 << 10)).decode()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: control.verb(name, "send", {"data": payload}), range(60)))
    queued = [answer.json for answer in answers if answer.status == 200]
    assert len(queued) == 8
    assert all(one["state"] == "queued" and one["suspended"] for one in queued)
    for answer in answers:
        if answer.status != 200:
            problem = answer.problem(429, "peer-buffer-full")
            assert "suspended" in problem["detail"] and str(4 << 20) in problem["detail"]
    assert control.show(name)["queuedSendBytes"] == 4 << 20
    assert gateway.memory() - before < 96 << 20
    if kind == "ws":
        control.verb(name, "ping").problem(409, "suspended")
    control.verb(name, "resume").expect(200)
    eventually(lambda: control.show(name)["queuedSendBytes"] < 4 << 20, "bytes leaving the queue")
    if kind == "ws":
        for _ in queued:
            assert control.verb(name, "receive").expect(200)["sizeBytes"] == 512 << 10
        control.verb(name, "ping").expect(200)
        assert control.verb(name, "send", {"text": "on"}).expect(200)["suspended"] is False


def test_empty_messages_on_a_suspended_connection_are_bounded(control, python_echo):
    name = control.open(python_echo[0])
    control.verb(name, "suspend").expect(200)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: control.verb(name, "send", {"text": ""}).status, range(4200)))
    assert answers.count(200) == 4096 and answers.count(429) == 104


def test_an_accepted_connection_is_shown_sent_to_and_closed(serve):
    gateway, control = serve()
    with websockets.sync.client.connect(gateway.url(), additional_headers={"Cookie": "secret=1"}) as client:
        client.send("one")
        assert client.recv() == "one"
        (shown,) = control.list(listener="web", route="echo", direction="accepted")
        assert (shown["relayed"], shown["receivedMessages"], shown["sentMessages"]) == (True, 1, 1)
        assert {"name": "Cookie", "value": "(hidden)"} in shown["handshake"]["request"]["headers"]
        control.send(shown["id"], "from above")
        assert client.recv() == "from above"
        control.verb(shown["id"], "receive").problem(409, "relayed")
        control.close(shown["id"], code=4999, reason="moved")
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            client.recv()
        assert (client.close_code, client.close_reason) == (4999, "moved")


def test_a_tunnel_shows_both_its_connections(serve, listener):
    gateway, control = serve(routes=[configuration.route("vnc", listener.url("tcp"), path="/vnc")])
    with websockets.sync.client.connect(gateway.url()) as client:
        peer = listener.accept().socket
        client.send(b"up")
        assert peer.recv(10) == b"up"
        down, up = control.list(sort="id")
        assert (down["tunnelPartner"], up["tunnelPartner"]) == (up["id"], down["id"]) and up["id"] == down["id"] + "u"
        assert (down["kind"], up["kind"], up["direction"]) == ("webSocket", "stream", "opened")
        assert down["receivedBytes"] == up["sentBytes"] == 2 and up["upstream"].startswith("tcp://127.0.0.1")
        control.send(up["id"], b"injected")
        assert peer.recv(10) == b"injected"
        assert control.request("DELETE", f"/v1/connections/{up['id']}?abort=true").expect(200)["state"] == "closed"
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            client.recv()


def test_pages_list_every_connection_once_while_others_open_and_close(control, listener):
    names = {control.open(listener.url("tcp")) for _ in range(60)}
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            control.close(control.open(listener.url("tcp")))

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for sort in ("id", "-age", "bytes", "-id"):
            seen = [one["id"] for one in control.list(limit=7, sort=sort, fields="id", kind="stream")]
            assert len(seen) == len(set(seen)), sort
            assert names <= set(seen), sort
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("method, path, body, status, code, pointer", [
    ("POST", "/v1/connections", {}, 422, "missing-member", "/url"),
    ("POST", "/v1/connections", {"url": "http://a"}, 422, "invalid-value", "/url"),
    ("POST", "/v1/connections", {"url": "tcp://127.0.0.1:1", "headers": {"a": "b"}}, 422, "invalid-value", "/headers"),
    ("POST", "/v1/connections", {"url": "wss://127.0.0.1:1", "tls": {"authorities": "x"}}, 422, "invalid-value", "/tls"),
    ("POST", "/v1/connections", {"url": "tcp://127.0.0.1:1", "bogus": 1}, 422, "unknown-member", "/bogus"),
    ("POST", "/v1/connections", b"[" * 100000, 400, "malformed-json", None),
    ("POST", "/v1/connections/1:send", {"text": "a"}, 404, "unknown-connection", None),
    ("POST", "/v1/connections/x:send", {"text": "a"}, 404, "unknown-connection", None),
    ("POST", "/v1/connections/1:dance", {}, 404, "unknown-path", None),
    ("DELETE", "/v1/connections/1?code=1005", None, 404, "unknown-connection", None),
    ("GET", "/v1/connections?limit=0", None, 400, "invalid-parameter", None),
    ("GET", "/v1/connections?cursor=x", None, 400, "invalid-cursor", None),
    ("GET", "/v1/connections?cursor=kff.0&sort=bytes", None, 410, "cursor-expired", None),
    ("GET", "/v1/connections?fields=id,x", None, 400, "invalid-parameter", None),
    ("GET", "/v1/connections/%00", None, 404, "unknown-connection", None),
    ("GET", "/v1//connections", None, 404, "unknown-path", None),
])
def test_an_invalid_request_is_a_problem(control, method, path, body, status, code, pointer):
    headers = {"Content-Type": "application/json"} if body is not None else {}
    problem = control.request(method, path, body, headers).problem(status, code)
    if pointer:
        assert problem["errors"][0]["pointer"] == pointer


def test_probes_report_the_phase(serve):
    gateway, control = serve(
        [configuration.listener("raw", "tcp://127.0.0.1:0", route="echo")], [configuration.route("echo", "echo")])
    for path in ("/livez", "/readyz", "/startupz"):
        assert control.get(path).expect(200) == {"status": "ok", "phase": "ready"}
    assert control.get("/version").expect(200)["name"] == "sluice"
    assert control.request("HEAD", "/livez").body == b""
    # A stream whose client does not end its side keeps the drain from finishing.
    with socket.create_connection(gateway.address(), timeout=seconds(10)):
        eventually(lambda: control.list(listener="raw"), "the connection")
        gateway.signal(signal.SIGTERM)
        eventually(lambda: control.get("/readyz").status == 503, "not ready any more")
        assert control.get("/livez").status == 200
        control.post("/v1/connections", {"url": "tcp://127.0.0.1:1"}).problem(503, "draining")
    assert gateway.wait() == 0


def test_a_unix_socket_is_accessible_to_its_owner_only(serve, tmp_path):
    path = tmp_path / "control.sock"
    gateway, control = serve(control={"address": f"unix://{path}"})
    assert control.url == f"unix://{path}" and path.stat().st_mode & 0o777 == 0o600
    assert control.list() == []
    assert gateway.stop() == 0
    assert not path.exists()


def test_a_control_plane_keeps_the_unix_socket_of_its_successor(sluice, tmp_path):
    path = tmp_path / "control.sock"

    def start():
        file = configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
            [configuration.route("echo", "echo", path="/echo")], control={"address": f"unix://{path}"})
        return sluice("serve", "--config", file)

    before = start()
    path.unlink()
    after = start()
    assert before.stop() == 0
    assert Control.of(after).list() == []
    assert after.stop() == 0
    assert not path.exists()


def test_an_address_beyond_loopback_is_refused(sluice, tmp_path):
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
        [configuration.route("echo", "echo", path="/echo")], control={"address": "http://0.0.0.0:0"})
    gateway = sluice("serve", "--config", file, ready=False)
    assert gateway.wait() == 78
    gateway.wait_log(r"control\.address")


def test_the_control_plane_can_be_disabled(serve):
    with pytest.raises(StopIteration):
        serve(control={"address": "none"})


def test_a_connection_is_stalled_while_its_peer_does_not_read(serve, listener):
    _, control = serve()
    name = control.open(listener.url("tcp"))
    other = control.open(listener.url("tcp"))
    peer = next(one for one in (listener.accept().socket, listener.accept().socket)
                if one.getpeername()[1] == int(control.show(name)["localAddress"].rpartition(":")[2]))
    assert control.list(stalled="true") == []
    piece = base64.b64encode(b"x" * 600_000).decode()
    sent = 0
    while (answer := control.verb(name, "send", {"data": piece, "timeoutMs": 20})).status == 200:
        sent += 600_000
    answer.problem(429, "peer-buffer-full")
    assert answer.headers["retry-after"]
    assert [one["id"] for one in control.list(stalled="true")] == [name]
    shown = control.show(name)
    assert shown["stalled"] and shown["sendStalledMs"] > 0 and shown["receiveStalledMs"] == 0
    assert eventually(lambda: control.show(name)["sendStalledMs"] > shown["sendStalledMs"], "more time")
    assert not control.show(other)["stalled"] and control.show(other)["sendStalledMs"] == 0
    while sent > 0:
        sent -= len(peer.recv(1 << 20))
    eventually(lambda: not control.show(name)["stalled"], "its end")
    after = control.show(name)["sendStalledMs"]
    assert after == control.show(name)["sendStalledMs"] >= shown["sendStalledMs"]


def test_connections_are_filtered_by_upstream_name_and_by_endpoint(serve, listener):
    gateway, control = serve(
        routes=[configuration.route("up", "backend", path="/up")],
        upstreams=[configuration.upstream("backend", listener.url("tcp"))])
    with websockets.sync.client.connect(gateway.url()):
        peer = listener.accept()
        for wanted in ("backend", listener.url("tcp")):
            down, up = control.list(upstream=wanted, sort="id")
            assert {(one["upstream"], one["endpoint"]) for one in (down, up)} == {("backend", listener.url("tcp"))}
        assert control.list(upstream="other") == []
        peer.close()


def test_maximum_message_size_has_the_name_of_the_task_property_as_an_alias(control, python_echo):
    url, _ = python_echo
    for name in ("maximumMessageSize", "maximumMessageSizeBytes"):
        opened = control.open(url, **{name: 4})
        control.send(opened, "longer")
        assert control.closed(opened)["closeCode"] == 1009
        control.post("/v1/connections", {"url": url, name: 0}).problem(422, "invalid-value")
    problem = control.post("/v1/connections", {"url": url, "maximumMessageSize": 1, "maximumMessageSizeBytes": 2})
    assert problem.problem(422, "invalid-value")["errors"][0]["pointer"] == "/maximumMessageSize"
