"""HTTP transfers as resources of the REST interface, against real servers."""

import base64
import hashlib
import http.server
import os
import socket
import stat
import tempfile
import threading

import pytest

from support.configured import Configured
from support.deadlines import eventually, sized
from support.events import Events
from support.programs import refusing_port
from support.web import Nginx

SIZE = sized(48 << 20, 2 << 30)
RATE = sized(24 << 20, 512 << 20)


@pytest.fixture
def folder(tmp_path):
    one = tmp_path / "files"
    one.mkdir()
    return one


@pytest.fixture
def serve(sluice, tmp_path, folder):
    """The control plane of a gateway that may read and write files in `folder`."""

    def start(**transfers):
        return Configured(sluice, tmp_path, control={"transfers": {"directories": [str(folder)], **transfers}}).control

    return start


@pytest.fixture
def control(serve):
    return serve()


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """nginx with one big file, served slowly enough to be suspended: (nginx, digest)."""
    one = Nginx(tmp_path_factory.mktemp("big"), content=b"small", slow_rate=RATE)
    digest, piece = hashlib.sha256(), os.urandom(1 << 20)
    with open(one.files / "big", "wb") as file:
        for number in range(SIZE >> 20):
            block = number.to_bytes(8, "big") + piece[8:]
            digest.update(block)
            file.write(block)
    yield one, digest.hexdigest()
    one.end()


def make(control, url, status=201, **more):
    answer = control.post("/v1/transfers", {"url": url, **more})
    body = answer.expect(status)
    assert answer.headers["location"] == f"/v1/transfers/{body['id']}"
    return body["id"]


def show(control, name):
    return control.get(f"/v1/transfers/{name}").expect(200)


def verb(control, name, verb, body=None, **more):
    return control.post(f"/v1/transfers/{name}:{verb}", body, **more)


def reaches(control, name, state, within=20.0):
    def look():
        one = show(control, name)
        assert one["state"] == state or one["state"] not in ("finished", "failed", "cancelled"), one
        return one if one["state"] == state else None

    return eventually(look, f"transfer {name} is {state}", within)


def content(control, name, **headers):
    return control.request("GET", f"/v1/transfers/{name}/content", headers=headers, within=120)


# -- downloads

