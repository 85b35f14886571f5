"""Clients of the rooms' protocol without a WebSocket: replies in a response that goes on, commands with further requests."""

import http.client
import json
import urllib.parse

import pytest

from support.deadlines import seconds
from support.room_member import RoomService, delimited, field

PATH = "/connection/uni_sse"
POLICY = {"name": "all", "pattern": "*", "presence": True, "history-size": 10, "recovery": "stream"}


@pytest.fixture
def service(sluice, tmp_path, broker):
    return RoomService(sluice, tmp_path, {"policies": [POLICY]}, loops=2, **broker())


@pytest.fixture
def pinging(sluice, tmp_path, broker):
    """A gateway whose pings a test waits for."""
    rooms = {"policies": [POLICY], "ping-interval": "3s", "pong-timeout": "2900ms"}
    return RoomService(sluice, tmp_path, rooms, loops=2, **broker())


class EmulatedMember:
    """A client whose commands are JSON, with replies as lines (`lines`) or as Server-Sent Events (`events`)."""

    def __init__(self, service, form, connect='{"id":1,"connect":{}}'):
        self.service = service
        self.number = 1
        self.pending = []
        self.connection = http.client.HTTPConnection("127.0.0.1", service.gateway.port(), timeout=seconds(20))
        if form == "events":
            self.connection.request("GET", f"{PATH}?{urllib.parse.urlencode({'cf_connect': connect})}")
        else:
            self.connection.request("POST", PATH, connect, {"Content-Type": "application/json"})
        self.response = self.connection.getresponse()
        assert self.response.status == 200
        self.type = self.response.headers["Content-Type"]

    def receive(self):
        """The next reply or push; pings are answered."""
        while True:
            line = self.response.readline().decode()
            assert line, "the response ended"
            line = line.strip().removeprefix("data: ")
            if line == "{}":
                self.send("{}")
            elif line:
                return json.loads(line)

    def connected(self):
        self.session = self.receive()["connect"]
        return self.session

    def send(self, commands, session=None):
        """The status that answers a request with commands."""
        body = {"session": session or self.session["session"], "node": self.session["node"], "data": commands}
        connection = http.client.HTTPConnection("127.0.0.1", self.service.gateway.port(), timeout=seconds(20))
        try:
            connection.request("POST", PATH, json.dumps(body), {"Content-Type": "application/json"})
            return connection.getresponse().status
        finally:
            connection.close()

    def command(self, **request):
        self.number += 1
        assert self.send(json.dumps({"id": self.number, **request})) == 204
        while (answer := self.receive()).get("id") != self.number:
            pass
        return answer


@pytest.mark.parametrize(("form", "type"), [("lines", "application/json"), ("events", "text/event-stream")])
def test_client_without_a_websocket_does_all_that_others_do(service, form, type):
    one = EmulatedMember(service, form)
    assert one.type == type
    connected = one.connected()
    assert connected["pong"] and connected["session"] not in ("", connected["client"])
    assert one.command(subscribe={"channel": "a"})["subscribe"]["recoverable"]
    with service.member("a") as other:
        assert one.command(publish={"channel": "a", "data": {"text": "é\n"}})["publish"] == {}
        assert other.receive()["push"]["pub"]["data"] == {"text": "é\n"}
        other.command(publish={"channel": "a", "data": 2})
        while one.receive().get("push", {}).get("pub", {}).get("data") != 2:
            pass
        assert len(one.command(presence={"channel": "a"})["presence"]["presence"]) == 2
    assert one.command(unsubscribe={"channel": "a"})["unsubscribe"] == {}
    one.connection.close()


@pytest.mark.parametrize("form", ["lines", "events"])
def test_pings_are_answered_by_requests(pinging, form):
    one = EmulatedMember(pinging, form)
    one.connected()
    # Without answers the connection would have ended.
    for _ in range(2):
        while one.response.readline().decode().strip().removeprefix("data: ") != "{}":
            pass
        assert one.send("{}") == 204
    assert "subscribe" in one.command(subscribe={"channel": "a"})
    one.connection.close()


def test_commands_of_several_requests_and_messages_keep_their_order(service):
    one = EmulatedMember(service, "lines", '{"id":1,"connect":{}}\n{"id":2,"subscribe":{"channel":"a"}}')
    one.connected()
    assert one.receive()["id"] == 2
    for start in range(10, 60, 10):
        commands = [json.dumps({"id": number, "publish": {"channel": "a", "data": number}}) for number in range(start, start + 10)]
        assert one.send("\n".join(commands)) == 204
    received = [one.receive() for _ in range(100)]
    assert [each["id"] for each in received if "id" in each] == list(range(10, 60))
    assert [each["push"]["pub"]["data"] for each in received if "push" in each] == list(range(10, 60))


def test_requests_of_strangers_are_refused(service):
    one = EmulatedMember(service, "lines")
    client = one.connected()["client"]
    for session in (client, "x", "0" * 32):
        assert one.send('{"id":7,"subscribe":{"channel":"a"}}', session) == 404
    one.connection.close()


def test_protocol_that_is_broken_ends_the_response_with_the_code(service):
    one = EmulatedMember(service, "lines", '{"id":1,"connect":{"token":"x"}}')
    assert one.receive()["push"]["disconnect"] == {"code": 3500, "reason": "invalid token"}
    assert one.response.read().strip() == b""
    one = EmulatedMember(service, "events")
    one.connected()
    assert one.send("nonsense") == 204
    assert one.receive()["push"]["disconnect"]["code"] == 3501
    assert one.send("{}") == 404


def test_session_ends_with_its_response(service):
    one = EmulatedMember(service, "lines")
    one.connected()
    one.command(subscribe={"channel": "gone"})
    one.connection.close()
    one.response.close()
    with service.member("gone") as other:
        while len(other.command(presence={"channel": "gone"})["presence"]["presence"]) > 1:
            pass
    assert one.send("{}") == 404


def test_protobuf_is_spoken_without_a_websocket(service):
    def post(body):
        connection = http.client.HTTPConnection("127.0.0.1", service.gateway.port(), timeout=seconds(20))
        connection.request("POST", PATH, body, {"Content-Type": "application/octet-stream"})
        return connection, connection.getresponse()

    def reply(response):
        while (length := response.read(1)[0]) == 0:
            pass
        return response.read(length)

    connection, response = post(delimited(field(1, 1) + field(4, b"")))
    assert response.headers["Content-Type"] == "application/octet-stream"
    connected = reply(response)
    # id (1) 1, connect (5) {client (1), version (2), …, session (9), node (10)}
    assert connected[:3] == b"\x08\x01\x2a"
    session = connected[connected.index(b"\x4a\x20") + 2:][:32]
    commands = delimited(field(1, 2) + field(5, field(1, b"a")))
    _, answer = post(field(1, b"node") + field(2, session) + field(3, commands))
    assert answer.status == 204
    assert reply(response)[:3] == b"\x08\x02\x32"
    connection.close()
