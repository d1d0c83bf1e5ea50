"""The settings file: one section for each component, checked as a whole before anything starts."""

import base64
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from app.errors import UsageError
from app.hooks.events import EventKind
from consumer.settings import ConsumerSettings
from controller.kubernetes.settings import NAME, KubernetesSettings
from controller.settings import ControllerSettings
from domain import topics
from domain.secrecy import is_secret, masked
from domain.topics import LEGAL_NAME, TopicNames
from monitor.settings import MonitorSettings


def _legal(name: str) -> str:
    if not LEGAL_NAME.fullmatch(name):
        raise ValueError("a topic's name must be 1 to 249 letters, digits, dots, underscores or hyphens, not . or ..")
    return name


TopicName = Annotated[str, AfterValidator(_legal)]

NAMED_BY_TOPIC = frozenset({"pinned", "schemas", "tables"})
"""Settings whose own names are those of topics, partitions and columns."""

Port = Annotated[int, Field(ge=0, le=65_535)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class KafkaSettings(Section):
    """Where the cluster is, and which group reads."""

    bootstrap_servers: Annotated[str, Field(min_length=1)]
    """Brokers to begin with: `host:port`, several with commas."""
    group: Annotated[str, Field(min_length=1, max_length=200)] = topics.DEFAULT_GROUP
    """The consumer group under which offsets are committed."""
    client: Annotated[Mapping[str, str], Field(repr=False)] = {}
    """Further settings of all Kafka clients by librdkafka's names, such as `security.protocol`."""
    auth: Literal["msk-iam", "google"] | None = None
    """Who all clients are, where `client` does not say it: by access tokens of Amazon MSK (IAM), from the credentials
    that AWS' own tools find, which takes `kcga[aws]`; or by those of Google's managed Kafka, from application default
    credentials, which takes `kcga[gcp]`."""

    @model_validator(mode="after")
    def _is_said_once_who_one_is(self) -> Self:
        if self.auth is None:
            return self
        mechanism = self.client.get("sasl.mechanism", self.client.get("sasl.mechanisms", "OAUTHBEARER"))
        protocol = self.client.get("security.protocol", "SASL_SSL")
        if (mechanism.upper(), protocol.upper()) != ("OAUTHBEARER", "SASL_SSL"):
            raise ValueError(
                f"auth {self.auth!r} is for sasl.mechanism OAUTHBEARER and security.protocol SASL_SSL, which client "
                f"need not have: it has {mechanism} and {protocol}"
            )
        if of_others := sorted(name for name in self.client if name.startswith("sasl.oauthbearer.")):
            raise ValueError(f"auth is {self.auth!r}: client must not have {', '.join(of_others)} besides")
        return self


class TopicSettings(Section):
    """The topics that kcga's components talk through. Those that are not set carry the group: for the group `billing`
    `consumer.metadata.billing`, but for the group `kcga` `consumer.metadata`."""

    write_speed: TopicName = topics.WRITE_SPEED
    """Where the monitor publishes how fast each partition is written."""
    metadata: TopicName = topics.METADATA
    """Where the controller and the consumers send one another commands and reports."""
    decisions: TopicName = topics.DECISIONS
    """Where the controller publishes what it decided, and why."""

    def of_group(self, group: str) -> "TopicSettings":
        """The same for a group: those that are not set are called after it.

        Raises:
            ValueError: a topic cannot be called so, or two are the same.
        """
        called: dict[str, str] = {
            name: topic if name in self.model_fields_set else topics.of_group(topic, group) for name, topic in self
        }
        for name, topic in called.items():
            if not topics.LEGAL_NAME.fullmatch(topic):
                raise ValueError(
                    f"{name} is {topic!r} for the group {group!r}, and no topic can be called so: set write_speed, "
                    "metadata and decisions to names of at most 249 letters, digits, dots, hyphens and underscores"
                )
        names = list(called.values())
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"write_speed, metadata and decisions must be three topics: {min(twice)!r} is named twice")
        return type(self).model_construct(self.model_fields_set, **called)

    @property
    def names(self) -> TopicNames:
        return TopicNames(write_speed=self.write_speed, metadata=self.metadata, decisions=self.decisions)


