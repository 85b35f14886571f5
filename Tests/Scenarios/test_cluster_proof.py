"""Gateways of a cluster killed at random, under clients that check every message.

`SLUICE_CLUSTER_PROOF=3000x300` chooses the numbers of clients and seconds.
"""
import asyncio
import os
import resource

import pytest
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


CLIENTS, SECONDS = map(int, os.environ.get("SLUICE_CLUSTER_PROOF", sized("150x12", "3000x3600")).split("x"))


@pytest.mark.timeout(SECONDS + 300)
def test_nothing_is_lost_doubled_or_out_of_order_while_nodes_are_killed_at_random(sluice, tmp_path):
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
        load = Load(nodes, restart, clients=CLIENTS, rooms=max(3, CLIENTS // 50), rate=100)
        asyncio.run(load.run(SECONDS, between=(1, 4)))
        recoveries = sum(client.recoveries for client in load.clients)
        print(f"{CLIENTS} clients, {load.kills} kills, {load.connections} connections, {recoveries} recoveries, "
              f"{load.published} published, {len(load.acknowledged)} acknowledged, {load.deliveries} deliveries, "
              f"{len(load.complaints)} violations")
        assert not load.complaints
        assert load.kills >= 2 and recoveries > 10 and len(load.acknowledged) > 100
