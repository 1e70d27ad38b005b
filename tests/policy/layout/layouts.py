"""Layouts for tests: drawn ones, and the owner of each bucket."""

from hypothesis import strategies as st

from tandem.policy.layout.layout import Layout


@st.composite
def layouts(draw: st.DrawFn, least_pairs: int = 1, most_pairs: int = 6) -> Layout:
    """A layout of up to 40 buckets, with names that have gaps."""
    count = draw(st.integers(least_pairs, most_pairs))
    numbers = draw(st.lists(st.integers(0, 20), min_size=count, max_size=count, unique=True))
    buckets = draw(st.integers(count, 40))
    dealt = [*range(count), *(draw(st.integers(0, count - 1)) for _ in range(buckets - count))]
    pairs = tuple(
        (f"pair-{number}", frozenset(b for b, owner in enumerate(dealt) if owner == n))
        for n, number in enumerate(sorted(numbers))
    )
    return Layout(pairs, 21)


def owners(layout: Layout) -> dict[int, str]:
    """The owner of each bucket; fails if one has two."""
    found = [(bucket, name) for name, buckets in layout.pairs for bucket in buckets]
    assert len(found) == len(dict(found))
    return dict(found)
