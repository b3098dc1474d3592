"""How a variable follows from its causes. One module a family; padded arrays, one row an effect."""

from __future__ import annotations

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo.scm._random import between, normal, signed, uniforms

MECHANISMS = ("linear", "polynomial", "fourier")

_WAVES = 32
_BEND = 4.0


class Mechanism(eqx.Module):
    """The noiseless part of every variable, given all variables.

    Arrays have the effect as their first axis, so that one effect is one row.
    """

    @abc.abstractmethod
    def __call__(self, j: Int[Array, ""] | int, values: Float[Array, "d n"]) -> Float[Array, " n"]:
        """Variable `j` in `n` samples, from `values`. Only its causes count."""


class Linear(Mechanism):
    """A weighted sum of the causes. `weights[j, i]` is the effect of i on j."""

    weights: Float[Array, "d d"]

    def __call__(self, j, values):
        """See `Mechanism`."""
        return self.weights[j] @ values


class Polynomial(Mechanism):
    """A sum of cubic polynomials of the causes, `a x + b x² + c x³`.

    A cause enters as `4 tanh(x / 4)`, so that a chain of polynomials stays finite.
    """

    coefficients: Float[Array, "d d 3"]

    def __call__(self, j, values):
        """See `Mechanism`."""
        x = _BEND * jnp.tanh(values / _BEND)
        first, second, third = jnp.moveaxis(self.coefficients[j], -1, 0)
        return first @ x + second @ x**2 + third @ x**3


class Fourier(Mechanism):
    """A smooth random function of all causes together: a sum of waves.

    With many waves this is a draw from a Gaussian process with a squared exponential kernel.
    """

    frequencies: Float[Array, "d waves d"]
    phases: Float[Array, "d waves"]
    amplitudes: Float[Array, "d waves"]

    def __call__(self, j, values):
        """See `Mechanism`."""
        waves = jnp.cos(self.frequencies[j] @ values + self.phases[j][:, None])
        return self.amplitudes[j] @ waves


def sample_mechanism(
    key: PRNGKeyArray, edges: Bool[Array, "d d"], *, kind: str = "linear"
) -> Mechanism:
    """Draw a mechanism for the graph `edges`.

    - `"linear"`: weights of either sign, uniform in size between 0.5 and 2.
    - `"polynomial"`: first-order terms like those; second and third order a fraction of them.
    - `"fourier"`: a smooth function with a length scale near 1.5 in each cause, standard
      deviation between 1 and 3.

    Variables without causes have mechanism 0.
    """
    check_mechanism(kind)
    (u,) = uniforms(key, numbers_of_mechanism(edges.shape[0], kind))
    return mechanism_from(u, edges, kind)


def check_mechanism(kind: str) -> None:
    """Refuse what is not a mechanism."""
    if kind not in MECHANISMS:
        raise ValueError(f"mechanism={kind!r} is none that we know; one of {', '.join(MECHANISMS)}")


def numbers_of_mechanism(d: int, kind: str) -> tuple[int, ...]:
    """How many random numbers a mechanism of `d` variables takes."""
    return {
        "linear": (d, d),
        "polynomial": (d, d, 3),
        "fourier": (d, _WAVES * (d + 2) + 2),
    }[kind]


def mechanism_from(u: Array, edges: Bool[Array, "d d"], kind: str) -> Mechanism:
    """The mechanism that the uniform numbers `u` stand for."""
    causes = edges.T
    d = causes.shape[0]
    if kind == "linear":
        return Linear(jnp.where(causes, signed(u, (0.5, 2.0)), 0.0))
    if kind == "polynomial":
        weights = jnp.where(causes, signed(u[..., 0], (0.5, 2.0)), 0.0)
        higher = normal(u[..., 1:]) * jnp.asarray([0.3, 0.1])[None, None, :]
        parts = jnp.concatenate([jnp.ones((d, d, 1)), higher], axis=-1)
        return Polynomial(weights[..., None] * parts)
    scale, size, phases, amplitudes, frequencies = jnp.split(
        u, [1, 2, 2 + _WAVES, 2 + 2 * _WAVES], axis=1
    )
    frequencies = normal(frequencies).reshape(d, _WAVES, d) * between(scale, (0.4, 1.0))[..., None]
    amplitudes = normal(amplitudes) * between(size, (1.0, 3.0)) * (2 / _WAVES) ** 0.5
    return Fourier(
        jnp.where(causes[:, None, :], frequencies, 0.0),
        2 * jnp.pi * phases,
        jnp.where(causes.any(axis=1, keepdims=True), amplitudes, 0.0),
    )
