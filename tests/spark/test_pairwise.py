from itertools import combinations, pairwise, product

from tests.spark.move_cases import CASES, CHOICES, COURSES
from tests.spark.pairwise import pairs_of
from tests.spark.pairwise import pairwise as cases_of


def test_every_two_choices_meet() -> None:
    choices = {"a": (1, 2), "b": (1, 2, 3), "c": ("x", "y"), "d": (True, False)}
    cases = cases_of(choices)
    met = {pair for case in cases for pair in pairs_of(dict(zip(choices, case, strict=True)))}
    assert len(met) == sum(len(choices[a]) * len(choices[b]) for a, b in combinations(choices, 2))
    assert len(cases) < len(list(product(*choices.values())))


def test_matrix_has_hardly_more_cases_than_queries_with_keys() -> None:
    least = len(CHOICES["query"]) * len(CHOICES["key"])
    assert least <= len(CASES) <= least + 5
    for one, other in combinations(range(len(CHOICES)), 2):
        first, second = list(CHOICES.values())[one], list(CHOICES.values())[other]
        assert {(case[one], case[other]) for case in CASES} == set(product(first, second))


def test_every_step_meets_every_change_of_partitions() -> None:
    for step in (0, 1):
        changes = {list(pairwise(course))[step] for course in COURSES}
        assert changes == set(product((1, 2), (1, 2)))
