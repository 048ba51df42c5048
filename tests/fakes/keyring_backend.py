"""Keyrings for tests: one that works in memory, and one that is in trouble."""

from __future__ import annotations

import threading


class MemoryKeyring:
    """Implements `growbox_app.secrets.Backend`."""

    def __init__(self, secrets: dict[tuple[str, str], str] | None = None) -> None:
        self.secrets = secrets if secrets is not None else {}
        self.threads: set[int] = set()

    def get_password(self, service: str, username: str) -> str | None:
        self.threads.add(threading.get_ident())
        return self.secrets.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.threads.add(threading.get_ident())
        self.secrets[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self.threads.add(threading.get_ident())
        del self.secrets[service, username]


class BrokenKeyring:
    """Raises on every use."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def get_password(self, service: str, username: str) -> str | None:
        raise self.error

    def set_password(self, service: str, username: str, password: str) -> None:
        raise self.error

    def delete_password(self, service: str, username: str) -> None:
        raise self.error
