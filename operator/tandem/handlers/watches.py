"""Uses kopf as the source of watch events, and for nothing else.

kopf watches the resources and their pods; each event is reduced to the pipeline that it concerns.
It writes nothing: no finalizers, no annotations, no events.
"""

from collections.abc import Callable, Mapping
from typing import Any

import kopf

from tandem.control.types import Key
from tandem_core.model.kubernetes_names import GROUP, PIPELINE_LABEL, PLURAL, VERSION

Ask = Callable[[Key], None]
"""Queues a pipeline whose resource or pods have changed."""

_CONNECT_SECONDS, _REQUEST_SECONDS, _WATCH_SECONDS = 10, 30, 300


def settings_of() -> kopf.OperatorSettings:
    """Settings under which kopf only watches, and asks for as few rights as possible."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.connect_timeout = _CONNECT_SECONDS
    settings.watching.server_timeout = _WATCH_SECONDS
    settings.watching.client_timeout = _WATCH_SECONDS + _REQUEST_SECONDS
    settings.watching.label_selectors["pods"] = PIPELINE_LABEL
    settings.networking.connect_timeout = _CONNECT_SECONDS
    settings.networking.request_timeout = _REQUEST_SECONDS
    return settings


def registry_of(ask: Ask, login: Callable[..., Any]) -> kopf.OperatorRegistry:
    """The kopf handlers, which queue the pipeline of each relevant event."""
    registry = kopf.OperatorRegistry()
    news = WatchEvents()
    kopf.on.login(registry=registry)(login)

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def resource_changed(
        type: str | None,  # noqa: A002 - kopf's name for it
        namespace: str | None,
        name: str | None,
        meta: Mapping[str, Any],
        **_: object,
    ) -> None:
        key = Key(namespace or "", name or "")
        if news.is_news(type, key, meta):
            ask(key)

    @kopf.on.event("v1", "pods", registry=registry, labels={PIPELINE_LABEL: kopf.PRESENT})
    async def pod_changed(namespace: str | None, labels: Mapping[str, str], **_: object) -> None:
        ask(Key(namespace or "", labels[PIPELINE_LABEL]))

    return registry


class WatchEvents:
    """Tells changes of a manifest from those of its status, which the operator writes itself."""

    def __init__(self) -> None:
        self._seen: dict[Key, object] = {}

    def is_news(self, change: str | None, key: Key, meta: Mapping[str, Any]) -> bool:
        """Whether a change of a resource concerns more than its status."""
        if change == "DELETED":
            self._seen.pop(key, None)
            return True
        version = (meta.get("uid"), meta.get("generation"), meta.get("deletionTimestamp"))
        before, self._seen[key] = self._seen.get(key), version
        return change != "MODIFIED" or version != before
