"""Routing: the choice of an engine, the counts, and refusals."""

from __future__ import annotations

import typing
from collections.abc import Callable

import headcount
import pytest
from counts import in_flight, tokens
from headcount import Engine, EngineId, EngineStats, Frontend, Table


def test_c2_weights_decide_single_requests_a_few_and_bursts() -> None:
    table = Table.memfd(engines=[Engine("small"), Engine("large", weight=4.0)])
    frontend = table.join()

    def engine_of_one() -> int:
        with frontend.route() as permit:
            return permit.engine

    assert {engine_of_one() for _ in range(100)} == {1}
    with frontend.route(), frontend.route(), frontend.route():
        assert in_flight(table) == [0, 3]
    permits = frontend.route_many(50)
    assert in_flight(table) == [10, 40]
    del permits


def test_c2_a_burst_splits_exactly(table: Table, frontend: Frontend) -> None:
    permits = [frontend.route() for _ in range(256)]
    assert in_flight(table) == [64, 64, 64, 64]
    for permit in permits:
        permit.release()
    assert in_flight(table) == [0, 0, 0, 0]


def test_c5_tokens_are_counted(table: Table, frontend: Frontend) -> None:
    with frontend.route(tokens=812) as permit:
        assert permit.tokens == 812
        assert sum(tokens(table)) == 812
    assert sum(tokens(table)) == 0


def test_c5_tokens_change_while_a_request_lives() -> None:
    table = Table.memfd(engines=[Engine("a", max_tokens=100)], max_tokens=90)
    frontend = table.join()
    with frontend.route(tokens=10) as permit, frontend.route(tokens=20):
        for number in (70, 0, 5, 5):
            permit.set_tokens(number)
            assert permit.tokens == number
            assert tokens(table) == [20 + number]
        table.drain(0)
        for number, cap, passes in (
            (71, "table_tokens", True),
            (91, "table_tokens", False),
            (101, "engine_tokens", False),
        ):
            with pytest.raises(headcount.SaturatedError) as refused:
                permit.set_tokens(number)
            assert (refused.value.cap, refused.value.passes) == (cap, passes)
            assert (permit.tokens, tokens(table)) == (5, [25])
        permit.set_tokens(tokens=70)
        assert "tokens=70 counted" in repr(permit)
    assert tokens(table) == [0]
    assert permit.tokens == 70
    with pytest.raises(ValueError, match="was released"):
        permit.set_tokens(1)
    assert tokens(table) == [0]
    assert table.verify().faults == []


def test_where_a_request_may_go(table: Table, frontend: Frontend) -> None:
    pinned = frontend.route(pin=3)
    assert (pinned.engine, pinned.engine_id) == (3, table.find("3"))
    assert isinstance(pinned.engine, int) and isinstance(pinned.engine_id, EngineId)
    assert pinned.engine_name == "3"
    for excluded in ([0, 1], {0, 1}, (0, 1), iter([0, 1])):
        assert frontend.route(exclude=excluded).engine == 2
    assert frontend.route(exclude=None).engine != 3
    assert frontend.route(prefer=(3, 1)).engine == 3
    assert frontend.route(prefer=(3, 0.5)).engine != 3


def test_c6_many_are_placed_or_none() -> None:
    table = Table.memfd(engines=[Engine("a", max_in_flight=3), "b"])
    frontend = table.join()
    permits = frontend.route_many(6)
    assert in_flight(table) == [3, 3]
    permits += frontend.route_many(2, tokens=4)
    assert in_flight(table) == [3, 5]
    with pytest.raises(headcount.SaturatedError):
        frontend.route_many(2, pin=0)
    assert in_flight(table) == [3, 5]
    assert frontend.route_many(0) == []
    assert len(permits) == 8


def test_policies_have_names(table: Table) -> None:
    for policy in ("in_flight", "open", "floor", "tokens", "round_robin", "power_of_two"):
        assert table.join(policy=policy, stale_after=0.5).route().engine in range(4)
    frontend = table.join().with_policy("tokens")
    big = frontend.route(tokens=100, pin=0)
    small = [frontend.route(tokens=1, exclude=[2, 3]).engine for _ in range(3)]
    assert small.count(0) == 0
    assert big.engine == 0
    with pytest.raises(ValueError, match='no policy "fastest".*in_flight'):
        table.join(policy="fastest")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="stale_after is -1"):
        table.join(stale_after=-1)


def test_policies_have_a_type(table: Table) -> None:
    names: tuple[headcount.PolicyName, ...] = typing.get_args(headcount.PolicyName)
    assert len(names) == 6
    for name in names:
        table.join(policy=name)
    for join in (table.join, table.join().with_policy):
        with pytest.raises(headcount.PolicyError) as unknown:
            join(policy="none")  # type: ignore[arg-type]
        assert isinstance(unknown.value, ValueError)
        assert (unknown.value.name, tuple(unknown.value.known)) == ("none", names)
        assert all(name in str(unknown.value) for name in names)


def test_a_policy_has_a_limit_to_what_is_new(table: Table) -> None:
    with table.publisher() as publisher:
        publisher.publish([EngineStats(running=100)] + [EngineStats()] * 3)
    frontend = table.join()
    wins = {}
    for limit in (0.0, 3600.0):
        floor = frontend.with_policy("floor", stale_after=limit)
        wins[limit] = [floor.route().engine for _ in range(8)].count(0)
    assert wins == {0.0: 2, 3600.0: 0}


