"""Reassign: whether a plan is carried out, and the record that says why."""

from controller.decide.creation_limit import limit_sentence
from controller.decide.question import Question
from controller.decide.reasons import reasons
from controller.decide.restraint import Restraints
from controller.decide.saturation import saturated
from domain.assignment import Assignment
from domain.consumer_class import by_class
from domain.messages import (
    Decision,
    DecisionKind,
    HeldBack,
    PlanFigures,
    PlannedPartition,
    Restraint,
    Shortfall,
)
from solver.evaluation import Evaluation, evaluate
from solver.problem import Problem
from solver.solution import Solution

TIE = 1e-9
"""Objectives closer than this, relatively, are equal: a plan has to be better by more."""
SENTENCES = 5
"""So many broken rules are named at most."""


def decide(
    *, number: int, epoch: int, at: float, question: Question, solution: Solution, restraints: Restraints
) -> Decision:
    """The record of one passage through Reassign, with the verdict on the plan.

    Args:
        number: of the decision within the epoch.
        epoch: of the controller.
        at: seconds since the epoch of time.
        question: what was asked.
        solution: what was answered.
        restraints: what holds voluntary plans back.
    """
    problem, situation = question.problem, question.situation
    plan = evaluate(problem, solution.assignment)
    kept = evaluate(problem, question.kept)
    limited = _limited(at, question, plan)
    replaced = question.replaced
    by_rule = replaced is not None or question.rests
    held_back = () if by_rule else _held_back(at, question, solution.assignment, plan, kept, restraints)
    if held_back:
        held_back = (*limited, *held_back)
    keeping = None if question.not_keepable else _figures(problem, kept)
    write_speeds = {partition: size.write_speed for partition, size in situation.sizes.items()}
    at_peak = question.grounds is DecisionKind.VOLUNTARY
    looks_ahead = any(size.foreseen > 0 for size in question.sizes.values())
    why = reasons(problem, solution.assignment, situation.gone, at_peak=at_peak, looks_ahead=looks_ahead)
    if replaced is not None:
        why = dict.fromkeys(why, f"consumer {replaced} is replaced by one that begins as consumers begin now")
    return Decision(
        number=number,
        epoch=epoch,
        decided_at=at,
        triggers=tuple(trigger.sentence for trigger in situation.triggers),
        grounds=question.grounds,
        carried_out=not held_back,
        reason="; ".join(each.why for each in held_back) or _in_favour(question, _figures(problem, plan), keeping),
        held_back=held_back,
        measured_at=situation.measured_at,
        window_s=restraints.settings.scale_down_window_s if at_peak else None,
        capacity=problem.capacity,
        packing_capacity=problem.packing_capacity,
        recovery_time_s=restraints.settings.recovery_time_s or None,
        migration_weight=problem.migration_weight,
        engine=solution.engine,
        status=solution.status,
        solve_s=solution.seconds,
        lower_bound=max(0.0, solution.lower_bound),
        gap=max(0.0, solution.gap),
        plan=_figures(problem, plan),
        keeping=keeping,
        not_keepable=question.not_keepable[:SENTENCES],
        lost=tuple(sorted(set(situation.gone.values()))),
        shortfall=None if question.rests else _shortfall(plan, solution, limited),
        consumers_before=question.consumers_before,
        price_before=question.price_before if problem.classes else None,
        classes=by_class({consumer: of.name for consumer, of in plan.classes.items()}),
        parked=dict(situation.parked),
        foresight=situation.foresight,
        saturated=saturated(write_speeds, situation.named, problem.largest, _packed_largest(problem)),
        assignment=tuple(
            PlannedPartition(
                topic=partition.topic,
                partition=partition.partition,
                speed=problem.speeds[partition],
                backlog=question.sizes[partition].backlog,
                foreseen=question.sizes[partition].foreseen,
                consumer=consumer,
                previous=problem.current.get(partition),
                reason=why.get(partition),
            )
            for partition, consumer in sorted(solution.assignment.items())
        ),
    )


def _held_back(
    at: float,
    question: Question,
    assignment: Assignment,
    plan: Evaluation,
    kept: Evaluation,
    restraints: Restraints,
) -> tuple[HeldBack, ...]:
    """Everything against the plan; nothing where it is to be carried out."""
    settings = restraints.settings
    # Those that are there already may be from a time when there could be more.
    new = assignment.consumers - question.situation.current.consumers
    if new and len(assignment.consumers) > settings.max_consumers:
        why = f"the plan needs {len(assignment.consumers)} consumers, and max_consumers is {settings.max_consumers}"
        return (HeldBack(by=Restraint.RULES, why=f"{why}: raise it"),)
    if question.grounds is DecisionKind.FORCED or question.not_keepable:
        return _against_a_forced_plan(question, plan, kept, restraints)
    against = _against_an_unforced_plan(question, plan, kept, changes_nothing=assignment == question.kept)
    shrinks = plan.price < question.price_before
    if against:
        return against
    if question.grounds is DecisionKind.MANUAL:
        return restraints.on_missing_data(question.situation.missing) if shrinks else ()
    return restraints.on_voluntary(at, plan.rscore, question.situation.missing, question.situation.falling)