class LocalSettings(Section):
    """Consumers as processes of this machine."""

    folder: Path = Path("kcga-consumers")
    """Where the logs of local consumers are, and the files that name their processes."""
    grace_s: Annotated[float, Field(ge=0.001, le=86_400, allow_inf_nan=False)] = 20.0
    """How long a consumer that is asked to leave may take before it is killed."""
    consumer_settings: Path | None = None
    """The settings file that consumers are started with, where it is not the controller's own: so they can be another
    user of the cluster, with fewer rights."""


class SparkSettings(Section):
    """A Spark Connect server of kcga's own, `kcga spark`: for consumers whose `spark_remote` names it."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """The address to listen on: by default this machine's own, which nobody reaches from outside. Whoever reaches it
    does in the lake what Spark may do, unless a token is asked for."""
    port: Annotated[int, Field(ge=1, le=65_535)] = 15_002
    """Where consumers connect."""
    heap_mb: Annotated[int, Field(ge=512, le=1_000_000)] = 2048
    """The most that its Java heap takes, in MiB; the process takes about half as much again."""
    master: Annotated[str, Field(min_length=1)] = "local[*]"
    """Who does the work: this process, or the master of a cluster, such as `spark://host:7077`."""
    address: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Of this machine, by which a cluster's machines reach it."""
    conf: Annotated[Mapping[str, str], Field(repr=False)] = {}
    """More of Spark's settings by their names. `spark.connect.authenticate.token` is a secret that consumers have to
    send, as the same name in their `spark_conf` says."""


