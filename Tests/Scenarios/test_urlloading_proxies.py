"""The URL loading system through proxies: tinyproxy and microsocks, with and without a password, and squid."""

import json
import threading

import pytest
from websockets.sync.server import serve

from support.loading import load_one, run
from support.programs import free_port
from support.proxies import PASSWORD, USER, Microsocks, Squid, Tinyproxy


def start(name, tmp_path_factory):
    asks = name.endswith("asks")
    return Tinyproxy(tmp_path_factory.mktemp("proxy"), asks) if "tinyproxy" in name else Microsocks(asks)


@pytest.fixture(scope="module", params=["tinyproxy", "tinyproxy that asks", "microsocks", "microsocks that asks"])
def proxy(request, tmp_path_factory):
    one = start(request.param, tmp_path_factory)
    yield one
    one.end()


@pytest.fixture(scope="module", params=["tinyproxy that asks", "microsocks that asks"])
def asking(request, tmp_path_factory):
    one = start(request.param, tmp_path_factory)
    yield one
    one.end()


@pytest.fixture(scope="module")
def echo():
    with serve(lambda socket: [socket.send(message) for message in socket], "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"
        server.shutdown()


def test_a_file_is_loaded_through_a_proxy(proxy, nginx, tmp_path):
    got = load_one(f"{nginx.base}/file", "--proxy", proxy.url, "--output", tmp_path / "got")
    assert got.status == 200 and (tmp_path / "got").read_bytes() == nginx.content
    assert all(one["proxied"] for one in got.transactions)


def test_a_file_is_loaded_over_tls_through_a_proxy(proxy, secure_nginx, authority, tmp_path):
    got = load_one(f"{secure_nginx.base}/file", "--proxy", proxy.url, "--output", tmp_path / "got", authority=authority)
    assert got.status == 200 and (tmp_path / "got").read_bytes() == secure_nginx.content
    assert all(one["proxied"] for one in got.transactions)


def test_a_file_is_uploaded_through_a_proxy(proxy, nginx):
    got = load_one(f"{nginx.base}/upload/proxied", "--upload", nginx.file, "--proxy", proxy.url)
    assert got.status in (201, 204) and (nginx.uploads / "proxied").read_bytes() == nginx.content


def test_a_redirection_is_followed_through_a_proxy(proxy, nginx):
    assert load_one(f"{nginx.base}/moved", "--proxy", proxy.url).status == 200


def test_a_websocket_message_is_echoed_through_a_proxy(proxy, echo):
    ended = run("Loader", "socket", echo, "--send", "hello", "--proxy", proxy.url)
    assert ended.code == 0 and json.loads(ended.output)["messages"] == ["hello"]


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """A PAC script that selects a proxy by path and scheme, and an unreachable proxy for other servers."""
    proxies = [start(name, tmp_path_factory) for name in ("tinyproxy", "microsocks")]
    http, socks = (proxy.url.split("//")[1].rstrip("/") for proxy in proxies)
    file = tmp_path_factory.mktemp("script") / "proxy.pac"
    file.write_text(f"""
        function FindProxyForURL(url, host) {{
            if (!isInNet(host, "127.0.0.0", "255.0.0.0")) return "PROXY 127.0.0.1:1";
            if (shExpMatch(url, "http://*/moved*")) return "PROXY 127.0.0.1:1; SOCKS5 {socks}";
            return url.substring(0, 6) === "https:" ? "SOCKS5 {socks}; DIRECT" : "PROXY {http}; DIRECT";
        }}""")
    yield file.as_uri()
    for proxy in proxies:
        proxy.end()


@pytest.mark.parametrize("path", ["/file", "/moved"])
def test_a_script_chooses_the_proxy(script, nginx, path):
    got = load_one(f"{nginx.base}{path}", "--proxy-script", script)
    # An attempt whose proxy was unreachable has no status.
    answered = [one["proxied"] for one in got.transactions if one.get("status")]
    assert got.status == 200 and answered and all(answered)


def test_a_script_chooses_the_proxy_of_a_secure_server(script, secure_nginx, authority):
    got = load_one(f"{secure_nginx.base}/file", "--proxy-script", script, authority=authority)
    assert got.status == 200 and all(one["proxied"] for one in got.transactions)


def test_a_script_chooses_the_proxy_of_a_websocket(script, echo):
    ended = run("Loader", "socket", echo, "--send", "hello", "--proxy-script", script)
    assert ended.code == 0 and json.loads(ended.output)["messages"] == ["hello"]


def test_a_missing_script_fails_the_task(nginx, tmp_path):
    got = load_one(f"{nginx.base}/file", "--proxy-script", (tmp_path / "none.pac").as_uri(), fails=True)
    assert got.code == -1002 and "none.pac" in got["error"]["text"]


def test_a_wrong_proxy_password_fails_the_task(asking, secure_nginx, authority):
    got = load_one(f"{secure_nginx.base}/file", "--proxy", asking.url.replace("secret", "wrong"), authority=authority, fails=True)
    assert got.code == -1013


def test_an_unreachable_server_is_reported_as_a_failure_of_the_proxy(proxy, authority):
    got = load_one(f"https://localhost:{free_port()}/", "--proxy", proxy.url, authority=authority, fails=True)
    assert got.code == -1004 and "proxy" in got["error"]["text"]


@pytest.fixture(scope="module")
def digesting():
    one = Squid()
    yield one
    one.end()


def test_digest_answers_a_proxy_that_tunnels(digesting, secure_nginx, nginx, authority):
    proxy = digesting.url.replace("//", f"//{USER}:{PASSWORD}@")
    got = load_one(f"{secure_nginx.base}/file", "--proxy", proxy, authority=authority)
    assert got.status == 200 and all(one["proxied"] for one in got.transactions)
    assert digesting.users("CONNECT", 2) == [(407, "-"), (200, USER)]
    # Forwarded requests have the same credential.
    assert load_one(f"{nginx.base}/file", "--proxy", proxy).status == 200
    assert digesting.users("GET", 2) == [(407, "-"), (200, USER)]


def test_a_wrong_digest_password_is_a_refusal_of_the_proxy(digesting, secure_nginx, authority):
    proxy = digesting.url.replace("//", f"//{USER}:wrong@")
    got = load_one(f"{secure_nginx.base}/file", "--proxy", proxy, authority=authority, fails=True)
    assert got.code == -1013
