"""Listeners, routes and upstreams changed over HTTP while the gateway runs."""

import json
import signal
import socket

import pytest
import websockets.sync.client
from websockets.exceptions import InvalidStatus

from support import configuration, gateway
from support.configured import Configured
from support.control import Control
from support.deadlines import eventually


@pytest.fixture
def configured(sluice, tmp_path):
    return lambda **more: Configured(sluice, tmp_path, **more)


def etag(answer):
    return answer.headers["etag"]


def address_of(control, listener):
    return control.get(f"/v1/listeners/{listener}").expect(200)["status"]["address"]


def echoes(address, path="/echo"):
    with websockets.sync.client.connect(f"ws://{address}{path}") as client:
        client.send("hello")
        return client.recv() == "hello"


def refuses(address):
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


# -- creating, changing, deleting

def test_a_listener_created_at_run_time_serves_until_it_is_deleted(configured):
    control = configured().control
    made = control.post("/v1/listeners", {"name": "extra", "listen": "ws://127.0.0.1:0"})
    body = made.expect(201)
    assert made.headers["location"] == "/v1/listeners/extra" and etag(made)
    address = body["status"]["address"]
    assert body["listen"] == "ws://127.0.0.1:0" and echoes(address)
    assert [one["name"] for one in control.get("/v1/listeners").expect(200)["items"]] == ["web", "extra"]
    with websockets.sync.client.connect(f"ws://{address}/echo") as client:
        assert control.request("DELETE", "/v1/listeners/extra").status == 204
        eventually(lambda: refuses(address), "the listener is closed")
        client.send("still there")
        assert client.recv() == "still there"
    control.get("/v1/listeners/extra").problem(404, "unknown-listener")
    assert echoes(address_of(control, "web"))


def test_a_route_created_at_run_time_uses_an_upstream_created_at_run_time(configured, sluice):
    other = sluice("bridge", "ws://127.0.0.1:0/", "echo")
    control = configured().control
    control.post("/v1/upstreams", {"name": "other", "endpoints": [other.listeners[0]]}).expect(201)
    control.post("/v1/routes", {"name": "far", "path": "/far", "target": "other"}).expect(201)
    web = address_of(control, "web")
    assert echoes(web, "/far")
    with websockets.sync.client.connect(f"ws://{web}/far"):
        def endpoints():
            status = control.get("/v1/upstreams/other").expect(200)["status"]
            return [(one["connections"], one["ejected"]) for one in status["endpoints"]]

        # The connection before it may end a little after its client.
        eventually(lambda: endpoints() == [(1, False)], "one connection")
    # An upstream that a route uses cannot be deleted.
    refused = control.request("DELETE", "/v1/upstreams/other").problem(409, "conflicts-with-configuration")
    assert "routes[1].target" in refused["errors"][0]["detail"]
    assert control.request("DELETE", "/v1/routes/far").status == 204
    assert control.request("DELETE", "/v1/upstreams/other").status == 204
    with pytest.raises(InvalidStatus):
        echoes(web, "/far")


# -- refusals

def test_a_missing_certificate_file_is_refused_with_its_pointer(configured):
    control = configured().control
    body = {"name": "x", "listen": "wss://127.0.0.1:0", "tls": {"certificate": "/nowhere.pem"}}
    problem = control.post("/v1/listeners", body).problem(422, "invalid-configuration")
    assert "no such file" in next(one["detail"] for one in problem["errors"] if one["pointer"] == "/tls/certificate"), problem
    assert [one["name"] for one in control.get("/v1/listeners").expect(200)["items"]] == ["web"]


def test_the_last_listener_cannot_be_deleted(configured):
    control = configured().control
    for query in ("", "?dryRun=true"):
        control.request("DELETE", f"/v1/listeners/web{query}").problem(409, "conflicts-with-configuration")
    assert echoes(address_of(control, "web"))


def test_an_address_in_use_changes_nothing(configured):
    control = configured().control
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        problem = control.post("/v1/listeners", {"name": "x", "listen": f"ws://127.0.0.1:{taken.getsockname()[1]}"}).problem(409, "cannot-run")
    assert "another process listens here" in problem["detail"]
    control.get("/v1/listeners/x").problem(404, "unknown-listener")


# -- the whole configuration

def test_an_exported_configuration_can_be_loaded_again(configured, sluice, tmp_path):
    control = configured(upstreams=[configuration.upstream("far", "ws://127.0.0.1:9/{room}")],
                         routes=[configuration.route("echo", "echo", path="/echo"),
                                 configuration.route("far", "far", path="/far/{room}", headers=["X-One: a: b", "X-Two: \"q\""], origins=["*", "null"])]).control
    control.post("/v1/listeners", {"name": "extra", "listen": "ws://127.0.0.1:0", "keep-alive": {"idle": "none"}}).expect(201)
    control.request("PATCH", "/v1/routes/echo", {"max-message-size": "2MiB"}).expect(200)
    exported = control.request("GET", "/v1/configuration?format=yaml")
    assert exported.status == 200 and exported.headers["content-type"] == "application/yaml"
    copy = tmp_path / "exported.yaml"
    copy.write_bytes(exported.body)
    checked = gateway.run("check", "--config", copy)
    assert checked.returncode == 0, checked.stderr
    # Putting the same configuration is no change, as YAML or JSON.
    whole = control.get("/v1/configuration")
    for body, form in ((exported.body, "application/yaml"), (whole.body, "application/json")):
        answer = control.request("PUT", "/v1/configuration", body, headers={"Content-Type": form}).expect(200)
        assert answer == {"applied": True, "changes": []}
    assert etag(control.get("/v1/configuration")) == etag(whole)
    second = Control.of(sluice("serve", "--config", copy))
    assert {name: value for name, value in second.get("/v1/configuration").json.items()} == whole.json
    assert echoes(address_of(second, "extra"))


