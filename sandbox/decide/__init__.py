"""What the sandbox decides: no clock, process or log in here."""
