"""What kafka-python, by which the monitor asks brokers, leaves to Python's memory management."""

import pytest

LEAVES_SOCKETS = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
"""It does not close the socket of a connection that was refused, or is still being made when it is told to end."""
