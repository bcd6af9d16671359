"""What the rules say of tapes written by hand: the judgements that no single program shows at a
glance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gradlint_rules.words import when

from gradlint import rule
from gradlint.finding import Finding, Severity, Span
from gradlint.paths import Paths
from gradlint.tape import (
    Backward,
    Clip,
    Cut,
    Decision,
    Event,
    Fact,
    InPlace,
    Iteration,
    Kept,
    Kind,
    Module,
    Optimizer,
    OptimizerStep,
    Parameter,
    Saved,
    Storage,
    Tape,
    Value,
    Write,
    ZeroGrad,
)


def at(line: int) -> Span:
    return Span("train.py", line, 1, line, 10)


def parameter(
    line: int, name: str = "weight", module: Module | None = None, **fields: Any
) -> Value:
    known = Parameter(name, module or Module("model"), at(line))
    usual: dict[str, Any] = {"requires_grad": True, "storage": Storage(), "parameter": known}
    return Value("parameters", Kind.PARAMETER, (), at(line), **(usual | fields))


def constant(line: int, op: str = "torch.zeros", number: object = 0, **fields: Any) -> Value:
    return Value(op, Kind.CONSTANT, (), at(line), cut=Cut.CONSTANT, number=number, **fields)


def data(line: int) -> Value:
    return Value("input", Kind.DATA, (), at(line))


def operation(line: int, op: str, *inputs: Value, **fields: Any) -> Value:
    carries = any(source.requires_grad for source in inputs) and not fields.get("cut")
    usual: dict[str, Any] = {"requires_grad": carries, "storage": Storage()}
    return Value(op, Kind.OPERATION, inputs, at(line), **(usual | fields))


def backward(value: Value, line: int = 90, **fields: Any) -> Backward:
    return Backward(at=at(line), value=value, text="loss.backward()", **fields)


def tape(
    *events: Event | Value, decisions: tuple[Decision, ...] = (), complete: bool = True
) -> Tape:
    """A path with these events; a value stands for its backward."""
    path = Tape("train.py", decisions=decisions, complete=complete)
    for event in events:
        path.write(backward(event) if isinstance(event, Value) else event)
    return path


def decided(text: str, holds: bool, line: int, **fields: Any) -> Decision:
    return Decision(text, holds, at(line), **fields)


def findings(code: str, *paths: Tape) -> list[Finding]:
    return list(rule.rules()[code].findings(Paths(paths)))


def lines(code: str, *paths: Tape) -> list[int]:
    return [finding.at.line for finding in findings(code, *paths)]


STARVED = ("GL101", "GL102", "GL103", "GL104", "GL105", "GL107")


def said(*paths: Tape) -> dict[str, list[int]]:
    """What the rules about losses without gradient say."""
    return {code: found for code in STARVED if (found := lines(code, *paths))}


class TestConstantLoss:
    def test_names_the_decisions_that_lead_to_it_and_no_others(self) -> None:
        verbose, valid = decided("verbose", True, 3), decided("valid.any()", True, 10)
        fed = tape(operation(11, "torch.mean", parameter(1)), decisions=(verbose, valid))
        starved = tape(constant(13), decisions=(verbose, replace(valid, holds=False)))
        quiet = tape(
            constant(13), decisions=(replace(verbose, holds=False), replace(valid, holds=False))
        )
        (finding,) = findings("GL101", fed, starved, quiet)
        assert finding.at.line == 13
        assert "when `valid.any()` is false" in finding.message
        assert "verbose" not in finding.message

    def test_needs_both_decisions_where_either_branch_could_feed_the_loss(self) -> None:
        one, two = decided("one", False, 10), decided("two", False, 20)
        terms = (constant(12), constant(22))
        starved = tape(operation(30, "torch.add", *terms), decisions=(one, two))
        live = operation(11, "torch.mean", parameter(1))
        fed = tape(
            operation(30, "torch.add", live, terms[1]), decisions=(replace(one, holds=True), two)
        )
        other = tape(
            operation(30, "torch.add", terms[0], live), decisions=(one, replace(two, holds=True))
        )
        found = findings("GL101", starved, fed, other)
        assert [finding.at.line for finding in found] == [12, 22]
        assert all("when `one` is false and `two` is false" in finding.message for finding in found)

    def test_is_a_warning_where_every_round_of_a_loop_has_to_skip_its_addition(self) -> None:
        skip = decided("mask[i]", False, 20, loop=7, round=0)
        rounds = [Iteration(at=at(19), loop=7, round=number, begins=True) for number in (0, 1)]
        starved = tape(*rounds, constant(13), decisions=(skip, replace(skip, round=1)))
        fed = tape(
            operation(21, "torch.add", parameter(1)),
            decisions=(replace(skip, holds=True), replace(skip, round=1)),
        )
        (finding,) = findings("GL101", starved, fed)
        assert finding.severity is Severity.WARNING
        inside = tape(constant(13, iteration=((7, 0),)), decisions=(skip,))
        (finding,) = findings("GL101", inside, fed)
        assert finding.severity is Severity.ERROR

    def test_blames_no_weight_or_divisor(self) -> None:
        weighted = operation(15, "torch.mul", constant(14, "torch.tensor", 0.5), constant(13))
        assert lines(
            "GL101", tape(operation(16, "torch.div", weighted, constant(15, "torch.tensor", 3)))
        ) == [13]

    def test_is_silent_beside_a_gradient_and_behind_a_guard(self) -> None:
        assert lines("GL101", tape(operation(16, "torch.add", constant(13), parameter(1)))) == []
        assert lines("GL101", tape(backward(constant(13), guarded=True))) == []

    def test_leaves_a_loss_that_is_cut_on_every_other_path_to_the_rule_of_the_cut(self) -> None:
        auc = operation(20, "torch.argsort", parameter(1), cut=Cut.NON_DIFFERENTIABLE)
        empty = decided("positives == 0", True, 19)
        paths = (
            tape(auc, decisions=(replace(empty, holds=False),)),
            tape(constant(21), decisions=(empty,)),
        )
        assert said(*paths) == {"GL104": [20]}


class TestCuts:
    def test_the_first_of_several_cuts_is_the_finding_and_the_rest_are_related(self) -> None:
        one = operation(13, "torch.Tensor.detach", parameter(1), cut=Cut.DETACH)
        two = operation(14, "torch.Tensor.detach", parameter(2), cut=Cut.DETACH)
        (finding,) = findings("GL102", tape(operation(15, "torch.matmul", one, two)))
        assert finding.at.line == 13
        assert {14, 90} <= {related.at.line for related in finding.related}

    def test_a_cut_in_a_divisor_is_not_to_blame_for_a_constant(self) -> None:
        count = operation(12, "torch.Tensor.item", parameter(1), cut=Cut.COPY, in_torch=False)
        assert said(tape(operation(16, "torch.div", constant(13), count))) == {"GL101": [13]}

    def test_a_detach_within_a_live_part_is_not_to_blame(self) -> None:
        weight = parameter(1)
        through = operation(
            6, "torch.add", weight, operation(5, "torch.Tensor.detach", weight, cut=Cut.DETACH)
        )
        assert said(tape(operation(20, "torch.argmax", through, cut=Cut.NON_DIFFERENTIABLE))) == {
            "GL104": [20]
        }

    def test_a_frozen_teacher_and_a_target_are_not_to_blame(self) -> None:
        teacher = parameter(2, requires_grad=False, cut=Cut.FROZEN, cut_at=at(3))
        target = operation(4, "torch.Tensor.detach", parameter(5), cut=Cut.DETACH, name="target")
        student = operation(13, "torch.Tensor.item", parameter(1), cut=Cut.COPY)
        assert said(tape(operation(15, "torch.sub", student, target, teacher))) == {"GL102": [13]}

    def test_frozen_parameters_alone_are_reported_at_the_freezing(self) -> None:
        frozen = [
            parameter(line, requires_grad=False, cut=Cut.FROZEN, cut_at=at(8)) for line in (1, 2)
        ]
        assert said(tape(operation(15, "torch.mean", *frozen))) == {"GL107": [8]}

    def test_grad_mode_is_reported_where_it_was_switched_off(self) -> None:
        fields: dict[str, Any] = {"cut": Cut.GRAD_MODE, "cut_at": at(7)}
        out = operation(
            9,
            "torch.mul",
            operation(8, "torch.mul", parameter(1), **fields),
            parameter(2),
            **fields,
        )
        assert said(tape(out)) == {"GL103": [7]}

    def test_a_view_of_a_parameter_made_under_no_grad_is_cut_although_it_requires_grad(
        self,
    ) -> None:
        view = Value(
            "torch.Tensor.t",
            Kind.LEAF,
            (parameter(1),),
            at(8),
            requires_grad=True,
            cut=Cut.GRAD_MODE,
            cut_at=at(7),
        )
        assert said(tape(operation(9, "torch.matmul", data(2), view))) == {"GL103": [7]}

    def test_a_missing_derivative_raises_beside_a_whole_route_but_not_where_no_gradient_is_asked_for(
        self,
    ) -> None:
        one, two = parameter(1), parameter(2)
        gate = operation(8, "torch.heaviside", one, missing_derivative=True)
        loss = operation(9, "torch.add", gate, two)
        assert lines("GL104", tape(loss)) == [8]
        assert lines("GL104", tape(backward(loss, inputs=(two,)))) == []


class TestLeafLoss:
    def leaf(self, *inputs: Value) -> Value:
        return Value("torch.tensor", Kind.LEAF, inputs, at(20), requires_grad=True)

    def cut(self) -> Value:
        return operation(18, "torch.argmax", parameter(1), cut=Cut.NON_DIFFERENTIABLE)

    def test_absorbs_the_cut_before_it(self) -> None:
        path = tape(self.leaf(operation(19, "torch.Tensor.item", self.cut())))
        assert said(path) == {"GL105": [20]}
        assert 18 in {related.at.line for related in findings("GL105", path)[0].related}

    def test_is_silent_about_inputs_that_are_optimised(self) -> None:
        guess = self.leaf(self.cut())
        loss = operation(21, "torch.mean", guess)
        optimizer = Optimizer("search", "torch.optim.SGD", at(5), [guess])
        assert said(tape(backward(loss), OptimizerStep(at=at(95), optimizer=optimizer))) == {}
        assert said(tape(backward(loss, inputs=(guess,)))) == {}
        assert said(tape(operation(22, "torch.mean", guess, parameter(1)))) == {}

    def test_is_silent_about_the_zero_of_an_empty_batch(self) -> None:
        assert said(tape(self.leaf())) == {}


class TestUntrainedParameters:
    encoder, head = Module("encoder"), Module("head")

    def path(self, features: Value, *, complete: bool = True, **fields: Any) -> Tape:
        head = parameter(2, module=self.head)
        loss = operation(20, "torch.nn.functional.linear", features, head)
        held = [value for value in (*features.inputs, head) if value.parameter]
        optimizer = Optimizer("optimizer", "torch.optim.SGD", at(5), held)
        return tape(
            backward(loss), OptimizerStep(at=at(95), optimizer=optimizer), complete=complete
        )

    def features(self, **fields: Any) -> Value:
        return operation(10, "torch.Tensor.mul", parameter(1, module=self.encoder), **fields)

    def test_a_held_parameter_behind_a_cut_is_reported_at_the_cut(self) -> None:
        (finding,) = findings("GL106", self.path(self.features(cut=Cut.GRAD_MODE, cut_at=at(9))))
        assert finding.at.line == 9
        assert "`encoder.weight`" in finding.message

    def test_a_gradient_of_zero_is_no_route(self) -> None:
        (finding,) = findings("GL106", self.path(self.features(zero_gradient=True)))
        assert finding.at.line == 10
        assert "the gradient of `.mul()` is zero" in finding.message

    def test_without_grad_mode_a_gradient_of_zero_is_not_to_blame(self) -> None:
        (finding,) = findings(
            "GL106", self.path(self.features(zero_gradient=True, cut=Cut.GRAD_MODE, cut_at=at(9)))
        )
        assert "grad mode is off here" in finding.message

    def test_another_path_that_reaches_it_is_enough(self) -> None:
        assert (
            lines("GL106", self.path(self.features(cut=Cut.DETACH)), self.path(self.features()))
            == []
        )

    def test_nothing_is_said_where_the_analysis_gave_up(self) -> None:
        assert lines("GL106", self.path(self.features(cut=Cut.DETACH), complete=False)) == []

    def test_what_no_optimizer_holds_is_not_untrained(self) -> None:
        path = self.path(self.features(cut=Cut.DETACH))
        step = next(event for event in path.events if isinstance(event, OptimizerStep))
        step.optimizer.parameters = step.optimizer.parameters[1:]
        assert lines("GL106", path) == []

    def test_a_codebook_that_the_code_moves_itself_is_not_untrained(self) -> None:
        codebook = self.features(cut=Cut.DETACH)
        storage = codebook.inputs[0].storage
        assert storage is not None
        storage.writes.append(Write("torch.Tensor.lerp_", at(40), (), 1, True, 5))
        assert lines("GL106", self.path(codebook)) == []


class TestZeroGradientAndDeadTerms:
    def test_rounding_on_every_route_is_reported_and_a_straight_through_estimator_is_not(
        self,
    ) -> None:
        weight = parameter(1)
        rounded = operation(8, "torch.round", weight, zero_gradient=True)
        assert lines("GL108", tape(operation(9, "torch.mean", rounded))) == [8]
        difference = operation(9, "torch.sub", rounded, weight)
        residue = operation(9, "torch.Tensor.detach", difference, cut=Cut.DETACH)
        through = operation(9, "torch.add", weight, residue)
        assert lines("GL108", tape(through)) == []
        assert lines("GL109", tape(through)) == []

    def test_a_detached_term_is_noted_and_a_detached_target_is_not(self) -> None:
        hard = operation(8, "torch.nn.functional.cross_entropy", parameter(1))
        cut = operation(9, "torch.Tensor.detach", parameter(2), cut=Cut.DETACH)
        soft = operation(10, "torch.nn.functional.kl_div", cut)
        assert lines("GL109", tape(operation(11, "torch.add", hard, soft))) == [9]
        target = operation(10, "torch.nn.functional.kl_div", replace(cut, name="target"))
        assert lines("GL109", tape(operation(11, "torch.add", hard, target))) == []

    @pytest.mark.parametrize(
        ("cut", "name", "found"),
        [(Cut.COPY, "", [9]), (Cut.COPY, "weight", []), (Cut.DETACH, "", [])],
    )
    def test_a_factor_is_noted_where_it_was_copied_and_is_no_weight(
        self, cut: Cut, name: str, found: list[int]
    ) -> None:
        factor = operation(
            9,
            "torch.Tensor.item" if cut is Cut.COPY else "torch.Tensor.detach",
            parameter(2),
            cut=cut,
            name=name,
        )
        assert lines("GL109", tape(operation(11, "torch.mul", parameter(1), factor))) == found


class TestOverwritten:
    CODES = ("GL201", "GL203", "GL204")

    def save(self, user: Value, kept: Value, role: str = "result") -> Value:
        assert kept.storage is not None
        user.saves = (
            Saved(kept, kept.storage, kept.storage.version, len(kept.storage.writes), role),
        )
        return user

    def write(self, value: Value, line: int, op: str = "torch.Tensor.mul_", **fields: Any) -> None:
        storage = value.storage
        assert storage is not None
        known: dict[str, Any] = {"counted": True, "order": 0} | fields
        storage.version += known["counted"]
        storage.writes.append(Write(op, at(line), (), storage.version, **known))

    def said(self, path: Tape) -> dict[str, list[int]]:
        return {code: found for code in self.CODES if (found := lines(code, path))}

    def exp(self) -> Value:
        made = operation(8, "torch.exp", parameter(1))
        return self.save(made, made)

    def test_a_write_to_what_was_saved_is_reported_with_the_operation_that_saved_it(self) -> None:
        made = self.exp()
        self.write(made, 12)
        path = tape(operation(13, "torch.sum", made))
        assert self.said(path) == {"GL201": [12]}
        (finding,) = findings("GL201", path)
        assert "`torch.exp()` saved its result" in finding.message
        assert 8 in {related.at.line for related in finding.related}

    def test_writes_before_the_saving_and_after_the_backward_are_right(self) -> None:
        made = operation(8, "torch.exp", parameter(1))
        self.write(made, 9)
        self.save(made, made)
        self.write(made, 95, order=1)
        assert self.said(tape(operation(13, "torch.sum", made))) == {}

    def test_a_branch_that_is_not_back_propagated_does_not_matter(self) -> None:
        made, other = self.exp(), parameter(2)
        self.write(made, 12)
        loss = operation(13, "torch.add", made, other)
        assert self.said(tape(backward(loss, inputs=(other,)))) == {}

    def test_an_update_of_a_parameter_is_the_step_that_came_too_early(self) -> None:
        for op in ("torch.optim.SGD.step", "torch.Tensor.sub_"):
            weight = parameter(1)
            made = self.save(operation(8, "torch.nn.functional.linear", weight), weight, "other")
            self.write(weight, 12, op)
            assert self.said(tape(made)) == {"GL203": [12]}

    def test_what_was_freed_before_is_a_repeated_backward_and_no_early_step(self) -> None:
        weight = parameter(1)
        made = self.save(operation(8, "torch.nn.functional.linear", weight), weight, "other")
        self.write(weight, 50, "torch.optim.SGD.step", order=1)
        path = tape(backward(made, 20), backward(made, 60))
        assert (lines("GL507", path), self.said(path)) == ([60], {})
        retained = tape(backward(made, 20, retain_graph=True), backward(made, 60))
        assert (lines("GL507", retained), self.said(retained)) == ([], {"GL203": [50]})

    def test_a_write_that_autograd_does_not_see_is_a_wrong_gradient(self) -> None:
        made = self.exp()
        self.write(made, 12, counted=False)
        assert self.said(tape(operation(13, "torch.sum", made))) == {"GL204": [12]}

    def test_an_unseen_write_is_not_reported_where_a_seen_one_raises(self) -> None:
        made = self.exp()
        self.write(made, 12, counted=False)
        self.write(made, 13)
        assert self.said(tape(operation(14, "torch.sum", made))) == {"GL201": [13]}


class TestInPlace:
    def event(self, before: Value, after: Value, **fields: Any) -> InPlace:
        write = Write("torch.Tensor.add_", at(12), (), 1, True, 0)
        return InPlace(at=at(12), before=before, after=after, write=write, **fields)

    def test_a_refused_write_to_a_leaf_is_an_error_and_no_note(self) -> None:
        weight = parameter(1, name="scale")
        path = tape(self.event(weight, weight, raises="leaf"), weight)
        assert (lines("GL202", path), lines("GL205", path)) == ([12], [])

    def test_a_harmless_write_is_noted_where_a_backward_runs_through_it(self) -> None:
        hidden = operation(8, "torch.nn.functional.linear", parameter(1))
        after = operation(12, "torch.Tensor.add_", hidden)
        assert lines(
            "GL205", tape(self.event(hidden, after), operation(13, "torch.sum", after))
        ) == [12]
        assert (
            lines("GL205", tape(self.event(hidden, after), operation(13, "torch.sum", hidden)))
            == []
        )

    def test_an_inference_tensor_is_reported_where_inference_mode_was_entered(self) -> None:
        made = operation(8, "torch.softmax", data(1), inference=True, cut_at=at(7))
        user = operation(9, "torch.mul", made, parameter(2))
        assert made.storage is not None
        user.saves = (Saved(made, made.storage, 0, 0, "input"),)
        assert lines("GL302", tape(user)) == [7]
        assert lines("GL302", tape(self.event(made, made, raises="inference"))) == [7]
        asked = Fact(
            at=at(12),
            what="inference-tensor-used",
            value=made,
            detail="torch.Tensor.requires_grad_",
        )
        assert lines("GL302", tape(asked)) == [7]


class TestGraphsThatOutliveTheirBackward:
    def shared(self, *, saves: bool = True) -> Value:
        weight = parameter(1)
        made = operation(8, "torch.exp", weight)
        assert made.storage is not None
        made.saves = (Saved(made, made.storage, 0, 0, "result"),) if saves else ()
        return made

    def twice(self, shared: Value, **fields: Any) -> Tape:
        first = backward(operation(10, "torch.sum", shared), 20, **fields)
        return tape(first, backward(operation(11, "torch.mean", shared), 21))

    def test_a_second_backward_through_what_was_freed_is_reported(self) -> None:
        assert lines("GL507", self.twice(self.shared())) == [21]

    def test_nothing_was_freed_where_nothing_was_saved_or_the_graph_was_retained(self) -> None:
        assert lines("GL507", self.twice(self.shared(saves=False))) == []
        assert lines("GL507", self.twice(self.shared(), retain_graph=True)) == []

    def kept(self, loss: Value) -> Kept:
        return Kept(at=at(30), value=loss, how="append", iteration=((1, 0),))

    def test_a_loss_kept_after_its_backward_is_reported(self) -> None:
        loss = operation(10, "torch.mean", parameter(1))
        assert lines("GL508", tape(backward(loss, iteration=((1, 0),)), self.kept(loss))) == [30]

    def test_what_a_backward_after_the_loop_needs_may_be_kept(self) -> None:
        term = operation(10, "torch.mean", parameter(1))
        assert (
            lines("GL508", tape(self.kept(term), backward(operation(40, "torch.stack", term))))
            == []
        )

    def test_what_is_computed_from_something_unknown_beside_a_model_is_not_sure_to_have_been_freed(
        self,
    ) -> None:
        rank = Value("input", Kind.UNKNOWN, (), at(5), requires_grad=True, assumed=True)
        batch = operation(8, "torch.mul", rank, constant(8))
        assert batch.storage is not None
        batch.saves = (Saved(batch, batch.storage, 0, 0, "result"),)
        losses = [
            operation(line, "torch.nn.functional.linear", batch, parameter(1)) for line in (10, 11)
        ]
        assert lines("GL507", tape(*(backward(loss, loss.at.line) for loss in losses))) == []
        alone = [operation(line, "torch.mean", batch) for line in (10, 11)]
        assert lines("GL507", tape(*(backward(loss, loss.at.line) for loss in alone))) == [11]


class TestAccounts:
    def stepping(self, *cleared: Value, weight: Value | None = None) -> Tape:
        weight = weight or parameter(1)
        optimizer = Optimizer("optimizer", "torch.optim.SGD", at(2), [weight])
        path = tape()
        for number in range(3):
            rounds: dict[str, Any] = {"iteration": ((1, number),)}
            path.write(Iteration(at=at(9), loop=1, round=number, begins=True, over="data"))
            path.write(backward(operation(10, "torch.mean", weight), 20, **rounds))
            path.write(OptimizerStep(at=at(21), optimizer=optimizer, **rounds))
            if cleared:
                path.write(ZeroGrad(at=at(22), optimizer=None, parameters=cleared, **rounds))
            path.write(Iteration(at=at(9), loop=1, round=number, begins=False, last=number == 2))
        return path

    def test_gradients_that_nothing_clears_are_reported(self) -> None:
        assert lines("GL501", self.stepping()) == [20]
        assert lines("GL501", self.stepping(parameter(3, "bias"))) == [20]

    def test_a_parameter_is_known_through_whatever_it_is_reached(self) -> None:
        weight = parameter(1)
        again = parameter(5, parameter=weight.parameter)
        assert lines("GL501", self.stepping(again, weight=weight)) == []
        unseen = parameter(3, "", Module("model", unseen=True))
        assert lines("GL501", self.stepping(unseen, weight=weight)) == []

    def test_two_parameters_that_one_line_makes_are_two_on_one_path(self) -> None:
        assert lines("GL501", self.stepping(parameter(1))) == [20]
        assert lines("GL501", self.stepping(parameter(3, "", Module("model")))) == [20]


class TestHalves:
    """Two losses in a round, of which the first is cleared before the second is added (GL502)."""

    def path(
        self, *facts: str, traced: bool = False, between: Event | None = None, **first: Any
    ) -> Tape:
        weight = parameter(1)
        optimizer = Optimizer("optimizer", "torch.optim.SGD", at(2), [weight])
        path = Tape("train.py", complete=True, traced=traced)
        for number in range(3):
            rounds: dict[str, Any] = {"iteration": ((1, number),)}
            path.write(Iteration(at=at(9), loop=1, round=number, begins=True, over="data"))
            path.write(backward(operation(10, "torch.mean", weight, **first), 20, **rounds))
            if between is not None:
                path.write(replace(between, **rounds))
            path.write(ZeroGrad(at=at(22), optimizer=optimizer, parameters=(weight,), **rounds))
            path.write(backward(operation(11, "torch.mean", weight), 23, **rounds))
            path.write(OptimizerStep(at=at(24), optimizer=optimizer, **rounds))
            path.write(ZeroGrad(at=at(25), optimizer=optimizer, parameters=(weight,), **rounds))
            path.write(Iteration(at=at(9), loop=1, round=number, begins=False, last=number == 2))
        for fact in facts:
            path.write(Fact(at=at(26), what=fact))
        return path

    def test_a_loss_that_is_cleared_before_the_other_is_told(self) -> None:
        assert lines("GL502", self.path()) == [22]
        assert lines("GL502", self.path(traced=True)) == [22]

    def test_what_may_have_come_to_an_input_or_to_somebody_else_is_not(self) -> None:
        assert lines("GL502", self.path(flags={"unseen"})) == []
        assert lines("GL502", self.path("gradients-tapped", traced=True)) == []
        assert lines("GL502", self.path("gradients-tapped")) == [22]

    def test_what_was_clipped_in_between_was_used(self) -> None:
        assert lines("GL502", self.path(between=Clip(at=at(21), parameters=()))) == []
        assert lines("GL502", self.path(between=Clip(at=at(21), parameters=()), traced=True)) == []

    def test_a_write_of_a_parameter_in_between_may_use_it(self) -> None:
        hidden = operation(12, "torch.add", parameter(1))
        write = InPlace(
            at=at(21),
            before=hidden,
            after=hidden,
            write=Write("torch.Tensor.add_", at(21), (), 1, True, 0),
        )
        assert lines("GL502", self.path(between=write)) == []
        assert lines("GL502", self.path(between=write, traced=True)) == [22]
        noise = replace(write, before=constant(12), after=constant(12))
        assert lines("GL502", self.path(between=noise)) == [22]


class TestStepWithoutBackward:
    held = parameter(1)

    def path(self, loss: Value, whole: bool = True, **optimizer: Any) -> Tape:
        stepped = Optimizer("optimizer", "torch.optim.SGD", at(5), [self.held], **optimizer)
        computed = Fact(at=at(20), what="loss", value=loss, text="loss")
        return tape(computed, OptimizerStep(at=at(30), optimizer=stepped), complete=whole)

    def loss(self) -> Value:
        return operation(20, "torch.mean", self.held)

    def test_a_loss_of_what_the_step_holds_was_meant_for_it(self) -> None:
        (finding,) = findings("GL511", self.path(self.loss()))
        assert (finding.at.line, [related.at.line for related in finding.related]) == (30, [20])
        assert "`optimizer` steps" in finding.message

    def test_is_silent_about_a_loss_of_other_parameters(self) -> None:
        assert lines("GL511", self.path(operation(20, "torch.mean", parameter(2)))) == []

    def test_is_silent_where_it_is_not_known_what_is_held_or_who_else_has_it(self) -> None:
        assert lines("GL511", self.path(self.loss(), complete=False)) == []
        assert lines("GL511", self.path(self.loss(), escapes=True)) == []
        assert lines("GL511", self.path(self.loss(), whole=False)) == []

    def test_is_silent_beside_any_backward(self) -> None:
        assert lines("GL511", self.path(self.loss()), tape(self.loss())) == []


def test_the_last_three_decisions_are_named() -> None:
    said = when(
        [decided(name, True, line) for line, name in enumerate(("one", "two", "three", "four"), 1)]
    )
    assert said == " when `two` is true, `three` is true and `four` is true"
