"""Programs written for Foundation's URLSession, on the library, and the same sources on the toolchain's FoundationNetworking."""

import functools
import subprocess
import threading
import time
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

from support import loading
from support.deadlines import eventually, seconds
from support.programs import Program, find
from support.web import TEXT
from support.websocket import Listener
from test_mail import MESSAGE, mail_server  # noqa: F401

# Programs that do not compile with the toolchain's FoundationNetworking, and the error.
UNSUPPORTED = {"LineStyle": "has no member 'bytes'", "MailClient": "is unavailable"}
SWIFT_5 = {"DelegateStyle", "CompletionStyle"}


def succeed(name, *words, **more):
    ended = loading.run(name, *words, **more)
    assert ended.code == 0 and not ended.errors, f"{ended}: {ended.output[-2000:]} {ended.errors[-2000:]}"
    return ended.output


# -- on the library

def test_a_delegate_program_runs(nginx):
    output = succeed("DelegateStyle", nginx.base, nginx.file)
    assert output == "redirection 302, response 200, data, metrics of 2, completed, invalid\n"


DELEGATE_OUTPUT = "data: response 200, data true\nupload: sent\ndownload: written true\n"


def test_async_functions_call_a_task_delegate(nginx, tmp_path):
    assert succeed("AsyncDelegate", nginx.base, nginx.file, home=tmp_path) == DELEGATE_OUTPUT


@pytest.mark.parametrize("name", ["CompletionStyle", "AsyncStyle"])
def test_programs_without_a_delegate_run(nginx, tmp_path, name):
    succeed(name, nginx.base, nginx.file, home=tmp_path)
    uploaded = nginx.uploads / name.removesuffix("Style").lower()
    assert uploaded.read_bytes() == nginx.content


def test_async_lines_are_read(nginx, tmp_path):
    assert succeed("LineStyle", nginx.base, nginx.text, home=tmp_path) == f"{len(TEXT.splitlines())} lines\n"


def test_an_interrupted_download_is_resumed(nginx, tmp_path):
    output = succeed("DownloadResume", nginx.base, nginx.file, home=tmp_path)
    assert "resumes at" in output
    eventually(lambda: [status for *_, status in nginx.requests("/slow/file")][-1:] == [206], "the rest is requested alone")


def test_an_upload_reports_its_progress(nginx, tmp_path):
    succeed("UploadProgress", nginx.base, nginx.file, home=tmp_path)
    assert (nginx.uploads / "progress").read_bytes() == nginx.content


def test_cookies_are_stored_and_responses_cached(origin, tmp_path):
    assert succeed("CookiesAndCache", origin.base, home=tmp_path) == "cookies and cache work\n"
    assert origin.visits == 2


@pytest.mark.parametrize("scheme", ["Basic", "Digest"])
def test_a_challenge_is_answered(nginx, apache, scheme):
    server, realm = (nginx, "The cellar") if scheme == "Basic" else (apache, apache.REALM)
    output = succeed("SignIn", f"{server.base}/private/file", "ada", "secret")
    assert output == f"NSURLAuthenticationMethodHTTP{scheme} {realm}\n"


def threads(process):
    """Names of a program's threads, but those of libdispatch, which serve the queues, and the program's own name: that of
    the first thread, and of each that has just begun."""
    names = []
    # Until the program begins, its process has the name of this one.
    own = Path("/proc/self/comm").read_text().strip()
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:
            pass  # The thread has ended.
    return [name for name in names if name not in ("Loader", own) and not name.endswith(("-qos", "-qos.overcommit"))]


@pytest.mark.parametrize("kind, loops", [("data", 0), ("file", 0), ("http", 1)])
def test_loops_start_when_a_connection_needs_them(nginx, tmp_path, kind, loops):
    (tmp_path / "file").write_text("content")
    url = {"data": "data:,content", "file": f"file://{tmp_path}/file", "http": nginx.base + "/file"}[kind]
    words = [loading.FOLDER / "Loader", "load", url, "--times", "2", "--pause", "1500"]
    process = subprocess.Popen(words, env=loading.environment(home=tmp_path), stdout=subprocess.PIPE)
    most = []
    while process.poll() is None:
        most = max(most, threads(process), key=len)
        time.sleep(0.01)
    assert len(process.communicate()[0].splitlines()) == 2 and process.returncode == 0
    assert len(most) == loops, most


def test_one_request_needs_two_threads_and_no_optional_library_for_authentication_or_scripts(authority, server_certificate):
    with Listener(tls=authority.server_context(server_certificate)) as server:
        words = [loading.FOLDER / "Loader", "load", f"https://localhost:{server.port}/"]
        with Program(*words, env=loading.environment(authority)) as program:
            peer = server.accept()
            peer.receive_head()
            # The thread that looked the name up may have ended.
            assert set(threads(program.process)) <= {"loop-0", "resolver"} and len(threads(program.process)) <= 2
            maps = Path(f"/proc/{program.process.pid}/maps").read_text()
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            assert program.wait(60) == 0
    assert "libssl" in maps and not any(name in maps for name in ("libgssapi", "libkrb5", "ntlmssp", "duktape"))


