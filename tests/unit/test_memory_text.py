"""Terms, questions and needles: what text is to the lexical index."""

from __future__ import annotations

import sqlite3

import pytest

from memory.recall.substring_scan import needles
from memory.text import (
    content_terms,
    coverage,
    folded,
    is_question,
    is_unspaced,
    match_expression,
    normalise,
    stem,
    storable,
    terms,
    title,
)


def test_chinese_becomes_uni_and_bigrams():
    assert terms("数据库") == ["数", "据", "库", "数据", "据库"]


def test_a_latin_word_inside_chinese_is_a_word():
    assert "watchdog" in terms("启动watchdog进程")


def test_kana_and_hangul_too():
    assert {"デー", "ータ", "한국"} <= set(terms("データ 한국"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName", ["getusername", "get", "user", "nam"]),
        ("get_user_name", ["get_user_name", "get", "user", "nam"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("py311", ["py311", "py", "311"]),
        ("localhost:8080", ["localhost", "8080"]),
        ("__init__", ["init"]),
    ],
)
def test_identifiers_keep_the_whole_and_the_parts(text, expected):
    assert terms(text) == expected


def test_full_width_is_the_same_as_half_width():
    assert terms("ＤｕｃｋＤＢ　８０８０") == terms("DuckDB 8080")


@pytest.mark.parametrize(
    "words",
    [("database", "databases"), ("like", "liked", "likes", "liking"), ("query", "queries")],
)
def test_forms_of_an_english_word_share_a_stem(words):
    assert len({stem(word) for word in words}) == 1


@pytest.mark.parametrize("word", ["class", "status", "this", "8080", "données"])
def test_what_is_no_plural_is_left_alone(word):
    assert stem(word).startswith(word[:4])


def test_question_words_and_their_bigrams_carry_nothing():
    assert content_terms("我喜欢哪个数据库？") == ["喜欢", "数据", "据库"]
    assert content_terms("Which database do I like best?") == ["databas", "lik", "best"]


@pytest.mark.parametrize("text", ["hello", "你好", "谢谢！", "who am I", "的", "->"])
def test_small_talk_has_no_content(text):
    assert content_terms(text) == []


@pytest.mark.parametrize("term", ['a"b', "AND", "NEAR(", "*", "own:", "- x", "'"])
def test_no_term_can_be_fts5_syntax(term):
    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE VIRTUAL TABLE t USING fts5(own)")
        database.execute("SELECT * FROM t WHERE t MATCH ?", (match_expression([term]),)).fetchall()
    finally:
        database.close()


def test_coverage_weighs_by_idf_and_gives_neighbours_part_credit():
    weights = {"rare": 3.0, "common": 1.0}
    assert coverage(weights, frozenset({"rare"})) == pytest.approx(0.75)
    assert coverage(weights, frozenset(), frozenset({"rare"}), 0.5) == pytest.approx(0.375)
    assert coverage({}, frozenset({"rare"})) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "Which database do I like best?",
        "我喜欢哪个数据库？",
        "你还记得吗",
        "what is my name",
        "什么时候发版",
        "Really? Why?",
    ],
)
def test_questions(text):
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "我最喜欢的数据库是 DuckDB，请记住",
        "My favourite database is DuckDB. Which one is yours?",
        "write quicksort",
        "",
        "Whatever happens, keep the tests green.",
        "如果端口被占用，就改用 8081。",
    ],
)
def test_statements_and_commands_are_no_questions(text):
    assert not is_question(text)


def test_scripts_without_spaces():
    assert is_unspaced("我最喜欢的数据库是 DuckDB")
    assert not is_unspaced("My favourite database is DuckDB")
    assert not is_unspaced("123 -> 456")


def test_lone_surrogates_are_replaced_and_nothing_else():
    assert storable("a\ud800b").encode("utf-8")
    assert storable("naïve 😀 数\x00") == "naïve 😀 数\x00"


def test_needles_are_the_whole_and_what_no_index_knows():
    assert needles("->", set(), 2) == ("->", ())
    assert needles("what does -> mean?", None, 2) == ("what does -> mean", ("->",))
    assert needles("where is uckdb kept", {"uckdb"}, 2)[1] == ("uckdb",)
    assert needles("?", set(), 2) == ("", ())


def test_half_words_are_not_searched_beside_known_words():
    assert needles("I once recommended it", None, 2)[1] == ()


def test_title_is_the_first_line_with_something_on_it():
    assert title("\n\n  hello \nworld") == "hello"
    assert title("x" * 100, 10) == "x" * 9 + "…"


def test_normalise_and_fold():
    assert normalise(" Ａ ") == "A"
    assert folded("ＤuckＤB") == "duckdb"
