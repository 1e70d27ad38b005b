import threading
from collections.abc import Callable
from typing import Any

from tests.local.harness import wait_for

from tandem_runtime.environment.interface import RegisterSilent, VolumeRevoked
from tandem_runtime.protocol.effects import ReadRegister, Swap
from tandem_runtime.protocol.messages.peers import RegisterAnswer
from tandem_runtime.protocol.types import RegisterState
from tandem_runtime.services.event_loop import Failure
from tandem_runtime.services.register_client import WAITING, RegisterWorker

PLACE = RegisterState(3, 2, "a", None)
NEXT = RegisterState(0, 3, "me", None)


class Register:
    """Answers as it is told to, once it may."""

    def __init__(self) -> None:
        self.trouble: Callable[[], None] = lambda: None
        self.open = threading.Event()
        self.open.set()
        self.calls = 0

    def read_register(self) -> RegisterState:
        self._call()
        return PLACE

    def swap_register(self, expected: int, place: RegisterState) -> tuple[bool, RegisterState]:
        self._call()
        return expected == PLACE.version, place

    def _call(self) -> None:
        self.calls += 1
        assert self.open.wait(20)
        self.trouble()


class Told:
    """Takes what a node would be told."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def tell(self, message: Any) -> None:
        self.messages.append(message)

    cast_out = fail = tell


def asking(register: Register) -> tuple[RegisterWorker, list[Any]]:
    told: Any = Told()
    return RegisterWorker(register, told), told.messages


def raising(problem: Exception) -> Callable[[], None]:
    def trouble() -> None:
        raise problem

    return trouble


def test_requests_are_answered_in_order() -> None:
    registrar, told = asking(Register())
    for effect in (Swap(7, 3, NEXT), ReadRegister(8), Swap(9, 2, NEXT)):
        registrar.ask(effect)
    wait_for(lambda: len(told) == 3)
    assert told == [
        RegisterAnswer(7, True, NEXT),
        RegisterAnswer(8, False, PLACE),
        RegisterAnswer(9, False, NEXT),
    ]


def test_silent_register_blocks_no_caller_and_its_queue_is_bounded() -> None:
    register = Register()
    register.open.clear()
    registrar, told = asking(register)
    registrar.ask(ReadRegister(0))
    wait_for(lambda: register.calls == 1)
    for op in range(1, 3 * WAITING):
        registrar.ask(ReadRegister(op))
    assert told == []
    register.open.set()
    wait_for(lambda: len(told) == 1 + WAITING)
    assert [answer.op for answer in told] == [0, *range(2 * WAITING, 3 * WAITING)]


def test_failing_register_gives_no_answer_and_is_asked_again() -> None:
    register = Register()
    registrar, told = asking(register)
    for number, problem in enumerate((RegisterSilent("no"), OSError("disk full")), start=1):
        register.trouble = raising(problem)
        registrar.ask(ReadRegister(number))
        wait_for(lambda: register.calls == number)  # noqa: B023
    wait_for(lambda: not registrar._asked)
    register.trouble = lambda: None
    registrar.ask(ReadRegister(9))
    wait_for(lambda: told)
    assert told == [RegisterAnswer(9, False, PLACE)]


def test_revoked_volume_is_reported() -> None:
    register = Register()
    register.trouble = raising(outcast := VolumeRevoked("this pod was deleted"))
    registrar, told = asking(register)
    registrar.ask(Swap(1, 3, NEXT))
    wait_for(lambda: told)
    assert told == [outcast]


def test_unexpected_error_ends_process() -> None:
    register = Register()
    register.trouble = raising(ZeroDivisionError("oh"))
    registrar, told = asking(register)
    registrar.ask(ReadRegister(1))
    wait_for(lambda: told)
    assert told == [Failure("ZeroDivisionError", "oh", "", final=False)]
