"""Measures how fast producers write to each partition, and tells the controller.

Pure are `interest`, `growth`, `window`, `estimates` and `changes`; `cluster_logs` and `publisher` talk to Kafka,
`survey` asks all brokers at once, and `runner` is the loop around them.
"""
