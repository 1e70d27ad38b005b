"""A mapping that remembers only so much."""

from tandem_runtime.protocol.bounded_map import REMEMBERED, BoundedMap


def test_bounded_map_remembers_newest_keys() -> None:  # [12]
    recent: BoundedMap[int] = BoundedMap()
    for number in range(REMEMBERED):
        recent[str(number)] = number
    assert len(recent) == REMEMBERED
    recent["0"] = -1
    recent["more"] = 7
    assert len(recent) == REMEMBERED
    assert (recent["0"], recent["more"], "1" in recent, "2" in recent) == (-1, 7, False, True)
