"""Curves, segments and profile files."""

from gpushare.profiles.kinds import IterationKind
from gpushare.profiles.profile import FORMAT, VERSION, Profile
from gpushare.profiles.segments import segments

__all__ = ["FORMAT", "VERSION", "IterationKind", "Profile", "segments"]
