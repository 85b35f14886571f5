"""The gateway and `sluice connect` through proxies: tinyproxy and microsocks, with and without a password."""

import threading

import pytest
from websockets.sync.server import serve

from support import websocket
from support.configuration import listener as listening, upstream
from support.configured import Configured
from support.connect import connect
from support.programs import free_port
from support.proxies import PASSWORD, USER, Microsocks, SecureTinyproxy, Tinyproxy
from support.websocket import Listener, Wire, parse_head


def start(name, tmp_path_factory):
    asks = name.endswith("asks")
    return Tinyproxy(tmp_path_factory.mktemp("proxy"), asks) if "tinyproxy" in name else Microsocks(asks)


@pytest.fixture(scope="module", params=["tinyproxy", "tinyproxy that asks", "microsocks", "microsocks that asks"])
def proxy(request, tmp_path_factory):
    one = start(request.param, tmp_path_factory)
    yield one
    one.end()


@pytest.fixture(scope="module")
def asking(tmp_path_factory):
    one = Tinyproxy(tmp_path_factory.mktemp("proxy"), asks=True)
    yield one
    one.end()


@pytest.fixture(scope="module")
def echo():
    with serve(lambda socket: [socket.send(message) for message in socket], "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"
        server.shutdown()


def test_a_stream_is_relayed_through_a_proxy(proxy, bridge, listener):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy", proxy.url)
    with Wire.connect(gateway.address()) as near:
        far = listener.accept()
        near.send(b"there")
        assert far.receive(5) == b"there"
        far.send(b"and back")
        assert near.receive(8) == b"and back"
        near.finish_sending()
        far.close()


def test_a_websocket_is_relayed_through_a_proxy(proxy, bridge, echo):
    gateway = bridge("ws://127.0.0.1:0", echo, "--proxy", proxy.url)
    with websocket.connect(gateway.address(), "/") as client:
        client.text("hello")
        client.expect_text("hello")


def test_a_target_with_tls_is_verified_behind_the_proxy(proxy, bridge, authority, server_certificate):
    with Listener(tls=authority.server_context(server_certificate)) as far:
        gateway = bridge("tcp://127.0.0.1:0", far.url("tls"), "--ca", authority.certificate, "--server-name", "localhost",
                         "--proxy", proxy.url)
        with Wire.connect(gateway.address()) as near:
            peer = far.accept()
            near.send(b"secret")
            assert peer.receive(6) == b"secret"
            peer.close()


@pytest.fixture(scope="module", params=["open", "asks"])
def secure_proxy(request, tmp_path_factory, server_certificate):
    one = SecureTinyproxy(tmp_path_factory.mktemp("proxy"), server_certificate, request.param == "asks")
    yield one
    one.end()


def test_a_proxy_is_reached_by_tls(secure_proxy, bridge, listener, echo, authority):
    roots = {"SSL_CERT_FILE": str(authority.certificate)}
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy", secure_proxy.url, environment=roots)
    with Wire.connect(gateway.address()) as near:
        far = listener.accept()
        near.send(b"there")
        assert far.receive(5) == b"there"
        far.send(b"and back")
        assert near.receive(8) == b"and back"
        near.finish_sending()
        far.close()
    web = bridge("ws://127.0.0.1:0", echo, "--proxy", secure_proxy.url, environment=roots)
    with websocket.connect(web.address(), "/") as client:
        client.text("hello")
        client.expect_text("hello")
    answer = connect("--proxy", secure_proxy.url, "--one", echo, text="hello\n", environment=roots)
    assert answer == (0, b"hello\n", "")


def test_a_target_with_tls_is_verified_behind_a_proxy_with_tls(secure_proxy, bridge, authority, server_certificate):
    with Listener(tls=authority.server_context(server_certificate)) as far:
        gateway = bridge("tcp://127.0.0.1:0", far.url("tls"), "--ca", authority.certificate, "--server-name", "localhost",
                         "--proxy", secure_proxy.url, environment={"SSL_CERT_FILE": str(authority.certificate)})
        with Wire.connect(gateway.address()) as near:
            peer = far.accept()
            near.send(b"secret")
            assert peer.receive(6) == b"secret"
            peer.close()


def test_a_configured_upstream_has_a_proxy_with_tls(secure_proxy, sluice, tmp_path, authority, listener):
    (tmp_path / "password").write_text(PASSWORD + "\n")
    proxy = {"url": f"https://127.0.0.1:{secure_proxy.port}", "user": USER, "password-file": str(tmp_path / "password")}
    one = Configured(
        sluice, tmp_path, [listening("raw", "tcp://127.0.0.1:0", route="raw")], [{"name": "raw", "target": "far"}],
        upstreams=[upstream("far", listener.url("tcp"), proxy=proxy)],
        environment={"SSL_CERT_FILE": str(authority.certificate)})
    with Wire.connect(one.gateway.address()) as near:
        far = listener.accept()
        far.send(b"hello")
        assert near.receive(5) == b"hello"
        far.close()


def test_a_proxy_whose_certificate_is_unknown_gets_no_connection(secure_proxy, bridge, listener, echo):
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy", secure_proxy.url)
    Wire.expect_refusal(gateway.address(), within=20)
    line = gateway.wait_log("connection closed")
    assert "reason=upstream/connecting/" in line and f"127.0.0.1:{secure_proxy.port}" in line and "certificate" in line
    code, _, errors = connect("--proxy", secure_proxy.url, echo)
    assert code == 69 and "certificate" in errors and "proxy" in errors


def test_connect_uses_a_proxy(proxy, echo):
    assert connect("--proxy", proxy.url, "--one", echo, text="hello\n") == (0, b"hello\n", "")


def test_a_wrong_proxy_password_is_reported_as_a_refusal_of_the_proxy(asking, bridge, listener, echo):
    wrong = asking.url.replace(PASSWORD, "wrong")
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy", wrong)
    Wire.expect_refusal(gateway.address(), within=20)
    line = gateway.wait_log("connection closed")
    assert "reason=upstream/connecting/proxy" in line and "the proxy answered 4" in line and f"127.0.0.1:{asking.port}" in line
    assert not any("wrong" in line for line in gateway.log.all())
    web = bridge("ws://127.0.0.1:0", echo, "--proxy", wrong)
    with Wire.connect(web.address()) as near:
        near.send(websocket.request())
        assert parse_head(near.receive_head()).status == 502
    code, _, errors = connect("--proxy", wrong, echo)
    assert code == 69 and "the proxy answered 4" in errors and "--proxy none" in errors


def test_an_unreachable_proxy_is_named(bridge, listener):
    port = free_port()
    gateway = bridge("tcp://127.0.0.1:0", listener.url("tcp"), "--proxy", f"socks5h://127.0.0.1:{port}")
    Wire.expect_refusal(gateway.address(), within=20)
    line = gateway.wait_log("connection closed")
    assert "reason=upstream/connecting/proxy" in line and f"socks5h://127.0.0.1:{port}" in line


def test_a_proxy_that_never_answers_times_out(bridge, listener):
    with Listener() as silent:
        gateway = bridge("tcp://127.0.0.1:0", "tcp://127.0.0.1:9", "--connect-timeout", "200ms", "--proxy", silent.url("http"))
        Wire.expect_refusal(gateway.address(), within=30)
        assert "reason=upstream/connecting/proxy" in gateway.wait_log("connection closed")


def test_bridge_and_connect_use_the_proxy_of_the_environment(sluice):
    with Listener() as proxy:
        variables = {"all_proxy": f"http://{USER}:{PASSWORD}@127.0.0.1:{proxy.port}"}
        gateway = sluice("bridge", "tcp://127.0.0.1:0", "tcp://far.example:7", environment=variables)
        with Wire.connect(gateway.address()) as near:
            far = proxy.accept()
            asked = parse_head(far.receive_head())
            assert asked.start_line == "CONNECT far.example:7 HTTP/1.1"
            assert asked.header("Proxy-Authorization") == "Basic YWRhOnNlY3JldA=="
            far.send(b"HTTP/1.1 200 Connected\r\n\r\nhello")
            assert near.receive(5) == b"hello"
            far.close()
    for options, answer in (((), 1), (("--proxy", "none"), 0)):
        with Listener(within=20) as proxy:
            variables = {"http_proxy": f"http://127.0.0.1:{proxy.port}", "no_proxy": "other.example"}
            thread = threading.Thread(target=lambda: proxy.accept().close() if answer else None)
            thread.start()
            code, _, errors = connect("--timeout", "5s", *options, "ws://far.invalid/", environment=variables)
            thread.join()
            assert code == 69 and ("proxy" in errors) == bool(answer), errors


def test_serve_ignores_the_proxy_of_the_environment(sluice, tmp_path, listener):
    one = Configured(
        sluice, tmp_path, [listening("raw", "tcp://127.0.0.1:0", route="raw")], [{"name": "raw", "target": "far"}],
        upstreams=[upstream("far", "tcp://far.invalid:7", retries=0)],
        environment={"all_proxy": listener.url("http")})
    Wire.expect_refusal(one.gateway.address(), within=30)
    assert "reason=upstream/connecting/unreachable" in one.gateway.wait_log("connection closed")


def test_a_configuration_reads_the_proxy_password_from_a_file(asking, sluice, tmp_path, listener):
    (tmp_path / "password").write_text(PASSWORD + "\n")
    proxy = {"url": asking.base, "user": USER, "password-file": str(tmp_path / "password")}
    one = Configured(
        sluice, tmp_path, [listening("raw", "tcp://127.0.0.1:0", route="raw")], [{"name": "raw", "target": "far"}],
        upstreams=[upstream("far", listener.url("tcp"), proxy=proxy)])
    with Wire.connect(one.gateway.address()) as near:
        far = listener.accept()
        far.send(b"hello")
        assert near.receive(5) == b"hello"
        far.close()
