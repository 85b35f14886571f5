"""Each limit of the rooms: what a client gets above it, and that others are not affected."""

import json
import time

import jwt
import pytest

from support import websocket
from support.brokers import only
from support.deadlines import eventually
from support.room_member import RoomService
from support.websocket import connect

ALL = {"name": "all", "pattern": "*", "publish": "everyone", "read": "everyone", "presence": True, "history-size": 100}


@pytest.fixture
def start(sluice, tmp_path, broker):
    return lambda rooms, **more: RoomService(sluice, tmp_path, rooms, **more, **broker())


@pytest.fixture
def serve(start):
    return lambda policy=None, **rooms: start({"policies": [{**ALL, **(policy or {})}], **rooms})


def test_a_connection_is_in_128_rooms_unless_the_configuration_says_otherwise(serve):
    service = serve()
    with service.member(*(f"room {number}" for number in range(128))) as one:
        assert one.refused(subscribe={"channel": "one too many"}) == 106
        assert one.command(unsubscribe={"channel": "room 0"})
        assert "subscribe" in one.command(subscribe={"channel": "one too many"})
    service.expect_healthy()


def test_rooms_of_the_request_to_connect_are_counted_too(serve):
    service = serve(**{"max-rooms": 3})
    with service.connect() as one:
        one.send(json.dumps({"id": 1, "connect": {"subs": {str(number): {} for number in range(4)}}}))
        assert one.closed() == (3505, "channel limit")
    assert service.ended_with(3505) == 1
    service.expect_healthy()


def test_a_room_has_as_many_members_as_its_policy_allows(serve):
    service = serve({"max-members": 2})
    with service.member("a"), service.member("a"), service.member() as third:
        assert third.refused(subscribe={"channel": "a"}) == 106
        with connect(service.gateway.address(), "/chat/a") as plain:
            plain.expect_close(1013)
        assert service.ended_with(1013) == 1
        assert "subscribe" in third.command(subscribe={"channel": "b"})
    service.expect_healthy()


@pytest.mark.parametrize("size, code", [(1000, None), (1001, 106)])
def test_a_publication_may_be_as_large_as_the_policy_allows(serve, size, code):
    service = serve({"max-message-size": "1000B"})
    data = "x" * (size - 2)
    with service.member("a") as one:
        answer = one.command(publish={"channel": "a", "data": data})
        assert answer.get("error", {}).get("code") == code
    assert service.post({"publish": {"channel": "a", "data": data}})[0] == (413 if code else 200)
    assert service.metric("sluice_room_errors_total", code=106) == (2 if code else 0)
    service.expect_healthy()


def test_a_message_above_the_limit_of_its_route_ends_the_connection(start):
    service = start({"policies": [ALL]}, route={"max_message_size": "100KiB"})
    with service.member("a") as one:
        one.send(json.dumps({"id": 9, "publish": {"channel": "a", "data": "x" * (100 << 10)}}))
        assert one.closed()[0] == 1009
    eventually(lambda: service.metric("sluice_connections_ended_total", cause="violation") == 1, "its end")
    service.expect_healthy()


def test_publications_above_the_rate_are_refused(serve):
    service = serve({"publication-rate": 5})
    with service.member("a") as one:
        # In one message: a client that waits for each reply may be slower than the rate. The rate is that of the connection
        # in all rooms of the policy.
        commands = [{"id": 10 + number, "publish": {"channel": "b" if number == 99 else "a", "data": 1}} for number in range(100)]
        one.send("\n".join(map(json.dumps, commands)))
        replies = []
        while len(replies) < len(commands):
            replies += [answer for answer in [one.receive()] if "id" in answer]
        # Over Redis, refusals come first.
        replies.sort(key=lambda answer: answer["id"])
        codes = [answer.get("error", {}).get("code") for answer in replies]
        assert codes[:5] == [None] * 5 and codes[-1] == 111 and set(codes) == {None, 111}
    assert service.metric("sluice_room_errors_total", code=111) == codes.count(111)
    service.expect_healthy()


def test_commands_above_the_rate_end_the_connection(serve):
    service = serve(**{"command-rate": 50})
    with service.member() as one:
        one.send("\n".join(json.dumps({"id": number, "presence": {"channel": f"room {number}"}}) for number in range(1, 500)))
        assert one.closed() == (3013, "too many requests")
    assert service.ended_with(3013) == 1
    service.expect_healthy()


