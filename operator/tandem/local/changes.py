"""Changes of a running pipeline: takes requests, and asks the policy for the next step."""

from tandem.local.store.directory import Directory, DirectoryRefused
from tandem.local.store.intent_file import read_function
from tandem.local.store.manifest import read_manifest, write_manifest
from tandem.local.store.requests import (
    DirectoryRequest,
    RequestAnswer,
    answer,
    finish,
    pending_requests,
)
from tandem.policy.change.codec import RoutingCodec
from tandem.policy.change.generations import target_generation
from tandem.policy.change.intent_step import IntentStep
from tandem.policy.change.steps import next_intent
from tandem.policy.change.wanted import Evidence, next_request, wanted_of
from tandem.policy.controller_state import ControllerState
from tandem.policy.recovery.shadows import build_failures, build_obstacles
from tandem.policy.snapshot import Snapshot
from tandem_core.contract.intent import ChangeRequest, Intent
from tandem_core.routing.function import RoutingFunction


class ChangeDesk:
    """The manifest of a directory and the requests to it, for the supervisor."""

    def __init__(self, directory: Directory) -> None:
        """Read the manifest.

        Raises:
            DirectoryRefused: it cannot be read.
        """
        self._directory = directory
        self._stored = read_manifest(directory)
        self._functions: dict[str, RoutingFunction] = {}
        self._codec = RoutingCodec(self._function)
        self._answered: set[str] = set()

    @property
    def generation(self) -> int:
        """The generation of the manifest that was taken last."""
        return self._stored.generation

    def next_step(
        self, intent: Intent, snapshot: Snapshot, memory: ControllerState, now_ms: int
    ) -> IntentStep | None:
        """Take new requests, then return the next step of the change, if there is one.

        Raises:
            OSError: the manifest or an answer could not be written.
        """
        request = next_request(intent, self._take_requests(intent))
        wanted = wanted_of(self._stored.pipeline().spec, self._stored.generation, request)
        evidence = Evidence(
            snapshot.lead, build_failures(snapshot, memory), build_obstacles(snapshot)
        )
        return next_intent(intent, wanted, evidence, self._codec, now_ms)

    def _take_requests(self, intent: Intent) -> list[ChangeRequest]:
        """Take changes of fields into the manifest; return changes of keys that are pending."""
        moves = []
        for request in pending_requests(self._directory):
            if request.values:
                self._take_values(request)
            elif self._accepts(request, intent):
                moves.append(ChangeRequest(request.id, request.moves))
            else:
                finish(self._directory, request)
        return moves

    def _take_values(self, request: DirectoryRequest) -> None:
        try:
            changed = self._stored.with_values(request.values)
            changed.pipeline()
        except (KeyError, DirectoryRefused) as problem:
            said = RequestAnswer(self._stored.generation, refused=str(problem))
        else:
            if request.from_file:
                changed = changed.with_applied(request.values)
            if changed != self._stored:
                write_manifest(self._directory, changed)
                self._stored = changed
            said = RequestAnswer(changed.generation)
        answer(self._directory, request, said)
        finish(self._directory, request)

    def _accepts(self, request: DirectoryRequest, intent: Intent) -> bool:
        """Answer a change of keys once; whether it is still to be carried out."""
        if is_done(request, intent):
            return False
        if request.id in self._answered:
            return True
        pairs = target_generation(intent).names()
        unknown = [move.pair for move in request.moves if move.pair not in {"", *pairs}]
        refused = f"no pair {unknown[0]!r}; there are {', '.join(pairs)}" if unknown else ""
        answer(self._directory, request, RequestAnswer(self._stored.generation, refused))
        self._answered.add(request.id)
        return not refused

    def _function(self, digest: str) -> RoutingFunction:
        if digest not in self._functions:
            place = self._directory.intent.parent
            self._functions = {digest: read_function(place, digest)}
        return self._functions[digest]


def is_done(request: DirectoryRequest, intent: Intent) -> bool:
    """Whether a change of keys is under way, was carried out, or was given up."""
    return intent.request is not None and intent.request.id == request.id
