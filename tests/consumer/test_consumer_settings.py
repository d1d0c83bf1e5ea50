from typing import Any

import pytest
from pydantic import ValidationError

from consumer.decide.columns import Column
from consumer.decide.layout import BY_DAY, Layout
from consumer.settings import ConsumerSettings

GOOD: dict[str, Any] = {"spark_remote": "sc://127.0.0.1:15002", "lake_root": "/data/lake"}


def test_the_papers_parameters_have_values_unless_they_are_set() -> None:
    settings = ConsumerSettings(**GOOD)
    assert settings.batch_bytes == 5_000_000
    assert settings.wait_time_secs > 0


def test_a_consumer_may_have_a_spark_of_its_own() -> None:
    own = {"spark_master": "local[1]", "spark_conf": {"spark.driver.memory": "1g"}, "lake_root": "/data/lake"}
    assert ConsumerSettings(**own).spark == "local[1]"
    assert ConsumerSettings(**GOOD).spark == "sc://127.0.0.1:15002"


def test_consumers_are_spread_over_servers_and_each_turns_to_all_others_in_the_end() -> None:
    servers = ["sc://a:1", "sc://b:1/;token=x", "sc://c:1"]
    settings = ConsumerSettings(**GOOD | {"spark_remote": servers})
    first, second, third = servers
    assert [settings.sparks_of(number) for number in (1, 2, 3, 4)] == [
        (first, second, third),
        (second, third, first),
        (third, first, second),
        (first, second, third),
    ]
    assert ConsumerSettings(**GOOD).sparks_of(7) == ("sc://127.0.0.1:15002",)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"spark_master": "local[1]"}, "both is set"),
        ({"spark_remote": None}, "neither is set"),
        ({"spark_conf": {"spark.driver.memory": "1g"}}, "settings of its own"),
    ],
)
def test_a_consumer_has_exactly_one_spark(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ConsumerSettings(**GOOD | given)


@pytest.mark.parametrize(
    ("where", "setting"),
    [
        ({"lake_root": "s3a://bucket/lake", "spark_conf": {"spark.jars": "mine.jar"}}, "spark.delta.logStore.s3a.impl"),
        ({"lake_root": "/data/lake", "tables": {"a": "S3://bucket/a"}}, "spark.delta.logStore.s3.impl"),
    ],
)
def test_consumers_that_write_by_themselves_need_a_log_store_on_s3(where: dict[str, Any], setting: str) -> None:
    """Delta Lake's own there takes one JVM that writes: of two commits at once the second would replace the first."""
    own = {"spark_master": "local[1]", **where}
    with pytest.raises(ValidationError, match=f"set {setting} in spark_conf, or use one spark_remote"):
        ConsumerSettings(**own)
    for name in (setting, "spark.delta.logStore.class"):
        conf = where.get("spark_conf", {}) | {name: "io.delta.storage.S3DynamoDBLogStore"}
        assert ConsumerSettings(**own | {"spark_conf": conf}).spark_conf == conf
    assert ConsumerSettings(**GOOD | where | {"spark_conf": {}}).spark_master is None


def test_kcgas_own_jars_have_one_for_s3a() -> None:
    assert ConsumerSettings(spark_master="local[1]", lake_root="s3a://bucket/lake").schemes == ("s3a",)


@pytest.mark.parametrize("root", ["/data/lake/", "gs://bucket/lake", "s3a://bucket/lake", "file:/data/lake"])
def test_the_lake_may_be_a_folder_or_any_url(root: str) -> None:
    assert ConsumerSettings(**GOOD | {"lake_root": root}).lake_root == root.rstrip("/")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("spark_remote", "localhost:15002", "sc://host:15002"),
        ("spark_remote", "sc://", "sc://host:15002"),
        ("spark_remote", ["sc://a:1", "b:1"], "'b:1' names no Spark Connect server"),
        ("spark_remote", [], "at least 1 item"),
        ("spark_remote", 7, "valid tuple"),
        ("lake_root", "lake", "absolute path"),
        ("lake_root", "main.lake/x", "or a schema of a catalog, as catalog.schema"),
        ("tables", {"a": {"name": "orders"}}, "tables.a: 'orders' is no name of a table: .* catalog.schema.table"),
        ("tables", {"a": {"name": "main.lake.a", "path": "a"}}, "tables.a has both path and name"),
        ("lake_root", "", "absolute path"),
        ("batch_bytes", 0, "1000"),
        ("batch_bytes", 10**9, "64000000"),
        ("wait_time_secs", 0, "greater than or equal to 0.001"),
        ("wait_time_secs", float("nan"), "finite|less than"),
        ("heartbeat_s", 3600, "60"),
        ("lease_s", 1.5, "2 times heartbeat_s"),
        ("batch_size", 5, "not permitted"),
        ("tables", {"a": "x`y"}, "pattern"),
        ("tables", {"a": "/"}, "pattern"),
        ("tables", {"a": {"path": "/"}}, "pattern"),
        ("tables", {"a": {"cluster_by": ["amount"]}}, "tables.a: cluster_by names 'amount', which is no column"),
        ("maintenance", {"cron": "nightly"}, "'nightly' is no cron expression"),
        ("maintenance", {"cron": "0 3 * * *", "retain_hours": 167}, "greater than or equal to 168"),
        ("partition_by", ["amount"], "must be of topic, partition, ingest_date"),
        ("cluster_by", "partition", "valid tuple"),
    ],
)
def test_a_setting_out_of_range_is_refused_with_what_would_be_right(name: str, value: object, says: str) -> None:
    with pytest.raises(ValidationError, match=says) as refused:
        ConsumerSettings(**GOOD | {name: value})
    assert name in str(refused.value)


