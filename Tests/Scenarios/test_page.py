"""The page of `sluice serve` in headless Chromium: echo, chat, a lost connection; by keyboard, narrow and wide, light and dark."""

import asyncio
import gzip
import json
import os
import re
import urllib.error
import urllib.request

import pytest
from websockets.asyncio.client import connect

from support import configuration
from support.browser import Browser, launched, run
from support.chat_service import ChatService
from support.deadlines import eventually


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with launched(tmp_path_factory.mktemp("chromium")) as debugger:
        yield debugger


@pytest.fixture
def service():
    with ChatService() as one:
        yield one


@pytest.fixture
def page(sluice, tmp_path, service):
    """URL of the page, whose chat is that of the test."""
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")], [
            configuration.route("page", "page", path="/"), configuration.route("script", "page", path="/sluice-chat.js"),
            configuration.route("echo", "echo", path="/echo", compress=True),
            configuration.route("chat", f"ws://127.0.0.1:{service.port}/connection/websocket", path="/connection/websocket")])
    return f"http://127.0.0.1:{sluice('serve', '--config', file).port()}/"


def lines(log):
    return "[...document.querySelectorAll('#%s li')].map(item => item.textContent)" % log


async def enter(page, name, room="lobby"):
    await page.evaluate(f"document.getElementById('name').value = {json.dumps(name)}")
    await page.evaluate(f"document.getElementById('room').value = {json.dumps(room)}")
    await page.evaluate("document.querySelector('#enter button').click()")


async def say(page, text):
    await page.evaluate(f"document.getElementById('message').value = {json.dumps(text)}")
    await page.evaluate("document.querySelector('#say button').click()")


def heard(text):
    return f"[...document.querySelectorAll('#messages p')].some(item => item.textContent === {json.dumps(text)})"


def state(pattern):
    return "/%s/.test(document.getElementById('chat-state').textContent)" % pattern


async def note_states(page):
    """The page keeps the states of the chat from now on in `states`: some last for a moment."""
    await page.evaluate("""
        window.states = [];
        new MutationObserver(() => states.push(document.getElementById('chat-state').textContent))
            .observe(document.getElementById('chat-state'), { childList: true, characterData: true, subtree: true })""")


def was(pattern):
    return "states.some(state => /%s/.test(state))" % pattern


# -- what is served

def test_page_needs_nothing_from_elsewhere(page):
    with urllib.request.urlopen(page) as answer:
        policy, text = answer.headers["Content-Security-Policy"], answer.read().decode()
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert not re.findall(r"(?:src|href)\s*=\s*\"(?:https?:)?//", text)
    assert "<noscript>" in text
    assert "innerHTML" not in text and "insertAdjacentHTML" not in text and "document.write" not in text


def test_page_loads_nothing_else(whole, chromium):
    url, _ = whole

    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(url)
            await enter(one, "Ada")
            await one.until(state("^Connected"))
            assert await one.evaluate("performance.getEntriesByType('resource').map(each => each.name)") == []
            assert one.complaints == []
    run(body())


def test_script_of_the_chat_is_small(page):
    with urllib.request.urlopen(f"{page}sluice-chat.js") as answer:
        script, tag = answer.read(), answer.headers["ETag"]
        assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    packed = urllib.request.Request(f"{page}sluice-chat.js", headers={"Accept-Encoding": "gzip, deflate, br, zstd"})
    with urllib.request.urlopen(packed) as answer:
        body = answer.read()
        assert answer.headers["Content-Encoding"] == "gzip" and answer.headers["Vary"] == "Accept-Encoding"
        assert answer.headers["ETag"] != tag
    assert len(body) < 4096 and gzip.decompress(body) == script
    again = urllib.request.Request(f"{page}sluice-chat.js", headers={"If-None-Match": tag})
    with pytest.raises(urllib.error.HTTPError) as unchanged:
        urllib.request.urlopen(again)
    assert unchanged.value.code == 304


# -- echo

