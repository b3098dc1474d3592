"""The surrogate: a table of samples in, a posterior over graphs out.

A pair of variables is a token. Samples are summarised first, by closed-form statistics and by
learned moments; then tokens look along their row (all effects of i) and, in the next block, along
their column (all causes of j), and in every block along all paths from i over k to j.
"""

from __future__ import annotations

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
_CACHED = 2**17  # numbers of one layer of moments: half a megabyte
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
        """The posterior for one table. Use `many` for a batch."""
        batch = jax.tree.map(lambda leaf: leaf[None], samples)
        return jax.tree.map(lambda leaf: leaf[0], self.many(batch))

    def many(self, samples: Samples) -> Prediction:
        """The posterior for each of a batch of tables, its axis first in every array.

        The same as `jax.vmap(network)`, and faster: inside, tables are the last axis.
        """
        variables, count = samples.variables.T, samples.variables.sum()
        d = variables.shape[0]
        samples = apart(samples, count)
        known = [
            self.moments(samples),
            _tables_last(jax.vmap(pair_statistics)(samples)),
            _tables_last(jax.vmap(local_evidence)(samples)),
        ]
        eye = jnp.eye(d)[None, :, :, None]
        tokens = linear(self.mix.weight, self.mix.bias, jnp.concatenate(known))
        tokens = tokens + eye * self.diagonal[:, None, None, None]

        dtype = jnp.dtype(self.config.compute_dtype)
        dynamic, static = eqx.partition(self.blocks, eqx.is_array)
        dynamic = jax.tree.map(lambda leaf: leaf.astype(dtype), dynamic)

        def apply(tokens, block):
            return eqx.combine(block, static)(tokens, variables, count), None

        tokens, _ = lax.scan(apply, tokens.astype(dtype), dynamic, unroll=2)
        normal = normalise(tokens.astype(jnp.float32))
        # What a token says, and what its mirror image says.
        own, other = jnp.split(self.wide.weight, 2, axis=1)
        own = linear(*after(self.norm, own, self.wide.bias), normal)
        other = linear(*after(self.norm, other), normal)
        out = jax.nn.relu(own + jnp.swapaxes(other, 1, 2))
        out = linear(self.narrow.weight, self.narrow.bias, out)
        possible = variables[:, None] & variables[None, :] & ~jnp.eye(d, dtype=bool)[..., None]
        return Prediction(
            edge_logits=_tables_first(jnp.where(possible, out[0], _NEVER)),
            cause_scores=_tables_first(jnp.where(possible, out[1], _NEVER)),
            cause_pairs=_tables_first(jnp.where(possible[None], out[2:], 0.0)),
            tokens=_tables_first(linear(*after(self.norm, jnp.eye(normal.shape[0])), normal)),
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

    def __call__(self, samples: Samples) -> Float[Array, "moments d d tables"]:
        """One vector for each pair of variables of each table.

        As many tables at a time as have features that stay in a core's cache, where the way back
        finds them again.
        """
        tables, n, d = samples.values.shape
        fit = max(_CACHED // (self.first.weight.shape[0] * n * d), 1)
        size = max(k for k in range(1, tables + 1) if tables % k == 0 and k <= fit)
        parts = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), samples)
        found = lax.map(self._part, parts)  # [parts, moments, size, d, d]
        return jnp.transpose(found, (1, 3, 4, 0, 2)).reshape(-1, d, d, tables)

    def _part(self, samples: Samples) -> Float[Array, "moments tables d d"]:
        x = jnp.swapaxes(samples.values, 1, 2)
        m = jnp.swapaxes(samples.intervened, 1, 2).astype(x.dtype)
        x, m = apart((x, m), samples.rows.sum())
        other = jnp.broadcast_to(m.max(axis=1, keepdims=True), m.shape)
        rows = samples.rows.astype(x.dtype)
        cells = jnp.stack([x, m, other, x * m])
        features = jax.nn.relu(linear(self.first.weight, self.first.bias, cells))
        cause = linear(self.cause.weight, self.cause.bias, features) * rows[None, :, None, :]
        effect = linear(self.effect.weight, self.effect.bias, features)
        return _mean_products(cause, effect, jnp.maximum(rows.sum(axis=1), 1.0))


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
    count = count[None, :, None, None]
    return (g / count) @ b, (jnp.swapaxes(g, 2, 3) / count) @ a, None


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
        tokens: Float[Array, "hidden d d tables"],
        variables: Bool[Array, "d tables"],
        count: Int[Array, ""],
    ) -> Float[Array, "hidden d d tables"]:
        """The tokens after one look, turned."""
        tokens = apart(tokens + self.rows(tokens, variables), count)
        tokens = apart(tokens + self.paths(tokens, variables), count)
        thought = jax.nn.relu(
            linear(*after(self.norm, self.wide.weight, self.wide.bias), normalise(tokens))
        )
        tokens = apart(tokens + linear(self.narrow.weight, self.narrow.bias, thought), count)
        return jnp.swapaxes(tokens, 1, 2)


