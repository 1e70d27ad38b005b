"""Members of this build and of the next one run one pipeline, while both of them are killed."""

from itertools import permutations
from pathlib import Path

import pytest
from tests.evolution.mixed import NEW, OLD, Member, Mixed
from tests.evolution.next_build import NEW_HEADER_FIELD, NEW_KIND, NEXT_FORMAT

from tandem_core.contract.exit_codes import FAILED

MEMBERS = {
    "split-1": NEW,
    "split-2": OLD,
    "replica-0": NEW,
    "replica-1": OLD,
    "merge-0": NEW,
    "merge-1": OLD,
}
"""Those who are started once `split-0`, of the next build, leads."""


@pytest.fixture
def mixed(tmp_path: Path) -> Mixed:
    return Mixed(tmp_path)


def is_verified(replica: Member) -> bool:
    """Whether a replica answers, and has the pair's state."""
    return bool(getattr(replica.state(), "verified", False))


def is_active(merge: Member) -> bool:
    """Whether a merge answers, and is the one that delivers."""
    return bool(getattr(merge.state(), "active", False))


def test_two_builds_share_pipeline_and_new_form_waits_for_last_old_member(
    mixed: Mixed,
) -> None:
    with mixed:
        start_with_the_next_build_leading(mixed)
        let_this_build_be_buddy_and_fold(mixed)
        let_this_build_lead(mixed)
        replace_members_of_this_build(mixed)
        see_this_build_refuse(mixed)
        mixed.feeding = False
        mixed.until(lambda: mixed.rows_out() >= mixed.fed.total(), "everything is delivered")
        assert mixed.stop_all() == [0] * len(mixed.members)
        mixed.check_output()


def start_with_the_next_build_leading(mixed: Mixed) -> None:
    lead = mixed.start("split-0", NEW)
    mixed.until(lambda: mixed.place().lead == lead.volume, "the next build leads")
    for name, build in MEMBERS.items():
        mixed.start(name, build)
    mixed.until(lambda: mixed.place().buddy is not None, "it has a buddy")
    replicas = [mixed.members["replica-0"], mixed.members["replica-1"]]
    mixed.until(lambda: all(map(is_verified, replicas)), "a pair of two builds")
    mixed.until_epochs_go_on("with everybody there")


def let_this_build_be_buddy_and_fold(mixed: Mixed) -> None:
    """Entries with fields of the next build go into a snapshot of this one."""
    old = mixed.members["split-2"]
    while not folds_as_buddy(mixed, old):
        pass
    mixed.until(
        lambda: NEW_HEADER_FIELD in mixed.log_of(mixed.place().lead).kinds,
        "they had fields of the next build",
    )


def folds_as_buddy(mixed: Mixed, split: Member) -> bool:
    """Make a split buddy; whether it stayed that until it had folded entries."""
    make_buddy(mixed, split)
    folded = mixed.log_of(split.volume).through

    def is_over() -> bool:
        stays = mixed.place().buddy == split.volume
        return not stays or mixed.log_of(split.volume).through > folded

    mixed.until(is_over, f"{split.name} folds entries")
    return mixed.place().buddy == split.volume


def let_this_build_lead(mixed: Mixed) -> None:
    """Take over from the next build, go on under kills of others, be taken over from."""
    old = mixed.members["split-2"]
    make_lead(mixed, old)
    kill_each_merge_while_it_delivers(mixed, mixed.members["merge-0"], mixed.members["merge-1"])
    for name in ("replica-0", "replica-1"):
        kill_replica(mixed, mixed.members[name])
    make_lead(mixed, old)
    mixed.until(lambda: mixed.place().buddy is not None, "it has a buddy")
    kill_until_another_follows(mixed, old)
    mixed.until_epochs_go_on("after everybody was killed once")


def make_lead(mixed: Mixed, split: Member) -> None:
    """Kill leads until a split leads."""
    while mixed.place().lead != split.volume:
        make_buddy(mixed, split)
        lead = mixed.member_on(mixed.place().lead)
        if lead is not None and lead is not split:
            kill_until_another_follows(mixed, lead)


