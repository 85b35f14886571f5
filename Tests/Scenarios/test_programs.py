"""Real programs on both sides of a bridge: MQTT, PostgreSQL, the websockets package, curl, openssl, HAProxy, socat."""

import asyncio
import hashlib
import os
import re

import pytest
import websockets
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

from support import configuration
from support.deadlines import seconds, sized
from support.postgres import Postgres
from support.programs import Program, find, free_port, run
from support.websocket import Wire


# -- MQTT: plain clients, a broker behind a WebSocket

@pytest.fixture
def broker(tmp_path):
    port = free_port()
    settings = tmp_path / "mosquitto.conf"
    # Mosquitto 2.0.11 does not start with WebSocket listeners only, so it has a plain one too.
    settings.write_text(
        f"listener {free_port()} 127.0.0.1\nlistener {port} 127.0.0.1\nprotocol websockets\nallow_anonymous true\npersistence false\n")
    with Program(find("mosquitto"), "-c", settings) as program:
        program.output.wait_for(lambda line: line.endswith("running"), "the broker")
        yield port


def test_plain_mqtt_clients_reach_a_broker_behind_a_websocket(bridge, broker):
    gateway = bridge("tcp://127.0.0.1:0", f"ws://127.0.0.1:{broker}/mqtt", "--subprotocol", "mqtt")
    where = ["-h", "127.0.0.1", "-p", gateway.port(), "-V", "mqttv311"]
    # Without line buffering its output would stay in a buffer.
    with Program("stdbuf", "-oL", find("mosquitto_sub"), *where, "-d", "-t", "room/+", "-C", "3", "-q", "1") as subscriber:
        # After the broker has acknowledged the subscription, no message is missed.
        subscriber.output.wait_for(lambda line: "SUBACK" in line or "Subscribed" in line, "the subscription")
        for message in ("first", "second", "é" * 20_000):
            published = run(find("mosquitto_pub"), *where, "-t", "room/1", "-q", "1", "-m", message)
            assert published.returncode == 0, published.stderr
        assert subscriber.wait() == 0
        received = [line for line in subscriber.output.all() if not line.startswith(("Client", "Subscribed"))]
        assert received == ["first", "second", "é" * 20_000]


# -- PostgreSQL through two bridges, tcp to ws to tcp

@pytest.fixture(scope="module")
def postgres():
    one = Postgres(free_port())
    yield one.port
    one.end()


