"""Rooms over the control plane: REST with curl, Centrifugo's server API with its own client, and the commands."""

import hashlib
import json
import signal
import socket
import subprocess
import threading

import cent
import pytest

from support import configuration
from support.brokers import await_redis, only
from support.client import Client
from support.control import Control
from support.deadlines import Lines, eventually, seconds
from support.websocket import connect

KEY = "slc_" + "k" * 43

ROOMS = {
    "user-header": "X-User",
    "policies": [
        {"name": "kept", "pattern": "kept:*", "history-size": 100, "recovery": "stream", "presence": True},
        {"name": "plain", "pattern": "plain*"},
    ],
    "api-keys": [{"name": "backend", "hash": "sha256:" + hashlib.sha256(KEY.encode()).hexdigest()}],
}


@pytest.fixture
def serve(sluice, tmp_path, broker):
    cluster = broker()

    def write(rooms):
        return configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
            [configuration.route("rooms", "rooms", path="/rooms")], control={"address": "http://127.0.0.1:0"}, rooms=rooms,
            loops=2, **cluster)

    def start(rooms=ROOMS):
        gateway = sluice("serve", "--config", write(rooms))
        control = Control.of(gateway)
        if cluster:
            await_redis(control)
        return gateway, control

    start.write = write
    start.cluster = cluster
    return start


class Member:
    """A client of the rooms' protocol."""

    def __init__(self, gateway, user, *rooms):
        self.socket = connect(gateway.address(0), "/rooms", headers=[("X-User", user)])
        self.pending = []
        self.client = self.command({"connect": {}})["connect"]["client"]
        for room in rooms:
            assert "subscribe" in self.command({"subscribe": {"channel": room}})

    def receive(self):
        if not self.pending:
            _, payload = self.socket.read_message()
            self.pending = [json.loads(line) for line in payload.decode().splitlines()]
        return self.pending.pop(0)

    def command(self, command):
        self.socket.text(json.dumps({"id": 1, **command}))
        return self.receive()


def curl(*words):
    done = subprocess.run(["curl", "-sS", *words], capture_output=True, text=True, timeout=seconds(20), check=True)
    return json.loads(done.stdout)


# -- REST


def test_curl_publishes_and_moderates(serve):
    gateway, control = serve()
    ada = Member(gateway, "ada", "kept:a/é")
    room = f"{control.url}/v1/rooms/kept%3Aa%2F%C3%A9"
    published = curl("-X", "POST", f"{room}:publish", "-H", "Content-Type: application/json", "-d", '{"data": {"n": 1.0}}')
    assert published["offset"] == 1 and ada.receive()["push"]["pub"]["data"] == {"n": 1.0}
    assert [one["name"] for one in curl(f"{control.url}/v1/rooms?minMembers=1")["items"]] == ["kept:a/é"]
    assert curl(f"{room}/members")["items"][0]["client"] == ada.client
    assert curl("-X", "POST", f"{room}:kick", "-d", '{"user": "ada"}', "-H", "Content-Type: application/json") == {"clients": 1}
    assert ada.receive()["push"]["unsubscribe"]["code"] == 2000


# -- Centrifugo's server API


def test_cent_works_unchanged(serve):
    gateway, control = serve()
    client = cent.Client(f"{control.url}/api", KEY)
    ada = Member(gateway, "ada", "kept:a")
    bob = Member(gateway, "bob", "kept:a", "plain")
    first = client.publish(cent.PublishRequest(channel="kept:a", data={"text": "hé"}, tags={"k": "v"}, idempotency_key="one"))
    assert first.offset == 1 and first.epoch
    assert client.publish(cent.PublishRequest(channel="kept:a", data={"text": "again"}, idempotency_key="one")) == first
    for member in (ada, bob):
        pushed = member.receive()["push"]["pub"]
        assert (pushed["data"], pushed["offset"], pushed["tags"]) == ({"text": "hé"}, 1, {"k": "v"})
    broadcast = client.broadcast(cent.BroadcastRequest(channels=["kept:a", "plain", "other"], data=[1, 2]))
    assert [one.error.code if one.error else 0 for one in broadcast.responses] == [0, 0, 102]

    presence = client.presence(cent.PresenceRequest(channel="kept:a")).presence
    assert {one.user for one in presence.values()} == {"ada", "bob"} and set(presence) == {ada.client, bob.client}
    stats = client.presence_stats(cent.PresenceStatsRequest(channel="kept:a"))
    assert (stats.num_clients, stats.num_users) == (2, 2)
    history = client.history(cent.HistoryRequest(channel="kept:a", limit=10, reverse=True))
    assert [one.data for one in history.publications] == [[1, 2], {"text": "hé"}] and history.offset == 2
    since = cent.StreamPosition(offset=1, epoch=history.epoch)
    assert [one.offset for one in client.history(cent.HistoryRequest(channel="kept:a", limit=10, since=since)).publications] == [2]
    assert {name: one.num_clients for name, one in client.channels(cent.ChannelsRequest()).channels.items()} == {"kept:a": 2, "plain": 1}
    node = client.info(cent.InfoRequest()).nodes[0]
    assert (node.num_clients, node.num_users, node.num_channels, node.num_subs) == (2, 2, 2, 3)

    client.subscribe(cent.SubscribeRequest(user="ada", channel="plain"))
    client.unsubscribe(cent.UnsubscribeRequest(user="bob", channel="plain"))
    members = "/v1/rooms/plain/members"
    eventually(lambda: [one["user"] for one in control.get(members).json.get("items", [])] == ["ada"], "another member")
    assert client.channels(cent.ChannelsRequest(pattern="plain*")).channels["plain"].num_clients == 1
    client.refresh(cent.RefreshRequest(user="ada", expire_at=4102444800))
    client.history_remove(cent.HistoryRemoveRequest(channel="kept:a"))
    assert client.history(cent.HistoryRequest(channel="kept:a", limit=10)).publications == []
    replies = client.batch(cent.BatchRequest(requests=[
        cent.PublishRequest(channel="kept:a", data={}), cent.PresenceStatsRequest(channel="kept:a")], parallel=True)).replies
    assert replies[0].offset == 3 and replies[1].num_clients == 2

    client.disconnect(cent.DisconnectRequest(user="ada", disconnect=cent.Disconnect(code=4001, reason="bye")))
    while ada.socket.read().opcode != 8:
        pass
    with pytest.raises(cent.CentApiResponseError) as error:
        client.publish(cent.PublishRequest(channel="other", data={}))
    assert error.value.code == 102
    with pytest.raises(cent.CentUnauthorizedError):
        cent.Client(f"{control.url}/api", "wrong").info(cent.InfoRequest())


