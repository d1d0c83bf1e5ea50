"""Which consumer a command line means."""

import pytest
import typer

from cli.commands.consumer import consumer_number


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("12", 12), ("lake-consumer-3", 3), ("my-consumer-2-consumer-40", 40)]
)
def test_a_number_and_the_name_of_a_deployment_say_which_consumer(text: str, number: int) -> None:
    assert consumer_number(text) == number


@pytest.mark.parametrize(
    "text", ["0", "-1", "1.5", "", "lake", "lake-consumer-", "lake-consumer-0", "consumer-3x", "²"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"neither a number from 1 to 999999999 nor a name like lake"):
        consumer_number(text)


@pytest.mark.parametrize("text", [str(2**64), "9" * 5_000, f"lake-consumer-{2**64}"])
def test_a_number_that_no_partition_has_is_refused(text: str) -> None:
    """Hole 24: it ended in a traceback of the Kafka client."""
    with pytest.raises(typer.BadParameter, match="neither a number"):
        consumer_number(text)
