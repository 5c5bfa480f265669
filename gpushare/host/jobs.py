"""A job's thread, from its first line to its last byte."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import types
from dataclasses import asdict
from typing import Any, NoReturn

from gpushare.framework import generators, iterations, profiles
from gpushare.framework import threads as torch_threads
from gpushare.host import parts, script
from gpushare.host.control import Control
from gpushare.host.outcome import Outcome, ask_device
from gpushare.isolation import (
    context,
    directory,
    exits,
    handler_calls,
    modules,
    signal_handlers,
    stdio,
    system,
    threads,
)
from gpushare.isolation.context import JobContext
from gpushare.native import doors, process, shim
from gpushare.scheduling.admission import Need
from gpushare.scheduling.thread import SchedulerThread

WARMUP_ITERATIONS = 1
# The shortest there is. A job that wakes when others have made room then waits for no slice of theirs.
TIME_SLICE_NS = 100_000
_NEWS = (signal.SIGUSR1, signal.SIGUSR2)  # for who has a handler, and no reason for the others to end
# For a script that has no handler for the signal that asks it to end: it may sleep in C code, which nothing cuts short.
PATIENCE_S = 2.0


class ProfileDone(SystemExit):
    """Ends a script whose profile is stable, through its own `finally` and `with` blocks."""


class JobRunner:
    """One job of the run; `spec` is its part of the start message."""

    def __init__(
        self, index: int, spec: dict[str, Any], control: Control, scheduler: SchedulerThread, page_bytes: int
    ) -> None:
        self._index = index
        self._spec = spec
        self._control = control
        self._scheduler = scheduler
        self._page_bytes = page_bytes
        self._signalled: int | None = None  # the signal that asked it to end
        self._job: JobContext | None = None
        self._abandoned = False  # its thread waits for ever, or may
        self._ending = threading.Lock()  # held by who tells the parent that it has ended
        self._account = shim.job_begin(WARMUP_ITERATIONS, queued=True)
        self.thread = threading.Thread(target=self._run, name=f"job-{spec['name']}")

    def signal(self, number: int) -> None:
        """One that has reached gpushare: KeyboardInterrupt in the job's thread, or what the script has for it."""
        asks_to_end = number not in _NEWS
        job = self._job
        if asks_to_end:
            self._signalled = number
        if job and self.runs and (asks_to_end or signal_handlers.has_handler(job, number)):
            signal_handlers.deliver(job, number)
            if not signal_handlers.has_handler(job, number):
                self._begin_to_wait()

    @property
    def name(self) -> str:
        """Of the job."""
        return str(self._spec["name"])

    @property
    def account(self) -> int:
        """Of the job."""
        return self._account

    @property
    def runs(self) -> bool:
        """Whether its end is still to come."""
        return self.thread.is_alive() and not self._abandoned

    def abandon(self, why: str) -> None:
        """End the job without its thread, which can't go on: its memory is away and has no room to come back."""
        if shim.abandon(self._account) and self._ending.acquire(blocking=False):
            self._end_without_thread(Outcome("refused", 1, why))

    def _begin_to_wait(self) -> None:
        timer = threading.Timer(PATIENCE_S, self._give_up_waiting)
        timer.daemon = True
        timer.start()

    def _give_up_waiting(self) -> None:
        """The signal would have ended the process at once. What its thread still does is of no job."""
        number = self._signalled or signal.SIGTERM
        if self._ending.acquire(blocking=False):
            self._end_without_thread(Outcome("interrupted", 128 + number, signal.Signals(number).name))

    def _end_without_thread(self, outcome: Outcome) -> None:
        self._abandoned = True
        self._scheduler.remove_job(self._account)
        self._flush()
        self._scheduler.release(self.name)
        self._tell_end(outcome)

    def _flush(self) -> None:
        for stream in (self._job.stdout, self._job.stderr) if self._job else ():
            with contextlib.suppress(OSError, ValueError):
                stream.flush()

    def _run(self) -> None:
        if not self._admitted():
            self._never_began()
            return
        outcome = Outcome("failed", 1)
        try:
            outcome = self._guarded(self._begin())
        except (
            BaseException
        ) as error:  # what the script's own guard does not see: others must not wait for us
            outcome = self._ended_by(error)
        finally:
            if not context.in_host():
                self._end_child(outcome)
            self._finish(outcome)

    def _end_child(self, outcome: Outcome) -> NoReturn:
        """The script has forked, and this is the end of the child: what it ran is no job, and the parent's goes on."""
        self._flush()
        exits.end_process(outcome.exit_code)

    def _begin(self) -> JobContext:
        """The job's world, entered by its thread."""
        job = self._context()
        profile = self._spec["profile"]
        self._scheduler.add_job(
            job.account,
            self._spec["name"],
            priority=self._spec["priority"],
            total_iterations=profile["iterations"] if profile else None,
        )
        self._control.send("job_started", job=self._index, account=job.account)
        process.set_time_slice(TIME_SLICE_NS)
        directory.begin(self._spec["cwd"])
        parts.enter(job)
        iterations.begin(job)
        self._job = job
        if self._signalled:  # before there was anybody to tell
            raise KeyboardInterrupt
        return job

    def _ended_by(self, error: BaseException) -> Outcome:
        if self._signalled:
            return Outcome("interrupted", 128 + self._signalled, str(error) or type(error).__name__)
        return Outcome("failed", 1, f"{type(error).__name__}: {error}")

    def _ended_hard(self, error: exits.HardExit) -> Outcome:
        if self._signalled and error.code == 128 + self._signalled:
            return Outcome("interrupted", error.code, signal.Signals(self._signalled).name)
        return Outcome("failed" if error.code else "ok", error.code)

    def _admitted(self) -> bool:
        """Whether the job may begin; waits for that. False: it was interrupted first."""
        spec = self._spec
        profile = spec["profile"]
        return self._scheduler.admit(
            spec["name"],
            self._account,
            Need(profile["residue_bytes"], profile["peak_held_bytes"]) if profile else None,
            priority=spec["priority"],
            solo_s=spec["solo_s"],
            note=lambda text: self._control.send("note", message=text),
            queued=lambda wait: self._control.send("queued", account=self._account, **asdict(wait)),
            given_up=lambda: self._signalled is not None,
        )

    def _never_began(self) -> None:
        self._close_outputs()
        shim.job_end(self._account)
        message = "interrupted before it began"
        code = 128 + (self._signalled or signal.SIGINT)
        fields = {"status": "interrupted", "exit_code": code, "message": message, "device_lost": None}
        self._control.send("job_ended", job=self._index, **fields)

    def _context(self) -> JobContext:
        spec = self._spec
        account = self._account
        stdin = stdio.job_input(spec["stdin"])
        if profile := spec["profile"]:
            profiles.give(account, profile)
        first = script.search_path(spec["kind"], spec["target"], spec["cwd"])
        return JobContext(
            name=spec["name"],
            account=account,
            argv=[spec["target"], *spec["args"]],
            path=modules.path_of_job(first),
            main=types.ModuleType("__main__"),
            stdin=stdin,
            stdout=stdio.job_output("stdout", spec["stdout_fd"], "strict"),
            stderr=stdio.job_output("stderr", spec["stderr_fd"], "backslashreplace"),
            descriptors=(stdin.fileno(), spec["stdout_fd"], spec["stderr_fd"]),
            generator=generators.new(),
            environ={**os.environ, **spec["env"]},
            note=lambda text: self._control.send("note", message=text),
        )

    def _guarded(self, job: JobContext) -> Outcome:
        outcome, raised = Outcome("failed", 1), None
        try:
            code = script.load(self._spec["kind"], self._spec["target"], self._spec["cwd"], job)
            script.execute(code, job)
            outcome = Outcome("ok", 0)
        except ProfileDone:
            outcome = Outcome("profiled", 0)
        except exits.HardExit as error:
            return self._ended_hard(error)
        except SystemExit as error:
            code_ = script.exit_code(error)
            outcome = Outcome("ok" if code_ == 0 else "failed", code_)
        except BaseException as error:
            raised = error  # told of below, since a hook would see it in sys.exc_info() here
        try:
            if raised is not None:
                outcome = self._told_of_whole(raised)
            return self._wind_down(job, outcome)
        except exits.HardExit as error:
            return self._ended_hard(error)
        finally:
            del raised  # its traceback holds this frame

    def _told_of_whole(self, error: BaseException) -> Outcome:
        """As `_told_of`; Ctrl-C meanwhile ends no more than that, and the script's handlers run."""
        try:
            return self._told_of(error)
        except exits.HardExit:
            raise
        except BaseException as interrupt:
            return self._ended_by(interrupt if self._signalled else error)

    def _told_of(self, error: BaseException) -> Outcome:
        """What the script raised is printed, or goes to its hook, which may choose the exit code."""
        outcome = self._ended_by(error)
        code = script.report(error)
        if code is not None:
            outcome.exit_code = code
            outcome.status = "ok" if code == 0 and outcome.status == "failed" else outcome.status
        return outcome

    def _wind_down(self, job: JobContext, outcome: Outcome) -> Outcome:
        """What the interpreter does at its end."""
        try:
            threads.finish(job)
        except exits.HardExit:
            raise
        except BaseException as error:  # Ctrl-C while it waits; the handlers run all the same
            outcome = self._told_of(error)
        exits.run_handlers(job)
        if not system.let_go_of_streams(job):
            outcome = Outcome("failed", script.LOST_OUTPUT, "output was lost")
        return outcome

    def _finish(self, outcome: Outcome) -> None:
        """Whatever became of it: the account ends, who is queued goes on, and the parent is told."""
        is_news = self._ending.acquire(blocking=False)
        try:
            ask_device(outcome)
            job, self._job = self._job, None  # nothing of it is kept
            if job:
                self._give_up(job, outcome)
            else:
                self._close_outputs()
        except BaseException as error:
            outcome.message = outcome.message or f"{type(error).__name__}: {error}"
        finally:
            is_told = is_news and outcome.device_lost is not None
            try:
                if is_told:  # jobs that were copied out can't come back, which ends the host
                    self._tell_end(outcome)
            finally:
                self._scheduler.remove_job(self._account)
                torch_threads.leave()
                shim.job_end(self._account)
            if is_news:
                self._scheduler.release(self.name)
            if is_news and not is_told:
                self._tell_end(outcome)

    def _tell_end(self, outcome: Outcome) -> None:
        self._control.send("job_ended", job=self._index, **asdict(outcome))

    def _give_up(self, job: JobContext, outcome: Outcome) -> None:
        handler_calls.leave(job)  # none runs in the host's own work
        iterations.end(job)
        profile = profiles.take(job, self._page_bytes)
        if profile:
            self._control.send("profile", job=self._index, profile=profile)
            self._write_log()
        parts.leave(job)
        for stream in (job.stdout, job.stderr):
            try:
                stream.close()
            except OSError as error:
                outcome.message = outcome.message or f"output was lost: {error}"
        job.descriptors = -1, -1, -1  # for threads that go on
        self._close_outputs()

    def _close_outputs(self) -> None:
        for descriptor in (self._spec["stdout_fd"], self._spec["stderr_fd"]):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _write_log(self) -> None:
        """What the profiled iteration allocated and freed, for who asked for it."""
        descriptor = self._spec["profiled_log_fd"]
        if descriptor < 0:
            return
        try:
            with open(descriptor, "wb", buffering=0) as file:
                file.write(doors.profiled_log(self._account))
        except OSError as error:
            self._control.send(
                "note", message=f"the log of the profiled iteration was lost: {error.strerror}"
            )


def stop_when_profiled(job: context.JobContext) -> None:
    """Mark callback of `gpushare profile`: ends the script once its profile is stable."""
    if threading.get_ident() == job.thread_ident and profiles.stable(job):
        raise ProfileDone(0)
