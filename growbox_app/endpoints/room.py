"""The user's servers as the application uses them: named, chosen, tested, with their keys. Implements `face.Endpoints`.

Event-loop thread. Keys are in the keyring of the system and nowhere else; what is chosen is a setting. Invariants: while Offline is
on, nothing but this machine is asked; a key goes only to the scheme, host and port that it was given for.
"""

from __future__ import annotations

import secrets as randomness
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from growbox_app.api import Problem, ProblemCode, ProblemError
from growbox_app.endpoints import http
from growbox_app.endpoints.address import (
    clean_url,
    host_of,
    is_encrypted,
    is_loopback,
    origin_of,
)
from growbox_app.endpoints.book import TOKENS_MAX, TOKENS_MIN, EndpointBook, StoredEndpoint
from growbox_app.endpoints.face import CHOSEN, OFFLINE, Endpoint, EndpointDraft, ServedModel
from growbox_app.endpoints.trouble import problem
from growbox_app.secrets import Secrets, SecretsTrouble
from growbox_app.settings.store import SettingsStore
from growbox_app.text import tr

TEXT_MAX = 200
KEY_MAX = 4096
MODELS_MAX = 1000


class EndpointRoom:
    """The servers of one data folder."""

    def __init__(
        self,
        data_path: Path,
        settings: SettingsStore,
        secrets: Secrets,
        changed: Callable[[], None],
    ) -> None:
        """`changed` is called after another server was chosen, or the chosen one changed."""
        self._data_path = data_path
        self._book = EndpointBook(data_path)
        self._settings = settings
        self._secrets = secrets
        self._changed = changed
        self._until_end: set[str] = set()
        """Servers whose key no keyring keeps."""
        self.busy: Callable[[], bool] = lambda: False

    # -- the face -------------------------------------------------------------------------------
    def all(self) -> tuple[Endpoint, ...]:
        """See `Endpoints.all`."""
        return tuple(map(self._shown, self._book.all()))

    def chosen(self) -> Endpoint | None:
        """See `Endpoints.chosen`."""
        stored = self.chosen_stored()
        return self._shown(stored) if stored is not None else None

    async def save(self, draft: EndpointDraft) -> Endpoint:
        """See `Endpoints.save`."""
        before = self._book.find(draft.id)
        stored = _stored(draft, before)
        if self._is_chosen(stored.id):
            self._require_idle()
        moved = before is not None and origin_of(before.base_url) != origin_of(stored.base_url)
        if draft.key is not None or moved:
            stored = await self._with_key(stored, (draft.key or "").strip())
        self._write(lambda: self._book.put(stored))
        if self._is_chosen(stored.id):
            self._changed()
        return self._shown(stored)

    async def remove(self, endpoint_id: str) -> None:
        """See `Endpoints.remove`."""
        stored = self._book.find(endpoint_id)
        if stored is None:
            return
        if self._is_chosen(endpoint_id):
            await self.choose("")
        await self._with_key(stored, "")
        self._write(lambda: self._book.remove(endpoint_id))

    async def test(self, draft: EndpointDraft) -> tuple[ServedModel, ...]:
        """See `Endpoints.test`."""
        before = self._book.find(draft.id)
        stored = _stored(replace(draft, model=draft.model or "-"), before)
        key = draft.key
        if key is None and before is not None:
            same = origin_of(before.base_url) == origin_of(stored.base_url)
            key = await self._key_of(before) if same else ""
        self._require_allowed(stored.base_url)
        server = http.Server(base_url=stored.base_url, model=draft.model, key=_clean_key(key or ""))
        return tuple(
            ServedModel(id=str(item["id"])[:TEXT_MAX], context_tokens=_context_of(item))
            for item in (await http.models(server))[:MODELS_MAX]
            if item.get("id")
        )

    async def choose(self, endpoint_id: str) -> None:
        """See `Endpoints.choose`."""
        if endpoint_id == self._settings.get(CHOSEN):
            return
        self._require_idle()
        stored = self._book.find(endpoint_id)
        if endpoint_id and stored is None:
            raise ProblemError(Problem(code=ProblemCode.INTERNAL, detail="no such server"))
        if stored is not None:
            self._require_allowed(stored.base_url)
        self._write(lambda: self._settings.set(CHOSEN, endpoint_id))
        self._changed()

    # -- for the chat model ---------------------------------------------------------------------
    def chosen_stored(self) -> StoredEndpoint | None:
        """The server that answers."""
        return self._book.find(str(self._settings.get(CHOSEN)))

    def require_allowed(self, stored: StoredEndpoint) -> None:
        """Offline nothing but this machine is asked.

        Raises:
            ProblemError: it is on, and the server is elsewhere.
        """
        self._require_allowed(stored.base_url)

    async def server_of(self, stored: StoredEndpoint) -> http.Server:
        """The server with its key.

        Raises:
            ProblemError: it may not be asked, or its key could not be had.
        """
        self.require_allowed(stored)
        key = await self._key_of(stored)
        return http.Server(base_url=stored.base_url, model=stored.model, key=key)

    # -- inside ---------------------------------------------------------------------------------
    def _shown(self, stored: StoredEndpoint) -> Endpoint:
        kept = "kept" if stored.has_key else ""
        return Endpoint(
            id=stored.id,
            name=stored.name,
            base_url=stored.base_url,
            model=stored.model,
            context_tokens=stored.context_tokens,
            host=host_of(stored.base_url),
            loopback=is_loopback(stored.base_url),
            encrypted=is_encrypted(stored.base_url),
            key="until_end" if stored.id in self._until_end else kept,
            chosen=self._is_chosen(stored.id),
        )

    def _is_chosen(self, endpoint_id: str) -> bool:
        return self._settings.get(CHOSEN) == endpoint_id

    def _require_idle(self) -> None:
        if self.busy():
            raise ProblemError(Problem(code=ProblemCode.BUSY))

    def _require_allowed(self, url: str) -> None:
        if self._settings.get(OFFLINE) and not is_loopback(url):
            raise problem(ProblemCode.ENDPOINT_OFFLINE, {"host": host_of(url)})

    async def _key_of(self, stored: StoredEndpoint) -> str:
        if not stored.has_key and stored.id not in self._until_end:
            return ""
        try:
            return await self._secrets.get(stored.key_name) or ""
        except SecretsTrouble as trouble:
            raise _keyring_problem(trouble) from trouble

    async def _with_key(self, stored: StoredEndpoint, key: str) -> StoredEndpoint:
        """Keeps a key, or forgets it when empty. A computer without a keyring keeps it until the application ends."""
        had = stored.has_key or stored.id in self._until_end
        self._until_end.discard(stored.id)
        key = _clean_key(key)
        try:
            if not key:
                if had:
                    await self._secrets.delete(stored.key_name)
                return _with_flag(stored, has_key=False)
            await self._secrets.set(stored.key_name, key)
        except SecretsTrouble as trouble:
            if trouble.reason != "none":
                raise _keyring_problem(trouble) from trouble
            await self._secrets.set(stored.key_name, key, only_now=True)
            self._until_end.add(stored.id)
            return _with_flag(stored, has_key=False)
        return _with_flag(stored, has_key=True)

    def _write(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as error:
            fields = {"path": str(self._data_path)}
            raise problem(ProblemCode.DATA_UNWRITABLE, fields, str(error)) from error


def _stored(draft: EndpointDraft, before: StoredEndpoint | None) -> StoredEndpoint:
    """What a draft says, checked.

    Raises:
        ProblemError: the address cannot be used, or there is no model name.
    """
    base_url = clean_url(draft.base_url)
    model = draft.model.strip()[:TEXT_MAX]
    if not model:
        raise problem(ProblemCode.ENDPOINT_NO_MODEL, {"host": host_of(base_url)})
    return StoredEndpoint(
        id=before.id if before is not None else randomness.token_hex(6),
        name=draft.name.strip()[:TEXT_MAX] or model,
        base_url=base_url,
        model=model,
        context_tokens=min(max(draft.context_tokens, TOKENS_MIN), TOKENS_MAX),
        has_key=before.has_key if before is not None else False,
    )


def _with_flag(stored: StoredEndpoint, *, has_key: bool) -> StoredEndpoint:
    return msgspec.structs.replace(stored, has_key=has_key)


def _clean_key(key: str) -> str:
    """A key as a header can carry it.

    Raises:
        ProblemError: it cannot.
    """
    key = key.strip().removeprefix("Bearer ").strip()
    if len(key) > KEY_MAX or not key.isascii() or not key.isprintable() or " " in key:
        raise ProblemError(Problem(code=ProblemCode.ENDPOINT_KEY_FORM))
    return key


def _keyring_problem(trouble: SecretsTrouble) -> ProblemError:
    reason = tr(f"secrets.trouble.{trouble.reason}").rstrip(".。")
    return problem(ProblemCode.ENDPOINT_KEYRING, {"reason": reason}, trouble.reason)


def _context_of(item: dict[str, object]) -> int:
    """The size of a model's context, where a list of models says it (vLLM, llama.cpp, LM Studio, vendors)."""
    meta = item.get("meta")
    places = [item, meta] if isinstance(meta, dict) else [item]
    for place in places:
        for name in ("max_model_len", "n_ctx", "loaded_context_length", "context_length"):
            value = place.get(name)
            if isinstance(value, int) and TOKENS_MIN <= value <= TOKENS_MAX:
                return value
    return 0
