"""The one process in which all jobs run, a thread each."""
