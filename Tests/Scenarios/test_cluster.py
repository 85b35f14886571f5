"""Several gateways that are one system by Redis, a real redis-server."""
import asyncio
import contextlib
import json
import shutil
import signal
import time
import urllib.error
import urllib.request

import pytest
import websockets
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from support import deadlines
from support.brokers import await_redis
from support.cluster import configuration
from support.control import Control
from support.redis import Redis

CONFIGURATION = configuration("""
loops: 2
routes:
  - {name: programs, path: /connection/websocket, target: rooms}
  - {name: chat, path: "/chat/{room}", target: chat}
  - {name: events, path: /connection/uni_sse, target: room-events}
rooms:
  user-header: X-User
  command-rate: 1000000
  # Tests do not read from all of their clients all the time.
  ping-interval: 1h
  max-connections-per-user: 2
  policies:
    - {name: kept, pattern: "kept:*", publish: everyone, history-size: 1000, history-time: 1h, recovery: stream, presence: true, join-leave: true}
    - {name: members, pattern: "members:*", history-size: 10, recovery: stream, presence: true}
    - {name: open, pattern: "*", publish: everyone}
""", cluster="presence-time: 3s, when-away: WHENAWAY")
DEADLINE = deadlines.seconds(60)


@pytest.fixture
def redis(tmp_path):
    with Redis(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as one:
        yield one


class Nodes:
    """Gateways of one cluster, by name."""

    def __init__(self, sluice, redis, directory):
        self.sluice, self.redis, self.directory = sluice, redis, directory

    def start(self, name, when_away="refuse", is_durable=True):
        file = self.directory / f"{name}.yaml"
        text = CONFIGURATION.replace("REDIS", self.redis.url).replace("NAME", name).replace("WHENAWAY", when_away)
        if not is_durable:
            text = text.replace("presence-time:", "durable: false, presence-time:")
        file.write_text(text)
        node = self.sluice("serve", "--config", file)
        node.wait_log(" notice cluster joined")
        await_redis(Control.of(node))
        return node


@pytest.fixture
def nodes(sluice, redis, tmp_path):
    return Nodes(sluice, redis, tmp_path)


class Client:
    """A client of the rooms' protocol in JSON, which keeps what it received."""

    def __init__(self, node, user=""):
        self.node, self.user = node, user
        self.number = 0
        self.pushes = []

    async def __aenter__(self):
        headers = {"X-User": self.user} if self.user else {}
        uri = f"ws://127.0.0.1:{self.node.port()}/connection/websocket"
        self.socket = await websockets.connect(
            uri, additional_headers=headers, open_timeout=DEADLINE, ping_interval=None)
        await self.command("connect", {})
        return self

    async def __aexit__(self, *_):
        await self.socket.close()

    async def read(self):
        """The next reply; pushes are kept."""
        while True:
            async with asyncio.timeout(DEADLINE):
                text = await self.socket.recv()
            for line in text.splitlines():
                message = json.loads(line)
                if message == {}:
                    await self.socket.send("{}")
                elif "push" in message:
                    self.pushes.append(message["push"])
                else:
                    return message

    async def send(self, method, request):
        self.number += 1
        await self.socket.send(json.dumps({"id": self.number, method: request}))

    async def command(self, method, request):
        await self.send(method, request)
        reply = await self.read()
        assert reply["id"] == self.number, reply
        return reply

    async def subscribe(self, channel, **more):
        return (await self.command("subscribe", {"channel": channel, **more}))["subscribe"]

    async def publish(self, channel, data):
        return await self.command("publish", {"channel": channel, "data": data})

    async def push(self, kind):
        """The next push of this kind; those before it are dropped."""
        while True:
            while self.pushes:
                push = self.pushes.pop(0)
                if kind in push:
                    return push[kind]
            async with asyncio.timeout(DEADLINE):
                text = await self.socket.recv()
            for line in text.splitlines():
                message = json.loads(line)
                if message == {}:
                    await self.socket.send("{}")
                elif "push" in message:
                    self.pushes.append(message["push"])


async def published(client, channel, data):
    """Publishes as soon as Redis is back."""
    async def accepted():
        return "publish" in await client.publish(channel, data)

    await eventually(accepted)


async def answered(client, method, request):
    """The result of a command, as soon as Redis is back."""
    result = None

    async def succeeded():
        nonlocal result
        reply = await client.command(method, request)
        assert "error" not in reply or reply["error"]["code"] == 100, reply
        result = reply.get(method)
        return result is not None

    await eventually(succeeded)
    return result


async def eventually(condition):
    async with asyncio.timeout(DEADLINE):
        while not await condition():
            await asyncio.sleep(0.02)


def request(node, path, method="GET", body=None, **fields):
    """The response of the control plane, also one with an error's status."""
    control = next(line.split()[2] for line in node.output.all() if line.startswith("control on "))
    one = urllib.request.Request(
        control + path, method=method, data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **fields})
    try:
        return urllib.request.urlopen(one, timeout=DEADLINE)
    except urllib.error.HTTPError as refusal:
        return refusal


