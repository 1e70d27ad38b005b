"""The register and its client: rule (e) and its neighbours."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.protocol.builders import PROPERTY

from tandem_runtime.protocol.effects import Effect, ReadRegister, Swap
from tandem_runtime.protocol.election.register import RegisterClient, swap
from tandem_runtime.protocol.messages.peers import RegisterAnswer
from tandem_runtime.protocol.types import NOBODY, RegisterState

FIRST = RegisterState(0, 1, "a", None)


def reading(effects: list[Effect]) -> ReadRegister:
    (effect,) = effects
    assert isinstance(effect, ReadRegister)
    return effect


def swapping(effects: list[Effect]) -> Swap:
    (effect,) = effects
    assert isinstance(effect, Swap)
    return effect


def test_swap_requires_expected_version() -> None:  # (e)
    assert swap(NOBODY, 0, FIRST) == (True, FIRST.replace(version=1))
    now = FIRST.replace(version=1)
    assert swap(now, 0, RegisterState(0, 1, "b", None)) == (False, now)
    assert swap(now, 2, RegisterState(0, 1, "b", None)) == (False, now)
    assert swap(now, 1, RegisterState(7, 2, "b", "a")) == (True, RegisterState(2, 2, "b", "a"))


def test_new_client_reads_register_at_once() -> None:  # (e)
    client = RegisterClient(700)
    assert (client.known, client.consulted, client.busy) == (NOBODY, False, False)
    assert reading(client.tick(5)).op == 1
    assert client.tick(5 + 699) == []
    assert reading(client.tick(5 + 700)).op == 2


def test_answer_marks_client_consulted_and_keeps_newest_content() -> None:
    client = RegisterClient(700)
    client.tick(0)
    assert client.answered(RegisterAnswer(1, False, RegisterState(4, 2, "b", "a")), 1) == (None, [])
    assert client.consulted
    assert client.known == RegisterState(4, 2, "b", "a")
    client.answered(RegisterAnswer(1, False, RegisterState(3, 1, "a", None)), 1)
    assert client.known.version == 4


def test_swap_expects_known_version() -> None:
    client = RegisterClient(700)
    client.answered(RegisterAnswer(0, False, RegisterState(4, 2, "b", "a")), 1)
    asked = swapping(client.propose(RegisterState(0, 3, "a", None), 2))
    assert (asked.expected, asked.place.lead) == (4, "a")
    assert client.busy
    assert client.tick(2 + 699) == []


def test_successful_swap_is_reported_as_done() -> None:
    client = RegisterClient(700)
    asked = swapping(client.propose(FIRST, 0))
    outcome, effects = client.answered(
        RegisterAnswer(asked.op, True, RegisterState(1, 1, "a", None)), 1
    )
    assert (outcome, effects, client.busy) == (True, [], False)


def test_swap_lost_to_another_writer_is_reported_as_failed() -> None:  # (e)
    client = RegisterClient(700)
    asked = swapping(client.propose(FIRST, 0))
    outcome, effects = client.answered(
        RegisterAnswer(asked.op, False, RegisterState(1, 1, "b", None)), 1
    )
    assert (outcome, effects, client.busy) == (False, [], False)
    assert client.known.lead == "b"


def test_client_reads_first_after_lost_answer() -> None:  # (e)
    client = RegisterClient(700)
    client.propose(FIRST, 0)
    again = reading(client.tick(700))
    outcome, effects = client.answered(
        RegisterAnswer(again.op, False, RegisterState(1, 1, "a", None)), 701
    )
    assert (outcome, effects) == (True, [])


def test_swap_is_retried_only_if_register_is_unchanged() -> None:  # (e)
    client = RegisterClient(700)
    first = swapping(client.propose(FIRST, 0))
    again = reading(client.tick(700))
    outcome, effects = client.answered(RegisterAnswer(again.op, False, NOBODY), 701)
    second = swapping(effects)
    assert outcome is None
    assert client.busy
    assert (second.expected, second.place) == (first.expected, first.place)
    assert second.op > again.op
    assert client.tick(701 + 699) == []


def test_late_answer_to_earlier_request_starts_nothing() -> None:  # (e) [11]
    client = RegisterClient(700)
    client.tick(0)
    client.propose(FIRST, 10)
    assert client.answered(RegisterAnswer(1, False, NOBODY), 20) == (None, [])
    assert client.busy


def test_swap_overwritten_by_later_writers_is_not_reported_as_done() -> None:
    """It may have happened; whoever wrote later knows better."""
    client = RegisterClient(700)
    asked = swapping(client.propose(FIRST, 0))
    outcome, _ = client.answered(RegisterAnswer(asked.op, False, RegisterState(2, 2, "b", None)), 1)
    assert outcome is False


class TwoClients(RuleBasedStateMachine):
    """A register, two clients; requests and answers lost, late and repeated.

    Never two leads of one term [6]; a swap is told as done only if it was.
    """

    def __init__(self) -> None:
        super().__init__()
        self.content = NOBODY
        self.history = {0: NOBODY}
        self.clients = {name: RegisterClient(3) for name in "ab"}
        self.requests: list[tuple[str, Effect]] = []
        self.answers: list[tuple[str, RegisterAnswer]] = []
        self.now = 0

    def _ask(self, name: str, effects: list[Effect]) -> None:
        self.requests.extend((name, effect) for effect in effects)

    @rule(name=st.sampled_from("ab"))
    def take_over(self, name: str) -> None:
        client = self.clients[name]
        if client.consulted and not client.busy:
            place = RegisterState(0, client.known.term + 1, name, None)
            self._ask(name, client.propose(place, self.now))

    @rule(name=st.sampled_from("ab"), buddy=st.sampled_from(["a", "b", None]))
    def change_buddy(self, name: str, buddy: str | None) -> None:
        client = self.clients[name]
        if client.known.lead == name and not client.busy:
            place = RegisterState(0, client.known.term, name, buddy)
            self._ask(name, client.propose(place, self.now))

    @rule(name=st.sampled_from("ab"), step=st.integers(0, 4))
    def tick(self, name: str, step: int) -> None:
        self.now += step
        self._ask(name, self.clients[name].tick(self.now))

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), repeat=st.booleans(), lost=st.booleans())
    def request_arrives(self, data: st.DataObject, repeat: bool, lost: bool) -> None:
        at = data.draw(st.integers(0, len(self.requests) - 1))
        name, request = self.requests[at]
        if not repeat:
            del self.requests[at]
        if lost:
            return
        swapped = False
        if isinstance(request, Swap):
            swapped, self.content = swap(self.content, request.expected, request.place)
            self.history[self.content.version] = self.content
            op = request.op
        else:
            assert isinstance(request, ReadRegister)
            op = request.op
        self.answers.append((name, RegisterAnswer(op, swapped, self.content)))

    @precondition(lambda self: self.answers)
    @rule(data=st.data(), repeat=st.booleans())
    def answer_arrives(self, data: st.DataObject, repeat: bool) -> None:
        at = data.draw(st.integers(0, len(self.answers) - 1))
        name, answer = self.answers[at]
        if not repeat:
            del self.answers[at]
        client = self.clients[name]
        outcome, effects = client.answered(answer, self.now)
        self._ask(name, effects)
        if outcome is not None:
            assert not client.busy
            written = self.history[client.known.version]
            assert outcome is (written.lead == name and written == client.known) or not outcome
        assert client.known == self.history[client.known.version]

    @invariant()
    def one_lead_in_each_term(self) -> None:
        leads: dict[int, set[str]] = {}
        for place in self.history.values():
            leads.setdefault(place.term, set()).add(place.lead)
        assert all(len(found) == 1 for found in leads.values())

    @invariant()
    def versions_count_up_and_terms_never_fall(self) -> None:
        assert sorted(self.history) == list(range(len(self.history)))
        terms = [self.history[version].term for version in sorted(self.history)]
        assert terms == sorted(terms)


TestTwoClients = TwoClients.TestCase
TestTwoClients.settings = PROPERTY
