"""The kinds of Redis that a cluster of gateways can use: with TLS, watched by a sentinel, and a Redis Cluster."""
import asyncio
import contextlib
import re

import pytest
from support import deadlines
from support.documents import ARTICLES
from support.programs import free_port, run
from support.redis import Redis, Sentinel
from test_cluster import CONFIGURATION, Client, answered, eventually, published, rest


def started(sluice, directory, name, redis):
    """A node that uses the Redis of this flow mapping."""
    file = directory / f"{name}.yaml"
    text = CONFIGURATION.replace('redis: "REDIS"', redis).replace("NAME", name).replace("WHENAWAY", "refuse")
    file.write_text(text)
    node = sluice("serve", "--config", file)
    node.wait_log("cluster joined")
    return node


async def converse(first, second, rooms):
    """Clients on two nodes hear each other in each room."""
    async with Client(first) as ann, Client(second) as bob:
        for room in rooms:
            await ann.subscribe(room)
            await bob.subscribe(room)
            # Each loop of the node reaches Redis by itself, and refuses publications before.
            await published(ann, room, room)
            assert (await bob.push("pub"))["data"] == room
            assert (await ann.push("pub"))["offset"] == 1


def test_redis_with_tls_and_a_password(sluice, tmp_path, authority, server_certificate):
    certificate, key = server_certificate
    port = free_port()
    options = ["--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file",
               authority.certificate, "--tls-auth-clients", "no", "--requirepass", "secret"]
    with Redis(tmp_path, *options):
        redis = f'redis: "rediss://localhost:{port}/2", password: secret, tls: {{ca: "{authority.certificate}"}}'
        nodes = [started(sluice, tmp_path, name, redis) for name in ("a", "b")]
        asyncio.run(converse(*nodes, ["kept:x"]))


ACL = re.search(r"^ACL (SETUSER .*)$", (ARTICLES / "Clusters.md").read_text(), re.MULTILINE).group(1).split()


def test_redis_user_with_the_documented_rights_is_enough(sluice, tmp_path):
    port = free_port()
    with Redis(tmp_path, "--port", port) as redis:
        redis.command("ACL", *ACL)
        address = f'redis: "redis://127.0.0.1:{port}", user: sluice, password: PASSWORD'
        nodes = [started(sluice, tmp_path, name, address) for name in ("a", "b")]
        asyncio.run(converse(*nodes, ["kept:x"]))
        rest(nodes[0], "/v1/users/ada:ban", "POST", {})
        assert redis.command("HLEN", "sluice:{nodes}:kept") == "1"
        assert redis.command("ACL", "LOG") == ""


def test_words_of_a_redis_that_refuses_a_command_are_in_the_log(sluice, tmp_path):
    port = free_port()
    with Redis(tmp_path, "--port", port) as redis:
        redis.command("ACL", *ACL, "-time")
        file = tmp_path / "a.yaml"
        address = f'redis: "redis://127.0.0.1:{port}", user: sluice, password: PASSWORD'
        file.write_text(CONFIGURATION.replace('redis: "REDIS"', address).replace("NAME", "a").replace("WHENAWAY", "refuse"))
        node = sluice("serve", "--config", file)
        line = node.wait_log("cluster not joined")
        assert "The user executing the script can't run this command" in line, line
        assert "time" in redis.command("ACL", "LOG").splitlines()
        redis.command("ACL", "SETUSER", "sluice", "+time")
        node.wait_log("cluster joined")


def test_redis_whose_certificate_is_not_trusted_is_not_used(sluice, tmp_path, authority, server_certificate):
    certificate, key = server_certificate
    port = free_port()
    with Redis(tmp_path, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key,
               "--tls-ca-cert-file", authority.certificate, "--tls-auth-clients", "no"):
        file = tmp_path / "a.yaml"
        redis = f'redis: "rediss://localhost:{port}"'
        file.write_text(
            CONFIGURATION.replace('redis: "REDIS"', redis).replace("NAME", "a").replace("WHENAWAY", "refuse"))
        node = sluice("serve", "--config", file)
        line = node.wait_log("redis lost")
        assert "certificate" in line, line


