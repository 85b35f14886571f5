"""A machine whose networks come and go."""

from . import networks


class Machine:
    """A network of the program alone, and the one of its server, joined by a cable for each of their subnets."""

    def __init__(self):
        self.near, self.far = networks.Network(None), networks.Network("198.18.9.1")
        self.far.ip("address", "add", f"{self.far.address}/32", "dev", "lo")

    def join(self, number, up=True):
        """Adds the interface `near{number}` with the address 198.18.{number}.1, without a route to the server."""
        self.near.ip("link", "add", f"near{number}", "type", "veth", "peer", "name", f"far{number}", "netns", str(self.far.pid))
        for network, side, host in ((self.near, "near", 1), (self.far, "far", 2)):
            network.ip("address", "add", f"198.18.{number}.{host}/24", "dev", f"{side}{number}")
        self.far.ip("link", "set", f"far{number}", "up")
        if up:
            self.near.ip("link", "set", f"near{number}", "up")

    def route(self, number, metric=100):
        self.near.ip("route", "add", "default", "via", f"198.18.{number}.2", "metric", str(metric))

    def close(self):
        self.near.close()
        self.far.close()
