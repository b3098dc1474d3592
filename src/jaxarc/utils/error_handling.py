"""Checks of actions and states, under the name that users of JaxARC know."""

from __future__ import annotations

from jaxarc.envs._validate import JAXErrorHandler as JAXErrorHandler

__all__ = ["JAXErrorHandler"]
