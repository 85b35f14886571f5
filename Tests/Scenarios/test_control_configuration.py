"""Listeners, routes and upstreams that change while the gateway runs, by nothing but HTTP."""

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


# -- making, changing, deleting

def test_a_listener_made_at_run_time_serves_until_it_is_deleted(configured):
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


def test_a_route_made_at_run_time_leads_to_an_upstream_made_at_run_time(configured, sluice):
    other = sluice("bridge", "ws://127.0.0.1:0/", "echo")
    control = configured().control
    control.post("/v1/upstreams", {"name": "other", "endpoints": [other.listeners[0]]}).expect(201)
    control.post("/v1/routes", {"name": "far", "path": "/far", "target": "other"}).expect(201)
    web = address_of(control, "web")
    assert echoes(web, "/far")
    with websockets.sync.client.connect(f"ws://{web}/far"):
        status = control.get("/v1/upstreams/other").expect(200)["status"]
        assert [(one["connections"], one["ejected"]) for one in status["endpoints"]] == [(1, False)]
    # It is in use: nothing is taken away under a route.
    refused = control.request("DELETE", "/v1/upstreams/other").problem(409, "conflicts-with-configuration")
    assert "routes[1].target" in refused["errors"][0]["detail"]
    assert control.request("DELETE", "/v1/routes/far").status == 204
    assert control.request("DELETE", "/v1/upstreams/other").status == 204
    with pytest.raises(InvalidStatus):
        echoes(web, "/far")


def test_a_change_lays_over_what_is_there_and_a_replacement_puts_aside(configured):
    control = configured(routes=[configuration.route("echo", "echo", path="/echo", max_message_size=1000, compress=True)]).control
    changed = control.request("PATCH", "/v1/routes/echo", {"max-message-size": 2000, "compress": None}).expect(200)
    assert changed == {"name": "echo", "path": "/echo", "target": "echo", "max-message-size": 2000}
    replaced = control.request("PUT", "/v1/routes/echo", {"path": "/other", "target": "echo"}).expect(200)
    assert replaced == {"name": "echo", "path": "/other", "target": "echo"}
    assert echoes(address_of(control, "web"), "/other")
    # PUT makes what is not there.
    assert control.request("PUT", "/v1/routes/second", {"path": "/second", "target": "chat"}).expect(201)["name"] == "second"


def test_what_is_shown_can_be_sent_back(configured):
    control = configured().control
    shown = control.get("/v1/listeners/web")
    again = control.request("PUT", "/v1/listeners/web", shown.json)
    assert again.expect(200) == shown.json and etag(again) == etag(shown)


def test_what_is_known_is_not_sent_again_and_what_is_there_not_made_again(configured):
    control = configured().control
    for path in ("/v1/routes", "/v1/routes/echo", "/v1/configuration"):
        tag = etag(control.get(path))
        known = control.request("GET", path, headers={"If-None-Match": f'"other", {tag}'})
        assert (known.status, known.body, etag(known)) == (304, b"", tag)
        assert control.request("GET", path, headers={"If-None-Match": '"other"'}).status == 200
    body, only_new = {"path": "/second", "target": "echo"}, {"If-None-Match": "*"}
    control.request("PUT", "/v1/routes/second", body, headers=only_new).expect(201)
    again = control.request("PUT", "/v1/routes/second", {**body, "path": "/other"}, headers=only_new)
    again.problem(412, "changed-meanwhile")
    assert control.get("/v1/routes/second").expect(200)["path"] == "/second"


def test_yaml_is_read_like_the_file(configured):
    control = configured().control
    body = b"name: second\npath: /second\ntarget: echo\nidle-timeout: 1m\n"
    made = control.post("/v1/routes", body, headers={"Content-Type": "application/yaml"}).expect(201)
    assert made["idle-timeout"] == "1m"


# -- refusals

def test_the_port_that_the_system_picked_for_one_listener_is_no_other_listeners(configured):
    control = configured().control
    web = address_of(control, "web")
    for listen in (f"ws://{web}", f"ws://*:{web.rpartition(':')[2]}", f"ws://0.0.0.0:{web.rpartition(':')[2]}"):
        problem = control.post("/v1/listeners", {"name": "other", "listen": listen}).problem(409, "cannot-run")
        assert "'web'" in problem["detail"]
    control.get("/v1/listeners/other").problem(404, "unknown-listener")
    assert echoes(web)


