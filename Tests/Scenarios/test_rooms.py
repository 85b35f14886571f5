"""Rooms for programs: Centrifuge's client protocol, spoken by its own client for Python in both encodings."""
import asyncio
import http.client
import itertools
import json
import signal
import urllib.parse

import centrifuge
import pytest
import websockets
from centrifuge import ClientEventHandler, SubscriptionEventHandler
from support import configuration
from support.brokers import await_redis
from support.control import Control
from support.deadlines import sized

CONFIGURATION = """
loops: 2
control: {address: "http://127.0.0.1:0"}
listeners:
  - {name: web, listen: "ws://127.0.0.1:0"}
routes:
  - {name: programs, path: /connection/websocket, target: rooms, compress: true}
  - {name: chat, path: "/chat/{room}", target: chat}
  - {name: events, path: /connection/uni_sse, target: room-events}
  - {name: stream, path: /connection/uni_http_stream, target: room-events, origins: ["https://app.example"]}
rooms:
  policies:
    - {name: news, pattern: "news:*", publish: nobody}
    - {name: latest, pattern: "latest:*", publish: everyone, history-size: 1, recovery: cache}
    - {name: short, pattern: "short:*", publish: everyone, history-size: 5, recovery: stream}
    - {name: states, pattern: "state:*", publish: everyone, history-size: 20, recovery: stream, delta: fossil}
    - {name: all, pattern: "room:*", history-size: 100, history-time: 1h, recovery: stream, presence: true, join-leave: true}
"""

DEADLINE = 60


@pytest.fixture
def start(sluice, tmp_path, broker):
    def start(text=CONFIGURATION):
        file, cluster = tmp_path / "rooms.yaml", broker()
        file.write_text(configuration.extended(text, cluster))
        gateway = sluice("serve", "--config", file)
        if cluster:
            await_redis(Control.of(gateway))
        return gateway

    return start


@pytest.fixture
def service(start):
    return start()


@pytest.fixture
def pinging(start):
    """A gateway whose pings a test waits for."""
    return start(CONFIGURATION.replace("rooms:\n", "rooms:\n  ping-interval: 3s\n  pong-timeout: 2900ms\n", 1))


class Recorder(SubscriptionEventHandler):
    """What one subscription heard, in order."""

    def __init__(self):
        self.events = asyncio.Queue()
        self.heard = []

    async def note(self, kind, value):
        self.heard.append((kind, value))
        await self.events.put((kind, value))

    async def on_subscribed(self, ctx):
        await self.note("subscribed", ctx)

    async def on_unsubscribed(self, ctx):
        await self.note("unsubscribed", ctx)

    async def on_publication(self, ctx):
        await self.note("publication", ctx.pub)

    async def on_join(self, ctx):
        await self.note("join", ctx.info)

    async def on_leave(self, ctx):
        await self.note("leave", ctx.info)

    async def on_error(self, ctx):
        await self.note("error", ctx)

    async def next(self, kind):
        """The next event of this kind; others before it are skipped."""
        async with asyncio.timeout(DEADLINE):
            while True:
                found, value = await self.events.get()
                if found == kind:
                    return value

    def data(self):
        return [value.data for kind, value in self.heard if kind == "publication"]


class Cutter:
    """A port in front of the gateway whose connections can be cut at once, and refused for a while."""

    def __init__(self, target):
        self.target = target
        self.writers = set()
        self.is_open = asyncio.Event()
        self.is_open.set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.cut()
        self.server.close()

    async def serve(self, reader, writer):
        await self.is_open.wait()
        other_reader, other_writer = await asyncio.open_connection(*self.target)
        self.writers |= {writer, other_writer}
        await asyncio.gather(self.copy(reader, other_writer), self.copy(other_reader, writer))

    async def copy(self, reader, writer):
        try:
            while block := await reader.read(65536):
                writer.write(block)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    def cut(self):
        for writer in self.writers:
            writer.transport.abort()
        self.writers = set()


def client(address, protobuf=False, **options):
    options.setdefault("min_reconnect_delay", 0.05)
    options.setdefault("max_reconnect_delay", 0.2)
    return centrifuge.Client(
        f"ws://{address[0]}:{address[1]}/connection/websocket", use_protobuf=protobuf, **options)


