"""The surrogate: a table of samples in, a posterior over graphs out.

A pair of variables is a token. Samples are summarised first, by closed-form statistics and by
learned moments; then tokens look along their row (all effects of i) and, in the next block, along
their column (all causes of j), and in every block along all paths from i over k to j.
"""

from __future__ import annotations

import dataclasses
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
from acbo.surrogate._layers import Affine, across, in_parts, standard
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
    - `trained_for`: how many variables the tables had at most that it was trained on.
      `train_surrogate` sets it, and `acbo.discover` refuses larger tables; `None` is no limit.
    """

    hidden: int = 64
    blocks: int = 4
    heads: int = 4
    moments: int = 32
    compute_dtype: str = "float32"
    trained_for: int | None = None

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
        return jax.tree.map(lambda leaf: leaf[0], self._judge(alone, None))

    def now_trained_for(self, variables: int) -> Surrogate:
        """The same network, which tells that it was trained on tables of so many variables too."""
        largest = max(variables, self.config.trained_for or 0)
        config = dataclasses.replace(self.config, trained_for=largest)
        told = eqx.filter_eval_shape(lambda: Surrogate(config, key=jax.random.key(0)))
        return jax.tree.unflatten(jax.tree.structure(told), jax.tree.leaves(self))

    def many(self, samples: Samples) -> Prediction:
        """The posterior for each of a batch of tables, its axis first in every array.

        The same as `jax.vmap(network)`, and sooner done: what goes over all samples goes over those
        of a few tables at a time, and no layer is computed twice on the way back.
        """
        count = samples.variables.sum()
        return self._judge(apart(samples, count), count)

    def _judge(self, samples: Samples, count: Int[Array, ""] | None) -> Prediction:
        """Of tables: their axis is first in every array."""
        variables = samples.variables
        d = variables.shape[1]
        moments = self.moments(samples, count)
        of_many = jax.vmap(local_evidence, in_axes=(0, None))
        evidence = in_parts(lambda part: of_many(part, count), samples, _evidence.WAVES)
        statistics = jax.vmap(pair_statistics)(samples)
        eye = jnp.broadcast_to(jnp.eye(d)[None, :, :, None], (*moments.shape[:-1], 1))
        known = jnp.concatenate([moments, statistics, evidence, eye], axis=-1)
        mix = Affine.of(self.mix)
        weight = jnp.concatenate([mix.weight, self.diagonal[:, None]], axis=1)
        tokens = mix._replace(weight=weight)(known, count)

        dtype = jnp.dtype(self.config.compute_dtype)
        dynamic, static = eqx.partition(self.blocks, eqx.is_array)
        dynamic = jax.tree.map(lambda leaf: leaf.astype(dtype), dynamic)

        def apply(tokens, block):
            return eqx.combine(block, static)(tokens, variables, count), None

        # Unrolled: a loop would copy all that the way back needs, and take no less to compile.
        tokens, _ = lax.scan(apply, tokens.astype(dtype), dynamic, unroll=True)
        tokens = standard(tokens.astype(jnp.float32))
        both = jnp.concatenate([tokens, jnp.swapaxes(tokens, 1, 2)], axis=-1)
        scale, shift = _scale_and_shift(self.norm)
        wide = Affine.behind(jnp.tile(scale, 2), jnp.tile(shift, 2), self.wide)
        out = Affine.of(self.narrow)(jax.nn.relu(wide(both, count)), count)
        edges, scores, pairs = jnp.split(out, [1, 2], axis=-1)
        possible = variables[:, :, None] & variables[:, None, :] & ~jnp.eye(d, dtype=bool)[None]
        return Prediction(
            edge_logits=jnp.where(possible, edges[..., 0], _NEVER),
            cause_scores=jnp.where(possible, scores[..., 0], _NEVER),
            cause_pairs=jnp.where(possible[..., None], pairs, 0.0),
            tokens=tokens * scale[None, None, None] + shift[None, None, None],
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
        rows = samples.rows.astype(x.dtype)
        x, m, rows = apart((x, m, rows), count)
        other = jnp.broadcast_to(m.max(axis=1, keepdims=True), m.shape)
        # 1 in every row that exists: padding has nothing but zeros, in all layers.
        here = jnp.broadcast_to(rows[:, None], x.shape)
        features = jax.nn.relu(across(self.first, jnp.stack([x, m, other, x * m]), here))
        cause = across(self.cause, features, here)
        effect = across(self.effect, features, here)
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
        tokens: Float[Array, "t d d hidden"],
        variables: Bool[Array, "t d"],
        count: Int[Array, ""] | None,
    ) -> Float[Array, "t d d hidden"]:
        """The tokens after one look, turned."""
        tokens = tokens + self.rows(tokens, variables, count)
        tokens = tokens + self.paths(tokens, variables, count)
        wide = Affine.behind(*_scale_and_shift(self.norm), self.wide)
        thought = jax.nn.relu(wide(standard(tokens), count))
        return jnp.swapaxes(tokens + Affine.of(self.narrow)(thought, count), 1, 2)


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
        self,
        tokens: Float[Array, "t a b hidden"],
        variables: Bool[Array, "t b"],
        count: Int[Array, ""] | None,
    ) -> Float[Array, "t a b hidden"]:
        """What each token hears; padding is not heard."""
        t, a, b, hidden = tokens.shape
        ask = Affine.behind(*_scale_and_shift(self.norm), self.ask)
        asked = jnp.split(ask(standard(tokens), count), 3, axis=-1)
        # Tables last: variables, heads and what a head has are too few to fill a vector. And sums
        # of products: a matrix product for each head is far slower.
        turned = [part.reshape(t, a, b, self.heads, -1).transpose(1, 2, 3, 4, 0) for part in asked]
        query, key, value = apart(turned, count)
        weight = apart((query[:, :, None] * key[:, None]).sum(axis=4), count)
        silence = apart(jnp.where(variables.T, 0.0, -1e9).astype(tokens.dtype), count)
        weight = weight * (hidden // self.heads) ** -0.5 + silence[None, None, :, None]
        weight = jax.nn.softmax(weight, axis=2)
        heard = apart((weight[:, :, :, :, None] * value[:, None]).sum(axis=2), count)
        return Affine.of(self.answer)(heard.transpose(4, 0, 1, 2, 3).reshape(tokens.shape), count)


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
        self,
        tokens: Float[Array, "t d d hidden"],
        variables: Bool[Array, "t d"],
        count: Int[Array, ""] | None,
    ) -> Float[Array, "t d d hidden"]:
        """What each token learns from its paths; padding is no way."""
        legs = Affine.behind(*_scale_and_shift(self.norm), self.legs)(standard(tokens), count)
        first, second = jnp.split(legs, 2, axis=-1)
        size = jnp.maximum(variables.sum(axis=1, keepdims=True), 1).astype(tokens.dtype)
        first = first * (variables.astype(tokens.dtype) * size**-0.5)[:, None, :, None]
        ways = (first[:, :, :, None] * second[:, None]).sum(axis=2)
        return Affine.of(self.answer)(ways, count)


def _scale_and_shift(norm: eqx.nn.LayerNorm) -> tuple[Array, Array]:
    assert norm.weight is not None
    assert norm.bias is not None
    return norm.weight, norm.bias
