"""The networks that are judged, where none are given: those in the package."""

from __future__ import annotations

from acbo.policy import PolicyNetwork
from acbo.surrogate import Surrogate


def surrogate_or_shipped(network: Surrogate | None) -> Surrogate:
    """The surrogate, or the one in the package."""
    if network is not None:
        return network
    import acbo

    return acbo.pretrained_surrogate()


def policy_or_shipped(network: PolicyNetwork | None) -> PolicyNetwork:
    """The policy, or the one in the package."""
    if network is not None:
        return network
    import acbo

    return acbo.pretrained_policy()
