"""Many and busy connections: lists that miss no connection while traffic runs, and taps that do not slow a connection."""

import contextlib
import json
import os
import resource
import socket
import threading

import pytest

from support import configuration
from support.configured import Configured
from support.deadlines import eventually, seconds

CROWD = 5000


@pytest.fixture
def descriptors():
    """Raises the limit of descriptors for the clients of a crowd."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CROWD + 1000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"no more than {hard} descriptors in a process")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_crowd_is_listed_completely_while_traffic_runs(sluice, tmp_path, descriptors):
    one = Configured(
        sluice, tmp_path, [configuration.listener("raw", "tcp://127.0.0.1:0", route="echo", max_connections=2 * CROWD)],
        [configuration.route("echo", "echo")], max_connections=2 * CROWD)
    control, stop, failures, rounds = one.control, threading.Event(), [], [0]
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(socket.create_connection(one.gateway.address(), timeout=seconds(20))) for _ in range(CROWD)]
        eventually(lambda: sum(1 for _ in control.list(fields="id", limit=1000, state="open")) == CROWD, "a crowd", within=30)
        expected = {each["id"] for each in control.list(fields="id", limit=1000)}
        assert len(expected) == CROWD

        def talk():
            """Part of the crowd sends at once, while other connections open and close."""
            try:
                while not stop.is_set():
                    for member in crowd[:: CROWD // 50]:
                        member.sendall(b"ping")
                    for member in crowd[:: CROWD // 50]:
                        assert member.recv(4, socket.MSG_WAITALL) == b"ping"
                    socket.create_connection(one.gateway.address(), timeout=seconds(20)).close()
                    rounds[0] += 1
            except (OSError, AssertionError) as failure:
                failures.append(failure)

        thread = threading.Thread(target=talk)
        thread.start()
        try:
            for query in ({"sort": "id", "limit": 500}, {"sort": "-bytes", "limit": 1000, "fields": "id,sentBytes"},
                          {"sort": "idle", "limit": 700, "fields": "id"}):
                before = rounds[0]
                eventually(lambda: rounds[0] > before or failures, "traffic before")
                seen = [each["id"] for each in control.list(**query)]
                eventually(lambda: rounds[0] > before + 1 or failures, "traffic since")
                assert len(seen) == len(set(seen)), f"{query}: seen twice"
                assert expected <= set(seen), f"{query}: {len(expected - set(seen))} were missed"
        finally:
            stop.set()
            thread.join()
        assert not failures, failures


def test_a_slow_tap_does_not_delay_a_busy_connection(sluice, tmp_path):
    """Traffic does not wait for the tap, and the pieces it missed are counted."""
    one = Configured(sluice, tmp_path)
    control = one.control
    name = control.open(f"ws://127.0.0.1:{one.gateway.port()}/echo")
    connection = control.connection(within=60)
    connection.request("GET", f"/v1/connections/{name}/tap?maxBytes=65536")
    response = connection.getresponse()
    # The first comment arrives at once.
    assert response.readline() == b":\n"
    count, payload, pieces, skipped = 300, os.urandom(65536), 0, 0
    received = threading.Event()

    def take():
        for _ in range(count):
            assert control.receive(name) == payload
        received.set()

    taking = threading.Thread(target=take)
    taking.start()
    for _ in range(count):
        control.send(name, payload)
    taking.join(seconds(120))
    assert received.is_set(), "the traffic waited for the tap"
    control.close(name)
    for line in response:
        if line.startswith(b"data: "):
            event = json.loads(line[6:])
            pieces += 1 if "way" in event else 0
            skipped += event["skipped"]
    connection.close()
    # A message that arrived in parts may be skipped in parts.
    assert pieces > 0 and skipped > 0 and pieces + skipped >= 2 * count, (pieces, skipped)
