"""Tests of rooms run over both brokers, by the fixture `broker` of conftest.py, unless they say why not."""

import re

import pytest

from .deadlines import eventually


def only(broker, reason):
    """Runs a test over one broker: `alone`, or `redis`."""
    assert reason
    return pytest.mark.parametrize("broker", [broker], indirect=True)


def await_redis(control):
    """Waits until each loop of a gateway, and the node itself, has reached Redis: before, publishing is refused, and clients
    that enter a room are not listed there yet."""
    def value(text, name):
        found = re.search(rf"^{name} (\d+)", text, re.MULTILINE)
        return int(found[1]) if found else 0

    def has_all():
        text = control._exchange("GET", "/metrics", None, {}, 20).body.decode()
        return value(text, "sluice_redis_connections_total") > value(text, "sluice_loops") > 0

    eventually(has_all, "a connection of each loop to Redis")
