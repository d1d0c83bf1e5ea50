"""Breaking things on purpose: what breaks when, and how it is done to processes of this machine."""
