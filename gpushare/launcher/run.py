"""One run: start the host, follow it, and say what became of the jobs."""

from __future__ import annotations

import errno
import os
import re
import resource
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from gpushare.errors import UsageError
from gpushare.launcher import deaths, explain, results
from gpushare.launcher.budget import BudgetQuestions
from gpushare.launcher.host_process import HostProcess
from gpushare.launcher.logs import Logs
from gpushare.launcher.plan import RunPlan
from gpushare.launcher.relay import Relay, Screen
from gpushare.launcher.results import JobResult
from gpushare.launcher.running import Listener
from gpushare.launcher.signals import Signals
from gpushare.profiles import Profile, store
from gpushare.telemetry import layout
from gpushare.telemetry.decisions import Wait
from gpushare.telemetry.reader import Telemetry
from gpushare.units import format_bytes

_BUDGET = re.compile(r"the budget is ([0-9.]+) MiB")  # in the shim's words (`refusals.cpp`)
STOPPED = "the run was stopped by Ctrl-Z before it was complete, so its times may be too long"  # of a profile
_FEW_BYTES = 8 << 20  # that something keeps of a job that has ended: no news unless the budget is small


class RunScreen(Screen, Protocol):
    """A screen that also follows the run."""

    def start(self, telemetry: Telemetry) -> None:
        """The telemetry is there."""

    def job_started(self, index: int, account: int) -> None:
        """A job has its account."""

    def job_ended(self, index: int, status: str) -> None:
        """A job is over."""

    def aside(self) -> AbstractContextManager[None]:
        """While it is entered others write to the terminal."""

    def stop(self) -> None:
        """Nothing follows but the summary."""


def _telemetry_memory() -> int:
    memory = os.memfd_create("gpushare-telemetry")
    try:
        os.ftruncate(memory, layout.TOTAL_BYTES)
    except OSError as error:
        os.close(memory)
        most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        limit = f", and no file may have more than {most} (ulimit -f)" if error.errno == errno.EFBIG else ""
        raise UsageError(
            f"what the host tells of itself takes {layout.TOTAL_BYTES} bytes of memory, which can't be had: "
            f"{error.strerror}{limit}"
        ) from None
    return memory


