"""The command `tools`: servers that bring tools, and what was learned about tools, without a window.

Works on the data folder itself, so not while a window has it open: that has its own dialog for the same.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import shlex
import sys
from collections.abc import Callable
from typing import Any

from growbox_app.assistant import GrowBox
from growbox_app.mcp_client.values import ServerState, ServerStatus
from growbox_app.mcp_client.words import place_of, spec_of, status_words, trouble_words
from growbox_app.text import tr
from memory.values import ProjectId


def add_parser(commands: Any) -> None:
    """Adds the command to those of the command line."""
    tools = commands.add_parser("tools", help="servers that bring tools, and what was learned")
    wishes = tools.add_subparsers(dest="wish", required=True)
    wishes.add_parser("list", help="the servers and their tools")
    add = wishes.add_parser("add", help="set a server up")
    add.add_argument("name", help="small letters and digits")
    add.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="NAME",
        help="a variable (for a URL: a header) whose value is asked for, or read from standard input",
    )
    add.add_argument("place", nargs=argparse.REMAINDER, help="a URL, or a command with arguments")
    for name, words in (
        ("check", "start a server and ask what it offers"),
        ("remove", "forget it"),
    ):
        wishes.add_parser(name, help=words).add_argument("name")
    wishes.add_parser("memory", help="what was learned from calls")
    wishes.add_parser("forget", help="forget what was learned from calls")


async def run(options: argparse.Namespace, make: Callable[[], GrowBox]) -> int:
    """Does what was wished; 1 when it did not work."""
    assistant = make()
    try:
        await assistant.start(lambda _progress: None)
        return await _WISHES[options.wish](assistant, options)
    finally:
        await assistant.shutdown()


async def _list(assistant: GrowBox, _options: argparse.Namespace) -> int:
    servers = assistant.tools.servers()
    if not servers:
        _say(tr("cli.tools.none"))
    for status in servers:
        _say_server(status)
    return 0


async def _add(assistant: GrowBox, options: argparse.Namespace) -> int:
    words = options.place
    place = words[0] if len(words) == 1 else shlex.join(words)
    values = [f"{name}={await asyncio.to_thread(_secret, name)}" for name in options.secret]
    before = next((s.spec for s in assistant.tools.servers() if s.spec.name == options.name), None)
    spec, secrets = spec_of(options.name, place, "\n".join(values), before=before)
    await assistant.tools.save_server(spec, secrets)
    _say(tr("cli.tools.saved", name=spec.name))
    return await _check(assistant, options)


def _secret(name: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(tr("cli.tools.secret", name=name))
    return sys.stdin.readline().strip()


async def _check(assistant: GrowBox, options: argparse.Namespace) -> int:
    status = await assistant.tools.check_server(options.name)
    if status is None:
        _say(tr("cli.tools.unknown", name=options.name))
        return 1
    _say_server(status)
    return 0 if status.state is ServerState.READY else 1


async def _remove(assistant: GrowBox, options: argparse.Namespace) -> int:
    if all(status.spec.name != options.name for status in assistant.tools.servers()):
        _say(tr("cli.tools.unknown", name=options.name))
        return 1
    await assistant.tools.remove_server(options.name)
    _say(tr("cli.tools.removed", name=options.name))
    return 0


async def _memory(assistant: GrowBox, _options: argparse.Namespace) -> int:
    names = {project.id: project.name for project in await assistant.library.projects()}
    lessons = assistant.tools.remembered()
    if not lessons:
        _say(tr("lessons.none"))
    for item in lessons:
        _say(
            tr(
                "cli.tools.lesson",
                what=item.shape,
                project=names.get(item.project or ProjectId("")) or tr("lessons.elsewhere"),
                verdict=tr(f"lessons.{item.counsel}"),
                worked=item.worked,
                failed=item.failed,
                why=item.why,
            ).strip()
        )
    return 0


async def _forget(assistant: GrowBox, _options: argparse.Namespace) -> int:
    await assistant.tools.forget(None)
    _say(tr("cli.tools.forgotten"))
    return 0


_WISHES = {
    "list": _list,
    "add": _add,
    "check": _check,
    "remove": _remove,
    "memory": _memory,
    "forget": _forget,
}


def _say_server(status: ServerStatus) -> None:
    name, place = status.spec.name, place_of(status.spec)
    _say(tr("cli.tools.server", name=name, state=status_words(status), place=place))
    if status.state is ServerState.FAILED:
        _say(f"  {trouble_words(name, status.reason, status.detail)}")
    for tool in status.tools:
        _say(tr("cli.tools.tool", name=tool.name, description=tool.description))


def _say(line: str) -> None:
    print(line)  # noqa: T201
