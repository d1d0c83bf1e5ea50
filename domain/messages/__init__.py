"""The messages on kcga's topics, one module for each topic, each with one versioned JSON schema."""

from domain.messages.codec import MessageError, PartitionRef
from domain.messages.decisions import (
    Decision,
    DecisionKind,
    HeldBack,
    PlanFigures,
    PlannedPartition,
    Restraint,
    SaturatedPartition,
    Shortfall,
)
from domain.messages.metadata import (
    Action,
    ConsumerCommand,
    ConsumerReport,
    ConsumerState,
    ControlAction,
    ControllerClaim,
    ControlRequest,
    CreationLimit,
    Cycle,
    MessageToController,
    Order,
    Read,
    Throughput,
    decode_to_controller,
    writer,
)
from domain.messages.schemas import json_schema
from domain.messages.write_speed import PartitionSpeed, WriteSpeedReport

__all__ = [
    "Action",
    "ConsumerCommand",
    "ConsumerReport",
    "ConsumerState",
    "ControlAction",
    "ControlRequest",
    "ControllerClaim",
    "CreationLimit",
    "Cycle",
    "Decision",
    "DecisionKind",
    "HeldBack",
    "MessageError",
    "MessageToController",
    "Order",
    "PartitionRef",
    "PartitionSpeed",
    "PlanFigures",
    "PlannedPartition",
    "Read",
    "Restraint",
    "SaturatedPartition",
    "Shortfall",
    "Throughput",
    "WriteSpeedReport",
    "decode_to_controller",
    "json_schema",
    "writer",
]
