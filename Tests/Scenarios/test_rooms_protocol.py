"""Details of Centrifugo's protocol on which its clients, and their own test suites, rely."""

import json
import time

import cent
import jwt
import pytest

from support.brokers import only
from support.deadlines import eventually
from support.gateway import BINARY
from support.programs import run
from support.room_member import RoomService, delimited, field
from test_rooms_control import KEY, ROOMS as API

SECRET = "s" * 40


@pytest.fixture
def serve(sluice, tmp_path, broker):
    def start(*policies, tokens=None, **rooms):
        named = [{"name": f"p{number}", **policy} for number, policy in enumerate(policies)]
        more = {"tokens": [{"name": "main", "secret": SECRET}]} if tokens else {}
        return RoomService(
            sluice, tmp_path, {"policies": named, **({"tokens": "main"} if tokens else {}), **rooms}, **more, **broker())

    return start


STREAM = {"pattern": "s:*", "history-size": 3, "recovery": "stream", "publish": "everyone", "read": "everyone"}
CACHE = {"pattern": "c:*", "history-size": 1, "recovery": "cache", "publish": "everyone"}


def token(**claims):
    return jwt.encode({"sub": "ada", **claims}, SECRET, algorithm="HS256")


def published(one, room, count):
    for number in range(count):
        assert "publish" in one.command(publish={"channel": room, "data": number})


def recovering(channel, offset, epoch, **more):
    return {"channel": channel, "recover": True, "offset": offset, "epoch": epoch, **more}


# -- connecting


def test_connect_is_answered_with_the_version_of_the_gateway(serve):
    service = serve()
    with service.connect() as one:
        version = one.command(connect={})["connect"]["version"]
    assert version and version in run(BINARY, "--version", check=True).stdout


def test_client_without_a_token_is_a_bad_request_where_one_is_needed(serve):
    service = serve(tokens=True, anonymous=False)
    with service.connect() as one:
        one.send('{"id":1,"connect":{}}')
        assert one.closed() == (3501, "bad request")
    with service.connect() as one:
        one.send('{"id":1,"connect":{"token":"x"}}')
        assert one.closed() == (3500, "invalid token")


# -- recovery


@pytest.mark.parametrize("room", ["s:a", "c:a"])
def test_recovered_subscription_begins_at_the_position_that_was_asked_for(serve, room):
    service = serve(STREAM, CACHE)
    with service.member() as speaker, service.member() as one:
        published(speaker, room, 1)
        first = one.command(subscribe={"channel": room})["subscribe"]
        assert first["offset"] == 1
        one.command(unsubscribe={"channel": room})
        published(speaker, room, 2)
        again = one.command(subscribe=recovering(room, 1, first["epoch"]))["subscribe"]
        assert again["recovered"] and again["was_recovering"]
        # The client counts on from here, so that it misses nothing where it is cut off between two publications.
        assert again["offset"] == 1 and again["epoch"] == first["epoch"] and again["publications"][-1]["offset"] == 3


def test_client_that_cannot_recover_gets_the_newest_position(serve):
    service = serve(STREAM)
    with service.member() as one:
        published(one, "s:a", 6)
        reply = one.command(subscribe=recovering("s:a", 1, "other"))["subscribe"]
        assert reply["was_recovering"] and "recovered" not in reply and reply["offset"] == 6


def test_client_recovers_across_a_message_that_was_removed(serve):
    service = serve(STREAM)
    with service.member() as speaker, service.member() as one:
        published(speaker, "s:a", 1)
        epoch = one.command(subscribe={"channel": "s:a"})["subscribe"]["epoch"]
        one.command(unsubscribe={"channel": "s:a"})
        published(speaker, "s:a", 2)
        service.control.request("DELETE", "/v1/rooms/s%3Aa/history/2").expect(204)
        again = one.command(subscribe=recovering("s:a", 1, epoch))["subscribe"]
        assert again["recovered"] and [one["offset"] for one in again["publications"]] == [3]
        one.command(unsubscribe={"channel": "s:a"})
        # Now the history begins after 1: what is missing is not known to have been removed.
        published(speaker, "s:a", 2)

        def is_lost():
            reply = one.command(subscribe=recovering("s:a", 0, epoch))["subscribe"]
            one.command(unsubscribe={"channel": "s:a"})
            return "recovered" not in reply

        # Over Redis, the last publication may come to this loop after the reply.
        eventually(is_lost, "a client that cannot recover")


