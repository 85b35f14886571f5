"""The URL loading system with Kerberos (MIT's krb5kdc) and NTLM against Apache's httpd with mod_auth_gssapi."""

import pytest

from support.kerberos import PASSWORD, REALM, USER, AuthenticatingApache, Realm
from support.loading import load, load_one, socket
from support.tickets import BoundRoom


@pytest.fixture(scope="module")
def realm():
    one = Realm()
    yield one
    one.end()


@pytest.fixture(scope="module")
def server(realm, nginx):
    one = AuthenticatingApache(realm, nginx.content)
    yield one
    one.end()


def test_a_password_obtains_a_ticket(realm, server):
    got = load_one(f"{server.base}/kerberos/file", "--user", f"{USER}@{REALM}:{PASSWORD}", variables=realm.variables())
    assert got.status == 200 and got.headers["x-user"] == f"{USER}@{REALM}"
    assert got.has("challenge Negotiate 0", "response 200", "completed")


def test_the_token_of_a_websocket_is_bound_to_the_servers_certificate(realm, authority, server_certificate, monkeypatch):
    # The server is in this process.
    monkeypatch.setenv("KRB5_KTNAME", str(realm.keytab))
    monkeypatch.setenv("KRB5RCACHENAME", "none:")
    monkeypatch.setenv("KRB5_CONFIG", realm.variables()["KRB5_CONFIG"])
    room = BoundRoom(*server_certificate)
    try:
        got = socket(room.url, "--send", "hello", "--tickets", authority=authority, variables=realm.sign_in())
        assert got.messages == ["hello"] and room.tokens == [(True, True)]
    finally:
        room.end()


def test_a_ticket_is_used_if_the_delegate_chooses_it(realm, server):
    got = load_one(f"{server.base}/kerberos/file", "--tickets", variables=realm.sign_in())
    assert got.status == 200 and got.headers["x-user"] == f"{USER}@{REALM}"


@pytest.mark.parametrize("host, status", [("localhost", 200), (".localhost", 200), ("ocalhost", 401), ("other.example", 401)])
def test_a_ticket_is_sent_only_to_the_configured_hosts(realm, server, host, status):
    got = load_one(f"{server.base}/kerberos/file", "--ticket-host", host, variables=realm.sign_in())
    assert got.status == status


def test_a_ticket_is_not_sent_by_default(realm, server):
    assert load_one(f"{server.base}/kerberos/file", variables=realm.sign_in()).status == 401


def test_a_missing_ticket_fails_the_task(realm, server):
    got = load_one(f"{server.base}/kerberos/file", "--ticket-host", "localhost", variables=realm.variables(), fails=True)
    assert got.code == -1013 and "Negotiate" in got.error["text"] and "localhost" in got.error["failingURL"]


def test_a_wrong_password_is_refused_by_the_realm(realm, server):
    got = load_one(f"{server.base}/kerberos/file", "--user", f"{USER}@{REALM}:wrong", variables=realm.variables(), fails=True)
    assert got.code == -1013 and "Negotiate" in got.error["text"]


def test_a_service_unknown_to_the_realm_fails_the_task(realm, server):
    base = server.base.replace("localhost", "127.0.0.1")
    got = load_one(f"{base}/kerberos/file", "--tickets", variables=realm.sign_in(), fails=True)
    assert got.code == -1013


def test_each_request_carries_a_token_if_the_server_requires_it(realm, server):
    got = load(f"{server.base}/kerberos/file?each", "--times", 5, "--tickets", variables=realm.sign_in())
    assert [one.status for one in got] == [200] * 5
    # After the second refusal on an authenticated connection, tokens are sent preemptively.
    assert server.statuses("/kerberos/file?each", 7) == [401, 200, 401, 200, 200, 200, 200]


def test_a_connection_is_authenticated_once_if_the_server_remembers_it(realm, server):
    got = load(f"{server.base}/bound/file?once", "--times", 5, "--tickets", variables=realm.sign_in())
    assert [one.status for one in got] == [200] * 5
    assert server.statuses("/bound/file?once", 6) == [401, 200, 200, 200, 200, 200]


def test_ntlm_authenticates_a_connection_with_three_requests(realm, server):
    got = load(f"{server.base}/ntlm/file?three", "--times", 3, "--user", f"DOMAIN\\{USER}:{PASSWORD}", "--only", "NTLM",
               variables=realm.variables())
    assert [one.status for one in got] == [200] * 3 and got[0].headers["x-user"] == f"DOMAIN\\{USER}"
    assert server.statuses("/ntlm/file?three", 5) == [401, 401, 200, 200, 200]


def test_ntlm_authenticates_within_negotiate(realm, server):
    got = load_one(f"{server.base}/ntlm/file", "--user", f"DOMAIN\\{USER}:{PASSWORD}", "--only", "Negotiate",
                   variables=realm.variables())
    assert got.status == 200 and got.headers["x-user"] == f"DOMAIN\\{USER}"


def test_concurrent_ntlm_requests_have_a_connection_each(realm, server):
    got = load(f"{server.base}/ntlm/file", "--times", 12, "--together", "--user", f"DOMAIN\\{USER}:{PASSWORD}", "--only", "NTLM",
               variables=realm.variables())
    assert [one.status for one in got] == [200] * 12


def test_a_wrong_password_is_refused_by_the_server(realm, server):
    got = load_one(f"{server.base}/ntlm/file", "--user", f"DOMAIN\\{USER}:wrong", "--only", "NTLM", "--tries", 2,
                   variables=realm.variables(), fails=True)
    asked = [event for event in got.events if event.startswith("challenge NTLM")]
    assert len(asked) == 3 and got.code in (-999, -1012)