def test_primary_that_fails_is_replaced_by_the_one_that_the_sentinel_names(sluice, tmp_path):
    ports = [free_port(), free_port()]
    with contextlib.ExitStack() as stack:
        primary = stack.enter_context(Redis(tmp_path, "--port", ports[0], name="primary"))
        replica = stack.enter_context(
            Redis(tmp_path, "--port", ports[1], "--replicaof", f"127.0.0.1 {ports[0]}", name="replica"))
        sentinel = stack.enter_context(Sentinel(tmp_path, ports[0]))
        redis = f'redis: "redis+sentinel://127.0.0.1:{sentinel.port}/main"'
        nodes = [started(sluice, tmp_path, name, redis) for name in ("a", "b")]
        asyncio.run(converse(*nodes, ["kept:x"]))

        async def after():
            async with Client(nodes[0]) as ann, Client(nodes[1]) as bob:
                await bob.subscribe("kept:y")
                primary.kill()

                await published(ann, "kept:y", 1)
                assert (await bob.push("unsubscribe"))["code"] == 2500
                position = await bob.subscribe("kept:y")
                await ann.publish("kept:y", 2)
                assert (await bob.push("pub"))["offset"] == position.get("offset", 0) + 1

        asyncio.run(after())
        assert "role:master" in replica.command("INFO", "replication")


def test_append_only_file_that_begins_between_the_starts_of_two_nodes_interrupts_nobody(sluice, tmp_path):
    with Redis(tmp_path) as one:
        redis = f'redis: "{one.url}"'
        first = started(sluice, tmp_path, "a", redis)

        async def run():
            async with Client(first) as ann:
                position = await ann.subscribe("kept:x")
                await published(ann, "kept:x", 0)
                one.command("CONFIG", "SET", "appendonly", "yes")
                second = await asyncio.to_thread(started, sluice, tmp_path, "b", redis)
                async with Client(second) as bob:
                    again = await bob.subscribe("kept:x", recover=True, epoch=position["epoch"], offset=0)
                    assert again["recovered"] is True
                    for number in range(1, 7):
                        await published((ann, bob)[number % 2], "kept:x", number)
                    assert [(await ann.push("pub"))["offset"] for _ in range(7)] == list(range(1, 8))
                    assert [(await bob.push("pub"))["offset"] for _ in range(6)] == list(range(2, 8))
                    history = (await ann.command("history", {"channel": "kept:x"}))["history"]
                    assert (history["epoch"], history["offset"]) == (position["epoch"], 7)

        asyncio.run(run())


def cluster_server(directory, port):
    """A server that may become part of a Redis Cluster."""
    return Redis(
        directory, "--port", port, "--cluster-enabled", "yes", "--appendonly", "yes", "--appenddirname", f"file-{port}",
        "--cluster-port", free_port(), "--cluster-config-file", f"nodes-{port}.conf", "--cluster-node-timeout", "5000",
        name=f"node-{port}")


@pytest.fixture
def redis_cluster(tmp_path):
    """Three primaries that share the slots, by their ports."""
    with contextlib.ExitStack() as stack:
        servers = {}
        for _ in range(3):
            port = free_port()
            servers[port] = stack.enter_context(cluster_server(tmp_path, port))
        made = run("redis-cli", "--cluster", "create", *(f"127.0.0.1:{port}" for port in servers), "--cluster-yes")
        assert made.returncode == 0, made.stdout + made.stderr

        def know_all_slots():
            return all("cluster_state:ok" in server.command("CLUSTER", "INFO") for server in servers.values())

        deadlines.eventually(know_all_slots, "servers that execute commands", within=60)
        yield servers


