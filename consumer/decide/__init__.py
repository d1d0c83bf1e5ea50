"""What a consumer decides: no clock, no chance, no client, no thread and no log in here."""