class Run:
    """Carries out a plan. `profiles` and `results` are filled as the host tells.

    :param trace: the file of the allocation log.
    """

    def __init__(self, plan: RunPlan, logs: Logs, screen: RunScreen, trace: BinaryIO | None = None) -> None:
        self.plan = plan
        self.results = [JobResult(j.name, j.command) for j in plan.jobs]
        self.profiles: dict[int, Profile] = {}
        # Of jobs that Ctrl-Z may have stopped while they were measured.
        self.stopped_profiles: set[int] = set()
        self.host_died = False
        self.culprit: int | None = None  # the job that ended the host, if that is known
        self.device_lost_by: int | None = None  # the job that met the loss first
        self.scheduler_cpu_s: float | None = None  # once all jobs have ended
        self.yields: dict[str, Any] = {}  # `scheduling.pace.Yields.to_json`, once all jobs have ended
        self.queued: list[Wait] = []  # of jobs before they began
        self.failure: str | None = None  # why the host could not start
        self.duration_s = 0.0
        self.keys = [store.key_for(job, plan.device.kind) for job in plan.jobs]  # of their profiles
        self._log_ended = False
        self._logs = logs
        self._screen = screen
        self._trace = trace
        self._waits = explain.begin() if plan.explain else None
        self._memory = _telemetry_memory()
        self.telemetry = Telemetry(self._memory)
        self._relay = Relay(logs, screen)
        self._host: HostProcess | None = None
        self._signals = Signals(self._unended, screen.note, screen.aside)
        self._budget = BudgetQuestions(self._budget_answered_late)

    @property
    def ended_by(self) -> int | None:
        """The signal that asked all jobs to end, if one did."""
        return self._signals.ended_by

    @property
    def stopped_s(self) -> float:
        """For how long Ctrl-Z has stopped the run, in all."""
        return self._signals.stopped_s

    @property
    def incomplete(self) -> bool:
        """Whether a log of the jobs, or of their allocations or waits, could not be written to its end."""
        return self._log_ended or self._logs.incomplete

    @property
    def exit_code(self) -> int:
        """Of the whole command."""
        if self.failure:
            return results.USAGE
        return results.exit_code(self.results, ended_by=self.ended_by, host_died=self.host_died)

    @property
    def log_directory(self) -> Path:
        """Where what the jobs write is kept."""
        return self._logs.directory

    @property
    def budget_bytes(self) -> int:
        """In force now, or last: `gpushare budget` changes it."""
        return self.telemetry.pool().budget_bytes or self.plan.budget_bytes

    @property
    def budget_to_be(self) -> int:
        """Once what the jobs hold fits; a smaller one that they have outgrown meanwhile is none."""
        return self.telemetry.pool().wanted_budget_bytes or self.plan.budget_bytes

    def waits(self) -> list[Wait]:
        """What `plan.explain` asks for, once the run is over."""
        found = [*explain.read(self._waits), *self.queued] if self._waits else []
        return sorted(found, key=lambda wait: wait.asked_ns + wait.waited_ns)

    def execute(self, meanwhile: Callable[[], object] | None = None) -> None:
        """Start the host and follow it to its end. Main thread only.

        :param meanwhile: called once the host has been started; it takes as long to load torch.
        """
        started = time.monotonic()
        try:
            with self._signals:
                try:
                    self._execute(meanwhile)
                finally:
                    self.duration_s = time.monotonic() - started
                    self._screen.stop()  # a Ctrl-C that came in the middle of it would leave the cursor hidden
        finally:
            self._logs.close()

    def _execute(self, meanwhile: Callable[[], object] | None) -> None:
        host, specs, theirs = self._start()
        host.send(self._start_message(specs))
        self._signals.reach(host)  # not before: its message would come in the middle of that one
        for descriptor in theirs:
            os.close(descriptor)
        self._relay.start()
        self._screen.start(self.telemetry)
        if meanwhile:
            meanwhile()
        listener = Listener(self._answer)
        try:
            done = self._follow(host)
        finally:
            listener.close()
        self._end(host, done)

    def _start(self) -> tuple[HostProcess, list[dict[str, Any]], list[int]]:
        specs: list[dict[str, Any]] = []
        theirs: list[int] = []
        for index, (job, profile) in enumerate(zip(self.plan.jobs, self.plan.profiles, strict=True)):
            ends = {}
            for stream in ("out", "err"):
                reading, writing = os.pipe()
                self._relay.add(reading, job.name, stream)
                theirs.append(writing)
                ends[stream] = writing
            log = -1 if profile else self._logs.begin_profiled(job.name, self.plan.log_header())
            theirs += [log] * (log >= 0)
            specs.append(self.plan.job_message(index, ends, log))
        files = [file.fileno() for file in (self._trace, self._waits) if file]
        host = HostProcess([self._memory, *files, *theirs], self._logs.host, give_stdin=self.plan.gives_input)
        self._host = host
        return host, specs, theirs

    def _start_message(self, specs: list[dict[str, Any]]) -> dict[str, Any]:
        return self.plan.start_message(
            specs,
            telemetry_fd=self._memory,
            log_fd=self._trace.fileno() if self._trace else -1,
            decisions_fd=self._waits.fileno() if self._waits else -1,
        )

    def _follow(self, host: HostProcess) -> bool:
        done = False
        for message in host.messages(self._signals.until_readable):
            event = message["event"]
            if event == "done":
                done = True
                self.yields = message["yields"]
                self.scheduler_cpu_s = message["scheduler_cpu_s"]
            elif event == "failed":
                self.failure = message["message"]
                done = True
            elif event == "note":
                self._screen.note(message["message"])
            elif event == "log_ended":
                self._log_ended = True
                self._screen.note(message["message"])
            elif event == "budget":
                self._budget.answered(message)
            elif event == "queued":
                self.queued.append(explain.queued(message))
            elif event == "job_started":
                self._job_started(message)
            elif event == "job_ended":
                self._job_ended(message)
            elif event == "profile":
                self._profiled(message["job"], message["profile"])
        return done

    def _profiled(self, index: int, told: dict[str, Any]) -> None:
        found = Profile.from_host(self.plan.jobs[index].command, told)
        self.profiles[index] = replace(found.refining(self.plan.profiles[index]), key=self.keys[index])
        if self.stopped_s:
            self.stopped_profiles.add(index)

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """What `gpushare budget` asks, in the listener's thread."""
        if question["op"] == "budget":
            return self._change_budget(question["budget_bytes"], force=bool(question.get("force")))
        total_bytes = self.plan.device.total_bytes
        return {"jobs": self._unended(), "budget_bytes": self.budget_bytes, "device_bytes": total_bytes}

    def _unended(self) -> list[str]:
        return [r.name for r in self.results if r.status in ("running", "waiting")]

    def _change_budget(self, wanted_bytes: int, *, force: bool) -> dict[str, Any]:
        assert self._host
        answer = self._budget.ask(self._host.send, wanted_bytes, force=force)
        if "failed" in answer:
            return answer
        self._budget_changed(answer["wanted_bytes"], answer["refused"])
        return {**answer, "budget_bytes": self.budget_bytes}

    def _budget_changed(self, wanted_bytes: int, refused: str | None) -> None:
        if refused is None:
            self._screen.note(f"the budget is to be {format_bytes(wanted_bytes)}")

    def _budget_answered_late(self, wanted_bytes: int, refused: str | None) -> None:
        """Whoever asked has given up, so a refusal is told here too."""
        self._budget_changed(wanted_bytes, refused)
        if refused is not None:
            self._screen.note(refused)

    def _job_started(self, message: dict[str, Any]) -> None:
        result = self.results[message["job"]]
        result.status, result.account = "running", message["account"]
        self._screen.job_started(message["job"], message["account"])

    def _job_ended(self, message: dict[str, Any]) -> None:
        result = self.results[message["job"]]
        result.status, result.exit_code = message["status"], message["exit_code"]
        result.message = message["message"]
        self._judge_refusal(result)
        if message["device_lost"]:
            self._device_lost(message["job"], message["device_lost"])
        left = self.telemetry.job(result.account).held_bytes if result.account else 0
        if not message["device_lost"] and left > min(_FEW_BYTES, self.budget_bytes // 64):
            self._screen.note(
                f"{result.name} has ended, but a library still holds {format_bytes(left)} of its tensors; "
                "they count against the budget until the run ends"
            )
        self._screen.job_ended(message["job"], result.status)

    def _device_lost(self, index: int, told: str) -> None:
        """At a job's end the GPU answered with an error after which no job can use it any more."""
        if self.host_died:
            return
        self.host_died = True
        result = self.results[index]
        self.device_lost_by = index
        running = [r.name for r in self.results if r.status == "running"]
        if running:
            blame = f"{result.name} met it first, but {', '.join(running)} may as well have caused it"
        else:
            self.culprit = index
            result.status = "crashed" if result.status == "lost" else result.status
            blame = f"{result.name} caused it: no other job ran"
        why = told.partition("\n")[0]
        self._screen.note(f"the GPU is lost for all jobs of this host ({why}): {blame}")

    def _judge_refusal(self, result: JobResult) -> None:
        """Out of memory with nobody else's memory to blame is a refusal, not the script's failure."""
        if result.status != "failed" or "gpushare: out of memory" not in (result.message or ""):
            return
        view = self.telemetry.job(result.account or 0)
        needs = f"{result.name} needs at least {format_bytes(view.needs_at_least_bytes)}"
        # By the error's own words: `gpushare budget` may have changed it since then.
        told = _BUDGET.search(result.message or "")
        budget_bytes = round(float(told[1]) * (1 << 20)) if told else self.budget_bytes
        budget = f"the budget is {format_bytes(budget_bytes)}"
        if view.refusal == layout.ALONE_TOO_LARGE:
            result.status, result.message = "refused", f"{needs}, further on maybe more, and {budget}"
        elif view.refusal == layout.TOO_LARGE_BESIDE_OTHERS:
            result.status = "refused"
            keep = f"beside the {format_bytes(view.others_keep_bytes)} that the other jobs keep"
            result.message = f"{needs} {keep}, and {budget}: run it later or with fewer others"

    def _end(self, host: HostProcess, done: bool) -> None:
        status = host.wait()
        self._relay.finish(timeout_s=0.5 if done else 0.1)
        host.sweep()
        self._relay.finish(timeout_s=5)
        if done:
            return
        death = deaths.explain(status, self.results, self.telemetry)
        for result in self.results:
            if result.status in ("running", "waiting"):
                result.status = "interrupted" if self.ended_by else "lost"
        if not self.ended_by:
            self.host_died, self.culprit = True, death.culprit
            if death.culprit is not None:
                self.results[death.culprit].status = "crashed"
            self._screen.note(death.text)
            if tail := self._logs.host_tail():
                self._screen.note(f"its last words:\n{tail}")
