"""Bans and mutes of a cluster outlive its gateways, and hold while Redis is away."""

import pytest

from support.cluster import configuration, start_nodes
from support.control import Control
from support.deadlines import eventually
from support.room_member import PATH, RoomMember
from support.websocket import connect

CONFIGURATION = configuration("""
routes:
  - {name: programs, path: /connection/websocket, target: rooms}
rooms:
  user-header: X-User
  policies:
    - {name: all, pattern: "*", publish: everyone}
""")


@pytest.fixture
def start(sluice, tmp_path, redis):
    return lambda name: start_nodes(sluice, tmp_path, CONFIGURATION, redis, [name])[0]


def restrictions(node):
    items = Control.of(node).get("/v1/rooms/talk/restrictions").expect(200)["items"]
    return [(one["kind"], one["user"]) for one in items]


def refusals(node, user):
    """Codes of the errors that answer a user who enters the room, and publishes in it; `None` where there is none."""
    with RoomMember(connect(node.address(), PATH, headers=[("X-User", user)])) as one:
        one.command(connect={})
        commands = ({"subscribe": {"channel": "talk"}}, {"publish": {"channel": "talk", "data": 1}})
        return [one.command(**command).get("error", {}).get("code") for command in commands]


def test_cluster_that_starts_again_knows_its_bans_and_mutes(start):
    first = start("a")
    control = Control.of(first)
    for verb, body in (("ban", {"user": "ada"}), ("mute", {"user": "bob"}), ("ban", {"user": "eve"})):
        control.post(f"/v1/rooms/talk:{verb}", {**body, "durationMs": 3_600_000}).expect(200)
    control.post("/v1/rooms/talk:unban", {"user": "eve"}).expect(204)
    # Nothing is left of the node.
    first.kill()
    second = start("b")
    eventually(lambda: restrictions(second) == [("ban", "ada"), ("mute", "bob")], "what the first node left")
    assert [refusals(second, user) for user in ("ada", "bob", "eve")] == [[103, 103], [None, 103], [None, None]]


def test_bans_hold_while_redis_is_away_and_it_gets_them_when_it_is_back(start, redis):
    first = start("a")
    control = Control.of(first)
    control.post("/v1/rooms/talk:ban", {"user": "ada"}).expect(200)
    redis.kill()
    first.wait_log("redis lost")
    control.post("/v1/rooms/talk:mute", {"user": "bob"}).expect(200)
    assert restrictions(first) == [("ban", "ada"), ("mute", "bob")] and refusals(first, "ada") == [103, 103]
    redis.start()
    eventually(lambda: redis.command("HLEN", "sluice:{nodes}:kept") == "2", "Redis, which was empty, keeps both")
    first.kill()
    second = start("b")
    eventually(lambda: restrictions(second) == [("ban", "ada"), ("mute", "bob")], "what the first node left")


def test_bans_that_are_over_are_not_in_redis(start, redis):
    control = Control.of(start("a"))
    control.post("/v1/rooms/talk:ban", {"user": "ada"}).expect(200)
    assert 0 < int(redis.command("PTTL", "sluice:{nodes}:kept")) <= 3_600_000
    # The later change holds, although it ends earlier.
    control.post("/v1/rooms/talk:ban", {"user": "ada", "durationMs": 1000}).expect(200)
    eventually(lambda: redis.command("KEYS", "sluice:{nodes}:kept*") == "", "no kept values")
