"""The parent's side: the host process, output, exit codes. Never imports torch."""
