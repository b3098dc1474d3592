from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

PACKAGES = ("jaxarc", "jaxtrace", "acbo")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there_and_others_are_not(package):
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nonsense'"):
        module.nonsense  # noqa: B018


def test_importing_a_package_does_not_load_jax():
    code = f"import sys, {', '.join(PACKAGES)}; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
