"""Source code: where its definitions begin, and what they are called. Pure; meant for the reader process.

tree-sitter parses what is broken as well, so a file that does not compile is cut like any other.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import PurePath

from tree_sitter import Language, Node, Parser

from growbox_app.ingest.sections import Section

_LANGUAGES = {
    ".py": ("tree_sitter_python", "language"),
    ".pyi": ("tree_sitter_python", "language"),
    ".js": ("tree_sitter_javascript", "language"),
    ".mjs": ("tree_sitter_javascript", "language"),
    ".cjs": ("tree_sitter_javascript", "language"),
    ".jsx": ("tree_sitter_javascript", "language"),
    ".ts": ("tree_sitter_typescript", "language_typescript"),
    ".mts": ("tree_sitter_typescript", "language_typescript"),
    ".tsx": ("tree_sitter_typescript", "language_tsx"),
    ".c": ("tree_sitter_c", "language"),
    ".h": ("tree_sitter_cpp", "language"),  # C headers are C++ as far as definitions go
    ".cc": ("tree_sitter_cpp", "language"),
    ".cpp": ("tree_sitter_cpp", "language"),
    ".cxx": ("tree_sitter_cpp", "language"),
    ".hh": ("tree_sitter_cpp", "language"),
    ".hpp": ("tree_sitter_cpp", "language"),
    ".java": ("tree_sitter_java", "language"),
    ".go": ("tree_sitter_go", "language"),
    ".rs": ("tree_sitter_rust", "language"),
    ".sh": ("tree_sitter_bash", "language"),
    ".bash": ("tree_sitter_bash", "language"),
}
_DEFINITIONS = frozenset(
    {
        # Python, Bash
        "function_definition",
        "class_definition",
        "decorated_definition",
        # JavaScript, TypeScript, Java
        "function_declaration",
        "generator_function_declaration",
        "class_declaration",
        "abstract_class_declaration",
        "method_definition",
        "interface_declaration",
        "type_alias_declaration",
        "enum_declaration",
        "internal_module",
        # Java, Go
        "record_declaration",
        "method_declaration",
        "constructor_declaration",
        "annotation_type_declaration",
        "type_declaration",
        # C, C++
        "struct_specifier",
        "union_specifier",
        "enum_specifier",
        "class_specifier",
        "namespace_definition",
        "template_declaration",
        # Rust
        "function_item",
        "struct_item",
        "enum_item",
        "union_item",
        "trait_item",
        "impl_item",
        "mod_item",
        "macro_definition",
    }
)
_WRAPPERS = frozenset(
    {"decorated_definition", "export_statement", "template_declaration", "type_declaration"}
)
_BINDINGS = frozenset({"lexical_declaration", "variable_declaration"})
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "function", "class"})
_LEADS = frozenset({"comment", "line_comment", "block_comment", "attribute_item", "decorator"})
_DEPTH_MAX = 24
_NAME_CHARACTERS_MAX = 80


def knows(name: str) -> bool:
    """Whether the file is source code in a language with a grammar here."""
    return PurePath(name).suffix.lower() in _LANGUAGES


def suffixes() -> tuple[str, ...]:
    """Of source code in a language with a grammar here."""
    return tuple(_LANGUAGES)


def definitions(text: str, name: str, whole_characters: int) -> list[Section]:
    """The sections of a source file: each definition with the comments above it, and what stands between definitions.

    Args:
        text: the source.
        name: the file's, whose suffix says the language.
        whole_characters: a definition up to this size stays whole; a larger one is looked into.
    """
    data = text.encode()
    root = _parser(PurePath(name).suffix.lower()).parse(data).root_node
    found = [Section(0, ())]
    found += _inside(root, data, (), whole_characters, 0)
    return _in_characters(found, data)


@cache
def _parser(suffix: str) -> Parser:
    module, function = _LANGUAGES[suffix]
    return Parser(Language(getattr(importlib.import_module(module), function)()))


def _inside(
    node: Node, data: bytes, path: tuple[str, ...], whole: int, depth: int
) -> Iterator[Section]:
    """Sections that begin inside a node, with offsets in bytes."""
    lead: Node | None = None
    for child in node.named_children:
        if child.type in _LEADS:
            lead = lead if lead is not None and _touch(lead, child, data) else child
            continue
        definition = _definition(child)
        large = child.end_byte - child.start_byte > whole
        if definition is not None:
            names = (*path, *_names(definition))
            first = child if lead is None or not _touch(lead, child, data) else lead
            yield Section(_line_start(data, first.start_byte), names)
            if large and depth < _DEPTH_MAX:
                yield from _inside(definition, data, names, whole, depth + 1)
            yield Section(_line_end(data, child.end_byte), path)
        elif large and depth < _DEPTH_MAX:
            yield from _inside(child, data, path, whole, depth + 1)
        lead = None


def _touch(first: Node, second: Node, data: bytes) -> bool:
    """Whether no blank line parts what stands between, comments aside."""
    between = data[first.start_byte : second.start_byte]
    return b"\n\n" not in between and b"\n\r\n" not in between


def _definition(node: Node) -> Node | None:
    """The definition that a node is, or wraps; None when it is another statement."""
    if node.type in _WRAPPERS:
        inner = [_definition(child) for child in node.named_children]
        return next((found for found in inner if found is not None), None) or (
            node if node.type in _DEFINITIONS else None
        )
    if node.type in _BINDINGS:
        values = (child.child_by_field_name("value") for child in node.named_children)
        bound = any(value is not None and value.type in _FUNCTIONS for value in values)
        return node if bound else None
    return node if node.type in _DEFINITIONS else None


def _names(node: Node) -> tuple[str, ...]:
    """What a definition is called; empty when it has no name."""
    named = node.child_by_field_name("type" if node.type == "impl_item" else "name")
    depth = 0
    while named is None and depth < _DEPTH_MAX:  # C: the name is at the end of the declarators
        inner = node.child_by_field_name("declarator")
        inner = inner or next(
            (c for c in node.named_children if c.type.endswith("declarator")), None
        )
        if inner is None:
            break
        named = inner.child_by_field_name("name")
        if named is None and inner.child_count == 0:
            named = inner
        node, depth = inner, depth + 1
    if named is None:
        specs = [child for child in node.named_children if child.child_by_field_name("name")]
        named = specs[0].child_by_field_name("name") if specs else None
    text = "" if named is None or named.text is None else named.text.decode("utf-8", "replace")
    name = " ".join(text.split())[:_NAME_CHARACTERS_MAX]
    return (name,) if name else ()


def _line_start(data: bytes, at: int) -> int:
    """Where the line begins, if only white space stands before; else the place itself."""
    start = data.rfind(b"\n", 0, at) + 1
    return start if not data[start:at].strip() else at


def _line_end(data: bytes, at: int) -> int:
    """Behind the line's end, if only white space and a separator stand there; else the place itself."""
    end = data.find(b"\n", at)
    end = len(data) if end < 0 else end + 1
    return end if not data[at:end].strip(b" \t\r\n;,") else at


def _in_characters(found: list[Section], data: bytes) -> list[Section]:
    """Ascending, in characters; of two that begin together the later one holds."""
    starts: dict[int, tuple[str, ...]] = {}
    for section in found:
        starts[section.start] = section.path
    placed: list[Section] = []
    at_byte = at = 0
    for start in sorted(starts):
        if start >= len(data) and start > 0:
            break
        at += len(data[at_byte:start].decode())
        at_byte = start
        placed.append(Section(at, starts[start]))
    return placed
