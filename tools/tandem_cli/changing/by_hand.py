"""`tandem move`, `tandem rollback`: keys moved by hand, and the last change undone."""

import argparse

from tandem.policy.change.generations import target_generation
from tandem_cli.changing.commands import ChangeCommand, ChangeReport
from tandem_cli.changing.keys import BadKey, hash_of_key, key_columns
from tandem_cli.changing.targets import ChangeRefused, ChangeTarget, PendingChange, target_of
from tandem_cli.lookup import find
from tandem_core.contract.intent import Intent, KeyMove, PastChange
from tandem_core.model.fields.problems import suggestion
from tandem_core.model.states import ChangeStage

_OF_ITS_BUCKET = ""
"""In a move: the pair that owns the key's bucket."""


def _declare_move(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "keys",
        metavar="KEY",
        nargs="+",
        help="a key, as text; of several columns the values separated by commas, or a JSON list",
    )
    goal = parser.add_mutually_exclusive_group(required=True)
    goal.add_argument("--to", metavar="PAIR", help="the pair that is to own the keys")
    goal.add_argument(
        "--back", action="store_true", help="the keys go back to the pair of their bucket"
    )
    parser.add_argument("--pipeline", metavar="NAME", help="pipeline, if there are several")


def _move(args: argparse.Namespace, _: ChangeReport) -> tuple[ChangeTarget, PendingChange] | int:
    target = target_of(find(args.pipeline, args))
    pipeline, intent = target.pipeline(), _started(target)
    pair = _OF_ITS_BUCKET if args.back else _known_pair(intent, args.to)
    columns = key_columns(pipeline)
    try:
        moves = tuple(KeyMove(hash_of_key(key, columns), pair) for key in args.keys)
    except BadKey as problem:
        raise ChangeRefused(str(problem)) from None
    asked = target.move(moves)
    goal = pair or "the pairs of their buckets"
    print(f"{pipeline.metadata.name}: {', '.join(args.keys)} → {goal}")
    return target, asked


def _started(target: ChangeTarget) -> Intent:
    intent = target.intent()
    if intent is None:
        raise ChangeRefused(f"{target.where} has never run: no pair owns a key yet; start it")
    return intent


def _known_pair(intent: Intent, pair: str) -> str:
    """Return a pair of the target generation.

    Raises:
        ChangeRefused: there is no such pair.
    """
    pairs = target_generation(intent).names()
    if pair not in pairs:
        near = suggestion(pair, pairs)
        raise ChangeRefused(f"--to: no pair {pair!r}{near}; expected one of {', '.join(pairs)}")
    return pair


def _declare_rollback(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="pipeline, if there are several")


def _rollback(
    args: argparse.Namespace, _: ChangeReport
) -> tuple[ChangeTarget, PendingChange] | int:
    target = target_of(find(args.name, args))
    name, count = target.pipeline().metadata.name, target.pipeline().spec.pairs.count
    undo = undoing(_started(target), count)
    if isinstance(undo, int):
        print(f"{name}: pairs {count} → {undo}")
        return target, target.scale({"pairs": undo})
    print(f"{name}: {len(undo)} moved keys go back")
    return target, target.move(undo)


def undoing(intent: Intent, pairs: int) -> int | tuple[KeyMove, ...]:
    """Return what undoes the last change: another number of pairs, or moves of keys.

    `pairs` is the number in the manifest. A change of it that is under way, or was given up, is
    taken back.

    Raises:
        ChangeRefused: there is nothing to undo, or keys are being moved.
    """
    change = intent.change
    now = len(target_generation(intent).pairs)
    if change is not None and change.stage is ChangeStage.ABANDONED and pairs != now:
        return now
    if change is not None and change.stage is not ChangeStage.ABANDONED:
        if pairs != change.pairs_before:
            return change.pairs_before
        raise ChangeRefused("keys are being moved; wait until that is done, then undo it")
    done = [past for past in intent.history if not past.abandoned]
    if not done:
        raise ChangeRefused("no change of pairs or keys has been made that could be undone")
    last, *earlier = done
    if last.moves:
        return tuple(_moved_back(move, intent, earlier) for move in last.moves)
    if last.pairs_before == pairs:
        raise ChangeRefused(f"the pipeline has {pairs} pairs, as before the last change")
    return last.pairs_before


def _moved_back(move: KeyMove, intent: Intent, earlier: list[PastChange]) -> KeyMove:
    """Return the move of a key to where it was moved before, or to the pair of its bucket."""
    known = (each for past in earlier for each in past.moves if each.key == move.key)
    before = next(known, None)
    exists = before is not None and before.pair in target_generation(intent).names()
    pair = before.pair if before is not None and exists else _OF_ITS_BUCKET
    return KeyMove(move.key, pair)


MOVE = ChangeCommand(
    "move",
    "give keys to another pair",
    "Moves keys with their state to a pair, whatever its share of the buckets.",
    _declare_move,
    _move,
)
ROLLBACK = ChangeCommand(
    "rollback",
    "undo the last change of pairs or keys",
    "Undoes the last change in the history of the status by one more change: the number of pairs "
    "before it, or the keys' pairs. A change that is under way is given up.",
    _declare_rollback,
    _rollback,
)
