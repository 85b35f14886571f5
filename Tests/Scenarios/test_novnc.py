"""noVNC from Debian, served by `sluice bridge --web`, shows the picture of a real VNC server in headless Chromium."""

import os
import urllib.request

import pytest

from support.browser import Browser, launched, run
from support.programs import Program, find, free_port

WIDTH, HEIGHT = 64, 48
NOVNC = "/usr/share/novnc"


@pytest.fixture
def vnc(tmp_path):
    """A VNC server: (port, its picture with 32 bits for each pixel: blue, green, red)."""
    picture = b"".join(bytes([x * 4, y * 5, (x ^ y) * 3 % 256, 0]) for y in range(HEIGHT) for x in range(WIDTH))
    (tmp_path / "picture").write_bytes(picture)
    port = free_port()
    words = ["-rawfb", f"map:{tmp_path / 'picture'}@{WIDTH}x{HEIGHT}x32", "-localhost", "-no6", "-rfbport", port, "-forever", "-shared",
             "-nopw", "-norc", "-noxkb", "-nocursor"]
    with Program(find("x11vnc"), *words) as server:
        server.wait_listening(port)
        yield port, picture


@pytest.mark.parametrize("by", ["target", "token"])
def test_novnc_shows_the_picture_of_a_vnc_server(bridge, vnc, tmp_path, by):
    port, picture = vnc
    assert os.path.exists(f"{NOVNC}/vnc.html"), "novnc is not installed: run deploy/install-dependencies --tests"
    (tmp_path / "tokens").write_text(f"desk: 127.0.0.1:{port}\n")
    target, path = {
        "target": ([f"tcp://127.0.0.1:{port}"], "websockify"), "token": (["--targets", tmp_path / "tokens"], "websockify%3Ftoken%3Ddesk")}[by]
    gateway = bridge("ws://127.0.0.1:0/websockify", *target, "--web", NOVNC)
    url = f"http://127.0.0.1:{gateway.port()}/vnc.html?autoconnect=1&resize=off&path={path}"
    # A link within the directory.
    with urllib.request.urlopen(f"http://127.0.0.1:{gateway.port()}/vnc_auto.html") as answer:
        assert b"noVNC" in answer.read()
    pixels = """(() => {
        const canvas = document.querySelector('#noVNC_container canvas');
        if (!canvas || canvas.width !== %d || canvas.height !== %d) return false;
        const data = [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data];
        return data.some((value, at) => at %% 4 < 3 && value > 0) && data;
    })()""" % (WIDTH, HEIGHT)

    expected = [value for at in range(0, len(picture), 4) for value in (picture[at + 2], picture[at + 1], picture[at])]

    def is_whole(seen):
        got = [value for at, value in enumerate(seen) if at % 4 < 3]
        # JPEG rectangles may round colours.
        return max(abs(a - b) for a, b in zip(got, expected, strict=True)) <= 24

    async def body():
        async with Browser(debugger) as browser:
            page = await browser.open(url)
            # The server may answer before it has read the whole picture, and the parts of it are drawn one by one.
            while not is_whole(await page.until(pixels)):
                pass

    with launched(tmp_path) as debugger:
        run(body())
    gateway.wait_log(r"connection opened.*route=bridge")
    gateway.wait_log(r"connection opened.*route=web")
