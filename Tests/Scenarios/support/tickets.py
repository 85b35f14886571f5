"""A WebSocket server by TLS that asks for Negotiate, and takes only tokens that are bound to its certificate (RFC 5929 §4)."""

import base64
import ctypes
import hashlib
import http
import ssl
import threading

from websockets.sync.server import serve

CHANNEL_BOUND = 2048


class Buffer(ctypes.Structure):
    _fields_ = [("length", ctypes.c_size_t), ("value", ctypes.c_char_p)]


class Bindings(ctypes.Structure):
    """RFC 2744 §3.11."""

    _fields_ = [("initiator_type", ctypes.c_uint32), ("initiator", Buffer), ("acceptor_type", ctypes.c_uint32),
                ("acceptor", Buffer), ("application", Buffer)]


def accept(token, application):
    """(whether GSS-API takes the token, whether that is bound to the channel). The key table is that of KRB5_KTNAME."""
    library = ctypes.CDLL("libgssapi_krb5.so.2")
    minor, flags = ctypes.c_uint32(), ctypes.c_uint32()
    context, name, output = ctypes.c_void_p(), ctypes.c_void_p(), Buffer()
    bindings = Bindings(application=Buffer(len(application), application))
    major = library.gss_accept_sec_context(
        ctypes.byref(minor), ctypes.byref(context), None, ctypes.byref(Buffer(len(token), token)), ctypes.byref(bindings),
        ctypes.byref(name), None, ctypes.byref(output), ctypes.byref(flags), None, None)
    library.gss_release_buffer(ctypes.byref(minor), ctypes.byref(output))
    library.gss_release_name(ctypes.byref(minor), ctypes.byref(name))
    library.gss_delete_sec_context(ctypes.byref(minor), ctypes.byref(context), None)
    return major == 0, bool(flags.value & CHANNEL_BOUND)


class BoundRoom:
    """Echoes; `tokens` are what `accept` gave of each token."""

    def __init__(self, certificate, key):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        der = ssl.PEM_cert_to_DER_cert(certificate.read_text().split("-----END")[0] + "-----END CERTIFICATE-----\n")
        self.application = b"tls-server-end-point:" + hashlib.sha256(der).digest()
        self.tokens = []
        self.server = serve(self._talk, "127.0.0.1", 0, ssl=context, process_request=self._request)
        self.url = f"wss://localhost:{self.server.socket.getsockname()[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def _talk(connection):
        for message in connection:
            connection.send(message)

    def _request(self, connection, request):
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme == "Negotiate":
            self.tokens.append(accept(base64.b64decode(token), self.application))
            if self.tokens[-1] == (True, True):
                return None
        response = connection.respond(http.HTTPStatus.UNAUTHORIZED, "who are you?\n")
        response.headers["WWW-Authenticate"] = "Negotiate"
        return response

    def end(self):
        self.server.shutdown()
