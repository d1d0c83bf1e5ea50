"""Consumers as Deployments, and one controller at a time by a Lease: all that asks the Kubernetes API for something."""