class Attention(eqx.Module):
    """Attention along the third axis."""

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
        self, tokens: Float[Array, "hidden a b tables"], variables: Bool[Array, "b tables"]
    ) -> Float[Array, "hidden a b tables"]:
        """What each token hears; padding is not heard."""
        normal = normalise(tokens)
        query, key, value = (
            linear(*after(self.norm, weight), normal).reshape(self.heads, -1, *tokens.shape[1:])
            for weight in jnp.split(self.ask.weight, 3)
        )
        # Sums of products: with a few variables, a matrix product for each head is far slower, and
        # so it is for each number of a path below.
        match = (query[:, :, :, :, None] * key[:, :, :, None, :]).sum(axis=1)
        match = match * (tokens.shape[0] // self.heads) ** -0.5
        match = jnp.where(variables[None, None, None], match, -1e9)
        match = jax.nn.softmax(match, axis=3)
        heard = (match[:, None] * value[:, :, :, None]).sum(axis=4)
        return linear(self.answer.weight, self.answer.bias, heard.reshape(tokens.shape))


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
        self, tokens: Float[Array, "hidden d d tables"], variables: Bool[Array, "d tables"]
    ) -> Float[Array, "hidden d d tables"]:
        """What each token learns from its paths; padding is no way."""
        assert self.legs.bias is not None
        normal = normalise(tokens)
        exists = (variables[:, None] & variables[None, :])[None]
        first, second = (
            jnp.where(exists, linear(*after(self.norm, weight, bias), normal), 0)
            for weight, bias in zip(
                jnp.split(self.legs.weight, 2), jnp.split(self.legs.bias, 2), strict=True
            )
        )
        count = jnp.maximum(variables.sum(axis=0), 1).astype(tokens.dtype)
        ways = (first[:, :, :, None] * second[:, None]).sum(axis=2)
        ways = ways * (count**-0.5)[None, None, None, :]
        return linear(self.answer.weight, self.answer.bias, ways)


def linear(
    weight: Float[Array, "m n"], bias: Float[Array, " m"] | None, x: Float[Array, "n ..."]
) -> Float[Array, "m ..."]:
    """A linear layer along the first axis, as one matrix product."""
    flat = x.reshape(x.shape[0], -1)
    if bias is not None:
        # A feature that is always 1: so the product for the weight's gradient gives the bias's too.
        weight = jnp.concatenate([weight, bias[:, None]], axis=1)
        flat = jnp.concatenate([flat, jnp.ones_like(flat[:1])])
    return (weight @ flat).reshape(-1, *x.shape[1:])


def after(
    norm: eqx.nn.LayerNorm, weight: Float[Array, "m n"], bias: Float[Array, " m"] | None = None
) -> tuple[Float[Array, "m n"], Float[Array, " m"]]:
    """A layer that takes what `normalise` gives, with the scale and shift of the norm in it."""
    assert norm.weight is not None
    assert norm.bias is not None
    shift = weight @ norm.bias
    return weight * norm.weight[None, :], shift if bias is None else shift + bias


def normalise(x: Float[Array, "n ..."]) -> Float[Array, "n ..."]:
    """Mean 0 and variance 1 along the first axis, computed in float32."""
    wide = x.astype(jnp.float32)
    wide = wide - wide.mean(axis=0, keepdims=True)
    wide = wide * lax.rsqrt((wide**2).mean(axis=0, keepdims=True) + 1e-5)
    return wide.astype(x.dtype)


def _tables_last(x: Float[Array, "tables d d n"]) -> Float[Array, "n d d tables"]:
    return jnp.transpose(x, (3, 1, 2, 0))


def _tables_first(x: Float[Array, "... d d tables"]) -> Float[Array, "tables d d ..."]:
    return jnp.transpose(x, (x.ndim - 1, x.ndim - 3, x.ndim - 2, *range(x.ndim - 3)))
