"""Histories in Redis that are larger than one reply of it may be."""
import asyncio

import pytest
from support.cluster import configuration, start_nodes
from test_cluster import Client, rest

CONFIGURATION = configuration("""
routes:
  - {name: programs, path: /connection/websocket, target: rooms}
rooms:
  policies:
    - {name: kept, pattern: "*", publish: everyone, read: everyone, history-size: 1000, history-bytes: 128MiB, max-message-size: 1MiB, recovery: stream}
""")
COUNT, SIZE = 40, 900_000


@pytest.fixture
def nodes(sluice, tmp_path, redis):
    return start_nodes(sluice, tmp_path, CONFIGURATION, redis, "ab")


async def entered(client, room, **more):
    """Subscribes as clients do: again after an error that says it is temporary, as where loading takes long."""
    async with asyncio.timeout(60):
        while True:
            reply = await client.command("subscribe", {"channel": room, **more})
            if "subscribe" in reply:
                return reply["subscribe"]
            assert reply["error"]["temporary"], reply


def test_history_of_more_than_32_mib_is_loaded_and_read(nodes):
    first, second = nodes

    async def run():
        async with Client(first) as ann:
            for number in range(COUNT):
                assert "publish" in await ann.publish("big", f"{number:03}" + "x" * SIZE)
            position = (await ann.command("history", {"channel": "big"}))["history"]
            assert position["offset"] == COUNT
        async with Client(second) as bob:
            again = await entered(bob, "big", recover=True, epoch=position["epoch"], offset=COUNT - 1)
            assert again["recovered"] is True and len(again["publications"]) == 1
            await bob.publish("big", "small")
            assert (await bob.push("pub"))["data"] == "small"
        offsets, pages, path = [], 0, "/v1/rooms/big/history?limit=1000"
        while path:
            page = await asyncio.to_thread(rest, second, path)
            offsets += [item["offset"] for item in page["items"]]
            path, pages = page.get("next"), pages + 1
        assert offsets == list(range(1, COUNT + 2)) and pages > 5

    asyncio.run(run())
    for node in nodes:
        assert not [line for line in node.log.all() if "redis lost" in line]


def test_offsets_that_redis_has_forgotten_are_not_given_again_where_a_node_knows_them(sluice, tmp_path, redis):
    """As after a crash of its machine, with an append-only file that lacks the end."""
    meta, stream = "sluice:room:{x}:meta", "sluice:room:{x}:stream"
    [node] = start_nodes(sluice, tmp_path, CONFIGURATION, redis, "a")

    async def run():
        async with Client(node) as ann:
            before = await entered(ann, "x")
            for number in range(1, 4):
                assert "publish" in await ann.publish("x", number)
                assert (await ann.push("pub"))["offset"] == number
            redis.command("HSET", meta, "o", "1")
            redis.command("DEL", stream)
            assert "publish" in await ann.publish("x", 4)
            assert (await ann.push("unsubscribe"))["code"] == 2500
            after = await entered(ann, "x", recover=True, epoch=before["epoch"], offset=3)
            assert not after.get("recovered") and after["offset"] == 2 and after["epoch"] != before["epoch"]

    asyncio.run(run())
