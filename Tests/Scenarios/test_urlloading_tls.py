"""The URL loading system over TLS, against nginx: server trust, client certificates, and reported events."""

import ssl
import subprocess

import pytest

from support.loading import load, load_one
from support.web import Nginx


@pytest.fixture
def web(tmp_path):
    """Starts nginx with a (certificate, key) and further arguments of `Nginx`."""
    started = []

    def start(certificate, **more):
        started.append(Nginx(tmp_path / f"nginx-{len(started)}", certificate, **more))
        return started[-1]

    yield start
    for one in started:
        one.end()


def test_a_server_with_a_trusted_certificate_is_loaded(secure_nginx, authority, tmp_path):
    got = load_one(f"{secure_nginx.base}/file", "--output", tmp_path / "got", authority=authority)
    assert (tmp_path / "got").read_bytes() == secure_nginx.content
    assert got.events == ["challenge ServerTrust 0", "response 200", "data", "metrics", "completed"]
    transaction, = got.transactions
    assert transaction["tls"] == 0x0304 and transaction["cipher"] in (0x1301, 0x1302, 0x1303)
    assert {"lookupStart", "lookupEnd", "connectStart", "secureStart", "secureEnd", "connectEnd"} <= transaction["dates"].keys()


def test_the_maximum_tls_version_is_honored(secure_nginx, authority):
    got = load_one(f"{secure_nginx.base}/text", "--tls12", authority=authority)
    assert got.transactions[0]["tls"] == 0x0303


def refused(web, *words, code, authority=None):
    got = load_one(f"{web.base}/file", *words, fails=True, authority=authority)
    assert got.code == code, got
    assert got.status is None and web.requests() == []
    assert "secureEnd" not in got.transactions[-1]["dates"] and "requestStart" not in got.transactions[-1]["dates"]
    return got


def test_an_unknown_authority_is_refused(web, authority, server_certificate):
    refused(web(server_certificate), code=-1203)


def test_a_self_signed_certificate_is_refused(web, authority):
    refused(web(authority.self_signed("alone")), code=-1203, authority=authority)


@pytest.mark.parametrize("starts,ends,code", [("20200101000000Z", "20210101000000Z", -1201), ("20490101000000Z", "20500101000000Z", -1204)],
                         ids=["expired", "not yet valid"])
def test_a_certificate_outside_of_its_validity_is_refused(web, authority, starts, ends, code):
    refused(web(authority.issue(f"time{code}", starts=starts, ends=ends)), code=code, authority=authority)


def test_a_certificate_for_another_name_is_refused(web, authority):
    got = refused(web(authority.issue("elsewhere", names="DNS:elsewhere.test")), code=-1202, authority=authority)
    assert got.events[0] == "challenge ServerTrust 0"


def test_a_delegate_can_accept_an_untrusted_certificate(web, server_certificate):
    got = load_one(f"{web(server_certificate).base}/text", "--trust-anyone")
    assert got.status == 200


@pytest.mark.parametrize("right", [True, False])
def test_a_delegate_can_pin_a_certificate(web, authority, server_certificate, tmp_path, right):
    pinned = server_certificate if right else authority.issue("pinned")
    (tmp_path / "pin").write_bytes(ssl.PEM_cert_to_DER_cert(pinned[0].read_text()))
    server = web(server_certificate)
    if right:
        assert load_one(f"{server.base}/text", "--pin", tmp_path / "pin").status == 200
    else:
        refused(server, "--pin", tmp_path / "pin", code=-999, authority=authority)


def test_https_to_a_server_without_tls_fails(nginx, authority):
    got = load_one(f"https://localhost:{nginx.port}/file", authority=authority, fails=True)
    assert got.code == -1200, got


# -- client certificates

@pytest.fixture
def asking(web, authority, server_certificate):
    return web(server_certificate, client_authority=authority)


@pytest.mark.parametrize("version", ["--tls12", None], ids=["1.2", "1.3"])
def test_a_client_certificate_is_sent_when_requested(asking, authority, version):
    certificate, key = authority.issue("client")
    words = [version] if version else []
    got = load_one(f"{asking.base}/text", "--certificate", certificate, "--key", key, *words, authority=authority)
    assert got.status == 200 and "challenge ClientCertificate 0" in got.events


def test_a_missing_client_certificate_is_refused_by_the_server(asking, authority):
    got = load_one(f"{asking.base}/text", authority=authority)
    assert got.status == 400 and "challenge ClientCertificate 0" in got.events


def test_an_untrusted_client_certificate_is_refused_by_the_server(asking, authority, tmp_path):
    key, certificate = tmp_path / "stranger.key", tmp_path / "stranger.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", certificate, "-subj", "/CN=stranger"], check=True, capture_output=True)
    got = load_one(f"{asking.base}/text", "--certificate", certificate, "--key", key, authority=authority)
    assert got.status == 400


# -- early data

# Far enough apart for a connection each: nginx closes idle ones after 50 ms.
SEVERAL = ("--times", "6", "--pause", "200")


@pytest.mark.parametrize("http2", [False, True])
def test_requests_of_resumed_sessions_are_sent_as_early_data_and_again_if_too_early(web, authority, server_certificate, http2):
    server = web(server_certificate, early_data=True, http2=http2)
    reports = load(f"{server.base}/later", *SEVERAL, "--early-data", authority=authority)
    assert [report.status for report in reports] == 6 * [200]
    early = [report for report in reports if len(report.transactions) > 1]
    assert all([transaction["status"] for transaction in report.transactions] == [425, 200] for report in early)
    assert sorted(status for *_, status in server.requests("/later", 6 + len(early))) == 6 * [200] + len(early) * [425]
    # Not the first, without a session; of the others those that nginx reads before it has the whole handshake, nearly all.
    assert 1 <= len(early) <= 5
    assert {report.transactions[-1]["networkProtocol"] for report in reports} == {"h2" if http2 else "http/1.1"}


@pytest.mark.parametrize(("option", "permits"), [(None, True), ("--early-data", False)], ids=["not wanted", "not permitted"])
def test_early_data_takes_both_sides(web, authority, server_certificate, option, permits):
    server = web(server_certificate, early_data=permits)
    path = "/later" if permits else "/brief/text"
    reports = load(f"{server.base}{path}", *SEVERAL, *([option] if option else []), authority=authority)
    assert [report.status for report in reports] == 6 * [200]
    assert [status for *_, status in server.requests(path, 6)] == 6 * [200]