@pytest.mark.parametrize("length, code", [(255, None), (256, 107), (60_000, 107)])
def test_names_have_at_most_255_bytes(serve, length, code):
    service = serve()
    with service.member() as one:
        for command in ({"subscribe": {"channel": "é" * (length // 2) + "x" * (length % 2)}},
                        {"publish": {"channel": "x" * length, "data": 1}}):
            assert one.command(**command).get("error", {}).get("code") == code
    assert service.metric("sluice_room_errors_total", code=107) == (2 if code else 0)
    service.expect_healthy()


@pytest.mark.parametrize("command", ["presence", "presence_stats", "history"])
def test_names_have_at_most_255_bytes_where_rooms_are_read(serve, command):
    service = serve()
    with service.member() as one:
        assert one.refused(**{command: {"channel": "x" * 256}}) == 107
        assert one.refused(**{command: {"channel": "line\nbreak"}}) == 107
    assert service.names() == []


def test_names_have_as_many_bytes_as_allowed(serve):
    service = serve(**{"max-name-length": 10})
    with service.member("x" * 10) as one:
        assert one.refused(subscribe={"channel": "x" * 11}) == 107
        with websocket.Wire.connect(service.gateway.address()) as wire:
            wire.send(websocket.request("/chat/" + "x" * 11))
            assert websocket.parse_head(wire.receive_head()).status == 414
        assert service.names() == ["x" * 10]
    assert service.metric("sluice_room_errors_total", code=107) == 1
    eventually(lambda: service.metric("sluice_connections_ended_total", cause="refused-request") == 1, "the refused request")


def test_a_client_enters_as_often_as_allowed_where_others_hear_of_it(serve):
    service = serve({"join-leave": True, "join-rate": 1})
    with service.member() as one:
        codes = []
        while 111 not in codes:
            codes.append(one.command(subscribe={"channel": "a"}).get("error", {}).get("code"))
            if codes[-1] is None:
                one.command(unsubscribe={"channel": "a"})
        # 30 at once, and one in each second.
        assert codes[:30] == [None] * 30
    assert service.metric("sluice_room_errors_total", code=111) == 1
    service.expect_healthy()


def test_a_user_has_as_many_connections_as_allowed(serve):
    service = serve({"join-leave": True}, **{"max-connections-per-user": 2, "user-header": "X-User"})
    ada = {"headers": [("X-User", "ada")]}
    with service.member(**ada), service.member(**ada), service.connect(**ada) as third, \
            service.member("a", headers=[("X-User", "bob")]) as bob:
        third.send('{"id":1,"connect":{"subs":{"a":{}}}}')
        # Not even a reply comes before.
        assert third.peer.read().code == 3504
        bob.send('{"id":9,"publish":{"channel":"a","data":1}}')
        heard = []
        while "pub" not in (push := bob.receive().get("push", {})):
            heard.append(push)
        assert "ada" not in json.dumps(heard)
    assert service.ended_with(3504) == 1
    eventually(lambda: service.metric("sluice_room_clients") == 0, "no clients")

    def is_admitted():
        with service.connect(**ada) as again:
            again.send('{"id":1,"connect":{}}')
            # Not even a reply comes before a refusal.
            return again.peer.read().opcode == websocket.TEXT

    # Redis forgets connections after they have ended.
    eventually(is_admitted, "a connection of the user")
    service.expect_healthy()


def test_failed_commands_end_the_connection(serve):
    service = serve(**{"command-rate": 100_000})
    with service.member() as one:
        one.send("\n".join(json.dumps({"id": number, "rpc": {}}) for number in range(1, 1002)))
        assert one.closed() == (3509, "too many errors")
    assert service.ended_with(3509) == 1
    service.expect_healthy()


def test_a_client_that_says_nothing_is_stale(serve):
    service = serve(**{"connect-timeout": "1s"})
    with service.connect() as one:
        assert one.closed() == (3502, "stale")
    assert service.ended_with(3502) == 1


@pytest.mark.parametrize("limit", [{"history-size": 10}, {"history-bytes": "10KiB"}])
def test_a_history_is_bounded(serve, limit):
    service = serve(limit)
    with service.member("a") as one:
        for number in range(50):
            assert one.command(publish={"channel": "a", "data": str(number) + "x" * 1000})
        kept = one.command(history={"channel": "a", "limit": -1})["history"]["publications"]
        assert [each["offset"] for each in kept] == list(range(51 - len(kept), 51))
        assert len(kept) == 10 if "history-size" in limit else 1 < len(kept) < 10
        # Redis counts some more bytes of each publication than the gateway, whose copy may have one more. Over Redis, a gateway
        # has a copy only while the room has members on it.
        assert service.metric("sluice_room_history_publications") - len(kept) in (0, 1)
        assert service.metric("sluice_room_history_bytes") <= 20 << 10
    service.expect_healthy()


def test_one_request_for_the_history_returns_no_more_than_allowed(serve):
    service = serve(**{"max-history": 5})
    with service.member("a") as one:
        for number in range(20):
            one.command(publish={"channel": "a", "data": number})
        for limit in (-1, 6, (1 << 31) - 1, (1 << 63) - 1, -(1 << 63)):
            assert len(one.command(history={"channel": "a", "limit": limit})["history"]["publications"]) == 5, limit


def test_reading_rooms_of_made_up_names_makes_no_rooms(serve):
    service = serve(**{"command-rate": 100_000})
    with service.member() as one:
        for number in range(300):
            for command in ("presence", "presence_stats", "history"):
                assert "error" not in one.command(**{command: {"channel": f"made up {number}"}})
        assert service.names() == []
    service.expect_healthy()


def test_rooms_that_only_publishers_use_are_forgotten(serve):
    service = serve({"history-time": "1s"})
    for number in range(50):
        assert service.post({"publish": {"channel": f"made up {number}", "data": 1}})[0] == 200
    assert len(service.names()) <= 50
    service.expect_no_rooms(within=40)


def test_a_gateway_has_as_many_rooms_as_allowed(serve):
    service = serve(**{"max-total": 3})
    with service.member("a", "b") as one, connect(service.gateway.address(), "/chat/c"):
        eventually(lambda: service.names() == ["a", "b", "c"], "three rooms")
        assert one.refused(subscribe={"channel": "d"}) == 106
        assert one.refused(publish={"channel": "d", "data": 1}) == 106
        assert service.post({"publish": {"channel": "d", "data": 1}})[0] == 503
        with connect(service.gateway.address(), "/chat/d") as plain:
            plain.expect_close(1013)
        assert service.names() == ["a", "b", "c"] and service.metric("sluice_rooms_refused_total") == 4
        assert "publish" in one.command(publish={"channel": "c", "data": 1})
        # The epoch of a room in which nothing was published ends soon where rooms are many.
        one.command(unsubscribe={"channel": "b"})
        eventually(lambda: "subscribe" in one.command(subscribe={"channel": "health"}), "a further room")
        service.expect_healthy()


@only("alone", "Rooms without members are in Redis alone.")
def test_one_client_makes_as_many_rooms_without_members_as_allowed(serve):
    service = serve(**{"max-total-per-client": 5, "user-header": "X-User"})
    with service.member() as one:
        def made(name):
            return one.command(publish={"channel": name, "data": 1}).get("error", {}).get("code")

        assert [made(f"made up {number}") for number in range(7)] == [None] * 5 + [106] * 2
        assert one.refused(subscribe={"channel": "one more"}) == 106
        status, answer = service.post({"publish": {"channel": "one more", "data": 1}})
        assert (status, answer["error"]["code"]) == (429, 106)
        with connect(service.gateway.address(), "/chat/one-more") as plain:
            plain.expect_close(1013)
        assert len(service.names()) == 5
        assert service.metric("sluice_rooms_refused_to_clients_total") == 5 and service.metric("sluice_rooms_refused_total") == 0
        # Rooms that exist, the rooms of other users, and those that the control plane makes are not concerned.
        assert made("made up 0") is None
        with service.member(headers=[("X-User", "ada")]) as ada:
            assert "publish" in ada.command(publish={"channel": "a room of Ada's", "data": 1})
        service.control.post("/v1/rooms/announcements:publish", {"data": 1}).expect(200)
        # A room with members does not count.
        assert "subscribe" in one.command(subscribe={"channel": "made up 0"})
        assert [made("one more"), made("and another")] == [None, 106]


@only("alone", "Rooms without members are in Redis alone.")
def test_one_client_cannot_use_up_the_rooms_of_a_gateway(serve):
    service = serve(**{"max-total": 40, "user-header": "X-User"})
    with service.member() as one:
        answers = [one.command(publish={"channel": f"made up {number}", "data": 1}) for number in range(60)]
        assert sum("publish" in answer for answer in answers) == 20
    with service.member(*(f"room {number}" for number in range(10)), headers=[("X-User", "ada")]) as ada:
        assert "publish" in ada.command(publish={"channel": "and another", "data": 1})


@only("alone", "Rooms without members are in Redis alone.")
def test_a_client_makes_rooms_again_when_its_former_ones_have_ended(serve):
    service = serve({"history-time": "1s"}, **{"max-total-per-client": 3})
    with service.member() as one:
        # In one message, so that none has ended before the last is refused.
        one.send("\n".join(json.dumps({"id": 10 + number, "publish": {"channel": f"made up {number}", "data": 1}})
                           for number in range(4)))
        assert ["publish" in one.receive() for _ in range(4)] == [True] * 3 + [False]
        eventually(lambda: "publish" in one.command(publish={"channel": "one more", "data": 1}), "a further room")


def test_rooms_of_made_up_names_that_are_entered_and_left_are_soon_forgotten(serve):
    service = serve(**{"command-rate": 100_000, "max-total": 600})
    with service.member() as one:
        for number in range(500):
            one.command(subscribe={"channel": f"made up {number}"})
            one.command(unsubscribe={"channel": f"made up {number}"})
        # Fewer than half of the allowed rooms may stay for a minute: those that a slow machine made after most had ended.
        eventually(lambda: len(service.names()) < 300, "fewer than half of the allowed rooms are left", within=40)


@only("alone", "Redis has its own limit of memory; the gateway's limit is that of its copies.")
def test_all_histories_together_are_bounded(serve):
    service = serve(
        {"recovery": "stream"}, **{"max-history-total": "1MiB", "command-rate": 100_000})
    with service.member("entered") as one:
        one.command(publish={"channel": "entered", "data": 1})
        one.command(publish={"channel": "made up 0", "data": 1})
        epoch = one.command(history={"channel": "made up 0"})["history"]["epoch"]
        for number in range(1, 300):
            assert "publish" in one.command(publish={"channel": f"made up {number}", "data": "x" * 10_000})
            assert number % 50 or service.metric("sluice_room_history_bytes") <= 1 << 20
        assert service.metric("sluice_room_histories_removed_total") >= 100
        kept = [len(one.command(history={"channel": name, "limit": -1})["history"].get("publications", []))
                for name in ("entered", "made up 299", "made up 250", "made up 1")]
        assert kept == [1, 1, 1, 0]
        # Nobody is told that this room is the one of before.
        lost = one.command(subscribe={"channel": "made up 0", "recover": True, "offset": 1, "epoch": epoch})["subscribe"]
        assert not lost.get("recovered") and lost["epoch"] != epoch
    service.expect_healthy()


def test_a_room_larger_than_all_histories_may_be_loses_its_oldest_publications(serve, broker):
    service = serve({"recovery": "stream"}, **{"max-history-total": "64KiB", "command-rate": 100_000})
    with service.member("a") as one:
        for number in range(100):
            one.command(publish={"channel": "a", "data": str(number) + "x" * 2000})
        assert service.metric("sluice_room_history_bytes") <= 64 << 10
        assert 20 < service.metric("sluice_room_history_publications") < 40
        kept = one.command(history={"channel": "a", "limit": -1})["history"]["publications"]
        assert [each["offset"] for each in kept] == list(range(101 - len(kept), 101))
        # Redis has more than the gateway's copy.
        assert len(kept) == 100 if broker() else 20 < len(kept) < 40
    service.expect_healthy()


def post_often(service, count):
    """Statuses of requests that publish, on one connection; (statuses, seconds)."""
    statuses = []
    body = b'{"publish":{"channel":"a","data":1}}'
    start = time.monotonic()
    with websocket.Wire.connect(service.gateway.address()) as wire:
        for _ in range(count):
            wire.send(b"POST /connection/uni_sse HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            answer = websocket.parse_head(wire.receive_head())
            wire.receive(int(answer.header("Content-Length")))
            statuses.append(answer.status)
    return statuses, time.monotonic() - start


def test_publications_by_post_are_counted_for_the_rate_of_the_connection(serve):
    service = serve({"publication-rate": 1})
    statuses, duration = post_often(service, 40)
    assert statuses.count(200) <= duration + 2 and set(statuses) == {200, 429}
    assert service.metric("sluice_room_errors_total", code=111) == statuses.count(429)


def test_requests_of_one_connection_are_counted_as_commands(serve):
    service = serve(**{"command-rate": 1})
    statuses, duration = post_often(service, 40)
    assert statuses.count(200) <= duration + 2 and set(statuses) == {200, 429}


@pytest.mark.parametrize("limit", ["publication-rate", "command-rate"])
def test_publications_by_post_are_counted_for_the_client_whatever_its_connections(serve, limit):
    policy, rooms = ({limit: 1}, {}) if limit == "publication-rate" else ({}, {limit: 1})
    service = serve(policy, **{"user-header": "X-User", **rooms})
    refused = 0
    for headers in ({}, {"X-User": "ada"}):
        start = time.monotonic()
        statuses = [service.post({"publish": {"channel": "a", "data": 1}}, headers=headers)[0] for _ in range(40)]
        assert 1 <= statuses.count(200) <= time.monotonic() - start + 2 and set(statuses) == {200, 429}
        refused += statuses.count(429)
    assert service.metric("sluice_room_errors_total", code=111) == refused


def test_a_client_that_connects_again_and_again_publishes_no_more_than_its_rate(serve):
    service = serve({"publication-rate": 1})
    codes, start = [], time.monotonic()
    for _ in range(30):
        with service.member() as one:
            codes.append(one.command(publish={"channel": "a", "data": 1}).get("error", {}).get("code"))
            one.peer.close_cleanly()
    assert 1 <= codes.count(None) <= time.monotonic() - start + 2 and set(codes) == {None, 111}


def test_a_client_without_a_protocol_that_connects_again_and_again_is_read_as_fast_as_it_may_publish(serve):
    service = serve({"publication-rate": 5})
    with connect(service.gateway.address(), "/chat/a") as other:
        eventually(lambda: service.metric("sluice_room_members") == 1, "it is in the room")
        start = time.monotonic()
        for number in range(12):
            with connect(service.gateway.address(), "/chat/a") as speaker:
                speaker.write(websocket.TEXT, b"%d" % number)
                speaker.write(websocket.CLOSE, b"\x03\xe8")
                # Over Redis, it may hear what the one before it said.
                while speaker.read().opcode != websocket.CLOSE:
                    pass
        # 5 at once, and the others one by one.
        assert time.monotonic() - start >= 1.1
        assert [other.read_message()[1] for _ in range(12)] == [b"%d" % number for number in range(12)]


def test_a_client_without_a_protocol_is_read_as_fast_as_it_may_publish(serve):
    service = serve({"publication-rate": 10})
    with connect(service.gateway.address(), "/chat/a") as speaker, connect(service.gateway.address(), "/chat/a") as other:
        eventually(lambda: service.metric("sluice_room_members") == 2, "both are in the room")
        start = time.monotonic()
        for number in range(25):
            speaker.write(websocket.TEXT, b"%d" % number)
        assert [other.read_message()[1] for _ in range(25)] == [b"%d" % number for number in range(25)]
        # 10 at once, and the others one by one.
        assert time.monotonic() - start >= 1.4


def test_a_message_without_a_protocol_may_be_as_large_as_the_policy_allows(serve):
    service = serve({"max-message-size": "1000B"})
    with connect(service.gateway.address(), "/chat/a") as speaker, connect(service.gateway.address(), "/chat/a") as other:
        eventually(lambda: service.metric("sluice_room_members") == 2, "both are in the room")
        speaker.write(websocket.TEXT, b"x" * 1000)
        assert other.read_message()[1] == b"x" * 1000
        speaker.write(websocket.TEXT, b"x" * 1001)
        speaker.expect_close(1009)
    assert service.ended_with(1009) == 1


def test_a_client_without_a_protocol_has_the_user_of_its_request(serve):
    service = serve({"subscribe": "users"}, **{"user-header": "X-User"})
    with connect(service.gateway.address(), "/chat/a") as nobody:
        nobody.expect_close(1008)
    with connect(service.gateway.address(), "/chat/a", headers=[("X-User", "ada")]) as plain:
        eventually(lambda: service.metric("sluice_room_members") == 1, "it is in the room")
        with service.member("a", headers=[("X-User", "bob")]) as bob:
            users = [one.get("user") for one in bob.command(presence={"channel": "a"})["presence"]["presence"].values()]
            assert sorted(users) == ["ada", "bob"]
        service.control.post("/v1/rooms/a:ban", {"user": "ada"}).expect(200)
        plain.expect_close(1008)
    with connect(service.gateway.address(), "/chat/a", headers=[("X-User", "ada")]) as banned:
        banned.expect_close(1008)


def test_a_client_without_a_protocol_loses_its_room_when_its_user_is_banned_from_all(serve):
    service = serve(**{"user-header": "X-User"})
    with connect(service.gateway.address(), "/chat/a", headers=[("X-User", "bob")]) as bob:
        with connect(service.gateway.address(), "/chat/a", headers=[("X-User", "ada")]) as plain:
            eventually(lambda: service.metric("sluice_room_members") == 2, "both are in the room")
            service.control.post("/v1/users/ada:ban", {}).expect(200)
            plain.expect_close(1008)
        eventually(lambda: service.metric("sluice_room_members") == 1, "it has left")
        with connect(service.gateway.address(), "/chat/a") as nobody:
            eventually(lambda: service.metric("sluice_room_members") == 2, "the others are in the room")
            bob.text("to all others")
            nobody.expect_text("to all others")


@pytest.mark.parametrize("path", ["/v1/rooms/a", "/v1/users/ada"], ids=["in the room", "everywhere"])
def test_a_muted_client_without_a_protocol_is_closed_when_it_speaks(serve, path):
    service = serve(**{"user-header": "X-User"})
    body = {"user": "ada"} if "rooms" in path else {}
    ada = {"headers": [("X-User", "ada")]}
    with connect(service.gateway.address(), "/chat/a", headers=[("X-User", "bob")]) as bob:
        with connect(service.gateway.address(), "/chat/a", **ada) as plain:
            eventually(lambda: service.metric("sluice_room_members") == 2, "both are in the room")
            service.control.post(f"{path}:mute", body).expect(200)
            # It still hears the others.
            bob.text("to Ada")
            plain.expect_text("to Ada")
            plain.text("from Ada")
            plain.expect_close(1008)
        with connect(service.gateway.address(), "/chat/a", **ada) as plain:
            plain.text("once more")
            plain.expect_close(1008)
        service.control.post(f"{path}:unmute", body).expect(204)
        with connect(service.gateway.address(), "/chat/a", **ada) as plain:
            plain.text("allowed again")
            bob.expect_text("allowed again")
    service.expect_healthy()


def test_a_token_of_the_route_names_the_user_of_a_client_without_a_protocol(start):
    secret = "a secret of the scenarios that is long enough for HS256"
    service = start(
        {"policies": [{**ALL, "subscribe": "users", "publish": "users"}], "tokens": "main"}, chat={"auth": "main"},
        tokens=[{"name": "main", "secret": secret}])

    def bearer(user, lifetime=600):
        made = jwt.encode({"sub": user, "exp": int(time.time()) + lifetime}, secret, algorithm="HS256")
        return [("Authorization", f"Bearer {made}")]

    for fields in ([], bearer("ada", -10), [("Authorization", "Bearer nonsense")]):
        with websocket.Wire.connect(service.gateway.address()) as wire:
            wire.send(websocket.request("/chat/a", headers=fields))
            assert websocket.parse_head(wire.receive_head()).status == 401
    with connect(service.gateway.address(), "/chat/a", headers=bearer("ada")) as ada, \
            connect(service.gateway.address(), "/chat/a", headers=bearer("bob")) as bob:
        eventually(lambda: service.metric("sluice_room_members") == 2, "both are in the room")
        members = service.control.get("/v1/rooms/a/members").expect(200)["items"]
        assert sorted(one["user"] for one in members) == ["ada", "bob"]
        ada.text("hello")
        bob.expect_text("hello")
        with connect(service.gateway.address(), "/chat/a", headers=bearer("eve", 5)) as eve:
            eve.expect_close(1008)
            eventually(lambda: service.metric("sluice_room_members") == 2, "the room was left with the end of the token")
        service.control.post("/v1/rooms/a:mute", {"user": "ada"}).expect(200)
        ada.text("muted")
        ada.expect_close(1008)
    assert service.control.get("/v1/rooms/a/history").expect(200)["items"][0]["data"] == "hello"


@pytest.mark.parametrize("name, status", [("x" * 255, 101), ("x" * 256, 414), ("line%0Abreak", 400)])
def test_rooms_of_clients_without_a_protocol_have_names_of_at_most_255_bytes(serve, name, status):
    service = serve()
    with websocket.Wire.connect(service.gateway.address()) as wire:
        wire.send(
            b"GET /chat/%s HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" % name.encode())
        assert websocket.parse_head(wire.receive_head()).status == status
        # Over Redis, it enters after its handshake.
        eventually(lambda: len(service.names()) == (1 if status == 101 else 0), "its room, or none")


def test_errors_are_counted_by_their_code(serve):
    service = serve(**{"max-rooms": 1})
    with service.member("a") as one:
        for _ in range(3):
            assert one.refused(subscribe={"channel": "b"}) == 106
        assert one.refused(rpc={}) == 108
    assert service.metric("sluice_room_errors_total", code=106) == 3
    assert service.metric("sluice_room_errors_total", code=108) == 1


@only("alone", "A reply is the same, whoever keeps the room.")
def test_publications_that_a_connect_leaves_out_are_not_counted_as_recovered(serve):
    # 16 MiB of all rooms of one connect, of 20 with 1 MiB each.
    service = serve({"recovery": "stream", "max-message-size": "1MiB"}, **{"command-rate": 100_000})
    rooms = [f"room {number}" for number in range(20)]
    with service.member() as one:
        for room in rooms:
            assert "publish" in one.command(publish={"channel": room, "data": "x" * 1_000_000})
    with service.connect() as other:
        wanted = {room: {"recover": True, "offset": 0, "epoch": ""} for room in rooms}
        got = other.command(connect={"subs": wanted})["connect"]["subs"].values()
    recovered = sum(1 for one in got if one.get("recovered"))
    assert 0 < recovered < 20
    assert service.metric("sluice_room_recovered_total") == recovered
    assert service.metric("sluice_room_unrecovered_total") == 20 - recovered


@pytest.mark.parametrize("missing, recovers", [(5, True), (6, False)])
def test_a_client_recovers_as_many_publications_as_allowed(serve, missing, recovers):
    service = serve({"recovery": "stream"}, **{"max-recovery": 5})
    with service.member() as one:
        epoch = one.command(history={"channel": "a"})["history"]["epoch"]
        for number in range(8):
            assert one.command(publish={"channel": "a", "data": number})
        with service.member() as two:
            answer = two.command(subscribe={"channel": "a", "recover": True, "epoch": epoch, "offset": 8 - missing})["subscribe"]
            assert answer.get("recovered", False) == recovers
            assert len(answer.get("publications", [])) == (missing if recovers else 0)
    assert service.metric("sluice_room_unrecovered_total") == (0 if recovers else 1)


@pytest.mark.parametrize("size, code", [(600, None), (800, 3500)])
def test_a_token_is_as_long_as_allowed(start, size, code):
    secret = "a secret of the scenarios that is long enough for HS256"
    service = start(
        {"policies": [ALL], "tokens": "main"}, tokens=[{"name": "main", "secret": secret, "max-size": "1KiB"}])
    token = jwt.encode({"sub": "ada", "info": "x" * size}, secret, algorithm="HS256")
    with service.connect() as one:
        one.send(json.dumps({"id": 1, "connect": {"token": token}}))
        if code:
            assert one.closed()[0] == code and service.ended_with(code) == 1
        else:
            assert "connect" in one.receive()
