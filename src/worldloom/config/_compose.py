"""Folders of configuration files, put together by Hydra from a `defaults:` list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from worldloom._extras import import_extra
from worldloom.config._errors import ConfigError
from worldloom.config._source import Key, Source, read_yaml


def selects_group(override: str, folder: Path) -> bool:
    """Whether an override chooses a file of a group (`optimizer=adam`) and not a value."""
    group = override.partition("=")[0].lstrip("+~").partition("@")[0]
    return bool(group) and (folder / group).is_dir()


def compose(path: Path, overrides: Sequence[str]) -> tuple[dict[Any, Any], dict[Key, Source]]:
    """The mapping that Hydra composes from the `defaults:` list of `path`, and its sources."""
    hydra = import_extra("hydra", extra="hydra", purpose=f"the `defaults:` list in {path}")
    errors = import_extra("hydra.errors", extra="hydra", purpose="composing configuration files")
    world = import_extra("hydra.core.global_hydra", extra="hydra", purpose="composing files")
    folder = path.resolve().parent
    # Hydra keeps one state a process; an application that runs under Hydra gets its own back.
    outer = world.GlobalHydra.instance().hydra
    world.GlobalHydra.instance().clear()
    try:
        with hydra.initialize_config_dir(str(folder), version_base="1.3"):
            found = hydra.compose(path.stem, overrides=list(overrides), return_hydra_config=True)
    except (errors.HydraException, ValueError) as error:
        lines = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
        raise ConfigError(f"{path}: {lines}") from error
    finally:
        world.GlobalHydra.instance().hydra = outer
    choices = OmegaConf.to_container(found.hydra.runtime.choices)
    assert isinstance(choices, dict)
    OmegaConf.set_struct(found, False)
    del found["hydra"]
    value = OmegaConf.to_container(found)
    assert isinstance(value, dict)
    return value, _sources(path, choices)


def _sources(path: Path, choices: dict[Any, Any]) -> dict[Key, Source]:
    """Lines of the files that took part. Texts are left out: another file may have won."""
    found: dict[Key, Source] = {}
    for group, choice in choices.items():
        file = path.parent / str(group) / f"{choice}.yaml"
        if not str(group).startswith("hydra/") and file.is_file():
            package: Key = tuple(str(group).split("/"))
            for key, source in read_yaml(file)[1].items():
                found[(*package, *key)] = Source(source.where)
    for key, source in read_yaml(path)[1].items():
        found.setdefault(key, Source(source.where))
    return found
