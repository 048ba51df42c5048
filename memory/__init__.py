"""The memory engine of GrowBox: no Qt, no asyncio, no network, no model, no wall clock of its own.

Public names live in `memory.engine` (the facade), `memory.config`, `memory.values`, `memory.requests`, `memory.events`,
`memory.errors` and `memory.ports`. This module imports nothing, so that importing one of them stays cheap.
"""