def _against_an_unforced_plan(
    question: Question, plan: Evaluation, kept: Evaluation, *, changes_nothing: bool
) -> tuple[HeldBack, ...]:
    if not plan.objective < kept.objective * (1 - TIE):
        keeping, best = (_words(_figures(question.problem, each)) for each in (kept, plan))
        why = f"keeping everything costs {keeping}; the best plan is no better: {best}"
        if changes_nothing:
            why = f"keeping everything is the best plan: {keeping}"
        return (HeldBack(by=Restraint.NOT_BETTER, why=why),)
    if plan.violations:
        return (HeldBack(by=Restraint.RULES, why=f"the plan breaks a rule: {plan.violations[0]}"),)
    return ()


def _against_a_forced_plan(
    question: Question, plan: Evaluation, kept: Evaluation, restraints: Restraints
) -> tuple[HeldBack, ...]:
    if _improves(question, plan, kept):
        return ()
    if restraints.paused and question.grounds is DecisionKind.FORCED:
        why = "the controller is paused, and every partition has a reader: kcga resume ends it"
        return (HeldBack(by=Restraint.PAUSED, why=why),)
    if not question.not_keepable:
        return _against_an_unforced_plan(question, plan, kept, changes_nothing=False)
    why = (
        f"the present assignment breaks a rule ({question.not_keepable[0]}), and no plan mends enough to be worth "
        f"moving: {_words(_figures(question.problem, plan))}"
    )
    return (HeldBack(by=Restraint.NOT_BETTER, why=why),)


def _improves(question: Question, plan: Evaluation, kept: Evaluation) -> bool:
    """Whether the plan mends anything: it gives unread partitions a reader, keeps all rules, or breaks fewer.

    Where the group falls short whatever is done, what is above the capacities must shrink by more than the migrations
    are worth: otherwise the least change of the speeds would move partitions for ever.
    """
    problem = question.problem
    if kept.is_feasible:
        return plan.is_feasible and plan.objective < kept.objective * (1 - TIE)
    if len(question.kept) < len(problem.speeds) or plan.is_feasible:
        return True
    saved = (kept.excess - plan.excess) / problem.capacity
    if abs(saved) > TIE:
        return saved > problem.migration_weight * plan.rscore
    return len(plan.violations) < len(kept.violations)


def _limited(at: float, question: Question, plan: Evaluation) -> tuple[HeldBack, ...]:
    """What keeps the plan from having the consumers that it needs, where they could not be created."""
    limit, most = question.limit, question.problem.max_consumers
    if limit is None or most is None or plan.is_feasible:
        return ()
    why = f"no more than {most} consumer{'s' * (most != 1)}: {limit_sentence(limit, at)}"
    return (HeldBack(by=Restraint.CREATION, why=why),)


def _shortfall(plan: Evaluation, solution: Solution, limited: tuple[HeldBack, ...]) -> Shortfall | None:
    if plan.is_feasible:
        return None
    reason = solution.reason or "; ".join(plan.violations[:SENTENCES])
    return Shortfall(excess=plan.excess, reason="; ".join([*(each.why for each in limited), reason]))


def _packed_largest(problem: Problem) -> float:
    """What a plan gives a consumer of the largest class at most, in bytes/s."""
    return max(problem.limit_of(each, 2) for each in problem.every_class)


def _figures(problem: Problem, cost: Evaluation) -> PlanFigures:
    price = cost.price if problem.classes else None
    return PlanFigures(consumers=cost.consumers, rscore=cost.rscore, objective=cost.objective, price=price)


def _in_favour(question: Question, plan: PlanFigures, keeping: PlanFigures | None) -> str:
    if question.rests:
        return "there is nothing to read, so nobody reads until there is"
    if question.replaced is not None:
        return f"{_words(plan)}; consumer {question.replaced} is replaced"
    if keeping is None:
        return f"{_words(plan)}; the present assignment cannot stay as it is"
    return f"{_words(plan)}, better than keeping {_words(keeping)}"


def _words(plan: PlanFigures) -> str:
    consumers = "1 consumer" if plan.consumers == 1 else f"{plan.consumers} consumers"
    if plan.price is not None:
        consumers += f" (price {plan.price:.2f})"
    return f"{consumers} and an Rscore of {plan.rscore:.2f} (objective {plan.objective:.2f})"
