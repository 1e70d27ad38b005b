"""Computes thresholds from tolerances: for explicit entries, and for the error of counting.

Letters as in the paper, in the corrected form: θ by its second formula, which is 0 for one pair;
the error of counting is a tenth of δ; the load predicted for quadratic resources is divided by
the number of pairs.
"""

import math

from tandem.routing.planning.settings import Beta, PlanningSettings, Resource

_ERROR_OF_DELTA = 0.1
_LEAST_EPSILON = 1e-6


def theta(tolerance: float, pairs: int) -> float:
    """Return how far a pair's load may be from the mean, relative to it (θ), by the tolerance α."""
    return max(tolerance * pairs / (tolerance + pairs - 1) - 1, 0.0)


def delta(resource: Resource, pairs: int, sigma: float, total_load: float) -> float:
    """Return the share from which a key is too hot to be left to the ring (δ), for one resource.

    `total_load` is Σβ over all keys; a single key's load may reach σθ of a pair's mean.
    """
    if resource.beta is Beta.CONSTANT or pairs == 1:
        return 1.0
    allowed = sigma * theta(resource.tolerance, pairs) * total_load / pairs
    return min(allowed if resource.beta is Beta.LINEAR else math.sqrt(allowed), 1.0)


def counting_epsilon(settings: PlanningSettings, pairs: int, distinct_keys: float) -> float:
    """Return the error ε with which splits should count for this many pairs.

    As no load is known yet, a quadratic one is assumed to be spread evenly, its smallest value.
    """
    smallest = {Beta.CONSTANT: 1.0, Beta.LINEAR: 1.0, Beta.QUADRATIC: 1 / max(distinct_keys, 1.0)}
    deltas = [
        delta(resource, pairs, settings.untracked_share, smallest[resource.beta])
        for resource in settings.resources
    ]
    return max(_ERROR_OF_DELTA * min(deltas), _LEAST_EPSILON)
