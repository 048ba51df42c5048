"""The model hub's official file over HTTPS, with resume. `HF_ENDPOINT` chooses a mirror.

One table translates httpx' errors. A reply that cannot be the file (a login page, another length) is refused before its bytes
are kept. Runs on a worker thread; the bytes go to the `.part` of `transfer`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import httpx

from growbox_app.api import ProblemCode, ProblemError
from growbox_app.models.catalogue import HubFile
from growbox_app.models.transfer import Job, Meter, PartFile
from growbox_app.models.trouble import trouble

ENDPOINT = "https://huggingface.co"
_TIMEOUT = httpx.Timeout(connect=8.0, read=15.0, write=15.0, pool=15.0)
_ATTEMPTS = 4
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")
_PARTIAL_CONTENT, _RANGE_NOT_SATISFIABLE = 206, 416


def endpoint() -> str:
    """The hub or the mirror that `HF_ENDPOINT` names."""
    return (os.environ.get("HF_ENDPOINT", "").strip() or ENDPOINT).rstrip("/")


def url(source: HubFile) -> str:
    """The address of a hub file."""
    return f"{endpoint()}/{source.repo}/resolve/{source.revision}/{source.file}"


def fetcher(source: HubFile) -> Callable[[Job, PartFile], None]:
    """A fetcher of this file, as `fetch.obtain` wants it."""

    def fetch(job: Job, part: PartFile) -> None:
        # A connection that breaks is tried again only as long as each attempt brings something.
        for attempt in range(1, _ATTEMPTS + 1):
            before = part.have
            try:
                _fetch_once(source, job, part)
            except (httpx.ReadError, httpx.ReadTimeout, httpx.RemoteProtocolError) as error:
                if attempt == _ATTEMPTS or part.have == before:
                    raise _failed(job, "broken_connection", error) from error
            except httpx.HTTPError as error:
                raise _failed(job, "no_answer", error) from error
            else:
                return

    return fetch


def _fetch_once(source: HubFile, job: Job, part: PartFile) -> None:
    job.check_cancelled()
    if part.have >= job.model.size:
        return
    headers = {"Range": f"bytes={part.have}-"} if part.have else {}
    try:
        meter = Meter(job, "model_download", done=part.have, detail=httpx.URL(endpoint()).host)
        with (
            httpx.Client(timeout=_TIMEOUT, follow_redirects=True) as client,
            client.stream(
                "GET", url(source), headers={**headers, "Accept-Encoding": "identity"}
            ) as reply,
        ):
            _check_reply(reply, job, part)
            # As they arrive: gathering larger blocks would lose them when the connection breaks, and delay a cancel.
            for block in reply.iter_bytes():
                part.append(block)
                meter.at(part.have)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
        raise trouble(
            ProblemCode.NO_NETWORK, job.model, host=endpoint(), detail=_words(error)
        ) from error
    except (httpx.InvalidURL, ImportError) as error:
        # ImportError: the environment names a SOCKS proxy, which httpx speaks only with an extra package.
        raise _failed(job, "address", error) from error


def _check_reply(reply: httpx.Response, job: Job, part: PartFile) -> None:
    """Makes the part fit the reply, or refuses the reply."""
    status = f"{reply.status_code} {reply.reason_phrase}"
    if reply.status_code == _RANGE_NOT_SATISFIABLE:
        part.reject("size", f"{reply.url.host} has fewer than {part.have} bytes of it")
    if reply.status_code >= 400:
        raise trouble(
            ProblemCode.DOWNLOAD_FAILED,
            job.model,
            host=endpoint(),
            reason="status",
            status=status,
            detail=f"HTTP {status} {reply.url}",
        )
    if reply.headers.get("Content-Type", "").startswith("text/html"):
        raise _not_the_file(job, "web_page", f"{reply.url.host} sent a web page")
    total = _total(reply)
    if reply.status_code != _PARTIAL_CONTENT:
        part.truncate(0)
    elif _start(reply) != part.have:
        part.reject("other_file", f"{reply.url.host} sent another range than asked for")
    if total is not None and total != job.model.size:
        detail = f"{reply.url.host} offers {total} bytes, expected {job.model.size}"
        raise _not_the_file(job, "size", detail)


def _start(reply: httpx.Response) -> int:
    match = _RANGE.match(reply.headers.get("Content-Range", ""))
    return int(match[1]) if match else 0


def _total(reply: httpx.Response) -> int | None:
    if match := _RANGE.match(reply.headers.get("Content-Range", "")):
        return int(match[2])
    length = reply.headers.get("Content-Length", "")
    return int(length) if length.isdigit() and reply.status_code != _PARTIAL_CONTENT else None


def _not_the_file(job: Job, reason: str, detail: str) -> ProblemError:
    return trouble(ProblemCode.CHECKSUM, job.model, host=endpoint(), reason=reason, detail=detail)


def _failed(job: Job, reason: str, error: Exception) -> ProblemError:
    return trouble(
        ProblemCode.DOWNLOAD_FAILED,
        job.model,
        host=endpoint(),
        reason=reason,
        detail=_words(error),
    )


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
