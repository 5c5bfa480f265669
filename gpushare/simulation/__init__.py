"""A virtual clock and a contention model under the product's own policies, doors and safety check."""

from gpushare.simulation.contention import Contention
from gpushare.simulation.engine import Engine, SimulationStuck
from gpushare.simulation.job import Shape, SimulatedJob, from_profile
from gpushare.simulation.outcome import JobOutcome, Outcome
from gpushare.simulation.runs import simulate

__all__ = [
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