async def subscribe(one, channel, **options):
    recorder = Recorder()
    subscription = one.new_subscription(channel, events=recorder, **options)
    await subscription.subscribe()
    await subscription.ready(DEADLINE)
    return subscription, recorder


def payload(value, protobuf):
    return json.dumps(value).encode() if protobuf else value


def value(data):
    return json.loads(data) if isinstance(data, bytes) else data


def both(test):
    return pytest.mark.parametrize("protobuf", [False, True], ids=["json", "protobuf"])(test)


@both
def test_clients_exchange_messages_with_offsets_presence_and_history(service, protobuf):
    async def conversation():
        ann, bob = client(service.address(), protobuf), client(service.address(), not protobuf)
        await asyncio.gather(ann.connect(), bob.connect())
        first, heard_by_ann = await subscribe(ann, "room:a")
        second, heard_by_bob = await subscribe(bob, "room:a")
        # A member hears of its own entry, too.
        own, joined = [await heard_by_ann.next("join") for _ in range(2)]
        assert own.client != joined.client
        await second.publish(payload({"text": "hello"}, not protobuf), timeout=DEADLINE)
        for recorder in (heard_by_ann, heard_by_bob):
            publication = await recorder.next("publication")
            assert value(publication.data) == {"text": "hello"}
            assert publication.offset == 1 and publication.info.client == joined.client
        presence = await first.presence(DEADLINE)
        assert joined.client in presence.clients and len(presence.clients) == 2
        assert (await first.presence_stats(DEADLINE)).num_clients == 2
        history = await first.history(limit=10, timeout=DEADLINE)
        assert [value(one.data) for one in history.publications] == [{"text": "hello"}] and history.offset == 1
        await bob.disconnect()
        assert (await heard_by_ann.next("leave")).client == joined.client
        await ann.disconnect()

    asyncio.run(conversation())


@both
def test_client_that_was_cut_off_gets_everything_it_missed_once_and_in_order(service, protobuf):
    async def conversation():
        async with Cutter(service.address()) as cutter:
            ann, bob = client(("127.0.0.1", cutter.port), protobuf), client(service.address(), protobuf)
            await asyncio.gather(ann.connect(), bob.connect())
            _, heard = await subscribe(ann, "room:b")
            speaker, _ = await subscribe(bob, "room:b")
            await heard.next("subscribed")
            count = 0
            for _ in range(3):
                for _ in range(5):
                    await speaker.publish(payload(count, protobuf), timeout=DEADLINE)
                    count += 1
                cutter.is_open.clear()
                cutter.cut()
                for _ in range(10):
                    await speaker.publish(payload(count, protobuf), timeout=DEADLINE)
                    count += 1
                cutter.is_open.set()
                assert (await heard.next("subscribed")).recovered
            await speaker.publish(payload("end", protobuf), timeout=DEADLINE)
            async with asyncio.timeout(DEADLINE):
                while not heard.data() or value(heard.data()[-1]) != "end":
                    await heard.events.get()
            assert [value(data) for data in heard.data()] == [*range(count), "end"]
            await asyncio.gather(ann.disconnect(), bob.disconnect())

    asyncio.run(conversation())


@both
def test_client_that_asks_for_deltas_rebuilds_every_state(service, protobuf):
    def state(number):
        rows = [{"name": f"Zeile {row} – größer", "value": row * 17} for row in range(60)]
        rows[number % 60]["value"] = -number
        return {"number": number, "rows": rows}

    async def conversation():
        async with Cutter(service.address()) as cutter:
            ann, bob = client(("127.0.0.1", cutter.port), protobuf), client(service.address(), not protobuf)
            await asyncio.gather(ann.connect(), bob.connect())
            _, heard = await subscribe(ann, "state:a", delta=centrifuge.DeltaType.FOSSIL)
            _, whole = await subscribe(bob, "state:a")
            await heard.next("subscribed")
            numbers = iter(range(1000))

            async def publish(count):
                for number in itertools.islice(numbers, count):
                    await bob.publish("state:a", payload(state(number), not protobuf), timeout=DEADLINE)

            await publish(5)
            # At least one was heard before the cut, or the whole first one would be among those recovered.
            await heard.next("publication")
            cutter.is_open.clear()
            cutter.cut()
            await publish(5)
            cutter.is_open.set()
            assert (await heard.next("subscribed")).recovered
            await publish(5)
            for recorder in (heard, whole):
                async with asyncio.timeout(DEADLINE):
                    while len(recorder.data()) < 15:
                        await recorder.events.get()
                assert [value(data) for data in recorder.data()] == [state(number) for number in range(15)]
            deltas = [pub.delta for kind, pub in heard.heard if kind == "publication"]
            # The first is whole, and what was recovered begins with a whole one.
            assert deltas.count(True) == 13 and not deltas[0], deltas
            assert not any(pub.delta for kind, pub in whole.heard if kind == "publication")
            await asyncio.gather(ann.disconnect(), bob.disconnect())

    asyncio.run(conversation())


