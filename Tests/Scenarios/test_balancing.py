"""Several endpoints behind one route: how connections are distributed, and how endpoints are ejected and return."""

import socket
import threading

import pytest

from support.configuration import listener as listening, route, upstream, write
from support.deadlines import eventually
from support.programs import free_port
from support.websocket import Listener, Wire, parse_head, request


class Endpoint:
    """Accepts every connection, sends its name and keeps it open."""

    def __init__(self, name, port=0):
        self.name, self.wires = name, []
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", port))
        self.socket.listen(100)
        threading.Thread(target=self._work, daemon=True).start()

    @property
    def url(self):
        return f"tcp://127.0.0.1:{self.socket.getsockname()[1]}"

    def _work(self):
        while True:
            try:
                accepted, _ = self.socket.accept()
            except OSError:
                return
            accepted.sendall(self.name)
            self.wires.append(Wire(accepted))

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@pytest.fixture
def endpoints():
    made = [Endpoint(b"%d" % number) for number in range(3)]
    yield made
    for one in made:
        one.close()


@pytest.fixture
def balanced(sluice, tmp_path):
    def make(*urls, **keys):
        file = write(
            tmp_path / "sluice.yaml", [listening("raw", "tcp://127.0.0.1:0", route="all")], [route("all", "all")],
            [upstream("all", *urls, **keys)], loops=1, control={"address": "none"})
        return sluice("serve", "--config", file)

    return make


def served(gateway):
    """(connection, name of the endpoint that serves it)"""
    wire = Wire.connect(gateway.address())
    return wire, wire.receive(1)


def test_least_connections_prefers_the_endpoint_with_the_fewest(balanced, endpoints):
    gateway = balanced(*(one.url for one in endpoints), policy="least-connections")
    held = [served(gateway) for _ in range(9)]
    names = [name for _, name in held]
    assert sorted(names) == [b"0"] * 3 + [b"1"] * 3 + [b"2"] * 3
    for wire, name in held:
        if name == b"1":
            wire.reset()
    eventually(lambda: sum("connection closed" in line for line in gateway.log.all()) == 3, "three tunnels ended")
    assert [served(gateway)[1] for _ in range(3)] == [b"1"] * 3


def test_weights_divide_the_rounds_of_round_robin(balanced, endpoints):
    gateway = balanced({"url": endpoints[0].url, "weight": 3}, {"url": endpoints[1].url})
    names = [served(gateway)[1] for _ in range(8)]
    assert names.count(b"0") == 6 and names.count(b"1") == 2, names


def test_failing_endpoint_is_ejected_and_returns(balanced, endpoints):
    port = free_port()
    gateway = balanced(
        f"tcp://127.0.0.1:{port}", endpoints[0].url, eject_failures=2, eject_duration="2s", retry_delay="0", retries=1)
    assert [served(gateway)[1] for _ in range(8)] == [b"0"] * 8
    returned = Endpoint(b"9", port)
    # An ejected endpoint gets no connection; after `eject_duration` it has its share again.
    eventually(lambda: served(gateway)[1] == b"9", "the endpoint that recovered", within=20)
    assert sorted(served(gateway)[1] for _ in range(4)) == [b"0", b"0", b"9", b"9"]
    returned.close()


def test_failover_returns_to_the_first_endpoint_when_it_recovers(balanced, endpoints):
    port = free_port()
    gateway = balanced(
        f"tcp://127.0.0.1:{port}", endpoints[0].url, policy="failover", eject_failures=1, eject_duration="1s", retry_delay="0")
    assert served(gateway)[1] == b"0"
    first = Endpoint(b"9", port)
    eventually(lambda: served(gateway)[1] == b"9", "the first endpoint again", within=20)
    first.close()