def primary_of(room, ports):
    """The port of the server that has the slot of a room with the percent-encoded name."""
    return next(
        port for port in ports
        if run("redis-cli", "-p", port, "exists", f"sluice:room:{{{room}}}").stdout.strip() == "0")


def test_rooms_are_spread_over_a_redis_cluster_and_follow_slots_that_move(sluice, tmp_path, redis_cluster):
    ports = list(redis_cluster)
    redis = f'redis: "redis+cluster://127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}"'
    nodes = [started(sluice, tmp_path, name, redis) for name in ("a", "b")]
    rooms = [f"kept:{number}" for number in range(12)]
    asyncio.run(converse(*nodes, rooms))
    rest(nodes[0], "/v1/users/ada:ban", "POST", {})
    assert run("redis-cli", "-c", "-p", ports[0], "HLEN", "sluice:{nodes}:kept").stdout.strip() == "1"
    identifiers = [run("redis-cli", "-p", port, "cluster", "myid").stdout.strip() for port in ports]

    async def moving():
        async with Client(nodes[0]) as ann, Client(nodes[1]) as bob:
            for room in rooms:
                await bob.subscribe(room)
            moved = asyncio.create_task(asyncio.to_thread(
                run, "redis-cli", "--cluster", "reshard", f"127.0.0.1:{ports[0]}", "--cluster-from", identifiers[0],
                "--cluster-to", identifiers[1], "--cluster-slots", "5000", "--cluster-yes", within=60))
            acknowledged = {room: [] for room in rooms}
            number = 0

            async def hear():
                # A member that does not read what is published all the time would be disconnected.
                while True:
                    await bob.push("pub")

            hearing = asyncio.create_task(hear())
            while not moved.done() or number < 240:
                room = rooms[number % len(rooms)]
                number += 1
                if "publish" in await ann.publish(room, number):
                    acknowledged[room].append(number)
            hearing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await hearing
            assert moved.result().returncode == 0, moved.result().stdout
            for room in rooms:
                history = (await bob.command("history", {"channel": room, "limit": 1000}))["history"]
                kept = [pub["data"] for pub in history["publications"]]
                assert kept[-len(acknowledged[room][-50:]):] == acknowledged[room][-50:]

    asyncio.run(moving())


def test_publications_reach_members_while_the_slot_of_their_room_migrates(sluice, tmp_path, redis_cluster):
    ports = list(redis_cluster)
    redis = f'redis: "redis+cluster://127.0.0.1:{ports[0]}"'
    nodes = [started(sluice, tmp_path, name, redis) for name in ("a", "b")]

    def command(port, *words):
        done = run("redis-cli", "-p", port, "--raw", *words)
        assert done.returncode == 0 and not done.stdout.startswith("ERR"), (words, done.stdout, done.stderr)
        return done.stdout.split()

    slot = command(ports[0], "cluster", "keyslot", "sluice:room:{kept%3Ax}")[0]
    source = primary_of("kept%3Ax", ports)
    target = next(port for port in ports if port != source)
    identifiers = {port: command(port, "cluster", "myid")[0] for port in (source, target)}

    def move(*keys):
        command(source, "migrate", "127.0.0.1", target, "", "0", "5000", "keys", *keys)

    async def conversation():
        async with Client(nodes[0]) as ann, Client(nodes[1]) as bob:
            await ann.subscribe("kept:x")
            await bob.subscribe("kept:x")

            async def heard(offset):
                assert "publish" in await ann.publish("kept:x", offset)
                assert (await bob.push("pub"))["offset"] == offset

            await published(ann, "kept:y", 0)
            await heard(1)
            command(target, "cluster", "setslot", slot, "importing", identifiers[source])
            command(source, "cluster", "setslot", slot, "migrating", identifiers[target])
            await heard(2)
            # With one of its keys moved, no server executes the publication.
            keys = command(source, "cluster", "getkeysinslot", slot, "100")
            stream = next(key for key in keys if key.endswith(":stream"))
            move(*(key for key in keys if key != stream))
            waiting = asyncio.create_task(heard(3))

            async def refused():
                return any("errorstat_TRYAGAIN" in word for word in command(source, "info", "errorstats"))

            await eventually(refused)
            assert not waiting.done()
            move(stream)
            await waiting
            await heard(4)
            for port in (target, source):
                command(port, "cluster", "setslot", slot, "node", identifiers[target])
            await heard(5)
            history = (await ann.command("history", {"channel": "kept:x", "limit": 10}))["history"]
            assert [publication["data"] for publication in history["publications"]] == [1, 2, 3, 4, 5]

    asyncio.run(conversation())


