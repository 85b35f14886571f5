"""The stream of events: numbered, live and replayed; and the metrics."""

import contextlib
import json
import signal
import socket

import pytest
import websockets.sync.client
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from support import configuration
from support.control import Control
from support.deadlines import eventually, seconds
from support.events import Events
from support.programs import free_port


@pytest.fixture
def serve(sluice, tmp_path):
    def start(listeners=(), routes=(), upstreams=(), **more):
        listeners = list(listeners) or [configuration.listener("web", "ws://127.0.0.1:0")]
        routes = list(routes) or [configuration.route("echo", "echo", path="/echo")]
        file = configuration.write(tmp_path / "sluice.yaml", listeners, routes, upstreams, control={"address": "http://127.0.0.1:0"}, **more)
        gateway = sluice("serve", "--config", file)
        return gateway, Control.of(gateway)

    return start


def test_a_connection_has_events_from_opened_to_closed(serve):
    gateway, control = serve()
    with Events(control, "/v1/events") as events:
        with websockets.sync.client.connect(gateway.url()):
            opened = events.wait_type("opened", listener="web", route="echo")
            assert events.wait_type("upgraded", reason="websocket")["connection"] == opened["connection"]
        closed = events.wait_type("closed", connection=opened["connection"])
        assert closed["reason"] == "downstream/relaying/clean(1000)"
        numbers = [event["number"] for event in events.all]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_a_closed_event_has_close_code_and_byte_counts(serve):
    gateway, control = serve()
    with Events(control, "/v1/events?type=closed") as events:
        with websockets.sync.client.connect(gateway.url()) as client:
            client.send("seven b")
            assert client.recv(timeout=seconds(10)) == "seven b"
            client.close(4001, "done")
        closed = events.wait_type("closed", listener="web", closeCode=4001)
        assert (closed["closeReason"], closed["receivedBytes"], closed["sentBytes"]) == ("done", 7, 7)
        assert "labels" not in closed
        name = control.open(gateway.url(), labels={"team": "blue"})
        control.send(name, "abc")
        assert control.receive(name) == "abc"
        control.close(name)
        closed = events.wait_type("closed", connection=name)
        assert (closed["closeCode"], closed["receivedBytes"], closed["sentBytes"], closed["labels"]) == (1000, 3, 3, {"team": "blue"})


def test_events_that_are_no_longer_stored_are_a_gap(serve, listener):
    _, control = serve()
    name = control.open(listener.url("tcp"))
    with Events(control, "/v1/events", {"Last-Event-ID": "999999"}) as events:
        gap = events.wait_type("gap")
        assert gap["missedTo"] == 999999
        events.wait_type("opened", connection=name)


def test_a_client_of_the_former_process_gets_a_gap_and_all_events(serve, listener):
    gateway, control = serve()
    names = [control.open(listener.url("tcp")) for _ in range(3)]
    with Events(control, "/v1/events?after=0&type=opened") as events:
        former = events.wait_type("opened", connection=names[2])["position"]
    gateway.signal(signal.SIGTERM)
    gateway.wait()
    _, control = serve()
    names = [control.open(listener.url("tcp")) for _ in range(4)]
    with Events(control, "/v1/events?type=opened", {"Last-Event-ID": former}) as events:
        events.wait_type("opened", connection=names[3])
        assert [event["type"] for event in events.all] == ["gap"] + ["opened"] * 4
        assert [event["connection"] for event in events.all[1:]] == names


def test_events_are_sent_over_a_websocket(serve, listener):
    _, control = serve()
    url = control.url.replace("http://", "ws://") + "/v1/events?after="
    name = control.open(listener.url("tcp"))
    with websockets.sync.client.connect(url + "00000000.7") as client:
        gap = json.loads(client.recv(timeout=seconds(10)))
        assert (gap["type"], gap["missedTo"]) == ("gap", 7)
        opened = json.loads(client.recv(timeout=seconds(10)))
        assert (opened["type"], opened["connection"]) == ("opened", name)
    with websockets.sync.client.connect(url + gap["position"]) as client:
        assert json.loads(client.recv(timeout=seconds(10))) == opened
        control.close(name)
        assert json.loads(client.recv(timeout=seconds(10)))["type"] == "closed"
        client.ping().wait(seconds(10))
    # The gateway still answers HTTP.
    assert control.get("/livez").status == 200


def test_a_shutdown_sends_drain_events_and_ends_the_streams(serve):
    gateway, control = serve([configuration.listener("raw", "tcp://127.0.0.1:0", route="echo")], [configuration.route("echo", "echo")])
    with Events(control, "/v1/events") as events:
        with socket.create_connection(gateway.address(), timeout=seconds(10)):
            events.wait_type("opened")
            gateway.signal(signal.SIGTERM)
            events.wait_type("drainStarted")
        eventually(lambda: events.ended, "the end of the stream")
        assert events.all[-1]["type"] == "drainEnded"
    assert gateway.wait() == 0