@only("alone", "The keys are no matter of the rooms.")
def test_keys_follow_a_reload(serve):
    without = {key: value for key, value in ROOMS.items() if key != "api-keys"}
    _, control = serve(rooms=without)
    headers = {"X-API-Key": KEY}
    control.post("/api/info", {}, headers=headers).problem(404, "unknown-path")
    serve.write(ROOMS)
    control.post("/v1/configuration:reload").expect(200)
    assert control.post("/api/info", {}, headers=headers).expect(200)["result"]["nodes"]
    control.post("/api/info", {}, headers={"X-API-Key": KEY + "x"}).problem(401, "unauthorized")
    serve.write(without)
    control.post("/v1/configuration:reload").expect(200)
    control.post("/api/info", {}, headers=headers).problem(404, "unknown-path")


# -- commands


class Forwarder:
    """Forwards TCP connections to an address until they are cut."""

    def __init__(self, address):
        self.address = address
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        self.open = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            upstream = socket.create_connection(self.address)
            self.open += [client, upstream]
            for pair in ((client, upstream), (upstream, client)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    @staticmethod
    def _copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        for one in self.open:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.open = []


def test_tail_misses_nothing_over_lost_connections(serve):
    _, control = serve()
    forwarder = Forwarder((control.parts.hostname, control.parts.port))
    client = Client(control.url)
    client("publish", "kept:a", "0")
    tail = Client(forwarder.url).start("tail", "kept:a", "--last", "1")
    try:
        lines, notes = Lines(tail.stdout), Lines(tail.stderr)
        lines.wait_for(lambda line: line.endswith("  1  -  0"), "the first message")
        for number in range(1, 6):
            forwarder.cut()
            client("publish", "kept:a", str(number))
            lines.wait_for(lambda line: line.endswith(f"  {number + 1}  -  {number}"), f"message {number}")
        assert [line.rsplit("  ", 1)[1] for line in lines.all()] == [str(number) for number in range(6)]
        assert len([line for line in notes.all() if line.endswith("reconnecting")]) >= 1
        tail.send_signal(signal.SIGINT)
        tail.wait(seconds(10))
    finally:
        tail.kill()
        tail.wait()
        forwarder.server.close()


def test_commands_list_moderate_and_publish(serve):
    gateway, control = serve()
    client = Client(control.url)
    ada = Member(gateway, "ada", "kept:a")
    assert client("publish", "kept:a", '{"n": 1}', "--tag", "k=v") == "published at 1\n"
    pushed = ada.receive()["push"]["pub"]
    assert pushed["data"] == {"n": 1} and pushed["tags"] == {"k": "v"}
    assert client("publish", "kept:a", "-", text="two\n") == "published at 2\n"
    assert [line.split()[0] for line in client.run("rooms").lines] == ["ROOM", "kept:a"]
    name, count, nodes, rooms = client.run("users").lines[1].split()
    assert (name, count, rooms) == ("ada", "1", "kept:a") and (nodes == "-") == (not serve.cluster)
    assert client("rooms", "--json").encode() == control.get("/v1/rooms", limit=1000).body
    assert client.run("rooms", "kept:a", "--history").lines[1].endswith('  2  -  "two"')
    assert client("rooms", "kept:a", "--kick", "--user", "ada") == "removed 1 client\n"
    assert "in every room for" in client("users", "ada", "--ban", "--for", "1h")
    assert "ban " in client("users", "ada")
    assert client("users", "ada", "--unban") == "lifted\n"
    assert client("users", "ada", "--disconnect") == "disconnected 1 client\n"
    while ada.socket.read().opcode != 8:
        pass
    ada.socket.close()
    eventually(lambda: client.run("users", "ada").code == 66, "the user is gone")
    assert "neither connected" in client.run("users", "ada").failed(66)


@only("alone", "The stream ends with the gateway, whoever keeps the room.")
def test_following_ends_when_the_gateway_stops(serve):
    gateway, control = serve()
    tail = Client(control.url).start("tail", "kept:a", "--json")
    try:
        Lines(tail.stdout).wait_for(lambda line: '"following"' in line, "the beginning")
        assert gateway.stop() == 0
        assert tail.wait(seconds(30)) == 69
    finally:
        tail.kill()
        tail.wait()
