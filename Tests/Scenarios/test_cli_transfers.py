"""`sluice get` and `sluice put`: transfers of a running gateway on the command line, with real servers at the other end."""

import http.server
import json
import os
import re
import signal
import threading

import pytest

from support.client import Client
from support.configured import Configured
from support.connect import Terminal
from support.deadlines import eventually, seconds
from support.gateway import BINARY


class StallingServer:
    """A server that sends half of its file, and the rest for a range request."""

    CONTENT = os.urandom(1 << 20)
    HALF = len(CONTENT) // 2

    def __init__(self, resumable=True):
        held = self
        self.resumable = resumable
        self.released = threading.Event()
        self.ranges = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                wanted = self.headers.get("Range")
                held.ranges.append(wanted)
                start = int(re.fullmatch(r"bytes=(\d+)-", wanted).group(1)) if wanted and held.resumable else 0
                self.send_response(206 if start else 200)
                if held.resumable:
                    self.send_header("ETag", '"one"')
                    self.send_header("Accept-Ranges", "bytes")
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{len(held.CONTENT) - 1}/{len(held.CONTENT)}")
                self.send_header("Content-Length", str(len(held.CONTENT) - start))
                self.end_headers()
                if start:
                    self.wfile.write(held.CONTENT[start:])
                    return
                self.wfile.write(held.CONTENT[:held.HALF])
                held.released.wait(seconds(60))
                self.wfile.write(held.CONTENT[held.HALF:])

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/big"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def end(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def held():
    one = StallingServer()
    yield one
    one.end()


@pytest.fixture
def folder(tmp_path):
    one = tmp_path / "files"
    one.mkdir()
    return one


@pytest.fixture
def serve(sluice, tmp_path, folder):
    def start(**transfers):
        one = Configured(sluice, tmp_path, control={"transfers": {"directories": [str(folder)], **transfers}})
        client = Client(one.control.url)
        client.control, client.gateway = one.control, one.gateway
        return client

    return start


@pytest.fixture
def client(serve):
    return serve()


def transfers(client):
    return client.control.get("/v1/transfers").expect(200)["items"]


def wait_for_transfer(client, wanted, what):
    """Waits until `wanted` holds for the last transfer, and returns it."""
    def look():
        found = transfers(client)
        return found[-1] if found and wanted(found[-1]) else None

    return eventually(look, what)


def interrupt(process):
    """Interrupts the process with Ctrl-C; returns its line on standard error."""
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=seconds(20))
    assert process.returncode == 130, (process.returncode, errors)
    lines = errors.decode().splitlines()
    assert len(lines) == 1 and not output, (output, lines)
    return lines[0]


# -- get

def test_get_writes_to_standard_output_a_file_or_a_pipe(client, nginx, tmp_path):
    assert client.run("get", f"{nginx.base}/file").output == nginx.content
    here = tmp_path / "here"
    line = client("get", f"{nginx.base}/file", "-o", here)
    assert re.fullmatch(r"transfer \d+ finished: received 4[.0]* MiB, status 200\n", line) and here.read_bytes() == nginx.content
    client("get", f"{nginx.base}/moved", "--output", here)
    assert sorted(one.name for one in tmp_path.glob("here*")) == ["here"]
    # A pipe is written into, not replaced.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    client("get", f"{nginx.base}/text", "-o", pipe, "-H", "Accept-Encoding: identity")
    reader.join(seconds(20))
    assert got == [nginx.text.read_bytes()]


def test_get_to_writes_a_file_on_the_gateways_machine(client, nginx, folder):
    there = folder / "there"
    line = client("get", f"{nginx.base}/file", "--to", there, "--label", "of=test", "--description", "a file")
    assert line.endswith(f"status 200, to {there}\n") and there.read_bytes() == nginx.content
    assert (transfers(client)[-1]["labels"], transfers(client)[-1]["description"]) == ({"of": "test"}, "a file")
    assert "--overwrite" in client.run("get", f"{nginx.base}/file", "--to", there).failed(81)
    there.write_text("old")
    shown = json.loads(client("get", f"{nginx.base}/file", "--to", there, "--overwrite", "--json"))
    assert shown["state"] == "finished" and shown["writtenBytes"] == len(nginx.content) == there.stat().st_size
    assert "directories" in client.run("get", f"{nginx.base}/file", "--to", "/nowhere/x").errors


