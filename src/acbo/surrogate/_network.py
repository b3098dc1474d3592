"""The surrogate: a table of samples in, a posterior over graphs out.

A pair of variables is a token. Samples are summarised first, by closed-form statistics and by
learned moments; then tokens look along their row (all effects of i) and, in the next block, along
their column (all causes of j), and in every block along all paths from i over k to j.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from acbo._apart import apart
from acbo.scm import Samples
from acbo.surrogate import _evidence, _statistics
from acbo.surrogate._evidence import local_evidence
from acbo.surrogate._statistics import pair_statistics


@dataclass(frozen=True)
class SurrogateConfig:
    """Sizes of the network.

    **Arguments:**

    - `hidden`: numbers a token has; a multiple of `heads`.
    - `blocks`: how often tokens look at each other; even, so that rows and columns take turns.
    - `heads`: attention heads.
    - `moments`: learned moments a pair of variables has.
    - `compute_dtype`: the type in which blocks compute: `"float32"` or `"bfloat16"`.
    """

    hidden: int = 64
    blocks: int = 4
    heads: int = 4
    moments: int = 32
    compute_dtype: str = "float32"

    def __post_init__(self):
        for name in ("hidden", "blocks", "heads", "moments"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}; expected a positive integer")
        if self.hidden % self.heads:
            raise ValueError(
                f"hidden={self.hidden} is not a multiple of heads={self.heads}; "
                "each head takes an equal share"
            )
        if self.blocks % 2:
            raise ValueError(f"blocks={self.blocks} is odd; rows and columns take turns")
        if self.compute_dtype not in ("float32", "bfloat16"):
            raise ValueError(
                f"compute_dtype={self.compute_dtype!r}; expected 'float32' or 'bfloat16'"
            )


class Prediction(NamedTuple):
    """What the network says about one table.

    **Attributes:**

    - `edge_logits`: log odds of an edge from i to j; the diagonal and padding are very low.
    - `cause_scores`: how much i adds to the score of a set of causes of j.
    - `cause_pairs`: vectors; the product of those of i and k for the same j is what both add
      together.
    - `tokens`: the last layer, for networks that go on from here.
    """

    edge_logits: Float[Array, "d d"]
    cause_scores: Float[Array, "d d"]
    cause_pairs: Float[Array, "d d rank"]
    tokens: Float[Array, "d d hidden"]


_RANK = 8
_NEVER = -30.0


class Surrogate(eqx.Module):
    """Predicts the causal graph from samples; see the module's head.

    The order of variables and of samples does not matter: permuting variables permutes the answer.

    ```python
    import jax
    from acbo.scm import Family
    from acbo.surrogate import Surrogate, SurrogateConfig

    network = Surrogate(SurrogateConfig(hidden=16, blocks=2), key=jax.random.key(0))
    study = Family().study(jax.random.key(1), 5, 100)
    assert network(study.samples).edge_logits.shape == (5, 5)
    ```
    """

    moments: Moments
    mix: eqx.nn.Linear
    diagonal: Float[Array, " hidden"]
    blocks: Block
    norm: eqx.nn.LayerNorm
    wide: eqx.nn.Linear
    narrow: eqx.nn.Linear
    config: SurrogateConfig = eqx.field(static=True)

    def __init__(self, config: SurrogateConfig = SurrogateConfig(), *, key: PRNGKeyArray):
        keys = jax.random.split(key, 6)
        hidden = config.hidden
        self.config = config
        self.moments = Moments(config.moments, key=keys[0])
        known = config.moments + _statistics.COUNT + _evidence.COUNT
        self.mix = eqx.nn.Linear(known, hidden, key=keys[1])
        self.diagonal = 0.1 * jax.random.normal(keys[2], (hidden,))
        block_keys = jax.random.split(keys[3], config.blocks)
        self.blocks = eqx.filter_vmap(lambda key: Block(hidden, config.heads, key=key))(block_keys)
        self.norm = eqx.nn.LayerNorm(hidden)
        self.wide = eqx.nn.Linear(2 * hidden, hidden, key=keys[4])
        narrow = eqx.nn.Linear(hidden, 2 + _RANK, key=keys[5])
        self.narrow = eqx.tree_at(lambda layer: layer.weight, narrow, 0.1 * narrow.weight)

    def __call__(self, samples: Samples) -> Prediction:
        """The posterior for one table. Use `many`, or `jax.vmap`, for a batch."""
        alone = jax.tree.map(lambda leaf: leaf[None], samples)
        moments = self.moments(alone, None)[0]
        return self._judge(samples, moments, local_evidence(samples), None)

    def many(self, samples: Samples) -> Prediction:
        """The posterior for each of a batch of tables, its axis first in every array.

        The same as `jax.vmap(network)`, and sooner done: what goes over all samples goes over those
        of a few tables at a time, and no layer is computed twice on the way back.
        """
        count = samples.variables.sum()
        samples = apart(samples, count)
        evidence = in_parts(jax.vmap(local_evidence), samples, _evidence.WAVES)
        judge = jax.vmap(self._judge, in_axes=(0, 0, 0, None))
        return judge(samples, self.moments(samples, count), evidence, count)

    def _judge(
        self,
        samples: Samples,
        moments: Float[Array, "d d moments"],
        evidence: Float[Array, "d d numbers"],
        count: Int[Array, ""] | None,
    ) -> Prediction:
        variables = samples.variables
        d = variables.shape[0]
        eye = jnp.eye(d)[..., None]
        known = jnp.concatenate([moments, pair_statistics(samples), evidence], axis=-1)
        tokens = linear(self.mix, known) + eye * self.diagonal[None, None, :]

        dtype = jnp.dtype(self.config.compute_dtype)
        dynamic, static = eqx.partition(self.blocks, eqx.is_array)
        dynamic = jax.tree.map(lambda leaf: leaf.astype(dtype), dynamic)

        def apply(tokens, block):
            return eqx.combine(block, static)(tokens, variables, count), None

        # Unrolled: a loop would copy all that the way back needs, and take no less to compile.
        tokens, _ = lax.scan(apply, tokens.astype(dtype), dynamic, unroll=True)
        tokens = normalise(self.norm, tokens.astype(jnp.float32))
        both = jnp.concatenate([tokens, jnp.swapaxes(tokens, 0, 1)], axis=-1)
        out = linear(self.narrow, jax.nn.relu(linear(self.wide, both)))
        possible = variables[:, None] & variables[None, :] & ~jnp.eye(d, dtype=bool)
        return Prediction(
            edge_logits=jnp.where(possible, out[..., 0], _NEVER),
            cause_scores=jnp.where(possible, out[..., 1], _NEVER),
            cause_pairs=jnp.where(possible[..., None], out[..., 2:], 0.0),
            tokens=tokens,
        )


class Moments(eqx.Module):
    """Learned moments: the mean over samples of a feature of i times a feature of j."""

    first: eqx.nn.Linear
    cause: eqx.nn.Linear
    effect: eqx.nn.Linear

    def __init__(self, count: int, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 3)
        self.first = eqx.nn.Linear(4, count, key=keys[0])
        self.cause = eqx.nn.Linear(count, count, key=keys[1])
        self.effect = eqx.nn.Linear(count, count, key=keys[2])

    def __call__(
        self, samples: Samples, count: Int[Array, ""] | None
    ) -> Float[Array, "tables d d moments"]:
        """One vector for each pair of variables of each table."""
        return in_parts(lambda part: self._part(part, count), samples, self.first.weight.shape[0])

    def _part(
        self, samples: Samples, count: Int[Array, ""] | None
    ) -> Float[Array, "tables d d moments"]:
        x = jnp.swapaxes(samples.values, 1, 2)
        m = jnp.swapaxes(samples.intervened, 1, 2).astype(x.dtype)
        x, m = apart((x, m), count)
        other = jnp.broadcast_to(m.max(axis=1, keepdims=True), m.shape)
        rows = samples.rows.astype(x.dtype)
        cells = jnp.stack([x, m, other, x * m])
        features = jax.nn.relu(across(self.first, cells))
        cause = across(self.cause, features) * rows[None, :, None, :]
        effect = across(self.effect, features)
        found = _mean_products(cause, effect, jnp.maximum(rows.sum(axis=1), 1.0))
        return jnp.moveaxis(found, 0, -1)


@jax.custom_vjp
def _mean_products(
    a: Float[Array, "m t i n"], b: Float[Array, "m t j n"], count: Float[Array, " t"]
) -> Float[Array, "m t i j"]:
    return jnp.einsum("mtin,mtjn->mtij", a, b) / count[None, :, None, None]


def _mean_products_forward(a: Array, b: Array, count: Array) -> tuple[Array, tuple]:
    return _mean_products(a, b, count), (a, b, count)


def _mean_products_backward(kept: tuple, g: Array) -> tuple[Array, Array, None]:
    # JAX would have the second product go along columns of the gradient, eight times as slow.
    a, b, count = kept
    scaled = g / count[None, :, None, None]
    return scaled @ b, apart(jnp.swapaxes(scaled, 2, 3), (count > 0).sum()) @ a, None


_mean_products.defvjp(_mean_products_forward, _mean_products_backward)


class Block(eqx.Module):
    """Tokens look along their row and along paths; then each thinks by itself.

    The answer is turned: the next block looks along columns.
    """

    rows: Attention
    paths: Paths
    norm: eqx.nn.LayerNorm
    wide: eqx.nn.Linear
    narrow: eqx.nn.Linear

    def __init__(self, hidden: int, heads: int, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 4)
        self.rows = Attention(hidden, heads, key=keys[0])
        self.paths = Paths(hidden, key=keys[1])
        self.norm = eqx.nn.LayerNorm(hidden)
        self.wide = eqx.nn.Linear(hidden, 2 * hidden, key=keys[2])
        self.narrow = eqx.nn.Linear(2 * hidden, hidden, key=keys[3])

    def __call__(
        self,
        tokens: Float[Array, "d d hidden"],
        variables: Bool[Array, " d"],
        count: Int[Array, ""] | None,
    ) -> Float[Array, "d d hidden"]:
        """The tokens after one look, turned."""
        tokens = apart(tokens + self.rows(tokens, variables), count)
        tokens = apart(tokens + self.paths(tokens, variables), count)
        thought = jax.nn.relu(linear(self.wide, normalise(self.norm, tokens)))
        return jnp.swapaxes(apart(tokens + linear(self.narrow, thought), count), 0, 1)


class Attention(eqx.Module):
    """Attention along the second axis."""

    norm: eqx.nn.LayerNorm
    ask: eqx.nn.Linear
    answer: eqx.nn.Linear
    heads: int = eqx.field(static=True)

    def __init__(self, hidden: int, heads: int, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 2)
        self.norm = eqx.nn.LayerNorm(hidden)
        self.ask = eqx.nn.Linear(hidden, 3 * hidden, use_bias=False, key=keys[0])
        self.answer = eqx.nn.Linear(hidden, hidden, key=keys[1])
        self.heads = heads

    def __call__(
        self, tokens: Float[Array, "a b hidden"], variables: Bool[Array, " b"]
    ) -> Float[Array, "a b hidden"]:
        """What each token hears; padding is not heard."""
        a, b, hidden = tokens.shape
        asked = linear(self.ask, normalise(self.norm, tokens))
        asked = asked.reshape(a, b, 3, self.heads, hidden // self.heads)
        query, key, value = asked[:, :, 0], asked[:, :, 1], asked[:, :, 2]
        # Sums of products: with a few variables, a matrix product for each head is far slower, and
        # so it is for each number of a path below.
        weight = (query[:, :, None] * key[:, None, :]).sum(axis=-1) * (hidden // self.heads) ** -0.5
        weight = jnp.where(variables[None, None, :, None], weight, -1e9)
        weight = jax.nn.softmax(weight, axis=2)
        heard = (weight[..., None] * value[:, None]).sum(axis=2)
        return linear(self.answer, heard.reshape(a, b, hidden))


class Paths(eqx.Module):
    """What leads from i over any k to j."""

    norm: eqx.nn.LayerNorm
    legs: eqx.nn.Linear
    answer: eqx.nn.Linear

    def __init__(self, hidden: int, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 2)
        self.norm = eqx.nn.LayerNorm(hidden)
        self.legs = eqx.nn.Linear(hidden, hidden, key=keys[0])
        self.answer = eqx.nn.Linear(hidden // 2, hidden, key=keys[1])

    def __call__(
        self, tokens: Float[Array, "d d hidden"], variables: Bool[Array, " d"]
    ) -> Float[Array, "d d hidden"]:
        """What each token learns from its paths; padding is no way."""
        legs = linear(self.legs, normalise(self.norm, tokens))
        legs = jnp.where((variables[:, None] & variables[None, :])[..., None], legs, 0)
        first, second = jnp.split(legs, 2, axis=-1)
        count = jnp.maximum(variables.sum(), 1).astype(tokens.dtype)
        ways = (first[:, :, None] * second[None, :, :]).sum(axis=1) * count**-0.5
        return linear(self.answer, ways)


_CACHED = 2**17  # numbers: half a megabyte


def in_parts(
    function: Callable[[Samples], Float[Array, "part ..."]], samples: Samples, features: int
) -> Float[Array, "tables ..."]:
    """A function of a batch of tables, given a part of them at a time.

    As many as have features that stay in a core's cache, where the way back finds them again;
    `features` is how many a value of a table has.
    """
    tables, n, d = samples.values.shape
    fit = max(_CACHED // (features * n * d), 1)
    size = max(k for k in range(1, tables + 1) if tables % k == 0 and k <= fit)
    parts = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), samples)
    found = lax.map(function, parts)
    return found.reshape(tables, *found.shape[2:])


def linear(layer: eqx.nn.Linear, x: Float[Array, "*batch n"]) -> Float[Array, "*batch m"]:
    """A linear layer along the last axis of anything, as one matrix product."""
    out = x @ layer.weight.T
    if layer.bias is None:
        return out
    return out + layer.bias.reshape((1,) * (out.ndim - 1) + (-1,))


def across(layer: eqx.nn.Linear, x: Float[Array, "n ..."]) -> Float[Array, "m ..."]:
    """A linear layer along the first axis."""
    assert layer.bias is not None
    # A feature that is always 1: so the product for the weight's gradient gives the bias's too.
    weight = jnp.concatenate([layer.weight, layer.bias[:, None]], axis=1)
    flat = x.reshape(x.shape[0], -1)
    flat = jnp.concatenate([flat, jnp.ones_like(flat[:1])])
    return (weight @ flat).reshape(-1, *x.shape[1:])


def normalise(layer: eqx.nn.LayerNorm, x: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
    """Layer normalisation along the last axis of anything, computed in float32."""
    wide = x.astype(jnp.float32)
    mean = wide.mean(axis=-1, keepdims=True)
    wide = (wide - mean) * lax.rsqrt(((wide - mean) ** 2).mean(axis=-1, keepdims=True) + 1e-5)
    shape = (1,) * (x.ndim - 1) + (-1,)
    assert layer.weight is not None
    assert layer.bias is not None
    return wide.astype(x.dtype) * layer.weight.reshape(shape) + layer.bias.reshape(shape)
