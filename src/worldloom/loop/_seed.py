"""Seeds for whoever gave none."""

from __future__ import annotations

import secrets


def fresh_seed() -> int:
    """A seed that no earlier run had, from the entropy of the operating system.

    A function whose `key` or `seed` was left out draws one here, uses it, and records it in what
    it returns, so that the result can be repeated.

    **Returns:**

    A number from 0 to 2**31 - 1.

    ```python
    import jax
    import worldloom as wl

    seed = wl.fresh_seed()
    key = jax.random.key(seed)
    ```
    """
    return secrets.randbits(31)