def test_ctrl_c_keeps_received_bytes_and_the_same_command_resumes(client, held, folder):
    there = folder / "there"
    words = ("get", held.url, "--to", there)
    process = client.start(*words)
    wait_for_transfer(client, lambda one: one.get("writtenBytes"), "something is there")
    name = re.search(r"'sluice get --resume (\d+)'", interrupt(process)).group(1)
    one = client.control.get(f"/v1/transfers/{name}").expect(200)
    assert (one["state"], one["canResume"]) == ("cancelled", True) and not there.exists()
    again = client.run(*words)
    assert again.code == 0 and f"resuming transfer {name}" in again.errors and "status 206" in again.text
    assert there.read_bytes() == held.CONTENT
    done = client.control.get(f"/v1/transfers/{name}").expect(200)
    assert done["attempt"] == 2 and 0 < done["resumedAtBytes"] and len(transfers(client)) == 1


def test_a_second_ctrl_c_exits_although_the_gateway_does_not_answer(client, held, folder):
    process = client.start("get", held.url, "--to", folder / "there")
    wait_for_transfer(client, lambda one: one.get("writtenBytes"), "something is there")
    client.gateway.signal(signal.SIGSTOP)
    try:
        def ended():
            process.send_signal(signal.SIGINT)
            return process.poll() is not None

        # Signals that arrive together may be delivered as one.
        eventually(ended, "the end")
        assert process.returncode == 130
    finally:
        client.gateway.signal(signal.SIGCONT)


def test_a_closed_standard_output_is_reported(client, nginx):
    process = client.start("get", f"{nginx.base}/file")
    process.stdout.close()
    assert process.wait(seconds(20)) == 74
    assert b"standard output" in process.stderr.read()


def test_a_full_disk_is_reported(client, nginx):
    error = client.run("get", f"{nginx.base}/file", "-o", "/dev/full").failed(74)
    assert "cannot write /dev/full: No space left on device; " in error


def test_a_transfer_is_resumed_by_its_id(client, held, folder, tmp_path):
    there, here = folder / "there", tmp_path / "here"
    name = client("get", held.url, "--to", there, "--background").strip()
    wait_for_transfer(client, lambda one: one.get("writtenBytes"), "something is there")
    terminal = Terminal("get", "--resume", name, "--control", client.url, program=[str(BINARY)])
    try:
        terminal.wait_for("50%").type("\x03")
        assert terminal.wait() == 130
    finally:
        terminal.close()
    shown = json.loads(client("get", "--resume", name, "--json", "-o", here))
    assert shown["state"] == "finished" and shown["resumedAtBytes"] and held.ranges[-1]
    assert there.read_bytes() == here.read_bytes() == held.CONTENT
    # A finished transfer is fetched from the gateway; --fresh loads it again from the server.
    assert client("get", "--resume", name, "-o", here).startswith(f"transfer {name} finished")
    there.unlink()
    held.released.set()
    client("get", "--resume", name, "--fresh")
    assert held.ranges[-1] is None and there.read_bytes() == held.CONTENT


def test_events_include_transfers(client, nginx, tmp_path):
    name = client("get", f"{nginx.base}/file", "--background").strip()
    client("get", "--resume", name, "-o", tmp_path / "here")
    events = client("events", "--after", "0", "--type", "transferStarted", "--type", "transferEnded", "--count", "2").splitlines()
    assert "transferStarted" in events[0] and "transferEnded" in events[1]
    assert all(f"transfer {name}" in line for line in events)


def test_a_transfer_that_cannot_be_resumed_is_reported(client, folder):
    held = StallingServer(resumable=False)
    try:
        for words, hint in ((("--to", folder / "there"), "run the same command again"), ((), "--to")):
            process = client.start("get", held.url, *words)
            wait_for_transfer(client, lambda one: one["state"] == "running" and one["receivedBytes"], "bytes were received")
            assert hint in interrupt(process)
            name = transfers(client)[-1]["id"]
            assert "--fresh" in client.run("get", "--resume", name).failed(81)
    finally:
        held.end()


