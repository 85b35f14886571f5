"""The URL loading system against nginx: transfers, connections, and the reported events and metrics."""

import hashlib

import pytest

from support.deadlines import sized
from support.loading import load, load_one, run
from support.programs import refusing_port
from support.web import TEXT, Nginx


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -- content

def test_a_file_is_loaded(nginx, tmp_path):
    got = load_one(f"{nginx.base}/file", "--output", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == nginx.content
    assert got.status == 200 and got.events == ["response 200", "data", "metrics", "completed"]
    size = len(nginx.content)
    assert (got.received, got.countReceived, got.expectedToReceive, got.fraction) == (size, size, size, 1)
    transaction, = got.transactions
    assert transaction["responseBody"] == transaction["responseDecoded"] == size
    assert (transaction["remoteAddress"], transaction["remotePort"]) == ("127.0.0.1", nginx.port)
    assert transaction["networkProtocol"] == "http/1.1" and transaction["fetchType"] == 1 and "tls" not in transaction


def test_a_head_request_has_no_content(nginx):
    got = load_one(f"{nginx.base}/file", "--method", "HEAD")
    assert got.events == ["response 200", "metrics", "completed"] and got.received == 0
    assert got.headers["content-length"] == str(len(nginx.content))


def test_compressed_content_is_decompressed(nginx, tmp_path):
    got = load_one(f"{nginx.base}/text", "--output", tmp_path / "got")
    assert (tmp_path / "got").read_text() == TEXT
    transaction, = got.transactions
    assert transaction["responseDecoded"] == len(TEXT) and 0 < transaction["responseBody"] < len(TEXT) / 4
    # The task counts compressed bytes without the framing of the chunks.
    assert got.expectedToReceive == -1 and got.received == len(TEXT) and 0 < got.countReceived < transaction["responseBody"]


def test_a_404_is_no_error(nginx):
    got = load_one(f"{nginx.base}/nothing")
    assert got.status == 404 and got.events == ["response 404", "data", "metrics", "completed"]


@pytest.mark.parametrize("first,last", [(0, 0), (1000, 1999), (4_000_000, None)])
def test_a_range_is_loaded(nginx, tmp_path, first, last):
    field = f"Range:bytes={first}-{'' if last is None else last}"
    got = load_one(f"{nginx.base}/file", "--header", field, "--output", tmp_path / "got")
    assert got.status == 206
    assert (tmp_path / "got").read_bytes() == nginx.content[first:None if last is None else last + 1]


def test_a_range_beyond_four_gibibytes_is_loaded(nginx, tmp_path):
    first = Nginx.SPARSE_SIZE - len(Nginx.MARK) - 1000
    got = load_one(f"{nginx.base}/sparse", "--header", f"Range:bytes={first}-", "--output", tmp_path / "got")
    assert got.headers["content-range"] == f"bytes {first}-{Nginx.SPARSE_SIZE - 1}/{Nginx.SPARSE_SIZE}"
    assert (tmp_path / "got").read_bytes() == bytes(1000) + Nginx.MARK


def test_a_length_beyond_four_gibibytes_is_reported(nginx):
    got = load_one(f"{nginx.base}/sparse", "--cancel-after", 1, fails=True)
    assert got.code == -999 and got.expectedToReceive == Nginx.SPARSE_SIZE and got.received < 64 << 20


@pytest.mark.timeout(900)
def test_a_large_download_is_complete(nginx, tmp_path):
    size = sized(1 << 28, Nginx.SPARSE_SIZE)
    first = Nginx.SPARSE_SIZE - size
    got = load_one(f"{nginx.base}/sparse", "--header", f"Range:bytes={first}-", "--download", tmp_path / "got", within=800)
    assert got.received == size == (tmp_path / "got").stat().st_size
    with open(tmp_path / "got", "rb") as file:
        file.seek(-len(Nginx.MARK), 2)
        assert file.read() == Nginx.MARK


# -- redirections and response dispositions

def test_a_redirection_is_followed(nginx, tmp_path):
    got = load_one(f"{nginx.base}/moved", "--output", tmp_path / "got")
    assert got.events == ["redirection 302 to GET /file", "response 200", "data", "metrics", "completed"]
    assert (tmp_path / "got").read_bytes() == nginx.content
    assert (got.url, got.currentURL) == (f"{nginx.base}/moved", f"{nginx.base}/file")
    assert got.redirects == 1 and [one["status"] for one in got.transactions] == [302, 200]
    assert [one["reused"] for one in got.transactions] == [False, True]


def test_a_redirection_that_is_not_followed_is_the_response(nginx):
    got = load_one(f"{nginx.base}/moved", "--stay-here")
    assert got.status == 302 and got.redirects == 0 and got.has("redirection 302 to GET /file", "response 302", "data", "completed")


def test_a_response_can_be_cancelled(nginx):
    got = load_one(f"{nginx.base}/slow/file", "--disposition", "cancel", fails=True)
    assert got.events == ["response 200", "metrics", "completed"] and got.code == -999 and got.received == 0


def test_a_response_can_become_a_download(nginx, tmp_path):
    got = load_one(f"{nginx.base}/file", "--disposition", "download", "--output", tmp_path / "got")
    assert got.events == ["response 200", "became a download", "wrote", "downloaded", "metrics", "completed"]
    assert (tmp_path / "got").read_bytes() == nginx.content


# -- connections

def connections(nginx, target, count):
    return {connection for connection, *_ in nginx.requests(target, count)}


def test_consecutive_loads_share_a_connection(nginx):
    got = load(f"{nginx.base}/file?row", "--times", 20)
    assert [one.transactions[0]["reused"] for one in got] == [False] + [True] * 19
    assert len(connections(nginx, "/file?row", 20)) == 1


@pytest.mark.parametrize("limit", [1, 3, 6])
def test_the_number_of_connections_is_limited(nginx, limit):
    path = f"/text?limit-{limit}"
    got = load(f"{nginx.base}{path}", "--times", 24, "--together", "--connections", limit)
    assert len(got) == 24 and all(one.received == len(TEXT) for one in got)
    assert len(connections(nginx, path, 24)) <= limit


def test_loads_survive_idle_connections_that_the_server_closes(nginx):
    """The server closes connections after 50 ms of silence: loads start just before, during and just after it."""
    for pause in (40, 48, 50, 52, 60):
        got = load(f"{nginx.base}/brief/text", "--times", sized(10, 100), "--pause", pause, within=120)
        assert all(one.status == 200 and one.received == len(TEXT) for one in got)


# -- uploads

@pytest.mark.parametrize("how", ["--upload", "--stream"])
def test_a_file_is_uploaded_with_put(nginx, how):
    name = f"put{how}"
    got = load_one(f"{nginx.base}/upload/{name}", how, nginx.file)
    assert got.status in (201, 204) and (nginx.uploads / name).read_bytes() == nginx.content
    size = len(nginx.content)
    assert got.countSent == size and got.expectedToSend == (size if how == "--upload" else -1)
    assert got.has(*(["body wanted"] if how == "--stream" else []), "sent", f"response {got.status}")
    transaction, = got.transactions
    assert transaction["requestContent"] == size
    # A stream is sent in chunks, whose framing counts on the wire.
    assert (transaction["requestBody"] == size) == (how == "--upload")


def test_a_file_is_deleted(nginx):
    (nginx.uploads / "old").write_bytes(b"old")
    assert load_one(f"{nginx.base}/upload/old", "--method", "DELETE").status == 204
    assert not (nginx.uploads / "old").exists()


def test_a_missing_file_cannot_be_uploaded(nginx, tmp_path):
    got = load_one(f"{nginx.base}/upload/none", "--upload", tmp_path / "none", fails=True)
    assert got.code == -1100 and not (nginx.uploads / "none").exists()


# -- resumed downloads

def interrupt_download(nginx, tmp_path, after):
    got = load_one(f"{nginx.base}/slow/file", "--download", tmp_path / "got", "--cancel-after", after, "--resume-data",
                   tmp_path / "resume", fails=True, home=tmp_path)
    assert got.code == -999 and got.has("wrote", "resume data", "completed")
    assert not (tmp_path / "got").exists()


def test_a_download_is_resumed_in_another_process(nginx, tmp_path):
    interrupt_download(nginx, tmp_path, after=1 << 20)
    got = load_one(f"{nginx.base}/slow/file", "--download", tmp_path / "got", "--resume-data", tmp_path / "resume", home=tmp_path)
    size = len(nginx.content)
    resumed, = [event for event in got.events if event.startswith("resumed at ")]
    offset = int(resumed.split()[2])
    assert offset >= 1 << 20 and resumed == f"resumed at {offset} of {size}" and got.status == 206
    assert (tmp_path / "got").read_bytes() == nginx.content
    assert got.transactions[-1]["responseBody"] == size - offset


def test_a_download_of_a_changed_file_restarts(tmp_path):
    server = Nginx(tmp_path / "nginx")
    try:
        interrupt_download(server, tmp_path, after=1 << 20)
        changed = server.content[::-1]
        server.file.unlink()
        server.file.write_bytes(changed + b"!")
        got = load_one(f"{server.base}/slow/file", "--download", tmp_path / "got", "--resume-data", tmp_path / "resume", home=tmp_path)
        assert got.status == 200 and any(event.startswith("resumed at 0 ") for event in got.events)
        assert (tmp_path / "got").read_bytes() == changed + b"!"
    finally:
        server.end()


def test_invalid_resume_data_is_refused(nginx, tmp_path):
    (tmp_path / "resume").write_bytes(b"nonsense")
    ended = run("Loader", "load", f"{nginx.base}/file", "--download", tmp_path / "got", "--resume-data", tmp_path / "resume")
    assert ended.code == 1 and '"code":-1002' in ended.output, ended.output


# -- time

def test_a_slow_transfer_does_not_hit_the_idle_timeout(nginx):
    got = load_one(f"{nginx.base}/slow/file", "--idle-timeout", 1.2)
    assert got.received == len(nginx.content)


def test_a_transfer_ends_at_the_resource_timeout(nginx):
    got = load_one(f"{nginx.base}/slow/file", "--resource-timeout", 0.5, fails=True)
    assert got.code == -1001 and got.received < len(nginx.content)


def test_a_silent_server_hits_the_idle_timeout(listener):
    got = load_one(f"http://127.0.0.1:{listener.port}/", "--idle-timeout", 0.3, fails=True)
    assert got.code == -1001 and "responseStart" not in got.transactions[-1]["dates"]


def test_a_refused_connection_fails_the_task():
    with refusing_port() as port:
        got = load_one(f"http://127.0.0.1:{port}/", fails=True)
    assert got.code == -1004 and got.transactions[-1]["dates"].keys() == {"fetchStart", "connectStart"}


# -- Basic

def test_basic_authenticates_with_the_right_password(nginx):
    got = load(f"{nginx.base}/private/file", "--times", 2, "--user", "ada:secret")
    assert got[0].has("challenge HTTPBasic 'The cellar' 0", "response 200", "completed")
    assert [one["status"] for one in got[0].transactions] == [401, 200]
    # A password that was accepted is sent preemptively.
    assert got[1].events[0] == "response 200" and len(got[1].transactions) == 1


def test_basic_challenges_a_wrong_password_again(nginx):
    got = load_one(f"{nginx.base}/private/file", "--user", "ada:wrong", "--tries", 3, fails=True)
    asked = [event for event in got.events if event.startswith("challenge")]
    assert asked == [f"challenge HTTPBasic 'The cellar' {number}" for number in range(4)] and got.code in (-999, -1012)


def test_without_a_password_the_401_is_the_response(nginx):
    got = load_one(f"{nginx.base}/private/file")
    assert got.status == 401 and got.received > 0


# -- memory

def peak(*words):
    """Peak resident memory of a load, in bytes."""
    import os
    import subprocess

    from support.loading import FOLDER
    process = subprocess.Popen([FOLDER / "Loader", "load", *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss << 10


@pytest.mark.timeout(600)
def test_memory_is_independent_of_the_file_size(nginx, tmp_path):
    small = peak(f"{nginx.base}/file", "--download", tmp_path / "small")
    first = Nginx.SPARSE_SIZE - sized(1 << 28, 4 << 30)
    large = peak(f"{nginx.base}/sparse", "--header", f"Range:bytes={first}-", "--download", tmp_path / "large")
    assert large - small < 16 << 20
    upload = peak(f"{nginx.base}/upload/large", "--upload", tmp_path / "large")
    assert upload - small < 16 << 20
    assert digest(nginx.uploads / "large") == digest(tmp_path / "large")


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
def test_the_proxy_of_the_environment_is_used(nginx, variable):
    for words in ({"no_proxy": "127.0.0.1,localhost"}, {"no_proxy": "*"}):
        assert load_one(f"{nginx.base}/file", variables={variable: "http://127.0.0.1:9", **words}).status == 200
    # Loopback is no exception by itself.
    got = load_one(f"{nginx.base}/file", variables={variable.upper(): "http://127.0.0.1:9"}, fails=True)
    assert got.code == -1004 and "through the proxy" in got.error["text"], got
    got = load_one("http://behind.proxy.invalid/", variables={variable: "http://127.0.0.1:9"}, fails=True)
    assert got.code == -1004 and "through the proxy" in got.error["text"], got
    got = load_one("http://behind.proxy.invalid/", variables={variable: "ftp://127.0.0.1:9"}, fails=True)
    assert got.code == -1002 and variable in got.error["text"], got
