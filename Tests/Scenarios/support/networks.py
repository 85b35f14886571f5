"""Two networks joined by a cable that can be pulled: what is sent meanwhile is lost, and neither side is told."""

import contextlib
import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000


def allowed():
    """Whether this user may make networks, and this system knows cables between them."""
    attempt = ["unshare", "--net", "ip", "link", "add", "near0", "type", "veth", "peer", "name", "far0"]
    return subprocess.run(attempt, capture_output=True, check=False).returncode == 0


class Network:
    """A network namespace; it lives as long as a process in it does."""

    def __init__(self, address):
        self.address = address
        self._holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # What comes back has been in the new network.
        self._holder.stdin.write(b"\n")
        self._holder.stdin.flush()
        assert self._holder.stdout.read(1) == b"\n", "no network was made"
        self.pid = self._holder.pid
        self.ip("link", "set", "lo", "up")

    @property
    def entering(self):
        """Words before a command that is to run in this network."""
        return ["nsenter", f"--target={self.pid}", "--net"]

    def ip(self, *words):
        subprocess.run([*self.entering, "ip", *words], check=True, capture_output=True)

    @contextlib.contextmanager
    def inside(self):
        """Sockets that this thread makes meanwhile belong to this network, and stay there."""
        with open("/proc/thread-self/ns/net", "rb") as home, open(f"/proc/{self.pid}/ns/net", "rb") as there:
            _enter(there)
            try:
                yield self
            finally:
                _enter(home)

    def close(self):
        self._holder.stdin.close()
        self._holder.wait()
        self._holder.stdout.close()


def _enter(network):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(network.fileno(), CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Cable:
    """`near` and `far`, and what joins them."""

    def __init__(self):
        # Addresses that no other network has: those for measuring (RFC 2544).
        self.near, self.far = Network("198.18.0.1"), Network("198.18.0.2")
        self.near.ip("link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns", str(self.far.pid))
        for network, device in ((self.near, "near0"), (self.far, "far0")):
            network.ip("address", "add", f"{network.address}/30", "dev", device)
            network.ip("link", "set", device, "up")

    def pull(self):
        self.far.ip("link", "set", "far0", "down")

    def plug(self):
        self.far.ip("link", "set", "far0", "up")

    def close(self):
        self.near.close()
        self.far.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
