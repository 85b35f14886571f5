"""The control planes of three gateways with one Redis: what each of them lists, reaches and drains."""

import itertools
import json
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.client import Client
from support.cluster import configuration, start_nodes
from support.control import Control
from support.deadlines import eventually, seconds
from support.events import Events
from support.room_member import PATH, RoomMember
from support.websocket import connect

CONFIGURATION = configuration("""
routes:
  - {name: programs, path: /connection/websocket, target: rooms}
rooms:
  user-header: X-User
  policies:
    - {name: kept, pattern: "kept:*", history-size: 10, recovery: stream, presence: true}
""", cluster="prefix: PREFIX")
LISTS = {"/v1/connections": "id", "/v1/connections?sort=-id": "id", "/v1/rooms": "name", "/v1/users": "id"}


class Nodes:
    """Gateways of one cluster, by name."""

    def __init__(self, sluice, folder, redis):
        self.sluice, self.folder, self.redis = sluice, folder, redis
        self.prefix = folder.name
        self.gateways = {}
        self.start("abc")

    def start(self, names):
        configuration = CONFIGURATION.replace("PREFIX", self.prefix)
        started = start_nodes(self.sluice, self.folder, configuration, self.redis, names)
        self.gateways.update(zip(names, started))

    def control(self, name):
        return Control.of(self.gateways[name])

    def member(self, name, user, *rooms):
        """A client of a node; its connection has the id `member.id`."""
        member = RoomMember(connect(self.gateways[name].address(), PATH, headers=[("X-User", user)]))
        member.client = member.command(connect={})["connect"]["client"]
        for room in rooms:
            assert "subscribe" in member.command(subscribe={"channel": room})
        return member

    def keep_lease(self, name):
        """The node counts as one of the cluster although it does not renew its lease."""
        self.redis.command("ZADD", f"{self.prefix}:{{nodes}}:leases", "XX", str(1 << 50), name)


@pytest.fixture
def nodes(sluice, tmp_path, shared_redis):
    return Nodes(sluice, tmp_path, shared_redis)


def ids(items):
    return [item["id"] for item in items]


def test_pages_of_any_node_list_each_once_while_others_come_and_go(nodes):
    users = {f"user {number:02}": name for number, name in enumerate("abccbacab")}
    members = [nodes.member(name, user, f"kept:{user}") for user, name in users.items()]
    steady = {
        "/v1/connections": {one["id"] for one in nodes.control("a").list()}, "/v1/rooms": {f"kept:{user}" for user in users},
        "/v1/users": set(users)}
    for (path, key), first in itertools.product(LISTS.items(), "abc"):
        found, turns, guests = [], itertools.cycle("abcabc"["abc".index(first):][:3]), []
        target = f"{path}{'&' if '?' in path else '?'}limit=4"
        while target:
            page = nodes.control(next(turns)).request("GET", target).expect(200)
            assert "unreachable" not in page and len(page["items"]) <= 4
            found += [item[key] for item in page["items"]]
            target = page.get("next")
            if guests:
                guests.pop().peer.close()
            guests.append(nodes.member(next(turns), f"guest {len(found)}", f"kept:guest {len(found)}"))
        guests.pop().peer.close()
        assert [len(found), steady[path.split("?")[0]] - set(found)] == [len(set(found)), set()], (path, found)
    for one in members:
        one.peer.close()


def test_lists_are_those_of_the_named_nodes(nodes):
    members = {name: nodes.member(name, f"on {name}", f"kept:{name}") for name in "abc"}
    both = nodes.member("b", "on a", "kept:a")
    for name in "abc":
        control = nodes.control(name)
        for wanted in (["b"], ["b", "c"], ["a", "b", "c"]):
            named = ",".join(wanted)
            assert {one["node"] for one in control.list(node=named)} == set(wanted)
            found = control.get("/v1/users", node=named).expect(200)["items"]
            assert {node for user in found for node in user["nodes"]} == set(wanted)
        assert ids(control.get("/v1/users", node="b").expect(200)["items"]) == ["on a", "on b"]
        rooms = control.get("/v1/rooms", node="b").expect(200)["items"]
        assert [(room["name"], room["members"]) for room in rooms] == [("kept:a", 1), ("kept:b", 1)]
        rooms = control.get("/v1/rooms").expect(200)["items"]
        assert [(room["name"], room["members"]) for room in rooms] == [("kept:a", 2), ("kept:b", 1), ("kept:c", 1)]
        control.get("/v1/rooms", node="x").problem(404, "unknown-node")
    for one in (*members.values(), both):
        one.peer.close()


def test_node_that_does_not_answer_is_named_in_every_list(nodes):
    members = [nodes.member(name, f"on {name}", f"kept:{name}") for name in "abc"]
    (of_c,) = nodes.control("c").list(node="c")
    nodes.gateways["c"].signal(signal.SIGSTOP)
    try:
        nodes.keep_lease("c")
        control = nodes.control("a")
        with ThreadPoolExecutor() as threads:
            answers = list(threads.map(lambda path: control.request("GET", path).expect(200), LISTS))
            listed = threads.submit(Client(control.url).run, "ls")
            silent = threads.submit(control.get, f"/v1/connections/{of_c['id']}")
        for answer, key in zip(answers, LISTS.values()):
            assert answer["unreachable"] == ["c"]
            # Each name ends with its node's.
            assert sorted(item[key][-1] for item in answer["items"]) == ["a", "b"]
        assert "nodes that did not answer, whose entries are missing: c" in listed.result().errors and len(listed.result().lines) == 3
        silent.result().problem(504, "node-silent")
        assert [one["name"] for one in control.get("/v1/nodes").expect(200)["items"]] == ["a", "b", "c"]
    finally:
        nodes.gateways["c"].signal(signal.SIGCONT)
    eventually(lambda: len(nodes.control("b").list()) == 3, "the connections of all nodes")
    for one in members:
        one.peer.close()


