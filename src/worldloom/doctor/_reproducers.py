"""Programs that some releases of JAX compile wrongly on CPU. Run as a script, on its own.

Each prints one line of JSON when it is through. A release with the crash dies on the way, which
is why this runs in a process of its own, and why it imports nothing of Worldloom.
"""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np


def wrong_rows(dtype: type, rows: int) -> list[int]:
    """Rows of a batch of matrix-vector products, squared and summed, that come out wrong.

    jax-ml/jax#39103: with JAX 0.10.2 everything after the first 128 KiB of output is wrong.
    """
    matrix = np.eye(3, dtype=dtype)

    @jax.jit
    def squared_length(vectors):
        return jax.vmap(lambda vector: jnp.sum((matrix @ vector) ** 2))(vectors)

    vectors = np.zeros((rows, 3), dtype)
    vectors[:, 0] = np.arange(rows) % 1000  # squares below 2 ** 24: exact in float32
    expected = vectors[:, 0] ** 2
    return np.nonzero(np.asarray(squared_length(vectors)) != expected)[0].tolist()


def multiply_and_sum(left: tuple[int, ...], right: tuple[int, ...], axis: int) -> bool:
    """Whether a product of ones of high rank sums to the length of the axis.

    jax-ml/jax#40412, #39257: JAX 0.10.2 crashes on rank 7, and 0.11.0 on rank 8.
    """
    product = jax.jit(lambda a, b: jnp.log(jnp.sum(a * b, axis=axis)))
    found = product(np.ones(left, np.float32), np.ones(right, np.float32))
    return bool(np.allclose(found, np.log(right[axis])))


def main() -> None:
    """Run all of them and print what each found."""
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    for dtype, rows in ((np.float64, 16_385), (np.float32, 32_769)):
        wrong = wrong_rows(dtype, rows)
        note = {"rows": rows, "dtype": dtype.__name__, "wrong": len(wrong), "first": wrong[:1]}
        print(json.dumps({"rows": note}), flush=True)
    seven = (3, 1, 2, 2, 8, 8, 8)
    right = multiply_and_sum(seven, seven, 3)
    right &= multiply_and_sum((10, 4, 6, 1, 1, 1, 1, 1), (10, 4, 6, 2, 2, 2, 2, 2), 2)
    print(json.dumps({"ranks": {"right": right}}), flush=True)


if __name__ == "__main__":
    main()
