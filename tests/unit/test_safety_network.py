"""Hosts and addresses: every way to spell this machine, its network and the cloud's metadata."""

from __future__ import annotations

import pytest

from growbox_app.safety.network import address_problem, host_of, host_problem


@pytest.mark.parametrize(
    "target",
    [
        "example.com", "https://example.com", "https://example.com:8443/x?y=http://localhost", "http://8.8.8.8",
        "http://[2606:4700::1111]/", "https://sub.domain.example.co.uk./", "https://例子.测试", "https://xn--fsqu00a.xn--0zwm56d",
        "EXAMPLE.COM", "https://example.com/@user", "https://my-host_1.example.org", "http://134744072/",
    ],
)  # fmt: skip
def test_the_user_may_allow(target: str) -> None:
    assert host_problem(target) is None


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("http://localhost", "local"), ("http://LOCALHOST:80", "local"), ("http://localhost.", "local"),
        ("http://foo.localhost", "local"), ("http://router", "local"), ("http://nas.local", "local"),
        ("http://metadata.google.internal/", "local"), ("http://db.internal", "local"), ("http://x.lan", "local"),
        ("http://127.0.0.1", "local"), ("http://127.1", "local"), ("http://127.0.1", "local"), ("http://2130706433", "local"),
        ("http://0x7f000001", "local"), ("http://0x7f.1", "local"), ("http://0177.0.0.1", "local"), ("http://017700000001", "local"),
        ("http://0", "local"), ("http://0.0.0.0", "local"), ("http://10.0.0.1", "local"), ("http://192.168.1.1", "local"),
        ("http://172.16.0.1", "local"), ("http://172.31.255.255", "local"), ("http://169.254.169.254", "local"),
        ("http://2852039166", "local"), ("http://0xa9fea9fe", "local"), ("http://100.100.100.200", "local"),
        ("http://168.63.129.16", "local"), ("http://224.0.0.1", "local"), ("http://255.255.255.255", "local"),
        ("http://192.0.0.192", "local"), ("http://198.18.0.1", "local"), ("http://240.0.0.1", "local"),
        ("http://[::1]", "local"), ("http://[::]", "local"), ("http://[::ffff:127.0.0.1]", "local"),
        ("http://[::ffff:7f00:1]", "local"), ("http://[::127.0.0.1]", "local"), ("http://[0:0:0:0:0:0:0:1]:80", "local"),
        ("http://[fe80::1]", "local"), ("http://[fe80::1%25eth0]", "local"), ("http://[fc00::1]", "local"),
        ("http://[fd00:ec2::254]", "local"), ("http://[64:ff9b::7f00:1]", "local"), ("http://[2002:7f00:1::]", "local"),
        ("http://[64:ff9b:1::1]", "local"), ("http://[ff02::1]", "local"), ("http://[2001:db8::1]", "local"),
        ("http://[fec0::1]", "local"), ("http://[::ffff:0:127.0.0.1]", "local"), ("http://[4000::1]", "local"), ("http://[3fff::1]", "local"),
        ("http://app.svc", "local"), ("http://fritz.box", "local"),
        ("http://１２７.０.０.１", "local"), ("http://127。0。0。1", "local"), ("http://127｡0．0.1", "local"), ("http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "local"),
        ("http://127.0.0.1.nip.io", "local"), ("http://localtest.me", "local"),
        ("http://user:pw@example.com", "credentials"), ("http://example.com@127.0.0.1", "credentials"),
        ("http://token@example.com/x", "credentials"),
        ("file:///etc/passwd", "scheme"), ("ftp://example.com", "scheme"), ("gopher://x.example", "scheme"),
        ("javascript://example.com", "scheme"),
        ("", "unreadable"), ("http://", "unreadable"), ("http://a b.example", "unreadable"), ("http://exa\\mple.com", "unreadable"),
        ("http://example.com\u202e", "unreadable"), ("http://1.2.3.4.5", "unreadable"), ("http://256.1.1.1", "unreadable"),
        ("http://08.1.1.1", "unreadable"), ("http://999999999999", "unreadable"), ("http://[::1", "unreadable"),
        ("http://example.com:99999", "unreadable"), ("http://-x.example", "unreadable"), ("http://exa mple.com", "unreadable"),
        ("http://example.com\t", "unreadable"), ("http://ex%61mple.com", "unreadable"),
    ],
)  # fmt: skip
def test_denied(target: str, problem: str) -> None:
    assert host_problem(target) == problem


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::"]
)
def test_public_addresses(address: str) -> None:
    assert address_problem(address) is None


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1%eth0", "::ffff:10.0.0.1", "fd00::1", "0.0.0.0", "localhost", "",
        "100.64.0.1", "192.0.2.1", "2001:0:5ef5:79fd:0:0:80ff:fffe", "8.8.8.8%x",
    ],
)  # fmt: skip
def test_addresses_after_look_up(address: str) -> None:
    """A public name that leads to one of these is not connected to."""
    assert address_problem(address) is not None


def test_the_host_is_read_as_a_browser_reads_it() -> None:
    assert host_of("https://Example.com:80/x") == "example.com"
    assert host_of("example.com:80") == "example.com"
    assert host_of("https://a@b@c.example/") == "c.example"
    assert host_of("https://exa\nmple.com") is None
