"""Which hosts a call may speak to: names that mean this machine or its network, disguised addresses, addresses after look-up.

Pure. A name is judged twice: as written (`host_problem`), and – because a public name may lead to a private address – every
address it resolved to, right before connecting to that very address (`address_problem`).
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from urllib.parse import urlsplit

from growbox_app.safety.paths import strange_characters

LOCAL_SUFFIXES = (
    "localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "arpa", "onion",
    "test", "svc", "fritz.box", "localhost.direct", "vcap.me", "lacolhost.com", "localtest.me", "lvh.me", "nip.io", "sslip.io", "xip.io", "metadata.google.internal",
)  # fmt: skip
NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
NAT64 = ipaddress.ip_network("64:ff9b::/96")
LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")
FORBIDDEN_V4 = tuple(
    ipaddress.ip_network(block)
    for block in ("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "168.63.129.16/32")
)
PUBLIC_V6 = ipaddress.ip_network("2000::/3")
"""All of it that was ever given out; the rest is reserved, of old meaning (`fec0::/10`), or of one site."""
DOCUMENTATION_V6 = ipaddress.ip_network("3fff::/20")
SCHEMES = frozenset({"http", "https"})


def host_of(target: str) -> str | None:
    """The host of a URL or of `host[:port]`, as written; None when there is none that could be read one way only."""
    if not target or strange_characters(target) or re.search(r"[\s\\]", target):
        return None
    try:
        parts = urlsplit(target if "//" in target else f"//{target}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname or None


def host_problem(target: str) -> str | None:
    """Why a URL or host must not be asked at all: unreadable, scheme, credentials, local; None if the user may allow it."""
    folded = unicodedata.normalize("NFKC", target).casefold().replace("。", ".")
    scheme = folded.split("://", 1)[0] if "://" in folded else "https"
    if scheme not in SCHEMES:
        return "scheme"
    host = host_of(folded)
    if host is None:
        return "unreadable"
    if "@" in folded.split("://", 1)[-1].split("/", 1)[0]:
        return "credentials"
    return _name_problem(host.rstrip("."))


def _name_problem(host: str) -> str | None:
    if ":" in host:
        return address_problem(host)
    try:
        ascii_host = host.encode("idna").decode("ascii") if not host.isascii() else host
    except UnicodeError:
        return "unreadable"
    labels = ascii_host.split(".")
    if NUMBER.fullmatch(labels[-1]):
        address = _loose_v4(labels)
        return address_problem(str(address)) if address else "unreadable"
    if not NAME.fullmatch(ascii_host):
        return "unreadable"
    if "." not in ascii_host or ascii_host.endswith(tuple(f".{end}" for end in LOCAL_SUFFIXES)):
        return "local"
    return "local" if ascii_host in LOCAL_SUFFIXES else None


def _loose_v4(labels: list[str]) -> ipaddress.IPv4Address | None:
    """An address as the C library reads it: 1 to 4 numbers, decimal, octal (0…) or hexadecimal (0x…), the last one filling up."""
    if len(labels) > 4 or not all(NUMBER.fullmatch(label) for label in labels):
        return None
    try:
        numbers = [_number(label) for label in labels]
    except ValueError:
        return None
    *front, last = numbers
    if any(number > 255 for number in front) or last >= 256 ** (5 - len(labels)):
        return None
    value = last
    for place, number in enumerate(front):
        value += number << (8 * (3 - place))
    return ipaddress.IPv4Address(value)


def _number(label: str) -> int:
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    return int(label, 8) if len(label) > 1 and label.startswith("0") else int(label)


def address_problem(address: str) -> str | None:
    """Why an address (of a name that was looked up) must not be connected to: local; None for one of the public internet."""
    try:
        parsed = ipaddress.ip_address(address.split("%", 1)[0])
    except ValueError:
        return "unreadable"
    if "%" in address:
        return "local"
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = _inner_v4(parsed)
        if inner is not None:
            return address_problem(str(inner))
        public = parsed in PUBLIC_V6 and parsed.is_global and parsed not in DOCUMENTATION_V6
        return None if public else "local"
    forbidden = any(parsed in block for block in FORBIDDEN_V4)
    return "local" if forbidden or not parsed.is_global or parsed.is_multicast else None


def _inner_v4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for: mapped, compatible, 6to4, Teredo, NAT64."""
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address.teredo:
        return address.teredo[1]
    if address in NAT64 or (int(address) >> 32 == 0 and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return ipaddress.IPv4Address(0) if address in LOCAL_NAT64 else None
