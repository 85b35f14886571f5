"""Tests of rooms run over both brokers, by the fixture `broker` of conftest.py, unless they say why not."""

import re

import pytest

from .deadlines import eventually


def only(broker, reason):
    """Runs a test over one broker: `alone`, or `redis`."""
    assert reason
    return pytest.mark.parametrize("broker", [broker], indirect=True)


def await_redis(control, loops):
    """Waits until each loop of a gateway, and the node itself, has reached Redis: before, publishing is refused."""
    def connections():
        text = control._exchange("GET", "/metrics", None, {}, 20).body.decode()
        found = re.search(r"^sluice_redis_connections_total (\d+)", text, re.MULTILINE)
        return int(found[1]) if found else 0

    eventually(lambda: connections() > loops, "a connection of each loop to Redis")
