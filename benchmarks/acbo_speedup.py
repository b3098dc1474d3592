"""What compilation is worth to ACBO: training steps, and drawing causal models with their data.

    python benchmarks/acbo_speedup.py [--quick] [--rounds 5] [--eager]

Steps: the same function compiled, and operation by operation under `jax.disable_jit()`. Plain eager
JAX builds its loops again at every call, from the persistent cache if they are there;
`--eager` measures it too. The results are compared with each other first. Tables have 4 variables
and 20 samples, the network 2 layers.

Drawing: models of 5 variables with 100 samples each, alone and as part of a whole training on all
cores. Against it stand loops over samples and variables, which draw the same models and learn
nothing: in plain Python; with each value computed by JAX; and with the table, too, written entry by
entry by JAX. The last is how the public ACBO comes to the table that a training step takes, as read
in its source: its sampler computes each value by JAX, `create_training_batch` writes each entry.

Every figure is a ratio of times taken in turn, with a 95 % interval; compile times are in none.
"""

from __future__ import annotations

import random
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

from acbo.scm import Family
from acbo.surrogate import (
    Curriculum,
    Lesson,
    Surrogate,
    SurrogateConfig,
    TrainingConfig,
    candidate_sets,
    train_surrogate,
)
from acbo.training import (
    TrainingBatchJAX,
    create_jax_surrogate_train_step,
    create_parent_set_model,
)
from worldloom import bench, mesh

GROUP = "acbo"
VARIABLES, SAMPLES = 4, 20
mesh.use_every_core()  # before anything is computed
KEY = jax.random.key(0)


def batch_of(size):
    """Tables of random models, with the true causes of a random target as the answer."""
    family = Family()
    draw = jax.jit(jax.vmap(lambda key: family.study(key, VARIABLES, SAMPLES, interventional=0.5)))
    scms, samples = jax.device_get(draw(jax.random.split(KEY, size)))
    rng = np.random.default_rng(0)
    targets = rng.integers(0, VARIABLES, size)
    names = list(range(VARIABLES))
    data = np.zeros((size, SAMPLES, VARIABLES, 3), np.float32)
    data[..., 0], data[..., 1] = samples.values, samples.intervened
    sets, probs = [], []
    for b, target in enumerate(targets):
        data[b, :, target, 2] = 1
        table = candidate_sets(VARIABLES, 3)
        table = table[~table[:, target]]
        sets.append([frozenset(np.flatnonzero(one).tolist()) for one in table])
        probs.append((table == scms.graph.edges[b][:, target]).all(axis=1))
    return TrainingBatchJAX(
        data, np.array(probs), np.ones(size), sets, [names] * size, targets.tolist()
    )


def cosine(params, fast, slow):
    """Of the two updates."""
    flat = [
        np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(one)])
        for one in (params, fast, slow)
    ]
    a, b = flat[1] - flat[0], flat[2] - flat[0]
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def operations(step, *args):
    """How many operations the uncompiled step hands to JAX, one after the other."""
    problem, key = step.problem(*args[2:])
    with jax.disable_jit():
        program = jax.make_jaxpr(step.update)(*args[:2], problem, key)
    return len(program.jaxpr.eqns)


def steps(script, options):
    hidden = (16,) if options.quick else (16, 128, 512)
    sizes = (8,) if options.quick else (2, 8, 32, 128)
    for width in hidden:
        model = create_parent_set_model({"hidden_dim": width, "layers": 2})
        step = create_jax_surrogate_train_step(model, optax.sgd(1e-2))
        slow_step = step.uncompiled
        params, opt_state = step.init(KEY)
        for size in sizes:
            args = (params, opt_state, batch_of(size), KEY)
            began = time.perf_counter()
            fast = jax.block_until_ready(step(*args))
            first = time.perf_counter() - began
            slow = slow_step(*args)
            alike = cosine(params, fast[0], slow[0])
            if not alike > 0.9999 or abs(fast[2]["total_loss"] - slow[2]["total_loss"]) > 1e-4:
                raise SystemExit(f"hidden {width}, batch {size}: the two ways differ ({alike})")
            variants = {
                "uncompiled": lambda args=args, slow=slow_step: slow(*args),
                "compiled": lambda args=args, step=step: step(*args),
            }
            if options.eager:
                inside = (params, opt_state, *step.problem(*args[2:]))
                variants["eager"] = lambda step=step, inside=inside: step.update(*inside)
            found = bench.compare(
                variants,
                rounds=options.rounds,
                seconds=0.2,
                title=f"training step, hidden {width}, batch {size}",
            )
            built = {"compiled": first - found["compiled"].median}
            script.case(found, ours="compiled", naive="uncompiled", compiling=built)
            saved = found["uncompiled"].median - found["compiled"].median
            name = f"steps until compiling has paid, hidden {width}, batch {size}"
            script.figure(name, built["compiled"] / saved)
            if size == sizes[0]:
                count = operations(step, *args)
                script.figure(f"operations of an uncompiled step, hidden {width}", count)


