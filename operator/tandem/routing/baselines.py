"""What the routing function is compared with. The other baseline is `RoutingFunction.plain`."""

import numpy as np

from tandem_core.routing.ring import OwnerArray
from tandem_core.routing.xxh64 import U64Array


def modulo_owner(hashes: U64Array, pairs: int) -> OwnerArray:
    """The uniform hash: hash modulo number of pairs, which moves nearly all keys at any change."""
    return (hashes % np.uint64(pairs)).astype(np.uint16)
