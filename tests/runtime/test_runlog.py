from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from psi.agents import AgentEvent, TextDelta, ThinkingDelta, ThinkingEnd, ToolFinished
from psi.core.message import USER, Message, says
from psi.core.turn import Turn
from psi.engine.runlog import Opened, RunEvent, RunLog

EVENTS = st.lists(
    st.one_of(
        st.builds(TextDelta, st.text(max_size=5)),
        st.builds(ThinkingDelta, st.text(max_size=5)),
        st.just(ThinkingEnd()),
        st.builds(lambda text: ToolFinished("t", {}, text, True), st.text(max_size=5)),
    ),
    max_size=60,
)


def flat(events: list[AgentEvent]) -> list[tuple[str, str]]:
    """What a reader has when it has put the pieces of each text together."""
    found: list[tuple[str, str]] = []
    for event in events:
        name, text = type(event).__name__, str(getattr(event, "delta", getattr(event, "result", "")))
        if found and found[-1][0] == name and hasattr(event, "delta"):
            found[-1] = (name, found[-1][1] + text)
        else:
            found.append((name, text))
    return [each for each in found if each[1] or each[0] not in ("TextDelta", "ThinkingDelta")]


def log_of(events: list[AgentEvent], **bounds: int) -> RunLog:
    log = RunLog("run-1", **bounds)
    for event in events:
        log.add(event)
    return log


def plain(told: list[RunEvent]) -> list[AgentEvent]:
    return [each.event for each in told]  # type: ignore[misc]


@given(EVENTS, st.integers(0, 60))
def test_a_log_with_room_gives_back_what_was_told_behind_a_number(events: list[AgentEvent], after: int) -> None:
    kept, missed = log_of(events).after(after)
    assert plain(kept) == events[after:]
    assert [each.seq for each in kept] == list(range(after + 1, len(events) + 1))
    assert missed == 0


@given(EVENTS, st.integers(0, 60), st.integers(2, 12))
def test_a_log_without_room_gives_the_same_text_or_says_how_much_is_lost(
    events: list[AgentEvent], after: int, room: int
) -> None:
    kept, missed = log_of(events, kept=room).after(after)
    assert len(kept) <= room
    lost = min(after, len(events)) + missed
    assert flat(plain(kept)) == flat(events[lost:])


def test_a_long_text_takes_little_room() -> None:
    log = log_of([TextDelta("word ") for _ in range(50_000)], kept=1_000)
    kept, missed = log.after(0)
    assert missed == 0
    assert "".join(event.delta for event in plain(kept) if isinstance(event, TextDelta)) == "word " * 50_000
    assert kept[-1].seq == 50_000
    rest, _ = log.after(49_999)
    assert plain(rest) == [TextDelta("word ")]


def test_bytes_are_bounded_too() -> None:
    results: list[AgentEvent] = [ToolFinished("t", {}, "x" * 10_000, True) for _ in range(100)]
    kept, missed = log_of(results, most_bytes=200_000).after(0)
    assert 0 < len(kept) < 21
    assert missed == 100 - len(kept)


def test_how_a_run_began_is_never_forgotten() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    turn = Turn(id="run-1", session="ses-1", source=USER, started_at=now)
    opened = Opened(turn, Message(role="user", content=says("hello"), source=USER))
    log = RunLog("run-1", kept=10)
    log.add(opened)
    for place in range(50):
        log.add(ToolFinished("t", {}, str(place), True))
    kept, missed = log.after(0)
    assert kept[0].event == opened
    assert missed == 51 - len(kept)
    assert log.after(1)[1] == missed


def test_the_newest_is_kept_however_large_it_is_and_drives_nothing_out_by_itself() -> None:
    log = log_of([ToolFinished("t", {}, str(place), True) for place in range(20)], most_bytes=100_000)
    log.add(ToolFinished("t", {}, "x" * 1_000_000, True))
    kept, missed = log.after(0)
    assert (len(kept), missed) == (21, 0)
    log.add(ToolFinished("t", {}, "next", True))
    kept, missed = log.after(20)
    assert [each.seq for each in kept][-1] == 22
    assert missed <= 1


def test_the_end_of_a_run_drives_nothing_out() -> None:
    log = log_of([ToolFinished("t", {}, "x" * 1_000, True) for _ in range(80)], most_bytes=100_000)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    log.add(Turn(id="run-1", session="ses-1", source=USER, started_at=now, answer="x" * 90_000))
    kept, missed = log.after(0)
    assert (len(kept), missed) == (81, 0)


@given(EVENTS, st.integers(0, 60), st.integers(1, 9))
def test_whoever_follows_gets_each_piece_as_it_was_told(events: list[AgentEvent], after: int, most: int) -> None:
    log = log_of(events, kept=4, most_bytes=10**9)
    told: list[AgentEvent] = []
    seq = after = min(after, len(events))
    while True:
        found, missed = log.each_after(seq, most)
        if missed or not found:
            break
        assert [each.seq for each in found] == list(range(seq + 1, seq + 1 + len(found)))
        assert len(found) <= most
        told += plain(found)
        seq = found[-1].seq
    if not missed:
        assert told == events[after:]
