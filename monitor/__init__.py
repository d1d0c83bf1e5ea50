"""Measures how fast producers write to each partition and how far the group is behind, and tells the controller.

Pure are `interest`, `growth`, `lag`, `window`, `estimates` and `changes`; `cluster_logs`, `group_commits` and
`publisher` talk to Kafka, `survey` asks all brokers at once, and `runner` is the loop around them.
"""