def test_client_that_rejects_losses_is_refused_where_it_cannot_recover(serve):
    service = serve({**STREAM, "presence": True})
    with service.member() as one, service.member("s:a") as other:
        published(one, "s:a", 6)
        epoch = one.command(history={"channel": "s:a"})["history"]["epoch"]
        # Bit 0 of flag offers short names of rooms, bit 1 rejects losses.
        assert one.refused(subscribe=recovering("s:a", 1, epoch, flag=3)) == 112
        eventually(lambda: other.command(presence_stats={"channel": "s:a"})["presence_stats"]["num_clients"] == 1, "one client")
        assert one.command(subscribe=recovering("s:a", 5, epoch, flag=3))["subscribe"]["recovered"]
        published(one, "s:a", 1)


def test_client_hears_that_it_asked_for_recovery_in_a_room_without_any(serve):
    service = serve({"pattern": "*"})
    with service.member() as one:
        assert one.command(subscribe=recovering("a", 1, "e"))["subscribe"] == {"was_recovering": True}


# -- commands


@pytest.mark.parametrize("command", [
    {"publish": {"data": 1}}, {"publish": {"channel": "a"}}, {"publish": {}}, {"nothing": {}}, {},
], ids=json.dumps)
def test_command_without_what_it_needs_ends_the_connection(serve, command):
    service = serve({"pattern": "*", "publish": "everyone"})
    with service.member() as one:
        one.send(json.dumps({"id": 7, **command}))
        assert one.closed() == (3501, "bad request")


def test_null_is_published_as_any_other_value(serve):
    service = serve({"pattern": "*", "publish": "everyone"})
    with service.member("a") as one:
        one.send('{"id":7,"publish":{"channel":"a","data":null}}')
        assert {json.dumps(one.receive()) for _ in range(2)} >= {'{"id": 7, "publish": {}}'}


def test_answers_about_an_empty_room_have_all_their_fields(serve):
    service = serve({"pattern": "*", "presence": True, "history-size": 1, "read": "everyone"})
    with service.member() as one:
        assert one.command(presence={"channel": "a"})["presence"] == {"presence": {}}
        assert one.command(presence_stats={"channel": "a"})["presence_stats"] == {"num_clients": 0, "num_users": 0}
        history = one.command(history={"channel": "a", "limit": 10})["history"]
        assert history["publications"] == [] and history["offset"] == 0 and history["epoch"]
        one.command(subscribe={"channel": "a"})
        assert [client["user"] for client in one.command(presence={"channel": "a"})["presence"]["presence"].values()] == [""]


def test_procedures_are_not_available(serve):
    service = serve()
    with service.member() as one:
        assert one.refused(rpc={"method": "any", "data": {}}) == 108


# -- subscriptions that the server made


@pytest.fixture
def administered(serve):
    """A gateway with the server API, and a client of it."""
    service = serve({"pattern": "s:*", "history-size": 3, "recovery": "stream"}, **{
        "api-keys": API["api-keys"], "user-header": "X-User", "refresh-delay": "1s"})
    return service, cent.Client(f"{service.control.url}/api", KEY)


def test_expired_subscription_that_the_server_made_ends_the_connection(administered):
    service, api = administered
    with service.member(headers=[("X-User", "ada")]) as one:
        api.subscribe(cent.SubscribeRequest(user="ada", channel="s:a", expire_at=int(time.time()) + 3))
        assert one.receive()["push"]["subscribe"]["recoverable"]
        # The client does not subscribe again to what it did not ask for: it must connect again.
        assert one.closed() == (3006, "subscription expired")


def test_data_of_a_subscription_comes_with_it(administered):
    service, api = administered
    with service.member(headers=[("X-User", "ada")]) as one:
        api.subscribe(cent.SubscribeRequest(user="ada", channel="s:a", data={"welcome": 1}))
        assert one.receive()["push"]["subscribe"]["data"] == {"welcome": 1}


def test_data_in_a_token_comes_with_its_subscriptions(serve):
    service = serve({"pattern": "*"}, tokens=True)
    with service.connect() as one:
        subs = {"a": {"data": {"n": 1}}, "b": {"b64data": "eyJuIjoyfQ=="}, "c": {}}
        connected = one.command(connect={"token": token(subs=subs)})["connect"]["subs"]
        assert [connected[room].get("data") for room in "abc"] == [{"n": 1}, {"n": 2}, None]


def test_data_in_a_subscription_token_comes_with_the_reply(serve):
    service = serve({"pattern": "*", "subscribe": "token"}, tokens=True)
    with service.connect() as one:
        one.command(connect={"token": token()})
        for room, claims, data in (("a", {"data": {"n": 1}}, {"n": 1}), ("b", {"b64data": "eyJuIjoyfQ=="}, {"n": 2}), ("c", {}, None)):
            reply = one.command(subscribe={"channel": room, "token": token(channel=room, **claims)})["subscribe"]
            assert reply.get("data") == data


