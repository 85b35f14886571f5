"""The listener's responses to opening handshakes: requests it must accept, and the status of refusals."""

import pytest

from support import websocket
from support.websocket import TEXT, Wire, accept_value, frame, parse_head, request

KEY = "dGhlIHNhbXBsZSBub25jZQ=="


@pytest.fixture(scope="module")
def server():
    from support import gateway
    one = gateway.Gateway("bridge", "ws://127.0.0.1:0/echo", "echo", "--origin", "https://good.example")
    yield one
    alive = one.running()
    one.kill()
    assert alive, "a request ended the gateway"


def answer(server, data, slowly=False):
    with Wire.connect(server.address()) as wire:
        wire.send_slowly(data) if slowly else wire.send(data)
        got = parse_head(wire.receive_head())
        if got.status != 101:
            # A refusal ends the connection, and its body has the length of its Content-Length (for HEAD there is none).
            body = wire.receive_all(limit=1 << 20)
            length = got.header("Content-Length")
            if data.startswith(b"HEAD "):
                assert not body, got.raw + body
            elif length is not None:
                assert len(body) == int(length), got.raw + body
        return got


def changed(remove=(), add=(), start=None, base=None):
    lines = (base or request("/echo", headers=[("Origin", "https://good.example")])).decode("latin-1").split("\r\n")[:-2]
    kept = [line for line in lines[1:] if line.split(":")[0].lower() not in {name.lower() for name in remove}]
    return "\r\n".join([start or lines[0], *kept, *add, "", ""]).encode("latin-1")


def test_a_valid_request_is_accepted(server):
    got = answer(server, changed())
    assert got.status == 101 and got.header("Sec-WebSocket-Accept") == accept_value(KEY)
    assert got.header("Sec-WebSocket-Protocol") is None and got.header("Sec-WebSocket-Extensions") is None


def test_a_valid_request_sent_byte_by_byte_is_accepted(server):
    assert answer(server, changed(), slowly=True).status == 101


@pytest.mark.parametrize("add", [
    ["connection: keep-alive, UPGRADE"], ["Connection: keep-alive", "Connection: Upgrade"], ["Connection:Upgrade"],
    ["CONNECTION:  upgrade\t "], ["Connection: ,, upgrade ,"]])
def test_connection_is_a_case_insensitive_list(server, add):
    assert answer(server, changed(remove=["Connection"], add=add)).status == 101


@pytest.mark.parametrize("value", ["WebSocket", "WEBSOCKET", " websocket "])
def test_upgrade_is_case_insensitive(server, value):
    assert answer(server, changed(remove=["Upgrade"], add=[f"Upgrade:{value}"])).status == 101


def test_a_query_does_not_affect_routing(server):
    assert answer(server, changed(start="GET /echo?token=1&x=%20 HTTP/1.1")).status == 101


def test_a_frame_sent_with_the_request_is_not_lost(server):
    with Wire.connect(server.address()) as wire:
        wire.send(changed() + frame(TEXT, "early"))
        assert parse_head(wire.receive_head()).status == 101
        client = websocket.Client(wire.socket)
        client.kept = wire.kept
        client.expect_text("early")


def test_a_frame_sent_after_the_response_is_not_lost(server):
    with websocket.connect(server.address(), "/echo", headers=[("Origin", "https://good.example")]) as client:
        client.text("first")
        client.expect_text("first")


