"""What the controller would do, found out without it: no clock, client, thread or log."""
