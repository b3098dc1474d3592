"""Looking at grids and episodes from inside compiled code: doors into `worldloom.watch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Array, ArrayLike, Int

from jaxarc.utils.visualization._console import log_grid_to_console, plain_console
from worldloom import watch


def jax_log_grid(grid: Any, mask: Any = None, title: str = "Grid", **options: Any) -> None:
    """Print a grid from inside `jit`, `scan` or `vmap`.

    An error, such as a colour that does not exist or a closed pipe, is counted and logged, and
    never reaches the program.

    **Arguments:**

    - `grid`, `mask`, `title`: as for `log_grid_to_console`.
    - `options`: any of `worldloom.watch.callback`: `when`, `step` and `every`, `rate`, ...

    ```python
    import jax
    import jax.numpy as jnp
    from jaxarc.utils.visualization import jax_log_grid

    @jax.jit
    def paint(grid):
        jax_log_grid(grid, title="before")
        return grid + 1

    paint(jnp.zeros((3, 3), jnp.int32))
    ```
    """
    watch.callback(log_grid_to_console, grid, mask, title, **{"name": "jax_log_grid", **options})


def jax_log_episode_summary(
    episode_num: Any,
    steps: Any,
    total_reward: Any,
    final_similarity: Any,
    success: Any,
    **options: Any,
) -> None:
    """Print one line about an episode from inside `jit`, `scan` or `vmap`.

    **Arguments:**

    - `options`: any of `worldloom.watch.callback`, such as `when=done`.

    ```python
    import jax
    from jaxarc.utils.visualization import jax_log_episode_summary

    jax.jit(jax_log_episode_summary)(3, 41, 10.2, 1.0, True)
    ```
    """
    facts = (episode_num, steps, total_reward, final_similarity, success)
    watch.callback(print_summary, *facts, **{"name": "jax_log_episode_summary", **options})


def print_summary(episode: Any, steps: Any, reward: Any, similarity: Any, success: Any) -> None:
    """Print one line about an episode."""
    number, count = int(np.asarray(episode)), int(np.asarray(steps))
    outcome = "[green]solved[/]" if bool(np.asarray(success)) else "[red]not solved[/]"
    plain_console().print(
        f"[bold]episode {number}[/]  {outcome}  {count} steps  "
        f"reward {float(np.asarray(reward)):+.2f}  "
        f"similarity {float(np.asarray(similarity)):.0%}"
    )


def draw_first_world(grid: Any) -> None:
    """Print a world's grid from inside compiled code, as often as a budget of time allows."""
    adaptive_visualization_callback(_print_first_world, grid, callback_name="world 0")


def _print_first_world(grid: np.ndarray) -> None:
    log_grid_to_console(grid, title="world 0")


_rates: dict[str, watch.Rate] = {}


def adaptive_visualization_callback(
    func: Callable[..., object],
    *args: Any,
    callback_name: str | None = None,
    max_avg_time_ms: float | int = 5.0,
    step: Int[ArrayLike, ""] | None = None,
    every: Int[ArrayLike, ""] | None = None,
    batched: bool = False,
) -> Int[Array, ""]:
    """Call `func(*args)` on the host, as often as a budget of time allows.

    Slow calls come less often, fast ones more often again; nothing is compiled anew. All calls
    of one name share one budget.

    **Arguments:**

    - `callback_name`: what statistics call it; the name of `func` by default.
    - `max_avg_time_ms`: milliseconds a step that the calls may take on average.
    - `step`, `every`: the number of this step, and the period so far. With them the device
      decides, and a step that is skipped costs nothing; without them each step asks the host,
      some 7 us. Carry what is returned to the next step as `every`.
    - `batched`: under `vmap`, one call with all worlds.

    **Returns:** the period from here on.

    ```python
    import jax
    import jax.numpy as jnp
    from jaxarc.utils.visualization import adaptive_visualization_callback

    @jax.jit
    def training(x):
        def step(carry, t):
            x, every = carry
            every = adaptive_visualization_callback(print, x, step=t, every=every)
            return (x + 1, every), None

        return jax.lax.scan(step, (x, jnp.int32(1)), jnp.arange(3))[0][0]

    training(jnp.zeros(2))
    ```
    """
    name = callback_name or getattr(func, "__qualname__", type(func).__qualname__)
    rate = _rates.get(name)
    if rate is None or rate.budget_ms != max_avg_time_ms:
        rate = _rates[name] = watch.Rate(budget_ms=max_avg_time_ms)
    return watch.callback(
        func, *args, name=name, rate=rate, step=step, every=every, batched=batched
    )
