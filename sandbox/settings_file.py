"""The settings of the demonstration, as a file that can be read and used again."""

import json
import secrets
from pathlib import Path

from sandbox.load_profile import LoadProfile
from sandbox.services import Services

CONSUMER_CAPACITY = 400_000
"""Bytes/s of a consumer in the demonstration: so small that one machine shows several."""


LARGE = "large"
_OF_LARGE = f"""\
# An ordinary consumer reads no more than its capacity, though it could: a partition that is faster needs a large one.
rate_limit = {CONSUMER_CAPACITY}

[[consumer.classes]]
name = "{LARGE}"
capacity = {CONSUMER_CAPACITY * 5 // 2}
rate_limit = {CONSUMER_CAPACITY * 5 // 2}
price = 3
"""


def settings_text(
    services: Services, profile: LoadProfile, folder: Path, *, status_port: int = 0, oversized: bool = False
) -> str:
    """The file's content.

    Args:
        services: what the group runs on.
        profile: of the load.
        folder: takes the lake and what the consumers leave.
        status_port: of the status page; a free one if it is 0.
        oversized: a partition is, so there is a class of consumers that can read it.
    """
    topics = ", ".join(json.dumps(topic) for topic in profile.topics)
    text = json.dumps  # of a plain string it is one of TOML's
    return f"""\
[kafka]
bootstrap_servers = {text(services.bootstrap_servers)}
group = {text(services.prefix + "kcga")}

[topics]
write_speed = {text(services.prefix + "monitor.writeSpeed")}
metadata = {text(services.prefix + "consumer.metadata")}
decisions = {text(services.prefix + "controller.decisions")}

[monitor]
topics = [{topics}]
# A shorter window than the paper's 30 s: the story is over within two minutes.
window_s = 15

[controller]
consumer_capacity = {CONSUMER_CAPACITY}
interval_s = 10
scale_down_window_s = 3
forecast = true
max_consumers = 12
ready_timeout_s = 60

[consumer]
spark_remote = {text(services.spark_remote)}
lake_root = {text(str(folder / "lake"))}
wait_time_secs = 3
{_OF_LARGE if oversized else ""}
[local]
folder = {text(str(folder / "consumers"))}

[http]
controller_port = {status_port}
monitor_port = 0
consumer_port = 0
token = {text(secrets.token_urlsafe(12))}
"""
