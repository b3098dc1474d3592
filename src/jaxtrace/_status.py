"""What has become of a particle."""

from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """What has become of a particle. Only an `ALIVE` one moves.

    ```python
    import jaxtrace as jt

    assert jt.Status.EXITED.message == "left the domain"
    ```
    """

    ALIVE = 0
    WAITING = 1
    EXITED = 2
    ABSORBED = 3
    BEACHED = 4
    NAN_VELOCITY = 5
    STEP_TOO_SMALL = 6
    DELETED = 7

    @property
    def message(self) -> str:
        """The status in words."""
        return _MESSAGES[self]


_MESSAGES = {
    Status.ALIVE: "moves with the flow",
    Status.WAITING: "waits for its release time",
    Status.EXITED: "left the domain",
    Status.ABSORBED: "was absorbed by a wall",
    Status.BEACHED: "ran onto land",
    Status.NAN_VELOCITY: "met a velocity that is not a number",
    Status.STEP_TOO_SMALL: "needed a smaller step than the integrator may take",
    Status.DELETED: "reached its greatest age, or a rule deleted it",
}
