"""The configurations in deploy/examples with real clients and servers. SSH, mail, and TLS with client certificates have
files of their own."""

import asyncio
import base64
import os
import struct
import threading
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as connect_in_a_thread

from support import examples, gateway as process
from support.deadlines import eventually, seconds
from support.postgres import Postgres
from support.programs import Program, find, free_port, run


def test_every_example_has_a_test():
    tried = "".join(file.read_text() for file in Path(__file__).parent.glob("test_examples*.py"))
    missing = [file.name for file in examples.FOLDER.iterdir() if f'"{file.name}"' not in tried]
    assert not missing, f"no test runs {', '.join(missing)}"


def test_every_example_passes_the_check():
    for file in examples.FOLDER.glob("*.yaml"):
        got = process.run("check", "--without-files", "--config", file)
        assert got.returncode == 0, got.stderr


# -- noVNC: a real VNC server that shows a picture

WIDTH, HEIGHT = 64, 48


@pytest.fixture(scope="module")
def vnc(tmp_path_factory):
    """A VNC server: (port, its picture with 32 bits for each pixel)."""
    folder = tmp_path_factory.mktemp("vnc")
    picture = b"".join(bytes([x * 4, y * 5, (x ^ y) * 3 % 256, 0]) for y in range(HEIGHT) for x in range(WIDTH))
    (folder / "picture").write_bytes(picture)
    port = free_port()
    words = ["-rawfb", f"map:{folder / 'picture'}@{WIDTH}x{HEIGHT}x32", "-localhost", "-no6", "-rfbport", port, "-forever", "-shared",
             "-nopw", "-norc", "-noxkb", "-nocursor"]
    with Program(find("x11vnc"), *words) as server:
        server.wait_listening(port)
        yield port, picture


class Screen:
    """A client of the RFB protocol (RFC 6143) over messages, as noVNC is one."""

    def __init__(self, socket, is_text):
        self.socket, self.is_text, self.kept = socket, is_text, b""

    def send(self, data):
        self.socket.send(base64.b64encode(data).decode() if self.is_text else data)

    def take(self, count):
        while len(self.kept) < count:
            message = self.socket.recv(timeout=seconds(20))
            assert isinstance(message, str) == self.is_text
            self.kept += base64.b64decode(message) if self.is_text else message
        taken, self.kept = self.kept[:count], self.kept[count:]
        return taken

    def open(self):
        assert self.take(12) == b"RFB 003.008\n"
        self.send(b"RFB 003.008\n")
        assert 1 in self.take(self.take(1)[0]), "the server wants a password"
        self.send(b"\x01")
        assert self.take(4) == bytes(4)
        self.send(b"\x01")
        width, height = struct.unpack(">HH", self.take(4))
        self.take(16)
        self.take(struct.unpack(">I", self.take(4))[0])
        # 32 bits, the lowest byte first, and in it blue, as in the picture; then raw pixels.
        self.send(struct.pack(">BxxxBBBBHHHBBBxxx", 0, 32, 24, 0, 1, 255, 255, 255, 16, 8, 0))
        self.send(struct.pack(">BxHi", 2, 1, 0))
        return width, height

    def picture(self, width, height):
        self.send(struct.pack(">BBHHHH", 3, 0, 0, 0, width, height))
        seen = bytearray(width * height * 4)
        kind, count = struct.unpack(">BxH", self.take(4))
        assert kind == 0
        for _ in range(count):
            x, y, w, h, encoding = struct.unpack(">HHHHi", self.take(12))
            assert encoding == 0
            for row in range(h):
                at = ((y + row) * width + x) * 4
                seen[at:at + w * 4] = self.take(w * 4)
        return bytes(seen)


def vnc_gateway(example, port, server_certificate):
    certificate, key = server_certificate
    return example("novnc.yaml", {
        "wss://*:443": "wss://127.0.0.1:0", "/etc/sluice/vnc.example.pem": certificate, "/etc/sluice/vnc.example.key": key,
        "vnc.example": "localhost", "127.0.0.1:5900": f"127.0.0.1:{port}"})