def test_echo_returns_text_and_bytes_and_closes_with_a_code(page, chromium):
    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(page)
            await one.evaluate("document.getElementById('text-value').value = '<b>é😀</b>'")
            await one.evaluate("document.querySelector('#text button').click()")
            await one.until(f"{lines('echoes')}.some(line => line.startsWith('<b>é😀</b>') && line.endsWith(' ms'))")
            await one.evaluate("document.getElementById('size').value = 300000")
            await one.evaluate("document.querySelector('#binary button').click()")
            await one.until(f"{lines('echoes')}.some(line => line.startsWith('300000 bytes, the same'))")
            await one.evaluate("document.getElementById('measure').click()")
            await one.until("/median .* ms, fastest .* ms, slowest .* ms/.test(document.getElementById('times').textContent)")
            await one.evaluate("document.getElementById('code').value = 4321")
            await one.evaluate("document.querySelector('#close button').click()")
            await one.until(f"{lines('echoes')}.includes('Connection closed with 4321')")
            # Another message connects again.
            await one.evaluate("document.querySelector('#text button').click()")
            await one.until("/^Connected/.test(document.getElementById('echo-state').textContent)")
            assert one.complaints == []
    run(body())


def test_page_works_below_a_prefix(sluice, tmp_path, chromium, service):
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")], [
            configuration.route("page", "page", path="/tools/{file...}"),
            configuration.route("echo", "echo", path="/tools/echo"),
            configuration.route("chat", f"ws://127.0.0.1:{service.port}/connection/websocket", path="/tools/connection/websocket")])
    port = sluice("serve", "--config", file).port()

    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(f"http://127.0.0.1:{port}/tools/")
            await one.evaluate("document.querySelector('#text button').click()")
            await one.until(f"{lines('echoes')}.some(line => line.startsWith('Hello'))")
            await enter(one, "Ada")
            await one.until(state("^Connected"))
            assert one.complaints == []
    run(body())


# -- chat

def test_two_pages_talk_and_see_each_other(page, chromium):
    async def body():
        async with Browser(chromium) as browser:
            first, second = await browser.open(page), await browser.open(page)
            await enter(first, "Ada")
            await first.until(state("^Connected"))
            await say(first, "anyone?")
            await first.until(heard("anyone?"))
            # Blanks around the name of a room, as a keyboard adds them, are no part of it.
            await enter(second, "<i>Bob</i>", room=" lobby ")
            # What was said before, and who is there.
            await second.until(heard("anyone?"))
            for one in (first, second):
                await one.until(f"{lines('people')}.join() === '<i>Bob</i>,Ada'")
            await first.until(f"{lines('messages')}.includes('<i>Bob</i> entered')")
            await say(second, "<img src=x onerror=alert(1)>")
            await first.until(heard("<img src=x onerror=alert(1)>"))
            assert await first.evaluate("document.querySelectorAll('#messages img, #messages i, #people i').length") == 0
            await second.until("document.querySelectorAll('#messages .own').length === 1")
            await second.evaluate("document.getElementById('leave').click()")
            await first.until(f"{lines('people')}.join() === 'Ada'")
            assert first.complaints == [] and second.complaints == []
    run(body())


def test_message_of_any_form_breaks_nothing(page, chromium, service):
    odd = {"toString": 1, "valueOf": 1}

    async def body():
        async with Browser(chromium) as browser:
            service.publish("lobby", {"text": "old", "name": odd, "sent": odd})
            service.publish("lobby", {"text": "said before", "name": "Eve"})
            one = await browser.open(page)
            await enter(one, "Ada")
            await one.until(state("^Connected"))
            await one.until(heard("said before"))
            await one.until(f"{lines('people')}.join() === 'Ada'")
            for data in ({"text": odd, "name": odd, "sent": odd}, {"entered": True, "name": odd}, odd, None, 7, [odd]):
                service.publish("lobby", data)
            service.publish("lobby", {"text": "said after", "name": "Eve"})
            await one.until(heard("said after"))
            assert one.complaints == []
    run(body())


def test_lost_connection_misses_nothing(page, chromium, service):
    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(page)
            await enter(one, "Ada")
            await one.until(state("^Connected"))
            # The page publishes that Ada entered. It has received that when it has received what follows.
            await asyncio.to_thread(eventually, lambda: service.history("lobby"), "the page's first publication")
            service.publish("lobby", {"text": "before", "name": "Eve"})
            await one.until(heard("before"))
            await note_states(one)
            service.cut()
            service.publish("lobby", {"text": "missed 1", "name": "Eve"})
            service.publish("lobby", {"text": "missed 2", "name": "Eve"})
            await one.until(was("lost"))
            await one.until(heard("missed 2"))
            await one.until(state("^Connected"))
            said = await one.evaluate("[...document.querySelectorAll('#messages p')].map(item => item.textContent)")
            assert said == ["before", "missed 1", "missed 2"]
            await say(one, "back")
            await one.until(heard("back"))
    run(body())
    again = [command["subscribe"] for command in service.commands if "subscribe" in command][-1]
    assert again == {"channel": "lobby", "recover": True, "epoch": "first", "offset": 2}


