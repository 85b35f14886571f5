"""A small server of Centrifuge's client protocol v2 (JSON over WebSocket), for clients of it."""

import asyncio
import json
import threading
import uuid

from websockets.asyncio.server import serve


class ChatService:
    """Runs on a thread of its own. Rooms keep every publication of their epoch."""

    def __init__(self, ping=25):
        self.ping = ping
        self.rooms = {}
        self.clients = {}
        # Every command that arrived, in order.
        self.commands = []
        self.pongs = 0
        self.epoch = "first"
        # Is published once, in the message with the next reply to `subscribe`.
        self.behind = None

    def __enter__(self):
        ready = threading.Event()
        self.loop = asyncio.new_event_loop()

        async def main():
            self.stopped = asyncio.Event()
            async with serve(self.serve, "127.0.0.1", 0) as server:
                self.port = server.sockets[0].getsockname()[1]
                ready.set()
                await self.stopped.wait()
        self.thread = threading.Thread(target=lambda: self.loop.run_until_complete(main()), daemon=True)
        self.thread.start()
        ready.wait()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.stopped.set)
        self.thread.join(10)

    def call(self, body):
        return asyncio.run_coroutine_threadsafe(body, self.loop).result(10)

    # -- the protocol

    async def serve(self, socket):
        client = {"id": str(uuid.uuid4()), "socket": socket, "rooms": set(), "info": {}}
        beat = None
        try:
            async for message in socket:
                replies = []
                for line in message.split("\n"):
                    command = json.loads(line)
                    self.commands.append(command)
                    if not command:
                        self.pongs += 1
                    elif "connect" in command:
                        client["info"] = {"client": client["id"], "user": ""}
                        self.clients[client["id"]] = client
                        replies.append({"id": command["id"], "connect": {
                            "client": client["id"], "version": "test", "ping": self.ping, "pong": True}})
                        beat = asyncio.create_task(self.beat(socket))
                    else:
                        replies.append(await self.answer(client, command))
                        if "subscribe" in command and self.behind:
                            name, self.behind, data = command["subscribe"]["channel"], None, self.behind
                            replies.append({"push": {"channel": name, "pub": self.add(name, data)}})
                if replies:
                    await socket.send("\n".join(json.dumps(reply) for reply in replies))
        finally:
            if beat:
                beat.cancel()
            self.clients.pop(client["id"], None)
            for name in client["rooms"]:
                await self.push(name, {"leave": {"info": client["info"]}})

    async def beat(self, socket):
        while True:
            await asyncio.sleep(self.ping)
            await socket.send("{}")

    def history(self, name):
        return self.rooms.setdefault(name, [])

    def add(self, name, data):
        """Publishes without telling anyone."""
        past = self.history(name)
        past.append({"data": data, "offset": len(past) + 1})
        return past[-1]

    async def answer(self, client, command):
        number = command["id"]
        if "subscribe" in command:
            asked = command["subscribe"]
            name = asked["channel"]
            if name == "forbidden":
                return {"id": number, "error": {"code": 103, "message": "permission denied"}}
            client["rooms"].add(name)
            await self.push(name, {"join": {"info": client["info"]}}, besides=client)
            past = self.history(name)
            result = {"recoverable": True, "positioned": True, "epoch": self.epoch, "offset": len(past)}
            if asked.get("recover"):
                recovered = asked.get("epoch") == self.epoch
                result |= {"was_recovering": True, "recovered": recovered,
                           "publications": past[asked.get("offset", 0):] if recovered else []}
            return {"id": number, "subscribe": result}
        if "publish" in command:
            name = command["publish"]["channel"]
            past = self.history(name)
            publication = {"data": command["publish"]["data"], "info": client["info"], "offset": len(past) + 1}
            past.append(publication)
            await self.push(name, {"pub": publication})
            return {"id": number, "publish": {}}
        if "presence" in command:
            name = command["presence"]["channel"]
            present = {one["id"]: one["info"] for one in self.clients.values() if name in one["rooms"]}
            return {"id": number, "presence": {"presence": present}}
        if "history" in command:
            past = self.history(command["history"]["channel"])
            wanted = past[::-1] if command["history"].get("reverse") else past
            return {"id": number, "history": {"publications": wanted[:command["history"].get("limit", 0)],
                                              "offset": len(past), "epoch": self.epoch}}
        return {"id": number, "error": {"code": 104, "message": "method not found"}}

    async def push(self, name, push, besides=None):
        text = json.dumps({"push": {"channel": name, **push}})
        for one in list(self.clients.values()):
            if name in one["rooms"] and one is not besides:
                await one["socket"].send(text)

    # -- faults

    def cut(self):
        """Ends the TCP connection of every client without a Close frame; they get nothing more."""
        async def cut():
            clients, self.clients = self.clients, {}
            for one in clients.values():
                one["socket"].transport.abort()
        self.call(cut())

    def close(self, code, reason=""):
        async def close():
            for one in list(self.clients.values()):
                await one["socket"].close(code, reason)
        self.call(close())

    def publish(self, name, data):
        """As another client."""
        async def publish():
            await self.push(name, {"pub": self.add(name, data)})
        self.call(publish())
