"""Gateways whose connections to a real redis-server end at any byte, or are slow."""
import asyncio
import json

import pytest
from support.cluster import configuration
from support.deadlines import sized
from support.redis_proxy import RedisProxy
from test_cluster import DEADLINE, Client, eventually, published

CONFIGURATION = configuration("""
loops: 1
routes:
  - {name: programs, path: /connection/websocket, target: rooms}
rooms:
  command-rate: 1000000
  # Members are not read from all the time.
  ping-interval: 1h
  policies:
    - {name: kept, pattern: "kept:*", publish: everyone, history-size: 1000, history-time: 1h, recovery: stream, presence: true, join-leave: true}
""", control="{address: none}")


@pytest.fixture
def proxy(tmp_path, redis):
    with RedisProxy(tmp_path, redis) as one:
        yield one


@pytest.fixture
def start(sluice, tmp_path):
    def start(name, server):
        file = tmp_path / f"{name}.yaml"
        file.write_text(CONFIGURATION.replace("REDIS", server.url).replace("NAME", name))
        return sluice("serve", "--config", file)

    return start


class Member(Client):
    """A client in one room, which notes the offset and the data of each publication."""

    def __init__(self, node, room):
        super().__init__(node)
        self.room = room
        self.position = None
        self.heard = []

    async def enter(self):
        """Enters, or comes back, as soon as Redis is there."""
        async def entered():
            more = {} if self.position is None else {
                "recover": True, "epoch": self.position[0], "offset": self.position[1]}
            reply = await self.command("subscribe", {"channel": self.room, **more})
            if "error" in reply:
                assert reply["error"]["code"] == 100, reply
                return False
            result = reply["subscribe"]
            assert self.position is None or result.get("recovered"), (self.position, result)
            if self.position is None:
                self.position = (result["epoch"], result.get("offset", 0))
            for publication in result.get("publications", []):
                self.take(publication)
            return True

        await eventually(entered)

    def take(self, publication):
        epoch, offset = self.position
        assert publication["offset"] == offset + 1, (offset, publication)
        self.position = (epoch, offset + 1)
        self.heard.append(publication["data"])

    def take_pushes(self):
        pushes, self.pushes = self.pushes, []
        for push in pushes:
            assert "unsubscribe" not in push, push
            if "pub" in push:
                self.take(push["pub"])

    async def hear(self, data):
        """Waits for a publication with this data."""
        self.take_pushes()
        while data not in self.heard:
            async with asyncio.timeout(DEADLINE):
                text = await self.socket.recv()
            for line in text.splitlines():
                message = json.loads(line)
                if message == {}:
                    await self.socket.send("{}")
                else:
                    self.pushes.append(message["push"])
            self.take_pushes()


async def converse(cut, witness, room):
    """What is said in a room is complete and in order on both nodes, whatever happens to one node's connection to Redis.

    Returns whether all publications were acknowledged.
    """
    acknowledged, sent = [], 0
    async with Member(witness, room) as eve, Member(cut, room) as ann:
        await eve.enter()

        async def publish():
            nonlocal sent
            sent += 1
            reply = await ann.publish(room, sent)
            if "publish" in reply:
                acknowledged.append(sent)
            else:
                assert reply["error"]["code"] == 100, reply

        async with Member(cut, room) as bob:
            await bob.enter()
            await ann.enter()
            for _ in range(3):
                await publish()
            listed = await ann.command("presence", {"channel": room})
            assert "presence" in listed or listed["error"]["code"] == 100, listed
            await ann.command("history", {"channel": room, "limit": 100})
            bob.take_pushes()
        for _ in range(2):
            await publish()
        async with asyncio.timeout(DEADLINE):
            while not acknowledged or acknowledged[-1] != sent:
                await publish()
                await asyncio.sleep(0.005)
        back = Member(cut, room)
        back.position, back.heard = bob.position, bob.heard
        async with back:
            await back.enter()
            for member in (back, ann, eve):
                await member.hear(sent)
        kept = (await eve.command("history", {"channel": room, "limit": 1000}))["history"]
    stored = [publication["data"] for publication in kept["publications"]]
    assert set(acknowledged) <= set(stored), (acknowledged, stored)
    assert stored == sorted(set(stored)), stored
    assert eve.heard == stored
    for member in (back, ann):
        assert member.heard == stored[len(stored) - len(member.heard):], (member.heard, stored)
    assert len(back.heard) == len(stored)
    return sent == len(acknowledged)


