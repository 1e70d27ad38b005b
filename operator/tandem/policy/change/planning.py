"""Plans the next layout of a change: keys moved by hand first, then one step to another number."""

from tandem.policy.change.codec import LayoutCodec
from tandem.policy.change.wanted import Wanted
from tandem.policy.layout.layout import (
    InvalidChange,
    LayoutChange,
    MovedKey,
    move_keys,
)
from tandem.policy.layout.resize import next_step
from tandem_core.contract.intent import ChangeRequest, Intent


class CannotPlan(Exception):
    """There is no layout as wanted; the message says why."""


def next_layout(
    codec: LayoutCodec, intent: Intent, wanted: Wanted, request: ChangeRequest | None
) -> LayoutChange:
    """Return the layout to build next.

    Raises:
        CannotPlan: a move names a pair that does not exist, or no pair can be split further.
    """
    layout = codec.layout_of(intent)
    if request is not None and request.moves:
        moves = (
            MovedKey(move.key, codec.bucket_of(move.key), move.pair or None)
            for move in request.moves
        )
        try:
            return move_keys(layout, moves)
        except InvalidChange as problem:
            raise CannotPlan(str(problem)) from problem
    change = next_step(layout, wanted.pairs, lambda _: 1.0, wanted.max_surge)
    if change is None:
        raise CannotPlan(f"there are {len(layout.pairs)} pairs, and none can be split further")
    return change
