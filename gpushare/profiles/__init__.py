"""Curves, segments and profile files."""

from gpushare.profiles.profile import FORMAT, VERSION, Profile
from gpushare.profiles.segments import segments

__all__ = ["FORMAT", "VERSION", "Profile", "segments"]
