"""web_fetch asks public addresses only, within its limits, and says honestly what went wrong."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import ipaddress
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from growbox_app.executors import web_client
from growbox_app.executors.base import ExecutorResult
from growbox_app.executors.web_fetch import WebFetch
from growbox_app.safety.network import address_problem
from growbox_app.text import tr
from tests.fakes.web_server import WebServer, page, redirect, serving
from tests.unit.executor_world import called, context_of
from tests.unit.web_world import HERE, Names, fetched, fetcher, names, refused

TEXT = page(b"hello", "text/plain")


@pytest.fixture
def server() -> Iterator[WebServer]:
    with serving() as one:
        one.answers["/"] = TEXT
        yield one


# -- the request ----------------------------------------------------------------------------------


def test_a_page_is_asked_for_by_its_name_at_its_address(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    server.answers["/a%20b?x=%E4%B8%AD"] = TEXT
    result = fetched(server.url("/a b?x=中#part"))
    assert result.ok, result
    assert result.summary == "site.example · 1 line"
    assert result.remembered() == "site.example answered, 1 line"
    lines = server.requests[0].split("\r\n")
    assert lines[0] == "GET /a%20b?x=%E4%B8%AD HTTP/1.1"
    heads = {line.split(":")[0].lower(): line.split(": ", 1)[1] for line in lines[1:] if line}
    assert heads.pop("user-agent").startswith("GrowBox/")
    assert heads.pop("host") == f"site.example:{server.port}"
    assert set(heads) == {"accept", "accept-encoding", "connection"}


# -- addresses ------------------------------------------------------------------------------------

NOT_PUBLIC = (
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "169.254.1.1", "100.64.0.1",
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "198.18.0.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
    "192.0.2.1", "203.0.113.9", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1",
    "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:db8::1", "3fff::1", "2001:0:0:0:0:0:80ff:fffe", "not an address", "",
)  # fmt: skip


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_never_asked(server: WebServer, address: str) -> None:
    for found in ((address,), ("93.184.216.34", address), (address, "93.184.216.34")):
        tool = fetcher(names(*found), rule=address_problem)
        assert "not allowed" in refused(server.url(), tool)
    assert server.requests == []


def test_the_address_that_was_judged_is_the_one_that_is_asked(server: WebServer) -> None:
    """A name server that answers otherwise a moment later changes nothing: it is not asked again."""
    resolve = Names(site_example=[(HERE,), ("10.0.0.1",)])
    assert fetched(server.url(), fetcher(resolve)).ok
    assert resolve.asked == ["site.example"]
    turned = Names(site_example=[(HERE,), ("10.0.0.1",)])
    server.answers["/next"] = redirect("/")
    assert "not allowed" in refused(server.url("/next"), fetcher(turned))
    assert server.paths() == ["/", "/next"]


def test_the_library_looks_nothing_up_by_itself(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    real = socket.getaddrinfo

    def watched(host: object, *rest: object, **more: object) -> object:
        asked.append(host)
        return real(host, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", watched)
    assert fetched(server.url()).ok
    assert set(asked) <= {HERE}


def test_the_next_address_is_tried(server: WebServer) -> None:
    def but_loopbacks(address: str) -> str | None:
        return None if address.startswith("127.") else address_problem(address)

    tool = fetcher(names("127.0.0.9", HERE), rule=but_loopbacks)
    assert fetched(server.url(), tool).ok


def test_the_systems_resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    assert HERE in asyncio.run(web_client.resolved("localhost", 80))
    for error in (socket.gaierror(-2, "unknown"), UnicodeError("label too long")):

        def fails(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(socket, "getaddrinfo", fails)
        assert asyncio.run(web_client.resolved("a.example", 80)) == ()


# -- redirects ------------------------------------------------------------------------------------


def test_redirects_of_the_host_are_followed_without_cookies(server: WebServer) -> None:
    server.answers["/one"] = redirect("two", "Set-Cookie: a=1; Path=/")
    server.answers["/two"] = redirect(server.url("/three", host="www.site.example"))
    server.answers["/three"] = page(b"there", "text/plain")
    result = fetched(server.url("/one"))
    assert result.ok, result
    assert server.url("/three", host="www.site.example") in result.text
    assert server.paths() == ["/one", "/two", "/three"]
    assert "cookie" not in "".join(server.requests).lower()
    assert "referer" not in "".join(server.requests).lower()


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("http://127.0.0.1/", "not allowed"), ("http://localhost:8080/", "not allowed"), ("//169.254.169.254/latest", "not allowed"),
        ("http://[::1]/", "not allowed"), ("http://0x7f.1/", "not allowed"), ("http://2130706433/", "not allowed"),
        ("http://router.lan/", "not allowed"), ("http://[::ffff:10.0.0.1]/", "not allowed"),
        ("file:///etc/passwd", "cannot be fetched"), ("ftp://site.example/", "cannot be fetched"), ("javascript:1", "cannot be fetched"),
        ("http://me:pw@site.example/", "cannot be fetched"), ("http://site.example:22/", "cannot be fetched"),
        ("gopher://site.example:70/", "cannot be fetched"), ("data:text/plain,x", "cannot be fetched"),
        ("https://other.example/x", "call web_fetch with this url"), ("//evil.example/", "call web_fetch with this url"),
        ("http://site.example.evil.example/", "call web_fetch with this url"), ("http://sub.site.example/", "call web_fetch with this url"),
    ],
)  # fmt: skip
def test_a_redirect_is_judged_again(server: WebServer, location: str, words: str) -> None:
    server.answers["/go"] = redirect(location)
    resolve = names()
    assert words in refused(server.url("/go"), fetcher(resolve))
    assert resolve.asked == ["site.example"]
    assert server.paths() == ["/go"]


def test_redirects_end(server: WebServer) -> None:
    server.answers["/round"] = redirect("/round")
    assert "redirects more than 5 times" in refused(server.url("/round"))
    assert len(server.requests) == 6


def test_offline_in_the_middle_stops_the_next_connection(server: WebServer) -> None:
    server.answers["/go"] = redirect("/")
    tool = fetcher(allowed=lambda: not server.requests)
    assert "switched web pages off" in refused(server.url("/go"), tool)
    assert server.paths() == ["/go"]


# -- sizes and times ------------------------------------------------------------------------------

BOMB = gzip.compress(b"0" * 60_000_000)


def drip(head: bytes) -> Callable[[socket.socket, threading.Event], None]:
    """Sends a byte now and then, for ever: each one comes in time."""

    def answer(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(head)
        while not over.wait(0.05):
            connection.sendall(b"x")

    return answer


def flood(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while not over.is_set():
        connection.sendall(b"x" * 65_536)


def silence(connection: socket.socket, over: threading.Event) -> None:
    over.wait(10)


def broken(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99\r\n\r\nhalf"
    )


def nonsense(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"220 mail.example ESMTP\r\n")


PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (page(BOMB, "text/plain", "Content-Encoding: gzip"), "larger than"),
        (page(b"x" * 200_001, "text/plain"), "larger than"),
        (PLAIN + b"Content-Length: 99999999999999999999\r\n\r\nx", "larger than"),
        (flood, "larger than"),
        (drip(PLAIN + b"\r\n"), "took longer than 2.5 s"),
        (drip(PLAIN + b"X-Head: "), "took longer than 2.5 s"),
        (silence, "took longer than 0.6 s"),
        (broken, "broke the connection off"),
        (b"", "broke the connection off"),
        (nonsense, "broke the connection off"),
        (page(b"no gzip", "text/plain", "Content-Encoding: gzip"), "packed wrongly"),
        (page(b"x", "text/plain", "Content-Encoding: br"), "no text but"),
        (page(b"x", "text/html", status="404 Not Found"), "answers 404 (Not Found); check the address"),
        (page(b"x", "text/html", status="503 Service Unavailable"), "answers 503 (Service Unavailable)"),
        (page(b"x", "text/html", status="799 Strange"), "answers 799; try"),
        (page(b"", "", status="304 Not Modified"), "answers 304"),
        (page(b"\x89PNG\r\n", "image/png"), "no text but image/png"),
        (page(b"%PDF-1.7\0\0", "application/pdf"), "no text but application/pdf"),
        (page(b"MZ\0\0\0", "application/octet-stream"), "no text but application/octet-stream"),
        (page(b"MZ\x90\0\x03\0\0", "text/plain"), "this is no text"),
        (page(b"\x7fELF\0\0", ""), "this is no text"),
        (page(b"", "text/html"), "no text without running its scripts"),
        (page(b"<script>app()</script><div id=root></div>"), "no text without running its scripts"),
    ],
    ids=range(23),
)  # fmt: skip
def test_what_cannot_be_had_is_said(server: WebServer, answer: object, words: str) -> None:
    server.answers["/x"] = answer  # type: ignore[assignment]
    began = time.monotonic()
    assert words in refused(server.url("/x"))
    assert time.monotonic() - began < 10


def test_a_packed_page(server: WebServer) -> None:
    server.answers["/x"] = page(
        gzip.compress("你好 ".encode() * 900), "text/plain; charset=utf-8", "Content-Encoding: gzip"
    )
    assert "你好 你好" in fetched(server.url("/x")).text


def test_a_bomb_is_never_unpacked_whole() -> None:
    unzip = zlib.decompressobj(16 + zlib.MAX_WBITS)
    assert len(web_client._unpacked(unzip, BOMB, 1_000)) == 1_000


def test_hosts_that_are_not_there(server: WebServer) -> None:
    assert "there is no host gone.example" in refused("http://gone.example/")
    port = server.port
    server.close()
    assert "cannot be reached" in refused(f"http://site.example:{port}/")


def test_the_user_reads_it_in_his_language(server: WebServer) -> None:
    tr.use("zh")
    assert fetched(server.url("/none")).summary == "site.example 返回 404"
    assert fetched("http://gone.example/").summary == "找不到 gone.example 这个名称"


# -- encryption -----------------------------------------------------------------------------------


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    built = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(1).not_valid_before(datetime.datetime(2020, 1, 1)).not_valid_after(datetime.datetime(2099, 1, 1))  # noqa: DTZ001
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ipaddress.ip_address(HERE))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(built.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


@pytest.mark.parametrize(("name", "ok"), [("site.example", True), ("other.example", False)])
def test_a_certificate_is_that_of_the_name(tmp_path: Path, name: str, ok: bool) -> None:
    """The connection goes to an address; a certificate for it, but for another name, is not enough."""
    cert, key = certificate(tmp_path, name)
    secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    secure.load_cert_chain(cert, key)
    named: list[str | None] = []
    secure.sni_callback = lambda _connection, asked, _context: named.append(asked)
    with serving(secure) as server:
        server.answers["/"] = TEXT
        trusting = fetcher(trust=lambda: ssl.create_default_context(cafile=str(cert)))
        result = fetched(server.url(scheme="https"), trusting)
        assert result.ok == ok, result
        assert named == ["site.example"]
        if not ok:
            assert "its certificate or encryption is not accepted" in result.text
        assert "no secure connection" in refused(server.url(scheme="https"))  # unknown issuer


def test_a_server_without_encryption_gets_none(server: WebServer) -> None:
    assert "no secure connection" in refused(server.url(scheme="https"))


# -- the user's stop ------------------------------------------------------------------------------


class Hanging(Names):
    async def __call__(self, host: str, port: int) -> tuple[str, ...]:
        self.asked.append(host)
        await asyncio.Event().wait()
        return ()


def stopped_after(tool: WebFetch, url: str, reached: Callable[[], bool]) -> ExecutorResult:
    async def main() -> tuple[ExecutorResult, float]:
        scene = context_of(None)
        stopped_at: list[float] = []

        async def stop() -> None:
            while not reached():
                await asyncio.sleep(0.01)
            stopped_at.append(time.monotonic())
            scene.cancelled.set()

        result, _ = await asyncio.gather(called(tool, scene, url=url), stop())
        return result, time.monotonic() - stopped_at[0]

    result, took = asyncio.run(main())
    assert took < 1
    return result


@pytest.mark.parametrize("path", ["name", "/silence", "/drip"])
def test_a_stop_ends_it_in_any_phase(server: WebServer, path: str) -> None:
    patient = web_client.Limits(connect_s=30, silence_s=30)
    server.answers |= {"/silence": silence, "/drip": drip(PLAIN + b"\r\n")}
    hanging = Hanging()
    resolve = hanging if path == "name" else names()
    tool = fetcher(resolve, limits=patient)
    url = server.url("/" if path == "name" else path)
    result = stopped_after(tool, url, lambda: bool(server.requests or hanging.asked))
    assert (result.ok, result.text) == (False, "stopped by the user")


def test_a_stop_ends_the_reading(server: WebServer) -> None:
    server.answers["/x"] = page(b"<p>" * 60_000)
    result = stopped_after(fetcher(), server.url("/x"), lambda: bool(server.requests))
    assert (result.ok, result.text) == (False, "stopped by the user")