def test_what_a_client_missed_follows_its_subscription_by_the_server(administered):
    service, api = administered
    for number in (1, 2, 3):
        epoch = api.publish(cent.PublishRequest(channel="s:a", data=number)).epoch
    with service.member(headers=[("X-User", "ada")]) as one:
        api.subscribe(cent.SubscribeRequest(user="ada", channel="s:a", recover_since=cent.StreamPosition(offset=1, epoch=epoch)))
        assert one.receive()["push"]["subscribe"]["offset"] == 1
        assert [one.receive()["push"]["pub"]["data"] for _ in range(2)] == [2, 3]


def test_renewed_token_that_names_other_rooms_ends_the_connection(serve):
    service = serve({"pattern": "*"}, tokens=True)
    with service.connect() as one:
        assert list(one.command(connect={"token": token(channels=["a"])})["connect"]["subs"]) == ["a"]
        one.send(json.dumps({"id": 9, "refresh": {"token": token(channels=["b"])}}))
        # The client connects again, and is in the other room.
        assert one.closed() == (3010, "insufficient state")


def test_subscription_whose_token_has_expired_ends_alone(serve):
    service = serve({"pattern": "*", "subscribe": "token"}, tokens=True, **{"refresh-delay": "1s"})
    with service.connect() as one:
        one.command(connect={"token": token()})
        reply = one.command(subscribe={"channel": "a", "token": token(channel="a", exp=int(time.time()) + 5)})["subscribe"]
        assert reply["expires"] and reply["ttl"] <= 5
        assert one.receive()["push"]["unsubscribe"]["code"] == 2501
        assert one.command(ping={}) is not None


def test_refreshed_connection_hears_its_time(administered):
    service, api = administered
    with service.member(headers=[("X-User", "ada")]) as one:
        api.refresh(cent.RefreshRequest(user="ada", expire_at=int(time.time()) + 1000))
        pushed = one.receive()["push"]["refresh"]
        assert pushed["expires"] and 990 <= pushed["ttl"] <= 1000
        api.refresh(cent.RefreshRequest(user="ada", expire_at=int(time.time()) - 10))
        assert one.closed() == (3005, "connection expired")


def test_unsubscribing_from_an_unknown_room_is_refused(administered):
    _, api = administered
    with pytest.raises(cent.CentApiResponseError) as error:
        api.unsubscribe(cent.UnsubscribeRequest(user="ada", channel="other"))
    assert error.value.code == 102


# -- clients that only receive


def test_token_that_names_rooms_publishes_by_post(serve):
    service = serve({"pattern": "*", "publish": "everyone"}, tokens=True)
    assert service.post({"token": token(channels=["a"]), "publish": {"channel": "b", "data": 1}}) == (200, {"publish": {}})


# -- rooms of users


def test_user_is_in_the_personal_room_from_the_beginning(serve):
    service = serve({"pattern": "#*", "subscribe": "nobody"}, tokens=True, **{"personal-room": "#{user}"})
    with service.connect() as one, service.connect() as other, service.connect() as anonymous:
        assert list(one.command(connect={"token": token()})["connect"]["subs"]) == ["#ada"]
        assert list(other.command(connect={"token": token(sub="bob", channels=["#bob"])})["connect"]["subs"]) == ["#bob"]
        assert "subs" not in anonymous.command(connect={})["connect"]
        assert anonymous.refused(subscribe={"channel": "#ada"}) == 103
        # Over Redis, the message may come before the reply.
        one.send('{"id":9,"publish":{"channel":"#ada","data":1}}')
        received = [one.receive(), one.receive()]
        assert {"id": 9, "publish": {}} in received and [each["push"]["channel"] for each in received if "push" in each] == ["#ada"]


# -- Protobuf


@only("alone", "Redis may open the rooms in another order.")
def test_replies_of_one_protobuf_message_come_in_order_and_delimited(serve):
    service = serve({"pattern": "*"})
    with service.connect(protobuf=True) as one:
        subscriptions = [field(1, number) + field(5, field(1, b"r%d" % number)) for number in (2, 3, 4)]
        one.send(b"".join(delimited(part) for part in [field(1, 1) + field(4, b""), *subscriptions]))
        received = b""
        numbers = []
        while len(numbers) < 4:
            received += one.peer.read_message()[1]
            while received and len(received) > received[0]:
                reply, received = received[1:1 + received[0]], received[1 + received[0]:]
                assert reply[0] == 0x08
                numbers.append(reply[1])
        assert numbers == [1, 2, 3, 4] and not received