def numpy_table(rows, chosen):
    """Arrays of samples, and of which variable was set in each: `chosen`, or none."""
    table = np.array(rows, np.float32)
    intervened = np.zeros(table.shape, bool)
    for i, j in enumerate(chosen):
        if j is not None:
            intervened[i, j] = True
    return table, intervened


def jax_table(rows, chosen):
    """The same, entry by entry: each makes a new array."""
    table = intervened = jnp.zeros((len(rows), len(rows[0])))
    for i, (row, fixed) in enumerate(zip(rows, chosen, strict=True)):
        for j, value in enumerate(row):
            table = table.at[i, j].set(value)
        if fixed is not None:
            intervened = intervened.at[i, fixed].set(1.0)
    return table, intervened


def python_scm(rng, d, n, mechanism, tabulate=numpy_table):
    """One random linear model and `n` samples, half of them under an intervention, in loops.

    `mechanism(weights, scale)` takes the weight of each cause and gives a function from the values
    of all variables to that of one.
    """
    order = rng.sample(range(d), d)
    chance = 2 / (d - 1)
    mechanisms = {}
    for p, j in enumerate(order):
        causes = [i for i in order[:p] if rng.random() < chance]
        weights = {i: rng.choice((-1, 1)) * rng.uniform(0.5, 2) for i in causes}
        mechanisms[j] = mechanism(weights, rng.uniform(0.5, 1.5))
    rows, chosen = [], []
    for _ in range(n):
        fixed = rng.randrange(d) if rng.random() < 0.5 else None
        values = [0.0] * d
        for j in order:
            if j == fixed:
                values[j] = rng.choice((-1, 1)) * rng.uniform(1, 3)
            else:
                values[j] = mechanisms[j](values)
        rows.append(values)
        chosen.append(fixed)
    table, intervened = tabulate(rows, chosen)
    return (table - table.mean(axis=0)) / table.std(axis=0), intervened


def plain_mechanism(rng):
    def mechanism(weights, scale):
        pairs = list(weights.items())
        return lambda values: sum([w * values[i] for i, w in pairs]) + scale * rng.gauss(0.0, 1.0)

    return mechanism


def jax_mechanism(rng):
    """Each value by a few operations of JAX, one after the other."""
    state = [jax.random.key(rng.randrange(2**31))]

    def mechanism(weights, scale):
        causes, weights = list(weights), jnp.array(list(weights.values()))

        def value(values):
            state[0], key = jax.random.split(state[0])
            noise = scale * jax.random.normal(key)
            if not causes:
                return float(noise)
            return float(jnp.dot(weights, jnp.array([values[i] for i in causes])) + noise)

        return value

    return mechanism


def training(d, n, steps=200, batch=64):
    """A whole training on all cores, which draws its models as it goes, and how many it draws."""
    curriculum = Curriculum(
        (Lesson((d, d), (n, n), batch),),
        ((Family(), 1.0),),
        observational=0.0,
        interventional=(0.5, 0.5),
    )
    network = Surrogate(SurrogateConfig(hidden=16, blocks=2, moments=8), key=KEY)
    config, devices = TrainingConfig(steps=steps), mesh.worlds_mesh()

    def train():
        return train_surrogate(
            KEY, curriculum, surrogate=network, config=config, devices=devices, progress=False
        ).state.average

    return train, steps * batch


def generation(script, options):
    d, n, many = 5, 100, 1024
    family = Family()
    on_device = jax.jit(jax.vmap(lambda key: family.study(key, d, n, interventional=0.5)))
    keys = jax.random.split(KEY, many)
    rng = random.Random(0)
    for causes in range(d):  # each number of causes is a program of its own
        jax_mechanism(rng)(dict.fromkeys(range(causes), 1.0), 1.0)([0.0] * d)
    loops = {
        "Python, values and table by JAX": lambda: python_scm(
            rng, d, n, jax_mechanism(rng), jax_table
        ),
        "Python, values by JAX": lambda: python_scm(rng, d, n, jax_mechanism(rng)),
        "plain Python": lambda: python_scm(rng, d, n, plain_mechanism(rng)),
    }
    sides = {"drawn": (lambda: on_device(keys), many)}
    if not options.quick:  # it takes longer to compile than all the rest
        sides["drawn and learned from"] = training(d, n)
    for what, (ours, count) in sides.items():
        found = bench.compare(
            loops | {"device": ours},
            rounds=options.rounds,
            seconds=0.2,
            items=dict.fromkeys(loops, 1) | {"device": count},
            unit="SCMs",
            title=f"models of {d} variables with {n} samples, {what}",
        )
        script.case(found, ours="device", naive="plain Python")


def main():
    script = bench.Script(__doc__, group=GROUP, rounds=(7, 3))
    script.parser.add_argument("--eager", action="store_true", help="plain eager JAX too")
    options = script.start()
    generation(script, options)
    steps(script, options)
    script.finish()


if __name__ == "__main__":
    main()
