"""What goes wrong with causal data, graphs and their posteriors."""

from __future__ import annotations

from worldloom._errors import WorldloomError


class AcboError(WorldloomError):
    """Base of the errors that ACBO raises on purpose."""


class DataError(AcboError, ValueError):
    """Data, or the mask of its interventions, cannot be used as they are."""


class SizeError(AcboError, ValueError):
    """More variables than a method can take, or none at all."""


class OptionError(AcboError, ValueError):
    """An option has a value that means nothing."""


class UnknownNetworkError(AcboError, KeyError):
    """No published network has that name."""

    def __str__(self) -> str:
        return str(self.args[0])


class AcboWarning(UserWarning):
    """Something was accepted that the user may want to know about; the message has the numbers."""
