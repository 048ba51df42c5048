"""What the machine is doing: whether it runs on battery, and whether others use it. Reads of the operating system, no model.

Any one thread. What cannot be read counts as mains and as quiet.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Protocol

import psutil

from growbox_app.power import saving_power

BUSY_SHARE = 0.5
"""From this share of all processors in use by others on, background work waits."""


class Machine(Protocol):
    """What the idle worker asks."""

    def on_battery(self) -> bool:
        """True while the machine should not spend energy on what nobody waits for."""
        ...

    def busy(self) -> bool:
        """True while others use the processors; looks at the time since the last call."""
        ...


class ThisMachine:
    """The one it runs on."""

    def __init__(self, saving: Callable[[], bool] = saving_power) -> None:
        self._saving = saving
        self._all_s = self._own_s = self._idle_s = 0.0

    def on_battery(self) -> bool:
        """See `Machine.on_battery`."""
        read = getattr(psutil, "sensors_battery", None)  # absent on systems without such a sensor
        battery = read() if read is not None else None
        return self._saving() or (battery is not None and battery.power_plugged is False)

    def busy(self) -> bool:
        """See `Machine.busy`."""
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        every, own = sum(times), _own_seconds()
        past, spare = every - self._all_s, idle - self._idle_s
        used = past - spare - max(0.0, own - self._own_s)
        self._all_s, self._idle_s, self._own_s = every, idle, own
        return past > 0 and used / past >= BUSY_SHARE


def _own_seconds() -> float:
    """Processor seconds of the application and its children; one that has just ended counts no more."""
    process = psutil.Process()
    seconds = 0.0
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            spent = one.cpu_times()
            seconds += spent.user + spent.system
    return seconds