def test_upstream_refusal_meant_for_the_client_is_not_retried(sluice, tmp_path):
    with Listener() as one, Listener() as other:
        file = write(
            tmp_path / "sluice.yaml", [listening("web", "ws://127.0.0.1:0")], [route("app", "app", path="/")],
            [upstream("app", one.url("ws", "/"), other.url("ws", "/"), policy="failover", retries=3, retry_delay="0")],
            control={"address": "none"})
        gateway = sluice("serve", "--config", file)
        with Wire.connect(gateway.address()) as near:
            near.send(request("/"))
            far, _ = one.accept_request()
            far.send(b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"a\"\r\nWWW-Authenticate: Bearer\r\n"
                     b"Set-Cookie: a=b\r\nX-Own: 1\r\nContent-Length: 4\r\n\r\nbody")
            answer = near.receive_all(limit=1 << 16)
        got = parse_head(answer[:answer.index(b"\r\n\r\n") + 4])
        assert got.status == 401
        challenges = [line.split(": ", 1)[1] for line in got.raw.decode().split("\r\n") if line.lower().startswith("www-")]
        assert challenges == ['Basic realm="a"', "Bearer"]
        assert b"Set-Cookie" not in answer and b"X-Own" not in answer and not answer.endswith(b"body")
        other.socket.settimeout(0.2)
        with pytest.raises(AssertionError):
            other.accept()


@pytest.mark.parametrize("answer, status, fields", [
    (b"HTTP/1.1 429 No\r\nRetry-After: 7\r\n\r\n", 429, {"Retry-After": "7"}),
    (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 404 No\r\n\r\n", 404, {"Link": None}),
    (b"HTTP/1.1 503 No\r\nRetry-After: 7\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 503, {"Retry-After": "7"}),
    (b"HTTP/1.1 302 No\r\nLocation: ws://elsewhere/\r\n\r\n", 502, {"Location": None})])
def test_upstream_refusal_is_forwarded_with_the_fields_a_client_can_use(sluice, listener, tmp_path, answer, status, fields):
    file = write(
        tmp_path / "sluice.yaml", [listening("web", "ws://127.0.0.1:0")], [route("app", "app", path="/")],
        [upstream("app", listener.url("ws", "/"), retries=0)], control={"address": "none"})
    gateway = sluice("serve", "--config", file)
    with Wire.connect(gateway.address()) as near:
        near.send(request("/"))
        far, _ = listener.accept_request()
        far.send(answer)
        far.close()
        got = parse_head(near.receive_head())
    assert got.status == status
    assert {name: got.header(name) for name in fields} == fields


def test_lack_of_descriptors_does_not_eject_an_endpoint(sluice, listener, tmp_path):
    file = write(
        tmp_path / "sluice.yaml", [listening("web", "ws://127.0.0.1:0")], [route("app", "app", path="/")],
        [upstream("app", listener.url("tcp"), eject_failures=1, eject_duration="1d", retries=0)], loops=1,
        control={"address": "none"}, max_connections=1000)
    # Eight descriptors are the reserve.
    limit = 40
    gateway = sluice("serve", "--config", file, descriptors=48)
    idle = gateway.descriptors()
    held = []

    def ask():
        held.append(Wire.connect(gateway.address()))
        held[-1].send(request("/"))
        return parse_head(held[-1].receive_head()).status

    statuses = []
    while gateway.descriptors() < limit and 503 not in statuses:
        statuses.append(ask())
    if 503 not in statuses:
        # A tunnel takes two descriptors and took the last two: a client that sends no request leaves one too few.
        held.pop().reset()
        gateway.settle(limit - 2)
        held.append(Wire.connect(gateway.address()))
        eventually(lambda: gateway.descriptors() == limit - 1, "the client that sends no request")
        statuses.append(ask())
    assert statuses[-1] == 503 and set(statuses[:-1]) == {101}, statuses
    assert "reason=gateway/connecting/system" in gateway.wait_log("gateway/connecting")
    for wire in held:
        wire.reset()
    gateway.settle(idle)
    with Wire.connect(gateway.address()) as wire:
        wire.send(request("/"))
        assert parse_head(wire.receive_head()).status == 101
