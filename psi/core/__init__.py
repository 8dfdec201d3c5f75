"""What may happen to sessions, turns and schedules: state machines and the values they are made of.

    clock       moments; instants as text             session    who is busy, who is idle
    deadlines   who must be woken, and when           turn       one input and everything up to its closure
    schedule    one delayed prompt                    message    what stands in a history
    agenda      the schedules of all sessions         config     what a session is told to be

Everything here is pure: ``step(state, event, *, now)`` gives the next state and the effects that follow from it, and
somebody else performs them. No clock is read, nothing is awaited, nothing is saved.
"""

__all__: list[str] = []
