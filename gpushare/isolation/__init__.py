"""What is one per process in Python, and must be one per job.

Each part is a module with `install()`, once per host; `enter(job)`, in the job's main thread before its script
runs; and `leave(job)`, in the same thread when the script and its exit handlers are through. Torch's own state
is in `framework/`, with the same three functions.
"""
