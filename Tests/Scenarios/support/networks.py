"""Two networks joined by a cable that can be pulled: packets are then lost, and neither side is notified."""

import contextlib
import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000


def allowed():
    """Whether this user may create network namespaces and virtual links between them."""
    attempt = ["unshare", "--net", "ip", "link", "add", "near0", "type", "veth", "peer", "name", "far0"]
    return subprocess.run(attempt, capture_output=True, check=False).returncode == 0


class Network:
    """A network namespace, which exists as long as a process in it."""

    def __init__(self, address):
        self.address = address
        self._holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # The echoed byte shows that the process is in the new namespace.
        self._holder.stdin.write(b"\n")
        self._holder.stdin.flush()
        assert self._holder.stdout.read(1) == b"\n", "no network namespace was created"
        self.pid = self._holder.pid
        self.ip("link", "set", "lo", "up")

    @property
    def entering(self):
        """Command prefix that runs a program in this network."""
        return ["nsenter", f"--target={self.pid}", "--net"]

    def ip(self, *words):
        return subprocess.run([*self.entering, "ip", *words], check=True, capture_output=True, text=True).stdout

    @contextlib.contextmanager
    def inside(self):
        """Sockets that this thread creates within the block belong to this network, also afterwards."""
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
    """Two networks, `near` and `far`, and the link between them."""

    def __init__(self):
        # Addresses reserved for benchmarks (RFC 2544), which no other network has.
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
