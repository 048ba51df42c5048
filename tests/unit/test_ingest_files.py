"""Finding files and reading them: what is taken, what is left out, and that each is said."""

from __future__ import annotations

import io
import os
import socket
import struct
import zipfile
import zlib
from pathlib import Path

import docx
import pytest
from pypdf import PdfWriter

from growbox_app.ingest import reading, walk
from growbox_app.ingest.decoding import NotText, decode
from growbox_app.ingest.ignoring import is_private
from growbox_app.ingest.reading import Unreadable, content_hash, read_bytes, text_of
from growbox_app.ingest.report import SkippedFile, SkipReason
from growbox_app.ingest.walk import FoundFile, Ignored, WholeFolder


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def names(*paths: Path, under: Path, **options: object) -> list[str]:
    found = walk.walk(paths, **options)
    return [
        item.path.relative_to(under).as_posix() for item in found if isinstance(item, FoundFile)
    ]


def skipped(*paths: Path) -> dict[str, SkipReason]:
    found = walk.walk(paths)
    return {Path(i.path).name: i.reason for i in found if isinstance(i, SkippedFile)}


# --- which files


def test_a_folder_is_walked_in_order_and_each_file_once(tmp_path):
    put(tmp_path, {"b.txt": "b", "a/z.md": "z", "a/中文.py": "x", "c.txt": "c"})
    expected = ["b.txt", "c.txt", "a/z.md", "a/中文.py"]
    assert names(tmp_path, under=tmp_path) == expected
    assert names(tmp_path, tmp_path / "a", tmp_path / "b.txt", under=tmp_path) == expected
    whole = [i.uri for i in walk.walk([tmp_path]) if isinstance(i, WholeFolder)]
    assert whole == [str(tmp_path)]


def test_gitignore_is_honoured_as_git_reads_it(tmp_path):
    put(
        tmp_path,
        {
            ".gitignore": "*.log\n!keep.log\nbuild/\n/top.txt\n[z-a]\n\\\n# note\n日志*\n",
            "a.log": "",
            "keep.log": "k",
            "build/out.txt": "o",
            "top.txt": "t",
            "sub/top.txt": "t",
            "sub/.gitignore": "!a.log\nsecret.txt\n",
            "sub/a.log": "yes",
            "sub/secret.txt": "no",
            "日志.txt": "no",
            "sub/build": "a file of this name",
        },
    )
    found = names(tmp_path, under=tmp_path)
    assert [n for n in found if ".gitignore" not in n] == [
        "keep.log",
        "sub/a.log",
        "sub/build",
        "sub/top.txt",
    ]


def test_rules_of_the_repository_hold_in_its_folders(tmp_path):
    put(
        tmp_path,
        {
            ".git/info/exclude": "private.txt\n",
            ".gitignore": "*.tmp\n",
            "src/deep/a.tmp": "x",
            "src/deep/private.txt": "x",
            "src/deep/a.txt": "x",
        },
    )
    assert names(tmp_path / "src" / "deep", under=tmp_path) == ["src/deep/a.txt"]
    ignored = [i for i in walk.walk([tmp_path]) if isinstance(i, Ignored)]
    assert len(ignored) == 3  # .git as one


def test_a_file_that_is_named_is_taken_whatever_the_rules_say(tmp_path):
    put(tmp_path, {".gitignore": "*\n", ".env": "KEY=1", "node_modules/a.js": "x"})
    assert names(tmp_path / ".env", under=tmp_path) == [".env"]
    assert names(tmp_path, under=tmp_path) == []


@pytest.mark.parametrize("name", [".env", ".env.local", "id_rsa", "Server.PEM", "a.key"])
def test_secrets_are_never_taken_along(tmp_path, name):
    put(tmp_path, {name: "secret"})
    assert is_private(name)
    assert skipped(tmp_path) == {name: SkipReason.PRIVATE}


