"""The audit log: what was decided can be read back, no secret is in it, and it never grows without bound."""

from __future__ import annotations

import sys

import pytest

from growbox_app.audit_log import HIDDEN, AuditLog, Decided, redacted
from tests.fakes.clock import FakeClock


def decided(**fields):
    known = {
        "executor": "shell",
        "targets": ("/p/a.txt",),
        "verdict": "ask",
        "reason": "writes",
        "by": "user",
        "allowed": True,
        "mode": "manual",
    }
    return Decided(**(known | fields))


def test_decisions_come_back_newest_first(tmp_path):
    log = AuditLog(tmp_path, FakeClock())
    for name in ("file_read", "shell", "file_edit"):
        log.append(decided(executor=name, command="ls -l 文件"))
    recent = AuditLog(tmp_path, FakeClock()).recent(2)
    assert [entry.executor for entry in recent] == ["file_edit", "shell"]
    assert recent[0].at_ms > recent[1].at_ms > 0
    assert recent[0].command == "ls -l 文件"
    assert (recent[0].verdict, recent[0].by, recent[0].mode) == ("ask", "user", "manual")
    assert AuditLog(tmp_path / "other", FakeClock()).recent(5) == ()


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("curl https://bob:hunter2!x@example.org/a", "hunter2!x"),
        ("postgres://app:p%40ss@db/x", "p%40ss"),
        ("export API_KEY=abc123", "abc123"),
        ("MY_SECRET_TOKEN='two words' run", "two words"),
        ('{"password": "p w"}', "p w"),
        ("mysql --password hunter2 -u root", "hunter2"),
        ("mysql --password=hunter2 -u root", "hunter2"),
        ("curl -H 'Authorization: Bearer abcdef123456'", "abcdef123456"),
        ("curl -H 'Authorization: Basic Ym9iOng='", "Ym9iOng="),
        ("echo sk-proj-abcdefghijklmnop1234", "sk-proj-abcdefghijklmnop1234"),
        ("echo ghp_abcdefghijklmnopqrstuvwxyz012345", "ghp_abcdefghijklmnopqrstuvwxyz012345"),
        ("echo AKIAABCDEFGHIJKLMNOP", "AKIAABCDEFGHIJKLMNOP"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "eyJzdWIiOiIx"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----", "MIIabc"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn", "b3Blbn"),
    ],
)
def test_secrets_are_hidden(tmp_path, text, secret):
    assert secret in text
    log = AuditLog(tmp_path, FakeClock())
    log.append(decided(command=text, targets=(text,)))
    assert secret not in (tmp_path / "logs" / "audit.jsonl").read_text(encoding="utf-8")
    assert HIDDEN in log.recent(1)[0].command


@pytest.mark.parametrize(
    "text",
    [
        "/home/me/tokenizer.py",
        "https://example.org:8080/a?b=c",
        "git commit -m 'add key handling'",
        "/p/password_reset.py",
        "C:\\project\\secret garden.txt",
        "user@example.org",
    ],
)
def test_ordinary_text_stays(text):
    assert redacted(text) == text


def test_a_torn_last_line_costs_only_itself(tmp_path):
    log = AuditLog(tmp_path, FakeClock())
    log.append(decided(executor="one"))
    log.append(decided(executor="two"))
    path = tmp_path / "logs" / "audit.jsonl"
    path.write_bytes(path.read_bytes()[:-7])
    assert [entry.executor for entry in log.recent(9)] == ["one"]
    log.append(decided(executor="three"))
    assert [entry.executor for entry in log.recent(9)] == ["three", "one"]


def test_it_rotates_and_is_bounded(tmp_path):
    log = AuditLog(tmp_path, FakeClock(), bytes_max=2000, files=3)
    for number in range(200):
        log.append(decided(executor=str(number)))
    files = list((tmp_path / "logs").iterdir())
    assert sorted(path.name for path in files) == ["audit.1.jsonl", "audit.2.jsonl", "audit.jsonl"]
    assert all(path.stat().st_size <= 2000 for path in files)
    recent = log.recent(1000)
    assert [entry.executor for entry in recent[:12]] == [str(199 - n) for n in range(12)]
    assert len(recent) > 12
    single = AuditLog(tmp_path / "single", FakeClock(), bytes_max=500, files=1)
    for number in range(20):
        single.append(decided(executor=str(number)))
    assert single.recent(1)[0].executor == "19"


def test_long_and_odd_targets_are_cut_and_kept_readable(tmp_path):
    log = AuditLog(tmp_path, FakeClock())
    log.append(decided(targets=("x" * 10_000, "caf\udce9", *("t",) * 100)))
    targets = log.recent(1)[0].targets
    assert len(targets[0]) == 4000
    assert targets[1] == "caf\\xed\\xb3\\xa9"
    assert targets[-1] == "… +52"


def test_it_is_private(tmp_path):
    AuditLog(tmp_path, FakeClock()).append(decided())
    path = tmp_path / "logs" / "audit.jsonl"
    assert sys.platform == "win32" or path.stat().st_mode & 0o777 == 0o600
