"""Statements about CUDA and torch that gpushare's CUDA side is to rest on, by subject.

The modules import no torch by themselves: it comes in by `gpu.later`, in the process of the one check.
"""

MODULES = tuple(
    f"gpu.facts.{name}"
    for name in (
        "interposing",
        "allocation",
        "bridge",
        "backward",
        "streams",
        "virtual_memory",
        "equality",
        "sharing",
        "random_numbers",
        "graphs",
        "copying",
        "telemetry",
    )
)
