"""What a tape says of its events, and what rules have worked out about it."""

from __future__ import annotations

from gradlint_rules.cached import of_paths, of_tape

from gradlint.finding import Span
from gradlint.paths import Paths
from gradlint.rule import judge, rules
from gradlint.tape import Clip, Event, Fact, Iteration, Tape

AT = Span("train.py", 1, 1, 1, 2)


def tape(*events: Event) -> Tape:
    path = Tape("train.py")
    for event in events:
        path.write(event)
    return path


def test_a_tape_gives_the_events_of_a_kind_in_order() -> None:
    first, second = Clip(at=AT), Clip(at=AT)
    path = tape(first, Iteration(at=AT, loop=1, round=0, begins=True), second)
    assert list(path.of(Clip)) == [first, second]
    assert not path.of(Fact)


def test_events_of_several_kinds_come_in_the_order_in_which_they_happened() -> None:
    loss, clip, other, branch = (
        Fact(at=AT, what="loss"),
        Clip(at=AT),
        Fact(at=AT, what="amp"),
        Fact(at=AT, what="loss"),
    )
    path = tape(loss, clip, other, branch)
    assert list(path.among("loss", Clip)) == [loss, clip, branch]
    assert list(path.facts("amp", "loss")) == [loss, other, branch]
    assert list(path.of(Fact)) == [loss, other, branch]


def test_a_tape_that_goes_on_is_asked_again() -> None:
    path = tape(Clip(at=AT))
    assert len(path.among(Clip, "loss")) == len(path.of(Clip)) == 1
    path.write(Fact(at=AT, what="loss"))
    assert [event.order for event in path.among(Clip, "loss")] == [0, 1]
    assert len(path.facts("loss")) == 1


def test_an_answer_is_worked_out_once_for_a_tape_and_once_for_paths() -> None:
    asked: list[object] = []

    @of_tape
    def clips(path: Tape) -> int:
        asked.append(path)
        return len(path.of(Clip))

    @of_paths
    def all_clips(paths: Paths) -> int:
        asked.append(paths)
        return sum(paths.some(lambda path: [clips(path)]))

    tapes = [tape(Clip(at=AT)), tape()]
    paths = Paths(tapes)
    assert [all_clips(paths), all_clips(paths), clips(tapes[0])] == [1, 1, 1]
    assert asked == [paths, *tapes]
    assert all_clips(Paths(tapes[:1])) == 1, "other paths, although the first of them is the same"
    assert all_clips(Paths([])) == 0


def test_answers_go_when_all_rules_have_been_asked() -> None:
    path = tape(Clip(at=AT))
    assert list(rules()["GL501"].findings(Paths([path]))) == []
    assert path.answers
    assert judge(rules().values(), (path,)) == []
    assert not path.answers


def test_of_several_reports_at_a_place_the_first_is_the_finding() -> None:
    paths = Paths([tape(Fact(at=AT, what="context-not-entered")) for _ in range(3)])
    (finding,) = rules()["GL303"].findings(paths)
    assert finding.at == AT
