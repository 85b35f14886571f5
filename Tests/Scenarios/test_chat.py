"""The chat endpoint: every message to everyone else in the room, from WebSockets and raw streams alike."""
from support.websocket import Wire, connect

CONFIGURATION = """
listeners:
  - name: web
    listen: ws://127.0.0.1:0
  - name: raw
    listen: tcp://127.0.0.1:0
    route: lobby
routes:
  - name: rooms
    path: /chat/{room}
    target: chat
  - name: lobby
    target: chat
    framing: lines
"""


def start(sluice, tmp_path):
    file = tmp_path / "chat.yaml"
    file.write_text(CONFIGURATION)
    return sluice("serve", "--config", file)




def test_everyone_else_in_the_room_hears_and_nobody_outside(sluice, tmp_path):
    one = start(sluice, tmp_path)
    ann, bob, eve = [connect(one.address(0), path) for path in ("/chat/a", "/chat/a", "/chat/b")]
    ann.text("hello")
    bob.expect_text("hello")
    bob.binary(b"\x00\x01")
    ann.expect_binary(b"\x00\x01")
    eve.text("alone")
    ann.text("again")
    bob.expect_text("again")
    eve.close_cleanly()


def test_a_raw_stream_talks_to_the_room_in_lines(sluice, tmp_path):
    one = start(sluice, tmp_path)
    web = connect(one.address(0), "/chat/lobby")
    raw = Wire.connect(one.address(1))
    raw.send(b"from the ra")
    raw.send(b"w side\r\nand one more\n")
    web.expect_text("from the raw side")
    web.expect_text("and one more")
    web.text("from the web")
    assert raw.receive(13) == b"from the web\n"
    raw.finish_sending()
    raw.expect_end()
