"""The URL loading system with Kerberos (MIT's krb5kdc) and NTLM against Apache's httpd with mod_auth_gssapi, and squid."""

import threading

import pytest
from websockets.sync.server import serve

from support.kerberos import PASSWORD, REALM, USER, AuthenticatingApache, Realm
from support.loading import load, load_one, socket
from support.proxies import Squid
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


def test_a_missing_plug_in_for_ntlm_is_named_with_its_package(realm, server, tmp_path):
    (tmp_path / "mechanisms").touch()
    got = load_one(f"{server.base}/ntlm/file", "--user", f"DOMAIN\\{USER}:{PASSWORD}", "--only", "NTLM", fails=True,
                   variables=realm.variables() | {"GSS_MECH_CONFIG": str(tmp_path / "mechanisms")})
    assert got.code == -1013 and "NTLM" in got.error["text"] and "install the package gss-ntlmssp" in got.error["text"]


@pytest.fixture(scope="module")
def proxy(realm):
    one = Squid(realm)
    yield one
    one.end()


TICKETS = [("--tickets",), ("--ticket-host", "localhost")]


@pytest.mark.parametrize("options", TICKETS)
def test_a_proxy_that_forwards_gets_a_ticket(realm, proxy, nginx, options):
    before = len(proxy.users("GET", 0))
    got = load(f"{nginx.base}/file", "--times", 2, "--proxy", proxy.url, *options, variables=realm.sign_in())
    assert [one.status for one in got] == [200, 200]
    assert all(one["proxied"] for report in got for one in report.transactions)
    # The token of the connection's first request is sent again only if the proxy asks for it.
    requests = proxy.users("GET", before + 3)[before:]
    assert requests[0][0] == 407 and [user for status, user in requests if status == 200] == [f"{USER}@{REALM}"] * 2


@pytest.mark.parametrize("options", TICKETS)
def test_a_proxy_that_tunnels_gets_a_ticket(realm, proxy, secure_nginx, authority, options):
    before = len(proxy.users("CONNECT", 0))
    got = load_one(f"{secure_nginx.base}/file", "--proxy", proxy.url, *options, authority=authority, variables=realm.sign_in())
    assert got.status == 200 and all(one["proxied"] for one in got.transactions)
    assert [user for status, user in proxy.users("CONNECT", before + 2)[before:] if status == 200] == [f"{USER}@{REALM}"]


def test_a_password_obtains_a_ticket_for_a_proxy(realm, proxy, nginx, secure_nginx, authority):
    for base in (nginx.base, secure_nginx.base):
        got = load_one(f"{base}/file", "--proxy", proxy.url, "--user", f"{USER}@{REALM}:{PASSWORD}", authority=authority,
                       variables=realm.variables())
        assert got.status == 200 and got.has("challenge Negotiate 0", "response 200", "completed")


def test_an_upload_through_a_proxy_is_sent_again_with_a_ticket(realm, proxy, nginx):
    got = load_one(f"{nginx.base}/upload/ticket", "--upload", nginx.file, "--proxy", proxy.url, "--tickets",
                   variables=realm.sign_in())
    assert got.status in (201, 204) and (nginx.uploads / "ticket").read_bytes() == nginx.content


def test_a_websocket_gives_the_proxy_a_ticket(realm, proxy):
    with serve(lambda socket: [socket.send(message) for message in socket], "127.0.0.1", 0) as echo:
        threading.Thread(target=echo.serve_forever, daemon=True).start()
        url = f"ws://127.0.0.1:{echo.socket.getsockname()[1]}/"
        got = socket(url, "--send", "hello", "--proxy", proxy.url, "--tickets", variables=realm.sign_in())
        echo.shutdown()
    assert got.messages == ["hello"]


def test_a_ticket_is_not_sent_to_a_proxy_by_default(realm, proxy, nginx, secure_nginx, authority):
    assert load_one(f"{nginx.base}/file", "--proxy", proxy.url, variables=realm.sign_in()).status == 407
    got = load_one(f"{secure_nginx.base}/file", "--proxy", proxy.url, "--ticket-host", "other.example", authority=authority,
                   variables=realm.sign_in(), fails=True)
    assert "407" in got.error["text"]


def test_a_missing_ticket_for_a_proxy_fails_the_task(realm, proxy, nginx, secure_nginx, authority):
    for base in (nginx.base, secure_nginx.base):
        got = load_one(f"{base}/file", "--proxy", proxy.url, "--ticket-host", "localhost", authority=authority,
                       variables=realm.variables(), fails=True)
        assert got.code == -1013 and "Negotiate" in got.error["text"] and "At the proxy localhost" in got.error["text"]
