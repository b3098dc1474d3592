"""How often to call something that costs time: a period that follows a budget."""

from __future__ import annotations

import collections
import math
import statistics
import threading
import time

from worldloom._errors import WorldloomError


class RateError(WorldloomError, ValueError):
    """A `Rate` was given a budget that makes no sense."""


class Rate:
    """Keeps a callback within a budget of time by calling it every n-th step only.

    The period rises at once when calls are slow, at most eightfold a call, so that one slow
    first call does not silence it; it falls by half a call when calls are fast. It is a number
    on the host: changing it never recompiles.

    **Arguments:** at least one of

    - `fraction`: the share of wall time that the calls may take, between 0 and 1.
    - `budget_ms`: the time that the calls may take per step, averaged over all steps.

    and

    - `slowest`: the longest period.

    ```python
    import time
    import jax
    import jax.numpy as jnp
    from worldloom import watch

    rate = watch.Rate(budget_ms=1.0)

    @jax.jit
    def program(x):
        def step(x, _):
            watch.callback(lambda x: time.sleep(0.004), x, rate=rate)
            return x + 1, None

        return jax.lax.scan(step, x, length=100)[0]

    program(jnp.zeros(3)).block_until_ready()
    assert rate.every > 1
    ```
    """

    def __init__(
        self,
        *,
        fraction: float | None = None,
        budget_ms: float | int | None = None,
        slowest: int = 65536,
    ):
        if fraction is None and budget_ms is None:
            raise RateError(
                "fraction and budget_ms are both missing; give one, as in Rate(fraction=0.05)"
            )
        if fraction is not None and not 0 < fraction < 1:
            raise RateError(f"fraction is {fraction!r}; expected a number between 0 and 1")
        if budget_ms is not None and not 0 < budget_ms < math.inf:
            raise RateError(f"budget_ms is {budget_ms!r}; expected a positive number of ms")
        if slowest < 1:
            raise RateError(f"slowest is {slowest!r}; expected a period of 1 or more")
        self.fraction = fraction
        self.budget_ms = budget_ms
        self.slowest = slowest
        self._lock = threading.Lock()
        self._every = 1
        self._waited = 0  # steps since the last call, where the host counts them
        self._calls: collections.deque[float] = collections.deque(maxlen=5)
        self._steps: collections.deque[float] = collections.deque(maxlen=5)
        self._ended: float | None = None

    @property
    def every(self) -> int:
        """The period now in force."""
        return self._every

    def __repr__(self) -> str:
        budget = {"fraction": self.fraction, "budget_ms": self.budget_ms}
        given = ", ".join(f"{name}={value}" for name, value in budget.items() if value)
        return f"Rate({given}, every={self.every})"

    def due(self) -> bool:
        """Count one step, and say whether the call is due in it."""
        with self._lock:
            first = self._ended is None and self._waited == 0
            self._waited += 1
            return first or self._waited >= self._every

    def observe(self, seconds: float | int, *, steps: int | None = None) -> int:
        """Tell that a call has just ended. Returns the new period.

        **Arguments:**

        - `seconds`: how long the call took.
        - `steps`: how many steps it stands for; if not given, those counted by `due`.
        """
        now = time.perf_counter()
        with self._lock:
            steps = max(1, self._waited if steps is None else steps)
            if self._ended is not None:
                self._steps.append(max(0.0, now - seconds - self._ended) / steps)
            self._calls.append(seconds)
            self._ended = now
            self._waited = 0
            wanted = self._wanted()
            self._every = max(self._every // 2, min(wanted, 8 * self._every))
            return self._every

    def _wanted(self) -> int:
        # Medians, because the first call imports half the world and the user goes for lunch.
        call = statistics.median(self._calls)
        wanted = 1.0
        if self.budget_ms is not None:
            wanted = call / (1e-3 * self.budget_ms)
        if self.fraction is not None and self._steps:
            step = max(statistics.median(self._steps), 1e-9)
            wanted = max(wanted, call * (1 - self.fraction) / (self.fraction * step))
        # A tenth to spare, so that the share settles under the budget and not around it.
        return min(self.slowest, max(1, math.ceil(1.1 * wanted) if wanted > 1 else 1))
