"""Start-up order of the host: shim, torch, self-check, isolation, jobs. Then the control loop."""

from __future__ import annotations

import atexit
import faulthandler
import os
import signal
import sys
import threading
from typing import Any

from gpushare.errors import UsageError
from gpushare.host import bad_frees, gpu, stranded
from gpushare.host.control import Control
from gpushare.isolation import installed
from gpushare.native import doors, interpreter, library, shim
from gpushare.scheduling.thread import SchedulerThread

LONGEST_EXIT_HANDLERS_S = 5.0
# For which a thread may keep the GIL from another one that wants it; Python's own 5 ms let a job of pure Python hold up
# each operation of the others for as long.
GIL_TURN_S = 0.0005


def main(control_descriptor: int) -> int:
    """Run what the first message asks for; 0 when every job has ended, however it did."""
    faulthandler.register(signal.SIGQUIT, file=os.dup(2))  # where all threads are; 2 will be each job's own
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # the parent tells us of it
        signal.signal(signal.SIGINT, lambda *_: None)  # not SIG_IGN, which programs would inherit
    control = Control(control_descriptor)
    messages = control.messages()
    start = next(messages)
    try:
        _check_packages(start["shared_packages"])
        index = gpu.choose(start["device"])
        library.load()
        shim.start(
            budget_bytes=start["budget_bytes"],
            page_bytes=start["page_bytes"],
            region_bytes=start["region_bytes"],
            policy=start["policy"],
            telemetry_fd=start["telemetry_fd"],
            parent_pid=start["parent_pid"],
            log_fd=start["log_fd"],
            debug_memory=start["debug_memory"],
            gpu=index,
        )
        _watch_waits(control)
        if start["decisions_fd"] >= 0:
            doors.decisions_start(start["decisions_fd"])
        from gpushare.framework import selfcheck  # torch comes with it, so the shim must be first

        selfcheck.run(pooled=index is None)
        from gpushare.isolation import directory

        directory.prepare(
            [job["cwd"] for job in start["jobs"]], lambda text: control.send("note", message=text)
        )
        if index is not None:
            from gpushare.framework import cuda

            cuda.start(lambda text: control.send("note", message=text))
    except Exception as error:
        control.send("failed", message=str(error))
        return 2
    scheduler, runners = _start_jobs(start, control)
    threading.Thread(target=_listen, args=(messages, runners, scheduler, control), daemon=True).start()
    if start["debug_memory"]:
        threading.Thread(target=bad_frees.watch, args=(start["jobs"], control), daemon=True).start()
    lookout = stranded.Lookout(runners, lambda text: control.send("note", message=text))
    for runner in runners:
        while runner.runs:
            runner.thread.join(1.0)  # to handle a signal, this thread must wake, whichever one got it
            lookout.look()
    _run_exit_handlers()
    _flush_log(control)
    bad_frees.tell(start["jobs"], control)
    control.send("done", yields=scheduler.yields.to_json(), scheduler_cpu_s=scheduler.cpu_s)
    sys.stdout.flush()
    sys.stderr.flush()
    # Nothing of the shim or of torch is worth taking down, and daemon threads of jobs may still run.
    os._exit(0)


def _check_packages(shared: list[str]) -> None:
    if unknown := installed.unknown(shared):
        raise UsageError(f"no package {', '.join(unknown)} is installed, which --share names")


def _watch_waits(control: Control) -> None:
    for watch in (interpreter.watch_rests, interpreter.watch_gil_waits, interpreter.watch_streams):
        try:
            watch()
        except library.NativeError as error:
            control.send("note", message=str(error))


def _set_budget(scheduler: SchedulerThread, budget_bytes: int, *, force: bool) -> str | None:
    """Why not, or None."""
    if refused := scheduler.why_no_cut(budget_bytes, force=force):
        return refused
    try:
        shim.budget_set(budget_bytes)
    except library.NativeError as error:
        return str(error)
    return None


def _run_exit_handlers() -> None:
    """Those of shared modules, registered when they were imported: of the host, as the modules are."""
    from gpushare.framework import compile_pools

    compile_pools.let_go()
    handlers: Any = atexit
    thread = threading.Thread(target=handlers._run_exitfuncs, daemon=True)
    thread.start()
    thread.join(LONGEST_EXIT_HANDLERS_S)


def _flush_log(control: Control) -> None:
    try:
        shim.log_flush()
    except library.NativeError as error:
        control.send(
            "log_ended", message=f"a log that the host writes (--trace, --explain) ends early: {error}"
        )


def _start_jobs(start: dict[str, Any], control: Control) -> tuple[SchedulerThread, list[Any]]:
    from gpushare.framework import cuda_run_ahead, iterations, profiles
    from gpushare.host import parts
    from gpushare.host.jobs import JobRunner, stop_when_profiled
    from gpushare.isolation import collection, open_files, ownership, patches, signal_routes

    # First: our hook on optimizers is one for all jobs, and must not look like a job's.
    stop = (stop_when_profiled,) if start["mode"] == "profile" else ()
    iterations.install(cuda_run_ahead.mark, *stop)
    ownership.share(start["shared_packages"])
    if start["open_files"] is not None:
        open_files.show(start["open_files"])
    parts.install()
    if len(start["jobs"]) > 1:
        sys.setswitchinterval(GIL_TURN_S)
        patches.watch(lambda text: control.send("note", message=text))
        collection.freeze_host()
    if stop:
        profiles.expect_one_job()
    scheduler = SchedulerThread(
        policy=start["policy"],
        order=start["order"],
        split_bytes=start["split_bytes"],
        note=lambda text: control.send("note", message=text),
    )
    scheduler.start()
    control.send("ready")
    page_bytes = start["page_bytes"]
    runners = [JobRunner(i, spec, control, scheduler, page_bytes) for i, spec in enumerate(start["jobs"])]
    scheduler.expect(len(runners))
    signal_routes.let_end_all(lambda number: _tell_all(runners, number))
    for runner in runners:
        runner.thread.start()
    return scheduler, runners


def _tell_all(runners: list[Any], number: int) -> None:
    for runner in runners:
        runner.signal(number)


def _listen(messages: Any, runners: list[Any], scheduler: SchedulerThread, control: Control) -> None:
    for message in messages:
        if message["op"] == "signal":
            _tell_all(runners, message["number"])
        elif message["op"] == "budget":
            refused = _set_budget(scheduler, message["budget_bytes"], force=message["force"])
            control.send("budget", number=message["number"], refused=refused)
    os.killpg(0, signal.SIGKILL)  # the parent is gone: nothing of ours may stay behind
