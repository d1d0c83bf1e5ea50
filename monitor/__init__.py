"""Measures how fast producers write to each partition and how far the group is behind, and tells the controller.

What follows from measurements is in `measure`; `cluster_logs`, `group_commits`, `last_report` and `publisher` talk to
Kafka, `prometheus` to Prometheus. `broker_logs` chooses what to ask a broker for, `survey` asks all brokers at once,
and `runner` is the loop around them.
"""