@pytest.mark.skipif(os.name == "nt", reason="needs links and special files")
def test_links_loops_and_special_files_are_said_and_not_followed(tmp_path):
    root = tmp_path / "root"
    put(root, {"real.txt": "r"})
    put(tmp_path, {"outside/secret.txt": "s"})
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "away").symlink_to(tmp_path / "outside")
    (root / "file").symlink_to(root / "real.txt")
    (root / "dangling").symlink_to(root / "nothing")
    os.mkfifo(root / "pipe")
    server = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(root)  # the name of a socket is short
    try:
        server.bind("socket")
    finally:
        os.chdir(here)
        server.close()
    assert names(root, under=root) == ["real.txt"]
    assert skipped(root) == {
        **dict.fromkeys(("loop", "away", "file", "dangling"), SkipReason.LINK),
        **dict.fromkeys(("pipe", "socket"), SkipReason.SPECIAL),
    }


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_a_linked_folder_that_is_named_is_its_target(tmp_path):
    put(tmp_path, {"real/a.txt": "a"})
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert names(tmp_path / "link", under=tmp_path) == ["real/a.txt"]
    (tmp_path / "round").symlink_to(tmp_path / "round")
    assert skipped(tmp_path / "round") in (
        {"round": SkipReason.SPECIAL},
        {"round": SkipReason.MISSING},
    )


def test_what_is_not_there_is_said(tmp_path):
    assert skipped(tmp_path / "none.txt", Path("a\0b")) == {
        "none.txt": SkipReason.MISSING,
        "a\0b": SkipReason.MISSING,
    }


def test_our_own_folders_are_never_entered(tmp_path):
    put(tmp_path, {"data/timeline.db": "x", "a.txt": "a"})
    assert names(tmp_path, under=tmp_path, excluded=[tmp_path / "data"]) == ["a.txt"]


def test_a_whole_disk_is_a_mistake(tmp_path, monkeypatch):
    monkeypatch.setattr(walk, "FILES_MAX", 3)
    put(tmp_path, {f"{n}.txt": "x" for n in range(5)})
    found = list(walk.walk([tmp_path]))
    assert [i.reason for i in found if isinstance(i, SkippedFile)] == [SkipReason.TOO_MANY]
    assert sum(isinstance(i, FoundFile) for i in found) == 3
    assert not any(isinstance(i, WholeFolder) for i in found)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_folder_is_said_and_the_folder_is_not_whole(tmp_path):
    put(tmp_path, {"closed/a.txt": "a"})
    (tmp_path / "closed").chmod(0)
    try:
        assert skipped(tmp_path) == {"closed": SkipReason.UNREADABLE}
        assert not any(isinstance(i, WholeFolder) for i in walk.walk([tmp_path]))
    finally:
        (tmp_path / "closed").chmod(0o700)


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="names are bytes")
def test_a_name_that_is_no_text_gets_one(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_text("x")
    (found, _) = walk.walk([tmp_path])
    assert found.uri.endswith("caf\\xe9.txt")
    assert read_bytes(found.path) == b"x"


# --- bytes to text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        ("中文".encode(), "中文"),
        (b"\xef\xbb\xbfmark", "mark"),
        ("宽".encode("utf-16"), "宽"),
        (b"\xfe\xff" + "宽".encode("utf-16-be"), "宽"),
        ("宽".encode("utf-32"), "宽"),
        (
            "这是一个用国标编码的文件，里面有标点。".encode("gb18030"),
            "这是一个用国标编码的文件，里面有标点。",
        ),
        ("Café à la crème, déjà vu".encode("cp1252"), "Café à la crème, déjà vu"),
        ("naïve “quotes” – dash".encode("cp1252"), "naïve “quotes” – dash"),
        (b"a\r\nb\rc\n", "a\r\nb\rc\n"),
        (b"", ""),
    ],
)
def test_text_is_decoded_and_nothing_else_changes(data, text):
    assert decode(data) == text


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", True),
        (b"text" * 4000 + b"\0", True),
        (bytes(range(1, 256)) * 20, True),
        (b"\xff\xfea", False),
        (b"\xff\xfe\x00\xd8", False),
    ],
)
def test_what_is_no_text_is_said(data, binary):
    with pytest.raises(NotText) as caught:
        decode(data)
    assert caught.value.binary is binary


# --- files to text


def pdf(*pages: str) -> bytes:
    """A small PDF with a page for each text."""
    return pdf_of(*(f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode() for text in pages))


