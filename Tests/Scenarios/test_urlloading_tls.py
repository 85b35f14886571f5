"""The URL loading system over TLS, against nginx: whom it trusts, what it shows, and what it tells."""

import ssl
import subprocess

import pytest

from support.loading import load_one
from support.web import Nginx


@pytest.fixture
def web(tmp_path):
    """Starts nginx with a certificate; (certificate, key), then what Nginx takes."""
    started = []

    def start(certificate, **more):
        started.append(Nginx(tmp_path / f"nginx-{len(started)}", certificate, **more))
        return started[-1]

    yield start
    for one in started:
        one.end()


def test_a_server_that_a_known_authority_vouches_for(secure_nginx, authority, tmp_path):
    got = load_one(f"{secure_nginx.base}/file", "--output", tmp_path / "got", authority=authority)
    assert (tmp_path / "got").read_bytes() == secure_nginx.content
    assert got.events == ["challenge ServerTrust 0", "response 200", "data", "metrics", "completed"]
    transaction, = got.transactions
    assert transaction["tls"] == 0x0304 and transaction["cipher"] in (0x1301, 0x1302, 0x1303)
    assert {"lookupStart", "lookupEnd", "connectStart", "secureStart", "secureEnd", "connectEnd"} <= transaction["dates"].keys()


def test_an_older_version_is_spoken_where_no_newer_one_is_allowed(secure_nginx, authority):
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


def test_a_certificate_that_vouches_for_itself_is_refused(web, authority):
    refused(web(authority.self_signed("alone")), code=-1203, authority=authority)


@pytest.mark.parametrize("starts,ends,code", [("20200101000000Z", "20210101000000Z", -1201), ("20490101000000Z", "20500101000000Z", -1204)],
                         ids=["expired", "not yet valid"])
def test_a_certificate_of_another_time_is_refused(web, authority, starts, ends, code):
    refused(web(authority.issue(f"time{code}", starts=starts, ends=ends)), code=code, authority=authority)


def test_a_certificate_for_another_name_is_refused(web, authority):
    got = refused(web(authority.issue("elsewhere", names="DNS:elsewhere.test")), code=-1202, authority=authority)
    assert got.events[0] == "challenge ServerTrust 0"


def test_whom_nobody_vouches_for_can_be_accepted(web, server_certificate):
    got = load_one(f"{web(server_certificate).base}/text", "--trust-anyone")
    assert got.status == 200


@pytest.mark.parametrize("right", [True, False])
def test_a_certificate_can_be_pinned(web, authority, server_certificate, tmp_path, right):
    pinned = server_certificate if right else authority.issue("pinned")
    (tmp_path / "pin").write_bytes(ssl.PEM_cert_to_DER_cert(pinned[0].read_text()))
    server = web(server_certificate)
    if right:
        assert load_one(f"{server.base}/text", "--pin", tmp_path / "pin").status == 200
    else:
        refused(server, "--pin", tmp_path / "pin", code=-999, authority=authority)


def test_a_server_without_tls_is_no_server_for_https(nginx, authority):
    got = load_one(f"https://localhost:{nginx.port}/file", authority=authority, fails=True)
    assert got.code == -1200, got


# -- client certificates

@pytest.fixture
def asking(web, authority, server_certificate):
    return web(server_certificate, client_authority=authority)


@pytest.mark.parametrize("version", ["--tls12", None], ids=["1.2", "1.3"])
def test_a_certificate_is_shown_to_a_server_that_asks(asking, authority, version):
    certificate, key = authority.issue("client")
    words = [version] if version else []
    got = load_one(f"{asking.base}/text", "--certificate", certificate, "--key", key, *words, authority=authority)
    assert got.status == 200 and "challenge ClientCertificate 0" in got.events


def test_without_a_certificate_the_server_decides(asking, authority):
    got = load_one(f"{asking.base}/text", authority=authority)
    assert got.status == 400 and "challenge ClientCertificate 0" in got.events


def test_a_certificate_of_a_stranger_is_the_servers_to_refuse(asking, authority, tmp_path):
    key, certificate = tmp_path / "stranger.key", tmp_path / "stranger.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", certificate, "-subj", "/CN=stranger"], check=True, capture_output=True)
    got = load_one(f"{asking.base}/text", "--certificate", certificate, "--key", key, authority=authority)
    assert got.status == 400
