"""Clients that Redis lists in the rooms of a cluster."""
import asyncio

import pytest
from support.cluster import configuration, start_nodes
from test_cluster import Client

CONFIGURATION = configuration("""
routes:
  - {name: programs, path: /connection/websocket, target: rooms}
rooms:
  user-header: X-User
  max-connections-per-user: 2
  policies:
    - {name: all, pattern: "*", presence: true}
""")
LISTED, EXPIRIES = "sluice:room:{a}:presence", "sluice:room:{a}:expiry"


@pytest.fixture
def node(sluice, tmp_path, redis):
    return start_nodes(sluice, tmp_path, CONFIGURATION, redis, "a")[0]


def list_expired(redis, count):
    """Lists clients of a node that has ended long ago."""
    script = """
        for index = 1, ARGV[1] do
          redis.call('HSET', KEYS[1], 'gone' .. index, 'x')
          redis.call('ZADD', KEYS[2], index, 'gone' .. index)
        end"""
    redis.command("EVAL", script, 2, LISTED, EXPIRIES, count)


def test_clients_that_have_expired_are_not_listed_however_many(node, redis):
    async def run():
        async with Client(node) as ann:
            await ann.subscribe("a")
            list_expired(redis, 2500)
            counts = await ann.command("presence_stats", {"channel": "a"})
            assert counts["presence_stats"]["num_clients"] == 1
            assert redis.command("HLEN", LISTED) == redis.command("ZCARD", EXPIRIES) == "1"

    asyncio.run(run())


def test_clients_that_have_expired_are_removed_where_nobody_asks_for_them(node, redis):
    async def run():
        list_expired(redis, 1500)
        async with Client(node) as ann, Client(node) as bob:
            await ann.subscribe("a")
            await bob.subscribe("a")
            assert redis.command("HLEN", LISTED) == redis.command("ZCARD", EXPIRIES) == "2"

    asyncio.run(run())


def test_a_node_with_a_shorter_presence_time_leaves_the_clients_of_others_listed(sluice, tmp_path, redis):
    first, = start_nodes(sluice, tmp_path, CONFIGURATION, redis, "a")
    shorter = CONFIGURATION.replace("node: NAME", "node: NAME, presence-time: 3s")
    second, = start_nodes(sluice, tmp_path, shorter, redis, "b")

    async def run():
        async with Client(first, "ada") as ann, Client(second, "ada") as bob:
            await ann.subscribe("a")
            await bob.subscribe("a")
            # The first one renews its clients after 20 seconds.
            for key in [LISTED, EXPIRIES, "sluice:user:{ada}"]:
                assert int(redis.command("PTTL", key)) > 20_000, key

    asyncio.run(run())
