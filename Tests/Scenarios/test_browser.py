"""Headless Chromium opens `/echo` and `/chat/x` from a page, driven over its debugging port by the websockets package."""

import asyncio
import http.server
import json
import threading

import pytest
from websockets.asyncio.client import connect

from support import configuration
from support.browser import launched
from support.deadlines import seconds

ECHO = """
(async () => {
    const socket = new WebSocket('ws://127.0.0.1:%d/echo');
    socket.binaryType = 'arraybuffer';
    const next = () => new Promise((done, fail) => {
        socket.onmessage = event => done(event.data);
        socket.onclose = event => fail('closed ' + event.code);
    });
    await new Promise((done, fail) => { socket.onopen = done; socket.onerror = () => fail('refused'); });
    const seen = { extensions: socket.extensions };
    socket.send('from the page: é😀');
    seen.text = await next();
    const bytes = new Uint8Array(300000).map((_, at) => at %% 251);
    socket.send(bytes);
    const back = new Uint8Array(await next());
    seen.binary = back.length === bytes.length && back.every((byte, at) => byte === bytes[at]);
    const closed = new Promise(done => { socket.onclose = event => done([event.code, event.reason, event.wasClean]); });
    socket.close(3001, 'done');
    seen.close = await closed;
    return seen;
})()
"""

CHAT = """
(async () => {
    const join = room => new Promise((done, fail) => {
        const socket = new WebSocket('ws://127.0.0.1:%d/chat/' + room);
        socket.heard = [];
        socket.onmessage = event => { socket.heard.push(event.data); if (socket.awaited) socket.awaited(); };
        socket.onopen = () => done(socket);
        socket.onerror = () => fail('refused');
    });
    const heard = (socket, count) => new Promise(done => {
        socket.awaited = () => { if (socket.heard.length >= count) done(); };
        socket.awaited();
    });
    const [first, second, stranger] = [await join('x'), await join('x'), await join('y')];
    second.send('from the second');
    await heard(first, 1);
    first.send('from the first');
    await heard(second, 1);
    stranger.send('to an empty room');
    first.send('the end');
    await heard(second, 2);
    return [first.heard, second.heard, stranger.heard];
})()
"""


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<!doctype html><title>page</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def page():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def chromium(tmp_path):
    """Address of Chromium's debugging interface."""
    with launched(tmp_path) as debugger:
        yield debugger


async def evaluate(debugger, url, script):
    """Runs the script in a page at `url` and returns its result."""
    async with connect(debugger, max_size=None) as browser:
        number = 0
        loads = set()

        def note(event):
            if event.get("method") == "Page.lifecycleEvent" and event["params"]["name"] == "load":
                loads.add(event["params"]["loaderId"])

        async def call(method, session=None, **parameters):
            nonlocal number
            number += 1
            message = {"id": number, "method": method, "params": parameters}
            await browser.send(json.dumps(message | ({"sessionId": session} if session else {})))
            while True:
                answer = json.loads(await browser.recv())
                if answer.get("id") == number:
                    assert "error" not in answer, answer
                    return answer["result"]
                note(answer)

        target = await call("Target.createTarget", url="about:blank")
        attached = await call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        session = attached["sessionId"]
        await call("Page.enable", session)
        await call("Page.setLifecycleEventsEnabled", session, enabled=True)
        # Not the event of the empty page before.
        document = (await call("Page.navigate", session, url=url))["loaderId"]
        while document not in loads:
            note(json.loads(await browser.recv()))
        result = await call("Runtime.evaluate", session, expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"]["value"]


@pytest.fixture
def served(sluice, tmp_path):
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
        [configuration.route("echo", "echo", path="/echo", compress=True), configuration.route("chat", "chat", path="/chat/{room}")])
    return sluice("serve", "--config", file)


def test_a_page_exchanges_messages_with_echo(served, chromium, page):
    seen = asyncio.run(asyncio.wait_for(evaluate(chromium, page, ECHO % served.port()), seconds(60)))
    assert seen["text"] == "from the page: é😀" and seen["binary"] is True
    code, _, clean = seen["close"]
    assert (code, clean) == (3001, True)
    assert seen["extensions"].startswith("permessage-deflate")


def test_pages_exchange_messages_in_a_chat_room(served, chromium, page):
    first, second, stranger = asyncio.run(asyncio.wait_for(evaluate(chromium, page, CHAT % served.port()), seconds(60)))
    assert (first, second, stranger) == (["from the second"], ["from the first", "the end"], [])
