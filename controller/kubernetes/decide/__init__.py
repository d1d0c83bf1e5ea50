"""What is asked of Kubernetes, and what its answers mean: no client and no clock in here."""
