"""Facts about the Qt binding that the window stands on."""

import sys

import pytest
from PySide6.QtWidgets import QApplication, QHBoxLayout

CALLS = 500


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal there")
def test_a_call_without_result_keeps_the_reference_count_of_none(qapp: QApplication) -> None:
    """PySide6 6.12.0 lost one reference per call on Python 3.11 and the process aborted after some seconds."""
    layout = QHBoxLayout()
    layout.setSpacing(1)
    before = sys.getrefcount(None)
    for _call in range(CALLS):
        layout.setSpacing(3)
    assert abs(sys.getrefcount(None) - before) < CALLS // 10
