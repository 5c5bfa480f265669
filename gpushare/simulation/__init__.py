"""A virtual clock and a contention model under the product's own policies, doors and safety check."""

from gpushare.scheduling.policies import DEFAULT, ORDERED, POLICIES, SEGMENTED
from gpushare.simulation.contention import Contention
from gpushare.simulation.engine import Engine, SimulationStuck
from gpushare.simulation.job import Shape, SimulatedJob, from_profile
from gpushare.simulation.outcome import JobOutcome, Outcome
from gpushare.simulation.runs import simulate

POLICY_NAMES, DEFAULT_POLICY = tuple(POLICIES), DEFAULT

__all__ = [
    "DEFAULT_POLICY",
    "ORDERED",
    "POLICY_NAMES",
    "SEGMENTED",
    "Contention",
    "Engine",
    "JobOutcome",
    "Outcome",
    "Shape",
    "SimulatedJob",
    "SimulationStuck",
    "from_profile",
    "simulate",
]
