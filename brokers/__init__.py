"""What all components that talk to Kafka's brokers share, beside its clients."""