def test_a_table_may_lie_anywhere() -> None:
    tables = {"a": "raw/a", "b": "/other/b/", "c": "gs://bucket/c", "swapped": "with", "with": "swapped"}
    settings = ConsumerSettings(**GOOD | {"tables": tables})
    assert settings.table("a") == "/data/lake/raw/a"
    assert settings.table("b") == "/other/b"
    assert settings.table("c") == "gs://bucket/c"
    assert settings.table("with") == "/data/lake/swapped"
    assert settings.table("d") == "/data/lake/d"


@pytest.mark.parametrize(
    "tables",
    [
        *({"a": "one", "b": "one/"}, {"a": "b"}, {"a": "/data/lake/b"}, {"a": "-_b"}, {"a": "b", "b": "b"}),
        {"a": {"name": "main.lake.One"}, "b": {"name": "main.lake.oNE"}},
    ],
)
def test_two_topics_may_not_share_a_table(tables: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="the table of the topic"):
        ConsumerSettings(**GOOD | {"tables": tables})


def test_tables_may_have_names_in_a_catalog() -> None:
    tables = {"a": "raw/main.lake.a", "b": {"name": "main.lake.b"}, "c": "gs://bucket/c/"}
    settings = ConsumerSettings(**GOOD | {"tables": tables})
    assert [settings.table(topic) for topic in "abcd"] == [
        "/data/lake/raw/main.lake.a",
        "main.lake.b",
        "gs://bucket/c",
        "/data/lake/d",
    ]
    by_name = ConsumerSettings(**GOOD | {"lake_root": "main.lake", "tables": {"b": {"name": "main.own.b"}, "c": "/c"}})
    assert [by_name.table(topic) for topic in "abc"] == ["main.lake.a", "main.own.b", "/c"]
    assert by_name.schemes == ()
    with pytest.raises(ValidationError, match=r"tables.a: lake_root is a schema, and no folder that 'a/b' could be in"):
        ConsumerSettings(**GOOD | {"lake_root": "main.lake", "tables": {"a": "a/b"}})


def test_a_spark_of_its_own_needs_a_catalog_that_others_have_too() -> None:
    own = {"spark_master": "local[1]", "lake_root": "spark_catalog.lake"}
    with pytest.raises(ValidationError, match=r"knows no catalog 'spark_catalog' .* spark.sql.catalogImplementation"):
        ConsumerSettings(**own)
    ConsumerSettings(**own | {"spark_conf": {"spark.sql.catalogImplementation": "hive"}})
    other = {"lake_root": "/lake", "tables": {"a": {"name": "unity.lake.a"}}}
    with pytest.raises(ValidationError, match=r"set spark.sql.catalog.unity in spark_conf"):
        ConsumerSettings(**own | other)