class HttpSettings(Section):
    """What is served over HTTP: health and metrics by all components, the status page by the controller."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """The address to listen on: by default this machine's own, which nobody reaches from outside. Everything can be
    read by whoever reaches it."""
    controller_port: Port | None = 8470
    """The port of the status page, its API, and the controller's health and metrics; 0 for any that is free."""
    monitor_port: Port | None = None
    """The port of the monitor's health and metrics, which are not served unless it is set."""
    consumer_port: Port | None = None
    """The port of a consumer's health and metrics, which are not served unless it is set; 0 for any that is free, as
    several consumers on one machine need it."""
    probe_port: Port | None = None
    """The port of a server that answers `/healthz` and `/readyz` alone: whatever reaches the other ports keeps nobody
    from asking whether the process lives. For pods, where each process has an address of its own."""
    allowed_hosts: tuple[Annotated[str, Field(pattern=r"^(\*|(\*\.)?[A-Za-z0-9._-]+)$")], ...] = ()
    """Names under which a browser, a proxy or a scraper may ask, `*.example.com` for all that end so. Addresses,
    `localhost` and `host` are fine without. Any other name may be that of a page elsewhere, which would read what is
    here (DNS rebinding)."""
    token: SecretStr | None = None
    """A secret: who sends it may pause, resume and re-plan over HTTP, and nobody can unless it is set. 16 ASCII
    characters or more, without spaces."""
    partition_series: bool = True
    """Whether the controller's metrics have series for each partition, which are thousands in a large group."""

    @field_validator("token")
    @classmethod
    def _can_be_sent(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not re.fullmatch(r"[!-~]{16,}", token.get_secret_value()):
            raise ValueError("a token must have 16 characters or more, all of them ASCII and none a space")
        return token


class HookSettings(Section):
    """A webhook that is told what happens to the group, as CloudEvents; by the controller that leads."""

    url: Annotated[str, Field(pattern=r"^https?://[^/?#\s]+\S*$")] | None = None
    """Where events are posted. Nobody is told unless it is set."""
    secret: SecretStr | None = None
    """A secret by which the receiver knows who sent an event (Standard Webhooks): `whsec_` and 24 to 64 bytes in
    base64. Events are not signed unless it is set."""
    events: tuple[EventKind, ...] = tuple(EventKind)
    """Which ones: a plan that is carried out, partitions that are faster than a consumer, consumers that are gone, and
    records that were deleted before they were read."""
    timeout_s: Annotated[float, Field(ge=0.1, le=300, allow_inf_nan=False)] = 10.0
    """How long the receiver may take to answer before the event is sent again."""

    @field_validator("secret")
    @classmethod
    def _is_a_key(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and _key_of(secret) is None:
            raise ValueError(
                "a secret must be whsec_ and 24 to 64 bytes in base64, as `openssl rand -base64 32` makes them"
            )
        return secret

    @property
    def key(self) -> bytes | None:
        """The bytes of the secret."""
        return None if self.secret is None else _key_of(self.secret)


def _key_of(secret: SecretStr) -> bytes | None:
    """None where it is none."""
    prefix, _, encoded = secret.get_secret_value().partition("_")
    try:
        key = base64.b64decode(encoded, validate=True)
    except ValueError:
        return None
    return key if prefix == "whsec" and 24 <= len(key) <= 64 else None


class _Environment(EnvSettingsSource):
    """Variables; one that ought to be JSON and is none stays text, which is then refused by its own name."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        try:
            return super().decode_complex_value(field_name, field, value)
        except (ValueError, RecursionError):
            return value


class Settings(BaseSettings):
    """All settings. The environment goes before the file: `KCGA_KAFKA__GROUP` is `group` in `[kafka]`."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="KCGA_",
        env_nested_delimiter="__",
        use_attribute_docstrings=True,
        nested_model_default_partial_update=True,
    )

    kafka: KafkaSettings
    topics: Annotated[TopicSettings, Field(default_factory=TopicSettings, validate_default=True)]
    monitor: MonitorSettings
    controller: ControllerSettings = ControllerSettings()
    consumer: ConsumerSettings
    local: LocalSettings = LocalSettings()
    spark: SparkSettings = SparkSettings()
    http: HttpSettings = HttpSettings()
    hooks: HookSettings = HookSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    fleet: Annotated[Literal["local", "kubernetes"], Field(validate_default=True)] = "local"
    """Where consumers are: processes of the controller's machine, or Deployments."""

    @field_validator("topics")
    @classmethod
    def _carry_the_group(cls, topics: TopicSettings, info: ValidationInfo) -> TopicSettings:
        kafka = info.data.get("kafka")
        return topics if kafka is None else topics.of_group(kafka.group)

    @field_validator("monitor")
    @classmethod
    def _reads_no_topic_of_ours(cls, monitor: MonitorSettings, info: ValidationInfo) -> MonitorSettings:
        own = info.data.get("topics")
        for name, topic in own or ():
            if topic in monitor.topics:
                raise ValueError(
                    f"{topic!r} is a topic to read, and is topics.{name}, too, where kcga's own messages go: it must "
                    "be one of the two"
                )
        return monitor

    @field_validator("consumer")
    @classmethod
    def _ends_before_it_is_taken_for_dead(cls, consumer: ConsumerSettings, info: ValidationInfo) -> ConsumerSettings:
        controller = info.data.get("controller")
        if controller is not None and consumer.lease_s >= controller.heartbeat_timeout_s:
            raise ValueError(
                f"lease_s ({consumer.lease_s:g}) must be less than heartbeat_timeout_s of the controller "
                f"({controller.heartbeat_timeout_s:g}): a consumer ends before its partitions are given to others"
            )
        return consumer

    @field_validator("consumer")
    @classmethod
    def _may_read_what_it_is_given(cls, consumer: ConsumerSettings, info: ValidationInfo) -> ConsumerSettings:
        controller = info.data.get("controller")
        limit = consumer.rate_limit
        if controller is not None and limit is not None and limit < controller.consumer_capacity:
            raise ValueError(
                f"rate_limit ({limit:g}) must not be less than consumer_capacity of the controller "
                f"({controller.consumer_capacity:g}): a consumer would fall behind with what it is given"
            )
        for each in consumer.classes:
            limit = consumer.of_class(each.name).rate_limit
            if limit is not None and limit < each.capacity:
                raise ValueError(
                    f"rate_limit ({limit:g}) must not be less than the capacity of the class {each.name!r} "
                    f"({each.capacity:g}), which may have a rate_limit of its own: a consumer would fall behind with "
                    "what it is given"
                )
        return consumer

    @field_validator("consumer")
    @classmethod
    def _is_of_a_class_of_known_capacity(cls, consumer: ConsumerSettings, info: ValidationInfo) -> ConsumerSettings:
        controller = info.data.get("controller")
        if controller is not None and controller.learns_capacity and consumer.classes:
            raise ValueError(
                'classes and controller.consumer_capacity = "auto" do not go together: what is learned is one capacity '
                "for all consumers; set consumer_capacity to that of ordinary consumers, in bytes/s, or no classes"
            )
        return consumer

    @field_validator("fleet")
    @classmethod
    def _has_a_name_on_kubernetes(cls, fleet: str, info: ValidationInfo) -> str:
        kafka, kubernetes = info.data.get("kafka"), info.data.get("kubernetes")
        if fleet == "kubernetes" and kafka is not None and kubernetes is not None:
            name = kubernetes.named_after(kafka.group)
            if not NAME.fullmatch(name):
                raise ValueError(
                    f"the group's name, {name!r}, is none for objects of Kubernetes: set kubernetes.name to at most 40 "
                    "lower case letters, digits and -, a letter first"
                )
        return fleet

    @property
    def of_controller(self) -> ControllerSettings:
        """What the controller goes by: its own section, and what classes of consumers there may be."""
        return self.controller.with_classes(each.of for each in self.consumer.classes)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return _Environment(settings_cls), init_settings


def load(file: Path, **instead: str) -> Settings:
    """The settings in a TOML file.

    Args:
        file: where they are.
        instead: settings at the top that go before those of the file.

    Raises:
        UsageError: the file cannot be read, or a setting is missing, unknown or out of range; names all of them.
    """
    return checked({**read(file), **instead}, f"in {file}")


def read(file: Path) -> dict[str, Any]:
    """What is in a TOML file, as it is.

    Raises:
        UsageError: the file cannot be read, or is none.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the settings file {file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the settings file {file} is no valid TOML: {error}") from error
    except RecursionError:
        raise UsageError(f"the settings file {file} is nested too deeply: no setting is") from None


def checked(values: Mapping[str, Any], where: str) -> Settings:
    """The settings of these values, which are `where`; the environment goes before them.

    Raises:
        UsageError: a setting is missing, unknown or out of range; names all of them.
    """
    try:
        return Settings(**values)
    except ValidationError as error:
        faults = "\n".join(f"  {_describe(fault)}" for fault in error.errors(include_url=False))
        raise UsageError(f"the settings {where} are wrong:\n{faults}") from error


_OF_ANOTHER_KIND = ("dict_type", "tuple_type", "model_type")
_SHOWN_WITHOUT_VALUE = ("missing", "extra_forbidden", *_OF_ANOTHER_KIND)
"""The value says nothing more, and nobody knows what is in it."""


def _describe(fault: Mapping[str, Any]) -> str:
    """One line, without secrets."""
    names = [str(part) for part in fault["loc"]]
    what = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] in _OF_ANOTHER_KIND:
        what = "must be a table or a list, and in the environment JSON"
    said = fault["type"] in _SHOWN_WITHOUT_VALUE or fault["input"] is None or isinstance(fault["input"], dict)
    given = "" if said or any(map(is_secret, names)) else f" (it is {fault['input']!r})"
    return masked(f"{'.'.join(names)}: {what[0].lower()}{what[1:]}{given}")
