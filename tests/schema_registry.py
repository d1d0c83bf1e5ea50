"""A schema registry on this machine that speaks Confluent's API, as far as its client asks for it."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sandbox.ports import LOOPBACK
from tests import http_server


class SchemaRegistry:
    """Has a schema under each number; those of Protobuf as descriptors, which it shows where it is asked for them."""

    def __init__(self) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.asked: list[str] = []
        """Path by path."""
        self.authorizations: list[str | None] = []
        self.answer: tuple[int, bytes] | None = None
        """In place of all others."""
        self.answers = threading.Event()
        """Whether it answers at all."""
        self.answers.set()
        self._subjects: dict[str, list[int]] = {}
        self._server = http_server.serve(self._answer)
        self.url = f"http://{LOOPBACK}:{self._server.server_port}"

    def add(
        self, schema: object, kind: str = "AVRO", references: Sequence[Mapping[str, Any]] = (), to: str = ""
    ) -> int:
        """The number of a schema, which is text or else becomes JSON, as the next version of a subject."""
        number = len(self.schemas) + 1
        text = schema if isinstance(schema, str) else json.dumps(schema)
        self.schemas[number] = {"schema": text, "schemaType": kind, "references": list(references)}
        self._subjects.setdefault(to or f"subject-{number}", []).append(number)
        return number

    def close(self) -> None:
        self.answers.set()
        http_server.close(self._server)

    def _answer(self, asked: BaseHTTPRequestHandler) -> tuple[int, bytes]:
        self.asked.append(asked.path)
        self.authorizations.append(asked.headers.get("authorization"))
        self.answers.wait()
        return self.answer or self._found(asked.path)

    def _found(self, path: str) -> tuple[int, bytes]:
        url = urlsplit(path)
        match url.path.strip("/").split("/"):
            case ["schemas", "types"]:
                return _as_json(["AVRO", "JSON", "PROTOBUF"])
            case ["schemas", "ids", number] if int(number) in self.schemas:
                return _as_json(self._shown(int(number), url.query))
            case ["subjects", subject, "versions", version] if subject in self._subjects:
                of_version = self._subjects[subject][int(version) - 1]
                more = {"subject": subject, "version": int(version), "id": of_version}
                return _as_json({**more, **self._shown(of_version, url.query)})
            case ["schemas", "ids", _]:
                return _as_json({"error_code": 40403, "message": "Schema not found"}, 404)
            case _:
                return _as_json({"error_code": 40401, "message": "Subject not found"}, 404)

    def _shown(self, number: int, query: str) -> dict[str, Any]:
        schema = self.schemas[number]
        if schema["schemaType"] == "PROTOBUF" and parse_qs(query).get("format") != ["serialized"]:
            return {**schema, "schema": 'syntax = "proto3";'}
        return {name: value for name, value in schema.items() if (name, value) != ("schemaType", "AVRO")}


def framed(number: int, value: bytes) -> bytes:
    """A value in the wire format: the number of its schema, and what follows it."""
    return b"\x00" + number.to_bytes(4, "big") + value


@contextmanager
def schema_registry() -> Iterator[SchemaRegistry]:
    registry = SchemaRegistry()
    try:
        yield registry
    finally:
        registry.close()


def _as_json(answer: object, status: int = 200) -> tuple[int, bytes]:
    return status, json.dumps(answer).encode()
