"""How a job ended."""

from __future__ import annotations

from dataclasses import dataclass

from gpushare.framework import cuda_faults


@dataclass
class Outcome:
    """How a job ended. `status` is ok, failed, interrupted, profiled, refused: its memory was away and had no room to
    come back, or lost: this one failed, and the device is lost for all jobs. `device_lost`: what the device says then,
    also to a job that ended well."""

    status: str
    exit_code: int
    message: str | None = None
    device_lost: str | None = None


def ask_device(outcome: Outcome) -> None:
    """Whoever is interrupted does not wait for the device."""
    if outcome.status == "interrupted":
        return
    try:
        outcome.device_lost = cuda_faults.lost()
    except BaseException as error:  # the job ends all the same
        outcome.message = outcome.message or f"{type(error).__name__}: {error}"
    if outcome.device_lost and outcome.status == "failed":
        outcome.status, outcome.message = "lost", outcome.message or outcome.device_lost