def test_client_that_missed_too_much_is_told_that_it_cannot_recover(service):
    async def conversation():
        async with Cutter(service.address()) as cutter:
            ann, bob = client(("127.0.0.1", cutter.port)), client(service.address())
            await asyncio.gather(ann.connect(), bob.connect())
            for channel in ("short:a", "latest:a"):
                await bob.publish(channel, 0, timeout=DEADLINE)
            _, heard = await subscribe(ann, "short:a")
            _, latest = await subscribe(ann, "latest:a")
            await heard.next("subscribed"), await latest.next("subscribed")
            cutter.is_open.clear()
            cutter.cut()
            for number in range(1, 8):
                for channel in ("short:a", "latest:a"):
                    await bob.publish(channel, number, timeout=DEADLINE)
            cutter.is_open.set()
            again = await heard.next("subscribed")
            assert again.was_recovering and not again.recovered
            again = await latest.next("subscribed")
            assert again.recovered and (await latest.next("publication")).data == 7
            assert latest.data() == [7]
            await asyncio.gather(ann.disconnect(), bob.disconnect())

    asyncio.run(conversation())


def test_room_is_the_same_for_clients_without_a_protocol(service):
    async def conversation():
        ann = client(service.address())
        await ann.connect()
        speaker, heard = await subscribe(ann, "room:c")
        uri = f"ws://127.0.0.1:{service.port()}/chat/room:c"
        async with websockets.connect(uri) as plain, websockets.connect(uri) as other:
            # A member is in its room when the gateway reads from it.
            for each in (plain, other):
                await asyncio.wait_for(await each.ping(), DEADLINE)
            for text in ("hello", '{"a": 1}', "[1,"):
                await plain.send(text)
                assert await asyncio.wait_for(other.recv(), DEADLINE) == text
            await plain.send(b"\xff\x00")
            assert await asyncio.wait_for(other.recv(), DEADLINE) == b"\xff\x00"
            assert [(await heard.next("publication")).data for _ in range(4)] == [
                "hello", {"a": 1}, "[1,", {"b64data": "/wA="}]
            await speaker.publish("text\n", timeout=DEADLINE)
            await speaker.publish({"b": [2]}, timeout=DEADLINE)
            for each in (plain, other):
                assert await asyncio.wait_for(each.recv(), DEADLINE) == "text\n"
                assert json.loads(await asyncio.wait_for(each.recv(), DEADLINE)) == {"b": [2]}
        await ann.disconnect()

    asyncio.run(conversation())


def test_refusals_have_their_codes(service):
    async def conversation():
        ann = client(service.address())
        await ann.connect()
        for channel, code in (("unknown", 102), ("news:a", 103)):
            with pytest.raises(centrifuge.ReplyError) as refusal:
                await ann.publish(channel, 1, timeout=DEADLINE)
            assert refusal.value.code == code
        with pytest.raises(centrifuge.ReplyError) as refusal:
            await ann.rpc("method", 1, timeout=DEADLINE)
        assert refusal.value.code == 108
        await ann.disconnect()

    asyncio.run(conversation())


