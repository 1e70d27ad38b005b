"""The table of a pipeline's members, and the error for a member that does not exist."""

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from tandem_core.model.fields.problems import suggestion
from tandem_core.model.states import MemberKind, MemberState, PairState, Phase, Role
from tandem_core.model.status import MemberStatus, Status

GOOD, UNEASY, BAD = "green", "yellow", "red"
ASIDE = "dim"
"""The style of pairs that are built or retired."""
COLOURS: Mapping[str, str] = {
    MemberState.RUNNING: GOOD,
    MemberState.STANDBY: GOOD,
    MemberState.STARTING: UNEASY,
    MemberState.CATCHING_UP: UNEASY,
    MemberState.SILENT: BAD,
    MemberState.GONE: BAD,
    PairState.PAIRED: GOOD,
    PairState.ALONE: UNEASY,
    PairState.DOWN: BAD,
    Phase.RUNNING: GOOD,
    Phase.COMPLETED: GOOD,
    Phase.HALTED: BAD,
}

_RIGHT = frozenset({"epoch", "pid"})


def draw_members(
    status: Status,
    titles: Mapping[str, str],
    epochs: Mapping[str, object],
    targets: Mapping[str, str] | None = None,
) -> Table:
    """Draw the table of splits, pairs with their replicas, merges and spares.

    `titles` has titles of members without a role, `epochs` their last epoch, both by name. With
    `targets`, other names by which members can be addressed, members are pods, each on its node.
    """
    where = "pid" if targets is None else "node"
    called = [] if targets is None else ["target"]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("", *called, "member", "role", "state", "epoch", where):
        table.add_column(column, justify="right" if column in _RIGHT else "left")
    pairs = {pair.name: pair.state for pair in status.pairs}
    shown: set[str | None] = {None}
    for member in status.members:
        group = Text("")
        if member.pair not in shown:
            shown.add(member.pair)
            state = pairs.get(member.pair or "", "")
            style = COLOURS.get(state, "") if member.standing is None else ASIDE
            group = Text.assemble(f"{member.pair} ", (str(member.standing or state), style))
        table.add_row(
            group,
            *([] if targets is None else [targets.get(member.name, "")]),
            member.name,
            _role(member, titles),
            Text(member.state, style=COLOURS.get(member.state, "")),
            str(epochs.get(member.name, "")),
            str((member.pid if targets is None else member.node) or ""),
        )
    return table


def titles_by_state(status: Status, lead: str | None) -> dict[str, str]:
    """Return the titles of the lead and of active merges, by name; merges by their state."""
    active = {
        member.name: "active"
        for member in status.members
        if member.kind is MemberKind.MERGE and member.state is MemberState.RUNNING
    }
    return active | ({lead: "lead"} if lead is not None else {})


def _role(member: MemberStatus, titles: Mapping[str, str]) -> Text:
    if member.role is not None:
        return Text(member.role, style="bold" if member.role is Role.PRIMARY else "")
    return Text(titles.get(member.name, ""), style="bold")


LEAD = "lead"
"""The target that stands for the current lead."""


class Missing(Exception):
    """There is no such pipeline or member; the message says which there are."""


def no_such_member(target: str, known: Sequence[str]) -> Missing:
    """Return the error for a target that matches no member; it lists those that exist."""
    near = suggestion(target, known)
    return Missing(f"no member {target}{near} (targets: {', '.join(known)})")
