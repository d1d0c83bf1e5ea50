"""Whether the schema registry answers, where one is set."""

from collections.abc import Iterator

from app.settings import Settings
from cli.doctor.finding import Finding
from consumer.registry import Registry
from consumer.sink import RegistryError


def check_registry(settings: Settings) -> Iterator[Finding]:
    consumer = settings.consumer
    if consumer.registry_url is None:
        return
    try:
        formats = Registry(consumer.registry_url, consumer.registry_client).formats()
    except RegistryError as error:
        yield Finding.fault(
            str(error), "correct consumer.registry_url and registry_client, or start the registry there"
        )
        return
    yield Finding(f"the schema registry answers at {consumer.registry_url}: {', '.join(formats)}")