def test_publication_in_the_message_with_a_recovery_comes_after_it(page, chromium, service):
    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(page)
            await enter(one, "Ada")
            await one.until(state("^Connected"))
            await asyncio.to_thread(eventually, lambda: service.history("lobby"), "the page's first publication")
            service.publish("lobby", {"text": "before", "name": "Eve"})
            await one.until(heard("before"))
            service.add("lobby", {"text": "missed", "name": "Eve"})
            service.behind = {"text": "behind", "name": "Eve"}
            service.cut()
            await one.until(heard("behind"))
            said = await one.evaluate("[...document.querySelectorAll('#messages p')].map(item => item.textContent)")
            assert said == ["before", "missed", "behind"]
    run(body())


def test_loss_that_cannot_be_recovered_is_shown(page, chromium, service):
    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(page)
            await enter(one, "Ada")
            await one.until(state("^Connected"))
            service.epoch = "second"
            service.cut()
            await one.until(f"{lines('messages')}.some(line => line.includes('some messages may be missing'))")
            await say(one, "on")
            await one.until(heard("on"))
    run(body())


@pytest.mark.parametrize("code, returns", [(3000, True), (3501, False), (4100, True), (4501, False), (1012, True)])
def test_close_codes_say_whether_to_come_back(page, chromium, service, code, returns):
    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(page)
            await enter(one, "Ada")
            await one.until(state("^Connected"))
            await note_states(one)
            service.close(code, "as tested")
            if returns:
                await one.until(was("lost"))
                await one.until(state("^Connected"))
            else:
                await one.until(state("Ended by the server: as tested"))
                # Longer than the first pause.
                await one.evaluate("new Promise(done => setTimeout(done, 1500))")
    run(body())
    assert sum("connect" in command for command in service.commands) == (2 if returns else 1)


def test_pings_are_answered_and_their_absence_is_a_loss(page, chromium, service):
    service.ping = 1
    script = f"""
        (async () => {{
            const {{ Chat }} = await import('{page}sluice-chat.js');
            const chat = new Chat('/connection/websocket', {{ timeout: 2000 }});
            const states = [];
            await new Promise(done => chat.onstate = state => {{ states.push(state); if (state === 'connected') done(); }});
            const room = chat.subscribe('quiet');
            await new Promise(done => room.onsubscribed = done);
            await new Promise(done => setTimeout(done, 2500));
            const refused = await new Promise(done => chat.subscribe('forbidden', {{ onerror: done }}));
            const unknown = await chat.call('dance', {{}}).catch(error => error);
            chat.disconnect();
            return [states, refused.code, unknown.code, await room.publish(1).catch(error => error.message)];
        }})()"""

    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(page)
            return await one.evaluate(script)
    assert run(body()) == [["connected", "disconnected"], 103, 104, "not connected"]
    assert service.pongs >= 1
    # Commands of one turn leave together.
    assert [next(iter(set(one) - {"id"})) for one in service.commands if one][:2] == ["connect", "subscribe"]


# -- the gateway's own rooms

@pytest.fixture
def whole(sluice, tmp_path):
    """(URL of the page, URL of the control plane) of a gateway like `sluice serve` without a file, on free ports."""
    file = configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")], [
            configuration.route("page", "page", path="/"), configuration.route("script", "page", path="/sluice-chat.js"),
            configuration.route("echo", "echo", path="/echo"), configuration.route("rooms", "rooms", path="/connection/websocket"),
            configuration.route("chat", "chat", path="/chat/{room}")],
        rooms={"policies": [{"name": "all", "pattern": "*", "history-size": 100, "history-time": "1h", "recovery": "stream",
                             "presence": True, "join-leave": True}]},
        control={"address": "http://127.0.0.1:0"})
    one = sluice("serve", "--config", file)
    control = next(line for line in one.output.all() if line.startswith("control on ")).split()[-1]
    return f"http://127.0.0.1:{one.port()}/", control