def chat(connection):
    """A chat room with a single guest."""
    try:
        name = connection.recv()
        connection.send(f"{name} joined")
        for message in connection:
            connection.send(message if isinstance(message, bytes) else f"{name}: {message}")
    except ConnectionClosed:
        pass


@pytest.mark.parametrize("secure", [False, True], ids=["ws", "wss"])
def test_a_chat_program_runs(authority, server_certificate, secure, tmp_path):
    context = authority.server_context(server_certificate) if secure else None
    with serve(chat, "127.0.0.1", 0, subprotocols=["chat"], ssl=context) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        port = server.socket.getsockname()[1]
        url = f"{'wss' if secure else 'ws'}://localhost:{port}/room"
        output = succeed("WebSocketChat", url, "Ada", authority=authority, home=tmp_path)
        server.shutdown()
        thread.join(seconds(10))
    assert output == "open chat, close 1000 bye, complete\n"


def test_mail_is_sent_after_starttls(mail_server, authority, server_certificate, tmp_path):  # noqa: F811
    mailbox, port = mail_server(tls_context=authority.server_context(server_certificate), require_starttls=True)
    text = "".join(f"{line}\n" for line in MESSAGE)
    assert succeed("MailClient", "localhost", port, authority=authority, text=text, home=tmp_path) == "delivered\n"
    envelope, = mailbox.envelopes
    assert mailbox.secured == [True] and envelope.content.decode().split("\r\n") == [*MESSAGE, ""]


def test_mail_is_not_sent_to_a_server_with_an_untrusted_certificate(mail_server, authority, server_certificate, tmp_path):  # noqa: F811
    mailbox, port = mail_server(tls_context=authority.server_context(server_certificate), require_starttls=True)
    ended = loading.run("MailClient", "localhost", port, text="Subject: secret\n", home=tmp_path)
    assert ended.code == 1 and "-1203" in ended.output, ended.output
    assert mailbox.envelopes == []


# -- on the toolchain's FoundationNetworking

@pytest.fixture(scope="session")
def foundation(tmp_path_factory):
    """Builds a program's source with only the import changed: (exit code, output of the compiler, binary)."""
    folder = tmp_path_factory.mktemp("foundation")

    @functools.cache
    def build(name):
        text = (loading.SOURCES / name / "main.swift").read_text()
        assert text.count("import URLLoading\n") == 1
        place = folder / name
        place.mkdir()
        (place / "main.swift").write_text(text.replace("import URLLoading\n", "import FoundationNetworking\n"))
        mode = "5" if name in SWIFT_5 else "6"
        got = subprocess.run(
            [find("swiftc"), "-swift-version", mode, place / "main.swift", "-o", place / name], capture_output=True, text=True,
            timeout=seconds(150))
        return got.returncode, got.stdout + got.stderr, place / name

    return build


@pytest.mark.parametrize("name", loading.COMPATIBILITY)
def test_the_same_source_builds_with_foundation_networking(foundation, name):
    code, messages, _ = foundation(name)
    if name in UNSUPPORTED:
        assert code != 0 and UNSUPPORTED[name] in messages, messages
    else:
        assert code == 0, messages


def test_async_functions_call_a_task_delegate_like_foundation_networking(foundation, nginx):
    place = foundation("AsyncDelegate")[2]
    ended = loading.FinishedProgram([place, nginx.base, nginx.file], loading.environment(), 60)
    # FoundationNetworking's calls return before the last delegate calls: the calls so far are of the same kinds.
    same = [line.removesuffix(" true") for line in DELEGATE_OUTPUT.splitlines()]
    reported = [line.removesuffix(" true").removesuffix(" false") for line in ended.output.splitlines()]
    assert (ended.code, reported) == (0, same), f"{ended}: {ended.errors[-2000:]}"


def test_the_programs_succeed_on_foundation_networking(foundation, nginx):
    """Exit code 0 shows that the programs do not depend on behaviour that only the library has."""
    for name in ("DelegateStyle", "CompletionStyle", "AsyncStyle"):
        place = foundation(name)[2].parent
        ended = loading.FinishedProgram([place / name, nginx.base, nginx.file], loading.environment(), 60)
        assert ended.code == 0, f"{ended}: {ended.output[-2000:]} {ended.errors[-2000:]}"


def test_subclasses_are_called_like_on_foundation_networking(foundation, tmp_path):
    """Each line of output is about a class that overrides initializers, methods or properties."""
    theirs = loading.FinishedProgram([foundation("Subclasses")[2]], loading.environment(home=tmp_path), 60)
    assert theirs.code == 0, theirs.errors
    assert succeed("Subclasses", home=tmp_path) == theirs.output
