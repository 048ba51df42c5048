"""The grammar of a call, as llama.cpp understands it: what it lets through can be read, and only what is narrowed to gets through."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from growbox_app.agent import drafts
from growbox_app.agent.drafts import Draft
from growbox_app.agent.guide import echoes
from growbox_app.agent.protocol import parse_tool_call
from growbox_app.executors.answer_grammar import answer_grammar
from growbox_app.executors.base import Executor
from growbox_app.executors.call_grammar import (
    FEW_LINES,
    Narrowing,
    Passages,
    call_grammar,
)
from growbox_app.executors.code_search import CodeSearch
from growbox_app.executors.file_edit import FileEdit
from growbox_app.executors.file_read import FileRead
from growbox_app.executors.finish import Finish
from tests.real_models import LIGHT

EXECUTORS: dict[str, Executor] = {
    executor.name: executor for executor in (CodeSearch(), FileEdit(), FileRead(), Finish())
}
LINES = ("[数据库]", "  timeout = 12", "", "pool = 8")


@pytest.fixture(scope="module")
def vocabulary() -> Iterator[Any]:
    """The light model's vocabulary; no weights are read."""
    import llama_cpp

    llama_cpp.llama_backend_init()
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(LIGHT).encode(), parameters)
    assert model
    yield llama_cpp.llama_model_get_vocab(model)
    llama_cpp.llama_model_free(model)


def accepts(vocabulary: Any, grammar: str, text: str) -> bool:
    """Whether a whole answer is let through, token by token, and may end there."""
    import ctypes

    import llama_cpp as llama

    sampler = llama.llama_sampler_init_grammar(vocabulary, grammar.encode(), b"root")
    assert sampler, grammar
    ids = (ctypes.c_int32 * 2048)()
    raw = text.encode()
    count = llama.llama_tokenize(vocabulary, raw, len(raw), ids, 2048, False, True)
    try:
        for token in [*ids[:count], llama.llama_vocab_eos(vocabulary)]:
            row = (llama.llama_token_data * 1)(llama.llama_token_data(token, 1.0, 0.0))
            found = llama.llama_token_data_array(data=row, size=1, selected=-1, sorted=False)
            llama.llama_sampler_apply(sampler, ctypes.byref(found))
            if row[0].logit == float("-inf"):
                return False
            llama.llama_sampler_accept(sampler, token)
        return True
    finally:
        llama.llama_sampler_free(sampler)


def slowest(vocabulary: Any, grammar: str, text: str) -> float:
    """Seconds of the longest choice among all tokens on the way through a text."""
    import ctypes

    import llama_cpp as llama

    sampler = llama.llama_sampler_init_grammar(vocabulary, grammar.encode(), b"root")
    size = llama.llama_vocab_n_tokens(vocabulary)
    ids = (ctypes.c_int32 * 2048)()
    raw = text.encode()
    count = llama.llama_tokenize(vocabulary, raw, len(raw), ids, 2048, False, True)
    rows = np.zeros(size, dtype=[("id", np.int32), ("logit", np.float32), ("p", np.float32)])
    rows["id"] = np.arange(size)
    worst = 0.0
    try:
        for token in ids[:count]:
            rows["logit"] = 1.0
            data = rows.ctypes.data_as(ctypes.POINTER(llama.llama_token_data))
            found = llama.llama_token_data_array(data=data, size=size, selected=-1, sorted=False)
            begun = time.monotonic()
            llama.llama_sampler_apply(sampler, ctypes.byref(found))
            worst = max(worst, time.monotonic() - begun)
            llama.llama_sampler_accept(sampler, token)
        return worst
    finally:
        llama.llama_sampler_free(sampler)


def call(name: str, before: str = "", **arguments: object) -> str:
    wish = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"{before}<tool_call>{wish}</tool_call>"