def pdf_of(*pages: bytes, coding: bytes = b"") -> bytes:
    """A PDF with a page for each content stream."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>"]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects.append(f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode())
    objects.append(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    for n, stream in enumerate(pages):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 3 0 R>>>>/MediaBox[0 0 200 200]"
            b"/Contents %d 0 R>>" % (5 + 2 * n)
        )
        objects.append(b"<</Length %d%s>>stream\n%s\nendstream" % (len(stream), coding, stream))
    out, places = io.BytesIO(b"%PDF-1.4\n"), []
    out.seek(0, io.SEEK_END)
    for number, body in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start))
    return out.getvalue()


def word(*, style: str = "Heading 2") -> bytes:
    document = docx.Document()
    document.add_heading("The Title", 0)
    document.add_paragraph("第一段。")
    document.add_paragraph("Part", style=style)
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "left", "right\nbelow"
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_a_pdf_is_its_pages():
    assert text_of(pdf("Page one", "Page two"), "x.pdf").split() == ["Page", "one", "Page", "two"]
    assert text_of(pdf("By its first bytes"), "no-suffix") == "By its first bytes"


def test_a_word_document_is_its_paragraphs_headings_and_tables():
    assert text_of(word(), "x.docx") == ("# The Title\n\n第一段。\n\n## Part\n\nleft | right below")


def refused(data: bytes, name: str) -> SkipReason:
    with pytest.raises(Unreadable) as caught:
        text_of(data, name)
    return caught.value.reason


def encrypted(algorithm: str) -> bytes:
    writer = PdfWriter(io.BytesIO(pdf("secret")))
    writer.encrypt("password", algorithm=algorithm)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_pdf_with_a_password_is_said():
    assert refused(encrypted("RC4-128"), "x.pdf") is SkipReason.ENCRYPTED


def test_a_pdf_without_words_is_said():
    assert refused(pdf(""), "scan.pdf") is SkipReason.NO_TEXT
    assert refused(b" \n\t", "x.txt") is SkipReason.NO_TEXT


def zipped(parts: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"%PDF-1.4 nothing follows", "x.pdf"),
        (pdf("cut off")[:150], "x.pdf"),
        (b"no zip at all", "x.docx"),
        (zipped({"a.txt": b"a zip of something else"}), "x.docx"),
        (word()[:2000], "x.docx"),
        (zipped({"[Content_Types].xml": b"<broken", "word/document.xml": b""}), "x.docx"),
    ],
)
def test_damaged_books_are_said(data, name):
    assert refused(data, name) in (SkipReason.DAMAGED, SkipReason.NO_TEXT)


def test_a_word_document_with_a_password_is_said():
    assert refused(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "x.docx") is (
        SkipReason.ENCRYPTED
    )


def test_a_zip_bomb_is_not_unfolded(monkeypatch):
    monkeypatch.setattr(reading, "UNFOLDED_BYTES_MAX", 1_000_000)
    bomb = zipped({"word/document.xml": b"<a>" + b" " * 2_000_000})
    assert len(bomb) < 10_000
    assert refused(bomb, "x.docx") is SkipReason.TOO_LARGE


def test_a_zip_that_lies_about_its_size_is_damaged():
    data = bytearray(word())
    at = data.find(b"PK\x01\x02")
    while at >= 0:  # every part claims to be 40 bytes
        struct.pack_into("<I", data, at + 24, 40)
        at = data.find(b"PK\x01\x02", at + 4)
    assert refused(bytes(data), "x.docx") is SkipReason.DAMAGED


def test_a_pdf_bomb_is_not_unfolded():
    """200 MB of white space in 200 KB: pypdf stops at a limit of its own, which this test holds it to."""
    fold = zlib.compressobj(9)
    stream = b"".join(fold.compress(b" " * 10_000_000) for _ in range(20)) + fold.flush()
    bomb = pdf_of(stream, coding=b"/Filter/FlateDecode")
    assert len(bomb) < 1_000_000
    assert refused(bomb, "x.pdf") is SkipReason.DAMAGED


def test_no_more_is_read_than_a_kind_may_have(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "TEXT_BYTES_MAX", 10)
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 11)
    with pytest.raises(Unreadable) as caught:
        read_bytes(path)
    assert caught.value.reason is SkipReason.TOO_LARGE
    book = tmp_path / "a.pdf"
    book.write_bytes(b"x" * 11)
    assert len(read_bytes(book)) == 11


def test_a_huge_file_is_left_out_without_reading_it(tmp_path):
    path = tmp_path / "huge.txt"
    with path.open("wb") as stream:
        stream.truncate(1 << 30)
    with pytest.raises(Unreadable) as caught:
        read_bytes(path)
    assert caught.value.reason is SkipReason.TOO_LARGE


@pytest.mark.parametrize("name", ["gone.txt", "."])
def test_a_file_that_cannot_be_read_is_said(tmp_path, name):
    with pytest.raises(Unreadable):
        read_bytes(tmp_path / name)


def test_equal_bytes_have_equal_hashes():
    assert content_hash(b"a") == content_hash(b"a") != content_hash(b"b")
