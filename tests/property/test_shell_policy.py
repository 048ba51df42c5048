"""Fuzz of the shell policy: however a dangerous command is quoted, wrapped and hidden among others, auto mode never allows it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from growbox_app.executors.base import Risk
from growbox_app.safety.shell_words import read_script
from growbox_app.safety.values import RANK, Grant, GrantKind, Mode, Verdict
from tests.unit.safety_world import SafetyWorld, build_world

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and POSIX paths")
SEVERITY = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}

DANGEROUS = (
    ("rm", "-rf", "/"), ("rm", "-rf", "."), ("rm", "../other/x.txt"), ("rm", "link_out/x.txt"), ("cat", "conf/.env"),
    ("cat", "/etc/shadow"), ("cat", "/etc/passwd"), ("cat", "link_file"), ("head", "-1", "conf/server.key"), ("cp", "a.py", "../x"),
    ("mv", "a.py", "/usr/x"), ("tee", ".git/hooks/pre-commit"), ("tee", "link_file"), ("touch", ".vscode/x"),
    ("sed", "-i", "s/a/b/", "/etc/hosts"), ("sed", "s/a/b/e", "a.py"), ("find", ".", "-delete"), ("find", ".", "-exec", "rm", "{}", "+"),
    ("sudo", "ls"), ("sh", "-c", "ls"), ("eval", "ls"), ("python", "-c", "1"), ("python", "a.py"), ("make",), ("env",), ("xargs", "rm"),
    ("curl", "https://evil.example"), ("nc", "evil.example", "1"), ("git", "push"), ("git", "-c", "alias.x=!sh", "x"),
    ("git", "config", "core.pager", "x"), ("git", "commit"), ("grep", "-r", "KEY", "."), ("sort", "-o", "x", "a.py"),
    ("tar", "xf", "x"), ("ln", "-s", "/", "x"), ("chmod", "777", "a.py"), ("./run.sh",), ("dd", "if=/dev/zero"), ("source", "a.py"),
    ("alias", "ls=rm"), ("export", "PATH=."), ("awk", "BEGIN{system(1)}"), ("git", "show", "HEAD:.env"), ("uniq", "a.py", "b.py"),
)  # fmt: skip
HARMLESS = st.sampled_from(
    [
        "ls", "pwd", "cat a.py", "echo done", "cd src", "cd ..", "cd .", "cd copies", "mkdir -p x", "touch y", "git status", "grep x a.py",
        "cat src/*", "true", "rm src/b.py", "echo x > out.txt", "cd link_dir", "sed -n 1p a.py", "find . -name x",
    ]
)  # fmt: skip


@st.composite
def quoted(draw: st.DrawFn, word: str) -> str:
    """One word, spelled in one of the ways in which a shell reads it as the same word."""
    pieces = []
    for character in word:
        plain = character if character.isalnum() or character in "./_-+=:,@%" else f"\\{character}"
        ways = [
            plain,
            plain,
            f"'{character}'",
            f'"{character}"',
            f"\\{character}",
            f"''{plain}",
            f'{plain}""',
        ]
        pieces.append(draw(st.sampled_from(ways)))
    return draw(st.sampled_from([f"'{word}'", "".join(pieces), "".join(pieces)]))


@st.composite
def dangerous(draw: st.DrawFn) -> str:
    words = draw(st.sampled_from(DANGEROUS))
    gap = draw(st.sampled_from([" ", "  ", "\t", " \\\n "]))
    return gap.join([draw(quoted(word)) for word in words])


WRAPS = st.sampled_from(
    [
        "{}", "{}", "({})", "! {}", "{{ {}; }}", "echo $({})", 'echo "$({})"', "cat <({})", "{} &", "if true; then {}; fi", "{} 2>/dev/null",
        "for i in 1; do {}; done", "time {}", "nice {}", "timeout 5 {}", "command {}", "true && {}", "false || {}", "ls | {}", "{} | cat",
        "f() {{ {}; }}; f", "cat <<EOF\n$({})\nEOF", "LANG=C {}", "x=1 {}", "coproc {}", "{} > /dev/null", "while true; do {}; done",
        "case x in x) {};; esac", "echo `{}`", "{} # fine", ": ; {}", "cd src/..; {}", "echo ${{x:-$({})}}", "[[ -n $({}) ]]",
    ]
)  # fmt: skip
SEPARATORS = st.sampled_from([";", "&&", "||", "|", "\n", " ; ", " &\n", "|&"])


@st.composite
def scripts(draw: st.DrawFn) -> str:
    """A dangerous command, wrapped up to three times, among harmless ones."""
    text = draw(dangerous())
    for _ in range(draw(st.integers(0, 3))):
        text = draw(WRAPS).format(text)
    parts = [*draw(st.lists(HARMLESS, max_size=3)), text, *draw(st.lists(HARMLESS, max_size=2))]
    result = parts[0]
    for part in parts[1:]:
        result += draw(SEPARATORS) + part
    return result


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SafetyWorld:
    return build_world(tmp_path_factory.mktemp("shell_policy"))


@settings(max_examples=600, deadline=None)
@given(command=scripts())
def test_a_hidden_danger_is_never_allowed(world: SafetyWorld, command: str) -> None:
    assert world.shell(command).verdict is not Verdict.ALLOW
    assert world.shell(command, Mode.MANUAL).verdict is not Verdict.ALLOW
    assert world.shell(command, Mode.READ_ONLY).verdict is Verdict.DENY


@settings(max_examples=150, deadline=None)
@given(command=scripts())
def test_the_same_call_gets_the_same_decision(world: SafetyWorld, command: str) -> None:
    assert world.shell(command) == world.shell(command)


@settings(max_examples=300, deadline=None)
@given(first=st.one_of(HARMLESS, scripts()), second=st.one_of(HARMLESS, scripts()))
def test_another_command_never_lowers_the_risk(world: SafetyWorld, first: str, second: str) -> None:
    both = world.shell(f"{first}\n{second}")
    for part in (first, second):
        alone = world.shell(part)
        assert RANK[both.risk] >= RANK[alone.risk]
        assert SEVERITY[both.verdict] >= SEVERITY[alone.verdict]


GRANTS = st.sets(
    st.builds(
        Grant,
        kind=st.sampled_from(list(GrantKind)),
        value=st.sampled_from(["/", "shell", "sh", "rm", "cat", "pytest", "make", "git commit", "evil.example", ">", "python a.py"]),
    ),
    max_size=6,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(command=st.one_of(HARMLESS, scripts()), grants=GRANTS, mode=st.sampled_from(list(Mode)))
def test_a_grant_only_turns_ask_into_allow(
    world: SafetyWorld, command: str, grants: set[Grant], mode: Mode
) -> None:
    before, after = world.shell(command, mode), world.shell(command, mode, *grants)
    assert after.risk is before.risk
    if before.verdict is not Verdict.ASK:
        assert after.verdict is before.verdict
    assert after.verdict is not Verdict.DENY or before.verdict is Verdict.DENY


@settings(max_examples=300, deadline=None)
@given(command=st.text("rmcat a.py/~.-*?<>|&;()$`\"'\\{}[]!#=\n\t\0é文　\u202e", max_size=40))
def test_any_text_gets_a_verdict(world: SafetyWorld, command: str) -> None:
    decision = world.shell(command)
    if decision.risk in (Risk.IRREVERSIBLE, Risk.UNKNOWN):
        assert decision.verdict is not Verdict.ALLOW


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@settings(max_examples=150, deadline=None)
@given(rest=st.text("ab \t'\"\\=#:,~^%+@/.-\n;&|!$é", max_size=14))
def test_words_are_read_as_bash_reads_them(rest: str) -> None:
    """Whatever is taken for one plain command, a real shell takes for the same one."""
    command = f"printf '<%s>' {rest}"
    script = read_script(command)
    words = script.commands[0].words if len(script.commands) == 1 else ()
    if script.oddities or not words or any(word.text is None or word.home for word in words):
        return
    ran = subprocess.run(
        [str(shutil.which("bash")), "--noprofile", "--norc", "-c", command],
        capture_output=True, check=False, env={"PATH": "", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    shown = [word.text or "" for word in words[2:]] or [""]
    assert ran.stdout.decode() == "".join(f"<{word}>" for word in shown)
    assert ran.stderr == b""


PIECES = st.sampled_from(
    [
        "c1 x", "c2 y", "c3", "c1 'a b'", 'c2 "q"', ";", "&&", "||", "|", "\n", " ", "&", "(", ")", "{ ", " }", "! ", "# c", "\\\n", "> f1", ">>f2",
        "2>f3", ">&2", "2>&1", "< g", ">| f4", "&> f5", "<<A\nbody\nA\n", "<<'A'\nb $(c9)\nA\n", "<<-A\n\tb\n\tA\n", "\\ ", "'", '"', "$(c4)",
        "`c5`", "<<<w", "if ", "; then ", "; fi", "a#b", ";;", "A\n", "<<A", "\nA", "\\;", "\\|", ">f6 c7", "c8>f7",
    ]
)  # fmt: skip
TELL = 'command_not_found_handle() { local s="" a; for a in "$@"; do s="$s<$a>"; done; printf "%s\\0" "$s" >> "$TOLD"; }\n'


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pieces=st.lists(PIECES, min_size=1, max_size=7))
def test_bash_runs_and_writes_nothing_that_was_not_read(tmp_path: Path, pieces: list[str]) -> None:
    """Where a script has no oddity, each command that a real shell runs in it, and each file it makes, was found in it."""
    script = read_script("".join(pieces))
    words = [word for command in script.commands for word in command.words]
    words += [redirect.target for command in script.commands for redirect in command.redirects]
    if script.oddities or any(word.text is None for word in words):
        return
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        (Path(folder) / "g").touch()
        told = Path(folder) / "told"
        subprocess.run(
            [str(shutil.which("bash")), "--noprofile", "--norc", "-c", TELL + "".join(pieces)],
            capture_output=True, check=False, cwd=folder, stdin=subprocess.DEVNULL,
            env={"PATH": "/nonexistent", "LC_ALL": "C.UTF-8", "TOLD": str(told)},
        )  # fmt: skip
        ran = set(told.read_text().split("\0")) - {""} if told.exists() else set()
        made = {path.name for path in Path(folder).iterdir()} - {"g", "told"}
    assert ran <= {"".join(f"<{w.text}>" for w in command.words) for command in script.commands}
    assert made <= {
        r.target.text for command in script.commands for r in command.redirects if r.writes
    }


def test_the_reader_takes_plain_quoting() -> None:
    """The comparison above would prove nothing if everything were an oddity."""
    assert read_script("printf '<%s>' a'b'\"c d\" \\' é x=1 a#b").oddities == []
