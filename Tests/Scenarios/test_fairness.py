"""One client must not delay others on its loop: the round trip of a small message while another client keeps the loop
busy. `deploy/bench --only neighbours` measures the same on a quiet machine."""

import sys
import time
from pathlib import Path

import pytest

from support.deadlines import seconds, sized

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Benchmarks"))

import crowding  # noqa: E402

pytestmark = pytest.mark.alone

# In seconds, for a busy machine; on a quiet one it is a few milliseconds, without fair turns several seconds.
MEDIAN, WORST = 0.1, 0.5


def wait_beside(gateway, kind, is_stream=False, tls=False):
    """Measures the neighbour's round trips while a client of this kind keeps the gateway busy."""
    with crowding.Neighbour(gateway.port(), is_stream=is_stream, tls=tls) as neighbour:
        neighbour.round_trip()
        with crowding.Crowder(kind, gateway.port()) as crowder:
            began, spent = time.monotonic(), gateway.cpu()
            times = neighbour.round_trips(sized(1.5, 10))
            busy = (gateway.cpu() - spent) / (time.monotonic() - began)
            assert crowder.complaint() is None, crowder.complaint()
    # Otherwise the measurement shows nothing.
    assert busy > 0.1, f"the gateway was not busy: {busy:.0%} of a core"
    median, worst = crowding.median_and_worst(times)
    assert median < seconds(MEDIAN) and worst < seconds(WORST), (
        f"{kind}: {len(times)} round trips, median {median * 1000:.1f} ms, worst {worst * 1000:.1f} ms, {busy:.0%} of a core")


@pytest.mark.parametrize("kind", ["zeros", "noise", "fragments", "pings", "messages"])
def test_echo_clients_do_not_delay_a_neighbour(bridge, kind):
    wait_beside(bridge("ws://127.0.0.1:0/", "echo", "--compress"), kind)


def test_tiny_tls_records_do_not_delay_a_neighbour(bridge, authority):
    certificate, key = authority.issue("localhost")
    gateway = bridge("wss://127.0.0.1:0/", "echo", "--certificate", certificate, "--key", key)
    wait_beside(gateway, "records", tls=True)


@pytest.mark.parametrize("kind", ["zeros", "fragments", "pings", "messages"])
def test_a_tunnel_to_a_stream_does_not_delay_a_neighbour(bridge, kind):
    far = bridge("tcp://127.0.0.1:0", "echo")
    wait_beside(bridge("ws://127.0.0.1:0/", far.url(), "--compress"), kind)


@pytest.mark.parametrize("kind", ["zeros", "fragments", "pings", "messages"])
def test_a_tunnel_to_a_websocket_does_not_delay_a_neighbour(bridge, kind):
    far = bridge("ws://127.0.0.1:0/", "echo", "--compress")
    options = ["--compress"] if kind == "zeros" else []
    wait_beside(bridge("ws://127.0.0.1:0/", far.url(), *options), kind)


@pytest.mark.parametrize("framing, kind", [("lines", "lines"), ("base64", "bytes"), ("length-prefixed", "bytes")])
def test_framing_a_stream_does_not_delay_a_neighbour(bridge, framing, kind):
    far = bridge("ws://127.0.0.1:0/", "echo")
    wait_beside(bridge("tcp://127.0.0.1:0", far.url(), "--framing", framing), kind, is_stream=True)
