"""WebSocket tasks of the URL loading system against the `websockets` package: cookies, redirections and challenges in the opening
handshake."""

import base64
import http
import threading

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

from support.deadlines import seconds
from support.loading import socket


class Room:
    """A server that answers each message with the path and cookies of the handshake, and the message.

    /old redirects to /new, /elsewhere to another server; /private requires ada:secret; /forbidden refuses; /plain is no WebSocket."""

    def __init__(self, **more):
        self.requests = []
        self.other = None
        self.server = serve(
            self._talk, "127.0.0.1", 0, process_request=self._request, process_response=self._response, **more)
        self.port = self.server.socket.getsockname()[1]
        self.url = f"{'wss' if more.get('ssl') else 'ws'}://localhost:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def _talk(self, connection):
        try:
            for message in connection:
                headers = connection.request.headers
                connection.send(f"{connection.request.path} {headers.get('Cookie', '-')} {message}")
        except ConnectionClosed:
            pass

    def _request(self, connection, request):
        self.requests.append((request.path, dict(request.headers.raw_items())))
        if request.path in ("/old", "/elsewhere"):
            response = connection.respond(http.HTTPStatus.FOUND, "over there\n")
            response.headers["Location"] = "/new" if request.path == "/old" else f"{self.other.url}/new"
            response.headers["Set-Cookie"] = "seen=old; Path=/"
            return response
        if request.path == "/private":
            wanted = "Basic " + base64.b64encode(b"ada:secret").decode()
            if request.headers.get("Authorization") != wanted:
                response = connection.respond(http.HTTPStatus.UNAUTHORIZED, "who are you?\n")
                response.headers["WWW-Authenticate"] = 'Basic realm="room"'
                return response
        if request.path == "/forbidden":
            return connection.respond(http.HTTPStatus.FORBIDDEN, "no\n")
        if request.path == "/plain":
            return connection.respond(http.HTTPStatus.OK, "just text\n")
        return None

    def _response(self, connection, request, response):
        if response.status_code == 101:
            response.headers["Set-Cookie"] = "guest=17; Path=/; HttpOnly"
        return response

    def end(self):
        self.server.shutdown()
        self.thread.join(seconds(10))


@pytest.fixture(params=["ws", "wss"])
def room(request, authority, server_certificate):
    more = {"ssl": authority.server_context(server_certificate)} if request.param == "wss" else {}
    one = Room(**more)
    yield one
    one.end()


def test_messages_are_exchanged(room, authority):
    got = socket(f"{room.url}/", "--send", "one", "--send", "two", authority=authority)
    assert got.messages == ["/ - one", "/ - two"] and got.closeCode == 1000
    assert [event for event in got.events if not event.startswith("challenge ServerTrust")] == ["open -", "close 1000 ", "metrics", "completed"]
    assert got.status == 101


def test_cookies_are_sent_and_stored(room, authority):
    got = socket(f"{room.url}/", "--cookie", "theme=dark", "--send", "hello", authority=authority)
    assert got.messages == ["/ theme=dark hello"] and got.cookies == ["guest=17", "theme=dark"]


def test_a_redirection_is_followed(room, authority):
    got = socket(f"{room.url}/old", "--send", "hello", authority=authority)
    assert "redirection 302 to /new" in got.events and got.messages == ["/new seen=old hello"]
    assert got.currentURL.endswith("/new") and [path for path, _ in room.requests] == ["/old", "/new"]
    keys = [headers["Sec-WebSocket-Key"] for _, headers in room.requests]
    assert len(set(keys)) == 2, "each handshake has its own key"


def test_authorization_is_not_sent_to_another_server(authority):
    here, there = Room(), Room()
    here.other = there
    try:
        got = socket(f"{here.url}/elsewhere", "--header", "Authorization:Basic abc", "--send", "hello")
        assert got.messages and got.messages[0].startswith("/new")
        assert [headers.get("Authorization") for _, headers in here.requests] == ["Basic abc"]
        assert [headers.get("Authorization") for _, headers in there.requests] == [None]
    finally:
        here.end()
        there.end()


def test_a_challenge_is_answered(room, authority):
    got = socket(f"{room.url}/private", "--user", "ada:secret", "--send", "hello", authority=authority)
    assert got.messages == ["/private - hello"] and "challenge HTTPBasic 0" in got.events
    assert got.events.index("challenge HTTPBasic 0") < got.events.index("open -")


def test_a_wrong_password_fails_the_handshake(room, authority):
    got = socket(f"{room.url}/private", "--user", "ada:wrong", "--send", "hello", authority=authority, fails=True)
    assert not any(event.startswith("open") for event in got.events) and got.error["code"] in (-999, -1012)


@pytest.mark.parametrize("path,status", [("/forbidden", 403), ("/plain", 200), ("/private", 401)])
def test_a_response_other_than_101_fails_the_handshake(room, authority, path, status):
    got = socket(f"{room.url}{path}", "--send", "hello", authority=authority, fails=True)
    assert got.status == status and got.error["code"] == -1011 and got.failure["code"] == -1011
    assert not any(event.startswith("open") for event in got.events) and got.closeCode == 0


def test_an_untrusted_server_is_refused(authority, server_certificate):
    room = Room(ssl=authority.server_context(server_certificate))
    try:
        got = socket(f"{room.url}/", "--send", "hello", fails=True)
        assert got.error["code"] == -1203 and room.requests == []
    finally:
        room.end()


def test_a_subprotocol_is_chosen(authority):
    room = Room(subprotocols=["second"])
    try:
        got = socket(f"{room.url}/", "--subprotocol", "first", "--subprotocol", "second", "--send", "hello")
        assert got.events[0] == "open second"
        assert room.requests[0][1]["Sec-WebSocket-Protocol"] == "first, second"
    finally:
        room.end()