def test_pages_talk_in_the_rooms_of_the_gateway(whole, chromium):
    url, _ = whole

    async def body():
        async with Browser(chromium) as browser:
            first, second = await browser.open(url), await browser.open(url)
            await enter(first, "Ada")
            await first.until(state("^Connected"))
            await say(first, "anyone?")
            await first.until(heard("anyone?"))
            await enter(second, "Bob")
            await second.until(heard("anyone?"))
            for one in (first, second):
                await one.until(f"{lines('people')}.join() === 'Ada,Bob'")
            await say(second, "here")
            await first.until(heard("here"))
            await second.until("document.querySelectorAll('#messages .own').length === 1")
            await second.evaluate("document.getElementById('leave').click()")
            await first.until(f"{lines('people')}.join() === 'Ada'")
            await first.until(f"{lines('messages')}.includes('Bob left')")
            assert first.complaints == [] and second.complaints == []
    run(body())


def test_page_that_was_cut_off_gets_what_was_said_meanwhile(whole, chromium):
    url, control = whole

    def cut():
        with urllib.request.urlopen(f"{control}/v1/connections?route=rooms&state=open") as answer:
            ids = [one["id"] for one in json.load(answer)["items"]]
        for number in ids:
            urllib.request.urlopen(urllib.request.Request(f"{control}/v1/connections/{number}?code=3001", method="DELETE")).close()

    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(url)
            await enter(one, "Ada")
            await one.until(state("^Connected"))
            # A plain WebSocket client of the same room: what it sends reaches the page as data.
            async with connect(url.replace("http", "ws") + "chat/lobby", proxy=None) as plain:
                await plain.send(json.dumps({"text": "before", "name": "Eve"}))
                await one.until(heard("before"))
                await note_states(one)
                await asyncio.to_thread(cut)
                await one.until(was("lost"))
                for number in range(5):
                    await plain.send(json.dumps({"text": f"missed {number}", "name": "Eve"}))
                await one.until(heard("missed 4"))
            said = await one.evaluate("[...document.querySelectorAll('#messages p')].map(item => item.textContent)")
            assert said == ["before", *(f"missed {number}" for number in range(5))]
            assert not await one.evaluate(f"{lines('messages')}.some(line => line.includes('missing'))")
    run(body())


def test_script_bears_calls_at_any_time(whole, chromium):
    url, _ = whole
    script = f"""
        (async () => {{
            const {{ Chat }} = await import('{url}sluice-chat.js');
            const seen = [], tokens = [];
            let asked;
            const question = () => new Promise(done => asked = done);
            const first = question();
            const token = () => new Promise(done => {{ tokens.push(done); asked(); }});
            const chat = new Chat('/connection/websocket', {{ token }});
            await first;
            // The connection is open, but the token is not there yet.
            seen.push(await chat.call('publish', {{ channel: 'a', data: 1 }}).catch(error => error.message));
            // Another connection asks for a token of its own before the first one has come.
            const second = question();
            chat.disconnect();
            chat.connect();
            await second;
            const room = await new Promise(done => {{
                chat.onstate = (state, why) => {{
                    seen.push(state);
                    if (state !== 'connected') return done(why);
                    const onerror = error => seen.push(error.code);
                    const room = chat.subscribe('a', {{ onerror, onsubscribed: () => done(room) }});
                }};
                for (const give of tokens) give('');
            }});
            // A room that was entered gets other handlers.
            const heard = new Promise(done => chat.subscribe('a', {{ onmessage: message => done(message.data) }}));
            await room.publish('hello');
            seen.push(await heard);
            chat.disconnect();
            await room.unsubscribe();
            return [seen, chat.rooms.size];
        }})()"""

    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(url)
            answer = await one.evaluate(script)
            assert one.complaints == []
            return answer
    assert run(body()) == [["not connected", "connected", "hello", "disconnected"], 0]