def test_client_that_answers_pings_stays_and_one_that_does_not_is_closed(pinging):
    async def conversation():
        async with websockets.connect(f"ws://127.0.0.1:{pinging.port()}/connection/websocket") as raw:
            await raw.send('{"id":1,"connect":{}}')
            reply = json.loads(await asyncio.wait_for(raw.recv(), DEADLINE))
            assert reply["connect"]["ping"] == 3 and reply["connect"]["pong"] is True
            for _ in range(2):
                assert await asyncio.wait_for(raw.recv(), DEADLINE) == "{}"
                await raw.send("{}")
            assert await asyncio.wait_for(raw.recv(), DEADLINE) == "{}"
            with pytest.raises(websockets.ConnectionClosed) as end:
                await asyncio.wait_for(raw.recv(), DEADLINE)
            assert (end.value.rcvd.code, end.value.rcvd.reason) == (3012, "no pong")

    asyncio.run(conversation())


@pytest.mark.parametrize(("frame", "code"), [
    ("nonsense", 3501), ('{"id":1,"subscribe":{"channel":"room:a"}}', 3501), ('{"id":1,"connect":{"token":"x.y.z"}}', 3500),
    ('{"connect":{}}', 3501), ('{"id":1,"connect":{"data":' + "[" * 5000, 3501), ('{"id":-1,"connect":{}}', 3501),
    ('{"id":1,"connect":{}}\n{"id":2,"connect":{}}', 3501), (b'{"id":1,"connect":{"name":"\xff"}}', 3501),
    ('{"id":1,"connect":{}}\n{"send":{"data":1}}', 3508),
])
def test_client_that_breaks_the_protocol_is_closed_with_the_code(service, frame, code):
    async def conversation():
        async with websockets.connect(f"ws://127.0.0.1:{service.port()}/connection/websocket") as raw:
            await raw.send(frame)
            with pytest.raises(websockets.ConnectionClosed) as end:
                while True:
                    await asyncio.wait_for(raw.recv(), DEADLINE)
            assert end.value.rcvd.code == code

    asyncio.run(conversation())


def test_many_clients_on_several_loops_see_one_order(service):
    publishers, messages = 6, sized(40, 400)

    async def conversation():
        clients = [client(service.address(), protobuf=bool(number % 2)) for number in range(publishers)]
        await asyncio.gather(*(one.connect() for one in clients))
        members = [await subscribe(one, "room:order") for one in clients]

        async def publish(number):
            subscription, _ = members[number]
            for index in range(messages):
                await subscription.publish(payload([number, index], bool(number % 2)), timeout=DEADLINE)

        await asyncio.gather(*(publish(number) for number in range(publishers)))
        total = publishers * messages
        async with asyncio.timeout(DEADLINE):
            for _, heard in members:
                while len(heard.data()) < total:
                    await heard.events.get()
        orders = [[tuple(value(data)) for data in heard.data()] for _, heard in members]
        assert all(order == orders[0] for order in orders) and len(orders[0]) == total
        for number in range(publishers):
            assert [index for sender, index in orders[0] if sender == number] == list(range(messages))
        offsets = [publication.offset for kind, publication in members[0][1].heard if kind == "publication"]
        assert offsets == list(range(1, total + 1))
        await asyncio.gather(*(one.disconnect() for one in clients))

    asyncio.run(conversation())


# Clients that only receive, by plain HTTP.