def make_buddy(mixed: Mixed, split: Member) -> None:
    """Kill others until a split is buddy."""
    while (place := mixed.place()).buddy != split.volume:
        leads = place.lead == split.volume
        in_the_way = mixed.member_on(place.lead if leads and place.buddy else place.buddy)
        if in_the_way is not None:
            kill_until_another_follows(mixed, in_the_way)
        mixed.until(lambda: mixed.place().buddy is not None, "there is a buddy")


def kill_until_another_follows(mixed: Mixed, split: Member) -> None:
    """Kill a split that is lead or buddy, and start it again when the register has changed."""
    before = mixed.place()
    split.kill()
    mixed.until(lambda: mixed.place() != before, f"the register goes on without {split.name}")
    split.restart()


def kill_each_merge_while_it_delivers(mixed: Mixed, *merges: Member) -> None:
    """Whichever of the two delivers, until that befell both; the other build's one goes on."""
    killed: set[str] = set()
    while len(killed) < len(merges):
        mixed.until(lambda: all(merge.state() for merge in merges), "both merges are there")
        mixed.until(lambda: any(map(is_active, merges)), "one of them delivers")
        found = (two for two in permutations(merges) if is_active(two[0]))
        if (two := next(found, None)) is not None:  # none if it was deposed just now
            kill_merge(mixed, *two)
            killed.add(two[0].name)


def kill_merge(mixed: Mixed, merge: Member, other: Member) -> None:
    """Kill the merge that delivers, and see another one take over."""
    merge.kill()
    mixed.until(lambda: is_active(other), f"{other.name} takes over from {merge.name}")
    mixed.until_epochs_go_on(f"without {merge.name}")
    merge.restart()


def kill_replica(mixed: Mixed, replica: Member) -> None:
    """Kill a replica; its twin, of the other build, carries the pair."""
    replica.kill()
    mixed.until_epochs_go_on(f"without {replica.name}")
    replica.restart()
    mixed.until(lambda: is_verified(replica), f"{replica.name} is back")


def replace_members_of_this_build(mixed: Mixed) -> None:
    """One by one; with the last of them the next format is finalized and used."""
    old = [member for member in mixed.members.values() if member.build == OLD]
    for member in old:
        member.kill()
        mixed.check()
        # Dead, it still counts: it could come back. Only giving its volume up makes it gone.
        mixed.finalized = member is old[-1]
        member.replace(NEW)
        mixed.until_epochs_go_on(f"with a new {member.name}")
        mixed.until(member.state, f"{member.name} is there")
    log = mixed.log_of

    def noted() -> bool:
        found = [log(mixed.place().lead), log(mixed.place().buddy)]
        return all(each.format == NEXT_FORMAT and each.notes for each in found)

    mixed.until(noted, "the new kind of entry is on both volumes of the log")


def see_this_build_refuse(mixed: Mixed) -> None:
    """A member of this build that comes too late stops, on a new volume and on a newer one."""
    late = mixed.start("split-3", OLD)
    see_stopped(mixed, late, "UnreadableFormat")
    late.replace(NEW)
    mixed.until(late.state, "the next build in its place")
    buddy = mixed.member_on(mixed.place().buddy)
    assert buddy is not None
    mixed.until(lambda: NEW_KIND in mixed.log_of(buddy.volume).kinds, "a new kind in its log")
    buddy.kill()
    buddy.restart(OLD)
    see_stopped(mixed, buddy, "UnknownRecord", "UnreadableFormat")
    buddy.restart(NEW)
    mixed.until(buddy.state, "the next build on its volume again")
    mixed.until_epochs_go_on("nothing was harmed")


def see_stopped(mixed: Mixed, member: Member, *reasons: str) -> None:
    """It ends because it cannot read the log, which now has the new form."""
    assert mixed.finalized
    member.may_end = True
    mixed.until(lambda: member.process.poll() is not None, f"{member.name} stops")
    assert member.process.returncode == FAILED
    assert member.refusal() in reasons
