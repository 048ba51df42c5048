"""Servers by script: kept in memory, asked by nobody. `fail` makes the next wish fail; `served` is what a test lists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from growbox_app.api import Problem, ProblemError
from growbox_app.endpoints.address import host_of, is_encrypted, is_loopback
from growbox_app.endpoints.face import Endpoint, EndpointDraft, ServedModel


class ScriptedEndpoints:
    """Implements `growbox_app.endpoints.face.Endpoints`."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._kept: dict[str, Endpoint] = {}
        self.drafts: list[EndpointDraft] = []
        self.served: tuple[ServedModel, ...] = (ServedModel(id="qwen3-8b", context_tokens=40960),)
        self.fail: Problem | None = None
        self.key = "kept"

    def all(self) -> tuple[Endpoint, ...]:
        return tuple(self._kept.values())

    def chosen(self) -> Endpoint | None:
        return next((endpoint for endpoint in self._kept.values() if endpoint.chosen), None)

    async def save(self, draft: EndpointDraft) -> Endpoint:
        self._asked(draft)
        before = self._kept.get(draft.id)
        key = before.key if before is not None and draft.key is None else ""
        endpoint = Endpoint(
            id=draft.id or f"s{len(self._kept)}",
            name=draft.name or draft.model,
            base_url=draft.base_url,
            model=draft.model,
            context_tokens=draft.context_tokens,
            host=host_of(draft.base_url),
            loopback=is_loopback(draft.base_url),
            encrypted=is_encrypted(draft.base_url),
            key=self.key if draft.key else key,
            chosen=before.chosen if before is not None else False,
        )
        self._kept[endpoint.id] = endpoint
        return endpoint

    async def remove(self, endpoint_id: str) -> None:
        self._asked()
        del self._kept[endpoint_id]
        self._changed()

    async def test(self, draft: EndpointDraft) -> tuple[ServedModel, ...]:
        self._asked(draft)
        return self.served

    async def choose(self, endpoint_id: str) -> None:
        self._asked()
        self._kept = {
            key: replace(endpoint, chosen=key == endpoint_id)
            for key, endpoint in self._kept.items()
        }
        self._changed()

    def _asked(self, draft: EndpointDraft | None = None) -> None:
        if draft is not None:
            self.drafts.append(draft)
        if self.fail is not None:
            problem, self.fail = self.fail, None
            raise ProblemError(problem)
