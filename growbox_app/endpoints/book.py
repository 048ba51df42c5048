"""The servers that the user has named: one JSON file in the data folder, written whole. Keys are not in it.

Event-loop thread; the file is small. A file that cannot be read holds no server: the model of this machine answers.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from growbox_app.files import write_atomically

TOKENS_MIN = 2048
TOKENS_MAX = 1_048_576


class StoredEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One server and the model it is asked for. `has_key`: the keyring has its key under `key_name`."""

    id: str
    name: str
    base_url: str
    model: str
    context_tokens: int
    has_key: bool = False

    @property
    def key_name(self) -> str:
        """The name of its key in the keyring."""
        return f"endpoint.{self.id}"


class EndpointBook:
    """Servers by id, in the order in which they were added."""

    def __init__(self, data_path: Path) -> None:
        self._path = data_path / "endpoints.json"
        self._stored = {endpoint.id: endpoint for endpoint in self._read()}

    def all(self) -> tuple[StoredEndpoint, ...]:
        """Every server."""
        return tuple(self._stored.values())

    def find(self, endpoint_id: str) -> StoredEndpoint | None:
        """A server by id."""
        return self._stored.get(endpoint_id)

    def put(self, endpoint: StoredEndpoint) -> None:
        """Adds or replaces one.

        Raises:
            OSError: the file cannot be written; nothing has changed.
        """
        self._write(self._stored | {endpoint.id: endpoint})

    def remove(self, endpoint_id: str) -> None:
        """Takes one away; harmless when there is none.

        Raises:
            OSError: the file cannot be written; nothing has changed.
        """
        self._write({key: value for key, value in self._stored.items() if key != endpoint_id})

    def _write(self, stored: dict[str, StoredEndpoint]) -> None:
        write_atomically(self._path, msgspec.json.encode(list(stored.values())))
        self._stored = stored

    def _read(self) -> list[StoredEndpoint]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[StoredEndpoint])
        except (OSError, msgspec.MsgspecError):
            return []