def test_psql_works_through_two_bridges(bridge, postgres):
    inner = bridge("ws://127.0.0.1:0/database", f"tcp://127.0.0.1:{postgres}")
    outer = bridge("tcp://127.0.0.1:0", f"ws://127.0.0.1:{inner.port()}/database")
    rows = sized(200_000, 2_000_000)
    script = f"""
        create table numbers as select n, md5(n::text) as hash from generate_series(1, {rows}) as n;
        select count(*), sum(n) from numbers;
        copy numbers to stdout;
    """
    words = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", outer.port(), "-U", "tester", "postgres"]
    got = run(*words, input=script, within=120)
    assert got.returncode == 0, got.stderr
    lines = got.stdout.splitlines()
    assert lines[0] == f"{rows}|{rows * (rows + 1) // 2}"
    assert len(lines) == rows + 1
    for number in (1, rows // 2, rows):
        assert lines[number] == f"{number}\t{hashlib.md5(str(number).encode()).hexdigest()}"
    again = run(*words, "-c", "drop table numbers", within=60)
    assert again.returncode == 0, again.stderr


# -- the websockets package, as client and as server

def payloads():
    return ["", "short", "é" * 1000, "repeat " * 20_000, b"", b"\x00\xff" * 500, os.urandom(200_000)]


@pytest.mark.parametrize("compression", ["deflate", None])
def test_the_websockets_client_exchanges_messages_with_echo(echo, compression):
    async def talk():
        async with connect(f"ws://127.0.0.1:{echo.port()}/echo", compression=compression, max_size=None) as client:
            assert bool(client.protocol.extensions) == (compression is not None)
            for payload in payloads():
                await client.send(payload)
                assert await client.recv() == payload
            await client.send(["frag", "ment", "ed"])
            assert await client.recv() == "fragmented"
            await (await client.ping(b"are you there"))
        assert (client.close_code, client.close_reason) == (1000, "")

    asyncio.run(asyncio.wait_for(talk(), seconds(30)))


@pytest.mark.parametrize("compress_here", [True, False])
@pytest.mark.parametrize("client_compression", ["deflate", None])
@pytest.mark.parametrize("server_compression", ["deflate", None])
def test_websockets_client_and_server_exchange_messages_through_a_bridge(bridge, client_compression, server_compression, compress_here):
    async def answer(server):
        async for message in server:
            await server.send(message)
        assert server.close_code == 4001

    async def talk():
        async with serve(answer, "127.0.0.1", 0, compression=server_compression, max_size=None) as server:
            port = server.sockets[0].getsockname()[1]
            options = ["--compress"] if compress_here else []
            gateway = await asyncio.to_thread(bridge, "ws://127.0.0.1:0/app", f"ws://127.0.0.1:{port}/app", *options)
            url = f"ws://127.0.0.1:{gateway.port()}/app"
            async with connect(url, compression=client_compression, max_size=None) as client:
                for payload in payloads():
                    await client.send(payload)
                    assert await client.recv() == payload
                await client.close(4001, "done")

    asyncio.run(asyncio.wait_for(talk(), seconds(60)))


def test_fifty_websockets_clients_are_served_at_once(echo):
    async def one(number):
        async with connect(f"ws://127.0.0.1:{echo.port()}/echo", max_size=None) as client:
            for round_ in range(20):
                payload = f"{number} {round_} " * (number + 1)
                await client.send(payload)
                assert await client.recv() == payload

    async def all_of_them():
        await asyncio.gather(*(one(number) for number in range(50)))

    asyncio.run(asyncio.wait_for(all_of_them(), seconds(60)))


def test_the_websockets_client_receives_the_status_of_a_refusal(echo):
    async def talk():
        with pytest.raises(websockets.exceptions.InvalidStatus) as refused:
            await connect(f"ws://127.0.0.1:{echo.port()}/nowhere")
        assert refused.value.response.status_code == 404

    asyncio.run(asyncio.wait_for(talk(), seconds(30)))


# -- curl

def test_curl_upgrades_over_tls(bridge, authority, server_certificate):
    certificate, key = server_certificate
    gateway = bridge("wss://127.0.0.1:0/echo", "echo", "--certificate", certificate, "--key", key)
    got = run(
        "curl", "--silent", "--include", "--http1.1", "--max-time", "2", "--cacert", authority.certificate,
        "--resolve", f"localhost:{gateway.port()}:127.0.0.1", f"https://localhost:{gateway.port()}/echo",
        "-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H", "Sec-WebSocket-Version: 13",
        "-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "--no-buffer", within=30)
    assert got.stdout.startswith("HTTP/1.1 101"), got.stdout + got.stderr
    assert "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in got.stdout


@pytest.mark.parametrize("path, method, status", [("/echo", "GET", "426"), ("/nowhere", "GET", "404"), ("/echo", "POST", "405")])
def test_curl_receives_the_status_of_refusals(echo, path, method, status):
    got = run("curl", "--silent", "--show-error", "--max-time", "5", "--request", method, "--output", os.devnull,
              "--write-out", "%{http_code} %{size_download}", f"http://127.0.0.1:{echo.port()}{path}")
    assert got.returncode == 0, got.stderr
    assert got.stdout.split()[0] == status


# -- openssl

@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_s_client_exchanges_data_over_a_tls_listener(bridge, listener, authority, server_certificate, version):
    certificate, key = server_certificate
    gateway = bridge("tls://127.0.0.1:0", listener.url("tcp"), "--certificate", certificate, "--key", key)
    with Program("openssl", "s_client", "-connect", f"127.0.0.1:{gateway.port()}", "-CAfile", authority.certificate,
                 "-verify_return_error", "-servername", "localhost", version, "-brief", "-ign_eof") as client:
        far = listener.accept()
        client.process.stdin.write(b"from s_client\n")
        client.process.stdin.flush()
        assert far.receive(14) == b"from s_client\n"
        far.send(b"from the target\n")
        client.output.wait_for(lambda line: line == "from the target", "what the target sent")
        far.finish_sending()
        far.close()
        assert client.wait() == 0
        said = "\n".join(client.output.all())
        assert "Verification: OK" in said and version[1:].upper().replace("_", ".").replace("TLS1", "TLSv1") in said, said


def test_s_client_resumes_its_session(bridge, authority, server_certificate, tmp_path, listener):
    certificate, key = server_certificate
    gateway = bridge("tls://127.0.0.1:0", "echo", "--certificate", certificate, "--key", key)
    session = tmp_path / "session"

    def dial(*more):
        with Program("openssl", "s_client", "-connect", f"127.0.0.1:{gateway.port()}", "-CAfile", authority.certificate,
                     "-servername", "localhost", "-ign_eof", *more) as client:
            # In TLS 1.3 the ticket follows the handshake; an echoed line proves that it has been read.
            client.process.stdin.write(b"ping\n")
            client.process.stdin.flush()
            client.output.wait_for(lambda line: line == "ping", "the echoed line")
            client.end()
            return "\n".join(client.output.all())

    first = dial("-sess_out", session)
    assert re.search(r"^New, TLSv1", first, re.MULTILINE), first
    assert session.exists(), "no session ticket came"
    second = dial("-sess_in", session)
    assert re.search(r"^Reused, TLSv1", second, re.MULTILINE), second


@pytest.mark.parametrize("records", ["openssl", "compact"])
@pytest.mark.parametrize("suite", ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
def test_s_client_updates_its_keys_and_requests_a_key_update(sluice, tmp_path, authority, server_certificate, suite, records):
    certificate, key = map(str, server_certificate)
    tls = {"certificate": certificate, "key": key, "records": records}
    gateway = sluice("serve", "--config", configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("raw", "tls://127.0.0.1:0", tls=tls, route="echo")],
        [configuration.route("echo", "echo")], control={"address": "none"}))
    with Program("openssl", "s_client", "-connect", f"127.0.0.1:{gateway.port()}", "-CAfile", authority.certificate,
                 "-servername", "localhost", "-tls1_3", "-ciphersuites", suite, "-brief") as client:
        def exchange(line, answer):
            start = len(client.output.all())
            client.process.stdin.write(line.encode() + b"\n")
            client.process.stdin.flush()
            client.output.wait_for(lambda said: said == answer, f"the answer to {line}", start=start)

        exchange("before", "before")
        # K updates the client's key and requests an update of ours, k updates only the client's.
        for number, order in enumerate("KkKK"):
            exchange(order, "KEYUPDATE")
            exchange(f"after {number}", f"after {number}")
        assert f"Ciphersuite: {suite}" in client.output.all()


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_s_server_is_reached_as_a_tls_target(bridge, authority, server_certificate, version):
    certificate, key = server_certificate
    port = free_port()
    with Program("openssl", "s_server", "-accept", port, "-cert", certificate, "-key", key, version, "-rev", "-quiet") as server:
        server.wait_listening(port)
        gateway = bridge("tcp://127.0.0.1:0", f"tls://127.0.0.1:{port}", "--ca", authority.certificate, "--server-name", "localhost")
        with Wire.connect(gateway.address()) as near:
            near.send(b"hello\n")  # -rev sends each line back reversed
            assert near.receive(6) == b"olleh\n"


# -- HAProxy with the PROXY protocol

@pytest.mark.parametrize("version, word", [("v1", "send-proxy"), ("v2", "send-proxy-v2")])
def test_the_client_address_of_haproxy_is_forwarded_to_the_target(bridge, listener, tmp_path, version, word):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy-protocol", "in", "--proxy-protocol", "v1")
    port = free_port()
    settings = tmp_path / "haproxy.cfg"
    settings.write_text(
        "defaults\n mode tcp\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n"
        f"frontend f\n bind 127.0.0.1:{port}\n default_backend b\n"
        f"backend b\n server s 127.0.0.1:{gateway.port()} {word}\n")
    with Program(find("haproxy"), "-f", settings, "-db") as proxy:
        proxy.wait_listening(port)
        # The probe of wait_listening was a connection too, and reached the target through HAProxy and the gateway.
        with Wire.connect(("127.0.0.1", port)) as near:
            ours = near.socket.getsockname()[1]
            near.send(b"payload")
            for _ in range(10):
                far = listener.accept()
                header = far.receive_some()
                far.kept = bytearray(header)
                line, _, rest = header.partition(b"\r\n")
                if line.split()[-2:-1] == [str(ours).encode()]:
                    break
            assert re.fullmatch(rb"PROXY TCP4 127\.0\.0\.1 127\.0\.0\.1 %d %d" % (ours, port), line), line
            far.kept = bytearray(rest)
            assert far.receive(7) == b"payload"


def test_haproxy_accepts_our_proxy_header(bridge, listener, tmp_path):
    port = free_port()
    settings = tmp_path / "haproxy.cfg"
    settings.write_text(
        "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n"
        f"frontend f\n bind 127.0.0.1:{port} accept-proxy\n http-request return status 200 content-type text/plain "
        "lf-string \"client %[src]:%[src_port]\"\n")
    with Program(find("haproxy"), "-f", settings, "-db") as proxy:
        proxy.wait_listening(port)
        for version in ("v1", "v2"):
            gateway = bridge("tcp://127.0.0.1:0", f"tcp://127.0.0.1:{port}", "--proxy-protocol", version)
            with Wire.connect(gateway.address()) as near:
                ours = near.socket.getsockname()[1]
                near.send(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert f"client 127.0.0.1:{ours}".encode() in near.receive_all(), version


# -- socat over a Unix socket

def test_socat_reaches_a_unix_listener(bridge, listener, tmp_path):
    path = tmp_path / "listen.sock"
    bridge(f"unix://{path}", listener.url("tcp"))
    with Program("socat", "-t10", "STDIO", f"UNIX-CONNECT:{path}") as client:
        far = listener.accept()
        client.process.stdin.write(b"through socat\n")
        client.process.stdin.flush()
        assert far.receive(14) == b"through socat\n"
        far.send(b"and back\n")
        far.finish_sending()
        client.output.wait_for(lambda line: line == "and back", "the answer")
