"""What is said of a cluster that refuses."""

from confluent_kafka import KafkaError

from app.refusals import reason

NO_ANSWER = KafkaError(KafkaError._TRANSPORT, "broker transport failure")


def test_who_is_refused_is_told_what_to_correct_though_the_request_got_no_answer_at_all() -> None:
    said = reason(NO_ANSWER, [KafkaError(KafkaError._AUTHENTICATION, "invalid credentials")])
    assert "invalid credentials" in said
    assert "sasl.password" in said


def test_a_certificate_that_cannot_be_verified_is_told_from_a_wrong_password() -> None:
    said = reason(NO_ANSWER, [KafkaError(KafkaError._SSL, "certificate verify failed")])
    assert "ssl.ca.location" in said
    assert "sasl.password" not in said


def test_a_missing_right_names_the_command_that_prints_it() -> None:
    assert "kcga acls" in reason(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED, "Group authorization failed"))


def test_of_several_complaints_the_newest_counts() -> None:
    complaints = [KafkaError(KafkaError._SSL, "handshake"), KafkaError(KafkaError._AUTHENTICATION, "password")]
    assert "sasl.password" in reason(NO_ANSWER, complaints)


def test_any_other_failure_is_told_as_it_is_in_one_line() -> None:
    assert reason(KafkaError(KafkaError._TIMED_OUT, "no\nanswer")) == "no answer"
