"""A client of the rooms' protocol that sends whatever a test likes, and a gateway that must survive it."""

import json
import re
import socket
import urllib.request

from . import configuration, websocket
from .brokers import await_redis
from .control import Control
from .deadlines import eventually, seconds
from .websocket import BINARY, CLOSE, TEXT

PATH = "/connection/websocket"


class RoomService:
    """A gateway with the rooms' routes and a control plane."""

    # Memory that a hostile client may leave behind, in bytes: allocators keep pages, and a debug binary more of them.
    ALLOWANCE = 96 << 20

    def __init__(self, sluice, folder, rooms, listener=None, route=None, chat=None, **more):
        """`listener`, `route` (of programs) and `chat` are more keys of theirs."""
        self.file = folder / "sluice.yaml"
        self.rooms = rooms
        more = {"loops": 2, **more}
        configuration.write(
            self.file, [configuration.listener("web", "ws://127.0.0.1:0", **(listener or {}))], [
                configuration.route("programs", "rooms", path=PATH, **(route or {})),
                configuration.route("events", "room-events", path="/connection/uni_sse"),
                configuration.route("chat", "chat", path="/chat/{room}", **(chat or {}))],
            control={"address": "http://127.0.0.1:0"}, rooms=rooms, **more)
        self.gateway = sluice("serve", "--config", self.file, "--log-format", "json")
        self.control = Control.of(self.gateway)
        if "cluster" in more:
            await_redis(self.control)
        self.memory = self.gateway.memory()

    def connect(self, protobuf=False, **more):
        path = PATH + ("?format=protobuf" if protobuf else "")
        return RoomMember(websocket.connect(self.gateway.address(), path, **more), protobuf)

    def member(self, *rooms, **more):
        """A connected client that has entered these rooms."""
        one = self.connect(**more)
        assert "connect" in one.command(connect={})
        for room in rooms:
            answer = one.command(subscribe={"channel": room})
            assert "subscribe" in answer, answer
        return one

    def post(self, body, path="/connection/uni_sse", headers=None):
        """(status, JSON) of one request of a client that only receives, or publishes."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        one = urllib.request.Request(f"http://127.0.0.1:{self.gateway.port()}{path}", data=body, headers=headers or {}, method="POST")
        try:
            with urllib.request.urlopen(one, timeout=seconds(20)) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.request.HTTPError as refusal:
            text = refusal.read()
            return refusal.code, json.loads(text) if text.startswith(b"{") else text

    def metric(self, name, **labels):
        """Sum of the samples of this name with these labels."""
        text = self.control._exchange("GET", "/metrics", None, {}, 60).body.decode()
        total = 0.0
        for line in text.splitlines():
            found = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
            if found and all(f'{key}="{value}"' in (found[1] or "") for key, value in labels.items()):
                total += float(found[2])
        return total

    def ended_with(self, code):
        """Connections that ended with this code of the protocol."""
        return self.metric("sluice_room_disconnects_total", code=code)

    def names(self):
        return [one["name"] for one in self.control.get("/v1/rooms?limit=1000").expect(200)["items"]]

    def expect_no_rooms(self, within=60.0):
        eventually(lambda: not self.names(), "no rooms are left", within)

    def expect_healthy(self):
        """Another client is served as ever, and the memory is bounded."""
        with self.member("health") as one:
            assert one.command(publish={"channel": "health", "data": 1})
        assert self.gateway.running()
        assert self.gateway.memory() - self.memory < self.ALLOWANCE


class RoomMember:
    """A WebSocket with JSON commands; frames of any other content are sent with `send`."""

    def __init__(self, peer, protobuf=False):
        self.peer = peer
        self.protobuf = protobuf
        self.pending = []
        self.number = 0

    def send(self, content):
        """One message: text in JSON's encoding, bytes in Protobuf's, unless the other is given."""
        self.peer.write(BINARY if isinstance(content, bytes) else TEXT, content.encode() if isinstance(content, str) else content)

    def receive(self):
        """The next reply or push that is no ping."""
        while not self.pending:
            _, payload = self.peer.read_message()
            self.pending = [json.loads(line) for line in payload.decode().split("\n") if line and line != "{}"]
        return self.pending.pop(0)

    def command(self, **request):
        """The reply to a command; pushes before it are left out."""
        self.number += 1
        self.send(json.dumps({"id": self.number, **request}))
        while (answer := self.receive()).get("id") != self.number:
            pass
        return answer

    def refused(self, **request):
        """The code of the error that answers a command."""
        answer = self.command(**request)
        assert "error" in answer, answer
        return answer["error"]["code"]

    def closed(self):
        """(code, reason) of the Close frame; what was sent before it is left out."""
        while True:
            frame = self.peer.read()
            if frame.opcode == CLOSE:
                return frame.code, frame.payload[2:].decode()

    def vanish(self):
        """The machine of the client is gone: no close, no reset, nothing is read."""
        self.peer.socket.shutdown(socket.SHUT_RD)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.peer.close()


def varint(value):
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(made + bytes([value]))


def field(number, content):
    """A field of Protobuf: a whole number, or bytes."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def delimited(content):
    return varint(len(content)) + content
