"""Is this machine ready, and does its JAX compute right?"""

from __future__ import annotations

from worldloom.doctor._examine import Diagnosis as Diagnosis
from worldloom.doctor._examine import examine as examine
from worldloom.doctor._facts import Cache as Cache
from worldloom.doctor._facts import Facts as Facts
from worldloom.doctor._selfcheck import Check as Check
from worldloom.doctor._selfcheck import self_check as self_check

__all__ = ["Cache", "Check", "Diagnosis", "Facts", "examine", "self_check"]
