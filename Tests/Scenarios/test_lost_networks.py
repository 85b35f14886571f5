"""Peers whose network is gone: nothing tells so, and only what is not answered shows it."""

import array
import fcntl
import termios
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import configuration, networks
from support.deadlines import eventually, seconds
from support.ends import MessageEnd, RawEnd
from support.websocket import Listener, Wire, connect, request

pytestmark = pytest.mark.skipif(not networks.allowed(), reason="no leave, or no means, to make networks here")

# So long each side is believed without an answer.
IMPATIENT = {"ping_interval": "1s", "pong_timeout": "1s", "keep_alive": {"idle": "1s", "interval": "1s", "probes": 2},
             "user_timeout": "3s"}


@pytest.fixture
def cable():
    with networks.Cable() as one:
        yield one


class Joined:
    """A gateway in the near network, the peer to be lost in the far one, the other peer beside the gateway."""

    def __init__(self, sluice, folder, cable, threads, listen, target, lost, **route):
        self.cable = cable
        place = {"client": cable.near, "target": cable.far}[lost]
        with place.inside():
            self.listener = Listener(host=place.address)
        settings = {"path": "/", **IMPATIENT} if listen == "ws" else IMPATIENT
        settings = {**settings, **route}
        listeners = [configuration.listener(
            "in", f"{listen}://{cable.near.address}:0", user_timeout=settings["user_timeout"], keep_alive=settings["keep_alive"],
            **({} if listen == "ws" else {"route": "through"}))]
        routes = [configuration.route("through", self.listener.url(target, "/" if target == "ws" else ""), **settings)]
        file = configuration.write(folder / "sluice.yaml", listeners, routes)
        self.gateway = sluice("serve", "--config", file, wrapper=cable.near.entering)
        # Beside each other: the client of a WebSocket tunnel has its answer when the target has given one.
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
    # A Ping that nobody answers.
    *ends("silent", ("ws", "tcp", "client"), ("ws", "ws", "client"), ("tcp", "ws", "target"), ("ws", "ws", "target")),
    # The kernel's probes.
    *ends("silent", ("tcp", "tcp", "client"), ("tcp", "ws", "client"), ("tcp", "tcp", "target"), ("ws", "tcp", "target")),
    # Bytes that nobody acknowledges, which put the probes off.
    *ends("sends", ("tcp", "tcp", "client"), ("tcp", "ws", "client"), ("tcp", "tcp", "target"), ("ws", "tcp", "target")),
])
def test_a_peer_whose_network_is_gone_is_noticed_in_time_and_told_to_the_other(joined, listen, target, lost, speaks):
    tunnel = joined(listen, target, lost)
    tunnel.cable.pull()
    if speaks == "sends":
        tunnel.other.send(b"into nowhere")
    tunnel.other.expect_failure()
    side = "downstream" if lost == "client" else "upstream"
    assert f"reason={side}/relaying/unresponsive" in tunnel.gateway.wait_log("connection closed")


# Keep-alive's own formula, 1 s + 2 × 1 s, beside a longer and a shorter user timeout: Linux alone would take the latter for the
# time of an idle peer too (tcp(7)).
@pytest.mark.parametrize(("keep_alive", "user_timeout", "speaks", "least", "most"), [
    ({"idle": "1s", "interval": "1s", "probes": 2}, "60s", "silent", 2, 8),
    ({"idle": "2s", "interval": "1s", "probes": 6}, "1s", "silent", 6.5, 14),
    ({"idle": "60s", "interval": "1s", "probes": 2}, "3s", "sends", 2.5, 12),
    # After a while in which nothing was sent.
    ({"idle": "1s", "interval": "1s", "probes": 30}, "3s", "rests and sends", 2.5, 14)],
    ids=["idle, long user timeout", "idle, short user timeout", "busy", "busy after a rest"])
@pytest.mark.parametrize("lost", ["client", "target"])
def test_an_idle_peer_is_given_up_by_keep_alive_and_a_busy_one_by_the_user_timeout(
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
def test_a_network_that_comes_back_in_time_has_lost_nothing(joined, listen, target):
    tunnel = joined(listen, target, "client", ping_interval="1m", keep_alive={"idle": "1m"}, user_timeout="1m")
    tunnel.cable.pull()
    there, back = bytes(range(256)) * 4096, bytes(range(255, -1, -1)) * 64
    tunnel.target.send(back)
    eventually(lambda: unacknowledged(tunnel.client.wire) == 0, "nothing under way")
    tunnel.client.send(there[:4096])
    # Lost for now.
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


def test_a_target_that_cannot_be_reached_any_more_is_given_up_in_time(sluice, tmp_path, cable):
    with cable.far.inside():
        listener = Listener(host=cable.far.address)
    gateway = sluice(
        "bridge", f"ws://{cable.near.address}:0/", listener.url("tcp"), "--connect-timeout", "1s", wrapper=cable.near.entering)
    cable.pull()
    with cable.near.inside(), listener:
        with Wire.connect((cable.near.address, gateway.port())) as client:
            client.send(request())
            assert client.receive_head().startswith(b"HTTP/1.1 504 ")
    assert "reason=upstream/connecting/connect-timeout" in gateway.wait_log("connection closed")