def test_a_big_download_is_suspended_cancelled_and_resumed(control, big, folder):
    nginx, digest = big
    target = folder / "got"
    name = make(control, f"{nginx.base}/slow/big", destination=str(target), description="the big one", labels={"of": "test"})

    def written():
        return show(control, name).get("writtenBytes", 0)

    eventually(lambda: written() > SIZE // 8, "an eighth is there", within=120)
    assert verb(control, name, "suspend").expect(200)["state"] == "suspended"
    assert verb(control, name, "suspend").expect(200)["state"] == "suspended"
    held = show(control, name)
    assert held["state"] == "suspended" and held["expectedWriteBytes"] == SIZE and 0 < held["progress"] < 1
    last = [-1]

    def is_unchanged():
        before, last[0] = last[0], written()
        return before == last[0]

    eventually(is_unchanged, "nothing more is written")
    assert written() < SIZE and not target.exists()
    assert verb(control, name, "resume").expect(200)["state"] == "running"
    eventually(lambda: written() > SIZE // 4, "a quarter is there", within=120)
    cancelled = verb(control, name, "cancel").expect(200)
    assert cancelled["state"] == "cancelled" and cancelled["canResume"] and not target.exists()
    # The second attempt continues with the bytes that the first one wrote.
    restarted = verb(control, name, "restart").expect(200)
    assert restarted["attempt"] == 2
    done = reaches(control, name, "finished", within=300)
    assert SIZE // 4 < done["resumedAtBytes"] < SIZE and done["writtenBytes"] == done["contentBytes"] == SIZE
    assert done["response"]["status"] == 206 and done["progress"] == 1 and not done["canResume"]
    assert done["metrics"]["transactions"][0]["remoteAddress"] == f"127.0.0.1:{nginx.port}"
    with open(target, "rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == digest
    assert sorted(os.listdir(folder)) == ["got"]
    part = content(control, name, Range=f"bytes={SIZE - 10}-")
    assert part.status == 206 and part.headers["content-range"] == f"bytes {SIZE - 10}-{SIZE - 1}/{SIZE}"
    assert part.body == target.read_bytes()[-10:] if SIZE < 1 << 30 else len(part.body) == 10


def test_a_download_without_resume_data_restarts_from_the_beginning(control, nginx, folder):
    name = make(control, f"{nginx.base}/slow/file", destination=str(folder / "got"))
    eventually(lambda: show(control, name).get("writtenBytes"), "something is there")
    assert not verb(control, name, "cancel", {"keepResumeData": False}).expect(200)["canResume"]
    verb(control, name, "restart").problem(409, "no-resume-data")
    verb(control, name, "restart", {"fromBeginning": True}).expect(200)
    reaches(control, name, "finished")
    assert (folder / "got").read_bytes() == nginx.content


def test_an_existing_file_is_replaced_only_with_overwrite(control, nginx, folder):
    target = folder / "got"
    target.write_text("old")
    control.post("/v1/transfers", {"url": f"{nginx.base}/file", "destination": str(target)}).problem(409, "file-exists")
    name = make(control, f"{nginx.base}/file", destination=str(target), overwrite=True)
    reaches(control, name, "finished")
    assert target.read_bytes() == nginx.content and content(control, name).body == nginx.content
    target.unlink()
    content(control, name).problem(410, "file-gone")


def test_a_file_created_meanwhile_is_not_replaced(control, nginx, folder):
    name = make(control, f"{nginx.base}/file", destination=str(folder / "got"), start=False)
    (folder / "got").write_text("another file")
    verb(control, name, "resume").expect(200)
    assert reaches(control, name, "failed")["error"]["code"] == "file-unusable"
    assert (folder / "got").read_text() == "another file" and os.listdir(folder) == ["got"]


# -- content in memory

def test_content_in_memory_is_served_whole_and_in_ranges(control, nginx):
    name = make(control, f"{nginx.base}/file")
    done = reaches(control, name, "finished")
    assert (done["kind"], done["method"], done["receivedBytes"], done["contentBytes"]) == ("data", "GET", len(nginx.content), len(nginx.content))
    assert done["response"]["status"] == 200 and "etag" in {header["name"].lower() for header in done["response"]["headers"]}
    whole = content(control, name)
    assert whole.status == 200 and whole.body == nginx.content
    assert whole.headers["content-type"] == "application/octet-stream" and whole.headers["x-content-type-options"] == "nosniff"
    for range_, part in (("bytes=0-9", slice(0, 10)), ("bytes=-5", slice(-5, None)), ("bytes=100-", slice(100, None))):
        answer = content(control, name, Range=range_)
        assert answer.status == 206 and answer.body == nginx.content[part], range_
    assert content(control, name, Range="lines=1-2").status == 200
    beyond = content(control, name, Range=f"bytes={len(nginx.content)}-")
    beyond.problem(416, "range-not-satisfiable")
    assert beyond.headers["content-range"] == f"bytes */{len(nginx.content)}"


def test_redirects_are_followed_or_returned(control, nginx):
    followed = reaches(control, make(control, f"{nginx.base}/moved"), "finished")
    assert followed["currentUrl"] == f"{nginx.base}/file" and followed["metrics"]["redirects"] == 1
    shown = reaches(control, make(control, f"{nginx.base}/moved", followRedirects=False), "finished")
    assert shown["response"]["status"] == 302


# -- uploads

def test_a_file_is_uploaded(control, nginx, folder):
    source = folder / "source"
    source.write_bytes(os.urandom(3 << 20))
    name = make(control, f"{nginx.base}/upload/from-file", file=str(source))
    done = reaches(control, name, "finished")
    assert (done["kind"], done["method"], done["response"]["status"]) == ("upload", "PUT", 201)
    assert done["sentBytes"] == done["expectedSendBytes"] == 3 << 20
    assert (nginx.uploads / "from-file").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("body", [{"text": "grüße"}, {"data": base64.b64encode(bytes(range(256))).decode()}])
def test_text_and_data_are_uploaded(control, origin, body):
    name = make(control, f"{origin.base}/echo", method="POST", headers={"Content-Type": "text/plain", "X-Mine": "1"}, **body)
    reaches(control, name, "finished")
    sent = body["text"].encode() if "text" in body else base64.b64decode(body["data"])
    assert content(control, name).body == sent
    method, _, headers, got = origin.requests[-1]
    assert (method, headers["X-Mine"], got) == ("POST", "1", sent)


def test_a_request_body_is_streamed(control, nginx):
    sent = os.urandom(5 << 20)
    name = make(control, f"{nginx.base}/upload/streamed", streamed=True)
    assert show(control, name)["state"] == "waiting"
    done = control.request("PUT", f"/v1/transfers/{name}/body", sent, within=60).expect(200)
    assert done["state"] == "finished" and done["response"]["status"] == 201, done
    assert (nginx.uploads / "streamed").read_bytes() == sent
    control.request("PUT", f"/v1/transfers/{name}/body", b"more").problem(409, "state-conflict")
    verb(control, name, "restart", {"fromBeginning": True}).problem(409, "body-gone")


def test_an_incomplete_streamed_body_fails_the_upload(control, nginx):
    name = make(control, f"{nginx.base}/upload/broken", streamed=True)
    with socket.create_connection((control.parts.hostname, control.parts.port), timeout=10) as client:
        client.sendall(f"PUT /v1/transfers/{name}/body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n".encode() + b"x" * 1000)
        eventually(lambda: show(control, name)["sentBytes"] == 1000, "the received bytes are sent")
    assert eventually(lambda: show(control, name) if show(control, name)["state"] in ("failed", "cancelled") else None, "it ended")["state"] == "failed"
    assert not (nginx.uploads / "broken").exists()


# -- files outside of the allowed directories

@pytest.mark.parametrize("member", ["file", "destination"])
def test_no_path_leads_out_of_the_directories(control, nginx, folder, tmp_path, member):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (folder / "inner").mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "leaf").symlink_to(outside / "secret")
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "pipe")
    paths = [
        f"{folder}/../outside/secret", f"{folder}/./inner/x", f"{folder}//inner", f"{outside}/secret", "/etc/passwd", "etc/passwd", "",
        f"{folder}", f"{folder}/", f"{folder}x/secret", f"{folder}/link/secret", f"{folder}/leaf", f"{folder}/up/outside/secret",
        f"{folder}/inner/../../outside/secret", f"{folder}/pipe", f"{folder}/inner", f"{folder}/a\u0000b", "/" + "x" * 5000, f"{folder}/{'y' * 300}",
    ]
    for path in paths:
        body = {"url": f"{nginx.base}/upload/x", member: path, **({"overwrite": True} if member == "destination" else {})}
        problem = control.post("/v1/transfers", body).problem(403, "path-not-allowed")
        assert problem["errors"][0]["pointer"] == f"/{member}", path
    control.post("/v1/transfers", {"url": f"{nginx.base}/x", member: f"{folder}/nowhere/x"}).problem(422, "no-such-file")
    assert (outside / "secret").read_text() == "secret" and control.get("/v1/transfers").expect(200)["items"] == []


def test_a_directory_replaced_by_a_link_is_refused(control, nginx, folder, tmp_path):
    (folder / "inner").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    name = make(control, f"{nginx.base}/file", destination=f"{folder}/inner/got", start=False)
    (folder / "inner").rmdir()
    (folder / "inner").symlink_to(outside)
    verb(control, name, "resume").expect(200)
    assert reaches(control, name, "failed")["error"]["code"] == "file-unusable"
    assert os.listdir(outside) == []


# -- credentials

@pytest.fixture
def credentials(tmp_path):
    (tmp_path / "word").write_text("secret\n")
    return [
        {"name": "cellar", "hosts": ["127.0.0.1"], "user": "ada", "password-file": str(tmp_path / "word")},
        {"name": "token", "hosts": ["127.0.0.1"], "token": "t0ps3cr3t"},
        {"name": "elsewhere", "hosts": ["files.example"], "token": "t0ps3cr3t"},
    ]


def test_credentials_are_named_and_never_shown(serve, credentials, nginx, origin):
    control = serve(credentials=credentials)
    assert reaches(control, make(control, f"{nginx.base}/private/file"), "finished")["response"]["status"] == 401
    opened = reaches(control, make(control, f"{nginx.base}/private/file", credential="cellar"), "finished")
    assert (opened["response"]["status"], opened["credential"]) == (200, "cellar")
    # Another transfer does not use the credential.
    assert reaches(control, make(control, f"{nginx.base}/private/file"), "finished")["response"]["status"] == 401
    reaches(control, make(control, f"{origin.base}/echo", credential="token"), "finished")
    assert origin.requests[-1][2]["Authorization"] == "Bearer t0ps3cr3t"
    assert b"t0ps3cr3t" not in control.get("/v1/transfers").body + control.get("/v1/configuration").body
    control.post("/v1/transfers", {"url": origin.base, "credential": "elsewhere"}).problem(403, "credential-not-allowed")
    control.post("/v1/transfers", {"url": origin.base, "credential": "nobody"}).problem(422, "invalid-value")


def test_a_token_is_not_sent_to_the_target_of_a_redirect(serve, credentials, origin):
    control = serve(credentials=credentials)

    class Redirect(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{origin.port}/echo")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Redirect) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = reaches(control, make(control, f"http://127.0.0.1:{server.server_address[1]}/", credential="token"), "finished")
        server.shutdown()
    assert done["metrics"]["redirects"] == 1 and "Authorization" not in origin.requests[-1][2]


# -- refusals, failures, limits


def test_failures_have_a_code_and_a_retryable_flag(control):
    with refusing_port() as port:
        refused = reaches(control, make(control, f"http://127.0.0.1:{port}/"), "failed")
    assert refused["error"]["code"] == "cannot-connect" and refused["error"]["retryable"]
    content(control, refused["id"]).problem(409, "state-conflict")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        slow = reaches(control, make(control, f"http://127.0.0.1:{silent.getsockname()[1]}/", timeoutMs=200), "failed")
        assert slow["error"]["code"] == "timed-out"
        idle = reaches(control, make(control, f"http://127.0.0.1:{silent.getsockname()[1]}/", idleTimeoutMs=200), "failed")
        assert idle["error"]["code"] == "timed-out"
    control.get("/v1/transfers/99").problem(404, "unknown-transfer")
    control.get("/v1/transfers?state=odd").problem(400, "invalid-parameter")


def test_tls_is_verified(control, secure_nginx, authority):
    trusted = make(control, f"{secure_nginx.base}/file", authorities=authority.certificate.read_text())
    assert reaches(control, trusted, "finished")["response"]["status"] == 200
    control.post("/v1/transfers", {"url": secure_nginx.base, "authorities": "nonsense"}).problem(422, "invalid-value")
    assert reaches(control, make(control, f"{secure_nginx.base}/file"), "failed")["error"]["code"] == "tls-failed"
    done = reaches(control, make(control, f"{secure_nginx.base}/file", insecure=True), "finished")
    assert done["metrics"]["transactions"][0]["tlsVersion"] == "TLS 1.3"
    # The authorities of one transfer do not apply to others.
    assert reaches(control, make(control, f"{secure_nginx.base}/file"), "failed")["error"]["code"] == "tls-failed"


def test_content_that_is_too_large_for_memory_fails(serve, nginx):
    control = serve(**{"max-body": "1MiB", "max-memory": "1MiB"})
    assert reaches(control, make(control, f"{nginx.base}/file"), "failed")["error"]["code"] == "content-too-large"
    reaches(control, make(control, f"{nginx.base}/text"), "finished")
    kept = show(control, make(control, f"{nginx.base}/text"))
    reaches(control, kept["id"], "finished")
    data = base64.b64encode(bytes(900 << 10)).decode()
    control.post("/v1/transfers", {"url": f"{nginx.base}/x", "data": data}).problem(429, "memory-full")
    for one in control.get("/v1/transfers").json["items"]:
        assert control.request("DELETE", f"/v1/transfers/{one['id']}").status == 204
    make(control, f"{nginx.base}/upload/zeros", data=data)


def test_transfers_have_events(control, nginx):
    with Events(control, "/v1/events?type=transferStarted,transferEnded,transferFailed") as events:
        good = make(control, f"{nginx.base}/file")
        started = events.wait_type("transferStarted", transfer=good)
        assert started["url"] == f"{nginx.base}/file" and started["count"] == 1
        assert events.wait_type("transferEnded", transfer=good)["reason"] == "finished"
        bad = make(control, "http://127.0.0.1:1/")
        failed = events.wait_type("transferFailed", transfer=bad)
        assert failed["reason"] == "cannot-connect" and failed["detail"]
        held = make(control, f"{nginx.base}/file", start=False)
        control.post(f"/v1/transfers/{held}:cancel").expect(200)
        assert events.wait_type("transferEnded", transfer=held)["reason"] == "cancelled"
        last = events.all[-1]["number"]
    with Events(control, f"/v1/events?after=0&transfer={bad}&limit=2") as events:
        eventually(lambda: events.ended, "the end of the stream")
        assert [event["type"] for event in events.all] == ["transferStarted", "transferFailed"] and events.all[-1]["number"] < last


def test_the_number_of_transfers_is_limited(serve, nginx):
    control = serve(**{"max-running": 1, "max-transfers": 2})
    held = make(control, f"{nginx.base}/file", start=False)
    answer = control.post("/v1/transfers", {"url": f"{nginx.base}/file"})
    assert answer.problem(429, "too-many-transfers")["retryable"] and answer.headers["retry-after"]
    assert verb(control, held, "cancel").expect(200)["state"] == "cancelled"
    first = make(control, f"{nginx.base}/text")
    reaches(control, first, "finished")
    second = make(control, f"{nginx.base}/text")
    control.get(f"/v1/transfers/{held}").problem(404, "unknown-transfer")
    assert show(control, first)["id"] == first
    reaches(control, second, "finished")


# -- lists and labels

def test_transfers_are_listed_changed_and_deleted(control, nginx):
    names = [make(control, f"{nginx.base}/file", start=False, labels={"number": str(number), "even": "yes"} if number % 2 == 0 else {"number": str(number)})
             for number in range(5)]
    page = control.get("/v1/transfers", limit=2)
    first = page.expect(200)
    assert [one["id"] for one in first["items"]] == names[:2] and page.headers["link"] == f'<{first["next"]}>; rel="next"'
    second = control.get(first["next"]).expect(200)
    assert [one["id"] for one in second["items"]] == names[2:4]
    assert [one["id"] for one in control.get("/v1/transfers", label="even:yes").json["items"]] == names[::2]
    assert [one["id"] for one in control.get("/v1/transfers", label="number:3", state="suspended").json["items"]] == [names[3]]
    assert control.get("/v1/transfers", state="running").json["items"] == []
    changed = control.request("PATCH", f"/v1/transfers/{names[0]}", {"description": "first", "priority": 1, "labels": {"a": "b"}}).expect(200)
    assert (changed["description"], changed["priority"], changed["labels"]) == ("first", 1, {"a": "b"})
    assert control.request("DELETE", f"/v1/transfers/{names[0]}").status == 204
    control.get(f"/v1/transfers/{names[0]}").problem(404, "unknown-transfer")
    verb(control, names[1], "resume").expect(200)
    reaches(control, names[1], "finished")
    verb(control, names[1], "resume").problem(409, "state-conflict")
    verb(control, names[1], "cancel").problem(409, "state-conflict")


def test_a_download_is_moved_completely_across_file_systems(sluice, tmp_path, folder, nginx):
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == os.stat(folder).st_dev:
        pytest.skip("there is no other file system")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as temporary:
        one = Configured(sluice, tmp_path, environment={"TMPDIR": temporary},
                         control={"transfers": {"directories": [str(folder)]}})
        for overwrite in (False, True):
            name = make(one.control, f"{nginx.base}/file", destination=str(folder / "got"), overwrite=overwrite)
            done = reaches(one.control, name, "finished")
            assert done["contentBytes"] == len(nginx.content)
            assert (folder / "got").read_bytes() == nginx.content and stat.S_IMODE((folder / "got").stat().st_mode) == 0o640
        assert os.listdir(folder) == ["got"] and os.listdir(temporary) == []


def test_a_shutdown_removes_temporary_files(sluice, tmp_path, folder, nginx):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    one = Configured(sluice, tmp_path, environment={"TMPDIR": str(temporary)},
                     control={"transfers": {"directories": [str(folder)]}})
    name = make(one.control, f"{nginx.base}/slow/file", destination=str(folder / "got"))
    eventually(lambda: show(one.control, name).get("writtenBytes"), "something is there")
    assert verb(one.control, name, "cancel").expect(200)["canResume"] and os.listdir(temporary)
    other = make(one.control, f"{nginx.base}/slow/file", destination=str(folder / "other"))
    eventually(lambda: show(one.control, other).get("writtenBytes"), "something is there")
    assert one.gateway.stop() == 0
    assert os.listdir(temporary) == [] and os.listdir(folder) == []
