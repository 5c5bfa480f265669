"""System calls about threads."""

import os
import platform
import threading
from pathlib import Path

import pytest

from gpushare.native import process


def in_a_thread(slices_ns: list[int]) -> list[int | None]:
    found: list[int | None] = []

    def work() -> None:
        found.extend(process.set_time_slice(ns) for ns in slices_ns)
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="other numbers of system calls")
def test_a_time_slice_is_the_thread_s_own_and_leaves_its_priority() -> None:
    nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    first, second, third, priority = in_a_thread([300_000, 200_000, 200_000])
    assert first is not None and priority == nice
    assert (second, third) in ((300_000, 200_000), (0, 0))  # before Linux 6.12 it is not kept
    assert in_a_thread([300_000])[0] == first  # another thread has what it had


def test_a_thread_has_the_first_fifteen_bytes_of_its_name() -> None:
    found = []

    def work() -> None:
        process.name_thread("a name of many letters")
        found.append(Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == ["a name of many \n"]
