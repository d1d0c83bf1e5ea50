"""What speeds and lags follow from measurements: no clock, no client, no thread and no log in here."""