@pytest.mark.model
class TestGrammar:
    """Against the real vocabulary."""

    def test_a_call_needs_a_thought_only_where_it_must_come(self, vocabulary: Any) -> None:
        must = call_grammar(EXECUTORS, Narrowing(must_call=True))
        may = call_grammar(EXECUTORS, Narrowing())
        bare, thought = call("file_read", path="a"), call("file_read", "I look.\n", path="a")
        assert accepts(vocabulary, may, bare)
        assert accepts(vocabulary, must, thought)
        assert not accepts(vocabulary, must, bare)
        assert not accepts(vocabulary, must, "I am done.")

    def test_an_opening_is_how_the_thought_begins(self, vocabulary: Any) -> None:
        grammar = call_grammar(EXECUTORS, Narrowing(must_call=True, opening="错误在于"))
        assert accepts(vocabulary, grammar, call("file_read", "错误在于除法。\n", path="a"))
        assert not accepts(vocabulary, grammar, call("file_read", "看看。\n", path="a"))

    def test_only_tools_in_view_can_be_called(self, vocabulary: Any) -> None:
        grammar = call_grammar(EXECUTORS, Narrowing(tools=frozenset({"file_read"})))
        assert accepts(vocabulary, grammar, call("file_read", path="a"))
        assert not accepts(vocabulary, grammar, call("finish", summary="done"))
        assert call_grammar(EXECUTORS, Narrowing(tools=frozenset())) == ""

    def test_only_files_that_exist_can_be_named(self, vocabulary: Any) -> None:
        grammar = call_grammar(EXECUTORS, Narrowing(paths={"file_read": ("目录/a b.py",)}))
        assert accepts(vocabulary, grammar, call("file_read", path="目录/a b.py"))
        assert accepts(vocabulary, grammar, call("file_read", path="目录/a b.py", first=3))
        assert not accepts(vocabulary, grammar, call("file_read", path="b.py"))
        assert accepts(vocabulary, grammar, call("code_search", pattern="x", path="b.py"))

    def test_only_optional_parameters_that_help_are_offered(self, vocabulary: Any) -> None:
        narrowed = Narrowing(optional=frozenset({"path"}), fixed={"every": "true"})
        grammar = call_grammar(EXECUTORS, narrowed)
        assert accepts(vocabulary, grammar, call("code_search", pattern="x", path="a"))
        assert not accepts(vocabulary, grammar, call("code_search", pattern="x", regex=True))
        assert accepts(
            vocabulary, grammar, call("file_edit", path="a", old="x", new="y", every=True)
        )
        assert not accepts(vocabulary, grammar, call("file_edit", path="a", old="x", new="y"))

    def test_only_lines_of_the_file_can_be_replaced(self, vocabulary: Any) -> None:
        passages = Passages(lines=LINES, starts=(0, 1, 3))
        narrowed = Narrowing(
            paths={"file_edit": ("a.ini",)}, passages={"a.ini": passages}, optional=frozenset()
        )
        grammar = call_grammar(EXECUTORS, narrowed)
        for old in ("[数据库]", "  timeout = 12", "timeout = 12"):
            text = call("file_edit", path="a.ini", old=old, new="x\ny")
            assert accepts(vocabulary, grammar, text), old
            found = parse_tool_call(text, EXECUTORS.keys())
            assert found is not None
            assert found.arguments["old"] == old
        for old in ("timeout", "timeout = 13", "pool = 8\n[数据库]", ""):
            text = call("file_edit", path="a.ini", old=old, new="x")
            assert not accepts(vocabulary, grammar, text), old

    def test_a_line_becomes_something_else(self, vocabulary: Any) -> None:
        line = '    return "[a]\\t" + b^2 - c'
        passages = Passages(lines=(line,), starts=(0,))
        narrowed = Narrowing(paths={"file_edit": ("a.py",)}, passages={"a.py": passages})
        grammar = call_grammar(EXECUTORS, narrowed)

        def change(old: str, new: str) -> bool:
            return accepts(vocabulary, grammar, call("file_edit", path="a.py", old=old, new=new))

        bare = line.strip()
        for new in (bare + "1", bare[:-1], "x", bare.replace("\\t", "\\n")):
            assert change(bare, new), new
            assert change(line, new), new
        for new in (f"{line}\n#", f"  {bare}", f"      {bare}", bare):
            assert change(line, new), new
        assert not change(line, line)
        assert not change(line, f"{line} \n")
        assert not change(bare, bare)
        assert not change(bare, line)

    def test_a_setting_keeps_its_key(self, vocabulary: Any) -> None:
        passages = Passages(lines=LINES, starts=(0, 1, 3), keeps_keys=True)
        narrowed = Narrowing(paths={"file_edit": ("a.ini",)}, passages={"a.ini": passages})
        grammar = call_grammar(EXECUTORS, narrowed)

        def change(old: str, new: str) -> bool:
            return accepts(vocabulary, grammar, call("file_edit", path="a.ini", old=old, new=new))

        assert change("pool = 8", "pool = 16")
        assert change("  timeout = 12", "  timeout = 45")
        assert not change("pool = 8", "timeout = 45")
        assert change("[数据库]", "[缓存]")

    def test_what_was_tried_is_not_written_again(self, vocabulary: Any) -> None:
        passages = Passages(
            lines=LINES, starts=(1, 3), keeps_keys=True, tried={"pool = 8": ("pool = 16", "x")}
        )
        narrowed = Narrowing(
            paths={"file_edit": ("a.ini",)},
            passages={"a.ini": passages},
            tried={"code_search": {"pattern": ("port", "porter", "端口")}},
            optional=frozenset({"path"}),
        )
        grammar = call_grammar(EXECUTORS, narrowed)

        def change(old: str, new: str) -> bool:
            return accepts(vocabulary, grammar, call("file_edit", path="a.ini", old=old, new=new))

        assert change("pool = 8", "pool = 1")
        assert change("pool = 8", "pool = 160")
        for new in ("pool = 16", "pool = 16 ", "pool = 8", "pool = "):
            assert not change("pool = 8", new), new
        assert change("  timeout = 12", "  timeout = 16")
        for pattern in ("porte", "porters", "por", "Port", "端", "端口号", 'port"'):
            assert accepts(vocabulary, grammar, call("code_search", pattern=pattern)), pattern
            assert accepts(vocabulary, grammar, call("code_search", pattern=pattern, path="a"))
        for pattern in ("port", "porter", "端口", "porter "):
            assert not accepts(vocabulary, grammar, call("code_search", pattern=pattern)), pattern

    def test_a_text_begins_as_it_must_and_still_is_none_that_was_tried(
        self, vocabulary: Any
    ) -> None:
        narrowed = Narrowing(
            begins={"code_search": {"pattern": 'def "a'}},
            tried={"code_search": {"pattern": ('def "ab', "c")}},
        )
        grammar = call_grammar(EXECUTORS, narrowed)
        assert accepts(vocabulary, grammar, call("code_search", pattern='def "ac'))
        assert not accepts(vocabulary, grammar, call("code_search", pattern='def "ab'))
        assert not accepts(vocabulary, grammar, call("code_search", pattern='def "abc'))
        assert not accepts(vocabulary, grammar, call("code_search", pattern="c"))

    def test_a_text_that_begins_in_a_block_stays_in_it_and_is_whole(self, vocabulary: Any) -> None:
        opening = "def f(a):\n    "
        narrowed = Narrowing(
            begins={"file_edit": {"new": opening}}, tried={"file_edit": {"new": (opening + "x",)}}
        )
        grammar = call_grammar(EXECUTORS, narrowed)

        def written(rest: str) -> bool:
            text = call("file_edit", path="a.py", old="x", new=opening + rest)
            return accepts(vocabulary, grammar, text)

        for rest in ("return a", 'return "一"', "b = a\n\n    return b\n", "if a:\n        b()"):
            assert written(rest), rest
        for rest in (
            "\nreturn a",
            "b = a\nreturn b",
            "y\n\nf(1)",
            "return (",
            "if a:",
            "f(a,",
            "x",
        ):
            assert not written(rest), rest

    def test_a_short_text_in_a_block_has_a_few_lines(self, vocabulary: Any) -> None:
        opening = "class T:\n    def test(self):\n        self.assert"
        narrowed = Narrowing(begins={"file_edit": {"new": opening}}, few_lines=True)
        grammar = call_grammar(EXECUTORS, narrowed)

        def written(rest: str) -> bool:
            text = call("file_edit", path="a.py", old="x", new=opening + rest)
            return accepts(vocabulary, grammar, text)

        more = "\n        self.assertEqual(f(1), '一')"
        assert written("True(f(2))")
        assert written("True(f(2))  # two" + more * FEW_LINES + "\n")
        assert written("Equal(f([1, {'a': 'b'}]) <= 2, a < b)" + more)
        assert not written("True(f(2))" + more * (FEW_LINES + 1))
        for rest in (
            "Equal(\n            f(2), 2)",
            "True(f(2)",
            "True(f(2))\n\n\nclass U:",
            "True(f(2))\nx = 1",
            "Equal('a",
        ):
            assert not written(rest), rest

    def test_a_draft_is_the_function_that_was_asked_for(self, vocabulary: Any) -> None:
        code = '    def size(self):\n        """Its `size`."""\n        return 1'
        draft = Draft(path="a.py", code=code, begins=code.removesuffix("return 1"), checks=())
        grammar = drafts.grammar(draft)

        def written(code: str) -> bool:
            return accepts(vocabulary, grammar, f"```python\n{code}\n```")

        head = 'def size(self):\n    """Its `size`."""\n    '
        assert written(head + "return 2")
        assert written(head + "x = '大小'\n\n    for y in x:\n        z(y)\n    return x")
        for wrong in (
            "def other(self):\n    return 2",
            head + "return 2\n\nprint(1)",
            head + "return `2`",
            head,
        ):
            assert not written(wrong), wrong

    def test_code_is_whole_in_its_strings_and_brackets(self, vocabulary: Any) -> None:
        opening, tried = "import csv\n\n", "x = 1\ny"
        narrowed = Narrowing(
            begins={"file_edit": {"new": opening}},
            tried={"file_edit": {"new": (opening + tried, opening + "print('a')")}},
        )
        grammar = call_grammar(EXECUTORS, narrowed)

        def written(rest: str) -> bool:
            text = call("file_edit", path="a.py", old="x", new=opening + rest)
            return accepts(vocabulary, grammar, text)

        for rest in (
            "with open(\"数据.csv\") as file:\n    for row in file:\n        print(f'{row}\\n')\n",
            '"""Doc\'s (first) line.\n\nMore "here".\n"""\nx = {\n    "a": [1, 2],\n}\n',
            "# it's a comment (\ny = a < b and c <d and e<total\n\n\n\nz = ''",
            "a = '\\\\' + \"\\\\\" + '\\'' + r'\\d'\n",
            "print(\n    f(1),\n    [2],  # two\n)\n",
            "print('b')\nx = (1)",
            "x = 2",
            "y = ')'",
        ):
            assert written(rest), rest
        for rest in (
            "y = 'a\n'",
            'y = "a',
            "y = (1",
            "y = [1)",
            "y = f(g(1)\nz = 2",
            "y = 1)",
            "y = {'a': 1",
            "x = 1",
            "print('a')\nx",
        ):
            assert not written(rest), rest

    def test_all_tokens_are_put_to_a_grammar_in_little_time(self, vocabulary: Any) -> None:
        """Where a text can be read in two ways from one character to the next, a long token takes for ever."""
        opening = "def f(a):\n    "
        body = (
            "return a.upper() + '!'  # (it's)\n    # c\n    x = [\"1\", f(a)]\n    return x < a\n"
        )
        narrowed = Narrowing(
            begins={"file_edit": {"new": opening}},
            tried={"file_edit": {"new": (opening + "return 1\n",)}},
        )
        text = call("file_edit", path="a.py", old="x", new=opening + body)
        said = "Done: it works. 好的，`x` 是 3.5。\n\n- a\n# b <i>c</i>... 1. 2.\n"
        plain = slowest(vocabulary, call_grammar(EXECUTORS, Narrowing()), text)
        assert slowest(vocabulary, call_grammar(EXECUTORS, narrowed), text) < 40 * plain
        assert slowest(vocabulary, answer_grammar("Done:", echoes("zh", "done")), said) < 40 * plain

    def test_what_an_indented_line_becomes_stays_in_its_block(self, vocabulary: Any) -> None:
        passages = Passages(lines=("def f():", "    return 1"), starts=(0, 1), in_block=True)
        narrowed = Narrowing(paths={"file_edit": ("a.py",)}, passages={"a.py": passages})
        grammar = call_grammar(EXECUTORS, narrowed)

        def change(old: str, new: str) -> bool:
            return accepts(vocabulary, grammar, call("file_edit", path="a.py", old=old, new=new))

        for new in ("return 2", "x = (\n        1)\n    return x", "if x:"):
            assert change("return 1", new), new
            assert change("    return 1", "    " + new), new
        assert not change("    return 1", "    return 1\n\ndef g():\n    return 1")
        assert change("def f():", "x = 1\n\ndef f():")

    def test_a_dead_end_is_not_entered(self, vocabulary: Any) -> None:
        passages = Passages(
            lines=("    return a", "    x = 1"),
            starts=(0, 1),
            tried={"return a": ("return a + 1",)},
            dead_ends={"return a": ("return a + 1", "return (b", "")},
        )
        narrowed = Narrowing(paths={"file_edit": ("a.py",)}, passages={"a.py": passages})
        grammar = call_grammar(EXECUTORS, narrowed)

        def change(new: str, old: str = "return a") -> bool:
            return accepts(vocabulary, grammar, call("file_edit", path="a.py", old=old, new=new))

        for new in ("return a + 2", "return a if b else 1", "return -(-a // b)", "return (a + 1)"):
            assert change(new), new
            assert change("    " + new, "    return a"), new
        for new in ("return a + 1", "return a + 1 + 1", "return (b)", "return a + 1}} <tool"):
            assert not change(new), new
            assert not change("    " + new, "    return a"), new
        assert change("return a + 1", "x = 1")

    def test_a_tried_text_with_the_end_of_the_call_in_it_is_the_same(self, vocabulary: Any) -> None:
        narrowed = Narrowing(tried={"code_search": {"pattern": ("port",)}})
        grammar = call_grammar(EXECUTORS, narrowed)
        assert not accepts(vocabulary, grammar, call("code_search", pattern="port}} <tool"))
        assert accepts(vocabulary, grammar, call("code_search", pattern="port {a}"))

    def test_a_settled_line_can_become_nothing_else(self, vocabulary: Any) -> None:
        passages = Passages(lines=("tmp",), starts=(0,), becomes="缓冲")
        narrowed = Narrowing(paths={"file_edit": ("a.py",)}, passages={"a.py": passages})
        grammar = call_grammar(EXECUTORS, narrowed)
        for new, good in (("缓冲", True), ("buffer", False)):
            text = call("file_edit", path="a.py", old="tmp", new=new)
            assert accepts(vocabulary, grammar, text) is good

    def test_a_text_holds_no_tags_of_a_call(self, vocabulary: Any) -> None:
        """Where a model forgot a quotation mark, it went on with tags for ever."""
        grammar = call_grammar(EXECUTORS, Narrowing())
        for new in ("<table>", "a < b", "a <", "x << 2", "</tool>", "<tools>", '"<"', "<\n"):
            assert accepts(vocabulary, grammar, call("file_edit", path="a", old="x", new=new)), new
        for new in (
            "}} <tool_call>",
            "a</tool_call>",
            "<<tool_call>",
            "<tool_result>",
            "<tool-call>",
            "</toolCall",
        ):
            text = call("file_edit", path="a", old="x", new=new)
            assert not accepts(vocabulary, grammar, text), new

    def test_empty_lines_come_to_an_end(self, vocabulary: Any) -> None:
        grammar = call_grammar(EXECUTORS, Narrowing())
        for count, good in ((0, True), (4, True), (5, False), (40, False)):
            new = "a" + "\n" * count + "b\n\n"
            text = call("file_edit", path="a", old="x", new=new)
            assert accepts(vocabulary, grammar, text) is good, count

    def test_text_with_quotes_and_line_ends_can_be_written(self, vocabulary: Any) -> None:
        grammar = call_grammar(EXECUTORS, Narrowing())
        text = call("file_edit", path="a", old='print("x\\n")', new="a\tb\n\\c")
        assert accepts(vocabulary, grammar, text)
        found = parse_tool_call(text, EXECUTORS.keys())
        assert found is not None
        assert found.arguments["new"] == "a\tb\n\\c"

    def test_an_answer_begins_as_it_should_and_goes_on_freely(self, vocabulary: Any) -> None:
        grammar = answer_grammar("原因是")
        assert accepts(vocabulary, grammar, '原因是端口被占用。\n\n`8443`: {"x": 1} é 😀')
        assert not accepts(vocabulary, grammar, "端口被占用。")

    def test_an_answer_does_not_repeat_what_the_model_was_told(self, vocabulary: Any) -> None:
        grammar = answer_grammar("Done:", ("Now tell", "现在用"))
        for text in (
            " a line.\n\n```py\nx = 3.14\n```\n- <b> {} now",
            " Now it works. Nothing now tells more... 现在好了。现在",
            "\n`3`!",
            " 10.5%?!  ",
        ):
            assert accepts(vocabulary, grammar, "Done:" + text), text
        for text in (
            "",
            " ",
            " Now tell the user",
            " It ran. Now tell",
            " 好。现在用一句",
            " a\n  Now tell",
        ):
            assert not accepts(vocabulary, grammar, "Done:" + text), text
        assert accepts(vocabulary, answer_grammar("", ("Now",)), "No. It is `x`")
        late = answer_grammar("Done:", ("<finish", "<file_"))
        assert accepts(vocabulary, late, "Done: a.\n<b>it</b> <finish> and\n<fi")
        assert not accepts(vocabulary, late, "Done: a.\n<finish>{}")
        assert not accepts(vocabulary, late, "Done: a.\n<file_edit>")
        assert accepts(vocabulary, answer_grammar("It printed `1`.", ("Now",)), "It printed `1`.")
        assert not accepts(vocabulary, answer_grammar("", ("Now",)), "Now.")

    def test_an_answer_may_be_or_end_in_a_call(self, vocabulary: Any) -> None:
        tools = call_grammar(EXECUTORS, Narrowing(tools=frozenset({"file_read"})))
        grammar = answer_grammar(echoes=("The file", "1|"), call=tools)
        for text in ("", "It is there.\n\n", "Done", "I look < here"):
            assert accepts(vocabulary, grammar, call("file_read", text, path="a")), text
        for text in ("It is `a < b`, <b>bold</b> and <table>.", "1. a\n2. <i>b</i>", "Yes"):
            assert accepts(vocabulary, grammar, text), text
        for text in ("The file", "Yes. The file", "Yes.\n1| x", "", "I <tool_call> x"):
            assert not accepts(vocabulary, grammar, text), text
        assert not accepts(vocabulary, grammar, call("finish", summary="x"))
