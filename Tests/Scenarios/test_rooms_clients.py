"""The programs of the article on rooms, as they are printed: official clients and our own hold one conversation."""

import asyncio
import importlib.metadata
import itertools
import subprocess
import sys

import pytest

from support import configuration, documents
from support.brokers import await_redis
from support.browser import Browser, launched, run
from support.control import Control
from support.deadlines import Lines, eventually

ARTICLE = documents.ARTICLES / "Rooms.md"

# Keeps what a program prints.
PRINTS = "<!DOCTYPE html><meta charset=utf-8><script>const heard = []; console.log = text => heard.push(text);</script>"

# The wheel of django-instant contains centrifuge-js, and makes one client with it: the class is that client's.
EXPOSED = """
<script src=/instant.js></script>
<script>
  const fetchOfTheBrowser = window.fetch;
  window.fetch = async () => new Response('{"csrf_token": "", "ws_token": "", "channels": []}');
  const instant = $instant.useInstant();
  const ready = instant.init('', `ws://${location.host}`).then(() => { window.Centrifuge = instant.getClient().constructor; });
</script>
"""

# A client without a WebSocket, as the article says it.
STREAM = """
<script>
  ready.then(() => {
    window.fetch = fetchOfTheBrowser;
    const path = `http://${location.host}/connection/uni_sse`;
    window.client = new Centrifuge(
      [{ transport: location.hash.slice(1), endpoint: path }],
      { emulationEndpoint: path, minReconnectDelay: 10, maxReconnectDelay: 100 });
    window.room = client.newSubscription('talk:lobby');
    room.on('publication', ctx => console.log(ctx.data.text));
    room.on('subscribed', ctx => console.log(`subscribed, recovered ${ctx.recovered}`));
    room.subscribe();
    client.connect();
  });
</script>
"""


def program(language, text):
    found = [block for _, block in documents.blocks(ARTICLE, language) if text in block]
    assert len(found) == 1, f"{ARTICLE.name} has {len(found)} programs with {text}"
    return found[0]


def centrifuge_js():
    """The script of django-instant, with centrifuge-js in it."""
    files = importlib.metadata.files("django-instant") or []
    return next(one for one in files if one.name == "index.min.js").read_text()


@pytest.fixture
def serve(sluice, tmp_path, broker):
    """Starts the gateway of the article, which serves the pages of the test too."""
    def start():
        cluster = broker()
        gateway = sluice("serve", "--config", write(tmp_path, cluster))
        if cluster:
            await_redis(Control.of(gateway))
        return gateway

    return start


def write(tmp_path, more):
    folder = tmp_path / "pages"
    folder.mkdir()
    official, own = program("js", "new Centrifuge("), program("js", "sluice-chat.js")
    (folder / "instant.js").write_text(centrifuge_js())
    (folder / "official.js").write_text(official)
    (folder / "official.html").write_text(
        f"{PRINTS}{EXPOSED}<script>ready.then(() => document.body.append(Object.assign(document.createElement('script'), "
        "{ src: '/official.js' })));</script><body>")
    (folder / "own.html").write_text(f"{PRINTS}<script type=module>{own}</script>")
    (folder / "stream.html").write_text(f"{PRINTS}{EXPOSED}{STREAM}")
    (folder / "events.html").write_text(f"{PRINTS}<script>{program('js', 'new EventSource(')}</script>")
    text = program("yaml", "rooms:").replace("127.0.0.1:8080", "127.0.0.1:0")
    pages = f"routes:\n  - name: pages\n    path: /{{path...}}\n    files: {folder}\n"
    file = tmp_path / "rooms.yaml"
    text = "control: {address: 'http://127.0.0.1:0'}\n" + text.replace("routes:\n", pages, 1)
    file.write_text(configuration.extended(text, more))
    return file


