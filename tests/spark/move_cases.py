"""The cases of `make matrix`: every two choices of query, key, step and partitions meet."""

from tests.spark.move_keys import KEYS
from tests.spark.moves import QUERIES, STEPS
from tests.spark.pairwise import pairwise

COURSES = ((1, 1, 2), (2, 2, 1), (1, 2, 2), (2, 1, 1))
"""State partitions at first, after the split that begins every story, and after its second step.

Over all of them, both steps go from 1 and from 2 partitions to 1 and to 2.
"""

SPLIT = "split"
CHOICES = {
    "query": tuple(QUERIES),
    "key": tuple(KEYS),
    "step": tuple(step for step in STEPS if step != SPLIT),
    "partitions": COURSES,
}
CASES = pairwise(CHOICES)
