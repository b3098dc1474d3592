"""`check_environment`: play, compare, and name the rule that is broken."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from worldloom import no_compiles
from worldloom._errors import WorldloomError
from worldloom.compile import RecompileError


class ConformanceError(WorldloomError, AssertionError):
    """An environment breaks a rule."""


@runtime_checkable
class ManyWorlds(Protocol):
    """What `check_environment` asks of an environment; every array has the worlds first.

    `info` has `terminated`, `truncated`, `valid` and `final_observation`. Actions have an
    `operation`, and `action_mask` says which operations may be used.
    """

    @property
    def action_mask(self) -> jax.Array:
        """Which operations may be used: `bool[operations]`."""
        ...

    def reset(self, key: jax.Array, *, worlds: int) -> tuple[Any, Any]:
        """`(state, observation)` of new episodes."""
        ...

    def step(self, states: Any, actions: Any) -> tuple[Any, Any, Any, Any, Any]:
        """`(state, observation, reward, done, info)`; where an episode ends, a new one begins."""
        ...

    def random_action(self, key: jax.Array, *, worlds: int) -> Any:
        """Actions drawn at random from those that may be used."""
        ...


class _Played(NamedTuple):
    """One step of every world, and what was before it."""

    state: Any
    action: Any
    result: tuple[Any, Any, Any, Any, Any]


def check_environment(
    env: ManyWorlds, *, key: jax.Array, worlds: int = 8, steps: int = 64
) -> tuple[str, ...]:
    """Play an environment with random actions and check that it keeps to the rules.

    - **shapes**: states and observations keep their structure, shapes and dtypes; reward is a
      float, done, terminated and truncated are bools, one a world.
    - **purity**: the same key and the same actions give the same, and arguments do not change.
    - **scan**: a compiled scan gives what single calls give.
    - **vmap**: two halves of the worlds, mapped, give what the whole gives: no world knows of
      another.
    - **ends**: done is terminated or truncated, never both.
    - **last observation**: `final_observation` is the observation while an episode goes on, and
      not that of the new episode where it ended.
    - **new episodes**: a world whose episode ended plays on.
    - **keys**: other keys give other episodes; a new episode has a new key.
    - **mask**: random actions keep to the mask; a forbidden one is not valid and changes nothing
      that is seen.
    - **compilation**: other values compile nothing.

    **Arguments:**

    - `worlds`: an even number.
    - `steps`: enough for some episode to end; it is an error if none does.

    **Returns:** the names of the rules. Raises `ConformanceError` at the first that is broken.

    ```python
    import jax
    import jaxarc
    from jaxarc.testing import check_environment

    env = jaxarc.make("AGI1-train", ids=["007bbfb7", "00d62c1b"])
    check_environment(env, key=jax.random.key(0), worlds=2, steps=32)
    ```
    """
    if worlds < 2 or worlds % 2 or steps < 2:
        raise ValueError(f"worlds must be even, steps 2 or more, got {worlds} and {steps}")
    of_reset, of_actions = jax.random.split(key)
    actions = [
        env.random_action(jax.random.fold_in(of_actions, t), worlds=worlds) for t in range(steps)
    ]
    start = env.reset(of_reset, worlds=worlds)
    played = _play(env, start[0], actions)
    _shapes(start, played, worlds)
    _purity(env, of_reset, start, played)
    _ends(played)
    _last_observation(played)
    _new_episodes(played)
    _keys(env, of_reset, start, played, worlds)
    _mask(env, played)
    _scan(env, start[0], played)
    _vmap(env, played[0], worlds)
    return (
        "shapes",
        "purity",
        "ends",
        "last observation",
        "new episodes",
        "keys",
        "mask",
        "compilation",
        "scan",
        "vmap",
    )


def _refuse(rule: str, what: str) -> None:
    raise ConformanceError(f"{rule}: {what}")


def _play(env: ManyWorlds, state: Any, actions: list[Any]) -> list[_Played]:
    """Single calls, the first two of which may compile: a state of a reset and one of a step."""
    played: list[_Played] = []

    def go_on(some: list[Any]) -> None:
        for action in some:
            before = played[-1].result[0] if played else state
            played.append(_Played(before, action, jax.block_until_ready(env.step(before, action))))

    go_on(actions[:2])
    try:
        with no_compiles():
            go_on(actions[2:6])
    except RecompileError as error:
        _refuse("compilation", f"a step of other values compiled again; {error}")
    go_on(actions[6:])
    return played


def _plain(leaf: Any) -> np.ndarray:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def _differences(one: Any, other: Any, rtol: float = 0.0) -> list[str]:
    """Paths of the leaves in which two trees differ."""
    if jax.tree.structure(one) != jax.tree.structure(other):
        return ["the structure of the tree"]
    pairs = zip(jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(other), strict=True)
    return [
        jax.tree_util.keystr(path) or "the array"
        for (path, a), b in pairs
        if a.shape != b.shape or not _alike(_plain(a), _plain(b), rtol)
    ]


def _alike(a: np.ndarray, b: np.ndarray, rtol: float) -> bool:
    if rtol and np.issubdtype(a.dtype, np.floating):
        return np.allclose(a, b, rtol=rtol, atol=rtol, equal_nan=True)
    return np.array_equal(a, b, equal_nan=np.issubdtype(a.dtype, np.inexact))


def _form(tree: Any) -> list[tuple[str, str]]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [(jax.tree_util.keystr(path), f"{x.dtype}{list(x.shape)}") for path, x in leaves]


def _shapes(start: tuple[Any, Any], played: list[_Played], worlds: int) -> None:
    for number, (_, _, result) in enumerate(played):
        for name, before, after in (
            ("state", start[0], result[0]),
            ("observation", start[1], result[1]),
            ("final_observation", start[1], result[4].final_observation),
        ):
            if jax.tree.structure(before) != jax.tree.structure(after):
                _refuse("shapes", f"the {name} of step {number} is another kind of tree")
            for (path, old), (_, new) in zip(_form(before), _form(after), strict=True):
                if old != new:
                    _refuse("shapes", f"{name}{path} was {old}, after step {number} it is {new}")
        _, _, reward, done, info = result
        named = {"done": done, "terminated": info.terminated, "truncated": info.truncated}
        for name, value, kind, wanted in (
            ("reward", reward, jnp.floating, "floating"),
            *((name, value, jnp.bool_, "bool") for name, value in named.items()),
        ):
            if value.shape != (worlds,) or not jnp.issubdtype(value.dtype, kind):
                _refuse(
                    "shapes",
                    f"{name} is {value.dtype}{list(value.shape)}, expected {wanted} "
                    f"of shape [{worlds}]",
                )


def _purity(env: ManyWorlds, key: jax.Array, start: Any, played: list[_Played]) -> None:
    worlds = played[0].result[3].shape[0]
    if changed := _differences(start, env.reset(key, worlds=worlds)):
        _refuse("purity", f"a second reset with the same key differs in {changed[0]}")
    first = played[0]
    given = jax.tree.map(lambda leaf: leaf.copy(), (first.state, first.action))
    again = env.step(first.state, first.action)
    if changed := _differences(first.result, again):
        _refuse("purity", f"a second step with the same arguments differs in {changed[0]}")
    if changed := _differences(given, (first.state, first.action)):
        _refuse("purity", f"a step changed its argument in {changed[0]}")


def _ends(played: list[_Played]) -> None:
    any_end = False
    for number, (_, _, (_, _, _, done, info)) in enumerate(played):
        terminated, truncated = np.asarray(info.terminated), np.asarray(info.truncated)
        if (terminated & truncated).any():
            _refuse("ends", f"at step {number} an episode is both terminated and truncated")
        if not np.array_equal(np.asarray(done), terminated | truncated):
            _refuse("ends", f"at step {number} done is not `terminated or truncated`")
        any_end = any_end or bool(np.asarray(done).any())
    if not any_end:
        _refuse("ends", f"no episode ended in {len(played)} steps: give more `steps`")


def _rows(tree: Any, which: np.ndarray) -> Any:
    return jax.tree.map(lambda leaf: leaf[which], tree)


def _last_observation(played: list[_Played]) -> None:
    for number, (_, _, (_, seen, _, done, info)) in enumerate(played):
        going = ~np.asarray(done)
        if changed := _differences(_rows(info.final_observation, going), _rows(seen, going)):
            _refuse(
                "last observation",
                f"at step {number} no episode ended, but final_observation{changed[0]} is not "
                f"the observation",
            )
    ended = [
        (_rows(info.final_observation, np.asarray(done)), _rows(seen, np.asarray(done)))
        for _, _, (_, seen, _, done, info) in played
        if np.asarray(done).any()
    ]
    if not any(_differences(last, first) for last, first in ended):
        _refuse(
            "last observation",
            "wherever an episode ended, final_observation is the first observation of the next",
        )


def _new_episodes(played: list[_Played]) -> None:
    stuck = moved = 0
    for (_, _, before), (_, _, after) in itertools.pairwise(played):
        ended = np.asarray(before[3])
        stuck += int(np.asarray(after[3])[ended].sum())
        moved += int((~np.asarray(after[3]))[ended].sum())
    if stuck and not moved:
        _refuse("new episodes", "a world whose episode ended is done for ever: it does not restart")


def _key_leaves(tree: Any) -> list[np.ndarray]:
    leaves = jax.tree.leaves(tree)
    return [_plain(leaf) for leaf in leaves if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)]


def _keys(env: ManyWorlds, key: jax.Array, start: Any, played: list[_Played], worlds: int) -> None:
    other = env.reset(jax.random.fold_in(key, 1), worlds=worlds)
    if not _differences(start, other):
        _refuse("keys", "a reset with another key gives the same states and observations")
    for number, (before, _, (after, _, _, done, _)) in enumerate(played):
        ended = np.asarray(done)
        for old, new in zip(_key_leaves(before), _key_leaves(after), strict=True):
            if ended.any() and (old[ended] == new[ended]).all(axis=tuple(range(1, old.ndim))).any():
                _refuse("keys", f"at step {number} a new episode has the key of the old one")


def _mask(env: ManyWorlds, played: list[_Played]) -> None:
    allowed = np.asarray(env.action_mask)
    for _, action, _ in played:
        drawn = np.asarray(action.operation)
        if ((drawn < 0) | (drawn >= len(allowed))).any() or not allowed[drawn].all():
            _refuse("mask", "random_action draws an operation that the mask forbids")
    forbidden = np.flatnonzero(~allowed)
    if not len(forbidden):
        return
    state, action, _ = played[1]
    seen = played[0].result[1]
    chosen = jnp.asarray(np.resize(forbidden, action.operation.shape), action.operation.dtype)
    bad = eqx.tree_at(lambda a: a.operation, action, chosen)
    _, _, _, _, info = env.step(state, bad)
    if np.asarray(info.valid).any():
        _refuse("mask", "a forbidden operation is called valid")
    if np.asarray(info.terminated).any():
        _refuse("mask", "a forbidden operation ended an episode")
    if changed := _picture(info.final_observation, seen):
        _refuse("mask", f"a forbidden operation changed the observation in {changed}")


def _picture(after: Any, before: Any) -> str | None:
    """The first part of an observation that differs; counters of steps may."""
    for name in _differences(after, before):
        if "step" not in name:
            return name
    return None


def _scan(env: ManyWorlds, state: Any, played: list[_Played]) -> None:
    def step(state: Any, action: Any) -> Any:
        state, seen, reward, done, _ = env.step(state, action)
        return state, (seen, reward, done)

    actions = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(p.action for p in played))
    last, outputs = jax.jit(lambda state, actions: jax.lax.scan(step, state, actions))(
        state, actions
    )
    if changed := _differences(played[-1].result[0], last, rtol=1e-5):
        _refuse("scan", f"after a compiled scan the state differs in {changed[0]}")
    for number, one in enumerate(played):
        row = jax.tree.map(lambda leaf, number=number: leaf[number], outputs)
        if changed := _differences(one.result[1:4], row, rtol=1e-5):
            _refuse("scan", f"step {number} of a compiled scan differs in {changed[0]}")


def _vmap(env: ManyWorlds, first: _Played, worlds: int) -> None:
    halves = jax.tree.map(
        lambda leaf: leaf.reshape(2, worlds // 2, *leaf.shape[1:]), (first.state, first.action)
    )
    mapped = jax.vmap(env.step)(*halves)
    whole = jax.tree.map(lambda leaf: leaf.reshape(worlds, *leaf.shape[2:]), mapped)
    if changed := _differences(first.result, whole, rtol=1e-5):
        _refuse(
            "vmap",
            f"two halves of the worlds, mapped, differ from the whole in {changed[0]}: worlds "
            f"must not know of each other",
        )