def test_resources_that_need_each_other_are_put_together(configured):
    control = configured().control
    whole = control.get("/v1/configuration").json
    whole["listeners"].append({"name": "raw", "listen": "tcp://127.0.0.1:0", "route": "raw"})
    whole["routes"].append({"name": "raw", "target": "echo"})
    control.post("/v1/listeners", whole["listeners"][-1]).problem(422, "invalid-configuration")
    answer = control.request("PUT", "/v1/configuration", whole).expect(200)
    assert sorted(one["resource"] for one in answer["changes"]) == ["/v1/listeners/raw", "/v1/routes/raw"]
    host, port = address_of(control, "raw").rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(b"hello")
        assert client.recv(5) == b"hello"
    whole["loops"] = 3
    changes = control.request("PUT", "/v1/configuration?dryRun=true", whole).expect(200)["changes"]
    assert changes == [{"resource": "/v1/configuration", "change": "changed", "members": [{"pointer": "/loops", "to": 3, "needsRestart": True}]}]


def test_reload_applies_the_changed_file(configured):
    one = configured()
    control = one.control
    control.post("/v1/routes", {"name": "passing", "path": "/passing", "target": "echo"}).expect(201)
    one.write(routes=[configuration.route("echo", "echo", path="/echo"), configuration.route("new", "echo", path="/new")])
    planned = control.post("/v1/configuration:reload?dryRun=true").expect(200)
    assert {(change["resource"], change["change"]) for change in planned["changes"]} == {("/v1/routes/passing", "deleted"), ("/v1/routes/new", "created")}
    done = control.post("/v1/configuration:reload").expect(200)
    assert done == {**planned, "applied": True}
    assert echoes(address_of(control, "web"), "/new")
    one.file.write_text("listeners: 7")
    problem = control.post("/v1/configuration:reload").problem(422, "invalid-configuration")
    assert "/listeners" in [error.get("pointer") for error in problem["errors"]]
    one.file.unlink()
    control.post("/v1/configuration:reload").problem(409, "unreadable-file")
    assert echoes(address_of(control, "web"), "/new")


def test_the_built_in_configuration_can_be_changed_but_not_reloaded(sluice):
    started = sluice("serve", ready=False)
    try:
        started.wait_ready()
        control = Control.of(started)
    except (AssertionError, StopIteration):
        pytest.skip("its ports are taken on this machine")
    control.post("/v1/configuration:reload").problem(409, "no-file")
    control.post("/v1/routes", {"name": "more", "path": "/more", "target": "echo"}).expect(201)
    assert echoes(address_of(control, "web"), "/more")


def test_a_signal_and_a_request_reload_the_same_way(configured):
    one = configured()
    control = one.control
    control.post("/v1/routes", {"name": "passing", "path": "/passing", "target": "echo"}).expect(201)
    one.gateway.signal(signal.SIGHUP)
    eventually(lambda: control.get("/v1/routes/passing").status == 404, "the routes of the file")


# -- secrets

def test_credentials_are_hidden_and_kept_when_put_back(configured, authority, server_certificate):
    certificate, key = server_certificate
    headers = {"Authorization": "Bearer s3cr3t-token", "X-Plain": "plain"}
    one = configured(
        listeners=[configuration.listener("web", "ws://127.0.0.1:0"),
                   configuration.listener("tls", "wss://127.0.0.1:0", tls={"certificate": str(certificate), "key": str(key), "password": "s3cr3t-word"})],
        routes=[configuration.route("echo", "echo", path="/echo"),
                configuration.route("far", "ws://127.0.0.1:9/", path="/far", headers=headers)])
    control = one.control
    for path in ("/v1/listeners", "/v1/routes", "/v1/listeners/tls", "/v1/routes/far", "/v1/configuration", "/v1/configuration?format=yaml"):
        assert b"s3cr3t" not in control.request("GET", path).body, path
    assert b"s3cr3t-token" in control.request("GET", "/v1/configuration?secrets=true").body
    shown = control.get("/v1/routes/far").expect(200)
    assert shown["headers"] == {"Authorization": "(hidden)", "X-Plain": "plain"}
    shown["headers"]["X-Plain"] = "other"
    difference = control.request("PUT", "/v1/routes/far?dryRun=true", shown).expect(200)
    assert [member["pointer"] for member in difference["changes"][0]["members"]] == ["/headers/X-Plain"]
    control.request("PUT", "/v1/routes/far", shown).expect(200)
    kept = json.loads(control.request("GET", "/v1/configuration?secrets=true").body)
    assert kept["routes"][1]["headers"] == {"Authorization": "Bearer s3cr3t-token", "X-Plain": "other"}
    stray = {"name": "x", "path": "/x", "target": "ws://127.0.0.1:9/", "headers": {"Authorization": "(hidden)"}}
    problem = control.post("/v1/routes", stray).problem(422, "invalid-configuration")
    assert problem["errors"][0]["pointer"] == "/headers/Authorization"
