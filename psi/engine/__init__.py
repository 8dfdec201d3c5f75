"""Where things happen: the one timer, the one submit path, runs, deliveries and the event bus.

The only room that starts tasks. What may happen is decided in :mod:`psi.core`; here its effects are performed, and what
came of them goes back as events.

    clock      time as it is, and time that tests move          sessions   who is alive, and in which phase
    timer      one alarm for everything that is due             runs       submit, drive the agent, close the turn
    bus        what happened, for whoever listens               scheduler  due → deliver, busy → wait, idle → drain
    interest   who has looked at what, and has to look again
"""

from psi.engine.bus import Bus, Event, Listener, Subscription
from psi.engine.clock import SystemClock, VirtualClock
from psi.engine.engine import Engine
from psi.engine.interest import Reader
from psi.engine.runlog import Opened, RunEvent, RunLog
from psi.engine.runs import Run

__all__ = [
    "Bus",
    "Engine",
    "Event",
    "Listener",
    "Opened",
    "Reader",
    "Run",
    "RunEvent",
    "RunLog",
    "Subscription",
    "SystemClock",
    "VirtualClock",
]