def test_a_terminal_shows_the_progress_of_a_transfer(client, held, folder):
    words = ["get", held.url, "--to", str(folder / "there"), "--control", client.url]
    terminal = Terminal(*words, program=[str(BINARY)], columns=90)
    try:
        terminal.wait_for(r"50% \[#+\.+\]  512[.0]* KiB of 1[.0]* MiB")
        terminal.type("\x03")
        assert terminal.wait() == 130
        assert "sluice get --resume" in terminal.text
    finally:
        terminal.close()
    terminal = Terminal(*words, program=[str(BINARY)], columns=90)
    try:
        assert terminal.wait() == 0
        assert re.search(r"transfer \d+ finished: received 1[.0]* MiB", terminal.text)
    finally:
        terminal.close()
    assert (folder / "there").read_bytes() == held.CONTENT


@pytest.mark.parametrize("words, code, said", [
    (["http://127.0.0.1:1/"], 80, "connect"),
    (["{base}/file", "--credential", "nobody"], 64, "nobody"),
    (["{base}/file", "-o", "/"], 74, "directory"),
])
def test_a_failed_get_is_one_line_and_an_exit_code(client, nginx, words, code, said):
    assert said in client.run("get", *(word.format(base=nginx.base) for word in words)).failed(code)


def test_a_body_above_max_body_fails_and_names_the_to_option(serve, nginx):
    line = serve(**{"max-body": "64KiB"}).run("get", f"{nginx.base}/file").failed(80)
    assert "--to" in line


# -- put

def test_put_sends_a_local_file_through_the_gateway(client, nginx, tmp_path):
    file = tmp_path / "picture"
    file.write_bytes(os.urandom(5 << 20))
    line = client("put", file, f"{nginx.base}/upload/deep/picture")
    assert re.fullmatch(r"transfer \d+ finished: sent 5[.0]* MiB, status 201\n", line)
    assert (nginx.uploads / "deep" / "picture").read_bytes() == file.read_bytes()
    shown = json.loads(client("put", file, f"{nginx.base}/upload/deep/picture", "--json"))
    assert (shown["state"], shown["sentBytes"], shown["response"]["status"]) == ("finished", 5 << 20, 204)


def test_put_remote_sends_a_file_of_the_gateways_machine(client, nginx, folder):
    file = folder / "big"
    file.write_bytes(os.urandom(1 << 20))
    name = client("put", "--remote", file, f"{nginx.base}/upload/big", "--background").strip()
    assert client("put", "--resume", name).startswith(f"transfer {name} finished: sent ")
    assert (nginx.uploads / "big").read_bytes() == file.read_bytes()


def test_put_writes_the_body_of_the_response(client, origin, tmp_path):
    file, answer = tmp_path / "form", tmp_path / "answer"
    file.write_text('{"a": 1}')
    words = ("put", file, f"{origin.base}/echo", "-X", "POST", "-H", "Content-Type: application/json")
    assert client(*words, "-o", "-") == '{"a": 1}'
    client(*words, "--output", answer)
    assert answer.read_text() == '{"a": 1}'
    assert [(one[0], one[2]["Content-Type"]) for one in origin.requests] == [("POST", "application/json")] * 2


def test_a_failed_put_has_an_exit_code(client, nginx, tmp_path):
    file = tmp_path / "small"
    file.write_text("small")
    assert "405" in client.run("put", file, f"{nginx.base}/file").failed(80)
    refused = client.run("put", file, f"{nginx.base}/file", "-o", "-")
    assert refused.code == 80 and b"405" in refused.output
    assert "connect" in client.run("put", file, "http://127.0.0.1:1/").failed(80)
    assert "no such file" in client.run("put", tmp_path / "nothing", f"{nginx.base}/upload/x").failed(78)
    assert "control.transfers.directories" in client.run("put", "--remote", "/nowhere/x", f"{nginx.base}/upload/x").failed(77)
    assert all(one["endedAt"] for one in transfers(client))


def test_ctrl_c_cancels_the_upload_in_the_gateway(client, listener, tmp_path):
    file = tmp_path / "big"
    with open(file, "wb") as big:
        big.truncate(256 << 20)
    process = client.start("put", file, listener.url("http") + "/")
    # The peer never reads.
    peer = listener.accept()
    wait_for_transfer(client, lambda one: one["sentBytes"], "bytes were sent")
    assert "same command" in interrupt(process)
    assert transfers(client)[-1]["state"] == "cancelled"
    peer.close()
