"""`sluice health`, for container health checks and scripts."""

import signal

import pytest

from support import configuration, websocket
from support.client import Client
from support.control import Control
from support.deadlines import eventually
from support.programs import free_port


@pytest.fixture
def gateway(sluice, tmp_path):
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")], [configuration.route("echo", "echo", path="/echo")],
        control={"address": "http://127.0.0.1:0", "tokens": [{"name": "ops", "hash": "sha256:" + "0" * 64, "scopes": ["read"]}]},
        drain_timeout="10m", close_spread="5m")
    return sluice("serve", "--config", file)


def test_an_accepting_gateway_is_healthy_without_a_token(gateway):
    client = Client(Control.of(gateway).url)
    assert client("health") == "ok: ready\n" and client("health", "--live") == "ok: ready\n"
    assert client.run("health", "--json").json == {"status": "ok", "phase": "ready"}


def test_a_draining_gateway_is_live_but_not_ready(gateway):
    client = Client(Control.of(gateway).url)
    with websocket.connect(gateway.address(), "/echo"), websocket.connect(gateway.address(), "/echo"):
        gateway.signal(signal.SIGTERM)
        eventually(lambda: client.run("health").code != 0, "the drain")
        assert "not taking more" in client.run("health").failed(75)
        assert client.run("health", "--json").json == {"status": "not taking more", "phase": "draining"}
        assert client("health", "--live") == "ok: draining\n"


def test_an_unreachable_gateway_is_unhealthy():
    assert "no control plane" in Client(f"http://127.0.0.1:{free_port()}").run("health").failed(69)


def test_another_server_is_reported_as_no_control_plane(nginx):
    assert "is not a control plane" in Client(nginx.base).run("health").failed(76)