@pytest.mark.parametrize("path, subprotocol", [("/websockify", "binary"), ("/websockify-base64", "base64")])
def test_novnc_shows_the_picture_of_a_vnc_server(example, vnc, authority, server_certificate, path, subprotocol):
    port, picture = vnc
    gateway = vnc_gateway(example, port, server_certificate)
    with connect_in_a_thread(f"wss://localhost:{gateway.port()}{path}", ssl=authority.client_context(), max_size=None,
                             subprotocols=[subprotocol], origin="https://localhost") as socket:
        assert socket.subprotocol == subprotocol
        screen = Screen(socket, subprotocol == "base64")
        assert screen.open() == (WIDTH, HEIGHT)
        # The server may answer before it has read the picture.
        eventually(lambda: screen.picture(WIDTH, HEIGHT) == picture, "the picture")


def test_a_page_of_another_origin_is_refused(example, vnc, authority, server_certificate):
    gateway = vnc_gateway(example, vnc[0], server_certificate)
    with pytest.raises(InvalidStatus) as refused:
        connect_in_a_thread(f"wss://localhost:{gateway.port()}/websockify", ssl=authority.client_context(), subprotocols=["binary"],
                            origin="https://elsewhere.test")
    assert refused.value.response.status_code == 403


# -- MQTT

@pytest.fixture
def broker(tmp_path, server_certificate):
    """An MQTT broker: (port of plain MQTT, port of WebSocket over TLS)."""
    certificate, key = server_certificate
    plain, secure = free_port(), free_port()
    settings = tmp_path / "mosquitto.conf"
    settings.write_text(
        f"user root\nlistener {plain} 127.0.0.1\nlistener {secure} 127.0.0.1\nprotocol websockets\ncertfile {certificate}\n"
        f"keyfile {key}\nallow_anonymous true\npersistence false\n")
    with Program(find("mosquitto"), "-c", settings) as program:
        program.output.wait_for(lambda line: line.endswith("running"), "the broker")
        yield plain, secure


def test_plain_mqtt_clients_reach_a_broker_over_websocket_and_tls(example, broker):
    gateway = example("mqtt.yaml", {"127.0.0.1:1883": "127.0.0.1:0", "broker.example": f"localhost:{broker[1]}"})
    where = ["-h", "127.0.0.1", "-p", gateway.port(), "-q", "1", "-t", "greeting"]
    with Program("stdbuf", "-oL", find("mosquitto_sub"), *where, "-d", "-C", "1") as subscriber:
        subscriber.output.wait_for(lambda line: "SUBACK" in line or "Subscribed" in line, "the subscription")
        published = run(find("mosquitto_pub"), *where, "-m", "hello")
        assert published.returncode == 0, published.stderr
        assert subscriber.wait() == 0 and subscriber.output.all()[-2:][0] == "hello"


def test_paho_over_websocket_reaches_a_plain_mqtt_broker(example, broker, authority, server_certificate):
    certificate, key = server_certificate
    gateway = example("mqtt-browser.yaml", {
        "wss://*:443": "wss://127.0.0.1:0", "/etc/sluice/mqtt.example.pem": certificate, "/etc/sluice/mqtt.example.key": key,
        "mqtt.example": "localhost", "127.0.0.1:1883": f"127.0.0.1:{broker[0]}"})
    ready, done, received = threading.Event(), threading.Event(), []
    payloads = [b"first", "é".encode() * 20_000, os.urandom(300_000)]
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, transport="websockets", protocol=mqtt.MQTTv5)
    client.ws_set_options(path="/mqtt", headers={"Origin": "https://localhost"})
    client.tls_set_context(authority.client_context())
    client.on_connect = lambda *_: client.subscribe("room/+", qos=1)
    client.on_subscribe = lambda *_: ready.set()

    def receive(_client, _data, message):
        received.append(message.payload)
        if len(received) == len(payloads):
            done.set()

    client.on_message = receive
    client.connect("localhost", gateway.port())
    client.loop_start()
    try:
        assert ready.wait(seconds(20)), "no subscription"
        for payload in payloads:
            client.publish("room/1", payload, qos=1).wait_for_publish(seconds(20))
        assert done.wait(seconds(20)), f"{len(received)} messages"
        assert received == payloads
    finally:
        client.disconnect()
        client.loop_stop()


