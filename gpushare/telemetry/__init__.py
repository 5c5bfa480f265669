"""Reading what the shim publishes in shared memory."""
