"""Which certificates are trusted when GrowBox speaks to another machine: one answer for servers and for pages."""

from __future__ import annotations

import ssl
from functools import cache


@cache
def trusted() -> ssl.SSLContext:
    """What this system trusts, and what browsers do: a frozen application may find only one of them. Reads files; not on a loop's thread."""
    import certifi

    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context
