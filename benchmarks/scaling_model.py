"""How far it scales: steps and all-reduces measured here, and a model of more hosts.

A host is one core here. Each system is timed on one process, then on two at once with twice the
work, each on a core of its own; and so are sums of several sizes between the two. A model of those
numbers is held against the second measurement, and asked for 8, 64 and 1,024 hosts on a stated
network.

    python benchmarks/scaling_model.py [--quick] [--rounds 9] [--json FILE] [--page FILE]
    python benchmarks/scaling_model.py --from docs/scaling.json --page docs/scaling.md
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worldloom import bench, mesh

GROUP = "engine"
HOSTS = (8, 64, 1024)
NETWORK = {"latency": 5e-6, "bandwidth": 25e9}
SUMS = (4, 4096, 65_536, 1_048_576, 16_777_216)  # bytes of an all-reduce


@dataclasses.dataclass(frozen=True)
class System:
    """What the model knows of a system: seconds and items of a step, and what it sums."""

    seconds: float
    items: int
    unit: str
    messages: int = 0
    bytes: int = 0


def all_reduce(hosts: int, size: float, latency: float, bandwidth: float) -> float:
    """Seconds of a ring: twice around, a hop at a time, each hop with its share of the bytes."""
    hops = 2 * (hosts - 1)
    return hops * latency + hops / hosts * size / bandwidth


def throughput(system: System, hosts: int, latency: float, bandwidth: float) -> float:
    """Items a second over all hosts, each with as much work as one had."""
    talk = 0.0
    if system.messages:
        each = system.bytes / system.messages
        talk = system.messages * all_reduce(hosts, each, latency, bandwidth)
    return hosts * system.items / (system.seconds + talk)


def fit(sums: dict[int, float]) -> tuple[float, float]:
    """Latency and bandwidth of two hosts, from seconds of all-reduces by size.

    The smallest sum is all latency, the largest nearly all bandwidth: on the way there caches and
    buffers change the slope, which a straight line through all sizes would blur.
    """
    (small, first), *_, (large, last) = sorted(sums.items())
    return first / 2, (large - small) / max(last - first, 1e-9)


# ---- measuring: one process of one or two ----


def arc_rollout(quick: bool, share: Any) -> tuple[Callable, System]:
    import jax

    from jaxarc.envs import make
    from jaxarc.envs._environment import ready

    worlds, steps = (128, 4) if quick else (512, 16)
    env = make("AGI1-train", subset="up-to-10x10")
    policy = lambda params, seen, key: env.random_action(key, worlds=worlds)  # noqa: E731
    step, start = ready(env, policy, None, jax.random.key(0), worlds=worlds, observations=False)
    return _looped(step, start, steps)[0], System(0.0, worlds * steps, "steps")


def arc_train(quick: bool, share: Any) -> tuple[Callable, System]:
    import jax

    from jaxarc import training

    small = {"worlds": 64, "steps": 8, "width": 16} if quick else {"worlds": 256}
    config = training.PPOConfig(**small)
    config = dataclasses.replace(config, worlds=config.worlds * share.size)
    env = training.environment_for(training.tiny_tasks(side=5))
    state = training.begin_training(env, jax.random.key(0), config=config, devices=share)
    tasks = mesh.replicate(env.buffer, share)
    step = training.TrainStep(tasks, env.config, config, share)
    weights = sum(leaf.size for leaf in jax.tree.leaves(state.network))
    rows = config.epochs * config.minibatches  # of gradients, with six losses each
    items = config.worlds // share.size * config.steps
    talk = System(0.0, items, "steps", rows + 5, 4 * (rows * (weights + 6) + 5))
    return _looped(step, state, 1)[0], talk


def trace(quick: bool, share: Any) -> tuple[Callable, System]:
    import numpy as np

    import jaxtrace as jt

    rng = np.random.default_rng(0)
    count, steps = (2000, 20) if quick else (20_000, 100)
    axis = np.linspace(0, 1, 24)
    field = jt.StructuredField(
        rng.normal(size=(5, 24, 24, 24, 3)).astype(np.float32) / 50,
        axes=(axis, axis, axis),
        times=np.linspace(0, 1, 5),
    )
    tracker = jt.create_tracker("rk4", field=field, device_count=1)
    seeds = rng.uniform(0.3, 0.7, (count, 3))

    def go() -> None:
        tracker.track_particles(seeds, time_span=(0.0, 1.0), n_timesteps=steps, save_every=steps)

    return go, System(0.0, count * steps, "particle-steps")


def acbo_train(quick: bool, share: Any) -> tuple[Callable, System]:
    import jax

    from acbo.scm import Family
    from acbo.surrogate import Curriculum, Lesson, SurrogateConfig, TrainingConfig, TrainStep
    from acbo.surrogate import begin_training as begin

    batch = 8 if quick else 32
    sizes = SurrogateConfig(hidden=16, blocks=2) if quick else SurrogateConfig()
    lesson = Lesson((5, 5), (50, 50), batch=batch * share.size)
    lessons = Curriculum(lessons=(lesson,), families=((Family(), 1.0),))
    config = TrainingConfig(steps=1000)
    state = mesh.replicate(begin(jax.random.key(0), surrogate=sizes, config=config), share)
    step = TrainStep(lessons, config, share)
    weights = sum(leaf.size for leaf in jax.tree.leaves(state.network))
    call, program = _looped(step, state, 1)
    counted = program.count(" all-reduce(") + program.count(" all-reduce-start(")
    return call, System(0.0, batch, "tables", counted, 4 * weights)


SYSTEMS = {
    "arc rollout": arc_rollout,
    "arc training": arc_train,
    "trace": trace,
    "acbo training": acbo_train,
}


def _looped(step: Callable, state: Any, steps: int) -> tuple[Callable[[], None], str]:
    """A call that takes the state some steps on, from where the last one left it; its program."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    bound, frame = eqx.partition(step, eqx.is_array)
    arrays, rest = eqx.partition(state, eqx.is_array)

    @jax.jit
    def go(arrays, bound, t):
        def body(arrays, i):
            after, _ = eqx.combine(bound, frame)(eqx.combine(arrays, rest), t + i)
            return eqx.filter(after, eqx.is_array), None

        return jax.lax.scan(body, arrays, jnp.arange(steps))[0]

    program = go.lower(arrays, bound, jnp.int32(0)).compile()
    held = {"arrays": arrays, "t": 0}

    def call() -> None:
        after = program(held["arrays"], bound, jnp.int32(held["t"]))
        held.update(arrays=jax.block_until_ready(after), t=held["t"] + steps)

    return call, program.as_text() or ""


