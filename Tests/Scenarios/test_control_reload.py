"""A reload changes the control plane's tokens, scopes, targets, certificates and limits without a restart."""

import hashlib
import re
import secrets
import signal

import pytest

from support.configured import Configured
from support.control import Control
from support.deadlines import eventually


def token(name, *scopes):
    secret = "slc_" + secrets.token_urlsafe(32)
    return secret, {"name": name, "hash": "sha256:" + hashlib.sha256(secret.encode()).hexdigest(), "scopes": list(scopes)}


def by_signal(one, _):
    start = len(one.gateway.log.all())
    one.gateway.signal(signal.SIGHUP)
    one.gateway.wait_log("reloaded", start=start)


def by_request(one, control):
    control.post("/v1/configuration:reload").expect(200)


@pytest.mark.parametrize("reload", [by_signal, by_request])
def test_a_reload_adds_and_removes_tokens(sluice, tmp_path, reload):
    first, second = token("first", "read", "configure"), token("second", "read", "configure")
    one = Configured(sluice, tmp_path, control={"tokens": [first[1]]})
    old, new = Control(one.control.url, first[0]), Control(one.control.url, second[0])
    assert old.list() == []
    new.get("/v1/connections").problem(401, "unauthorized")
    one.control_settings["tokens"] = [second[1]]
    one.write()
    reload(one, old)
    assert new.list() == []
    old.get("/v1/connections").problem(401, "unauthorized")


def test_a_reload_removes_a_scope(sluice, tmp_path, listener):
    secret, entry = token("ops", "read", "operate", "configure")
    one = Configured(sluice, tmp_path, control={"tokens": [entry]})
    control = Control(one.control.url, secret)
    name = control.open(listener.url("tcp"))
    one.control_settings["tokens"] = [{**entry, "scopes": ["read", "configure"]}]
    one.write()
    by_request(one, control)
    control.request("DELETE", f"/v1/connections/{name}").problem(403, "insufficient-scope")
    assert control.show(name)["state"] == "open"


def test_a_reload_changes_targets_and_hosts(sluice, tmp_path, listener):
    one = Configured(sluice, tmp_path, control={"targets": ["127.0.0.1"]})
    control = one.control
    name = control.open(listener.url("tcp"))
    control.post("/v1/transfers", {"url": "http://10.255.255.1/"}).problem(403, "target-not-allowed")
    control.request("GET", "/v1/connections", headers={"Host": "sluice.example"}).problem(421, "unknown-host")
    one.control_settings.update(targets=["192.0.2.0/24"], hosts=["sluice.example"])
    one.write()
    by_request(one, control)
    control.request("GET", "/v1/connections", headers={"Host": "sluice.example"}).expect(200)
    control.post("/v1/connections", {"url": listener.url("tcp")}).problem(403, "target-not-allowed")
    # An address is refused at once, a name once it is resolved.
    control.post("/v1/transfers", {"url": f"http://127.0.0.1:{listener.port}/"}).problem(403, "target-not-allowed")
    transfer = control.post("/v1/transfers", {"url": f"http://localhost:{listener.port}/"}).expect(201)["id"]
    failed = eventually(lambda: next((one for one in [control.get(f"/v1/transfers/{transfer}").json] if one["state"] == "failed"), None), "a refusal")
    assert failed["error"]["code"] == "target-not-allowed"
    # The open connection stays.
    assert control.show(name)["state"] == "open"