def test_handler_that_throws_loses_no_message(whole, chromium):
    url, _ = whole
    script = f"""
        (async () => {{
            const {{ Chat }} = await import('{url}sluice-chat.js');
            const seen = [], errors = [];
            window.addEventListener('error', event => {{ errors.push(event.message); event.preventDefault(); }});
            const chat = new Chat('/connection/websocket');
            const entered = () => new Promise(done => room.onsubscribed = done);
            const room = chat.subscribe('a', {{
                onmessage: ({{ data }}) => {{
                    seen.push(data);
                    if (data === 0) throw new Error('mistake');
                }},
                onerror: error => seen.push(error.message),
            }});
            await entered();
            await room.publish('first');
            chat.disconnect();
            const other = new Chat('/connection/websocket');
            const writer = await new Promise(done => {{
                const writer = other.subscribe('a', {{ onsubscribed: () => done(writer) }});
            }});
            for (let number = 0; number < 5; number++) await writer.publish(number);
            const back = entered();
            chat.connect();
            const how = await back;
            await writer.publish('later');
            while (seen.at(-1) !== 'later') await new Promise(requestAnimationFrame);
            chat.disconnect();
            other.disconnect();
            return [seen, how.recovered, errors.map(text => text.includes('mistake'))];
        }})()"""

    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(url)
            return await one.evaluate(script)
    assert run(body()) == [["first", 0, 1, 2, 3, 4, "later"], True, [True]]


# -- people

def test_keyboard_alone_is_enough(page, chromium):
    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(page)
            focus = "document.activeElement.id || document.activeElement.className || document.activeElement.textContent"
            seen = []
            for _ in range(4):
                await one.press("Tab")
                seen.append(await one.evaluate(focus))
            assert seen == ["skip", "name", "room", "Enter"]
            await one.evaluate("document.getElementById('name').focus()")
            await one.type("Ada")
            await one.press("Enter")
            await one.until(state("^Connected"))
            assert await one.evaluate(focus) == "message"
            await one.type("by keyboard")
            await one.press("Enter")
            await one.until(heard("by keyboard"))
    run(body())


def test_everything_has_a_name_and_changes_are_announced(page, chromium):
    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(page)
            await one.call("Accessibility.enable")
            nodes = (await one.call("Accessibility.getFullAXTree"))["nodes"]
            roles = {"textbox", "spinbutton", "button", "combobox", "link", "log", "status"}
            unnamed = [node for node in nodes if not node.get("ignored") and node["role"]["value"] in roles - {"status"}
                       and not node.get("name", {}).get("value")]
            assert unnamed == []
            found = {node["role"]["value"] for node in nodes if not node.get("ignored")}
            assert {"textbox", "button", "log", "status", "main", "heading"} <= found
            # A list with another role would take the role of its items.
            await one.evaluate("document.querySelector('#text button').click()")
            await one.until(f"{lines('echoes')}.some(line => line.startsWith('Hello'))")
            nodes = (await one.call("Accessibility.getFullAXTree"))["nodes"]
            roles = {node["nodeId"]: node["role"]["value"] for node in nodes}
            items = [node for node in nodes if node["role"]["value"] == "listitem"]
            assert items and all(roles[node["parentId"]] == "list" for node in items)
            assert await one.evaluate("[...document.querySelectorAll('[role=log]')].every(log => log.matches('div'))")
            assert await one.evaluate("document.documentElement.lang") == "en"
    run(body())


CONTRAST = """
(() => {
    const parse = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
    const ground = node => { for (; node; node = node.parentElement) { const color = parse(getComputedStyle(node).backgroundColor);
        if (color.length < 4 || color[3] > 0) return color; } return parse(getComputedStyle(document.body).backgroundColor); };
    const bad = [];
    for (const node of document.querySelectorAll('h1, h2, h3, p, label, input, button, a:not(.skip), li, output, code')) {
        if (!node.getClientRects().length) continue;
        const [a, b] = [light(parse(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(node.outerHTML.slice(0, 80));
    }
    return bad;
})()
"""


@pytest.mark.parametrize("width", [320, 390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_every_width_and_is_legible(page, chromium, width, scheme):
    async def body():
        async with Browser(chromium) as browser:
            one = await browser.open(page, width=width, prefers_color_scheme=scheme)
            await enter(one, "Ada")
            await one.until(state("^Connected"))
            await say(one, "A longer message that has to break somewhere: " + "x" * 120)
            await one.until("document.querySelectorAll('#messages p').length === 1")
            assert await one.evaluate("document.documentElement.scrollWidth") <= width
            assert await one.evaluate(CONTRAST) == []
            small = "[...document.querySelectorAll('button')].filter(b => b.offsetHeight && b.offsetHeight < 36).length"
            assert await one.evaluate(small) == 0
            if folder := os.environ.get("SLUICE_SCREENSHOTS"):
                with open(f"{folder}/page-{width}-{scheme}.png", "wb") as file:
                    file.write(await one.screenshot())
    run(body())
