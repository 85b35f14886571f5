"""Gateways of a cluster killed at random, under clients that check every message."""
import asyncio
import resource

from support.cluster_load import Load
from support.deadlines import sized
from support.redis import Redis

CONFIGURATION = """
loops: 2
cluster: {redis: "REDIS", node: NAME}
control: {address: none}
listeners:
  - {name: web, listen: "ws://127.0.0.1:0"}
routes:
  - {name: programs, path: /connection/websocket, target: rooms}
rooms:
  max-recovery: 100000
  policies:
    - {name: kept, pattern: "kept:*", publish: everyone, history-size: 100000, history-time: 1h, recovery: stream}
"""


def test_nothing_is_lost_doubled_or_out_of_order_while_nodes_are_killed_at_random(sluice, tmp_path):
    clients, seconds = sized((150, 12), (3000, 3600))
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with Redis(tmp_path) as redis:
        def start(index):
            file = tmp_path / f"{index}.yaml"
            file.write_text(CONFIGURATION.replace("REDIS", redis.url).replace("NAME", f"node-{index}"))
            return sluice("serve", "--config", file)

        def restart(index):
            nodes[index].kill()
            return start(index)

        nodes = [start(index) for index in range(3)]
        load = Load(nodes, restart, clients=clients, rooms=max(3, clients // 50), rate=100)
        asyncio.run(load.run(seconds, between=(1, 4)))
        recoveries = sum(client.recoveries for client in load.clients)
        print(f"{load.kills} kills, {recoveries} recoveries, {load.published} published, "
              f"{len(load.acknowledged)} acknowledged, {load.deliveries} deliveries")
        assert not load.complaints
        assert load.kills >= 2 and recoveries > 10 and len(load.acknowledged) > 100
