"""Whether this machine is saving power, so that work nobody asked for is left out.

Stateless reads of the operating system; any thread. What cannot be read counts as mains.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from pathlib import Path

import psutil

BATTERY_PERCENT_MIN = 40.0
"""Below this, on battery, only what the user waits for is computed."""
_PROFILE = Path("/sys/firmware/acpi/platform_profile")


def saving_power() -> bool:
    """True on a battery that is running low, or where the system's own power saver is on."""
    return _battery_low() or _saver_on()


def _battery_low() -> bool:
    read = getattr(psutil, "sensors_battery", None)  # absent on systems without such a sensor
    battery = read() if read is not None else None
    return (
        battery is not None
        and battery.power_plugged is False
        and battery.percent < BATTERY_PERCENT_MIN
    )


def _saver_on() -> bool:
    if sys.platform == "win32":
        # SYSTEM_POWER_STATUS: four bytes, the last of them 1 while the battery saver is on, and two 32-bit numbers.
        status = (ctypes.c_ubyte * 12)()
        return bool(ctypes.windll.kernel32.GetSystemPowerStatus(status)) and status[3] == 1
    with contextlib.suppress(OSError):
        return _PROFILE.read_text(encoding="ascii").strip() == "low-power"
    return False
