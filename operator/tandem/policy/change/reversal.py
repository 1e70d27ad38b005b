"""The way back from a target that is not cut yet: one more generation, of the pairs before it.

The lead may cut the target at any moment, so the target never falls and no generation is taken out
of the intent. If the lead has cut it meanwhile, its epochs stay its own: only its pairs answer for
them, and the next generation takes over at the header after them.
"""

from tandem_core.contract.intent import Intent


def generation_before_target(intent: Intent) -> int:
    """Return the number of the generation that headers name until the target is cut."""
    return max(each.number for each in intent.generations if each.number < intent.target)


def with_pairs_of(intent: Intent, number: int) -> Intent:
    """Return the intent whose target is a new generation of the same pairs as another one.

    All are carried over: nothing is built, and their routing function is stored already.
    """
    same = next(each for each in intent.generations if each.number == number)
    pairs = tuple(pair.replace(parents=()) for pair in same.pairs)
    again = same.replace(number=intent.next_generation, pairs=pairs)
    return intent.replace(
        generations=(*intent.generations, again),
        target=again.number,
        next_generation=again.number + 1,
    )