def test_official_clients_and_our_own_have_one_conversation(serve, tmp_path):
    service = serve()
    source = tmp_path / "program.py"
    source.write_text(program("python", "SubscriptionEventHandler").replace("127.0.0.1:8080", f"127.0.0.1:{service.port()}"))
    greetings = [f"hello from {name}" for name in ("Python", "centrifuge-js", "sluice-chat.js")]

    async def conversation(debugger, python):
        python.wait_for(greetings[0].__eq__, "the greeting of Python")
        async with Browser(debugger) as browser:
            official = await browser.open(f"http://127.0.0.1:{service.port()}/official.html")
            await official.until(f"heard.includes('{greetings[1]}')")
            own = await browser.open(f"http://127.0.0.1:{service.port()}/own.html")
            await own.until(f"heard.includes('{greetings[2]}')")
            await official.until(f"heard.includes('{greetings[2]}')")
            python.wait_for(greetings[2].__eq__, "the greeting of the last client")
            assert python.all() == greetings
            assert await official.evaluate("heard.filter(text => text.startsWith('hello'))") == greetings[1:]
            assert await own.evaluate("heard") == greetings[2:]
            for page in (official, own):
                assert [each for each in page.complaints if "favicon" not in str(each)] == []

    with launched(tmp_path) as debugger:
        process = subprocess.Popen([sys.executable, str(source)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        try:
            run(conversation(debugger, Lines(process.stdout)))
        finally:
            process.kill()
            process.wait()


def test_event_source_that_is_cut_misses_nothing(serve, tmp_path):
    gateway = serve()
    control = Control.of(gateway)

    def publish(number):
        control.post("/v1/rooms/talk%3Alobby:publish", {"data": {"text": f"message {number}"}}).expect(200)

    def cut():
        found = control.get("/v1/connections?route=events").expect(200)["items"]
        assert len(found) == 1
        control.request("DELETE", f"/v1/connections/{found[0]['id']}?abort=true").expect(200)

    async def conversation(debugger):
        async with Browser(debugger) as browser:
            page = await browser.open(f"http://127.0.0.1:{gateway.port()}/events.html")
            # `events` is the constant of the page's program.
            await page.until("events.readyState === EventSource.OPEN")
            # Over Redis, the response begins before the room is entered.
            await asyncio.to_thread(eventually, lambda: control.get("/v1/rooms/talk%3Alobby").json.get("members") == 1, "a member")
            await page.evaluate("window.losses = 0; events.addEventListener('error', () => losses++)")
            for number in (0, 3):
                await asyncio.to_thread(publish, number)
                await page.until(f"heard.includes('message {number}')")
                losses = await page.evaluate("losses")
                await asyncio.to_thread(cut)
                await page.until(f"losses > {losses}")
                for missed in (number + 1, number + 2):
                    await asyncio.to_thread(publish, missed)
                await page.until(f"heard.includes('message {number + 2}')")
            assert await page.evaluate("heard") == [f"message {number}" for number in range(6)]

    with launched(tmp_path) as debugger:
        run(conversation(debugger))


@pytest.mark.parametrize("transport", ["http_stream", "sse"])
def test_official_client_without_a_websocket_recovers(serve, tmp_path, transport):
    gateway = serve()
    control = Control.of(gateway)

    def cut():
        for found in control.get("/v1/connections?route=events").expect(200)["items"]:
            control.request("DELETE", f"/v1/connections/{found['id']}?abort=true")

    async def conversation(debugger):
        async with Browser(debugger) as browser:
            page = await browser.open(f"http://127.0.0.1:{gateway.port()}/stream.html#{transport}")
            await page.until("heard.includes('subscribed, recovered false')")
            await page.evaluate("room.publish({ text: 'own' }).then(() => true)")
            await page.until("heard.includes('own')")
            await asyncio.to_thread(cut)
            await asyncio.to_thread(
                lambda: control.post("/v1/rooms/talk%3Alobby:publish", {"data": {"text": "missed"}}).expect(200))
            await page.until("heard.includes('missed')")
            heard = await page.evaluate("heard.filter(text => text !== 'Tokens')")
            # The browser may reuse the connection of a command for its next response, which is then cut too.
            assert [text for text, _ in itertools.groupby(heard)] == [
                "subscribed, recovered false", "own", "subscribed, recovered true", "missed"]
            assert heard.count("own") == heard.count("missed") == 1

    with launched(tmp_path) as debugger:
        run(conversation(debugger))
