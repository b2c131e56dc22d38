"""A refusal is a value: what pure code returns instead of raising when the answer is no."""

from dataclasses import dataclass

from oncelog.model.error_code import ErrorCode


@dataclass(frozen=True, slots=True)
class Refused:
    code: ErrorCode
    why: str
