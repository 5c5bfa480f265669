"""Who starts when: snapshots, pure policies, and the one thread that publishes their permits."""
