"""The subjects of the conformance tests, one for each role: the gateway's `/echo`, and the library's echoing client."""

from . import websocket
from .task_client import TaskClient
from .websocket import Listener

MESSAGE_LIMIT = 16 << 20

# Agreements on permessage-deflate, named from the test's end of the connection.
NONE, TAKEOVER, NO_TAKEOVER, FRESH_HERE, SMALL = "none", "takeover", "no takeover", "our context fresh", "9 bits"

OFFERS = {
    NONE: None,
    TAKEOVER: "permessage-deflate",
    NO_TAKEOVER: "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
    FRESH_HERE: "permessage-deflate; client_no_context_takeover",
    SMALL: "permessage-deflate; server_max_window_bits=9; client_max_window_bits=9",
}
ANSWERS = {
    NONE: None,
    TAKEOVER: "permessage-deflate",
    NO_TAKEOVER: "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
    FRESH_HERE: "permessage-deflate; server_no_context_takeover",
    SMALL: "permessage-deflate; server_max_window_bits=9; client_max_window_bits=9",
}


class ServerSubject:
    """The echo endpoint: we are its clients."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.opened = []

    def connect(self, deflate=NONE):
        peer = websocket.connect(self.gateway.address(), "/echo", deflate=OFFERS[deflate])
        self.opened.append(peer)
        assert deflate == NONE or peer.extensions, f"the offer was declined: {OFFERS[deflate]}"
        return peer

    def memory(self):
        return self.gateway.memory()

    def close(self):
        for peer in self.opened:
            peer.close()


class ClientSubject:
    """The library's client: we are its server."""

    def __init__(self):
        self.opened = []
        self.clients = []

    def connect(self, deflate=NONE):
        with Listener() as listener:
            words = ["--deflate"] if deflate != NONE else []
            self.clients.append(TaskClient("echo", listener.url("ws", "/"), "--max-size", MESSAGE_LIMIT, *words))
            peer = listener.accept_websocket(extensions=ANSWERS[deflate])
            self.opened.append(peer)
            return peer

    def memory(self):
        return self.clients[-1].memory()

    def close(self):
        """Closes the connections; every client must then end without a trap."""
        for peer in self.opened:
            peer.close()
        try:
            for client in self.clients:
                client.report()
        finally:
            for client in self.clients:
                client.kill()
