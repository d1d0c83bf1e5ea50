from domain.group_view.sources import sources_sentence
from domain.speeds import MeasuredBy


def test_what_is_exact_needs_no_words() -> None:
    assert sources_sentence(()) is None
    assert sources_sentence([MeasuredBy("log_dirs", ("orders",))]) is None


def test_other_sources_are_said_with_why_and_for_which_topics() -> None:
    sources = [
        MeasuredBy("log_dirs", ("a",)),
        MeasuredBy("offsets", ("b", "c", "d", "e", "f"), "denied"),
        MeasuredBy("offsets", ("g",), "monitor.source says so"),
    ]
    said = "write speeds are measured of b, c, d and 2 more by offsets, since denied; of g by offsets, since"
    assert sources_sentence(sources) == f"{said} monitor.source says so"