# -- PostgreSQL

@pytest.fixture(scope="module")
def postgres():
    one = Postgres(free_port())
    yield one
    one.end()


def database_gateway(example, postgres, authority, server_certificate):
    certificate, key = server_certificate
    return example("postgres-server-side.yaml", {
        "wss://*:443": "wss://127.0.0.1:0", "/etc/sluice/db.example.pem": certificate, "/etc/sluice/db.example.key": key,
        "/etc/sluice/clients-ca.pem": authority.certificate, "/run/postgresql/.s.PGSQL.5432": postgres.socket})


def test_psql_works_through_both_gateways(example, postgres, authority, server_certificate):
    inner = database_gateway(example, postgres, authority, server_certificate)
    certificate, key = authority.issue("beside the clients")
    outer = example("postgres-client-side.yaml", {
        "127.0.0.1:5432": "127.0.0.1:0", "db.example": f"localhost:{inner.port()}", "/etc/sluice/client.pem": f'"{certificate}"',
        "/etc/sluice/client.key": f'"{key}"'})
    got = run("psql", "-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-p", outer.port(), "-U", "tester", "postgres",
              "-c", "select count(*), sum(n) from generate_series(1, 100000) as n")
    assert (got.returncode, got.stdout) == (0, "100000|5000050000\n"), got


def test_the_server_side_gateway_requires_a_client_certificate(example, postgres, authority, server_certificate):
    inner = database_gateway(example, postgres, authority, server_certificate)
    got = process.run("connect", "--ca", authority.certificate, f"wss://localhost:{inner.port()}/postgres")
    assert got.returncode == 79, got


# -- WebSocket to WebSocket

def test_rooms_and_feed_are_routed_to_their_servers(example, authority, server_certificate):
    paths = []

    async def answer(server):
        paths.append(server.request.path)
        assert server.request.headers.get("X-Gateway") == ("sluice" if "/rooms/" in server.request.path else None)
        async for message in server:
            await server.send(message)

    async def talk():
        rooms = {"subprotocols": ["rooms.v2", "rooms.v1"], "max_size": None}
        secure = authority.server_context(server_certificate)
        async with serve(answer, "127.0.0.1", 0, **rooms) as first, serve(answer, "127.0.0.1", 0, **rooms) as second, \
                serve(answer, "127.0.0.1", 0, ssl=secure) as feed:
            ports = [server.sockets[0].getsockname()[1] for server in (first, second, feed)]
            gateway = await asyncio.to_thread(example, "websocket-to-websocket.yaml", {
                "ws://0.0.0.0:8090": "ws://127.0.0.1:0", "10.0.0.5:9000": f"127.0.0.1:{ports[0]}",
                "10.0.0.6:9000": f"127.0.0.1:{ports[1]}", "feed.internal": f"localhost:{ports[2]}"})
            url = f"ws://127.0.0.1:{gateway.port()}"
            async with connect(f"{url}/rooms/blue", subprotocols=["rooms.v1", "rooms.v2"], max_size=None) as client:
                assert client.protocol.extensions, "no compression"
                for payload in ("é" * 10_000, os.urandom(100_000)):
                    await client.send(payload)
                    assert await client.recv() == payload
                chosen = client.subprotocol
            async with connect(f"{url}/feed/news/today") as client:
                await client.send(["frag", "mented"])
                assert await client.recv() == "fragmented"
            return chosen

    assert asyncio.run(asyncio.wait_for(talk(), seconds(30))) == "rooms.v2"
    assert paths == ["/v2/rooms/blue", "/news/today"]
