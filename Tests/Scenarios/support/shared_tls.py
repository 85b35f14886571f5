"""TLS sockets that two threads use concurrently."""

import select
import ssl
import threading


class SharedTLSSocket:
    """Lets one thread send while another receives. Python's TLS socket calls OpenSSL from both threads at the same time, which
    OpenSSL forbids for one connection; the usual symptom is a false end of the stream. Here a lock serializes the calls, no
    call blocks, and a thread that has to wait does so without the lock."""

    PIECE = 1 << 16

    def __init__(self, sock):
        self.socket = sock
        self.lock = threading.Lock()

    def send_all(self, data):
        view = memoryview(data).cast("B")
        while view:
            piece = view[:self.PIECE]
            view = view[self._take(lambda: self.socket.send(piece)):]

    def receive(self, limit):
        return self._take(lambda: self.socket.recv(limit))

    def _take(self, operation):
        while True:
            with self.lock:
                patience = self.socket.gettimeout()
                self.socket.setblocking(False)
                try:
                    return operation()
                except ssl.SSLWantReadError:
                    wanted = select.POLLIN
                except ssl.SSLWantWriteError:
                    wanted = select.POLLOUT
                finally:
                    self.socket.settimeout(patience)
            self._wait(wanted, patience)

    def _wait(self, wanted, patience):
        poll = select.poll()
        poll.register(self.socket, wanted)
        if not poll.poll(None if patience is None else patience * 1000):
            raise TimeoutError("timed out")