REFUSED = {
    "no key": (400, changed(remove=["Sec-WebSocket-Key"])),
    "two keys": (400, changed(add=[f"Sec-WebSocket-Key: {KEY}"])),
    "short key": (400, changed(remove=["Sec-WebSocket-Key"], add=["Sec-WebSocket-Key: AAAA"])),
    "key that is not base64": (400, changed(remove=["Sec-WebSocket-Key"], add=["Sec-WebSocket-Key: !!!!!!!!!!!!!!!!!!!!!!=="])),
    "empty key": (400, changed(remove=["Sec-WebSocket-Key"], add=["Sec-WebSocket-Key:"])),
    "no host": (400, changed(remove=["Host"])),
    "two hosts": (400, changed(add=["Host: other.example"])),
    "space before a colon": (400, changed(add=["X-Odd : 1"])),
    "line without a colon": (400, changed(add=["nonsense"])),
    "folded line": (400, changed(add=["X-Odd: 1", " 2"])),
    "control byte in a value": (400, changed(add=["X-Odd: a\x00b"])),
    "bare CR in a value": (400, changed(add=["X-Odd: a\rb"])),
    "no target": (400, changed(start="GET HTTP/1.1")),
    "no version": (400, changed(start="GET /echo")),
    "space in the path": (400, changed(start="GET /echo /x HTTP/1.1")),
    "a path that climbs": (400, changed(start="GET /echo/../echo HTTP/1.1")),
    "a path that climbs by percent signs": (400, changed(start="GET /%2e%2e/echo HTTP/1.1")),
    "a path that climbs by a backslash": (400, changed(start="GET /echo/..\\echo HTTP/1.1")),
    "a path that climbs by an encoded backslash": (400, changed(start="GET /echo/..%5cecho HTTP/1.1")),
    "a path that climbs after a semicolon": (400, changed(start="GET /echo/..;a=b/echo HTTP/1.1")),
    "a path that climbs when decoded twice": (400, changed(start="GET /echo/%252e%252e%252fecho HTTP/1.1")),
    "a path that climbs by an overlong form": (400, changed(start="GET /echo/%c0%ae%c0%ae%c0%afecho HTTP/1.1")),
    "a zero in the path": (400, changed(start="GET /echo/%00 HTTP/1.1")),
    "line ends in the path": (400, changed(start="GET /echo/a%0d%0aX-Own:%20b HTTP/1.1")),
    "no path at all": (400, changed(start="GET * HTTP/1.1")),
    "not HTTP": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 something else\r\n\r\n"),
    "unknown path": (404, changed(start="GET /elsewhere HTTP/1.1")),
    "path in front": (404, changed(start="GET /echo/more HTTP/1.1")),
    "POST": (405, changed(start="POST /echo HTTP/1.1")),
    "PUT": (405, changed(start="PUT /echo HTTP/1.1")),
    "HEAD": (405, changed(start="HEAD /echo HTTP/1.1")),
    "wrong version": (426, changed(remove=["Sec-WebSocket-Version"], add=["Sec-WebSocket-Version: 8"])),
    "no upgrade": (426, changed(remove=["Upgrade", "Connection"])),
    "upgrade to something else": (426, changed(remove=["Upgrade"], add=["Upgrade: h2c"])),
    "connection without upgrade": (426, changed(remove=["Connection"], add=["Connection: keep-alive"])),
    "foreign origin": (403, changed(remove=["Origin"], add=["Origin: https://evil.example"])),
    "origin that ends alike": (403, changed(remove=["Origin"], add=["Origin: https://good.example.evil.example"])),
    "origin of another scheme": (403, changed(remove=["Origin"], add=["Origin: http://good.example"])),
    "null origin": (403, changed(remove=["Origin"], add=["Origin: null"])),
    "long header": (431, changed(add=["X-Long: " + "a" * 20_000])),
    "many headers": (431, changed(add=[f"X-{number}: 1" for number in range(500)])),
    "header without end": (431, changed()[:-2] + b"X-Endless: " + b"a" * 64_000),
}


@pytest.mark.parametrize("status, data", REFUSED.values(), ids=list(REFUSED))
def test_an_invalid_request_is_refused_with_its_status(server, status, data):
    got = answer(server, data)
    assert got.status == status, got.raw
    if status == 426:
        assert got.header("Sec-WebSocket-Version") == "13", got.raw
        assert (got.header("Upgrade") or "").lower() == "websocket", got.raw  # RFC 9110 §15.5.22
    if status == 405:
        assert "GET" in (got.header("Allow") or ""), got.raw  # RFC 9110 §15.5.6


