"""Clients of several gateways that check every message: none lost, none doubled, one order for all.

Clients publish and receive in rooms that keep their history, while gateways are killed and started at random. A client
connects again to any gateway that runs, and recovers what it missed.
"""
import asyncio
import contextlib
import json
import random

import websockets


class Client:
    def __init__(self, load, number, room):
        self.load, self.number, self.room = load, number, room
        self.epoch, self.offset = "", 0
        self.received = []
        self.recoveries = 0
        self.commands = 0
        self.pending = {}
        self.socket = None
        self.ready = asyncio.Event()

    async def run(self):
        pause = 0.05
        while not self.load.is_over:
            node = self.load.any_node()
            try:
                uri = f"ws://127.0.0.1:{node.port()}/connection/websocket"
                async with websockets.connect(uri, open_timeout=10, max_size=1 << 24, compression=None) as self.socket:
                    self.load.connections += 1
                    await self.enter()
                    pause = 0.05
                    await self.read()
            except (OSError, websockets.WebSocketException, TimeoutError, EOFError):
                pass
            finally:
                self.ready.clear()
                self.socket = None
                # Their fate is unknown.
                self.pending.clear()
            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(2, pause * 2)

    async def send(self, **command):
        self.commands += 1
        await self.socket.send(json.dumps({"id": self.commands, **command}))
        return self.commands

    async def enter(self):
        await self.send(connect={})
        await self.subscribe()

    async def subscribe(self):
        self.subscription = await self.send(
            subscribe={"channel": self.room, "recover": True, "epoch": self.epoch, "offset": self.offset})

    async def publish(self, data):
        if not self.ready.is_set():
            return
        with contextlib.suppress(websockets.WebSocketException):
            self.load.published += 1
            self.pending[self.commands + 1] = data
            await self.send(publish={"channel": self.room, "data": data})

    async def read(self):
        async for text in self.socket:
            for line in text.splitlines():
                message = json.loads(line)
                if message == {}:
                    await self.socket.send("{}")
                elif "push" in message:
                    await self.pushed(message["push"])
                elif message.get("id") == self.subscription:
                    await self.subscribed(message)
                elif message.get("id") in self.pending:
                    data = self.pending.pop(message["id"])
                    # A publication that was refused may be stored.
                    if "publish" in message:
                        self.load.acknowledged.add(data)

    async def subscribed(self, reply):
        if "error" in reply:
            # Temporary: Redis cannot be reached by this node.
            await asyncio.sleep(0.1)
            return await self.subscribe()
        result = reply["subscribe"]
        if self.epoch:
            self.recoveries += 1
            if not result.get("recovered"):
                self.load.complain(f"client {self.number} was not recovered from {self.offset}: {result}")
        self.epoch = result["epoch"]
        if result.get("offset", 0) != self.offset:
            self.load.complain(f"client {self.number} at {self.offset} got a reply that begins at {result.get('offset', 0)}")
        for publication in result.get("publications", []):
            self.take(publication)
        self.ready.set()

    async def pushed(self, push):
        if "pub" in push:
            self.take(push["pub"])
        elif "unsubscribe" in push:
            self.ready.clear()
            await self.subscribe()

    def take(self, publication):
        offset = publication["offset"]
        if offset != self.offset + 1:
            self.load.complain(f"client {self.number} in {self.room}: offset {offset} after {self.offset}")
        self.offset = offset
        self.received.append(publication["data"])
        self.load.deliveries += 1


class Load:
    """Gateways are objects with `port()`; `restart(index)` kills one and returns another in its place."""

    def __init__(self, nodes, restart, clients, rooms, rate):
        self.nodes, self.restart, self.rate = nodes, restart, rate
        self.rooms = [f"kept:{number}" for number in range(rooms)]
        self.clients = [Client(self, number, self.rooms[number % rooms]) for number in range(clients)]
        self.acknowledged = set()
        self.published = self.deliveries = self.kills = self.connections = 0
        self.complaints = []
        self.is_over = False
        self.down = set()

    @property
    def recoveries(self):
        return sum(client.recoveries for client in self.clients)

    def any_node(self):
        return random.choice([node for index, node in enumerate(self.nodes) if index not in self.down])

    def complain(self, text):
        self.complaints.append(text)
        print("VIOLATION:", text, flush=True)

    async def run(self, seconds, between, is_enough, disturb=None):
        """
        seconds: of the load, at least; it goes on until `is_enough`, for 240 s more at most.
        between: shortest and longest time between two kills.
        disturb: does what else may happen, once, and undoes what clients could not live with; it is called again and again.
        """
        tasks = [asyncio.create_task(client.run()) for client in self.clients]
        chaos = asyncio.create_task(self.kill(between))
        publishing = asyncio.create_task(self.publish())
        end = asyncio.get_running_loop().time() + seconds
        while (rest := end - asyncio.get_running_loop().time()) > (0 if is_enough() else -240):
            await (asyncio.sleep(max(rest, 0.1)) if disturb is None else disturb())
        for task in (chaos, publishing):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self.settle()
        self.is_over = True
        for client in self.clients:
            if client.socket:
                await client.socket.close()
        await asyncio.gather(*tasks)
        self.judge()

    async def kill(self, between):
        while True:
            await asyncio.sleep(random.uniform(*between))
            index = random.randrange(len(self.nodes))
            self.down.add(index)
            self.nodes[index] = await asyncio.shield(asyncio.to_thread(self.restart, index))
            self.down.discard(index)
            self.kills += 1

    async def publish(self):
        number = 0
        while True:
            await asyncio.sleep(0.02)
            for _ in range(max(1, round(self.rate * 0.02))):
                number += 1
                await random.choice(self.clients).publish(number)

    async def settle(self):
        """Waits until all clients of a room have received as much as the one that received most."""
        async with asyncio.timeout(240):
            while True:
                await asyncio.sleep(0.5)
                newest = {}
                for client in self.clients:
                    newest[client.room] = max(newest.get(client.room, 0), client.offset)
                pending = any(client.pending for client in self.clients)
                if not pending and all(
                        client.ready.is_set() and client.offset == newest[client.room] for client in self.clients):
                    return

    def judge(self):
        for room in self.rooms:
            members = [client for client in self.clients if client.room == room]
            longest = max((client.received for client in members), key=len)
            for client in members:
                # A client that came late has what followed; the offsets say that nothing is missing between.
                if client.received != longest[len(longest) - len(client.received):]:
                    self.complain(f"client {client.number} in {room} received other messages than others")
            if len(set(longest)) != len(longest):
                self.complain(f"a message twice in {room}")
        heard = {data for client in self.clients for data in client.received}
        if not self.acknowledged <= heard:
            self.complain(f"acknowledged and not received: {sorted(self.acknowledged - heard)[:20]}")
