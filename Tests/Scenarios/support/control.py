"""The control plane of a running gateway, used over HTTP."""

import base64
import http.client
import json
import re
import socket
from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlsplit

from .deadlines import eventually, seconds
from .description import Description


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    def expect(self, status):
        assert self.status == status, f"{self.status}: {self.body[:2000]!r}"
        return self.json if self.body else None

    def problem(self, status, code):
        """Expects a problem document (RFC 9457) and returns it."""
        problem = self.expect(status)
        assert self.headers["content-type"] == "application/problem+json"
        assert problem["status"] == status and problem["code"] == code, problem
        assert problem["title"] and problem["detail"] and isinstance(problem["retryable"], bool)
        return problem


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Control:
    """A client for `http://HOST:PORT` or `unix:///PATH`. Checks every response against the gateway's OpenAPI document."""

    # All gateways run the same binary and have the same document.
    description = None

    def __init__(self, url, token=None, tls=None):
        """`token`: sent with every request; `tls`: the context for `https://`."""
        self.url = url
        self.parts = urlsplit(url)
        self.token = token
        self.tls = tls

    @classmethod
    def of(cls, gateway, **more):
        found = [re.match(r"control on (\S+)", line) for line in gateway.output.all()]
        return cls(next(match.group(1) for match in found if match), **more)

    def by(self, token):
        """A client for the same control plane with another token."""
        return Control(self.url, token, self.tls)

    def connection(self, within=60.0):
        if self.parts.scheme == "unix":
            return UnixConnection(self.parts.path, seconds(within))
        if self.parts.scheme == "https":
            return http.client.HTTPSConnection(self.parts.hostname, self.parts.port, timeout=seconds(within), context=self.tls)
        return http.client.HTTPConnection(self.parts.hostname, self.parts.port, timeout=seconds(within))

    def request(self, method, path, body=None, headers=None, within=60.0):
        """`body`: bytes are sent unchanged, anything else as JSON."""
        headers = dict(headers or {})
        if self.token is not None:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        answer = self._exchange(method, path, body, headers, within)
        if Control.description is None:
            Control.description = Description(self._exchange("GET", "/openapi.json", None, {}, within).expect(200))
        Control.description.check(method, path, answer)
        return answer

    def _exchange(self, method, path, body, headers, within):
        connection = self.connection(within)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, path, **query):
        return self.request("GET", path + ("?" + urlencode(query, quote_via=quote) if query else ""))

    def post(self, path, body=None, **more):
        return self.request("POST", path, body, **more)

    # -- connections

    def open(self, url, **more):
        """Opens a connection and returns its id."""
        answer = self.post("/v1/connections", {"url": url, **more})
        body = answer.expect(201)
        assert answer.headers["location"] == f"/v1/connections/{body['id']}"
        return body["id"]

    def show(self, name):
        return self.get(f"/v1/connections/{name}").expect(200)

    def verb(self, name, verb, body=None, **more):
        return self.post(f"/v1/connections/{name}:{verb}", body, **more)

    def send(self, name, payload):
        body = {"text": payload} if isinstance(payload, str) else {"data": base64.b64encode(payload).decode()}
        return self.verb(name, "send", body).expect(200)

    def receive(self, name, **wanted):
        """Receives a message as text or bytes."""
        body = self.verb(name, "receive", wanted).expect(200)
        return body["text"] if body["type"] == "text" else base64.b64decode(body["data"])

    def close(self, name, **query):
        return self.request("DELETE", f"/v1/connections/{name}?{urlencode(query)}").expect(200)

    def list(self, **query):
        """All items of all pages."""
        items, path = [], "/v1/connections?" + urlencode(query)
        while path:
            answer = self.request("GET", path)
            page = answer.expect(200)
            items += page["items"]
            path = page.get("next")
            assert answer.headers.get("link") == (f'<{path}>; rel="next"' if path else None)
        return items

    def closed(self, name):
        """Waits until a connection is closed; returns its record."""
        return eventually(lambda: next((one for one in self.list(state="closed") if one["id"] == name), None), f"{name} closed")