def test_reloads_have_events(serve, tmp_path):
    gateway, control = serve()
    with Events(control, "/v1/events") as events:
        gateway.signal(signal.SIGHUP)
        events.wait_type("reloaded")
        (tmp_path / "sluice.yaml").write_text("nonsense")
        gateway.signal(signal.SIGHUP)
        assert "expected a mapping" in events.wait_type("reloadFailed")["detail"]


def test_limits_and_upstream_states_have_events(serve):
    # Nobody listens yet: connections are refused.
    with socket.socket() as endpoint:
        endpoint.bind(("127.0.0.1", 0))
        expect_limits_and_upstream_states(serve, endpoint)


def expect_limits_and_upstream_states(serve, endpoint):
    port = endpoint.getsockname()[1]
    gateway, control = serve(
        [configuration.listener("web", "ws://127.0.0.1:0", max_connections_per_client=1)],
        [configuration.route("echo", "echo", path="/echo"), configuration.route("up", "up", path="/up")],
        [configuration.upstream("up", f"tcp://127.0.0.1:{port}", eject_failures=1, eject_duration="1s", retries=0)])
    url = gateway.url().rstrip("/")
    with Events(control, "/v1/events") as events:
        with websockets.sync.client.connect(url + "/echo"):
            for _ in range(3):
                with pytest.raises(websockets.exceptions.InvalidStatus):
                    websockets.sync.client.connect(url + "/echo")
            events.wait_type("limitHit", listener="web", reason="client-limit")

        def try_upstream():
            with contextlib.suppress(websockets.exceptions.InvalidStatus):
                websockets.sync.client.connect(url + "/up")

        eventually(lambda: try_upstream() or any(event["type"] == "upstreamDown" for event in events.all), "an endpoint down")
        down = events.wait_type("upstreamDown")
        assert (down["upstream"], down["endpoint"]) == ("up", f"tcp://127.0.0.1:{port}")
        endpoint.listen()

        def is_up():
            # The client's connection before it may still be counted, and the endpoint still be ejected.
            with contextlib.suppress(websockets.exceptions.InvalidStatus):
                with websockets.sync.client.connect(url + "/up"):
                    return events.wait_type("upstreamUp")

        eventually(is_up, "the endpoint serves again")


def metrics(control):
    answer = control.get("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in text_string_to_metric_families(answer.body.decode())}
    return lambda name, **labels: sum(
        sample.value for family in families.values() for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items())


def test_metrics_count_connections_bytes_and_messages(serve, listener):
    gateway, control = serve(routes=[configuration.route("echo", "echo", path="/echo", ping_interval="1s")])
    with websockets.sync.client.connect(gateway.url()) as client:
        for size in (1, 100, 1000):
            client.send(b"x" * size)
            client.recv()
        value = metrics(control)
        assert value("sluice_connections", kind="webSocket", state="open", route="echo") == 1
        assert value("sluice_payload_bytes_total", route="echo", way="received") == 1101
        assert value("sluice_messages_total", route="echo", way="sent") == 3
        assert value("sluice_message_size_bytes_count") == 3 and value("sluice_message_size_bytes_sum") == 1101
        assert value("sluice_message_size_bytes_bucket", le="1.0") == 1
        assert value("sluice_message_size_bytes_bucket", le="128.0") == 2
        assert value("sluice_handshake_seconds_count") == 1 and 0 < value("sluice_handshake_seconds_sum") < 10
        eventually(lambda: metrics(control)("sluice_ping_rtt_seconds_count") >= 1, "a ping answered")
    eventually(lambda: metrics(control)("sluice_connections") == 0, "the end of the connection")
    value = metrics(control)
    assert value("sluice_payload_bytes_total", route="echo", way="received") == 1101
    assert value("sluice_connections_ended_total", party="downstream", phase="relaying", cause="clean") == 1
    assert value("sluice_life_seconds_count") == 1
    assert value("sluice_control_requests_total", operation="getMetrics", status="200") >= 3
    assert value("sluice_events_total") == control_events(control)


def test_metrics_count_the_connections_to_each_endpoint(serve, listener):
    down, up = f"tcp://127.0.0.1:{free_port()}", listener.url("tcp")
    gateway, control = serve(
        routes=[configuration.route("up", "up", path="/up")],
        upstreams=[configuration.upstream("up", down, up, policy="failover", eject_failures=1, eject_duration="1h", retries=1)])
    with websockets.sync.client.connect(gateway.url()), listener.accept():
        value = metrics(control)
        assert value("sluice_endpoint_connections", upstream="up", endpoint=up) == 1
        assert value("sluice_endpoint_connects_total", upstream="up", endpoint=up) == 1
        assert 0 < value("sluice_endpoint_connect_seconds_total", upstream="up", endpoint=up) < 60
        assert value("sluice_endpoint_failures_total", upstream="up", endpoint=down) == 1
        assert value("sluice_endpoint_ejected", endpoint=down) == 1 and value("sluice_endpoint_ejected", endpoint=up) == 0
    eventually(lambda: metrics(control)("sluice_endpoint_connections") == 0, "the end of the connection")


def control_events(control):
    with Events(control, "/v1/events?after=0") as events:
        events.wait_type("closed")
        return events.all[-1]["number"]
