"""The messages on kcga's topics, one module for each topic, each with one versioned JSON schema."""

from domain.messages.codec import MessageError, PartitionRef
from domain.messages.decisions import Decision, PlanFigures, PlannedPartition
from domain.messages.metadata import (
    Action,
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    ControllerClaim,
    Cycle,
    Order,
    Read,
    decode_to_controller,
)
from domain.messages.schemas import json_schema
from domain.messages.write_speed import PartitionSpeed, WriteSpeedReport

__all__ = [
    "Action",
    "ConsumerCommand",
    "ConsumerReport",
    "ConsumerState",
    "ControllerClaim",
    "Cycle",
    "Decision",
    "MessageError",
    "Order",
    "PartitionRef",
    "PartitionSpeed",
    "PlanFigures",
    "PlannedPartition",
    "Read",
    "WriteSpeedReport",
    "decode_to_controller",
    "json_schema",
]
