from cli.doctor.finding import Grade
from cli.doctor.registry import check_registry
from tests.app.any_settings import settings
from tests.schema_registry import schema_registry


def test_the_doctor_asks_the_registry_where_one_is_set() -> None:
    assert list(check_registry(settings())) == []
    with schema_registry() as registry:
        of_one = settings(
            consumer={"spark_remote": "sc://127.0.0.1:1", "lake_root": "/lake", "registry_url": registry.url}
        )
        (finding,) = check_registry(of_one)
        assert (finding.grade, finding.what) == (
            Grade.OK,
            f"the schema registry answers at {registry.url}: AVRO, JSON, PROTOBUF",
        )
        registry.answer = (401, b'{"error_code": 401, "message": "Unauthorized"}')
        (finding,) = check_registry(of_one)
        assert (finding.grade, "Unauthorized" in finding.what) == (Grade.FAULT, True)
        for nonsense in (b"5", b'"AVRO"', b'{"formats": []}'):
            registry.answer = (200, nonsense)
            (finding,) = check_registry(of_one)
            assert (finding.grade, "answers without formats" in finding.what) == (Grade.FAULT, True)
    (finding,) = check_registry(of_one)
    assert (finding.grade, "does not answer" in finding.what) == (Grade.FAULT, True)
