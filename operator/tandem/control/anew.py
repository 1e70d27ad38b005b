"""How a pipeline that was refused before anything was computed begins anew with another manifest.

What its splits have taken in is of the old manifest, so everything goes before anything new comes:
first what makes pods, then the pods, then register and intent.
"""

from tandem.control.apply import Changes, carry_out, changes, list_objects
from tandem.control.intent import Recorded, forget_records
from tandem.control.keys import Key
from tandem.control.observe import Listing
from tandem.kube.port import Kube
from tandem.manifests.order import Order
from tandem.manifests.records import spec_digest
from tandem.model.states import Phase


def is_mended(phase: Phase, recorded: Recorded, order: Order | None) -> bool:
    """Whether the manifest is another one than that which was refused."""
    return phase is Phase.REFUSED and order is not None and recorded.spec != spec_digest(order)


def clear(kube: Kube, key: Key, listing: Listing) -> bool:
    """Take away what the old manifest has brought; whether nothing is left. May be done again."""
    there = list_objects(kube, key)
    carry_out(kube, Changes(delete=changes((), there, listing.uid).delete))
    if listing.pods:
        return False
    forget_records(kube, key, listing.uid)
    return True
