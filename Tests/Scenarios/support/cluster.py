"""Gateways that are nodes of one cluster."""


def start_nodes(sluice, folder, configuration, redis, names):
    """Starts a gateway for each name, whose configuration has REDIS and NAME filled in, and waits until it has joined."""
    def start(name):
        file = folder / f"{name}.yaml"
        file.write_text(configuration.replace("REDIS", redis.url).replace("NAME", name))
        node = sluice("serve", "--config", file)
        node.wait_log("cluster joined")
        return node

    return [start(name) for name in names]
