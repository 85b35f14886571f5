"""Clients of plain HTTP behind a balancer without stickiness: replies come from one gateway, commands go to another."""
import http.client
import json
import signal

import pytest

from support.cluster import configuration, start_nodes
from support.deadlines import seconds

PATH = "/connection/uni_sse"
CONFIGURATION = configuration("""
loops: 2
log-level: debug
routes:
  - {name: events, path: /connection/uni_sse, target: room-events}
rooms:
  policies:
    - {name: all, pattern: "*", publish: everyone, history-size: 100, recovery: stream}
""")


@pytest.fixture
def nodes(sluice, redis, tmp_path):
    """Two gateways of one cluster."""
    return start_nodes(sluice, tmp_path, CONFIGURATION, redis, "ab")


def post(node, body):
    """A request, and its response when it is read."""
    connection = http.client.HTTPConnection("127.0.0.1", node.port(), timeout=seconds(20))
    connection.request("POST", PATH, body, {"Content-Type": "application/json"})
    return connection


def status(connection):
    try:
        return connection.getresponse().status
    finally:
        connection.close()


class Stream:
    """The client: a response of one gateway has its replies."""

    def __init__(self, node):
        self.connection = post(node, '{"id":1,"connect":{}}')
        self.response = self.connection.getresponse()
        connected = self.receive()["connect"]
        self.session, self.node = connected["session"], connected["node"]

    def receive(self):
        while True:
            line = self.response.readline().decode()
            assert line, "the response ended"
            if line.strip() not in ("", "{}"):
                return json.loads(line)

    def commands(self, *commands, node=None, session=None):
        """The body of a request that brings commands."""
        text = "\n".join(json.dumps(one) for one in commands)
        return json.dumps({"session": session or self.session, "node": node or self.node, "data": text})


def test_all_commands_may_reach_another_node_than_the_one_that_has_the_response(nodes, redis):
    first, second = nodes
    one = Stream(first)
    assert one.node == "a"
    assert status(post(second, one.commands({"id": 2, "subscribe": {"channel": "x"}}))) == 204
    assert one.receive()["id"] == 2
    for start in range(10, 60, 10):
        commands = [{"id": number, "publish": {"channel": "x", "data": number}} for number in range(start, start + 10)]
        assert status(post(second, one.commands(*commands))) == 204
    received = [one.receive() for _ in range(100)]
    assert [each["id"] for each in received if "id" in each] == list(range(10, 60))
    assert [each["push"]["pub"]["data"] for each in received if "push" in each] == list(range(10, 60))
    # More than one part of a message between nodes.
    text = "x" * 60_000
    commands = [{"id": number, "publish": {"channel": "x", "data": text}} for number in range(60, 64)]
    assert status(post(second, one.commands(*commands))) == 204
    received = [one.receive() for _ in range(8)]
    assert [each["id"] for each in received if "id" in each] == list(range(60, 64))

    assert status(post(second, one.commands({}, node="nobody"))) == 404
    assert status(post(second, one.commands({}, session="0" * 32))) == 404
    one.connection.close()
    one.response.close()
    while (gone := status(post(second, one.commands({})))) == 204:
        pass
    assert gone == 404
    for node in nodes:
        assert one.session not in "\n".join(node.log.all())


def test_node_that_was_killed_has_no_sessions(nodes):
    first, second = nodes
    one = Stream(first)
    first.kill()
    assert status(post(second, one.commands({}))) == 404


def test_commands_are_refused_while_the_node_is_silent_or_redis_is_away(nodes, redis):
    first, second = nodes
    one = Stream(first)
    first.signal(signal.SIGSTOP)
    waiting = [post(second, one.commands({})) for _ in range(3)]
    assert [status(each) for each in waiting] == [503, 503, 503]
    first.signal(signal.SIGCONT)
    assert status(post(second, one.commands({"id": 2, "subscribe": {"channel": "x"}}))) == 204
    assert one.receive()["id"] == 2
    redis.kill()
    second.wait_log("redis lost")
    assert status(post(second, one.commands({}))) == 503
    # The node that has the session needs no other.
    assert status(post(first, one.commands({}))) == 204
