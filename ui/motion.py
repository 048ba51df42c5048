"""Whether the desktop asks for calm: then nothing moves. GUI thread."""

from __future__ import annotations

import ctypes
import sys

from PySide6.QtWidgets import QApplication, QStyle

# SystemParametersInfo: "Animate controls and elements inside windows".
_SPI_GETCLIENTAREAANIMATION = 0x1042


def reduced() -> bool:
    """True when style, desktop or Windows setting have animations switched off."""
    style = QApplication.style()
    if not style.styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration):
        return True
    return _off_in_windows()


def _off_in_windows() -> bool:
    if sys.platform == "win32":
        wanted = ctypes.c_int(1)
        ctypes.windll.user32.SystemParametersInfoW(
            _SPI_GETCLIENTAREAANIMATION, 0, ctypes.byref(wanted), 0
        )
        return not wanted.value
    return False