def converse_once(start, proxy, witness, room):
    """A conversation on a node that starts with it."""
    proxy.passed.update(up=0, down=0)
    node = start("cut", proxy)
    try:
        return asyncio.run(converse(node, witness, room))
    finally:
        assert node.running()
        node.kill()


@pytest.mark.timeout(sized(600, 20_000))
def test_connection_to_redis_may_end_at_any_byte_of_a_conversation(start, redis, proxy):
    witness = start("witness", redis)
    witness.wait_log("cluster joined", within=60)
    assert converse_once(start, proxy, witness, "kept:whole")
    whole = dict(proxy.passed)
    cuts = 0
    for direction, step in (("up", sized(479, 1)), ("down", sized(239, 1))):
        for place in range(1, whole[direction], step):
            redis.command("DEL", "sluice:{nodes}:records", "sluice:{nodes}:leases")
            proxy.cut_after(direction, place)
            try:
                converse_once(start, proxy, witness, f"kept:{direction}-{place}")
            except Exception as error:
                raise AssertionError(f"cut after byte {place} {direction}") from error
            cuts += proxy.has_cut
    print(f"{cuts} cuts of {whole}")
    assert cuts > 20


@pytest.mark.parametrize("latency, piece", [(0.2, 1 << 16), (0.002, 32)], ids=["late", "in small pieces"])
def test_slow_redis_refuses_nothing(start, redis, proxy, latency, piece):
    witness = start("witness", redis)
    witness.wait_log("cluster joined", within=60)
    proxy.latency, proxy.piece = latency, piece
    assert converse_once(start, proxy, witness, "kept:x")


def test_publication_whose_reply_comes_too_late_reaches_all_once(start, redis, proxy):
    nodes = [start("witness", redis), start("slow", proxy)]
    for node in nodes:
        node.wait_log("cluster joined", within=60)

    async def conversation():
        async with Member(nodes[0], "kept:x") as eve, Member(nodes[1], "kept:x") as ann:
            for member in (eve, ann):
                await member.enter()
            # Longer than a command may take: Redis has stored what the node takes for lost.
            proxy.delayed = ["down"]
            proxy.latency = 6
            assert (await ann.publish("kept:x", 1))["error"]["code"] == 100
            proxy.latency = 0
            number = 1

            async def accepted():
                nonlocal number
                number += 1
                return "publish" in await ann.publish("kept:x", number)

            await eventually(accepted)
            for member in (eve, ann):
                await member.hear(number)
            assert eve.heard == ann.heard == sorted(set(eve.heard)) and eve.heard[0] == 1

    asyncio.run(conversation())


def test_redis_that_starts_again_empty_begins_another_epoch(start, redis):
    nodes = [start("a", redis), start("b", redis)]
    for node in nodes:
        node.wait_log("cluster joined", within=60)

    async def conversation():
        async with Client(nodes[0]) as ann, Client(nodes[1]) as bob:
            before = await bob.subscribe("kept:x")
            await published(ann, "kept:x", "before")
            assert (await bob.push("pub"))["data"] == "before"
            redis.kill()
            redis.start()
            assert (await bob.push("unsubscribe"))["code"] == 2500

            async def entered():
                nonlocal reply
                reply = await bob.command(
                    "subscribe", {"channel": "kept:x", "recover": True, "epoch": before["epoch"], "offset": 1})
                return "subscribe" in reply

            reply = None
            await eventually(entered)
            again = reply["subscribe"]
            assert not again.get("recovered") and again["epoch"] != before["epoch"] and not again.get("publications")
            await published(ann, "kept:x", "after")
            push = await bob.push("pub")
            assert (push["data"], push["offset"]) == ("after", again.get("offset", 0) + 1)

    asyncio.run(conversation())
