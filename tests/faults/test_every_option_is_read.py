"""Issue 24, ARC 3: every field of every configuration changes something, in all systems."""

from __future__ import annotations

import ast
import dataclasses
import textwrap

import pytest
from faults import options

from jaxarc.cli._train import Train
from jaxarc.training import PPOConfig

RESULTS = {
    "worldloom.bench._gate.GateResult": "what a comparison of benchmarks returns",
    "worldloom.bench._result.Timing": "what a benchmark returns",
    "worldloom.compile._count.Compiles": "what `count_compiles` gives",
    "acbo.evaluation._discovery.DiscoveryScores": "what an evaluation returns",
    "acbo.report._recording.Recording": "what is recorded of a run, for a page and for the caller",
    "acbo.training._progressive.ProgressiveResult": "what a training returns",
}
"""Classes whose fields are for the caller to read, with what they are."""

HANDED_OVER = {Train: PPOConfig}
"""Options that go by name into another class, whose own fields are looked at in turn."""


def test_every_option_is_read():
    handed = {
        options.Option(owner, field.name)
        for owner, other in HANDED_OVER.items()
        for field in dataclasses.fields(other)
    }
    dead = [
        str(option)
        for option in options.options()
        if str(option).rpartition(".")[0] not in RESULTS
        and option not in handed
        and options.read_of(option) is None
    ]
    assert not dead, f"options that nothing reads: {', '.join(dead)}"


def test_all_systems_are_walked():
    found = {str(option) for option in options.options()}
    assert len(found) > 500
    for name in (
        "worldloom.loop._checkpoint.Checkpoint.keep",
        "worldloom.cli._launch.Launch.timeout",
        "jaxarc.envs._config.VisualizationConfig.enabled",
        "jaxarc.envs._reward.SimilarityReward.step_penalty",
        "jaxarc.utils.visualization._settings.MemorySettings.compression",
        "jaxtrace.cli._run.Run.save_every",
        "acbo.policy._grpo.GRPOConfig.clip_ratio",
        "acbo.training._config.SurrogateTrainingConfig.weight_decay",
    ):
        assert name in found, name


@pytest.mark.parametrize(
    ("code", "read"),
    [
        ("def run(config: Settings): return config.enabled", True),
        ("def run(config: Settings): return getattr(config, 'enabled')", True),
        ("def run(all: Holder): return all.part.enabled", True),
        ("def run(other: Other): return other.enabled", False),
        ("def run(config: Settings): config.enabled = 1", False),
        ("def run(): return make().enabled\ndef make() -> Settings: ...", True),
        ("enabled = is_enabled()", False),
    ],
)
def test_the_walk_tells_read_from_unread(code, read, monkeypatch):
    """A field that is checked, and read by nothing, is found: `VisualizationConfig.enabled`."""
    source = textwrap.dedent("""
        from __future__ import annotations
        import dataclasses

        @dataclasses.dataclass
        class Settings:
            enabled: bool = False

            def __post_init__(self):
                if not isinstance(self.enabled, bool):
                    raise TypeError

        @dataclasses.dataclass
        class Other:
            enabled: bool = False

        @dataclasses.dataclass
        class Holder:
            part: Settings = None
    """)
    namespace = {"__name__": __name__}
    exec(source, namespace)
    found = tuple(namespace[name] for name in ("Settings", "Other", "Holder"))
    trees = {"made_up": ast.parse(source + code)}
    caches = [value for value in vars(options).values() if hasattr(value, "cache_clear")]
    with monkeypatch.context() as patch:
        patch.setattr(options, "classes", lambda: found)
        patch.setattr(options, "_trees", lambda: trees)
        for cached in caches:
            cached.cache_clear()
        assert (options.read_of(options.Option(found[0], "enabled")) is not None) is read
    for cached in caches:
        cached.cache_clear()
