"""Acquires, renews and releases the operator's own Lease."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from tandem.control.types import precise_stamp
from tandem.handlers.election import DURATION, EVERY, Candidate, Claim, ElectionStep, step
from tandem.kube.kinds import LEASE, Object
from tandem.kube.port import Kube, KubeError, NotFound
from tandem_core.model.kubernetes_names import FIELD_MANAGER

_log = logging.getLogger(__name__)


class Leadership:
    """One operator's part in the leader election."""

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        me: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._namespace = namespace
        self._clock = clock
        self._standing = Candidate(me)
        self._stopped = threading.Event()

    def leads(self) -> bool:
        """Whether this operator may act now."""
        return self._standing.leads(self._clock())

    def acquire(self) -> bool:
        """Wait until this operator leads; false if it was stopped before."""
        said = ""
        while not self._stopped.is_set():
            if self.look() is ElectionStep.TAKE and self.leads():
                return True
            claim = self._standing.claim
            holder = claim.holder if claim is not None else ""
            if holder != said:
                _log.info("another operator leads: %s", holder)
                said = holder
            self._stopped.wait(EVERY)
        return False

    def keep(self, lost: Callable[[], object]) -> None:
        """Renew the Lease in a background thread; call `lost` when the Lease is lost."""

        def run() -> None:
            try:
                while not self._stopped.wait(EVERY):
                    if self.look() is ElectionStep.LEAVE:
                        break
            except Exception:  # noqa: BLE001 - whatever it is, the Lease is lost
                _log.exception("the lease cannot be renewed")
            if not self._stopped.is_set():
                lost()

        threading.Thread(target=run, name="lease", daemon=True).start()

    def stop(self) -> None:
        """Stop waiting and renewing."""
        self._stopped.set()

    def release(self) -> None:
        """Stop, and release the Lease so that the next operator can lead at once."""
        self.stop()
        me, leads = self._standing.me, self.leads()
        self._standing = Candidate(me)
        if not leads:
            return
        try:
            there = self._kube.get(LEASE, self._namespace, FIELD_MANAGER)
            if there["spec"].get("holderIdentity") == me:
                self._kube.replace({**there, "spec": {**there["spec"], "holderIdentity": ""}})
        except KubeError as problem:
            _log.warning("the lease was not released and will expire: %s", problem)

    def look(self) -> ElectionStep:
        """Read the Lease once and take the next step; a failed call waits, or leaves if expired."""
        try:
            there = self._read()
            self._standing = self._standing.saw(_claim(there), self._clock())
            decided = step(self._standing, self._clock())
            if decided is ElectionStep.TAKE:
                self._take(there)
        except KubeError as problem:
            _log.warning("the lease cannot be acquired: %s", problem)
            expired = self._standing.renewed is not None and not self.leads()
            return ElectionStep.LEAVE if expired else ElectionStep.WAIT
        return decided

    def _read(self) -> Object | None:
        try:
            return self._kube.get(LEASE, self._namespace, FIELD_MANAGER)
        except NotFound:
            return None

    def _take(self, there: Object | None) -> None:
        began = self._clock()
        spec = {
            "holderIdentity": self._standing.me,
            "leaseDurationSeconds": int(DURATION),
            "renewTime": precise_stamp(datetime.now(UTC)),  # noqa: TID251
        }
        if there is None:
            metadata = {"name": FIELD_MANAGER, "namespace": self._namespace}
            taken = self._kube.create(
                {
                    "apiVersion": LEASE.api_version,
                    "kind": LEASE.name,
                    "metadata": metadata,
                    "spec": spec,
                }
            )
        else:
            taken = self._kube.replace({**there, "spec": {**(there.get("spec") or {}), **spec}})
        claim = _claim(taken)
        if claim is not None:
            self._standing = self._standing.took(claim, began)


def _claim(lease: Object | None) -> Claim | None:
    if lease is None:
        return None
    spec = lease.get("spec") or {}
    return Claim(str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or ""))
