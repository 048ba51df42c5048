"""The engine's facade; the rest of the package is private to it."""

from memory.engine.facade import MemoryEngine

__all__ = ["MemoryEngine"]
