"""A proxy between gateways and a Redis server, which ends connections and delays what they carry."""
import contextlib
import socket
import threading
import time


class RedisProxy:
    """Listens on a Unix socket. What it is told applies to all of its connections together."""

    def __init__(self, directory, redis):
        self.path, self.redis = directory / "proxy.sock", redis
        # Seconds that bytes wait before they are passed on, and how many are then passed on together.
        self.latency, self.piece = 0, 1 << 16
        self.delayed = ["up", "down"]
        # Bytes that were passed on in each direction.
        self.passed = {"up": 0, "down": 0}
        self._cut_at = None
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        self._sockets = set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"unix://{self.path}"

    def cut_after(self, direction, count):
        """Ends the connection that passes on this byte, the first of all being 1."""
        self._cut_at = (direction, count)

    @property
    def has_cut(self):
        return self._cut_at is None

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, far = self._listener.accept()[0], socket.socket(socket.AF_UNIX)
                self._sockets |= {near, far}
                try:
                    far.connect(str(self.redis.path))
                except OSError:
                    near.close()
                    continue
                for way in (("up", near, far), ("down", far, near)):
                    threading.Thread(target=self._pass, args=way, daemon=True).start()

    def _pass(self, direction, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(self.piece):
                if direction in self.delayed:
                    time.sleep(self.latency)
                with self._lock:
                    is_last = self._cut_at and self._cut_at[0] == direction and (
                        self._cut_at[1] <= self.passed[direction] + len(data))
                    if is_last:
                        data = data[:self._cut_at[1] - self.passed[direction]]
                        self._cut_at = None
                    self.passed[direction] += len(data)
                target.sendall(data)
                if is_last:
                    break
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        source.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