class Receiver:
    """A response that goes on, read push by push."""

    def __init__(self, service, method, target, body=None, headers=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", service.port(), timeout=DEADLINE)
        self.connection.request(method, target, body and json.dumps(body), headers or {})
        self.response = self.connection.getresponse()

    def push(self):
        while True:
            line = self.response.readline().decode()
            assert line, "the response ended"
            line = line.strip().removeprefix("data: ")
            if line.startswith("id: "):
                self.last_id = line[4:]
            elif line and line != "{}":
                return json.loads(line)

    def event(self):
        """The next push, when the event with it is whole."""
        push = self.push()
        while line := self.response.readline().decode().strip():
            self.last_id = line.removeprefix("id: ")
        return push

    def ping(self):
        while self.response.readline().decode().strip().removeprefix("data: ") != "{}":
            pass

    def close(self):
        self.connection.close()


def events(service, headers=None, **connect):
    query = urllib.parse.urlencode({"cf_connect": json.dumps(connect)})
    return Receiver(service, "GET", f"/connection/uni_sse?{query}", headers={"Accept": "text/event-stream", **(headers or {})})


def stream(service, headers=None, **connect):
    return Receiver(service, "POST", "/connection/uni_http_stream", connect, headers)


def publish(service, channel, data, expected=200):
    one = Receiver(service, "POST", "/connection/uni_sse", {"publish": {"channel": channel, "data": data}})
    assert one.response.status == expected
    answer = json.loads(one.response.read())
    one.close()
    return answer


@pytest.mark.parametrize("kind", [events, stream])
def test_client_that_only_receives_gets_messages_and_recovers_what_it_missed(pinging, kind):
    one = kind(pinging, subs={"short:x": {}, "unknown": {}})
    assert one.response.status == 200
    kinds = {events: "text/event-stream", stream: "application/json"}
    assert one.response.headers["Content-Type"] == kinds[kind]
    connected = one.push()["connect"]
    assert list(connected["subs"]) == ["short:x"] and "pong" not in connected
    position = connected["subs"]["short:x"]
    assert publish(pinging, "short:x", {"n": 1}) == {"publish": {}}
    push = one.push()
    assert push["channel"] == "short:x" and push["pub"]["data"] == {"n": 1} and push["pub"]["offset"] == 1
    one.ping()
    one.close()
    for number in (2, 3):
        publish(pinging, "short:x", {"n": number})
    again = kind(pinging, subs={"short:x": {"recover": True, "offset": 1, "epoch": position["epoch"]}})
    recovered = again.push()["connect"]["subs"]["short:x"]
    assert recovered["recovered"] and [each["data"]["n"] for each in recovered["publications"]] == [2, 3]
    again.close()


def test_client_of_events_comes_back_with_the_id_of_the_last_event(service):
    rooms = {"short:x": {}, "latest:y": {}, "news:z": {}}
    one = events(service, subs=rooms)
    assert "connect" in one.event()
    for number in (1, 2):
        publish(service, "short:x", number)
        assert one.event()["pub"]["data"] == number
    one.close()
    for number in (3, 4):
        publish(service, "short:x", number)
    publish(service, "latest:y", 5)
    # The same request, as a browser makes it.
    again = events(service, {"Last-Event-ID": one.last_id}, subs=rooms)
    found = again.event()["connect"]["subs"]
    assert found["short:x"]["recovered"] and [each["data"] for each in found["short:x"]["publications"]] == [3, 4]
    assert [each["data"] for each in found["latest:y"]["publications"]] == [5]
    again.close()
    last = events(service, {"Last-Event-ID": again.last_id}, subs=rooms)
    found = last.event()["connect"]["subs"]
    assert found["short:x"]["recovered"] and "publications" not in found["short:x"]
    last.close()


def test_post_is_refused_with_the_codes_of_the_protocol(service):
    assert publish(service, "unknown", 1, 404)["error"]["code"] == 102
    assert publish(service, "news:a", 1, 403)["error"]["code"] == 103
    one = stream(service, token="x.y.z")
    assert one.push()["disconnect"] == {"code": 3500, "reason": "invalid token"}
    assert one.response.read().strip() == b""
    for body, status in (("nonsense", 400), ("[" * 70000, 400), ("x" * (1 << 20), 413)):
        connection = http.client.HTTPConnection("127.0.0.1", service.port(), timeout=DEADLINE)
        connection.request("POST", "/connection/uni_sse", body)
        assert connection.getresponse().status == status
        connection.close()


def test_pages_of_other_origins_may_read_what_the_route_lets_in(service):
    headers = {"Origin": "https://app.example"}
    one = stream(service, headers=headers)
    assert one.response.headers["Access-Control-Allow-Origin"] == "https://app.example"
    one.close()
    assert stream(service, headers={"Origin": "https://other.example"}).response.status == 403
    preflight = Receiver(service, "OPTIONS", "/connection/uni_http_stream", headers={
        **headers, "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type"})
    assert preflight.response.headers["Access-Control-Allow-Headers"] == "authorization, content-type"
    assert preflight.response.status == 204 and "POST" in preflight.response.headers["Access-Control-Allow-Methods"]


def test_streams_end_with_the_gateway(service):
    one = events(service, subs={"short:y": {}})
    assert "connect" in one.push()
    service.signal(signal.SIGTERM)
    assert one.push()["disconnect"]["code"] == 3001
    assert one.response.read().strip() == b""
