"""Every endpoint with input that is missing, wrong, huge or hostile: a problem document, and nothing is lost by it."""

import gzip
import json
import socket
import time
import urllib.parse

import pytest

from support import configuration
from support.control import Control
from support.deadlines import eventually, seconds


@pytest.fixture
def serve(sluice, tmp_path):
    def start(**control):
        file = configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
            [configuration.route("echo", "echo", path="/echo")],
            control={"address": "http://127.0.0.1:0", "targets": ["127.0.0.1"], **control})
        gateway = sluice("serve", "--config", file)
        return gateway, Control.of(gateway)

    return start


def nested(depth, inside="1"):
    return ("[" * depth + inside + "]" * depth).encode()


# What is no JSON, or JSON that no request can mean.
BODIES = {
    "not JSON": b"{", "a number": b"1", "a list": b"[]", "a string": b'"x"', "null": b"null", "true": b"true",
    "no UTF-8": b'{"url": "\xff\xfe"}', "UTF-16": '{"url": "ws://127.0.0.1"}'.encode("utf-16"), "zeros": b"\0" * 1000,
    "deep lists": nested(100_000), "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "deep and unfinished": b"[" * 500_000, "another object": b'{"unknown": 1}', "two values": b"{} {}",
    "half a surrogate": b'{"url": "\\ud800"}', "a name of 1 MB": b'{"' + b"a" * 1_000_000 + b'": 1}',
    "a number beyond all": b'{"timeoutMs": 1e999}', "many members": json.dumps({f"m{n}": n for n in range(20_000)}).encode(),
    "a trailing comma": b'{"url": "x",}', "not a number": b'{"timeoutMs": NaN}', "a form": b"url=ws%3A%2F%2F127.0.0.1",
}
BODY_STATUSES = {400, 409, 413, 415, 422}


def operations(control):
    """(method, path with {id}, operation) of everything that the document describes."""
    document = control.get("/openapi.json").expect(200)
    return [(method.upper(), path, operation) for path, methods in document["paths"].items() for method, operation in methods.items()], document


def assert_problem(answer, statuses, note):
    assert answer.status in statuses, f"{note}: {answer.status} {answer.body[:300]!r}"
    problem = answer.json
    assert answer.headers["content-type"] == "application/problem+json", note
    assert problem["status"] == answer.status and problem["code"] and problem["detail"], note
    # No more of the input comes back than shows what is meant; of a configuration, a hundred problems at most.
    assert len(answer.body) < 65536, f"{note}: {len(answer.body)} bytes"


def test_a_body_that_cannot_be_meant_is_a_problem_at_every_endpoint(serve):
    gateway, control = serve()
    name = control.open(f"ws://127.0.0.1:{gateway.port()}/echo")
    before = control.show(name)
    taking, _ = operations(control)
    tried = 0
    for method, path, operation in taking:
        if "requestBody" not in operation:
            continue
        target = path.replace("{id}", name)
        for note, body in BODIES.items():
            answer = control.request(method, target, body, headers={"Content-Type": "application/json"})
            if operation["operationId"] in ("receive", "changeConnection", "startSecureConnection") and answer.status in (200, 204):
                pytest.fail(f"{operation['operationId']} took {note}")
            # What does not exist is told before anybody reads the body.
            statuses = BODY_STATUSES if "/connections" in path else BODY_STATUSES | {404}
            assert_problem(answer, statuses, f"{operation['operationId']} with {note}")
            tried += 1
        for media in ("text/html", "application/xml", "application/x-www-form-urlencoded", "x" * 1000):
            answer = control.request(method, target, b"{}", headers={"Content-Type": media})
            assert_problem(answer, {409, 415} if "/connections" in path else {404, 409, 415}, f"{operation['operationId']} as {media[:40]}")
    assert tried >= 4 * len(BODIES)
    # Nothing was sent, changed or ended by all that.
    after = control.show(name)
    for member in ("state", "sentMessages", "receivedMessages", "description", "priority", "labels", "suspended"):
        assert before.get(member) == after.get(member), member
    control.send(name, "still here")
    assert control.receive(name) == "still here"
    assert len(control.list()) == 2  # it, and the echo's side of it


NAMES = ["", "0", "-1", "x", "17u17", "9" * 40, "%00", "%FF", "%2F", "..", "%2e%2e%2f", "..%5c", "..;", "%0d%0aX: y", "%252e%252e", "1;x", "1%20", "𝟙", "a" * 4000, "null", "1:send", "{id}"]


def test_a_name_that_nothing_has_is_not_found_at_every_endpoint(serve):
    _, control = serve()
    for method, path, operation in operations(control)[0]:
        if "{id}" not in path:
            continue
        for name in NAMES:
            target = path.replace("{id}", urllib.parse.quote(name, safe="%/:;"))
            answer = control.request(method, target, b"{}" if method != "GET" else None, headers={"Content-Type": "application/json"})
            assert_problem(answer, {400, 404, 405}, f"{method} {target[:80]}")


QUERIES = ["unknown=1", "%zz=1", "%", "a=%FF", "&".join(f"a{n}=1" for n in range(100)), "limit=1&limit=2", "=", "fields=%00", "x" * 8000]


def test_a_query_that_cannot_be_meant_is_a_problem_at_every_endpoint(serve):
    gateway, control = serve()
    name = control.open(f"ws://127.0.0.1:{gateway.port()}/echo")
    for method, path, operation in operations(control)[0]:
        for query in QUERIES:
            answer = control.request(method, path.replace("{id}", name) + "?" + query, b"{}" if method != "GET" else None)
            assert_problem(answer, {400}, f"{method} {path}?{query[:40]}")
    assert control.show(name)["state"] == "open"


@pytest.mark.parametrize("query", [
    "kind=x", "state=x", "direction=x", "limit=0", "limit=1001", "limit=-1", "limit=1e3", "sort=x", "sort=--id", "sort=-", "fields=x",
    "minAgeMs=x", "minAgeMs=-1", "minAgeMs=nan", "minAgeMs=inf", "maxAgeMs=1e400", "stalled=maybe", "cursor=x", "cursor=k", "cursor=k1.-1",
    "cursor=kffffffffffffffff.1", "cursor=k1.99999999999999999999", "cursor=a", "id=x", "cursor=" + "a" * 5000,
])
def test_a_value_of_the_list_that_cannot_be_meant_is_named(serve, query):
    _, control = serve()
    answer = control.get("/v1/connections?" + query)
    assert_problem(answer, {400, 410}, query)
    assert answer.json["errors"][0]["parameter"] == query.split("=")[0]


OPENINGS = [
    {"url": ""}, {"url": "http://127.0.0.1"}, {"url": "ws://"}, {"url": "ws://127.0.0.1:0"}, {"url": "ws://127.0.0.1:99999"},
    {"url": "tcp://127.0.0.1"}, {"url": "ws://user:password@127.0.0.1"}, {"url": "ws://127.0.0.1/\r\nX: y"}, {"url": "ws://127.0.0.1/#x"},
    {"url": "ws://" + "a" * 300}, {"url": "ws://127.0.0.1/" + "a" * 10_000}, {"url": "unix://relative"}, {"url": "unix:///" + "a" * 200},
    {"url": 1}, {"url": None}, {"url": ["ws://127.0.0.1"]}, {"url": "ws://127.0.0.1", "headers": {"a b": "c"}},
    {"url": "ws://127.0.0.1", "headers": {"X": "a\r\nHost: evil"}}, {"url": "ws://127.0.0.1", "headers": {"X": "a\0"}},
    {"url": "ws://127.0.0.1", "headers": {"Host": "evil"}}, {"url": "ws://127.0.0.1", "headers": {"Sec-WebSocket-Key": "x"}},
    {"url": "ws://127.0.0.1", "subprotocols": ["a b"]}, {"url": "ws://127.0.0.1", "subprotocols": ["a", "a"]},
    {"url": "ws://127.0.0.1", "maximumMessageSizeBytes": 0}, {"url": "ws://127.0.0.1", "maximumMessageSizeBytes": 1 << 60},
    {"url": "ws://127.0.0.1", "connectTimeoutMs": -1}, {"url": "ws://127.0.0.1", "connectTimeoutMs": 1e300},
    {"url": "ws://127.0.0.1", "priority": 2}, {"url": "ws://127.0.0.1", "labels": {"": "x"}}, {"url": "ws://127.0.0.1", "labels": {"a:b": "x"}},
    {"url": "ws://127.0.0.1", "labels": {f"l{n}": "x" for n in range(65)}}, {"url": "ws://127.0.0.1", "labels": {"a": "x" * 257}},
    {"url": "ws://127.0.0.1", "description": "x" * 1025}, {"url": "wss://127.0.0.1", "tls": {"insecur": True}},
    {"url": "wss://127.0.0.1", "tls": {"authorities": "no PEM"}}, {"url": "wss://127.0.0.1", "tls": {"minimumVersion": "1.0"}},
    {"url": "wss://127.0.0.1", "tls": {"applicationProtocols": ["x" * 256]}}, {"url": "ws://127.0.0.1", "tls": {}},
    {"url": "wss://127.0.0.1", "tls": []}, {"url": "tcp://127.0.0.1:1", "headers": {}}, {"url": "ws://127.0.0.1", "keepAlive": {"probes": 0}},
    {"url": "ws://127.0.0.1", "keepAlive": {"probe": 1}}, {"url": "wss://127.0.0.1", "tls": {"serverName": "a" * 70_000}},
]


def test_an_order_that_cannot_be_carried_out_opens_nothing(serve):
    _, control = serve()
    for order in OPENINGS:
        answer = control.post("/v1/connections", order)
        # What only shows when it is tried is told as what it was.
        assert_problem(answer, {403, 422, 502}, json.dumps(order)[:100])
    assert control.list() == []


def exchange(control, head, body=b"", within=15.0):
    with socket.create_connection((control.parts.hostname, control.parts.port), timeout=seconds(within)) as one:
        one.sendall(head + body)
        received = b""
        try:
            while chunk := one.recv(65536):
                received += chunk
        except ConnectionResetError:
            pass
        return received


HEADS = [
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"".join(b"X%d: 1\r\n" % n for n in range(1000)) + b"\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"\0\1\2\3\r\n\r\n", b"GET\r\n\r\n",
    b"POST /v1/connections HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/connections HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}   ",
    b"POST /v1/connections HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/connections HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64 + b"\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


@pytest.mark.parametrize("head", HEADS, ids=range(len(HEADS)))
def test_what_is_no_request_ends_its_own_connection_alone(serve, head):
    gateway, control = serve()
    name = control.open(f"ws://127.0.0.1:{gateway.port()}/echo")
    received = exchange(control, head, within=30)
    # What comes with a length of its own is refused before its end is looked for.
    assert received.startswith((b"HTTP/1.1 400", b"HTTP/1.1 422")), received[:200]
    head, _, document = received.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head and json.loads(document)["status"] == int(received[9:12])
    control.send(name, "still here")
    assert control.receive(name) == "still here"


def parts(received):
    """(status, header fields in lower case, body)"""
    head, _, body = received.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    return int(line.split()[1]), {field.partition(":")[0].lower(): field.partition(":")[2].strip() for field in fields}, body


def test_a_client_of_http_1_0_is_answered_and_sees_the_end(serve):
    # It waits for the end of the connection: to hold it open would hold the client up.
    _, control = serve()
    start = time.monotonic()
    status, fields, body = parts(exchange(control, b"GET /livez HTTP/1.0\r\n\r\n"))
    assert (status, fields["connection"], json.loads(body)["status"]) == (200, "close", "ok")
    status, fields, body = parts(exchange(control, b"GET /v1/events?durationMs=10 HTTP/1.0\r\nHost: localhost\r\n\r\n"))
    assert status == 200 and "transfer-encoding" not in fields and body.startswith(b":\n\n")
    for option in (b"close", b"Close", b"TE, close"):
        status, fields, _ = parts(exchange(control, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: " + option + b"\r\n\r\n"))
        assert (status, fields["connection"]) == (200, "close"), option
    assert time.monotonic() - start < seconds(10)
    # Where it asks for that, the connection stays for the next request.
    with socket.create_connection((control.parts.hostname, control.parts.port), timeout=seconds(10)) as one:
        for _ in range(2):
            one.sendall(b"GET /livez HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
            status, fields, _ = parts(one.recv(65536))
            assert (status, fields["connection"]) == (200, "keep-alive")


@pytest.mark.parametrize("version, coding", [("1.0", "chunked"), ("1.1", "gzip, chunked"), ("1.1", "gzip")])
def test_a_transfer_coding_that_is_not_understood_is_refused(serve, version, coding):
    gateway, control = serve()
    head = f"POST /v1/drains HTTP/{version}\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: {coding}\r\n\r\n"
    body = b'{"all":true}'
    received = exchange(control, head.encode(), b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
    assert received.count(b"\r\n\r\n") == 1
    status, fields, document = parts(received)
    assert (status, fields["connection"], fields["content-type"]) == (501, "close", "application/problem+json")
    assert json.loads(document)["code"] == "unsupported-transfer-coding"
    assert not [line for line in gateway.log.all() if "operation=startDrain" in line]


def test_the_authority_of_a_target_in_absolute_form_counts(serve):
    _, control = serve()
    own = f"http://127.0.0.1:{control.parts.port}"
    for target, more, wanted in (
        ("http://evil.example/livez", "Host: 127.0.0.1\r\n", (421, "unknown-host")), (f"{own}/livez", "Host: evil.example\r\n", (200, None)),
        (f"{own}/livez", f"Host: evil.example\r\nOrigin: {own}\r\n", (200, None)),
        ("http://localhost/livez", f"Host: 127.0.0.1\r\nOrigin: {own}\r\n", (403, "cross-origin")),
        (f"{own}/livez", "", (400, "bad-host")), (f"{own}/livez", "Host: a\r\nHost: b\r\n", (400, "bad-host")),
        ("http://user@127.0.0.1/livez", "Host: 127.0.0.1\r\n", (400, "bad-host")), ("ftp://127.0.0.1/livez", "Host: 127.0.0.1\r\n", (421, "unknown-scheme")),
    ):
        status, _, body = parts(exchange(control, f"GET {target} HTTP/1.1\r\n{more}Connection: close\r\n\r\n".encode()))
        assert (status, json.loads(body).get("code")) == wanted, target


NUMBERS = [
    ("POST", "/v1/connections", '{"url": "ws://127.0.0.1/", "maximumMessageSizeBytes": %s}', "/maximumMessageSizeBytes"),
    ("POST", "/v1/connections", '{"url": "ws://127.0.0.1/", "keepAlive": {"probes": %s}}', "/keepAlive/probes"),
    ("POST", "/v1/drains", '{"all": true, "code": %s}', "/code"),
    ("POST", "/v1/listeners", '{"name": "x", "listen": "ws://127.0.0.1:0", "backlog": %s}', "/backlog"),
]


@pytest.mark.parametrize("method, path, body, pointer", NUMBERS, ids=[pointer for *_, pointer in NUMBERS])
@pytest.mark.parametrize("number", ["1.5", "-1", "1e400", "-1e400", "99999999999999999999"])
def test_a_number_that_cannot_be_meant_is_pointed_at(serve, method, path, body, pointer, number):
    _, control = serve()
    answer = control.request(method, path, (body % number).encode(), headers={"Content-Type": "application/json"})
    assert_problem(answer, {422}, number)
    assert answer.json["errors"][0]["pointer"] == pointer


def test_every_answer_with_a_body_ends_with_a_line_feed(serve):
    gateway, control = serve()
    name = control.open(f"ws://127.0.0.1:{gateway.port()}/echo")
    for path in ("/livez", "/version", "/metrics", "/openapi.json", "/v1/connections", f"/v1/connections/{name}", "/v1/listeners", "/v1/listeners/web",
                 "/v1/configuration", "/v1/configuration?format=yaml", "/v1/drains", "/v1/operations", "/v1/transfers", "/v1/nothing", "/livez?x=1"):
        answer = control.get(path)
        assert answer.body.endswith(b"\n") and not answer.body.endswith(b"\n\n"), path
        assert int(answer.headers["content-length"]) == len(answer.body), path
    assert exchange(control, b"\0\r\n\r\n").endswith(b"}\n")


@pytest.mark.parametrize("offer", ["h2c", "websocket", "other"])
def test_an_offer_of_another_protocol_is_answered_and_ends_the_connection(serve, offer):
    # Nobody reads what comes behind it, as it may be of the other protocol.
    _, control = serve()
    body = b'{"url": "x"}'
    for head in (b"GET /livez", b"GET /v1/connections", b"GET /v1/nothing", b"POST /v1/connections"):
        received = exchange(
            control, head + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: Upgrade\r\n"
            + f"Upgrade: {offer}\r\nContent-Length: {len(body)}\r\n\r\n".encode(), body, within=30)
        assert received.count(b"HTTP/1.1 ") == 1 and b"connection: close\r\n" in received.lower(), received[:200]
        json.loads(received.partition(b"\r\n\r\n")[2])


def test_a_compressed_body_is_refused(serve):
    gateway, control = serve()
    body = gzip.compress(json.dumps({"url": f"ws://127.0.0.1:{gateway.port()}/echo"}).encode())
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    for path in ("/v1/connections", "/v1/drains", "/v1/transfers", "/v1/routes"):
        control.post(path, body, headers=headers).problem(415, "unsupported-coding")
    assert control.list() == []


def test_a_body_without_an_end_is_ended(serve):
    gateway, control = serve()
    head = b"POST /v1/connections HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with socket.create_connection((control.parts.hostname, control.parts.port), timeout=seconds(20)) as one:
        one.sendall(head)
        start = time.monotonic()
        with pytest.raises((BrokenPipeError, ConnectionResetError, TimeoutError)):
            while time.monotonic() - start < seconds(15):
                one.sendall(chunk)
    assert gateway.memory() < 512 << 20
    eventually(lambda: control.get("/livez").status == 200, "alive")
