"""Static files of `files:` and `--web`, by curl, raw sockets and Python's HTTP client."""

import gzip
import hashlib
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import urllib.request

import pytest
from websockets.sync.client import connect

from support import configuration
from support.deadlines import eventually, seconds
from support.programs import find


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    (folder / "sub").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>home</title>")
    (folder / "sub" / "index.html").write_text("sub")
    (folder / "app.js").write_text("console.log(1)" * 100)
    (folder / "app.js.gz").write_bytes(gzip.compress((folder / "app.js").read_bytes()))
    (folder / ".secret").write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    return folder


@pytest.fixture
def serve(sluice, tmp_path):
    """Serves `site` at /, echo at /echo."""
    def start(folder, listen="ws://127.0.0.1:0", files=None, tls=None, more={}, **options):
        file = configuration.write(
            tmp_path / "sluice.yaml", [configuration.listener("web", listen, **({"tls": tls} if tls else {}))],
            [{"name": "site", "path": "/{path...}", "files": files or str(folder)}, configuration.route("echo", "echo", path="/echo")],
            **more)
        return sluice("serve", "--config", file, **options)
    return start


def curl(*words):
    return subprocess.run([find("curl"), "-sS", "--max-time", str(seconds(60)), *(str(word) for word in words)],
                          capture_output=True, check=True).stdout


def raw(gateway, request, within=20):
    """Everything that the gateway sends on a connection of its own until it closes."""
    with socket.create_connection(gateway.address(), timeout=seconds(within)) as one:
        one.sendall(request)
        got = b""
        while piece := one.recv(65536):
            got += piece
        return got


def get(gateway, target, *fields, method="GET"):
    head = [f"{method} {target} HTTP/1.1", "Host: a", "Connection: close", *fields]
    return raw(gateway, "\r\n".join(head).encode() + b"\r\n\r\n")


def test_curl_gets_pages_types_ranges_and_copies(site, serve):
    gateway = serve(site)
    base = f"http://127.0.0.1:{gateway.port()}"
    assert curl(f"{base}/") == (site / "index.html").read_bytes()
    assert curl("-L", f"{base}/sub") == b"sub"
    assert curl("-r", "3-7", f"{base}/app.js") == (site / "app.js").read_bytes()[3:8]
    assert curl("--compressed", f"{base}/app.js") == (site / "app.js").read_bytes()
    head = curl("-I", "-H", "Accept-Encoding: gzip", f"{base}/app.js").decode()
    assert "HTTP/1.1 200" in head and "Content-Encoding: gzip" in head and "Vary: Accept-Encoding" in head
    assert "Content-Type: text/javascript; charset=utf-8" in head and "X-Content-Type-Options: nosniff" in head
    status = curl("-o", os.devnull, "-w", "%{http_code}", "--etag-save", site.parent / "tag", f"{base}/")
    again = curl("-o", os.devnull, "-w", "%{http_code}", "--etag-compare", site.parent / "tag", f"{base}/")
    assert (status, again) == (b"200", b"304")


def test_connection_is_kept_between_requests(site, serve):
    gateway = serve(site)
    base = f"http://127.0.0.1:{gateway.port()}"
    counts = curl("-w", "%{num_connects}\n", *(word for _ in range(5) for word in ("-o", os.devnull, f"{base}/app.js")))
    assert counts.split() == [b"1", b"0", b"0", b"0", b"0"]


@pytest.mark.parametrize("is_secure", [False, True])
def test_large_file_arrives_whole(site, serve, server_certificate, authority, is_secure):
    content = os.urandom(1 << 20) * 48
    (site / "large.bin").write_bytes(content)
    if is_secure:
        certificate, key = server_certificate
        gateway = serve(site, "wss://127.0.0.1:0", tls={"certificate": str(certificate), "key": str(key)})
    else:
        gateway = serve(site)
    words = ["--cacert", authority.certificate] if is_secure else []
    scheme, host = ("https", "localhost") if is_secure else ("http", "127.0.0.1")
    got = curl(*words, "--resolve", f"localhost:{gateway.port()}:127.0.0.1", f"{scheme}://{host}:{gateway.port()}/large.bin")
    assert hashlib.sha256(got).digest() == hashlib.sha256(content).digest()


