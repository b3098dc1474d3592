"""Helpers of these tests can be imported by name; settings are put back after each test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jaxtrace import _config

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _same_settings():
    before = _config._settings
    yield
    _config._settings = before