def test_a_request_may_exclude_or_prefer_an_engine_that_is_gone(
    table: Table, frontend: Frontend
) -> None:
    gone = table.find("3")
    assert gone is not None
    table.remove(gone)
    for engine in (gone, 3, 9, 1 << 31):
        assert frontend.route(exclude=[engine]).engine in (0, 1, 2)
        assert frontend.route(prefer=(engine, 100)).engine in (0, 1, 2)
        assert len(frontend.route_many(2, exclude=[engine])) == 2
        with pytest.raises(headcount.NoSuchEngineError):
            frontend.route(pin=engine)


def test_a_number_means_the_engine_that_has_it_now_and_an_id_that_very_engine(
    table: Table, frontend: Frontend
) -> None:
    gone = table.find("3")
    assert gone is not None
    table.remove(gone)
    new = table.add("new")
    assert new.index == gone.index == 3
    others = [0, 1, 2]
    for engine in (3, new):
        with pytest.raises(headcount.UnavailableError) as unavailable:
            frontend.route(exclude=[*others, engine])
        assert unavailable.value.excluded == 4
        with pytest.raises(headcount.UnavailableError):
            frontend.route_many(2, exclude=[*others, engine])
    # The id of the engine that is gone does not exclude the engine that has its number now.
    with frontend.route(exclude=[*others, gone]) as permit:
        assert (permit.engine, permit.engine_id, permit.engine_name) == (3, new, "new")
        assert permit.engine_id != gone
        # Nor does it prefer that engine, which has a request more than the others.
        for engine, preferred in ((3, True), (new, True), (gone, False)):
            with frontend.route(prefer=(engine, 100)) as another:
                assert (another.engine_id == new) == preferred
    assert permit.engine_id == new, "the identity outlives the request"
    # The id of a permit means no other engine when its own is gone.
    table.remove(new)
    with pytest.raises(headcount.NoSuchEngineError):
        table.drain(permit.engine_id)


def test_a_refusal_says_which_cap_and_whether_it_passes() -> None:
    def refused(call: Callable[[], object]) -> tuple[str, bool]:
        with pytest.raises(headcount.SaturatedError) as raised:
            call()
        return raised.value.cap, raised.value.passes

    table = Table.memfd(engines=[Engine("a", max_in_flight=2, max_tokens=10)])
    frontend = table.join()
    assert refused(lambda: frontend.route(tokens=11)) == ("engine_tokens", False)
    assert refused(lambda: frontend.route_many(3)) == ("engine_requests", False)
    with frontend.route(tokens=4):
        assert refused(lambda: frontend.route(tokens=7)) == ("engine_tokens", True)
        with frontend.route():
            assert refused(frontend.route) == ("engine_requests", True)
    table.down(0)
    with pytest.raises(headcount.UnavailableError) as unavailable:
        frontend.route()
    assert (unavailable.value.engines, unavailable.value.down) == (1, 1)
    assert table.view().refusals_total == headcount.Refusals(
        engine_requests=2, engine_tokens=2, table_requests=0, table_tokens=0, unavailable=1
    )

    table = Table.memfd(engines=2, max_in_flight=2, max_tokens=12)
    frontend = table.join()
    assert refused(lambda: frontend.route(tokens=13)) == ("table_tokens", False)
    assert refused(lambda: frontend.route_many(3)) == ("table_requests", False)
    with frontend.route(tokens=4):
        assert refused(lambda: frontend.route(tokens=9)) == ("table_tokens", True)
        with frontend.route():
            assert refused(frontend.route) == ("table_requests", True)
    assert table.view().refusals_total == headcount.Refusals(0, 0, 2, 2, 0)


@pytest.mark.parametrize("whose", ["table", "engine"])
def test_a_cap_of_zero_takes_nothing_and_none_is_no_cap(whose: str) -> None:
    def capped(max_in_flight: int | None = None, max_tokens: int | None = None) -> Table:
        if whose == "table":
            return Table.memfd(engines=["a"], max_in_flight=max_in_flight, max_tokens=max_tokens)
        engine = Engine("a", max_in_flight=max_in_flight, max_tokens=max_tokens)
        return Table.memfd(engines=[engine])

    table = capped(max_in_flight=0)
    with table.join() as frontend:
        for _ in range(2):
            with pytest.raises(headcount.SaturatedError) as refused:
                frontend.route()
            assert not refused.value.passes
            # The same holds when the cap is changed in place.
            table.set_total_max_in_flight(None)
            table.set_caps(0, max_in_flight=0)
        table.set_caps(0, max_in_flight=None)
        frontend.route().release()
        table.set_total_max_in_flight(0)
        with pytest.raises(headcount.SaturatedError) as refused:
            frontend.route()
        assert not refused.value.passes
    # With max_tokens=0 a request without tokens is taken, and no other.
    with capped(max_tokens=0).join() as frontend:
        frontend.route().release()
        with pytest.raises(headcount.SaturatedError) as refused:
            frontend.route(tokens=1)
        assert not refused.value.passes
    with capped(max_in_flight=None, max_tokens=None).join() as frontend:
        assert len(frontend.route_many(1000, tokens=1000)) == 1000