def test_plain_connections_send_files_without_reading_them(site, serve, tmp_path):
    (site / "large.bin").write_bytes(bytes(8 << 20))
    trace = tmp_path / "trace"
    # -D: the started process is the gateway, and strace a separate one.
    gateway = serve(site, wrapper=(find("strace"), "-D", "-f", "-q", "-o", trace, "-e", "trace=sendfile"))
    assert len(curl(f"http://127.0.0.1:{gateway.port()}/large.bin")) == 8 << 20
    gateway.stop()

    def sent():
        return sum(int(line.rsplit("= ", 1)[1].split()[0]) for line in trace.read_text().splitlines()
                   if "sendfile(" in line and "= " in line and "= -1" not in line and "<unfinished" not in line)

    # strace ends after the gateway.
    eventually(lambda: sent() > 6 << 20, f"files sent by the kernel in {trace}")


ATTACKS = [
    "/../outside.txt", "/%2e%2e/outside.txt", "/..%2foutside.txt", "/sub/../../outside.txt", "/%2e%2e%2foutside.txt",
    "/..%5coutside.txt", "/%252e%252e/outside.txt", "/sub/%00/../../outside.txt", "/outside.txt%00.html", "//outside.txt",
    "/.secret", "/%2esecret", "/sub/..;/..;/outside.txt", "/out.txt", "/up/outside.txt", "/absolute", "/%c0%ae%c0%ae/outside.txt",
    "http://a/../outside.txt", "/dev/null", "/null", "/fifo", "/sock", "/loop", "*", "outside.txt", "/" + "a" * 300, "/" + "a/" * 1000,
]


def test_nothing_outside_the_directory_is_served(site, serve):
    (site / "out.txt").symlink_to("../outside.txt")
    (site / "up").symlink_to("..")
    (site / "absolute").symlink_to(site.parent / "outside.txt")
    (site / "null").symlink_to("/dev/null")
    (site / "loop").symlink_to("loop")
    (site / "inner.js").symlink_to("app.js")
    os.mkfifo(site / "fifo")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(site / "sock"))
        gateway = serve(site)
        for attack in ATTACKS:
            answer = get(gateway, attack)
            assert answer.split(b" ")[1] in (b"400", b"404"), (attack, answer)
            assert b"secret" not in answer, attack
    assert get(gateway, "/inner.js").startswith(b"HTTP/1.1 200 ")


SMUGGLING = [
    b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"Content-Length: 3\n\r\n\r\nabc", b"Transfer-Encoding: xchunked\r\n\r\n", b"Content-Length: 100000\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", b"X: a\r\n b\r\n\r\n",
]


