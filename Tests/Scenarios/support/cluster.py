"""Gateways that are nodes of one cluster."""

from .brokers import await_redis
from .control import Control


def configuration(more, cluster="", control='{address: "http://127.0.0.1:0"}'):
    """Configuration of a node with a listener and these further keys.

    REDIS and NAME in it are to be filled in. `cluster` has more members of that mapping.
    """
    return f"""
cluster: {{redis: "REDIS", node: NAME{', ' if cluster else ''}{cluster}}}
control: {control}
listeners:
  - {{name: web, listen: "ws://127.0.0.1:0"}}
{more.strip()}
"""


def start_nodes(sluice, folder, configuration, redis, names):
    """Starts a gateway for each name, whose configuration has REDIS and NAME filled in, and waits until it has joined with
    all of its loops."""
    def start(name):
        file = folder / f"{name}.yaml"
        file.write_text(configuration.replace("REDIS", redis.url).replace("NAME", name))
        node = sluice("serve", "--config", file)
        node.wait_log("cluster joined")
        await_redis(Control.of(node))
        return node

    return [start(name) for name in names]
