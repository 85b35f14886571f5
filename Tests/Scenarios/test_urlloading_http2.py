"""The URL loading system over HTTP/2, against nginx, Apache's httpd and a server in Python."""

import pytest

from support.loading import load, load_one
from support.proxies import PASSWORD, USER, Tinyproxy
from support.web import TEXT, Apache, Hypercorn, Nginx


@pytest.fixture(scope="module")
def web(tmp_path_factory, server_certificate):
    one = Nginx(tmp_path_factory.mktemp("nginx"), server_certificate, http2=True)
    yield one
    one.end()


def test_a_file_is_loaded(web, authority, tmp_path):
    got = load_one(f"{web.base}/file", "--output", tmp_path / "got", authority=authority)
    assert (tmp_path / "got").read_bytes() == web.content
    transaction, = got.transactions
    assert transaction["networkProtocol"] == "h2" and transaction["responseBody"] == len(web.content)


def test_ranges_and_compressed_content_are_loaded(web, authority, tmp_path):
    got = load_one(f"{web.base}/file", "--header", "Range:bytes=1000-1999", "--output", tmp_path / "got", authority=authority)
    assert got.status == 206 and (tmp_path / "got").read_bytes() == web.content[1000:2000]
    got = load_one(f"{web.base}/text", "--output", tmp_path / "text", authority=authority)
    assert (tmp_path / "text").read_text() == TEXT and got.transactions[0]["responseBody"] < len(TEXT)


def test_a_tunnel_whose_proxy_asks_for_a_password_leads_to_http2(web, authority, tmp_path):
    proxy = Tinyproxy(tmp_path, asks=True)
    try:
        got = load_one(f"{web.base}/file", "--proxy", proxy.base, "--user", f"{USER}:{PASSWORD}", "--output", tmp_path / "got",
                       authority=authority)
    finally:
        proxy.end()
    transaction, = got.transactions
    assert transaction["networkProtocol"] == "h2" and transaction["proxied"]
    assert (tmp_path / "got").read_bytes() == web.content
    assert any(event.startswith("challenge HTTPBasic") for event in got.events)


def test_concurrent_tasks_share_a_connection(web, authority):
    reports = load(f"{web.base}/file?together", "--times", 20, "--together", authority=authority)
    assert all(report.status == 200 and report.received == len(web.content) for report in reports)
    assert len({connection for connection, *_ in web.requests("/file?together", 20)}) == 1


def test_a_redirection_reuses_the_connection(web, authority):
    got = load_one(f"{web.base}/moved", authority=authority)
    assert [one["reused"] for one in got.transactions] == [False, True]
    assert [one["networkProtocol"] for one in got.transactions] == ["h2", "h2"]


@pytest.mark.parametrize(("requests_per_connection", "streams"), [(10, 128), (7, 3), (1, 1)])
def test_all_tasks_are_answered_over_connections_that_end_early(
        server_certificate, authority, tmp_path, requests_per_connection, streams):
    nginx = Nginx(
        tmp_path, server_certificate, content=b"short", http2=True, requests_per_connection=requests_per_connection,
        streams=streams)
    try:
        reports = load(f"{nginx.base}/file?many", "--times", 120, "--together", authority=authority)
        assert [report.status for report in reports] == [200] * 120
        assert len(nginx.requests("/file?many", 120)) == 120
    finally:
        nginx.end()


@pytest.mark.parametrize("option", ["--upload", "--stream"])
def test_a_file_is_uploaded(web, authority, tmp_path, option):
    (tmp_path / "up").write_bytes(web.content)
    name = f"h2{option}"
    got = load_one(f"{web.base}/upload/{name}", option, tmp_path / "up", authority=authority)
    assert got.status in (201, 204) and (web.uploads / name).read_bytes() == web.content


def test_a_password_is_sent_after_a_challenge(web, authority):
    got = load_one(f"{web.base}/private/file", "--user", "ada:secret", authority=authority)
    assert got.status == 200 and [one["status"] for one in got.transactions] == [401, 200]


# -- Apache's httpd

@pytest.fixture(scope="module")
def httpd(web, server_certificate):
    one = Apache(web.content, server_certificate)
    yield one
    one.end()


def speaks_http2(report):
    return {transaction["networkProtocol"] for transaction in report.transactions} == {"h2"}


def test_digest_authenticates_with_httpd(httpd, web, authority, tmp_path):
    got = load_one(f"{httpd.base}/private/file", "--user", "ada:secret", "--output", tmp_path / "got", authority=authority)
    assert got.has("challenge HTTPDigest 'The attic' 0", "response 200") and speaks_http2(got)
    assert (tmp_path / "got").read_bytes() == web.content


@pytest.mark.parametrize("option", ["--upload", "--stream"])
def test_a_file_is_put_to_httpd_and_deleted(httpd, web, authority, option):
    place = f"{httpd.base}/dav/h2{option}"
    got = load_one(place, option, web.file, authority=authority)
    assert got.status == 201 and speaks_http2(got) and (httpd.uploads / f"h2{option}").read_bytes() == web.content
    assert load_one(place, "--method", "DELETE", authority=authority).status == 204


# -- a server in Python

@pytest.fixture(scope="module")
def hypercorn(web, tmp_path_factory, server_certificate):
    one = Hypercorn(tmp_path_factory.mktemp("hypercorn"), web.content, server_certificate)
    yield one
    one.end()


@pytest.mark.parametrize("path", ["file", "pieces"])
def test_hypercorn_serves_concurrent_loads(hypercorn, web, authority, path):
    reports = load(f"{hypercorn.base}/{path}", "--times", 10, "--together", authority=authority)
    assert all(one.received == len(web.content) and speaks_http2(one) for one in reports)


def test_hypercorn_gets_no_more_streams_than_it_allows(server_certificate, authority, tmp_path):
    """It ends a connection with more."""
    hypercorn = Hypercorn(tmp_path, b"short", server_certificate, streams=10)
    try:
        reports = load(f"{hypercorn.base}/file", "--times", 60, "--together", authority=authority)
        assert [report.status for report in reports] == [200] * 60
    finally:
        hypercorn.end()


@pytest.mark.parametrize("option", ["--upload", "--stream"])
def test_hypercorn_echoes_a_body(hypercorn, web, authority, tmp_path, option):
    got = load_one(f"{hypercorn.base}/echo", option, web.file, "--output", tmp_path / "got", authority=authority)
    assert speaks_http2(got) and (tmp_path / "got").read_bytes() == web.content
