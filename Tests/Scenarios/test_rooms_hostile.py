"""Hostile clients of the rooms: the gateway stays alive, its memory is bounded, and other clients are served as ever."""

import base64
import hashlib
import hmac
import http.client
import json
import re
import time
import urllib.parse

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain_metrics

from support.brokers import only
from support.client import Client
from support.deadlines import eventually, seconds, sized
from support.room_member import RoomService, delimited, field, varint
from support.websocket import Reset, Wire, connect, parse_head

ALL = {"name": "all", "pattern": "*", "publish": "everyone", "read": "everyone", "presence": True, "join-leave": True,
       "history-size": 100, "recovery": "stream"}
SECRET = "a secret of the scenarios that is long enough for HS256"
DEADLINE = 20


@pytest.fixture
def serve(sluice, tmp_path, broker):
    return lambda policy=None, tokens=None, **rooms: RoomService(
        sluice, tmp_path, {"policies": [{**ALL, **(policy or {})}, {**ALL, "name": "others"}], **({"tokens": "main"} if tokens else {}), **rooms},
        **({"tokens": [{"name": "main", **tokens}]} if tokens else {}), **broker())


# -- bytes that are no commands

CONNECT = '{"id":1,"connect":{}}'
MALFORMED = {
    "no JSON": "nonsense", "a number": "1", "an array": "[]", "a string": '"connect"', "cut off": '{"id":2,"publish":{"channel":"a"',
    "trailing bytes": '{"id":2,"ping":{}}}', "two on one line": '{"id":2,"ping":{}}{"id":3,"ping":{}}',
    "id as text": '{"id":"2","ping":{}}', "id with a fraction": '{"id":2.5,"ping":{}}', "id with an exponent": '{"id":1e3,"ping":{}}',
    "id of 2^32": '{"id":4294967296,"ping":{}}', "id of 2^64": '{"id":18446744073709551616,"ping":{}}', "negative id": '{"id":-1,"ping":{}}',
    "id of 400 digits": '{"id":' + "9" * 400 + ',"ping":{}}', "no id": '{"publish":{"channel":"a","data":1}}',
    "channel as number": '{"id":2,"publish":{"channel":1,"data":1}}', "channel as list": '{"id":2,"subscribe":{"channel":["a"]}}',
    "offset of 2^64": '{"id":2,"subscribe":{"channel":"a","recover":true,"offset":18446744073709551616}}',
    "negative offset": '{"id":2,"subscribe":{"channel":"a","recover":true,"offset":-1}}',
    "limit of 2^63": '{"id":2,"history":{"channel":"a","limit":9223372036854775808}}',
    "deep data": '{"id":2,"publish":{"channel":"a","data":' + "[" * 65 + "]" * 65 + "}}",
    "open brackets": '{"id":2,"publish":{"channel":"a","data":' + "[" * 50_000, "open objects": '{"id":' * 10_000,
    "deep field": '{"id":2,"x":' + '{"a":' * 5000 + "1" + "}" * 5000 + "}", "raw control character": '{"id":2,"publish":{"channel":"a\x01","data":1}}',
    "bad escape": '{"id":2,"publish":{"channel":"\\x","data":1}}', "empty channel": '{"id":2,"subscribe":{"channel":""}}',
    "NaN": '{"id":2,"publish":{"channel":"a","data":NaN}}', "NUL": "\0", "second connect": CONNECT,
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_malformed_json_ends_the_connection_alone(shared, text):
    with shared.member("health") as one:
        one.send(text)
        assert one.closed() == (3501, "bad request")
    shared.expect_healthy()


def test_text_that_is_not_utf8_ends_the_connection_alone(shared):
    for opcode, code in ((1, 1007), (2, 3501)):
        with shared.member() as one:
            one.peer.write(opcode, b'{"id":2,"publish":{"channel":"\xff\xc0\xaf","data":1}}')
            assert one.closed()[0] == code
    shared.expect_healthy()


CHANNEL = field(1, b"a")
BINARY = {
    "length beyond the end": b"\x7f\x08\x01", "length of ten bytes": b"\xff" * 9 + b"\x01", "length of eleven bytes": b"\xff" * 11,
    "empty command first": b"\x00" + b"\x01", "cut in a tag": delimited(b"\x88"), "cut in a number": delimited(b"\x08\xff"),
    "field beyond its message": delimited(field(1, 2) + b"\x3a\x05\x0a\x01a"), "field of 2^63": delimited(b"\x3a" + varint(1 << 63)),
    "field of 2^64-1": delimited(b"\x3a" + varint((1 << 64) - 1)), "wire type 3": delimited(b"\x0b"), "wire type 7": delimited(b"\x0f"),
    "id of 2^32": delimited(field(1, 1 << 32) + field(11, b"")), "id as bytes": delimited(field(1, b"\x01")),
    "channel as number": delimited(field(1, 2) + field(7, field(1, 7))), "no UTF-8": delimited(field(1, 2) + field(5, field(1, b"\xff\xfe"))),
    "no id": delimited(field(7, CHANNEL + field(2, b"1"))), "nested since": delimited(field(1, 2) + field(10, CHANNEL + field(8, b"\x12\x7f"))),
    "fixed64 cut off": delimited(b"\x09\x01"), "only the first byte": b"\x80", "JSON": b'{"id":2,"ping":{}}',
}


@pytest.mark.parametrize("content", BINARY.values(), ids=BINARY)
def test_malformed_protobuf_ends_the_connection_alone(shared, content):
    with shared.connect(protobuf=True) as one:
        one.send(delimited(field(1, 1) + field(4, b"")))
        one.peer.read_message()
        one.send(content)
        assert one.closed() == (3501, "bad request")
    shared.expect_healthy()


def test_every_beginning_of_a_protobuf_command_is_refused_or_taken(shared):
    whole = delimited(field(1, 1) + field(4, field(1, b"") + field(2, b"{}") + field(3, field(1, b"a") + field(2, field(3, 1) + field(7, 5)))))
    for end in range(1, len(whole)):
        with shared.connect(protobuf=True) as one:
            one.send(whole[:end])
            assert one.closed()[0] == 3501, end
    shared.expect_healthy()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One gateway for all tests with malformed bytes, which reach no broker."""
    from support import gateway
    started = []

    def start(*arguments, **more):
        started.append(gateway.Gateway(*arguments, **more))
        return started[0]

    yield RoomService(start, tmp_path_factory.mktemp("shared"), {"policies": [ALL]})
    trapped = started[0].trapped() or not started[0].running()
    started[0].kill()
    assert not trapped, f"the gateway did not run to the end: {started[0].log.all()[-20:]}"


# -- floods

def test_each_command_of_a_large_batch_is_answered_once(serve):
    service = serve({"join-leave": False}, **{"command-rate": 1_000_000})
    count = sized(5000, 50_000)
    with service.member("a") as one:
        for start in range(0, count, 1000):
            one.send("\n".join(json.dumps({"id": 10 + number, "publish": {"channel": "a", "data": number}})
                               for number in range(start, min(start + 1000, count))))
        replies, offsets = [], []
        while len(replies) < count or len(offsets) < count:
            got = one.receive()
            (replies if "id" in got else offsets).append(got)
        assert [each["id"] for each in replies] == list(range(10, 10 + count))
        assert [each["push"]["pub"]["offset"] for each in offsets] == list(range(1, 1 + count))
    service.expect_healthy()


def test_rooms_end_with_the_clients_that_flooded_them(serve):
    service = serve({"history-time": "1s"}, **{"command-rate": 100_000})
    members = [service.member(*(f"flood {number} {room}" for room in range(100))) for number in range(5)]
    assert service.metric("sluice_rooms") == 500
    for one in members:
        one.peer.reset()
    eventually(lambda: service.metric("sluice_room_members") == 0, "no members", within=20)
    service.expect_no_rooms(within=90)
    service.expect_healthy()


def test_a_room_that_is_named_twice_in_a_request_is_entered_once(serve):
    service = serve({"history-size": 0, "recovery": "off", "join-leave": False})
    with service.connect() as one, service.member("a") as other:
        one.send('{"id":1,"connect":{"subs":{"a":{},"a":{}}}}')
        answer = one.receive()
        assert list(answer["connect"]["subs"]) == ["a"]
        other.command(publish={"channel": "a", "data": 1})
        other.command(publish={"channel": "a", "data": 2})
        assert [one.receive()["push"]["pub"]["data"] for _ in range(2)] == [1, 2]
        assert service.metric("sluice_room_members") == 2
    service.expect_no_rooms()


def test_clients_that_vanish_leave_their_rooms(serve):
    service = serve({"history-size": 0, "recovery": "off"}, **{"ping-interval": "3s", "pong-timeout": "2900ms"})
    with service.member("a"), service.member("a") as reset, service.member("a") as cut:
        reset.peer.reset()
        cut.peer.finish_sending()
        # The first one stays open, and answers nothing.
        eventually(lambda: service.ended_with(3012) >= 1, "no pong is noticed")
        eventually(lambda: service.metric("sluice_room_members") == 0, "no members")
    service.expect_no_rooms()


# -- forged positions

@pytest.mark.parametrize("position, recovers", [
    ({"offset": 3}, True), ({"offset": 6}, False), ({"offset": (1 << 64) - 1}, False), ({"offset": 1 << 63}, False),
    ({"offset": 3, "epoch": "forged"}, False), ({"offset": 3, "epoch": "x" * 10_000}, False), ({"offset": 0, "epoch": ""}, True),
    ({"offset": 3, "epoch": ""}, False), ({"offset": 3, "epoch": "\u0000\n"}, False),
])
def test_forged_positions_recover_nothing_that_was_not_missed(serve, position, recovers):
    service = serve()
    with service.member() as speaker, service.member() as one:
        epoch = speaker.command(history={"channel": "a"})["history"]["epoch"]
        for number in range(1, 6):
            speaker.command(publish={"channel": "a", "data": number})
        answer = one.command(subscribe={"channel": "a", "recover": True, "epoch": epoch, **position})["subscribe"]
        assert answer.get("recovered", False) == recovers and answer["was_recovering"]
        missed = [each["data"] for each in answer.get("publications", [])]
        assert missed == (list(range(position["offset"] + 1, 6)) if recovers else [])
        assert one.command(history={"channel": "a", "limit": 10, "since": {"offset": (1 << 64) - 1, "epoch": epoch}})["history"]
        assert one.command(history={
            "channel": "a", "limit": 10, "reverse": True, "since": {"offset": (1 << 64) - 1, "epoch": epoch}})["history"]["offset"] == 5
        assert one.refused(history={"channel": "a", "limit": 1, "since": {"offset": 1, "epoch": "forged"}}) == 112
    service.expect_healthy()


# -- tokens

def token(claims=None, key=SECRET, **more):
    return jwt.encode({"sub": "ada", "exp": int(time.time()) + 600, **(claims or {})}, key, algorithm="HS256", **more)


def test_forged_connection_tokens_are_refused(serve):
    service = serve(tokens={"secret": SECRET, "audience": "chat", "issuer": "joe"})
    good = {"aud": "chat", "iss": "joe"}
    with service.connect() as one:
        assert "connect" in one.command(connect={"token": token(good)})
    head, claims, code = token(good).split(".")
    forged = base64.urlsafe_b64encode(b'{"sub":"root","aud":"chat","iss":"joe"}').decode().rstrip("=")
    for made in [
        jwt.encode({**good, "sub": "root"}, None, algorithm="none"), f"{head}.{forged}.{code}", f"{head}.{claims}.", f"{head}.{claims}",
        token({**good, "aud": "other"}), token({**good, "iss": "eve"}), token(), token(good, key="y" * 40), token({**good, "channel": "a"}),
        token({**good, "nbf": int(time.time()) + 600}), "x", "..", "a.b.c", "." * 1000, "x" * 20_000, token({**good, "sub": ["ada"]}),
        token({**good, "exp": "soon"}), token({**good, "subs": ["a"]}), token({**good, "channels": {"a": 1}}), token({**good, "channels": "a"}),
    ]:
        with service.connect() as one:
            one.send(json.dumps({"id": 1, "connect": {"token": made}}))
            assert one.closed() == (3500, "invalid token"), made[:80]
    with service.connect() as one:
        assert one.refused(connect={"token": token({**good, "exp": int(time.time()) - 5})}) == 109
        assert "connect" in one.command(connect={"token": token(good)})
    with service.connect() as one:
        assert one.command(connect={"token": token({**good, "exp": 1 << 52})})["connect"]["ttl"] == (1 << 32) - 1
    for claims in ({"exp": (1 << 63) - 1}, {"exp": 1e300}, {"expire_at": (1 << 64) - 1}, {"expire_at": -1e18}, {"nbf": -1e300}):
        with service.connect() as one:
            one.send(json.dumps({"id": 1, "connect": {"token": token({**good, **claims})}}))
            assert one.closed() == (3500, "invalid token"), claims
    service.expect_healthy()


def test_public_key_is_no_secret(serve, tmp_path):
    key = rsa.generate_private_key(65537, 2048)
    file = tmp_path / "issuer.pem"
    file.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    service = serve(tokens={"key-file": str(file)})
    signed = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"HS256","typ":"JWT"}', b'{"sub":"root"}'))
    for secret in (file.read_bytes(), file.read_bytes().strip()):
        code = base64.urlsafe_b64encode(hmac.new(secret, signed.encode(), hashlib.sha256).digest()).decode().rstrip("=")
        with service.connect() as one:
            one.send(json.dumps({"id": 1, "connect": {"token": f"{signed}.{code}"}}))
            assert one.closed() == (3500, "invalid token")
    with service.connect() as one:
        assert "connect" in one.command(connect={"token": jwt.encode({"sub": "ada"}, key, algorithm="RS256")})
    service.expect_healthy()


def test_subscription_tokens_are_for_one_room_and_one_user(serve):
    service = serve({"pattern": "a", "subscribe": "token"}, tokens={"secret": SECRET})
    with service.connect() as one, service.connect() as other:
        client = one.command(connect={"token": token()})["connect"]["client"]
        other.command(connect={"token": token()})
        assert one.refused(subscribe={"channel": "a"}) == 103
        for made in (token({"channel": "a"}, key="y" * 40), token({"channel": 1}), token({"channel": ""}), token(), "x",
                     token({"channel": "a", "b64data": "*"}),
                     jwt.encode({"sub": "ada", "channel": "a"}, None, algorithm="none")):
            assert one.refused(subscribe={"channel": "a", "token": made}) == 103, made
        assert one.refused(subscribe={"channel": "a", "token": token({"channel": "a", "exp": int(time.time()) - 5})}) == 109
        assert one.refused(subscribe={"channel": "a", "token": token({"channel": "a", "exp": int(time.time()) + 60, "expire_at": 1})}) == 110
        bound = token({"channel": "a", "client": client})
        assert "subscribe" in one.command(subscribe={"channel": "a", "token": bound})
        assert other.refused(sub_refresh={"channel": "a", "token": bound}) == 103
        other.send(json.dumps({"id": 99, "subscribe": {"channel": "a", "token": bound}}))
        assert other.closed() == (3500, "invalid token")
        one.send(json.dumps({"id": 99, "refresh": {"token": token({"sub": "bob"})}}))
        assert one.closed() == (3500, "invalid token")
    foreign = (token({"channel": "b"}), token({"channel": "a", "sub": "bob"}), token({"channel": "a", "sub": ""}),
               token({"channel": "a", "client": "another"}), token({"channel": "*"}), token({"channel": "A"}))
    for made in foreign:
        with service.connect() as one:
            one.command(connect={"token": token()})
            one.send(json.dumps({"id": 99, "subscribe": {"channel": "a", "token": made}}))
            assert one.closed() == (3500, "invalid token"), made
    for made in (*foreign, token(), "x", token({"channel": "a"}, key="y" * 40)):
        with service.connect() as one:
            one.command(connect={"token": token()})
            assert "subscribe" in one.command(subscribe={"channel": "a", "token": token({"channel": "a"})})
            one.send(json.dumps({"id": 99, "sub_refresh": {"channel": "a", "token": made}}))
            assert one.closed() == (3500, "invalid token"), made
    service.expect_healthy()


# -- names as data

NAMES = [
    "<script>alert(1)</script>", "a\"b'c`d", "{room} {0} {{", "100%25%0d%0aX: y", "../../etc/passwd", "..", "a\\nb\\", "$(id);`id`",
    "\u202egnp.exe\u2066", "\u2028\u2029", "é😀 " * 20, "x" * 255, "*", "?a=b#c", "a b", "]]>-->", "data: x", ",", "\u009b2J",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_are_data_everywhere(serve, name):
    service = serve(**{"user-header": "X-User"}, tokens={"secret": SECRET})
    with service.connect() as one:
        assert one.command(connect={"token": token({"sub": name, "info": {"name": name}})})["connect"]
        assert "subscribe" in one.command(subscribe={"channel": name})
        assert list(one.command(presence={"channel": name})["presence"]["presence"].values())[0]["user"] == name
        stream = events(service, subs={name: {}})
        connected = json.loads(stream.frame())
        assert list(connected["connect"]["subs"]) == [name]
        assert one.command(publish={"channel": name, "data": {"text": name}})
        # Over Redis, others' entries may be heard later.
        while "pub" not in (pushed := json.loads(stream.frame())):
            pass
        assert pushed["channel"] == name and pushed["pub"]["data"] == {"text": name} and pushed["pub"]["info"]["user"] == name
        stream.close()
        path = "/v1/rooms/" + (urllib.parse.quote(name, safe="") if name != ".." else "%2E%2E")
        assert service.control.get(path).expect(200)["name"] == name
        assert service.control.get(f"{path}/members").expect(200)["items"]
        check_metrics(service, name)
        commands = Client(service.control.url)
        table = commands("rooms")
        assert table.count("\n") == 2 and not any(ord(each) < 32 and each != "\n" or 0x7F <= ord(each) < 0xA0 for each in table)
        assert [each["name"] for each in commands.run("rooms", "--json").json["items"]] == [name]
    service.expect_healthy()
    for line in service.gateway.log.all():
        json.loads(line)


def check_metrics(service, name):
    for accept, parse in (("text/plain", plain_metrics), ("application/openmetrics-text", open_metrics)):
        text = service.control._exchange("GET", "/metrics", None, {"Accept": accept}, 20).body.decode()
        assert list(parse(text))
        if len(name) > 3:
            assert name not in text


@pytest.mark.parametrize("name", ["a\nb", "a\r\nevent: x", "a\0", "\x7f", "a\tb", "\x1b[2J"])
def test_names_of_rooms_have_no_control_characters(serve, name):
    service = serve()
    with service.member() as one:
        for command in ({"subscribe": {"channel": name}}, {"publish": {"channel": name, "data": 1}}):
            assert one.refused(**command) == 107
    status, answer = service.post({"publish": {"channel": name, "data": 1}})
    assert (status, answer["error"]["code"]) == (400, 107)
    assert service.names() == []


@pytest.mark.parametrize("user", ["a\r\nevent: x\ndata: y", "a\0b", "\x1b[2J\x1b]0;title\x07", "\u009b2J\u202e", "u" * 2000],
                         ids=["lines", "NUL", "escape", "C1", "long"])
def test_names_of_users_break_no_frame_and_no_line(serve, user):
    service = serve(tokens={"secret": SECRET})
    stream = events(service, subs={"a": {}})
    stream.frame()
    with service.connect() as one:
        one.command(connect={"token": token({"sub": user, "info": {"a": user}})})
        assert "subscribe" in one.command(subscribe={"channel": "a"})
        assert json.loads(stream.frame())["join"]["info"]["user"] == user
        assert any(each.get("user") == user for each in service.control.get("/v1/rooms/a/members").expect(200)["items"])
        for words in (("rooms", "a", "--members"),):
            table = Client(service.control.url)(*words)
            assert not any(ord(each) < 32 and each != "\n" or 0x7F <= ord(each) < 0xA0 for each in table), words
    service.expect_healthy()
    for line in service.gateway.log.all():
        json.loads(line)


# -- clients that only receive

class Events:
    """Server-Sent Events, read frame by frame; anything that is no `data` line fails."""

    def __init__(self, connection):
        self.connection = connection
        self.response = connection.getresponse()
        assert self.response.status == 200, self.response.read()
        self.client = None

    def frame(self):
        """Data of the next event that is no ping, and not the client's own entry."""
        while True:
            line = self.response.readline()
            assert line.startswith(b"data: ") and line.endswith(b"\n") and b"\r" not in line, line
            end = self.response.readline()
            assert (self.response.readline() if re.fullmatch(rb"id: [\x21-\x7e]+\n", end) else end) == b"\n"
            push = json.loads(line[6:])
            self.client = push.get("connect", {}).get("client", self.client)
            if push and push.get("join", {}).get("info", {}).get("client", "") != self.client:
                return line[6:-1]

    def close(self):
        self.connection.close()


def events(service, **connect):
    connection = http.client.HTTPConnection("127.0.0.1", service.gateway.port(), timeout=seconds(DEADLINE))
    connection.request("GET", "/connection/uni_sse?" + urllib.parse.urlencode({"cf_connect": json.dumps(connect)}),
                       headers={"Accept": "text/event-stream"})
    return Events(connection)


def test_line_breaks_of_a_message_begin_no_event(serve):
    service = serve()
    stream = events(service, subs={"a": {}})
    stream.frame()
    raw = '{"a":\r\n\r\n[\n\n1,\r2]}'
    expected = {"a": [1, 2]}
    assert service.post(('{"publish":{"channel":"a","data":' + raw + "}}").encode())[0] == 200
    assert json.loads(stream.frame())["pub"]["data"] == expected
    answer = service.control.request(
        "POST", "/v1/rooms/a:publish", ('{"data":' + raw + "}").encode(), {"Content-Type": "application/json"})
    answer.expect(200)
    assert json.loads(stream.frame())["pub"]["data"] == expected
    with service.connect(protobuf=True) as one:
        one.send(delimited(field(1, 1) + field(4, b"")))
        one.peer.read_message()
        one.send(delimited(field(1, 2) + field(7, CHANNEL + field(2, raw.encode()))))
        assert json.loads(stream.frame())["pub"]["data"] == expected
    with connect(service.gateway.address(), "/chat/a") as plain:
        assert "join" in json.loads(stream.frame())
        plain.text(raw)
        assert json.loads(stream.frame())["pub"]["data"] == expected
        plain.text("data: x\r\n\r\nevent: y\n\n")
        assert json.loads(stream.frame())["pub"]["data"] == "data: x\r\n\r\nevent: y\n\n"
    stream.close()
    service.expect_healthy()


BODIES = [b"", b"{}", b"[]", b"1", b'"publish"', b"null", b'{"publish":1}', b'{"publish":[]}', b'{"publish":{"channel":1}}',
          b'{"publish":{"channel":"","data":1}}', b'{"publish":{}}', b'{"publish":{"channel":"a","data":}}', b'{"publish":null}',
          b'{"publish":{"channel":"a"}', b'\xff\xfe', b'{"subs":[]}', b'{"subs":{"a":1}}', b'{"subs":{"a":{"offset":-1}}}', b'{"token":1}',
          b'{"subs":{"a":{"offset":18446744073709551616}}}', b'{"publish":{"channel":"a","data":' + b"[" * 100 + b"]" * 100 + b"}}"]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_bodies_of_wrong_types_are_refused_or_open_a_stream(shared, body):
    connection = http.client.HTTPConnection("127.0.0.1", shared.gateway.port(), timeout=seconds(DEADLINE))
    connection.request("POST", "/connection/uni_sse", body)
    answer = connection.getresponse()
    assert answer.status in (200, 400, 401, 403)
    if answer.status != 200:
        assert json.loads(answer.read())["error"]["code"] in (101, 107)
    connection.close()
    shared.expect_healthy()


def test_bodies_that_never_end_are_cut_off(shared):
    head = b"POST /connection/uni_sse HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
    with Wire.connect(shared.gateway.address()) as wire:
        wire.send(head)
        start = time.monotonic()
        with pytest.raises(Reset):
            while time.monotonic() - start < seconds(15):
                wire.send(chunk)
        assert time.monotonic() - start < seconds(15)
        assert parse_head(wire.receive_head()).status == 413
    for length in (b"262145", b"99999999999", b"18446744073709551616", b"-1"):
        with Wire.connect(shared.gateway.address()) as wire:
            wire.send(b"POST /connection/uni_sse HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + b"\r\n\r\n")
            assert parse_head(wire.receive_head()).status in (400, 413)
    shared.expect_healthy()


# -- slow readers

def publish_much(service, room, pieces, size=60_000):
    with service.member(room) as speaker:
        for number in range(pieces):
            assert "error" not in speaker.command(publish={"channel": room, "data": [number, "x" * size]})


@only("alone", "What waits for a member is the same, whoever keeps the room.")
@pytest.mark.parametrize("policy", ["disconnect", "drop-oldest", "skip-to-latest"])
def test_a_member_that_does_not_read_costs_little(serve, policy):
    service = serve({"history-size": 0, "recovery": "off", "slow-readers": policy, "join-leave": False})
    with service.member("a", receive_buffer=4096) as slow:
        publish_much(service, "a", 250)
        if policy == "disconnect":
            eventually(lambda: service.ended_with(3008) == 1, "the slow member is disconnected")
        else:
            eventually(lambda: service.metric("sluice_room_lost_total") > 0, "messages are lost")
            numbers = []
            while not numbers or numbers[-1] != 249:
                numbers.append(slow.receive()["push"]["pub"]["data"][0])
            assert numbers == sorted(set(numbers)) and len(numbers) < 250
    service.expect_healthy()


def test_a_slow_member_of_a_room_with_recovery_comes_back_for_what_it_missed(serve):
    service = serve({"history-size": 400, "history-bytes": "64MiB", "slow-readers": "drop-oldest", "join-leave": False})
    with service.member("a", receive_buffer=4096) as slow:
        publish_much(service, "a", 180)
        heard = []
        while "unsubscribe" not in (push := slow.receive()["push"]):
            heard.append(push["pub"]["offset"])
        assert push["unsubscribe"]["code"] == 2500 and heard == list(range(1, len(heard) + 1))
        epoch = slow.command(history={"channel": "a"})["history"]["epoch"]
        again = slow.command(subscribe={"channel": "a", "recover": True, "offset": heard[-1], "epoch": epoch})["subscribe"]
        assert again["recovered"] and [each["offset"] for each in again["publications"]] == list(range(heard[-1] + 1, 181))


@only("alone", "What waits for a member is the same, whoever keeps the room.")
def test_a_stream_that_is_never_read_ends(serve):
    service = serve({"history-size": 0, "recovery": "off", "join-leave": False})
    query = urllib.parse.urlencode({"cf_connect": '{"subs":{"a":{}}}'})
    with Wire.connect(service.gateway.address(), receive_buffer=4096) as wire:
        wire.send(f"GET /connection/uni_sse?{query} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert parse_head(wire.receive_head()).status == 200
        publish_much(service, "a", 250)
        eventually(lambda: service.ended_with(3008) == 1, "the stream is ended")
        eventually(lambda: service.metric("sluice_room_members") == 0, "no members")
    service.expect_healthy()


@only("alone", "A reply is the same, whoever keeps the room.")
def test_clients_that_recover_much_and_read_nothing_cost_little(serve):
    service = serve({"join-leave": False})
    rooms, clients = 60, 10
    with service.member() as speaker:
        for room in range(rooms):
            for _ in range(8):
                assert "error" not in speaker.command(publish={"channel": f"room {room}", "data": "x" * 60_000})
    before = service.gateway.memory()
    wanted = {f"room {room}": {"recover": True, "offset": 0, "epoch": ""} for room in range(rooms)}
    members = [service.connect(receive_buffer=4096) for _ in range(clients)]
    for one in members:
        one.send(json.dumps({"id": 1, "connect": {"subs": wanted}}))
    eventually(lambda: service.metric("sluice_room_members") == rooms * clients, "all are members")
    # Each reply has at most 16 MiB, instead of 27.
    assert service.gateway.memory() - before < clients * (18 << 20)
    results = members[0].receive()["connect"]["subs"].values()
    assert 30 < sum(one.get("recovered", False) for one in results) < rooms
    for one in members:
        one.peer.close()