def test_non_ascii_bytes_in_a_field_are_forwarded_unchanged(bridge, listener):
    """RFC 9110 §5.5: obs-text is opaque. UTF-8 in one field, ISO-8859-1 in another, neither in a third."""
    fields = [("Cookie", "name=caf\xe9"), ("User-Agent", "caf\xc3\xa9"), ("Accept-Language", "\xff\x80")]
    gateway = bridge("ws://127.0.0.1:0/", listener.url("ws", "/"))
    with Wire.connect(gateway.address()) as near:
        near.send(websocket.request("/", headers=fields))
        far, asked = listener.accept_request()
        with far:
            for name, value in fields:
                assert f"{name}: {value}\r\n".encode("latin-1") in asked.raw, asked.raw


@pytest.mark.parametrize("path, wanted", [
    ("/a%2Fb", "/up?room=a%2Fb&fixed=1"), ("/a&fixed=2", "/up?room=a%26fixed%3D2&fixed=1"), ("/a+b;c", "/up?room=a%2Bb%3Bc&fixed=1")])
def test_a_path_parameter_in_a_query_is_percent_encoded(bridge, listener, path, wanted):
    gateway = bridge("ws://127.0.0.1:0/{room}", listener.url("ws", "/up?room={room}&fixed=1"))
    with Wire.connect(gateway.address()) as near:
        near.send(websocket.request(path))
        far, asked = listener.accept_request()
        far.close()
    assert asked.start_line == f"GET {wanted} HTTP/1.1"


@pytest.mark.parametrize("version", ["", "12", "14", "013", "13, 8", "1300000000000000000000000"])
def test_websocket_versions_other_than_13_are_refused(server, version):
    got = answer(server, changed(remove=["Sec-WebSocket-Version"], add=[f"Sec-WebSocket-Version: {version}"]))
    assert got.status in (400, 426), got.raw


@pytest.mark.parametrize("start", ["GET /echo HTTP/1.0", "GET /echo HTTP/2.0", "GET /echo HTTP/0.9"])
def test_http_versions_other_than_1_1_are_refused(server, start):
    assert answer(server, changed(start=start)).status in (400, 426, 505)


@pytest.mark.parametrize("data", [b"\x00" * 100, b"\xff" * 100_000, b"\r\n" * 20_000, b"GET " + b"/" * 100_000, b"A" * 100_000])
def test_noise_ends_only_its_connection(server, data):
    with Wire.connect(server.address()) as wire:
        try:
            wire.send(data)
            wire.finish_sending()
            wire.receive_all(limit=1 << 20)
        except (AssertionError, OSError):
            pass
    assert answer(server, changed()).status == 101


def test_a_client_that_disconnects_within_its_request_releases_its_descriptors(server):
    before = server.descriptors()
    for end in ("close", "reset"):
        wire = Wire.connect(server.address())
        wire.send(changed()[:60])
        getattr(wire, end)()
    server.settle(before)


@pytest.mark.parametrize("sent", [b"", b"G", b"GET /echo HTTP/1.1\r\nHost: x\r\n"])
def test_an_unfinished_request_times_out(bridge, sent):
    gateway = bridge("ws://127.0.0.1:0/echo", "echo", "--handshake-timeout", "500ms")
    with Wire.connect(gateway.address()) as wire:
        wire.send(sent)
        # A status is allowed, an end is enough: the connection must not stay open.
        rest = wire.receive_all(limit=4096)
        assert rest == b"" or rest.startswith(b"HTTP/1.1 408"), rest


def test_a_trickling_request_times_out(bridge):
    import threading
    gateway = bridge("ws://127.0.0.1:0/echo", "echo", "--handshake-timeout", "500ms")
    with Wire.connect(gateway.address()) as wire:
        ended = threading.Event()

        def trickle():
            try:
                while not ended.wait(0.05):
                    wire.socket.send(b"a")
            except OSError:
                pass

        wire.send(b"GET /echo HTTP/1.1\r\nX-Slow: ")
        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        try:
            drain(wire)
        finally:
            ended.set()
            thread.join()


def drain(wire):
    try:
        wire.receive_all(limit=4096)
    except websocket.Reset:
        pass