@pytest.mark.parametrize("fields", SMUGGLING)
def test_requests_that_two_servers_could_read_differently_end_the_connection(site, serve, fields):
    gateway = serve(site)
    answer = raw(gateway, b"GET / HTTP/1.1\r\nHost: a\r\n" + fields + b"GET /app.js HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.split(b" ")[1] in (b"400", b"413", b"501"), answer
    assert answer.count(b"HTTP/1.1 ") == 1
    assert get(gateway, "/").startswith(b"HTTP/1.1 200 ")


def test_pipelined_requests_are_answered_in_order(site, serve):
    gateway = serve(site)
    for name in "abc":
        (site / f"{name}.txt").write_text(name * 10)
    one = b"".join(f"GET /{name}.txt HTTP/1.1\r\nHost: a\r\n\r\n".encode() for name in "abcabc")
    answer = raw(gateway, one + b"HEAD /a.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    bodies = [part.split(b"\r\n\r\n", 1)[1] for part in answer.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    assert bodies == [b"a" * 10, b"b" * 10, b"c" * 10] * 2 + [b""]


def test_clients_that_read_nothing_take_little_memory_and_are_reset(site, serve):
    with open(site / "huge.bin", "wb") as file:
        file.truncate(1 << 30)
    gateway = serve(site)
    assert get(gateway, "/").startswith(b"HTTP/1.1 200 ")
    before = gateway.memory()
    clients = []
    for _ in range(40):
        one = socket.create_connection(gateway.address(), timeout=seconds(60))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(b"GET /huge.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        clients.append(one)
    eventually(lambda: gateway.descriptors() >= 80, "forty files open")
    assert gateway.memory() - before < 40 * (300 << 10)
    # Each is reset after 30 seconds without progress.
    gateway.wait_log(r"connection closed.*downstream/relaying/closing-timeout", within=60)
    for one in clients:
        one.close()
    gateway.settle(40)


def test_download_delays_no_other_connection(site, serve):
    with open(site / "huge.bin", "wb") as file:
        file.truncate(10 << 30)
    gateway = serve(site, more={"loops": 1})
    words = [find("curl"), "-sS", "-o", os.devnull, f"http://127.0.0.1:{gateway.port()}/huge.bin"]
    downloads = [subprocess.Popen(words) for _ in range(2)]
    try:
        with connect(f"ws://127.0.0.1:{gateway.port()}/echo", proxy=None) as echo:
            for number in range(200):
                echo.send(str(number))
                assert echo.recv(timeout=seconds(2)) == str(number)
        assert all(one.poll() is None for one in downloads), "a download ended too soon to compete"
    finally:
        for one in downloads:
            one.kill()
            one.wait()


def test_file_that_shrinks_is_never_a_short_success(site, serve):
    with open(site / "log.bin", "wb") as file:
        file.truncate(256 << 20)
    gateway = serve(site)
    with socket.create_connection(gateway.address(), timeout=seconds(30)) as one:
        one.sendall(b"GET /log.bin HTTP/1.1\r\nHost: a\r\n\r\n")
        got = len(one.recv(65536))
        os.truncate(site / "log.bin", 1 << 20)
        with pytest.raises(ConnectionResetError):
            while piece := one.recv(1 << 20):
                got += len(piece)
    assert got < 256 << 20
    gateway.wait_log("the file became shorter while it was sent")


def test_lack_of_descriptors_is_503_and_passes(site, serve):
    with open(site / "huge.bin", "wb") as file:
        file.truncate(1 << 30)
    gateway = serve(site, descriptors=100, more={"max-connections": 1000})
    held = []
    try:
        for _ in range(60):
            one = socket.create_connection(gateway.address(), timeout=seconds(20))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.sendall(b"GET /huge.bin HTTP/1.1\r\nHost: a\r\n\r\n")
            held.append(one)
            one.settimeout(seconds(2))
            try:
                status = one.recv(12)
            except TimeoutError:
                # Its connection waits in the kernel's queue.
                break
            if status == b"HTTP/1.1 503":
                break
        assert status == b"HTTP/1.1 503", status
    finally:
        for one in held:
            one.close()
    eventually(lambda: get(gateway, "/").startswith(b"HTTP/1.1 200 "), "files again")


def test_reload_changes_the_files_of_open_connections(site, serve, tmp_path):
    gateway = serve(site)
    other = tmp_path / "other"
    other.mkdir()
    (other / "index.html").write_text("other")
    client = http.client.HTTPConnection("127.0.0.1", gateway.port(), timeout=seconds(20))
    client.request("GET", "/")
    assert b"home" in client.getresponse().read()
    file = tmp_path / "sluice.yaml"
    file.write_text(file.read_text().replace(json.dumps(str(site)), json.dumps(str(other))))
    gateway.signal(signal.SIGHUP)

    def is_other():
        client.request("GET", "/")
        return client.getresponse().read() == b"other"
    eventually(is_other, "the other directory")
    client.close()


def test_connections_are_listed_and_drained(site, serve):
    gateway = serve(site, more={"control": {"address": "http://127.0.0.1:0"}})
    control = next(line for line in gateway.output.all() if line.startswith("control on ")).split()[-1]
    client = http.client.HTTPConnection("127.0.0.1", gateway.port(), timeout=seconds(20))
    client.request("GET", "/")
    client.getresponse().read()
    with urllib.request.urlopen(f"{control}/v1/connections?kind=http") as answer:
        one = json.load(answer)["items"][0]
    assert (one["kind"], one["state"], one["listener"], one["route"]) == ("http", "open", "web", "site")
    assert one["receivedBytes"] > 20 and one["sentBytes"] > 100
    assert gateway.stop() == 0
    gateway.wait_log(r"connection closed.*route=site.*reason=operator/relaying/drained")
    client.close()


def test_missing_directory_is_reported_at_start(sluice, tmp_path):
    file = configuration.write(
        tmp_path / "c.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
        [{"name": "site", "path": "/{path...}", "files": str(tmp_path / "none")}])
    gateway = sluice("serve", "--config", file, ready=False)
    assert gateway.wait() == 78
    gateway.log.wait_for(lambda line: "routes[0].files: expected a directory that can be read, found no such file" in line, "the problem")


def test_bridge_serves_pages_beside_its_websocket(site, bridge, listener):
    gateway = bridge("ws://127.0.0.1:0/websockify", f"tcp://127.0.0.1:{listener.port}", "--web", site)
    assert f"pages on http://127.0.0.1:{gateway.port()}/" in gateway.output.all()
    assert gateway.url().endswith("/websockify")
    assert b"home" in get(gateway, "/")
    assert get(gateway, "/websockify").startswith(b"HTTP/1.1 426 ")
    with connect(gateway.url(), proxy=None, subprotocols=["binary"]) as client:
        peer = listener.accept()
        client.send(b"hello")
        assert peer.receive(5) == b"hello"
        peer.close()
