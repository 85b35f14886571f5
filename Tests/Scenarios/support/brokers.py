"""Tests of rooms run over both brokers, by the fixture `broker` of conftest.py, unless they say why not."""

import pytest


def only(broker, reason):
    """Runs a test over one broker: `alone`, or `redis`."""
    assert reason
    return pytest.mark.parametrize("broker", [broker], indirect=True)