def test_what_any_node_is_asked_happens_on_the_others(nodes):
    ann, again = nodes.member("b", "ann", "kept:x"), nodes.member("c", "ann", "kept:x")
    bob = nodes.member("c", "bob", "kept:x")
    a = nodes.control("a")
    room = "/v1/rooms/kept%3Ax"
    assert a.post(f"{room}:publish", {"data": "hello"}).expect(200)["offset"] == 1
    for one in (ann, again, bob):
        assert one.receive()["push"]["pub"]["data"] == "hello"
    assert a.post("/v1/users/ann:send", {"data": 1}).expect(200)["clients"] == 2
    for one in (ann, again):
        assert one.receive()["push"]["message"]["data"] == 1
    assert a.post(f"{room}:kick", {"user": "bob"}).expect(200)["clients"] == 1
    assert bob.receive()["push"]["unsubscribe"]["code"] == 2000
    (of_bob,) = [one["id"] for one in a.list(user="bob")]
    assert of_bob.endswith("@c")
    changed = a.request("PATCH", f"/v1/connections/{of_bob}", {"labels": {"team": "blue"}}).expect(200)
    assert changed["labels"] == {"team": "blue"}
    assert ids(nodes.control("b").list(label="team=blue")) == [of_bob]
    assert Client(a.url).run("close", of_bob, "--code", "4001").code == 0
    assert bob.closed()[0] == 4001
    # Without `node`, only the connections of the node that is asked.
    assert a.post("/v1/connections:close", {"all": True}).expect(200)["matched"] == 0
    assert a.post("/v1/connections:close?node=b", {"all": True}).expect(200)["matched"] == 1
    ann.closed()
    ann.peer.close()
    eventually(lambda: len(a.list(user="ann")) == 1, "one connection of the user")
    assert a.post("/v1/users/ann:disconnect", {}).expect(200)["clients"] == 1
    assert again.closed()[0] == 3503


def measured(control):
    """The nodes, when all have measured their clocks."""
    items = control.get("/v1/nodes").expect(200)["items"]
    return items if all("clockDifferenceMs" in one for one in items) else None


def test_commands_show_and_drain_all_nodes(nodes):
    members = {name: nodes.member(name, f"on {name}", f"kept:{name}") for name in "abc"}
    client = Client(nodes.control("b").url)
    names = [line.split()[0] for line in client("ls").splitlines()[1:]]
    assert {name.split("@")[1] for name in names} == set("abc") and len(names) == 3
    assert [line.split()[0] for line in client("ls", "--node", "c").splitlines()[1:]] == [name for name in names if name.endswith("@c")]
    assert [line.split()[0] for line in client("rooms").splitlines()[1:]] == ["kept:a", "kept:b", "kept:c"]
    # A node measures its clock when it joins, and tells with its next renewal.
    listed = eventually(lambda: measured(nodes.control("a")), "the nodes with their clocks")
    assert [(one["name"], one["version"]) for one in listed] == [(name, listed[0]["version"]) for name in "abc"]
    assert all(abs(one["clockDifferenceMs"]) < 60_000 and one["leaseMs"] > 0 for one in listed), listed

    following = client.start("events", "--json", "--type", "closed", "--count", "3", "--after", "0")
    drained = Client(nodes.control("a").url).run("drain", "--all", "--all-nodes", "--deadline", "60s", within=90)
    assert drained.code == 0, drained.errors
    ended = [line for line in drained.lines if " ended: 1 of 1" in line]
    assert len(ended) == 3, drained.text
    output, _ = following.communicate(timeout=seconds(60))
    closed = [json.loads(line) for line in output.splitlines()]
    assert {one["connection"] for one in closed} == set(names) and {one["node"] for one in closed} == set("abc")
    for one in members.values():
        one.closed()
    assert {one["id"] for one in nodes.control("c").get("/v1/drains").json} == {"1@a", "1@b", "1@c"}


def test_events_of_a_node_that_is_killed_and_starts_again_are_followed(nodes):
    with Events(nodes.control("a"), "/v1/events") as events:
        nodes.member("c", "ann")
        before = events.wait_type("opened", node="c")
        nodes.gateways["c"].kill()
        # Its lease has not ended; with another process, the node has another instance.
        nodes.redis.command("ZREM", f"{nodes.prefix}:{{nodes}}:leases", "c")
        nodes.start("c")
        nodes.member("c", "ann")
        again = events.wait_for(
            lambda event: event["type"] == "opened" and event["node"] == "c" and event["position"] != before["position"],
            "an event of the new process", within=30)
        assert again["position"] != before["position"]
        nodes.member("b", "bob")
        events.wait_type("opened", node="b")
