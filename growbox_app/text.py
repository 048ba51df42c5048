"""Every user-facing sentence, by key, in English and Simplified Chinese.

Owns the loaded catalogues of `resources/translations/<language>/*.toml`. Both faces use it: the window through `ui`, the command line
directly. A missing key is our bug: it shows as the key itself and a test forbids it.
"""

from __future__ import annotations

import locale
import tomllib
from collections.abc import Mapping
from functools import cache

from growbox_app.paths import resources_path

LANGUAGES = ("en", "zh")


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """The flat key → sentence table of a language."""
    sentences: dict[str, str] = {}
    for path in sorted((resources_path() / "translations" / language).glob("*.toml")):
        sentences.update(_flatten(tomllib.loads(path.read_text(encoding="utf-8"))))
    return sentences


def _flatten(table: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            flat.update(_flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = str(value)
    return flat


def system_language() -> str:
    """`zh` where the system speaks Chinese, else `en`."""
    name = locale.getlocale()[0] or ""
    return "zh" if name.lower().startswith(("zh", "chinese")) else "en"


class Translator:
    """Sentences of one language; changed as a whole when the user changes the language."""

    def __init__(self, language: str = "system") -> None:
        self.language = "en"
        self.use(language)

    def use(self, language: str) -> None:
        """Switches to `en`, `zh` or `system`."""
        self.language = system_language() if language == "system" else language

    def __call__(self, key: str, /, **fields: object) -> str:
        """The sentence of `key` with `{field}` places filled."""
        sentence = catalogue(self.language).get(key)
        if sentence is None:
            return key
        return sentence.format(**fields) if fields else sentence


tr = Translator()
