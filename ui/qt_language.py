"""Qt's own words (context menus of text fields, buttons of message boxes) in the window's language. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QTranslator

_FILES = {"zh": "qtbase_zh_CN"}
_installed: list[QTranslator] = []


def use_qt_language(language: str) -> bool:
    """Loads Qt's translation of `en` or `zh`; English is built in.

    Returns:
        Whether Qt speaks the language now.
    """
    for translator in _installed:
        QCoreApplication.removeTranslator(translator)
    _installed.clear()
    name = _FILES.get(language)
    if name is None:
        return True
    translator = QTranslator()
    folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    if not translator.load(name, folder):
        return False
    QCoreApplication.installTranslator(translator)
    _installed.append(translator)
    return True
