"""What `--device` means, and what is said where it can't be. The driver is a stand-in compiled here."""

import importlib.machinery
import importlib.metadata
import importlib.util
import subprocess
from pathlib import Path

import pytest

from gpushare.commands import common
from gpushare.errors import UsageError
from gpushare.launcher import devices
from gpushare.native import gpus

GIB = 1 << 30


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    source = Path(__file__).parent / "driver.cpp"
    subprocess.run(["g++", "-shared", "-fPIC", str(source), "-o", str(path)], check=True, timeout=60)
    return path


@pytest.fixture
def cuda(driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that answers, and a torch that is built for CUDA."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver.parent))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libtorch_cuda.so").touch()
    spec = importlib.machinery.ModuleSpec("torch", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        devices.choose(text)
    return str(caught.value)


def test_the_cpu(cuda: None) -> None:
    device = devices.choose("cpu")
    assert (device.label, device.kind, device.described) == ("cpu", "cpu", "cpu")
    assert 0 < device.free_bytes <= device.total_bytes


def test_auto_asks_no_driver_without_a_torch_for_cuda(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_DRIVERS", (driver,))
    monkeypatch.setattr(devices, "_built_for_cuda", lambda: False)
    monkeypatch.setattr(gpus, "ask", None)
    assert devices.choose("auto").label == "cpu"


@pytest.mark.parametrize("text", ["gpu", "cuda:", "cuda:x", "cuda:-1", "CUDA", "cpu:0", ""])
def test_what_is_no_device(text: str) -> None:
    assert refusal(text) == f"--device must be auto, cpu or cuda[:N], but got {text!r}"


def test_a_torch_without_cuda(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_built_for_cuda", lambda: False)
    assert "is built without CUDA; install one with it" in refusal("cuda")


@pytest.mark.usefixtures("cuda")
class TestWithTorchForCuda:
    def test_a_gpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DRIVER_COUNT", "2")
        device = devices.choose("cuda:1")
        assert device == devices.Device("cuda:1", "a GPU on paper", 6 * GIB, 8 * GIB)
        assert device.kind == "cuda a GPU on paper"
        assert device.described == "cuda:1 (a GPU on paper)"
        assert devices.choose("cuda").label == "cuda:0"

    def test_auto_is_the_first_gpu(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(devices, "_DRIVERS", (tmp_path,))
        monkeypatch.setenv("DRIVER_COUNT", "2")
        assert devices.choose("auto") == devices.choose("cuda:0")

    def test_auto_is_the_cpu_where_no_gpu_can_be_used(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(devices, "_DRIVERS", (tmp_path / "none",))
        assert devices.choose("auto").label == "cpu"
        monkeypatch.setattr(devices, "_DRIVERS", (tmp_path,))
        monkeypatch.setenv("DRIVER_FAILS", "cuDevicePrimaryCtxRetain")
        monkeypatch.setenv("DRIVER_RESULT", "2")
        device = devices.choose("auto")
        assert device.label == "cpu"
        assert "--device cuda does that, or says why it can't" in (devices.unmanaged_gpu(device) or "")
        for hidden in ("", "-1"):
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
            assert devices.unmanaged_gpu(device) is None

    def test_its_budget(self) -> None:
        device = devices.choose("cuda")
        assert common.choose_budget(None, device) == (5 * GIB, "what is free now less a reserve of 1.00 GiB")
        assert common.choose_budget("50%", device) == (4 * GIB, "--budget")
        assert common.choose_budget("7GiB", device)[1] == "--budget, although only 6.00 GiB are free now"
        with pytest.raises(UsageError, match=r"at most the device's memory, 8\.00 GiB"):
            common.choose_budget("9GiB", device)

    def test_capability(self) -> None:
        assert gpus.ask(0).capability == (8, 6)

    def test_one_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert refusal("cuda:1") == "--device cuda:1: there is no such GPU, only cuda:0"
        monkeypatch.setenv("DRIVER_COUNT", "3")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
        assert refusal("cuda:3") == (
            "--device cuda:3: there is no such GPU, cuda:0 to cuda:2 (CUDA_VISIBLE_DEVICES is '4,5,6')"
        )

    def test_none_at_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DRIVER_COUNT", "0")
        assert refusal("cuda").startswith("--device cuda: there is no GPU: nvidia-smi must list one")
        monkeypatch.setenv("DRIVER_FAILS", "cuInit")
        monkeypatch.setenv("DRIVER_RESULT", "100")
        assert "there is no GPU (cuInit: no CUDA-capable device is detected): nvidia-smi" in refusal("cuda")

    def test_a_driver_that_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DRIVER_FAILS", "cuDevicePrimaryCtxRetain")
        monkeypatch.setenv("DRIVER_RESULT", "2")
        assert refusal("cuda") == (
            "--device cuda: cuDevicePrimaryCtxRetain: out of memory; nvidia-smi must work here, or use --device cpu"
        )

    def test_a_driver_that_hangs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DRIVER_HANGS", "1")
        monkeypatch.setattr(gpus, "LIMIT_S", 1.0)
        assert "--device cuda: the driver did not answer within 1 s; nvidia-smi must work here" in refusal(
            "cuda"
        )

    def test_a_gpu_outside_the_budget_is_told(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        cpu = devices.choose("cpu")
        monkeypatch.setattr(devices, "_DRIVERS", (tmp_path / "none",))
        assert devices.unmanaged_gpu(cpu) is None
        monkeypatch.setattr(devices, "_DRIVERS", (tmp_path,))
        assert "outside it and not coordinated" in (devices.unmanaged_gpu(cpu) or "")
        assert devices.unmanaged_gpu(devices.choose("cuda")) is None

    def test_no_driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gpus, "LIBRARY", "libno_such_driver.so")
        monkeypatch.setattr(gpus, "ask", gpus.look)
        text = refusal("cuda:0")
        assert text.startswith(
            "--device cuda:0: the CUDA driver can't be loaded: libno_such_driver.so: cannot open"
        )
        assert text.endswith("; nvidia-smi must work here, or use --device cpu")


@pytest.mark.parametrize(
    ("version", "tried"),
    [
        ("2.11.0", True),
        ("2.14.1+cu130", True),
        ("2.15.0", True),
        ("2.16.0", False),
        ("3.0.0a0", False),
        ("git", True),
    ],
)
def test_a_torch_that_is_newer_than_any_tried_is_told(
    version: str, tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
    told = devices.untried_torch()
    assert told is None if tried else f"torch {version} is newer than 2.15" in (told or "")
