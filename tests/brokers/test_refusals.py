"""What is said of a cluster that refuses."""

from confluent_kafka import KafkaError
from structlog.testing import capture_logs

from brokers.errors import log_error, reason

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


NOTHING_GIVEN = "Failed to acquire SASL OAUTHBEARER token: Failed to connect to 127.0.0.1:1 after {} ms: no server"
REFUSED = (
    'sasl_ssl://broker:9093/1: SASL authentication error: {{"status":"invalid_token"}} (after {}ms in state AUTH_REQ)'
)


def test_that_there_is_no_token_is_told_from_one_that_the_brokers_refuse() -> None:
    said = reason(NO_ANSWER, [KafkaError(KafkaError._AUTHENTICATION, NOTHING_GIVEN.format(1))])
    assert "the identity provider gives no access token" in said
    assert "https.ca.location" in said
    said = reason(NO_ANSWER, [KafkaError(KafkaError._AUTHENTICATION, REFUSED.format(1))])
    assert "the brokers refuse the access token" in said
    assert "sasl.password" not in said


def test_a_connection_that_ends_in_the_midst_of_it_is_no_refusal() -> None:
    ended = (
        "sasl_ssl://broker:9093/1: SASL OAUTHBEARER mechanism handshake failed: Local: Broker transport failure: "
        "broker's supported mechanisms: (n/a) (after 0ms in state DOWN)"
    )
    said = reason(NO_ANSWER, [KafkaError(KafkaError._AUTHENTICATION, ended)])
    assert "ended the connection" in said
    assert "sasl.password" not in said
    assert "security.protocol" in said


def test_what_a_client_complains_of_at_each_attempt_is_logged_once() -> None:
    with capture_logs() as logged:
        for attempt in range(3):
            log_error(KafkaError(KafkaError._AUTHENTICATION, REFUSED.format(300 + attempt)))
            log_error(KafkaError(KafkaError._SSL, "handshake"))
            before = f", {attempt} identical error(s) suppressed" if attempt else ""
            log_error(KafkaError(KafkaError._TRANSPORT, f"Connection refused (after 0ms in state CONNECT{before})"))
    assert [entry["code"] for entry in logged] == ["_AUTHENTICATION", "_SSL", "_TRANSPORT"]
