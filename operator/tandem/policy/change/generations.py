"""Which generation of an intent is which, and the way back from a target that is not cut yet.

The way back is one more generation, of the pairs before the target. The lead may cut the target at
any moment, so the target never falls and no generation is taken out of the intent. If the lead has
cut it meanwhile, its epochs stay its own: only its pairs answer for them, and the next generation
takes over at the header after them.
"""

from tandem_core.contract.intent import Generation, Intent


def building_generation(intent: Intent) -> Generation | None:
    """Return the generation that is built and is not the target yet."""
    return next((each for each in intent.generations if each.number > intent.target), None)


def target_generation(intent: Intent) -> Generation:
    """Return the generation that is the target."""
    return next(each for each in intent.generations if each.number == intent.target)


def new_pairs(generation: Generation) -> tuple[str, ...]:
    """Return the pairs of a generation that it does not carry over."""
    return tuple(pair.name for pair in generation.pairs if pair.parents)


def numbered(intent: Intent) -> Intent:
    """Return the intent with the numbers that are free, if an older version wrote it."""
    if intent.next_generation:
        return intent
    names = {
        name
        for generation in intent.generations
        for pair in generation.pairs
        for name in (pair.name, *pair.parents)
    }
    numbers = [int(name.removeprefix("pair-")) for name in names]
    newest = max(generation.number for generation in intent.generations)
    return intent.replace(next_pair=max(numbers) + 1, next_generation=newest + 1)


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
