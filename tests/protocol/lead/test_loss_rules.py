"""Loss decisions: pairs and sinks that have lost data, reported once."""

from tests.protocol.builders import (
    G1,
    G2,
    generation,
    header,
    make_reports,
    merge_report,
    running_state,
    seated,
    state_of,
)

from tandem_runtime.protocol.lead.loss_rules import report_lost_pairs, report_sinks_ahead
from tandem_runtime.protocol.log.entries import (
    DataLost,
    Entry,
    GenerationKnown,
    PairsRetired,
    Seated,
    Trimmed,
    Vacated,
)


def test_sink_ahead_of_every_header_is_reported_once() -> None:  # (i) DataLost
    log_state = running_state(header(1))
    assert list(report_sinks_ahead(log_state, make_reports(delivered=1), 0)) == []
    (found,) = report_sinks_ahead(log_state, make_reports(delivered=2), 0)
    assert isinstance(found, DataLost)
    log_state.apply(found)
    assert list(report_sinks_ahead(log_state, make_reports(delivered=3), 0)) == []


def test_sink_epoch_of_another_history_is_reported() -> None:  # (i) DataLost
    log_state = running_state(header(1), header(2), Trimmed(1))

    def said(delivered: int, digest: str) -> list[Entry]:
        report = merge_report(delivered, delivered_digest=digest)
        return list(
            report_sinks_ahead(
                log_state, make_reports(merges={"m": report}, delivered=delivered), 0
            )
        )

    for epoch in (1, 2):
        assert said(epoch, header(epoch).digest) == said(epoch, "") == []
        assert [type(entry) for entry in said(epoch, "another")] == [DataLost]


def test_pair_without_any_holder_is_reported_lost_once() -> None:  # DataLost
    log_state = running_state(header(1), Trimmed(1), Vacated("x", 0, "x0", ""))
    assert list(report_lost_pairs(log_state, make_reports(), 0)) == []
    log_state.apply(Vacated("x", 1, "x1", ""))
    (found,) = report_lost_pairs(log_state, make_reports(), 0)
    assert isinstance(found, DataLost)
    assert found.subject == "x"
    log_state.apply(found)
    assert list(report_lost_pairs(log_state, make_reports(), 0)) == []


def test_joiner_without_state_does_not_save_pair() -> None:
    log_state = state_of(GenerationKnown(G1, 1), header(1), Trimmed(1), Seated("x", 0, "n"))
    assert len(list(report_lost_pairs(log_state, make_reports(), 0))) == 1


def test_pair_only_named_by_rebuilt_log_is_reported_lost() -> None:  # schedule 3441 of seed 1
    log_state = running_state(header(1), Trimmed(1))
    del log_state.seats["x"]
    assert [
        e.subject
        for e in report_lost_pairs(log_state, make_reports(), 0)
        if isinstance(e, DataLost)
    ] == ["x"]


def test_lost_pair_that_owes_epoch_is_reported_even_after_cutover() -> None:  # DataLost
    carried = generation(2, "v")
    log_state = running_state(
        header(1),
        header(2),
        Trimmed(1),
        GenerationKnown(carried, 2),
        *seated("v", "v0"),
        header(3, generation=2),
        Vacated("x", 0, "x0", ""),
        Vacated("x", 1, "x1", ""),
    )
    found = [
        e.subject
        for e in report_lost_pairs(log_state, make_reports(delivered=1), 0)
        if isinstance(e, DataLost)
    ]
    assert found == ["x"]
    assert list(report_lost_pairs(log_state, make_reports(delivered=2), 0)) == []
    # Retired, it owes nothing, whatever a new lead has heard of the sinks so far.
    log_state.apply(PairsRetired(("x",)))
    assert list(report_lost_pairs(log_state, make_reports(), 0)) == []


def test_no_pair_is_lost_before_first_trim() -> None:
    assert (
        list(report_lost_pairs(state_of(GenerationKnown(G1, 1), header(1)), make_reports(), 0))
        == []
    )
    assert list(report_lost_pairs(state_of(GenerationKnown(G1, 1)), make_reports(), 0)) == []


def test_new_pair_with_living_parents_is_not_lost() -> None:
    log_state = running_state(header(1), Trimmed(1), GenerationKnown(G2, 2))
    log_state.apply(header(2, generation=2))
    assert list(report_lost_pairs(log_state, make_reports(), 0)) == []
    log_state.apply(PairsRetired(("x",)))
    assert [
        e.subject
        for e in report_lost_pairs(log_state, make_reports(), 0)
        if isinstance(e, DataLost)
    ] == [
        "y",
        "z",
    ]
