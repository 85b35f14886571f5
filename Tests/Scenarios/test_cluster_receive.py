"""Requests that wait on another gateway of the cluster: for data of a connection, and for events."""
import contextlib

import pytest

from support.cluster import configuration, start_nodes
from support.control import Control

CONFIGURATION = configuration("""
routes:
  - {name: echo, path: /echo, target: echo}
""", control='{address: "http://127.0.0.1:0", targets: [127.0.0.1]}')


@pytest.fixture
def nodes(sluice, tmp_path, redis):
    """Two gateways of one cluster."""
    return start_nodes(sluice, tmp_path, CONFIGURATION, redis, "ab")


def test_messages_are_received_on_another_node_and_none_is_lost(nodes):
    first, second = nodes
    a, b = Control.of(first), Control.of(second)
    name = b.open(f"ws://127.0.0.1:{second.port()}/echo")
    assert name.endswith("@b")
    a.send(name, "hello")
    assert a.receive(name) == "hello"
    assert a.verb(name, "receive", {"timeoutMs": 1}).status == 204

    # Longer than nodes exchange.
    long = "x" * 1_030_000
    b.send(name, long)
    a.verb(name, "receive").problem(502, "node-answer-too-large")
    assert b.receive(name) == long
    b.send(name, "y" * 1_000_000)
    assert a.receive(name) == "y" * 1_000_000

    connection = a.connection()
    connection.request("POST", f"/v1/connections/{name}:receive", b'{"timeoutMs": 60000}', {"Content-Type": "application/json"})
    connection.sock.close()
    connection.close()
    first.wait_log("operation=receive .*code=client-gone")
    # On the way that the end of the wait took before it.
    a.send(name, "kept")
    assert a.receive(name) == "kept"


def test_followers_of_events_leave_other_calls_their_places(nodes):
    a, b = (Control.of(node) for node in nodes)
    name = b.open(f"ws://127.0.0.1:{nodes[1].port()}/echo")
    with contextlib.ExitStack() as streams:
        for number in range(100):
            stream = a.connection(within=60)
            streams.callback(stream.close)
            # Streams with the same filter would share their wait.
            stream.request("GET", f"/v1/events?connection={name},{number + 1000}@b")
            assert stream.getresponse().status == 200
        for _ in range(20):
            assert "unreachable" not in a.request("GET", "/v1/connections").expect(200)
            assert a.show(name)["id"] == name
        a.send(name, "hello")
        assert a.receive(name) == "hello"
