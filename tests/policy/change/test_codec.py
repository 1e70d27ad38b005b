"""Layouts read from the routing function of an intent's target."""

import numpy as np
import pytest

from tandem.policy.change.codec import RoutingCodec
from tandem.policy.layout.layout import HotKey
from tandem_core.contract.intent import Generation, Intent, Pair
from tandem_core.routing.errors import RoutingError
from tandem_core.routing.function import RoutingFunction
from tandem_core.routing.ring import BUCKETS, bucket_of

HOT = np.array([5, 2**63], dtype=np.uint64)


def intent_of(*pairs: str) -> Intent:
    generation = Generation(1, "f", tuple(Pair(name, name) for name in pairs))
    return Intent(1, (generation,), 1, (), next_pair=7, next_generation=2)


def test_layout_has_pairs_in_order_hot_keys_and_the_next_free_name() -> None:
    names = ["pair-0", "pair-1"]
    plain = RoutingFunction.plain(names)
    home = plain.owner_of(HOT).tolist()
    away = np.array([1 - home[0], home[1]], dtype=np.uint16)
    function = RoutingFunction(plain.pairs, plain.vnodes, HOT, away)
    layout = RoutingCodec({"f": function}.__getitem__).layout_of(intent_of("pair-1", "pair-0"))
    assert layout.names() == ("pair-1", "pair-0")
    assert layout.next_pair == 7
    assert layout.buckets_of("pair-0") == set(np.flatnonzero(plain.bucket_owners == 0))
    assert sum(len(mine) for _, mine in layout.pairs) == BUCKETS
    # One that lies where its bucket does needs no entry.
    assert layout.hot == (HotKey(5, int(bucket_of(HOT)[0]), names[1 - home[0]]),)


def test_function_without_a_pair_of_the_target_is_refused() -> None:
    codec = RoutingCodec({"f": RoutingFunction.plain(["pair-0"])}.__getitem__)
    with pytest.raises(RoutingError):
        codec.layout_of(intent_of("other"))
