"""The URL loading system over HTTP/2, against nginx: the same transfers as over HTTP/1.1, on one connection."""

import pytest

from support.loading import load, load_one
from support.web import TEXT, Nginx


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


def test_a_range_and_packed_content(web, authority, tmp_path):
    got = load_one(f"{web.base}/file", "--header", "Range:bytes=1000-1999", "--output", tmp_path / "got", authority=authority)
    assert got.status == 206 and (tmp_path / "got").read_bytes() == web.content[1000:2000]
    got = load_one(f"{web.base}/text", "--output", tmp_path / "text", authority=authority)
    assert (tmp_path / "text").read_text() == TEXT and got.transactions[0]["responseBody"] < len(TEXT)


def test_tasks_at_once_share_a_connection(web, authority):
    before = len(web.requests())
    reports = load(f"{web.base}/file", "--times", 20, "--together", authority=authority)
    assert all(report.status == 200 and report.received == len(web.content) for report in reports)
    assert len({connection for connection, *_ in web.requests()[before:]}) == 1


def test_a_redirection_uses_the_connection_again(web, authority):
    got = load_one(f"{web.base}/moved", authority=authority)
    assert [one["reused"] for one in got.transactions] == [False, True]
    assert [one["networkProtocol"] for one in got.transactions] == ["h2", "h2"]


@pytest.mark.parametrize("option", ["--upload", "--stream"])
def test_an_upload_arrives(web, authority, tmp_path, option):
    (tmp_path / "up").write_bytes(web.content)
    name = f"h2{option}"
    got = load_one(f"{web.base}/upload/{name}", option, tmp_path / "up", authority=authority)
    assert got.status in (201, 204) and (web.uploads / name).read_bytes() == web.content


def test_a_password_is_sent_when_the_server_asks(web, authority):
    got = load_one(f"{web.base}/private/file", "--user", "ada:secret", authority=authority)
    assert got.status == 200 and [one["status"] for one in got.transactions] == [401, 200]
