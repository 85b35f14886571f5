"""What one client sends must not keep its neighbours waiting: a small message's round trip on a loop that another client keeps
as busy as it can. `deploy/bench --only neighbours` measures the same on a quiet machine."""

import sys
import time
from pathlib import Path

import pytest

from support.deadlines import seconds, sized

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Benchmarks"))

import crowding  # noqa: E402

pytestmark = pytest.mark.alone

# In seconds, for a busy machine; with nothing else to do it is a few milliseconds. One client could stop its loop for seconds.
MEDIAN, WORST = 0.1, 0.5


def wait_beside(gateway, kind, is_stream=False, tls=False):
    """The neighbour's round trips while a client of this kind keeps the gateway busy."""
    with crowding.Neighbour(gateway.port(), is_stream=is_stream, tls=tls) as neighbour:
        neighbour.round_trip()
        with crowding.Crowder(kind, gateway.port()) as crowder:
            began, spent = time.monotonic(), gateway.cpu()
            times = neighbour.round_trips(sized(1.5, 10))
            busy = (gateway.cpu() - spent) / (time.monotonic() - began)
            assert crowder.complaint() is None, crowder.complaint()
    # Else nothing was shown.
    assert busy > 0.1, f"the gateway was not busy: {busy:.0%} of a core"
    median, worst = crowding.median_and_worst(times)
    assert median < seconds(MEDIAN) and worst < seconds(WORST), (
        f"{kind}: {len(times)} round trips, median {median * 1000:.1f} ms, worst {worst * 1000:.1f} ms, {busy:.0%} of a core")


@pytest.mark.parametrize("kind", ["zeros", "noise", "fragments", "pings", "messages"])
def test_a_neighbour_at_an_echo(bridge, kind):
    wait_beside(bridge("ws://127.0.0.1:0/", "echo", "--compress"), kind)


def test_a_neighbour_of_tiny_tls_records(bridge, authority):
    certificate, key = authority.issue("localhost")
    gateway = bridge("wss://127.0.0.1:0/", "echo", "--certificate", certificate, "--key", key)
    wait_beside(gateway, "records", tls=True)


@pytest.mark.parametrize("kind", ["zeros", "fragments", "pings", "messages"])
def test_a_neighbour_of_a_tunnel_to_a_stream(bridge, kind):
    far = bridge("tcp://127.0.0.1:0", "echo")
    wait_beside(bridge("ws://127.0.0.1:0/", far.url(), "--compress"), kind)


@pytest.mark.parametrize("kind", ["zeros", "fragments", "pings", "messages"])
def test_a_neighbour_of_a_tunnel_to_a_websocket(bridge, kind):
    far = bridge("ws://127.0.0.1:0/", "echo", "--compress")
    options = ["--compress"] if kind == "zeros" else []
    wait_beside(bridge("ws://127.0.0.1:0/", far.url(), *options), kind)


@pytest.mark.parametrize("framing, kind", [("lines", "lines"), ("base64", "bytes"), ("length-prefixed", "bytes")])
def test_a_neighbour_of_a_stream_that_becomes_messages(bridge, framing, kind):
    far = bridge("ws://127.0.0.1:0/", "echo")
    wait_beside(bridge("tcp://127.0.0.1:0", far.url(), "--framing", framing), kind, is_stream=True)
