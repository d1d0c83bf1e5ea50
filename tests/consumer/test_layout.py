"""Which layouts tables can have, and how SQL says them; on Spark itself: test_lake."""

import pytest

from consumer.decide.columns import Column
from consumer.decide.layout import BY_DAY, Layout, amiss
from consumer.table import creation

COLUMNS = (Column("region", "string", ("region",)), Column("Paid at", "timestamp", ("paid",)))


@pytest.mark.parametrize(
    ("layout", "sql", "words"),
    [
        (BY_DAY, "PARTITIONED BY (`ingest_date`)", "partitioned by ingest_date"),
        (Layout(("topic", "Ingest_Date")), "PARTITIONED BY (`topic`, `Ingest_Date`)", "partitioned by topic, Ingest"),
        (Layout(cluster_by=("partition", "a`b")), "CLUSTER BY (`partition`, `a``b`)", "clustered by partition, a`b"),
        (Layout(), "", "neither"),
    ],
)
def test_a_layout_is_said_in_sql_and_in_words(layout: Layout, sql: str, words: str) -> None:
    assert layout.sql == sql
    assert str(layout).startswith(words)


def test_a_table_is_created_with_it_and_tells_the_ranges_of_what_it_is_clustered_by() -> None:
    statement = creation("/lake/orders", COLUMNS, Layout(cluster_by=("partition", "it's")))
    assert "USING DELTA CLUSTER BY (`partition`, `it's`) TBLPROPERTIES" in statement
    assert r"'delta.dataSkippingStatsColumns' = 'partition,offset,timestamp,`it\'s`'" in statement
    assert "USING DELTA TBLPROPERTIES" in " ".join(creation("/lake/orders", COLUMNS, Layout()).split())


def test_capital_letters_make_no_other_layout() -> None:
    assert Layout(("INGEST_DATE",)).is_like(BY_DAY)
    assert not Layout(cluster_by=("ingest_date",)).is_like(BY_DAY)
    assert not Layout(cluster_by=("partition", "offset")).is_like(Layout(cluster_by=("offset", "partition")))


@pytest.mark.parametrize(
    "layout", [BY_DAY, Layout(), Layout(("Region", "topic")), Layout(cluster_by=("offset", "paid AT", "timestamp"))]
)
def test_a_layout_of_columns_that_there_are_is_right(layout: Layout) -> None:
    assert amiss(layout, COLUMNS) is None


def test_of_a_registry_there_may_be_any_other_column() -> None:
    assert amiss(Layout(("city",)), and_others=True) is None
    assert "by which none can be so" in str(amiss(Layout(("key",)), and_others=True))


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        (Layout(("ingest_date",), ("partition",)), "not both"),
        (Layout(cluster_by=("topic", "partition", "offset", "timestamp", "region")), "at most 4"),
        (Layout(("topic", "TOPIC")), "twice"),
        (Layout(("city",)), "'city', which is no column: it must be of topic, partition, ingest_date, region"),
        (Layout(("offset",)), "'offset', by which none can be so"),
        (Layout(("Paid at",)), "'Paid at', by which none can be so"),
        (Layout(("value",)), "'value', by which none can be so"),
        (Layout(cluster_by=("headers",)), "'headers', by which none can be so: it must be of topic, partition, offset"),
    ],
)
def test_a_layout_that_no_table_can_have_is_refused_with_what_would_be_right(layout: Layout, why: str) -> None:
    assert why in str(amiss(layout, COLUMNS))