@pytest.mark.parametrize("body,pointer,words", [
    ({"name": "x", "listen": "ws://127.0.0.1:99999"}, "/listen", "a port from 0 to 65535"),
    ({"name": "x", "listen": "ws://127.0.0.1:0", "backlogg": 1}, "/backlogg", "did you mean backlog?"),
    ({"name": "x", "listen": "ws://127.0.0.1:0", "backlog": 0}, "/backlog", "expected"),
    ({"name": "a b", "listen": "ws://127.0.0.1:0"}, "/name", "expected"),
    ({"listen": "ws://127.0.0.1:0"}, "/name", "a value for name"),
    ({"name": "x", "listen": "tcp://127.0.0.1:0", "route": "nowhere"}, "/route", "the name of a route"),
    ({"name": "x", "listen": "wss://127.0.0.1:0", "tls": {"certificate": "/nowhere.pem"}}, "/tls/certificate", "no such file"),
    ({"name": "x", "listen": "ws://127.0.0.1:0", "keep-alive": {"probes": 500}}, "/keep-alive/probes", "expected"),
])
def test_what_is_wrong_is_told_as_of_the_file_with_its_place(configured, body, pointer, words):
    control = configured().control
    problem = control.post("/v1/listeners", body).problem(422, "invalid-configuration")
    assert pointer in [one["pointer"] for one in problem["errors"]], problem
    assert words in next(one["detail"] for one in problem["errors"] if one["pointer"] == pointer)
    assert [one["name"] for one in control.get("/v1/listeners").expect(200)["items"]] == ["web"]


def test_what_cannot_be_meant_is_refused(configured):
    one = configured()
    control = one.control
    control.post("/v1/listeners", b"{").problem(400, "malformed-json")
    control.post("/v1/listeners", b"a: [", headers={"Content-Type": "application/yaml"}).problem(400, "malformed-yaml")
    control.post("/v1/listeners", b"x", headers={"Content-Type": "text/csv"}).problem(415, "unsupported-media-type")
    control.post("/v1/listeners", []).problem(422, "wrong-type")
    control.post("/v1/listeners", {"name": "web", "listen": "ws://127.0.0.1:0"}).problem(409, "name-taken")
    control.request("PATCH", "/v1/listeners/web", {"name": "other"}).problem(422, "invalid-configuration")
    control.request("PATCH", "/v1/listeners/nobody", {}).problem(404, "unknown-listener")
    control.request("DELETE", "/v1/routes/nobody").problem(404, "unknown-route")
    control.request("DELETE", "/v1/listeners/web").problem(409, "conflicts-with-configuration")
    deep = b'{"name": "x", "listen": ' + b"[" * 200 + b"]" * 200 + b"}"
    control.post("/v1/listeners", deep).problem(422, "too-large")
    assert one.gateway.running() and echoes(address_of(control, "web"))


def test_an_address_that_is_taken_changes_nothing(configured):
    control = configured().control
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        problem = control.post("/v1/listeners", {"name": "x", "listen": f"ws://127.0.0.1:{taken.getsockname()[1]}"}).problem(409, "cannot-run")
    assert "another process listens here" in problem["detail"]
    control.get("/v1/listeners/x").problem(404, "unknown-listener")


# -- tags and dry runs

def test_a_tag_that_is_not_the_present_one_changes_nothing(configured):
    control = configured().control
    first = etag(control.get("/v1/routes/echo"))
    other = etag(control.get("/v1/listeners/web"))
    changed = control.request("PATCH", "/v1/routes/echo", {"idle-timeout": "1m"}, headers={"If-Match": first})
    assert changed.expect(200)["idle-timeout"] == "1m" and etag(changed) != first
    for method, body in (("PATCH", {"idle-timeout": "2m"}), ("PUT", {"path": "/", "target": "echo"}), ("DELETE", None)):
        control.request(method, "/v1/routes/echo", body, headers={"If-Match": first}).problem(412, "changed-meanwhile")
    assert control.get("/v1/routes/echo").expect(200)["idle-timeout"] == "1m"
    # What did not change kept its tag.
    assert etag(control.get("/v1/listeners/web")) == other
    several = {"If-Match": f'"nonsense", {etag(changed)}'}
    control.request("PATCH", "/v1/routes/echo", {"idle-timeout": "3m"}, headers=several).expect(200)
    control.request("PATCH", "/v1/routes/echo", {"idle-timeout": "4m"}, headers={"If-Match": "*"}).expect(200)
    control.request("PUT", "/v1/routes/nobody", {"path": "/n", "target": "echo"}, headers={"If-Match": "*"}).problem(412, "changed-meanwhile")


