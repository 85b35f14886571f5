"""Filters by tags, with Centrifugo's own clients: centrifuge-python subscribes, cent publishes."""
import asyncio
import re
import urllib.request

import cent
import pytest
from centrifuge import Filter
from support import configuration, documents
from support.brokers import await_redis
from support.control import Control
from test_rooms import DEADLINE, Cutter, Recorder, both, client, subscribe, value
from test_rooms_control import KEY, ROOMS as API

POLICIES = [
    {"name": "tagged", "pattern": "tagged:*", "history-size": 50, "recovery": "stream", "tag-filters": True},
    {"name": "whole", "pattern": "*"},
]


@pytest.fixture
def service(sluice, tmp_path, broker):
    rooms = {"policies": POLICIES, "api-keys": API["api-keys"]}
    cluster = broker()
    gateway = sluice("serve", "--config", configuration.write(
        tmp_path / "sluice.yaml", [configuration.listener("web", "ws://127.0.0.1:0")],
        [configuration.route("rooms", "rooms", path="/connection/websocket")],
        control={"address": "http://127.0.0.1:0"}, rooms=rooms, loops=2, **cluster))
    if cluster:
        await_redis(Control.of(gateway))
    return gateway


def publisher(service):
    api = cent.Client(f"{Control.of(service).url}/api", KEY)

    def publish(*numbers):
        for number in numbers:
            tags = {"parity": ["even", "odd"][number % 2], "price": f"{number}.50"}
            api.publish(cent.PublishRequest(channel="tagged:a", data=number, tags=tags))

    return publish


def metrics(service):
    with urllib.request.urlopen(f"{Control.of(service).url}/metrics", timeout=DEADLINE) as answer:
        return answer.read().decode()


@both
def test_client_gets_and_recovers_what_its_filter_matches(service, protobuf):
    publish = publisher(service)
    async def conversation():
        async with Cutter(service.address()) as cutter:
            ann, bob = client(("127.0.0.1", cutter.port), protobuf), client(service.address(), not protobuf)
            await asyncio.gather(ann.connect(), bob.connect())
            wanted = Filter.all(Filter.eq("parity", "odd"), Filter.negate(Filter.lt("price", "4")))
            _, heard = await subscribe(ann, "tagged:a", tags_filter=wanted)
            _, whole = await subscribe(bob, "tagged:a")
            await heard.next("subscribed")
            await asyncio.to_thread(publish, *range(10))
            # What does not match is filtered, and counted, before the last one that does.
            for _ in (5, 7, 9):
                await heard.next("publication")
            cutter.is_open.clear()
            cutter.cut()
            await asyncio.to_thread(publish, *range(10, 20))
            cutter.is_open.set()
            again = await heard.next("subscribed")
            assert again.recovered and again.was_recovering
            await asyncio.to_thread(publish, *range(20, 24))
            for recorder, numbers in ((heard, range(5, 24, 2)), (whole, range(24))):
                async with asyncio.timeout(DEADLINE):
                    while len(recorder.data()) < len(numbers):
                        await recorder.events.get()
                assert [value(data) for data in recorder.data()] == list(numbers)
            await asyncio.gather(ann.disconnect(), bob.disconnect())

    asyncio.run(conversation())
    counted = re.search(r'sluice_room_filtered_total{policy="tagged"} (\d+)', metrics(service))
    # What was recovered is not counted.
    assert int(counted[1]) == 9


def test_the_filter_of_the_article_works(service):
    (snippet,) = [text for _, text in documents.blocks(documents.ARTICLES / "Rooms.md", "python") if "Filter.all" in text]

    async def conversation():
        ann = client(service.address())
        await ann.connect()
        names = {"client": ann}
        exec(snippet.replace("trades:us", "tagged:a"), names)
        recorder = Recorder()
        names["room"].events = recorder
        await names["room"].subscribe()
        await names["room"].ready(DEADLINE)
        api = cent.Client(f"{Control.of(service).url}/api", KEY)
        for price, ticker in ((99.5, "AAPL"), (101, "MSFT"), (100, "AAPL"), (1000, "AAPL")):
            tags = {"ticker": ticker, "price": str(price)}
            await asyncio.to_thread(api.publish, cent.PublishRequest(channel="tagged:a", data=price, tags=tags))
        assert [(await recorder.next("publication")).data for _ in range(2)] == [100, 1000]
        await ann.disconnect()

    asyncio.run(conversation())


def test_filter_is_refused_where_the_policy_does_not_allow_it(service):
    async def conversation():
        ann = client(service.address())
        await ann.connect()
        recorder = Recorder()
        subscription = ann.new_subscription("plain", events=recorder, tags_filter=Filter.exists("parity"))
        await subscription.subscribe()
        assert (await recorder.next("unsubscribed")).code == 107
        await ann.disconnect()

    asyncio.run(conversation())
