"""A gateway with a configuration file and a control plane, for tests of changes at run time."""

from . import configuration
from .control import Control


class Configured:
    def __init__(self, sluice, folder, listeners=(), routes=(), control=None, descriptors=None, environment=None, **more):
        listeners = list(listeners) or [configuration.listener("web", "ws://127.0.0.1:0")]
        routes = list(routes) or [configuration.route("echo", "echo", path="/echo")]
        self.listeners, self.routes, self.more = listeners, routes, more
        self.control_settings = {"address": "http://127.0.0.1:0", **(control or {})}
        self.file = folder / "sluice.yaml"
        self.write()
        self.gateway = sluice("serve", "--config", self.file, descriptors=descriptors, environment=environment)
        self.control = Control.of(self.gateway)

    def write(self, **changes):
        """Rewrites the file with other listeners, routes or top-level keys."""
        given = {"listeners": self.listeners, "routes": self.routes, **self.more, **changes}
        configuration.write(self.file, given.pop("listeners"), given.pop("routes"), control=self.control_settings, **given)
