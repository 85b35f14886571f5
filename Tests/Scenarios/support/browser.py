"""Headless Chromium, driven over its debugging port by the websockets package."""

import asyncio
import base64
import contextlib
import json
import os
import re

from websockets.asyncio.client import connect

from .deadlines import seconds
from .programs import Program, find


@contextlib.contextmanager
def launched(folder):
    """Address of the debugging interface of a Chromium. It does not start its sandbox as root."""
    words = ["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-port=0",
             "--remote-allow-origins=*", f"--user-data-dir={folder / 'profile'}", "about:blank"]
    if os.getuid() == 0:
        words.insert(0, "--no-sandbox")
    name = find("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    with Program(name, *words) as program:
        line = program.output.wait_for(lambda text: "DevTools listening on" in text, "the debugging port", within=60)
        debugger = re.search(r"ws://\S+", line).group(0)
        yield debugger
        # The process is Debian's script around the browser: the browser itself has to be closed.
        asyncio.run(asyncio.wait_for(_close(debugger), seconds(20)))


async def _close(debugger):
    async with connect(debugger, max_size=None) as browser:
        await browser.send(json.dumps({"id": 1, "method": "Browser.close"}))
        await browser.wait_closed()


def run(body):
    """Runs a coroutine of a test, with a deadline."""
    return asyncio.run(asyncio.wait_for(body, seconds(90)))


class Browser:
    """A connection to Chromium, `async with Browser(debugger) as browser`."""

    def __init__(self, debugger):
        self.debugger = debugger
        self.number = 0
        self.replies = {}
        self.pages = {}

    async def __aenter__(self):
        self.socket = await connect(self.debugger, max_size=None)
        self.reader = asyncio.create_task(self.read())
        return self

    async def __aexit__(self, *_):
        self.reader.cancel()
        await self.socket.close()

    async def read(self):
        async for text in self.socket:
            message = json.loads(text)
            if "id" in message:
                self.replies.pop(message["id"]).set_result(message)
            elif message.get("sessionId") in self.pages:
                self.pages[message["sessionId"]].happened(message["method"], message.get("params", {}))

    async def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        reply = self.replies[self.number] = asyncio.get_running_loop().create_future()
        await self.socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        answer = await reply
        assert "error" not in answer, answer
        return answer["result"]

    async def open(self, url, width=1280, height=900, **media):
        """A new page in a context of its own, loaded; `media` are features like `prefers_color_scheme`."""
        context = await self.call("Target.createBrowserContext")
        target = await self.call("Target.createTarget", url="about:blank", browserContextId=context["browserContextId"])
        session = (await self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True))["sessionId"]
        page = self.pages[session] = Page(self, session)
        for name in ("Page", "Runtime", "Log", "Network"):
            await page.call(f"{name}.enable")
        await page.call("Page.setLifecycleEventsEnabled", enabled=True)
        await page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        await page.call("Emulation.setEmulatedMedia", features=features)
        await page.wait_loaded((await page.call("Page.navigate", url=url))["loaderId"])
        return page


class Page:
    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        # Names of the documents that have been loaded. The first one is the empty one of a new page.
        self.loads, self.loaded = set(), asyncio.Event()
        # What a developer would see in red: exceptions, violations of policies, failed requests.
        self.complaints = []

    def happened(self, method, parameters):
        if method == "Page.lifecycleEvent" and parameters["name"] == "load":
            self.loads.add(parameters["loaderId"])
            self.loaded.set()
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(parameters["entry"])

    async def wait_loaded(self, document):
        while document not in self.loads:
            self.loaded.clear()
            await self.loaded.wait()

    async def call(self, method, **parameters):
        return await self.browser.call(method, self.session, **parameters)

    async def evaluate(self, script):
        result = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def until(self, script):
        """Waits until the expression is true in the page, and returns its value."""
        return await self.evaluate(
            "new Promise(done => { const look = () => { const value = (%s); value ? done(value) : requestAnimationFrame(look); };"
            " look(); })" % script)

    async def press(self, key, code=None):
        """Presses and releases a key, as a person at the keyboard."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        number = {"Enter": 13, "Tab": 9}.get(key, 0)
        common = {"key": key, "code": code or key, "windowsVirtualKeyCode": number}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    async def type(self, text):
        await self.call("Input.insertText", text=text)

    async def screenshot(self):
        return base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"])
