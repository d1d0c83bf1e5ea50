"""Which topics a group reads."""

from app.access import client_config
from app.settings import Settings
from app.topics import Cluster
from monitor.measure.interest import Topic, topics_of_interest


def topics_to_read(settings: Settings) -> list[str]:
    """Those on the cluster that the settings name, in ascending order.

    Raises:
        KcgaError: the cluster does not tell.
    """
    cluster = Cluster(settings.kafka.bootstrap_servers, client_config(settings.kafka))
    known = {
        name: Topic(name, topic_id="", leaders=dict.fromkeys(range(count)))
        for name, count in cluster.partitions().items()
    }
    own = {settings.topics.write_speed, settings.topics.metadata, settings.topics.decisions}
    return sorted(topics_of_interest(settings.monitor.topics, known, own).topics)