def test_replica_takes_over_the_rooms_of_a_primary_that_was_killed(sluice, tmp_path, redis_cluster):
    """What the other servers have goes on where it was."""
    ports = list(redis_cluster)
    owners = {f"kept:{number}": primary_of(f"kept%3A{number}", ports) for number in range(12)}
    killed = owners["kept:0"]
    moved = {room for room, port in owners.items() if port == killed}
    identifier = run("redis-cli", "-p", killed, "cluster", "myid").stdout.strip()
    with cluster_server(tmp_path, free_port()) as replica:
        port = replica.options[1]
        added = run(
            "redis-cli", "--cluster", "add-node", f"127.0.0.1:{port}", f"127.0.0.1:{killed}", "--cluster-slave",
            "--cluster-master-id", identifier)
        assert added.returncode == 0, added.stdout + added.stderr

        async def replicated():
            words = (redis_cluster[killed].command("INFO", "replication"), replica.command("INFO", "replication"))
            offsets = [re.search(r"(?:master|slave)_repl_offset:(\d+)", text).group(1) for text in words]
            return "master_link_status:up" in words[1] and offsets[0] == offsets[1]

        redis = f'redis: "redis+cluster://127.0.0.1:{killed},127.0.0.1:{next(one for one in ports if one != killed)}"'
        nodes = [started(sluice, tmp_path, name, redis) for name in ("a", "b")]

        async def conversation():
            async with Client(nodes[0]) as ann, Client(nodes[1]) as bob:
                positions = {room: await bob.subscribe(room) for room in owners}
                for room in owners:
                    await published(ann, room, "before")
                    assert (await bob.push("pub"))["data"] == "before"
                await eventually(replicated)
                redis_cluster[killed].kill()
                acknowledged = {room: ["before"] for room in owners}
                number = 0

                async def accepted():
                    nonlocal number
                    for room in owners:
                        number += 1
                        reply = await ann.publish(room, number)
                        if "publish" in reply:
                            acknowledged[room].append(number)
                        else:
                            assert reply["error"]["code"] == 100, reply
                    return all(acknowledged[room][-1] != "before" for room in moved)

                async def interrupted():
                    await bob.command("presence", {"channel": "kept:0"})
                    ended = {push["channel"] for push in bob.pushes if "unsubscribe" in push}
                    assert ended <= moved
                    return ended == moved

                await eventually(accepted)
                assert "role:master" in replica.command("INFO", "replication")
                await eventually(interrupted)
                for room in moved:
                    assert (await answered(bob, "subscribe", {"channel": room}))["epoch"] != positions[room]["epoch"]
                for room in owners:
                    await published(ann, room, "last")
                    while (await bob.push("pub"))["data"] != "last":
                        pass
                    # Each loop of a node finds the new primary by itself: that of bob's connection may be the last.
                    history = await answered(bob, "history", {"channel": room, "limit": 1000})
                    kept = [publication["data"] for publication in history["publications"]]
                    assert set(acknowledged[room]) <= set(kept) and len(set(kept)) == len(kept), room
                    assert (history["epoch"] == positions[room]["epoch"]) == (room not in moved)

        asyncio.run(conversation())