def measure_here(quick: bool, rounds: int, out: Path) -> None:
    """What one process does: time every system in turn, with the others of its run."""
    process = int(os.environ["WORLDLOOM_PROCESS"])
    if sys.platform == "linux":  # a core for each, before JAX counts them
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[process % len(cores)]})
    import jax
    import jax.numpy as jnp
    import numpy as np

    with mesh.joined() as first:
        share = mesh.worlds_mesh()
        ready = {name: make(quick, share) for name, make in SYSTEMS.items()}
        calls = {name: call for name, (call, _) in ready.items()}
        total = jax.jit(mesh.each_device(lambda x: jax.lax.psum(x, mesh.AXIS), share))
        for size in SUMS if jax.process_count() > 1 else ():
            x = mesh.shard(jnp.zeros((jax.process_count(), size // 4)), share)
            calls[f"sum of {size}"] = lambda x=x: jax.block_until_ready(total(x))
        times: dict[str, list[float]] = {name: [] for name in calls}
        for call in calls.values():
            call()
            call()
        for _ in range(rounds):
            for name, call in calls.items():
                mesh.join(np.zeros(1))  # all begin together
                began = time.perf_counter()
                call()
                taken = mesh.join(np.array([time.perf_counter() - began]))
                times[name].append(float(taken.max()))
        if first:
            told = {name: dataclasses.asdict(system) for name, (_, system) in ready.items()}
            out.write_text(json.dumps({"times": times, "systems": told}))


# ---- what comes of it ----


def measure(quick: bool, rounds: int) -> dict[str, Any]:
    """Both runs, and everything that is made of them, as plain values."""
    machine = _machine()  # before our own work is part of the load
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for processes in (1, 2):
            out = Path(folder) / f"{processes}.json"
            words = ["--worker", str(out), "--rounds", str(rounds)] + ["--quick"] * quick
            command = [sys.executable, __file__, *words]
            if code := mesh.launch(command, processes=processes):
                raise SystemExit(f"{processes} process(es) ended with exit code {code}")
            found.append(json.loads(out.read_text()))
    one, two = found
    sums = {size: statistics.median(two["times"][f"sum of {size}"]) for size in SUMS}
    latency, bandwidth = fit(sums)
    systems = {}
    for name in SYSTEMS:
        # What is summed is known where something is: on two processes.
        seconds = statistics.median(one["times"][name])
        system = System(**{**two["systems"][name], "seconds": seconds})
        pair = two["times"][name]
        systems[name] = {
            **dataclasses.asdict(system),
            "spread": _spread(one["times"][name]),
            "two": 2 * system.items / statistics.median(pair),
            "two_spread": _spread(pair),
            "two_predicted": throughput(system, 2, latency, bandwidth),
            "hosts": {str(n): throughput(system, n, **NETWORK) for n in HOSTS},
        }
    return {
        "machine": machine,
        "quick": quick,
        "rounds": rounds,
        "network": NETWORK,
        "sums": {str(size): seconds for size, seconds in sums.items()},
        "latency": latency,
        "bandwidth": bandwidth,
        "systems": systems,
    }


def _spread(times: list[float]) -> float:
    """Half of the distance between the quartiles, over the median."""
    low, middle, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
    return (high - low) / 2 / middle


def _machine() -> dict[str, Any]:
    import jax

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {"cores": mesh.usable_cores(), "jax": jax.__version__, "load": load}


def table(found: dict[str, Any]) -> list[str]:
    """The figures by system, as rows of Markdown."""
    head = ["system", "a host", "two: measured", "two: predicted", "off by"]
    rows = [head + [f"{n:,} hosts" for n in HOSTS], ["---"] + ["---:"] * (len(head) - 1 + 3)]
    for name, s in found["systems"].items():
        alone = s["items"] / s["seconds"]
        far = [f"{_short(v)} ({v / int(n) / alone:.0%})" for n, v in s["hosts"].items()]
        rows.append(
            [
                name,
                f"{_short(alone)} {s['unit']}/s ±{s['spread']:.0%}",
                f"{_short(s['two'])} ±{s['two_spread']:.0%}",
                _short(s["two_predicted"]),
                f"{s['two_predicted'] / s['two'] - 1:+.0%}",
                *far,
            ]
        )
    return ["| " + " | ".join(row) + " |" for row in rows]


PAGE = """# Scaling: two processes measured, more predicted

<!-- Made by benchmarks/scaling_model.py from scaling.json: change those, not this page. -->

Measured on {cores} cores with JAX {jax}{load}; {rounds} rounds, medians, ± half of the distance
between the quartiles{sizes}.
{busy}A host is one core of this machine. Two processes are two hosts, each on a core of its own,
with as much work each as one had alone.

{table}

Shares are of what so many hosts would do if talking cost nothing. Only the columns up to *off by*
are measured or checked; those after it are a prediction.

## What a step costs

| system | a step | of | all-reduces | bytes |
|---|---:|---:|---:|---:|
{talk}

A step of arc training is an update: rollout, then epochs of minibatches. Of trace it is a whole
run, of arc rollout a few steps in one program.

## What talking costs here

All-reduce between two processes, gloo over loopback:

| bytes | time |
|---:|---:|
{sums}

From the smallest and the largest: {hop:,.0f} us a hop and {flow:.2f} GB/s. The prediction for two
uses these; those for more hosts a network of {latency:g} us a hop and {bandwidth:g} GB/s, which is
stated, not measured.

## The model

    throughput(n) = n * items / (seconds + messages * ring(n, bytes / messages))
    ring(n, b)    = 2 (n - 1) * latency + 2 (n - 1) / n * b / bandwidth

Assumed:

- Every host has as much work as one had alone (weak scaling), and is as fast.
- A step waits for its sums; nothing overlaps. All hosts come to a sum at the same moment: a
  straggler delays all, and is not in the model.
- A ring, all hosts in one. Its latency grows with the number of hosts; at 1,024 a tree would need
  20 hops in place of 2,046, so that training there is predicted too low, if anything.
- Only sums count. Where JAX splits a program by itself, it may move other data besides; no system
  here leaves that to it.
- Worlds and particles of a rollout never talk. Checkpoints, records and the joining of tracks at
  the end are left out.
- More hosts mean larger batches. Whether they learn as much from each sample is another question.

To measure again:

    python benchmarks/scaling_model.py --json docs/scaling.json --page docs/scaling.md
"""

BUSY = """**The machine was busy with other work**: the figures show how the model is used, not
how fast anything is.
"""


def page(found: dict[str, Any]) -> str:
    """The page of the documentation, whole."""
    machine, network = found["machine"], found["network"]
    load = machine["load"]
    return PAGE.format(
        cores=machine["cores"],
        jax=machine["jax"],
        load="" if load is None else f", load {load:.1f}",
        rounds=found["rounds"],
        sizes=", small sizes (`--quick`)" if found["quick"] else "",
        busy=BUSY if load is not None and load > machine["cores"] else "",
        table="\n".join(table(found)),
        talk="\n".join(
            f"| {name} | {1e3 * s['seconds']:,.2f} ms | {s['items']:,} {s['unit']} "
            f"| {s['messages']} | {_bytes(s['bytes'])} |"
            for name, s in found["systems"].items()
        ),
        sums="\n".join(
            f"| {_bytes(int(size))} | {1e6 * seconds:,.0f} us |"
            for size, seconds in found["sums"].items()
        ),
        hop=1e6 * found["latency"],
        flow=found["bandwidth"] / 1e9,
        latency=1e6 * network["latency"],
        bandwidth=network["bandwidth"] / 1e9,
    )


def _short(number: float) -> str:
    for factor, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= factor:
            return f"{number / factor:.3g}{unit}"
    return f"{number:.3g}"


def _bytes(count: int) -> str:
    for factor, unit in ((2**20, "MiB"), (2**10, "KiB")):
        if count >= factor:
            return f"{count / factor:.4g} {unit}"
    return f"{count} B"


def main() -> None:
    script = bench.Script(__doc__, group=GROUP, rounds=(15, 5))
    add = script.parser.add_argument
    add("--json", type=Path, metavar="FILE", help="write what was measured and predicted")
    add("--page", type=Path, metavar="FILE", help="write the page of the documentation")
    add("--from", type=Path, metavar="FILE", dest="source", help="measure nothing: read a --json")
    add("--worker", type=Path, help="for the processes that this script starts")
    options = script.start()
    if options.worker is not None:
        measure_here(options.quick, options.rounds, options.worker)
        return
    if options.source is not None:
        found = json.loads(options.source.read_text())
    else:
        found = measure(options.quick, options.rounds)
    print("\n".join(table(found)))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.page is not None:
        options.page.write_text(page(found))
    if options.source is None:
        script.figure("all-reduce of 4 bytes, two processes", 2e6 * found["latency"], "us")
        for name, s in found["systems"].items():
            script.figure(f"{name}: two processes over one", s["two"] * s["seconds"] / s["items"])
        script.finish()


if __name__ == "__main__":
    main()
