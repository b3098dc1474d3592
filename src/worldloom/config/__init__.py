"""Typed configuration: YAML files and `key=value` overrides, checked into a frozen dataclass."""

from __future__ import annotations

from worldloom.config._errors import ConfigError as ConfigError
from worldloom.config._load import load as load
from worldloom.config._write import to_yaml as to_yaml

__all__ = ["ConfigError", "load", "to_yaml"]