def test_tables_may_have_layouts_of_their_own() -> None:
    tables = {"a": "raw/a", "b": {"path": "raw/b", "partition_by": []}, "c": {"cluster_by": ["amount"]}}
    schemas = {"c": {"amount": "double"}}
    settings = ConsumerSettings(**GOOD | {"tables": tables, "schemas": schemas, "cluster_by": ["partition"]})
    assert settings.places == {"a": "/data/lake/raw/a", "b": "/data/lake/raw/b"}
    layouts = {topic: settings.layouts.of(settings.table(topic)) for topic in "abcd"}
    by_default, own = Layout(cluster_by=("partition",)), Layout(cluster_by=("amount",))
    assert layouts == {"a": by_default, "b": Layout(), "c": own, "d": by_default}
    assert ConsumerSettings(**GOOD).layouts.of("/data/lake/a") == BY_DAY


def test_a_schema_names_types_or_types_and_fields() -> None:
    schemas = {"orders": {"amount": "double", "paid_at": {"type": "timestamp", "field": "payment.timestamp"}}}
    assert ConsumerSettings(**GOOD | {"schemas": schemas}).columns == {
        "orders": (
            Column("amount", "double", ("amount",)),
            Column("paid_at", "timestamp", ("payment", "timestamp")),
        )
    }


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"Timestamp": "timestamp"}, "column 'Timestamp' already.*field"),
        ({"a": "int", "A": "int"}, "already"),
        ({"a": "integer"}, r"orders\.a: 'integer' is no type: it must be one of string, binary"),
        ({"a b": "int"}, "name of a column"),
        ({"a": {"field": "b"}}, "type"),
    ],
)
def test_a_schema_that_cannot_be_is_refused(columns: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ConsumerSettings(**GOOD | {"schemas": {"orders": columns}})


REGISTRY: dict[str, Any] = {"registry_url": "https://registry:8081/api", "registered": ["clicks"]}


def test_values_may_have_their_schemas_in_a_registry_whose_secrets_are_not_shown() -> None:
    settings = ConsumerSettings(
        **GOOD | REGISTRY | {"without_value": ["clicks"], "registry_client": {"basic.auth.user.info": "me:geheim"}}
    )
    assert (settings.registered, settings.without_value) == (("clicks",), ("clicks",))
    assert "geheim" not in repr(settings)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"registered": ["clicks"]}, "registered is set, and registry_url is not"),
        (REGISTRY | {"registry_url": "registry:8081"}, "pattern"),
        (REGISTRY | {"registry_url": "https://me:secret@registry:8081"}, "pattern"),
        (REGISTRY | {"schemas": {"clicks": {"a": "int"}}}, "clicks is in schemas, and in registered"),
        ({"without_value": ["other"]}, "without_value names other, .*its value would be lost"),
    ],
)
def test_what_cannot_be_said_of_values_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ConsumerSettings(**GOOD | given)


OF_A_PROGRAM: dict[str, Any] = {"sink": "command", "command": ["my-sink", "--fast"]}


def test_records_may_go_to_a_program_and_then_there_is_no_spark_and_no_lake() -> None:
    settings = ConsumerSettings(**OF_A_PROGRAM)
    assert settings.command == ("my-sink", "--fast")
    assert settings.session == "program"
    assert ConsumerSettings(**GOOD).session == "Spark session"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"sink": "command", "command": ["my-sink", "a\0b"]}, "pattern"),
        ({"sink": "command", "command": [""]}, "at least 1 character"),
        ({"sink": "command"}, "command is not set: it must be the program and its arguments"),
        (OF_A_PROGRAM | {"lake_root": "/lake"}, "lake_root of a lake is set"),
        (OF_A_PROGRAM | GOOD, "spark_remote and lake_root of a lake is set"),
        (GOOD | {"command": ["my-sink"]}, 'set sink = "command", or no command'),
        ({"spark_remote": "sc://127.0.0.1:15002"}, "Field required"),
    ],
)
def test_a_consumer_has_exactly_one_sink(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ConsumerSettings(**given)
