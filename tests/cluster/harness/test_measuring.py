"""Measurements are told beside what is promised."""

from tests.cluster.e2e.measuring import Recovery, median_whole, summary

TRIES = [Recovery(1.2, 20.0), Recovery(4.0, 70.0), Recovery(1.0, 25.0)]


def test_summary_gives_median_and_worst_of_several_tries() -> None:
    told = summary("primary deleted", TRIES, 1.0)
    assert told == (
        "primary deleted: longest gap median 1.20 s, worst 4.00 s, within two intervals of 1 s; "
        "whole again after median 25.00 s, worst 70.00 s; 3 tries"
    )
    assert median_whole(TRIES) == 25.0


def test_summary_flags_median_beyond_target() -> None:
    assert "BEYOND two intervals of 0.5 s" in summary("it", TRIES, 0.5)


def test_summary_of_single_try_has_no_median() -> None:
    assert summary("it", TRIES[:1], 1.0).startswith("it: longest gap 1.20 s, within")