def test_a_dry_run_shows_the_difference_and_changes_nothing(configured):
    control = configured().control
    before = control.get("/v1/configuration")
    difference = control.request("PATCH", "/v1/routes/echo?dryRun=true", {"idle-timeout": "1m", "path": "/other"}).expect(200)
    assert difference == {"applied": False, "changes": [{
        "resource": "/v1/routes/echo", "change": "changed",
        "members": [{"pointer": "/path", "from": "/echo", "to": "/other"}, {"pointer": "/idle-timeout", "to": "1m"}]}]}
    made = control.post("/v1/listeners?dryRun=true", {"name": "x", "listen": "ws://127.0.0.1:0"}).expect(200)
    assert [(one["resource"], one["change"]) for one in made["changes"]] == [("/v1/listeners/x", "created")]
    control.request("PUT", "/v1/routes/second?dryRun=true", {"path": "/s", "target": "echo"}).expect(200)
    control.request("DELETE", "/v1/listeners/web?dryRun=true").problem(409, "conflicts-with-configuration")
    control.post("/v1/listeners?dryRun=true", {"name": "x", "listen": "ws://nobody"}).problem(422, "invalid-configuration")
    after = control.get("/v1/configuration")
    assert (after.json, etag(after)) == (before.json, etag(before))


# -- the whole

def test_what_is_exported_reads_back_and_runs_the_same(configured, sluice, tmp_path):
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
    # The same again is no change, in either form.
    whole = control.get("/v1/configuration")
    for body, form in ((exported.body, "application/yaml"), (whole.body, "application/json")):
        answer = control.request("PUT", "/v1/configuration", body, headers={"Content-Type": form}).expect(200)
        assert answer == {"applied": True, "changes": []}
    assert etag(control.get("/v1/configuration")) == etag(whole)
    second = Control.of(sluice("serve", "--config", copy))
    assert {name: value for name, value in second.get("/v1/configuration").json.items()} == whole.json
    assert echoes(address_of(second, "extra"))


def test_things_that_need_one_another_come_together(configured):
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


def test_the_file_is_read_again(configured):
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


def test_the_built_in_configuration_can_be_changed_but_not_read_again(sluice):
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
    eventually(lambda: control.get("/v1/routes/passing").status == 404, "the file took its place again")


# -- what is not shown

def test_values_of_credentials_are_hidden_and_stay(configured, authority, server_certificate):
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


def test_json_has_types_where_a_file_has_texts(configured):
    control = configured().control
    for member, value, pointer in (
        ("backlog", "5", "/backlog"), ("backlog", True, "/backlog"), ("plain-and-tls", "true", "/plain-and-tls"), ("name", 5, "/name"),
        ("handshake-timeout", 10, "/handshake-timeout"), ("proxy-protocol-trusted", "10.0.0.0/8", "/proxy-protocol-trusted"),
        ("proxy-protocol-trusted", [10], "/proxy-protocol-trusted/0"), ("keep-alive", [], "/keep-alive"), ("keep-alive", {"probes": "3"}, "/keep-alive/probes"),
        ("max-header-size", {}, "/max-header-size"),
    ):
        body = {"name": "extra", "listen": "ws://127.0.0.1:0", member: value}
        problem = control.post("/v1/listeners", body).problem(422, "invalid-configuration")
        assert problem["errors"][0]["pointer"] == pointer and "expected" in problem["detail"], (member, value, problem)
    control.get("/v1/listeners/extra").problem(404, "unknown-listener")
    # A size is a number or a text; what takes a list is shown as one, however it was written.
    for size in (8192, "8KiB"):
        body = {"name": "extra", "listen": "ws://127.0.0.1:0", "max-header-size": size, "keep-alive": {"probes": 5}}
        shown = control.request("PUT", "/v1/listeners/extra", body).json
        assert shown["max-header-size"] == size and shown["keep-alive"] == {"probes": 5}
    yaml = b"{name: loose, path: /loose, target: echo, origins: 'https://a.example', max-message-size: 64, compress: true}"
    shown = control.post("/v1/routes", yaml, headers={"Content-Type": "application/yaml"}).expect(201)
    assert (shown["origins"], shown["max-message-size"], shown["compress"]) == (["https://a.example"], 64, True)
    assert control.get("/v1/configuration").expect(200)["routes"][-1]["origins"] == ["https://a.example"]
