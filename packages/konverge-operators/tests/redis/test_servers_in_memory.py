"""The servers in memory behave as real ones: the same scripts of commands on both end in the same views."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from konverge_operators.redis.cluster.slots import SLOTS
from redis_rigs import Both, both, key_in

pytestmark = [pytest.mark.processes, pytest.mark.real_time, pytest.mark.plain_loop]

ALL = frozenset(range(SLOTS))
FIRST, SECOND, THIRD = frozenset(range(5000)), frozenset(range(5000, 10000)), frozenset(range(10000, SLOTS))


async def form(servers: Both, *replicas: str) -> None:
    """Form a cluster of three primaries a, b and c, and replicas whose names begin with that of their primary."""
    pods = ["a", "b", "c", *replicas]
    await servers.start(*pods)
    for pod in pods[1:]:
        await servers.run("meet", "a", target=pod)
    for pod, slots in zip("abc", (FIRST, SECOND, THIRD), strict=True):
        await servers.run("add_slots", pod, slots)
    await servers.agree("introduced, with slots")
    for pod in replicas:
        await servers.run("replicate", pod, node=pod[0])
    await servers.agree("with replicas")


async def _what_a_server_refuses(tmp_path: Path) -> None:
    async with both(tmp_path) as servers:
        await form(servers, "a1", "b1")
        assert not await servers.run("add_slots", "a", SECOND)
        assert not await servers.run("replicate", "a", node="b")
        assert not await servers.run("replicate", "b1", node="a1")
        assert not await servers.run("fail_over", "a")
        assert not await servers.run("forget", "a1", node="a")
        assert not await servers.run("set_slots", "a", [0], "importing", node="b")
        assert not await servers.run("set_slots", "a", [5000], "migrating", node="b")
        assert not await servers.run("set_slots", "a1", [0], "migrating", node="b")
        key = key_in(3)
        assert await servers.ask("a", "SET", key, key) == "OK"
        assert not await servers.run("set_slots", "a", [3], "node", node="b")
        assert not await servers.run("reset", "a")
        assert not await servers.run("migrate", "a", [3], target="b")
        await servers.agree("after refusals")


async def _slots_move_with_their_keys(tmp_path: Path) -> None:
    async with both(tmp_path) as servers:
        await form(servers, "a1", "b1")
        moved, left, new = key_in(7), key_in(8), key_in(9)
        for key in (moved, left):
            assert await servers.ask("a", "SET", key, key) == "OK"
        assert await servers.ask("b", "GET", moved) == "MOVED a"
        assert await servers.ask("a1", "GET", moved) == "MOVED a"
        await servers.run("set_slots", "b", [7, 8, 9], "importing", node="a")
        await servers.run("set_slots", "a", [7, 8, 9], "migrating", node="b")
        await servers.agree("half-open")
        assert await servers.ask("a", "GET", moved) == moved
        assert await servers.ask("a", "SET", new, new) == "ASK b"
        assert await servers.ask("b", "SET", new, new) == "MOVED a"
        assert await servers.ask("b", "ASKING", "SET", new, new) == "OK"
        await servers.run("migrate", "a", [7], target="b")
        assert await servers.ask("a", "GET", moved) == "ASK b"
        assert await servers.ask("b", "ASKING", "GET", moved) == moved
        await servers.agree("one slot without keys at its source")
        await servers.run("set_slots", "b", [7], "node", node="b")
        await servers.run("set_slots", "a", [7], "node", node="b")
        await servers.run("close_slots", "a", [8])
        await servers.run("close_slots", "b", [8])
        await servers.agree("one moved, one closed, one half-open")
        assert await servers.ask("c", "GET", moved) == "MOVED b"
        assert await servers.ask("a", "GET", left) == left
        await servers.stop("a", "b")
        await servers.start("a", "b")
        await servers.run("meet", "c", target="a")
        await servers.run("meet", "c", target="b")
        await servers.agree("half-open after a restart", links=False)


async def _a_primary_without_slots_follows_their_owner(tmp_path: Path) -> None:
    async with both(tmp_path) as servers:
        await form(servers)
        await servers.run("set_slots", "b", FIRST, "importing", node="a")
        await servers.run("set_slots", "a", FIRST, "migrating", node="b")
        await servers.run("set_slots", "b", FIRST, "node", node="b")
        views = await servers.agree("all slots moved")
        assert (views["a"].primary, views["b"].slots) == ("b", FIRST | SECOND)


async def _a_claim_is_hidden_by_a_later_one(tmp_path: Path) -> None:
    async with both(tmp_path) as servers:
        await form(servers)
        await servers.stop("c")
        await servers.run("set_slots", "b", [7], "importing", node="a")
        await servers.run("set_slots", "b", [7], "node", node="b")
        await servers.run("set_slots", "a", [7], "node", node="b")
        await servers.run("raise_epoch", "a")
        await servers.agree("moved while one is away")
        await servers.stop("b")
        await servers.start("c")
        await servers.agree("it knows the later epoch")
        await servers.start("b")
        views = await servers.agree("a claim of an earlier epoch", for_seconds=2)
        assert 7 in views["c"].peers["a"][2]
        await servers.run("raise_epoch", "b")
        assert 7 in (await servers.agree("claimed again"))["c"].peers["b"][2]


async def _replicas_replace_their_primaries(tmp_path: Path) -> None:
    async with both(tmp_path) as servers:
        await form(servers, "a1", "a2", "b1")
        key = key_in(1)
        assert await servers.ask("a", "SET", key, key) == "OK"
        await servers.agree("a key")
        assert await servers.run("fail_over", "a1")
        views = await servers.agree("failed over")
        assert [views[pod].primary for pod in ("a", "a1", "a2")] == ["a1", "", "a1"]
        await servers.stop("a1")
        assert not await servers.run("fail_over", "a2")
        assert await servers.run("fail_over", "a2", "FORCE")
        views = await servers.agree("forced")
        assert [views[pod].primary for pod in ("a", "a2")] == ["a2", ""]
        assert await servers.ask("a2", "GET", key) == key
        await servers.start("a1")
        assert (await servers.agree("the old primary is back"))["a1"].primary == "a2"


async def _without_votes_only_a_takeover_replaces_a_primary(tmp_path: Path) -> None:
    async with both(tmp_path) as servers:
        await form(servers, "a1", "b1")
        await servers.stop("a", "b")
        assert await servers.run("fail_over", "a1", "FORCE")
        assert (await servers.agree("no votes", for_seconds=2))["a1"].primary == "a"
        assert await servers.run("fail_over", "a1", "TAKEOVER")
        assert (await servers.agree("taken over"))["c"].peers["a1"] == ("a1", "", FIRST)
        assert await servers.run("fail_over", "b1", "FORCE")
        assert (await servers.agree("votes again"))["c"].peers["b1"] == ("b1", "", SECOND)


async def _a_replica_keeps_what_its_primary_imported(tmp_path: Path) -> None:
    async with both(tmp_path) as servers:
        await form(servers)
        await servers.start("d", "d1")
        for pod in ("d", "d1"):
            await servers.run("meet", "a", target=pod)
        await servers.agree("a shard without slots joined")
        await servers.run("replicate", "d1", node="d")
        key = key_in(7)
        assert await servers.ask("a", "SET", key, key) == "OK"
        assert await servers.ask("d", "GET", key) == "MOVED a"
        await servers.run("set_slots", "d", [7], "importing", node="a")
        await servers.run("set_slots", "a", [7], "migrating", node="d")
        await servers.run("migrate", "a", [7], target="d")
        assert (await servers.agree("imported"))["d1"].keys == 1
        await servers.stop("d")
        assert await servers.run("fail_over", "d1", "FORCE")
        assert (await servers.agree("nobody votes for it", for_seconds=2))["d1"].primary == "d"
        assert await servers.run("fail_over", "d1", "TAKEOVER")
        views = await servers.agree("taken over")
        assert (views["d1"].primary, views["d1"].slots, views["d1"].keys) == ("", frozenset(), 1)
        await servers.stop("d1")
        await servers.start("d1")
        assert (await servers.agree("a restart marks the slot"))["d1"].importing == {7: "a"}
        assert await servers.ask("d1", "ASKING", "GET", key) == key


async def _the_end_of_an_import_claims_all_slots_again(tmp_path: Path) -> None:
    async with both(tmp_path) as servers:
        await form(servers)
        key = key_in(5000)
        assert await servers.ask("b", "SET", key, key) == "OK"
        await servers.run("set_slots", "b", [8], "importing", node="a")
        await servers.run("set_slots", "c", [5000], "importing", node="b")
        await servers.run("set_slots", "b", [5000], "migrating", node="c")
        await servers.run("migrate", "b", [5000], target="c")
        await servers.stop("a", "b")
        await servers.run("set_slots", "c", [5000], "node", node="c")
        assert (await servers.agree("one owns a slot and its key"))["c"].keys == 1
        await servers.stop("c")
        await servers.start("a", "b")
        await servers.run("meet", "a", target="b")
        for pod in ("b", "a", "b", "a"):
            await servers.agree("the others do not know that", epochs=True)
            await servers.run("raise_epoch", pod)
        await servers.agree("the others have later epochs", epochs=True)
        await servers.run("set_slots", "b", [8], "node", node="b")
        await servers.start("c")
        await servers.run("meet", "a", target="c")
        views = await servers.agree("the former owner wins")
        assert ([5000 in views[pod].slots for pod in "bc"], views["c"].keys) == ([True, False], 0)


async def _forgotten_and_reset_servers(tmp_path: Path) -> None:
    async with both(tmp_path) as servers:
        await form(servers, "a1")
        await servers.start("d")
        await servers.run("meet", "a", target="d")
        await servers.agree("a node joined")
        for pod in ("a", "b", "c", "a1"):
            assert await servers.run("forget", pod, node="d")
        assert await servers.run("reset", "d")
        await servers.agree("it is gone")
        assert await servers.run("reset", "a1")
        views = await servers.agree("a replica was reset")
        assert (views["a1"].peers, views["a1"].keys) == ({}, 0)
        assert await servers.run("meet", "b", target="d")
        await servers.agree("it came back as another one")


async def _servers_come_back_at_new_addresses(tmp_path: Path) -> None:
    async with both(tmp_path) as servers:
        await form(servers, "a1")
        await servers.stop("b")
        await servers.start("b")
        await servers.agree("one knows the others")
        await servers.stop("a", "b", "c", "a1")
        await servers.start("a", "b", "c", "a1")
        await servers.agree("nobody knows anybody", for_seconds=1)
        for pod in ("a", "b", "a1"):
            await servers.run("meet", "c", target=pod)
        await servers.agree("all know the new addresses", links=False)  # a replica may still connect to an old one
        await servers.run("replicate", "a1", node="a")
        await servers.agree("introduced again")


SCRIPTS = (
    _what_a_server_refuses,
    _slots_move_with_their_keys,
    _a_primary_without_slots_follows_their_owner,
    _a_claim_is_hidden_by_a_later_one,
    _replicas_replace_their_primaries,
    _without_votes_only_a_takeover_replaces_a_primary,
    _a_replica_keeps_what_its_primary_imported,
    _the_end_of_an_import_claims_all_slots_again,
    _forgotten_and_reset_servers,
    _servers_come_back_at_new_addresses,
)


async def test_servers_in_memory_and_real_ones_report_the_same(tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as group:  # each script has its own servers, and mostly waits
        for script in SCRIPTS:
            directory = tmp_path / script.__name__
            directory.mkdir()
            group.create_task(script(directory))