def rest(node, path, method="GET", body=None):
    with request(node, path, method, body) as response:
        text = response.read()
        assert response.status < 400, text
    return json.loads(text) if text else None


def redis_metrics(node):
    """Values of the samples of Redis by their names, and the histogram's buckets, by their bounds."""
    with request(node, "/metrics", Accept="application/openmetrics-text") as response:
        text = response.read().decode()
    values, buckets = {}, {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.endswith("_bucket") and sample.name.startswith("sluice_redis_"):
                buckets[float(sample.labels["le"])] = sample.value
            elif sample.name.startswith("sluice_redis_"):
                values[sample.name.removeprefix("sluice_redis_")] = sample.value
    return values, buckets


def test_commands_sent_with_connect_wait_for_its_rooms(nodes):
    node = nodes.start("a")

    async def scenario():
        commands = [{"id": 1, "connect": {"subs": {"kept:a": {}}}}, {"id": 2, "subscribe": {"channel": "kept:b"}}]
        async with websockets.connect(f"ws://127.0.0.1:{node.port()}/connection/websocket") as socket:
            await socket.send("\n".join(map(json.dumps, commands)))
            replies = []
            while len(replies) < 2:
                async with asyncio.timeout(DEADLINE):
                    text = await socket.recv()
                replies += [message for message in map(json.loads, text.splitlines()) if "id" in message]
        assert list(replies[0]["connect"]["subs"]) == ["kept:a"]
        assert replies[1]["id"] == 2 and replies[1]["subscribe"]["recoverable"]

    asyncio.run(scenario())


def test_commands_sent_after_an_entry_are_those_of_a_member(nodes):
    node = nodes.start("a")

    async def scenario():
        room = {"channel": "members:x"}
        requests = [{"subscribe": room}, {"publish": {**room, "data": 1}}, {"history": {**room, "limit": 1}}, {"presence": room}]
        async with Client(node) as ann:
            await ann.socket.send("\n".join(json.dumps({"id": 2 + index, **one}) for index, one in enumerate(requests)))
            received = []
            while sum("id" in one for one in received) < len(requests):
                async with asyncio.timeout(DEADLINE):
                    received += map(json.loads, (await ann.socket.recv()).splitlines())
        replies = {one["id"]: one for one in received if "id" in one}
        assert not any("error" in one for one in replies.values()), replies
        assert list(replies)[0] == 2 and replies[4]["history"]["publications"][0]["data"] == 1
        assert len(replies[5]["presence"]["presence"]) == 1

    asyncio.run(scenario())


def test_message_to_a_user_follows_the_reply_to_connect(nodes, redis):
    node = nodes.start("a")

    async def scenario():
        uri = f"ws://127.0.0.1:{node.port()}/connection/websocket"
        async with websockets.connect(uri, additional_headers={"X-User": "ann"}) as socket:
            # Redis counts the connections of the user before the reply.
            redis.pause()
            await socket.send(json.dumps({"id": 1, "connect": {}}))

            async def is_sent():
                answer = await asyncio.to_thread(rest, node, "/v1/users/ann:send?node=a", "POST", {"data": "hello"})
                return answer["clients"] == 1

            await eventually(is_sent)
            redis.resume()
            received = []
            while len(received) < 2:
                async with asyncio.timeout(DEADLINE):
                    received += map(json.loads, (await socket.recv()).splitlines())
        assert "connect" in received[0] and received[1]["push"]["message"]["data"] == "hello"

    asyncio.run(scenario())


def test_members_on_all_nodes_get_the_same_messages_in_one_order(nodes):
    first, second = nodes.start("a"), nodes.start("b")

    async def run():
        async with Client(first) as ann, Client(second) as bob, Client(second) as eve:
            for one in (ann, bob):
                await one.subscribe("kept:x")
            # Its own entry, and bob's.
            assert await ann.push("join") and await ann.push("join")
            for number in range(50):
                await (ann, bob, eve)[number % 3].publish("kept:x", number)
            heard = [[(await one.push("pub")) for _ in range(50)] for one in (ann, bob)]
            offsets = [pub["offset"] for pub in heard[0]]
            assert offsets == list(range(1, 51))
            assert [(pub["offset"], pub["data"]) for pub in heard[0]] == [(pub["offset"], pub["data"]) for pub in heard[1]]
            presence = (await ann.command("presence", {"channel": "kept:x"}))["presence"]["presence"]
            assert len(presence) == 2
            history = (await bob.command("history", {"channel": "kept:x", "limit": 3, "reverse": True}))["history"]
            assert [pub["offset"] for pub in history["publications"]] == [50, 49, 48]

    asyncio.run(run())


def test_client_recovers_on_another_node_what_it_missed(nodes):
    first, second = nodes.start("a"), nodes.start("b")

    async def run():
        async with Client(first) as ann:
            position = await ann.subscribe("kept:x")
            await ann.publish("kept:x", 0)
            assert (await ann.push("pub"))["offset"] == 1
        async with Client(first) as eve:
            for number in range(1, 6):
                await eve.publish("kept:x", number)
        first.kill()
        async with Client(second) as ann:
            again = await ann.subscribe("kept:x", recover=True, epoch=position["epoch"], offset=1)
            assert again["recovered"] is True
            assert [pub["data"] for pub in again["publications"]] == [1, 2, 3, 4, 5]

    asyncio.run(run())


def test_clients_of_a_node_that_was_killed_are_listed_until_they_expire(nodes):
    first, second = nodes.start("a"), nodes.start("b")

    async def run():
        async with Client(second) as bob:
            await bob.subscribe("kept:x")
            async with Client(first) as ann:
                await ann.subscribe("kept:x")

                async def listed(count):
                    presence = await bob.command("presence", {"channel": "kept:x"})
                    return len(presence["presence"]["presence"]) == count

                await eventually(lambda: listed(2))
                start = time.monotonic()
                first.kill()
                # A node renews them long before. On a machine that is too slow, they have expired.
                assert await listed(2) or time.monotonic() - start > 1
                await eventually(lambda: listed(1))

    with contextlib.suppress(websockets.ConnectionClosed):
        asyncio.run(run())


def test_limit_of_a_users_connections_holds_across_nodes(nodes):
    first, second = nodes.start("a"), nodes.start("b")

    async def run():
        async with Client(first, "ann"), Client(second, "ann"):
            refused = Client(second, "ann")
            with pytest.raises(websockets.ConnectionClosed) as closed:
                async with refused:
                    await refused.read()
            assert closed.value.rcvd.code == 3504

        async def admitted():
            try:
                async with Client(first, "ann"):
                    return True
            except websockets.ConnectionClosed as end:
                assert end.rcvd.code == 3504
                return False

        # Redis forgets connections after they have ended.
        await eventually(admitted)

    asyncio.run(run())


def test_plain_chat_crosses_nodes_and_the_sender_hears_nothing(nodes):
    first, second = nodes.start("a"), nodes.start("b")

    async def run():
        async with websockets.connect(f"ws://127.0.0.1:{first.port()}/chat/kept:p") as ann, \
                websockets.connect(f"ws://127.0.0.1:{second.port()}/chat/kept:p") as bob, Client(second) as eve:
            await eve.subscribe("kept:p")
            async with asyncio.timeout(DEADLINE):
                # He is in the room when the gateway reads from him.
                await (await bob.ping())
                await ann.send("hello")
                assert await bob.recv() == "hello"
            assert (await eve.push("pub"))["data"] == "hello"
            await bob.send(b"\x00\x01")
            async with asyncio.timeout(DEADLINE):
                assert await ann.recv() == b"\x00\x01"

    asyncio.run(run())


def test_publishing_is_refused_while_redis_is_away_and_nothing_is_missed_afterwards(nodes, redis):
    first, second = nodes.start("a"), nodes.start("b")

    async def run():
        async with Client(first) as ann, Client(second) as bob:
            await ann.subscribe("kept:x")
            await bob.subscribe("kept:x")
            await ann.publish("kept:x", "before")
            assert (await bob.push("pub"))["data"] == "before"
            redis.kill()
            first.wait_log("redis lost")
            refusal = (await ann.publish("kept:x", "during"))["error"]
            assert (refusal["code"], refusal["temporary"]) == (100, True)
            redis.start()

            await published(ann, "kept:x", "after")
            assert (await bob.push("pub"))["data"] == "after"
            assert first.running() and second.running()

    asyncio.run(run())


def test_rest_says_503_while_redis_is_away(nodes, redis):
    node = nodes.start("a")
    assert rest(node, "/v1/rooms/kept%3Ax:publish", "POST", {"data": 1})["offset"] == 1
    redis.kill()
    node.wait_log("redis lost")

    async def is_away(room):
        # The loop of each room notices by itself. Until then, the fate of a request is unknown.
        with await asyncio.to_thread(request, node, f"/v1/rooms/{room}:publish", "POST", {"data": 2}) as response:
            assert response.status in (502, 503), response.read()
            return response.status == 503

    for room in ("kept%3Ax", "open"):
        asyncio.run(eventually(lambda: is_away(room)))
    calls = [("POST", "/v1/rooms/kept%3Ax:publish", {"data": 2}), ("GET", "/v1/rooms/kept%3Ax/history", None),
             ("DELETE", "/v1/rooms/kept%3Ax/history", None), ("POST", "/v1/rooms/open:publish", {"data": 2})]
    for method, path, body in calls:
        with request(node, path, method, body) as response:
            problem = json.loads(response.read())
            assert (response.status, response.headers["Retry-After"]) == (503, "1"), (path, problem)
            assert response.headers["Content-Type"] == "application/problem+json"
            assert (problem["code"], problem["retryable"]) == ("rooms-away", True), (path, problem)
    broadcast = {"rooms": ["kept:x", "open"], "data": 2}
    with request(node, "/v1/rooms:broadcast", "POST", broadcast) as response:
        assert "rooms-away" in response.read().decode()
    # What only this node knows is there as ever.
    assert rest(node, "/v1/rooms")["items"] == []
    redis.start()

    async def accepted():
        with await asyncio.to_thread(request, node, "/v1/rooms/kept%3Ax:publish", "POST", {"data": 3}) as response:
            return response.status == 200 and json.loads(response.read())["offset"] == 2

    asyncio.run(eventually(accepted))


def test_metrics_count_what_connections_to_redis_do(nodes, redis):
    node = nodes.start("a")
    counted = {"commands", "failures", "refusals", "connections", "losses", "messages", "message_bytes"}

    async def run():
        async with Client(node) as ann:
            await ann.subscribe("kept:x")
            before, _ = redis_metrics(node)
            assert set(before) == {f"{name}_total" for name in counted} | {"latency_seconds_count", "latency_seconds_sum"}
            # One at least for commands, and one for messages; each loop opens its own.
            assert before["connections_total"] >= 2
            for number in range(20):
                await ann.publish("kept:x", "x" * 100)
                await ann.push("pub")
            after, buckets = redis_metrics(node)

            def grown(name):
                return after[name] - before[name]

            assert grown("commands_total") >= 20 and grown("messages_total") >= 20
            assert grown("message_bytes_total") >= 20 * 100
            # A periodic command may have been unanswered before.
            assert 20 <= grown("latency_seconds_count") and after["latency_seconds_count"] <= after["commands_total"]
            assert 0 < grown("latency_seconds_sum") < 20 * DEADLINE
            assert [buckets[bound] for bound in sorted(buckets)] == sorted(buckets.values())
            assert buckets[float("inf")] == after["latency_seconds_count"] and len(buckets) == 16
            assert (grown("failures_total"), grown("losses_total")) == (0, 0)

            redis.pause()
            await ann.send("publish", {"channel": "kept:x", "data": 1})

            async def sent():
                return redis_metrics(node)[0]["commands_total"] > after["commands_total"]

            await eventually(sent)
            redis.kill()
            assert "error" in await ann.read()
            node.wait_log("redis lost")
            lost, _ = redis_metrics(node)
            assert lost["losses_total"] > after["losses_total"] and lost["failures_total"] > after["failures_total"]
            redis.start()
            await published(ann, "kept:x", 2)
            again, _ = redis_metrics(node)
            assert again["connections_total"] > after["connections_total"]

    asyncio.run(run())


def test_restart_of_a_redis_that_keeps_everything_does_not_interrupt_the_stream(nodes, redis):
    node = nodes.start("a")

    async def run():
        async with Client(node) as ann:
            position = await ann.subscribe("kept:x")
            await ann.publish("kept:x", 1)
            redis.kill()
            redis.start()

            await published(ann, "kept:x", 2)
        async with Client(node) as ann:
            again = await ann.subscribe("kept:x", recover=True, epoch=position["epoch"], offset=0)
            assert again["recovered"] is True and again["epoch"] == position["epoch"]
            received = [pub["data"] for pub in again["publications"]]
            # The node may have joined its stream again only after it was asked: the rest comes as pushes then.
            while len(received) < 2:
                received.append((await ann.push("pub"))["data"])
            assert received == [1, 2]

    asyncio.run(run())


def test_restart_without_the_last_publication_begins_another_epoch(nodes, redis, tmp_path):
    """The append-only file lacks the end, as after a crash of a machine with `appendfsync everysec`."""
    first, second = nodes.start("a", is_durable=False), nodes.start("b", is_durable=False)
    file, older = tmp_path / "appendonlydir", tmp_path / "older"

    async def run():
        async with Client(first) as ann:
            position = await ann.subscribe("kept:x")
            await ann.publish("kept:x", "kept")
            shutil.copytree(file, older)
            await ann.publish("kept:x", "lost")
            for _ in range(2):
                await ann.push("pub")
        # It would notice that Redis has gone back.
        first.kill()
        redis.kill()
        shutil.rmtree(file)
        older.rename(file)
        redis.start()
        async with Client(second) as bob:
            await published(bob, "kept:x", "new")
            again = await bob.subscribe("kept:x", recover=True, epoch=position["epoch"], offset=2)
            assert not again.get("recovered") and again["epoch"] != position["epoch"]
            history = (await bob.command("history", {"channel": "kept:x", "limit": 9}))["history"]
            assert [pub["data"] for pub in history["publications"]][:2] == ["kept", "new"]

    asyncio.run(run())


def test_node_that_has_more_than_redis_leaves_what_redis_has(nodes, redis, tmp_path):
    """The append-only file lacks the end, as after a crash of a machine with `appendfsync everysec`."""
    node = nodes.start("a")
    file, older = tmp_path / "appendonlydir", tmp_path / "older"

    async def run():
        uri = f"ws://127.0.0.1:{node.port()}/chat/kept:x"
        async with Client(node) as ann, websockets.connect(uri) as bob:
            position = await ann.subscribe("kept:x")
            await asyncio.wait_for(await bob.ping(), DEADLINE)
            await ann.publish("kept:x", "kept")
            shutil.copytree(file, older)
            await ann.publish("kept:x", "lost")
            for _ in range(2):
                await ann.push("pub")
            redis.kill()
            shutil.rmtree(file)
            older.rename(file)
            redis.start()
            assert (await ann.push("unsubscribe"))["code"] == 2500
            again = await ann.subscribe("kept:x", recover=True, epoch=position["epoch"], offset=2)
            assert not again.get("recovered") and again["epoch"] != position["epoch"] and again.get("offset") == 1
            await published(ann, "kept:x", "new")
            history = (await ann.command("history", {"channel": "kept:x", "limit": 9}))["history"]
            assert [(pub["data"], pub["offset"]) for pub in history["publications"]] == [("kept", 1), ("new", 2)]
            for text in ("kept", "lost", "new"):
                assert await asyncio.wait_for(bob.recv(), DEADLINE) == text

    asyncio.run(run())


def test_nothing_is_delivered_twice_when_an_older_version_began_the_epoch(nodes, redis):
    """It does not store where its epoch begins, and leaves what is stored of a former one."""
    node = nodes.start("a")

    async def run():
        uri = f"ws://127.0.0.1:{node.port()}/chat/kept:x"
        async with websockets.connect(uri) as ann, websockets.connect(uri) as bob:
            # Pongs show that both are in the room.
            for one in (ann, bob):
                await asyncio.wait_for(await one.ping(), DEADLINE)
            for number in range(6):
                if number == 3:
                    redis.command("HSET", "sluice:room:{kept%3Ax}:meta", "e", "older")
                    redis.command("CLIENT", "KILL", "TYPE", "pubsub")
                await ann.send(str(number))
                assert await asyncio.wait_for(bob.recv(), DEADLINE) == str(number)

    asyncio.run(run())


@pytest.mark.parametrize("run, keeps", [("f" * 40, False), ("durable", True)])
def test_stream_of_an_older_version_keeps_its_epoch_in_the_run_that_it_names(nodes, redis, run, keeps):
    first, second = nodes.start("a"), nodes.start("b")

    async def run_clients():
        async with Client(first) as ann:
            position = await ann.subscribe("kept:x")
            await ann.publish("kept:x", 1)
        meta = "sluice:room:{kept%3Ax}:meta"
        assert redis.command("HGET", meta, "e") == position["epoch"]
        redis.command("HDEL", meta, "s", "f")
        redis.command("HSET", meta, "r", run)
        async with Client(second) as bob:
            again = await bob.subscribe("kept:x", recover=True, epoch=position["epoch"], offset=1)
            assert bool(again.get("recovered")) == (again["epoch"] == position["epoch"]) == keeps

    asyncio.run(run_clients())


def test_redis_that_forgot_everything_begins_another_epoch(nodes, redis):
    node = nodes.start("a")

    async def run():
        async with Client(node) as ann:
            position = await ann.subscribe("kept:x")
            await ann.publish("kept:x", 1)
            await ann.push("pub")
            redis.command("FLUSHALL")
            redis.command("CLIENT", "KILL", "TYPE", "pubsub")
            assert (await ann.push("unsubscribe"))["code"] == 2500
            again = await ann.subscribe("kept:x", recover=True, epoch=position["epoch"], offset=1)
            assert again.get("recovered", False) is False and again["epoch"] != position["epoch"]

    asyncio.run(run())


def test_chat_members_get_what_is_said_after_redis_forgot_everything(nodes, redis):
    first, second = nodes.start("a"), nodes.start("b")

    async def run():
        uris = [f"ws://127.0.0.1:{node.port()}/chat/kept:x" for node in (first, second)]
        async with websockets.connect(uris[0]) as ann, websockets.connect(uris[1]) as bob:
            # Pongs show that both are in the room.
            for one in (ann, bob):
                await asyncio.wait_for(await one.ping(), DEADLINE)
            for number in range(9):
                if number % 3 == 0:
                    redis.command("FLUSHALL")
                await ann.send(str(number))
                assert await asyncio.wait_for(bob.recv(), DEADLINE) == str(number)

    asyncio.run(run())


def test_copy_of_a_history_expires_with_the_history(nodes, redis):
    first, second = nodes.start("a"), nodes.start("b")

    async def run():
        async with Client(first) as ann, Client(second) as bob:
            position = await ann.subscribe("kept:x")
            await ann.publish("kept:x", 1)
            redis.command("PEXPIRE", "sluice:room:{kept%3Ax}:stream", "3000")
            await bob.subscribe("kept:x")

            async def is_over():
                async with Client(second) as eve:
                    again = await eve.subscribe("kept:x", recover=True, epoch=position["epoch"], offset=0)
                return not again.get("recovered")

            await eventually(is_over)

    asyncio.run(run())


def test_connection_to_redis_that_is_lost_loses_no_message(nodes, redis):
    first, second = nodes.start("a"), nodes.start("b")

    async def run():
        async with Client(first) as ann, Client(second) as bob:
            await bob.subscribe("kept:x")
            acknowledged = []
            for number in range(200):
                if number % 20 == 10:
                    redis.command("CLIENT", "KILL", "TYPE", "pubsub")
                reply = await ann.publish("kept:x", number)
                if "publish" in reply:
                    acknowledged.append(number)
            heard = []
            while not acknowledged or acknowledged[-1] not in heard:
                heard.append((await bob.push("pub"))["data"])
            assert len(set(heard)) == len(heard) and set(acknowledged) <= set(heard)
            assert heard == sorted(heard)

    asyncio.run(run())


def test_rooms_without_history_go_on_alone_where_the_configuration_says_so(nodes, redis):
    node = nodes.start("a", when_away="local")

    async def run():
        async with Client(node) as ann, Client(node) as bob:
            await bob.subscribe("open")
            redis.kill()
            node.wait_log("redis lost")
            await published(ann, "open", 1)
            assert (await bob.push("pub"))["data"] == 1
            assert "error" in await ann.publish("kept:x", 1)
            await ann.subscribe("other")

    asyncio.run(run())


def test_room_that_was_being_opened_when_redis_was_lost_opens_alone(nodes, redis):
    node = nodes.start("a", when_away="local")

    async def run():
        async with Client(node) as ann:
            redis.pause()

            async def entered():
                return "subscribe" in await ann.command("subscribe", {"channel": "open"})

            await eventually(entered)
            # Each loop notices by itself that Redis does not answer.
            await published(ann, "open", 1)

    asyncio.run(run())


def test_node_hears_only_rooms_with_members_on_it(nodes, redis):
    node = nodes.start("a")

    async def run():
        async with Client(node) as ann:
            await ann.subscribe("kept:x")
            await ann.publish("kept:elsewhere", 1)
            channels = [name for name in redis.command("PUBSUB", "CHANNELS").splitlines() if ":room:" in name]
            assert channels == ["sluice:room:{kept%3Ax}"]
        async def silent():
            return ":room:" not in redis.command("PUBSUB", "CHANNELS")

        await eventually(silent)

    asyncio.run(run())


def test_any_node_lists_and_closes_the_connections_of_all(nodes):
    first, second = nodes.start("a"), nodes.start("b")

    async def run():
        async with Client(first, "ann") as ann, Client(second, "bob"):
            await ann.subscribe("kept:x")
            names = await asyncio.to_thread(rest, second, "/v1/nodes")
            assert [node["name"] for node in names["items"]] == ["a", "b"]
            listed = (await asyncio.to_thread(rest, second, "/v1/connections"))["items"]
            assert sorted(one["node"] for one in listed) == ["a", "b"]
            rooms = (await asyncio.to_thread(rest, second, "/v1/rooms"))["items"]
            assert [(room["name"], room["members"]) for room in rooms] == [("kept:x", 1)]
            identifier = next(one["id"] for one in listed if one["node"] == "a")
            await asyncio.to_thread(rest, second, f"/v1/connections/{identifier}", "DELETE")
            with pytest.raises(websockets.ConnectionClosed):
                await ann.read()

    asyncio.run(run())


def test_user_of_two_nodes_is_one_user_in_the_list_and_in_the_room(nodes, redis):
    first, second = nodes.start("a"), nodes.start("b")

    async def run():
        async with Client(first, "ann") as ann, Client(second, "ann") as again, Client(second, "bob") as bob:
            for one in (ann, again):
                await one.subscribe("kept:x")
            await bob.subscribe("open")
            for node in (first, second):
                users = (await asyncio.to_thread(rest, node, "/v1/users"))["items"]
                assert [(user["id"], user["connectionCount"], user["rooms"], user["nodes"]) for user in users] == [
                    ("ann", 2, ["kept:x"], ["a", "b"]), ("bob", 1, ["open"], ["b"])]

            async def counted(node, *expected):
                room = await asyncio.to_thread(rest, node, "/v1/rooms/kept%3Ax")
                return (room["members"], room["clients"], room["users"]) == expected

            for node in (first, second):
                await eventually(lambda: counted(node, 2, 2, 1))
            # The list has the sums of the nodes.
            assert (await asyncio.to_thread(rest, first, "/v1/rooms"))["items"][0]["users"] == 2
            # Without Redis, a node has its own counts.
            redis.kill()
            await eventually(lambda: counted(first, 1, 1, 1))

    asyncio.run(run())


def test_node_that_is_stopped_is_no_longer_listed(nodes):
    first, second = nodes.start("a"), nodes.start("b")
    second.signal(signal.SIGTERM)
    second.wait()
    assert [node["name"] for node in rest(first, "/v1/nodes")["items"]] == ["a"]


def test_paused_redis_is_noticed_and_connections_stay(nodes, redis):
    node = nodes.start("a")

    async def run():
        async with Client(node) as ann:
            await ann.subscribe("kept:x")
            redis.pause()
            try:
                reply = await ann.publish("kept:x", 1)
                assert reply["error"]["code"] == 100
            finally:
                redis.resume()

            await published(ann, "kept:x", 2)
            node.wait_log(" notice redis reached")

    asyncio.run(run())
