"""The settings of a group of which nothing runs: a bench says what its components would have said."""

CAPACITY = 2_300_000.0
"""Of a consumer, in bytes/s."""

_SETTINGS = """\
[kafka]
bootstrap_servers = "{servers}"
group = "{group}"
[topics]
write_speed = "{group}.monitor.writeSpeed"
metadata = "{group}.consumer.metadata"
decisions = "{group}.controller.decisions"
[monitor]
topics = ["{group}"]
[controller]
consumer_capacity = {capacity}
[consumer]
spark_remote = "sc://127.0.0.1:1"
lake_root = "/lake"
"""


def settings_text(servers: str, group: str) -> str:
    """A settings file of the group, on topics of its own."""
    return _SETTINGS.format(servers=servers, group=group, capacity=CAPACITY)
