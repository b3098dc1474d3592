"""The networks that come with the package, and how they were made."""

from __future__ import annotations

from acbo.pretrained._load import pretrained_policy as pretrained_policy
from acbo.pretrained._load import pretrained_surrogate as pretrained_surrogate

__all__ = ["pretrained_policy", "pretrained_surrogate"]
