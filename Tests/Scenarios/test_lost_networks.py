"""Peers whose network is gone: no packet reports it, so that only missing answers show it."""

import array
import contextlib
import fcntl
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import configuration, networks
from support.deadlines import eventually, seconds
from support.ends import MessageEnd, RawEnd
from support.websocket import Listener, Wire, connect, request

pytestmark = pytest.mark.skipif(not networks.allowed(), reason="network namespaces are not available")

# Timeouts after which a peer that does not answer is disconnected.
SHORT_TIMEOUTS = {"ping_interval": "1s", "pong_timeout": "1s", "keep_alive": {"idle": "1s", "interval": "1s", "probes": 2},
             "user_timeout": "3s"}


@pytest.fixture
def cable():
    with networks.Cable() as one:
        yield one


class Joined:
    """A gateway in the near network, the peer to be lost in the far network, the other peer in the near one."""

    def __init__(self, sluice, folder, cable, threads, listen, target, lost, **route):
        self.cable = cable
        place = {"client": cable.near, "target": cable.far}[lost]
        with place.inside():
            self.listener = Listener(host=place.address)
        settings = {"path": "/", **SHORT_TIMEOUTS} if listen == "ws" else SHORT_TIMEOUTS
        settings = {**settings, **route}
        listeners = [configuration.listener(
            "in", f"{listen}://{cable.near.address}:0", user_timeout=settings["user_timeout"], keep_alive=settings["keep_alive"],
            **({} if listen == "ws" else {"route": "through"}))]
        routes = [configuration.route("through", self.listener.url(target, "/" if target == "ws" else ""), **settings)]
        file = configuration.write(folder / "sluice.yaml", listeners, routes)
        self.gateway = sluice("serve", "--config", file, wrapper=cable.near.entering)
        # Concurrently: the client of a WebSocket tunnel is answered after the target has answered.
        accepting = threads.submit(self.listener.accept_websocket if target == "ws" else self.listener.accept)
        with (cable.far if lost == "client" else cable.near).inside():
            address = (cable.near.address, self.gateway.port())
            self.client = MessageEnd(connect(address)) if listen == "ws" else RawEnd(Wire.connect(address))
        self.target = (MessageEnd if target == "ws" else RawEnd)(accepting.result())
        self.lost, self.other = (self.client, self.target) if lost == "client" else (self.target, self.client)
        self.client.send(b"there")
        assert self.target.receive(5) == b"there"
        self.target.send(b"back")
        assert self.client.receive(4) == b"back"

    def close(self):
        for each in (self.client, self.target, self.listener):
            each.close()


@pytest.fixture
def joined(sluice, tmp_path, cable):
    made = []
    with ThreadPoolExecutor(1) as threads:
        def make(*arguments, **more):
            made.append(Joined(sluice, tmp_path, cable, threads, *arguments, **more))
            return made[-1]

        yield make
    for one in made:
        one.close()


def ends(speaks, *pairs):
    return [pytest.param(listen, target, lost, speaks, id=f"{listen}-{target}-{lost}-{speaks}") for listen, target, lost in pairs]


@pytest.mark.parametrize(("listen", "target", "lost", "speaks"), [
    # An unanswered Ping.
    *ends("silent", ("ws", "tcp", "client"), ("ws", "ws", "client"), ("tcp", "ws", "target"), ("ws", "ws", "target")),
    # Unanswered keep-alive probes of the kernel.
    *ends("silent", ("tcp", "tcp", "client"), ("tcp", "ws", "client"), ("tcp", "tcp", "target"), ("ws", "tcp", "target")),
    # Unacknowledged bytes, which suspend the probes.
    *ends("sends", ("tcp", "tcp", "client"), ("tcp", "ws", "client"), ("tcp", "tcp", "target"), ("ws", "tcp", "target")),
])
def test_a_peer_whose_network_is_gone_is_detected_and_the_other_side_fails(joined, listen, target, lost, speaks):
    tunnel = joined(listen, target, lost)
    tunnel.cable.pull()
    if speaks == "sends":
        tunnel.other.send(b"into nowhere")
    tunnel.other.expect_failure()
    side = "downstream" if lost == "client" else "upstream"
    assert f"reason={side}/relaying/unresponsive" in tunnel.gateway.wait_log("connection closed")


