"""Models that allocation logs are replayed through, in Python and without a device."""
