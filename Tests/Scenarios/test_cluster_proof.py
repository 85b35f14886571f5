"""Gateways of a cluster killed at random, under clients that check every message.

`SLUICE_CLUSTER_PROOF=3000x300` chooses the numbers of clients and seconds.
"""
import asyncio
import os
import random
import resource

import pytest
from support.cluster import configuration
from support.cluster_load import Load
from support.deadlines import sized
from support.redis import Redis

CONFIGURATION = configuration("""
loops: 2
routes:
  - {name: programs, path: /connection/websocket, target: rooms}
rooms:
  max-recovery: 100000
  policies:
    - {name: kept, pattern: "kept:*", publish: everyone, history-size: 100000, history-time: 1h, recovery: stream}
""", control="{address: none}")


CLIENTS, SECONDS = map(int, os.environ.get("SLUICE_CLUSTER_PROOF", sized("150x12", "3000x3600")).split("x"))


@pytest.fixture
def load(sluice, tmp_path):
    """Makes a load on three nodes with this Redis."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

    def make(redis, clients, rate):
        def start(index):
            file = tmp_path / f"{index}.yaml"
            file.write_text(CONFIGURATION.replace("REDIS", redis.url).replace("NAME", f"node-{index}"))
            return sluice("serve", "--config", file)

        def restart(index):
            nodes[index].kill()
            return start(index)

        nodes = [start(index) for index in range(3)]
        return Load(nodes, restart, clients=clients, rooms=max(3, clients // 50), rate=rate)

    return make


def is_enough(load, acknowledged):
    return load.kills > 0 and load.recoveries > 10 and len(load.acknowledged) > acknowledged


def judge(load, acknowledged):
    print(f"{len(load.clients)} clients, {load.kills} kills, {load.connections} connections, {load.recoveries} recoveries, "
          f"{load.published} published, {len(load.acknowledged)} acknowledged, {load.deliveries} deliveries, "
          f"{len(load.complaints)} violations")
    assert not load.complaints
    assert is_enough(load, acknowledged)


@pytest.mark.timeout(SECONDS + 600)
def test_nothing_is_lost_doubled_or_out_of_order_while_nodes_are_killed_at_random(load, redis):
    one = load(redis, CLIENTS, rate=100)
    asyncio.run(one.run(SECONDS, between=(1, 4), is_enough=lambda: is_enough(one, 100)))
    judge(one, acknowledged=100)


async def disturb(redis):
    """Pauses Redis, ends its connections, or kills it and starts it again with all that it had."""
    match random.randrange(5):
        case 0:
            await asyncio.to_thread(redis.command, "CLIENT", "KILL", "TYPE", random.choice(["normal", "pubsub"]))
        case 1:
            await asyncio.to_thread(redis.command, "CLIENT", "PAUSE", random.randrange(100, 3000), "WRITE")
        case 2:
            redis.pause()
            # Nodes wait 5 seconds for a reply.
            await asyncio.sleep(random.choice([0.5, 6]))
            redis.resume()
        case 3:
            redis.kill()
            await asyncio.sleep(random.uniform(0, 1))
            await asyncio.to_thread(redis.start)
    await asyncio.sleep(random.uniform(0.2, 2))


def test_nothing_is_lost_doubled_or_out_of_order_while_redis_fails_too(load, tmp_path):
    with Redis(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as redis:
        one = load(redis, clients=100, rate=40)
        asyncio.run(one.run(
            sized(15, 120), between=(1, 6), is_enough=lambda: is_enough(one, 10), disturb=lambda: disturb(redis)))
        judge(one, acknowledged=10)
