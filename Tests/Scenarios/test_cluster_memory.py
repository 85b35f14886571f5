"""Rooms of a cluster whose Redis has no memory left."""
import asyncio
import json
import urllib.request

import pytest
from support.cluster import configuration, start_nodes
from test_cluster import DEADLINE, Client, request, rest

CONFIGURATION = configuration("""
routes:
  - {name: programs, path: /connection/websocket, target: rooms}
  - {name: events, path: /events, target: room-events}
rooms:
  policies:
    - {name: kept, pattern: "kept:*", publish: everyone, history-size: 1000, history-time: 1h, recovery: stream}
    - {name: open, pattern: "*", publish: everyone}
""")


@pytest.fixture
def node(sluice, tmp_path, redis):
    return start_nodes(sluice, tmp_path, CONFIGURATION, redis, "a")[0]


def test_publication_with_a_key_that_was_refused_has_reached_nobody(node, redis):
    publication = {"data": "once", "idempotencyKey": "k"}

    async def run():
        async with Client(node) as ann:
            await ann.subscribe("open")
            redis.command("CONFIG", "SET", "maxmemory", 1)
            with await asyncio.to_thread(request, node, "/v1/rooms/open:publish", "POST", publication) as response:
                assert (response.status, b"OOM" in response.read()) == (502, True)
            redis.command("CONFIG", "SET", "maxmemory", 0)
            for _ in range(2):
                await asyncio.to_thread(rest, node, "/v1/rooms/open:publish", "POST", publication)
            await ann.publish("open", "last")
            assert [(await ann.push("pub"))["data"] for _ in range(2)] == ["once", "last"]

    asyncio.run(run())


def test_new_rooms_are_refused_and_those_that_are_there_can_be_read(node, redis):
    async def run():
        async with Client(node) as ann:
            position = await ann.subscribe("kept:old")
            await ann.publish("kept:old", 1)
            redis.command("CONFIG", "SET", "maxmemory", 1)
            assert (await ann.publish("kept:new", 1))["error"]["code"] == 100
            assert redis.command("KEYS", "*kept%3Anew*") == ""
            history = (await ann.command("history", {"channel": "kept:old", "limit": 9}))["history"]
            assert ([pub["data"] for pub in history["publications"]], history["epoch"]) == ([1], position["epoch"])
            redis.command("CONFIG", "SET", "maxmemory", 0)
            assert "publish" in await ann.publish("kept:new", 2)

    asyncio.run(run())


def test_removal_from_a_room_whose_meta_key_was_evicted_leaves_no_key_that_never_expires(node, redis):
    meta = "sluice:room:{kept%3Aold}:meta"

    async def run():
        async with Client(node) as ann:
            await ann.publish("kept:old", 1)
            assert redis.command("DEL", meta) == "1"
            await asyncio.to_thread(rest, node, "/v1/rooms/kept%3Aold/history", "DELETE")
            # The key is not there.
            assert redis.command("TTL", meta) == "-2"

    asyncio.run(run())


def test_client_without_a_websocket_hears_that_its_message_was_not_published(node, redis):
    publication = json.dumps({"publish": {"channel": "kept:new", "data": 1}}).encode()
    redis.command("CONFIG", "SET", "maxmemory", 1)
    with pytest.raises(urllib.request.HTTPError) as refusal:
        urllib.request.urlopen(f"http://127.0.0.1:{node.port()}/events", data=publication, timeout=DEADLINE)
    error = json.loads(refusal.value.read())["error"]
    assert (refusal.value.code, error["code"]) == (500, 100)
    assert error["message"].endswith("not published."), error