# Keep-alive's time, 1 s + 2 × 1 s, with a longer and a shorter user timeout: Linux by itself would apply the latter to an idle
# peer too (tcp(7)).
@pytest.mark.parametrize(("keep_alive", "user_timeout", "speaks", "least", "most"), [
    ({"idle": "1s", "interval": "1s", "probes": 2}, "60s", "silent", 2, 8),
    ({"idle": "2s", "interval": "1s", "probes": 6}, "1s", "silent", 6.5, 14),
    ({"idle": "60s", "interval": "1s", "probes": 2}, "3s", "sends", 2.5, 12),
    # After an idle time.
    ({"idle": "1s", "interval": "1s", "probes": 30}, "3s", "rests and sends", 2.5, 14)],
    ids=["idle, long user timeout", "idle, short user timeout", "busy", "busy after a rest"])
@pytest.mark.parametrize("lost", ["client", "target"])
def test_keep_alive_disconnects_an_idle_peer_and_the_user_timeout_a_busy_one(
        joined, lost, keep_alive, user_timeout, speaks, least, most):
    tunnel = joined("tcp", "tcp", lost, keep_alive=keep_alive, user_timeout=user_timeout)
    if speaks == "rests and sends":
        time.sleep(seconds(2))
    start = time.monotonic()
    tunnel.cable.pull()
    if speaks != "silent":
        tunnel.other.send(b"into nowhere")
    tunnel.other.within = tunnel.other.wire.within = seconds(20)
    tunnel.other.wire.socket.settimeout(seconds(20))
    tunnel.other.expect_failure()
    assert least <= time.monotonic() - start <= seconds(most)


@pytest.mark.parametrize(("listen", "target"), [("ws", "tcp"), ("tcp", "ws")])
def test_no_byte_is_lost_when_the_network_returns_in_time(joined, listen, target):
    tunnel = joined(listen, target, "client", ping_interval="1m", keep_alive={"idle": "1m"}, user_timeout="1m")
    tunnel.cable.pull()
    there, back = bytes(range(256)) * 4096, bytes(range(255, -1, -1)) * 64
    tunnel.target.send(back)
    eventually(lambda: unacknowledged(tunnel.client.wire) == 0, "no unacknowledged bytes")
    tunnel.client.send(there[:4096])
    # Not delivered yet.
    assert unacknowledged(tunnel.client.wire) > 0
    tunnel.cable.plug()
    tunnel.client.send(there[4096:])
    assert tunnel.target.receive(len(there)) == there
    assert tunnel.client.receive(len(back)) == back


def unacknowledged(wire):
    """Bytes sent that the peer has not acknowledged yet (SIOCOUTQ)."""
    count = array.array("i", [0])
    fcntl.ioctl(wire.socket.fileno(), termios.TIOCOUTQ, count)
    return count[0]


def test_connecting_to_an_unreachable_target_times_out(sluice, tmp_path, cable):
    with cable.far.inside():
        listener = Listener(host=cable.far.address)
    with cable.near.inside(), contextlib.suppress(OSError):
        # The kernel looks for the far end for longer than the timeout, also on a machine that is late by seconds; not where
        # its settings cannot be written.
        Path("/proc/sys/net/ipv4/neigh/near0/mcast_solicit").write_text("60")
    gateway = sluice(
        "bridge", f"ws://{cable.near.address}:0/", listener.url("tcp"), "--connect-timeout", "1s", wrapper=cable.near.entering)
    cable.pull()
    with cable.near.inside(), listener:
        with Wire.connect((cable.near.address, gateway.port())) as client:
            client.send(request())
            assert client.receive_head().startswith(b"HTTP/1.1 504 ")
    assert "reason=upstream/connecting/connect-timeout" in gateway.wait_log("connection closed")