def test_a_reload_changes_clients_and_certificates(sluice, tmp_path, authority):
    leaves = {name: authority.issue(name) for name in ("ops", "other", "localhost")}
    second = authority.issue("second")
    tls = {"certificate": str(leaves["localhost"][0]), "key": str(leaves["localhost"][1]), "client-ca": str(authority.certificate)}
    client = {"name": "one", "subject": "CN=ops", "scopes": ["read", "configure"]}
    one = Configured(sluice, tmp_path, control={"address": "https://127.0.0.1:0", "tls": tls, "clients": [client]})

    def who(name):
        return Control(one.control.url, None, authority.client_context(leaves[name]))

    def shown(name):
        connection = who(name).connection()
        connection.connect()
        with connection.sock as sock:
            return sock.getpeercert(binary_form=True)

    assert who("ops").list() == []
    who("other").get("/v1/connections").problem(401, "unauthorized")
    before = shown("ops")
    tls.update(certificate=str(second[0]), key=str(second[1]))
    client["subject"] = "CN=other"
    one.write()
    by_request(one, who("ops"))
    assert who("other").list() == []
    who("ops").get("/v1/connections").problem(401, "unauthorized")
    assert shown("other") != before


def test_a_reload_changes_limits(sluice, tmp_path):
    one = Configured(sluice, tmp_path)
    for _ in range(20):
        one.control.get("/v1/connections").expect(200)
    one.control_settings["request-rate"] = "1/s"
    one.write()
    by_signal(one, None)
    eventually(lambda: one.control.get("/v1/connections").status == 429, "the new rate")


def test_a_reload_reports_changes_that_need_a_restart(sluice, tmp_path):
    secret, entry = token("ops", "read", "configure")
    one = Configured(sluice, tmp_path, control={"tokens": [entry]})
    control = Control(one.control.url, secret)
    one.control_settings.update({"address": "unix://" + str(tmp_path / "control.sock"), "request-rate": "1000/s"})
    del one.control_settings["tokens"]
    one.write()
    changes = control.post("/v1/configuration:reload").expect(200)["changes"]
    restarts = {member["pointer"]: member.get("needsRestart", False) for change in changes for member in change["members"]}
    assert restarts == {"/control/address": True, "/control/request-rate": False, "/control/tokens": False}
    one.gateway.wait_log("keeps its address until the next start")
    # Access does not widen: the new address would need no token, the current one still does.
    control.by(None).get("/v1/connections").problem(401, "unauthorized")
    assert control.list() == []


@pytest.mark.parametrize("reload", [by_signal, by_request])
def test_a_reload_logs_which_settings_change_at_the_next_start(sluice, tmp_path, reload):
    one = Configured(sluice, tmp_path, control={"closed-connections": 10})
    one.control_settings.update({"closed-connections": 20, "request-rate": "1000/s"})
    one.write(**{"loops": 1, "log-level": "debug"})
    reload(one, one.control)
    line = one.gateway.wait_log("changed at the next start only: ")
    named = re.search('only: ([^"]*)', line).group(1).split(", ")
    assert sorted(named) == ["control.closed-connections", "log-level", "loops"]
    # The next reload changes nothing, and says nothing.
    start = len(one.gateway.log.all())
    reload(one, one.control)
    assert not [text for text in one.gateway.log.all()[start:] if "next start" in text]
    # Nor one that takes all of them back: the gateway runs with these values.
    one.control_settings["closed-connections"] = 10
    one.write()
    reload(one, one.control)
    assert not [text for text in one.gateway.log.all()[start:] if "next start" in text]


def test_a_reload_that_fails_changes_nothing(sluice, tmp_path, authority):
    certificate, key = authority.issue("localhost")
    secret, entry = token("ops", "read", "configure")
    tls = {"certificate": str(certificate), "key": str(key)}
    one = Configured(sluice, tmp_path, control={"address": "https://127.0.0.1:0", "tls": tls, "tokens": [entry]})
    control = Control(one.control.url, secret, authority.client_context(None))
    broken = tmp_path / "broken.pem"
    broken.write_text("nonsense")
    tls["certificate"] = str(broken)
    other = token("other", "read")
    one.control_settings["tokens"] = [other[1]]
    one.write()
    assert control.post("/v1/configuration:reload").status in (409, 422)
    assert control.list() == []
    control.by(other[0]).get("/v1/connections").problem(401, "unauthorized")
