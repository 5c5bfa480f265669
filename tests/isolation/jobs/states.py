"""Kinds of process-wide state as a script sees them: `set` one to a value, `get` it.

`child` says how a child process can see it: "fork", "exec" (a program that prints it) or nothing. `processes` are
the ways in which multiprocessing hands it to a new interpreter.
"""

import atexit
import base64
import builtins
import codecs
import contextlib
import ctypes
import gc
import io
import json
import logging
import multiprocessing
import multiprocessing.process
import multiprocessing.resource_sharer
import multiprocessing.util
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
import weakref

import numpy as np
import own_module
import torch
import torch.multiprocessing

import __main__


class Argv:
    child = "fork"
    processes = ("spawn", "forkserver")

    def set(self, value):
        sys.argv = ["script", value]

    def get(self):
        return sys.argv if sys.argv[0] == "script" else len(sys.argv) > 1


class Path:
    child = "fork"
    processes = ("spawn", "forkserver")

    def set(self, value):
        sys.path.append(f"/{value}")

    def get(self):
        return [entry for entry in sys.path if len(entry) == 2]


class Stdout:
    child = "fork"

    def set(self, value):
        self.value, self.before = value, sys.stdout
        sys.stdout = io.StringIO(value)

    def get(self):
        text = sys.stdout.getvalue() if isinstance(sys.stdout, io.StringIO) else "the job's own"
        if text == getattr(self, "value", None) and threading.current_thread() is threading.main_thread():
            print("x", end="")  # goes into the buffer, not to the terminal
            text = sys.stdout.getvalue()
        return text

    def restore(self):
        sys.stdout = self.before


class Directory:
    child = "exec"
    program = "basename $PWD"
    processes = ("spawn", "forkserver")

    def set(self, value):
        os.makedirs(value, exist_ok=True)
        os.chdir(value)

    def get(self):
        return os.path.basename(os.getcwd()), os.path.exists(f"../{os.path.basename(os.getcwd())}")


class Environment:
    child = "exec"
    program = "echo $STATE"
    processes = ("spawn", "forkserver")

    def set(self, value):
        os.environ["STATE"] = value

    def get(self):
        return os.environ.get("STATE"), os.getenv("STATE"), os.environb.get(b"STATE")


class PythonRandom:
    child = None  # a forked child draws from new entropy, alone as well

    def set(self, value):
        random.seed(value)
        random.gauss(0, 1)

    def get(self):
        numbers = [random.random(), random.randrange(1000), random.gauss(0, 1)]
        return numbers if random.getstate()[1][0] != 0 and hasattr(__main__, "value_was_set") else None


class NumpyRandom:
    child = "fork"

    def set(self, value):
        np.random.seed(ord(value))

    def get(self):
        if not hasattr(__main__, "value_was_set"):
            return None
        return np.random.rand(), np.random.randint(1000), float(np.random.standard_normal())


class TorchRandom:
    child = "fork"

    def set(self, value):
        torch.manual_seed(ord(value))

    def get(self):
        with torch.random.fork_rng():
            torch.rand(3)
        drawn = torch.rand(2).tolist(), torch.randperm(5).tolist(), torch.initial_seed()
        return drawn if hasattr(__main__, "value_was_set") else torch.initial_seed() < 256


class Logging:
    child = "fork"

    def set(self, value):
        logging.basicConfig(format=f"{value} %(message)s", stream=io.StringIO())
        logging.getLogger("shared").setLevel(ord(value))
        logging.getLogger("shared").propagate = value == "a"
        logging.disable(ord(value) % 5)

    def get(self):
        shared = logging.getLogger("shared")
        formats = [h.formatter._fmt for h in logging.root.handlers]
        return formats, shared.getEffectiveLevel(), shared.isEnabledFor(97), shared.propagate


class Warnings:
    child = "fork"

    def set(self, value):
        warnings.filterwarnings("error", message=value)
        warnings.showwarning = lambda *_: None

    def get(self):
        added = [f[1].pattern for f in warnings.filters if f[1] is not None and len(f[1].pattern) == 1]
        return added, warnings.showwarning.__name__


class Signals:
    child = "fork"
    received = None

    def set(self, value):
        signal.signal(signal.SIGUSR1, lambda *_: setattr(self, "received", value))

    def get(self):
        self.received = None
        if callable(signal.getsignal(signal.SIGUSR1)):
            os.kill(os.getpid(), signal.SIGUSR1)
            deadline = time.monotonic() + 5
            while self.received is None and time.monotonic() < deadline:
                time.sleep(0.01)
        return self.received, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


class ExitHandlers:
    child = None

    def set(self, value):
        atexit.register(print, "at exit", value)
        self.kept = io.StringIO()
        weakref.finalize(self.kept, print, "finalized", value)

    def get(self):
        return "see the last lines"


class OwnModule:
    child = "fork"

    def set(self, value):
        own_module.value = value
        own_module.items.append(value)

    def get(self):
        import own_module as again

        same = sys.modules["own_module"] is own_module is again
        copy = pickle.loads(pickle.dumps(own_module.Thing(3)))
        return own_module.value, own_module.items, same, type(copy) is own_module.Thing, copy.number


class MainModule:
    child = "fork"

    def set(self, value):
        __main__.something = value

    def get(self):
        return getattr(__main__, "something", None), sys.modules["__main__"] is __main__, __main__.__file__


class ThreadCount:
    child = None  # torch forbids setting it after a fork

    def set(self, value):
        torch.set_num_threads(ord(value) - 96)

    def get(self):
        return torch.get_num_threads()


class DefaultDtype:
    child = "fork"
    processes = ("spawn", "forkserver")

    def set(self, value):
        torch.set_default_dtype({"a": torch.float64, "b": torch.float16}[value])

    def get(self):
        made = torch.tensor([1.0]), torch.zeros(3), torch.tensor(1j), torch.ones(2, dtype=torch.int64) / 2
        seen = [torch.get_default_dtype(), *(t.dtype for t in made), torch.nn.Linear(2, 2).weight.dtype]
        with torch.no_grad():
            return seen, torch.nn.functional.linear(torch.ones(1, 2), torch.ones(2, 2)).dtype


class DefaultTensorType:
    child = "fork"

    def set(self, value):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says once per process that it is deprecated
            torch.set_default_tensor_type({"a": torch.DoubleTensor, "b": torch.BFloat16Tensor}[value])

    def get(self):
        return (
            torch.get_default_dtype(),
            torch.rand(2).dtype,
            torch.Tensor([1]).dtype,
            torch.arange(0.5).dtype,
        )


class DeterministicAlgorithms:
    child = "fork"
    processes = ("spawn",)

    def set(self, value):
        torch.use_deterministic_algorithms(value == "a")

    def get(self):
        with torch.no_grad():  # no iteration, in which a job would wait for the others and not meet them
            nan_filled = bool(torch.empty(5).isnan().all())
            try:
                torch.zeros(5).put_(torch.tensor([1]), torch.tensor([2.0]))
                refused = None
            except RuntimeError as error:
                refused = str(error)[:60]
        return torch.are_deterministic_algorithms_enabled(), nan_filled, refused


class DeterministicWarnings:
    child = "fork"

    def set(self, value):
        torch.set_deterministic_debug_mode({"a": "warn", "b": "error"}[value])
        torch.utils.deterministic.fill_uninitialized_memory = value == "b"

    def get(self):
        with warnings.catch_warnings(record=True) as caught, torch.no_grad():
            warnings.simplefilter("always")
            try:
                torch.zeros(5).put_(torch.tensor([1]), torch.tensor([2.0]))
            except RuntimeError:
                caught = "refused"
        told = caught if caught == "refused" else [str(w.message)[:40] for w in caught]
        filled = torch.utils.deterministic.fill_uninitialized_memory
        return torch.get_deterministic_debug_mode(), told, filled, bool(torch.empty(5).isnan().all())


class MatmulPrecision:
    child = "fork"
    processes = ("spawn",)

    def set(self, value):
        torch.set_float32_matmul_precision({"a": "medium", "b": "high"}[value])

    def get(self):
        backends = torch.backends
        seen = [backends.cuda.matmul.allow_tf32, backends.cuda.matmul.fp32_precision]
        try:
            backends.mkldnn.conv.fp32_precision = "wrong"
        except (RuntimeError, ValueError) as error:
            seen.append(str(error).splitlines()[0])
        return torch.get_float32_matmul_precision(), backends.mkldnn.matmul.fp32_precision, seen


class Attention:
    child = "fork"

    def set(self, value):
        torch.backends.cuda.enable_flash_sdp(value == "a")
        torch.backends.cuda.enable_math_sdp(value == "b")
        torch.backends.cuda.enable_cudnn_sdp(False)

    def get(self):
        cuda = torch.backends.cuda
        before = cuda.flash_sdp_enabled(), cuda.math_sdp_enabled(), cuda.cudnn_sdp_enabled()
        backends = torch.nn.attention.SDPBackend
        with torch.nn.attention.sdpa_kernel(backends.MATH), torch.no_grad():
            inside = cuda.flash_sdp_enabled(), cuda.math_sdp_enabled()
            torch.nn.functional.scaled_dot_product_attention(*torch.ones(3, 1, 1, 4, 8))
        return before, inside, cuda.flash_sdp_enabled(), cuda.math_sdp_enabled()


class BackEnds:
    child = "fork"

    def set(self, value):
        torch.backends.cudnn.benchmark = value == "a"
        torch.backends.cudnn.deterministic = value == "b"
        torch.backends.mkldnn.set_flags(_enabled=value == "b", _deterministic=value == "a")
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = value == "b"
        torch.sparse.check_sparse_tensor_invariants.enable()

    def get(self):
        cudnn, mkldnn = torch.backends.cudnn, torch.backends.mkldnn
        seen = [cudnn.enabled, cudnn.benchmark, cudnn.deterministic]
        with cudnn.flags(enabled=False):
            seen.append(cudnn.enabled)
        seen += [mkldnn.enabled, mkldnn.deterministic]
        seen.append(torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction)
        return seen, torch.sparse.check_sparse_tensor_invariants.is_enabled()


class RepeatedWarnings:
    child = "fork"

    def set(self, value):
        torch.set_warn_always(value == "a")

    def get(self):
        return torch.is_warn_always_enabled()


class Teams:
    """Switches in the threads of OpenMP that compute for the job."""

    child = None  # OpenMP does not survive a fork

    def set(self, value):
        torch.set_default_dtype({"a": torch.float64, "b": torch.float16}[value])
        torch.use_deterministic_algorithms(value == "b")

    def get(self):
        seen = {}

        def look(_):
            deterministic = torch.are_deterministic_algorithms_enabled()
            seen[threading.get_ident()] = torch.get_default_dtype(), deterministic
            time.sleep(0.05)  # so that each thread of the team comes here itself

        body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(look)
        ctypes.CDLL(None).GOMP_parallel(body, None, 3, 0)
        return list(seen.values())


class Threads:
    child = None

    def set(self, value):
        for _ in range(3):
            threading.Thread(target=time.sleep, args=(0.01,)).start()

    def get(self):
        count = threading.active_count() if not hasattr(__main__, "value_was_set") else None
        return count, threading.main_thread().name, threading.main_thread() in threading.enumerate()


class StartMethod:
    child = "fork"

    def set(self, value):
        multiprocessing.set_start_method({"a": "spawn", "b": "forkserver"}[value])

    def get(self):
        return multiprocessing.get_start_method(allow_none=True)


class PrintOptions:
    child = "fork"

    def set(self, value):
        torch.set_printoptions(precision=ord(value) - 95)

    def get(self):
        return str(torch.tensor([1 / 3, 2 / 3])), torch._tensor_str.PRINT_OPTS.precision


class SharingStrategy:
    child = "fork"

    def set(self, value):
        torch.multiprocessing.set_sharing_strategy({"a": "file_system", "b": "file_descriptor"}[value])

    def get(self):
        return torch.multiprocessing.get_sharing_strategy()


class GlobalHooks:
    child = "fork"

    def __init__(self):
        self.called = []

    def set(self, value):
        hooks = torch.nn.modules.module
        hooks.register_module_forward_pre_hook(lambda *_: self.called.append(f"{value} before"))
        hooks.register_module_forward_hook(lambda *_: self.called.append(f"{value} after"), always_call=True)
        hooks.register_module_parameter_registration_hook(lambda m, n, p: self.called.append(f"{value} {n}"))
        hooks.register_module_forward_hook(lambda *_: self.called.append("never")).remove()

    def get(self):
        self.called.clear()
        with torch.no_grad():  # no iteration, in which a job would wait for the others and not meet them
            torch.nn.Linear(2, 2)(torch.ones(1, 2))
        return self.called


class Collector:
    child = "fork"

    def set(self, value):
        if value == "a":
            gc.disable()

    def get(self):
        return gc.isenabled()


def program_output(state):
    return subprocess.run(["sh", "-c", state.program], capture_output=True, text=True, check=True).stdout


class Builtins:
    child = "fork"

    def set(self, value):
        builtins.number_of_job = value
        original = builtins.abs
        builtins.abs = lambda number: (value, original(number))

    def get(self):
        here = abs(-1), own_module.Thing(-2).size()
        return here, getattr(builtins, "number_of_job", None), sys.modules["builtins"] is builtins


class TemporaryFolder:
    child = "fork"

    def set(self, value):
        tempfile.tempdir = f"/{value}"

    def get(self):
        return tempfile.tempdir, hasattr(__main__, "value_was_set") and tempfile.gettempdir()


class MultiprocessingFolder:
    child = "fork"

    def set(self, value):
        open(os.path.join(multiprocessing.util.get_temp_dir(), value), "w").close()
        self.shared = multiprocessing.resource_sharer.DupFd(1)

    def get(self):
        folder = multiprocessing.process.current_process()._config.get("tempdir")
        files = folder and [name for name in sorted(os.listdir(folder)) if len(name) == 1]
        return files, threading.active_count() if hasattr(__main__, "value_was_set") else None

    def restore(self):
        os.close(self.shared.detach())


class Hooks:
    child = "fork"

    def set(self, value):
        sys.unraisablehook = lambda args: print("ignored", value, args.exc_value, file=sys.__stdout__)
        sys.displayhook = lambda shown: print("displayed", value, shown, file=sys.__stdout__)
        threading.excepthook = lambda args: print("died", value, args.exc_value, file=sys.__stdout__)

    def get(self):
        class Dying:
            def __del__(self):
                raise ValueError("in del")

        hooks = [sys.unraisablehook, sys.displayhook, threading.excepthook]
        if hasattr(__main__, "value_was_set"):
            Dying()
            exec(compile("3", "typed", "single"))
            thread = threading.Thread(target=lambda: 1 // 0)
            thread.start()
            thread.join()
        return [hook.__name__ for hook in hooks], hooks[0] is sys.__unraisablehook__


class LoggingChoices:
    child = "fork"

    def set(self, value):
        class Own(logging.Logger):
            letter = value

        class Record(logging.LogRecord):
            letter = value

        logging.addLevelName(35, value)
        logging.setLoggerClass(Own)
        logging.setLogRecordFactory(Record)
        logging.captureWarnings(True)
        logging.getLogger(f"of-{value}")

    def get(self):
        made = logging.getLogger().makeRecord("name", 35, "file", 1, "text", (), None)
        kind = logging.getLoggerClass()
        seen = [logging.getLevelName(35), made.levelname, getattr(made, "letter", None), kind.__name__]
        others = {type(logging.getLogger(f"of-{value}")).__name__ for value in "ab"}
        fresh = others if not hasattr(__main__, "value_was_set") else None
        return seen, fresh, warnings.showwarning.__name__, logging.getLevelNamesMapping().get("a")

    def restore(self):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            caught = io.StringIO()
            handler = logging.StreamHandler(caught)
            logging.getLogger("py.warnings").addHandler(handler)
            warnings.warn("captured", stacklevel=1)
            logging.getLogger("py.warnings").removeHandler(handler)
        logging.captureWarnings(False)
        print("captured" in caught.getvalue(), warnings.showwarning.__name__, file=sys.__stdout__)


class PatchedFunctions:
    """Of a module: whose own code calls one as well, one that others add, and one that is taken away."""

    child = "fork"

    def set(self, value):
        original = base64.b64encode
        base64.b64encode = lambda data: value.encode() + original(data)
        base64.letter_of_job = value
        if value == "a":
            del base64.b16encode

    def get(self):
        letter = getattr(base64, "letter_of_job", None)
        return base64.b64encode(b"x"), base64.standard_b64encode(b"x"), letter, hasattr(base64, "b16encode")


class ReplacedClass:
    """Which the module's own code makes instances of."""

    child = "fork"

    def set(self, value):
        class Encoder(json.JSONEncoder):
            def default(self, thing):
                return value

        json.JSONEncoder = Encoder

    def get(self):
        try:
            text = json.dumps(object(), indent=1)
        except TypeError as error:
            text = str(error)
        made = json.JSONEncoder()
        return (
            text,
            json.JSONEncoder.__name__,
            isinstance(made, json.JSONEncoder),
            type(made) is json.JSONEncoder,
        )


class PatchedClasses:
    """Methods, special ones too, properties and plain values, on a class and below it."""

    child = "fork"

    def __init__(self):
        class Own(torch.nn.Linear):
            def forward(self, x):
                return super().forward(x)

        self.own = Own

    def set(self, value):
        linear, base = torch.nn.Linear, torch.nn.Module
        original = base.extra_repr
        linear.forward = lambda self, x: (value, self.in_features)
        linear.__call__ = lambda self, x: ("called", super(linear, self).__call__(x))
        base.extra_repr = lambda self: value + original(self)
        base.letter = property(lambda self: value)
        linear.number = {"a": 1, "b": 2}[value]
        if value == "a":
            del linear.extra_repr

    def get(self):
        torch.manual_seed(0)
        layer, own = torch.nn.Linear(2, 3), self.own(4, 5)
        with torch.no_grad():
            called = [str(layer(torch.ones(2)))[:12], str(own(torch.ones(4)))[:12]]
        own.number = 7
        own.forward = lambda x: "instance"
        seen = [getattr(thing, "number", None) for thing in (torch.nn.Linear, layer, own)]
        letters = [getattr(thing, "letter", None) for thing in (layer, torch.nn.ReLU())]
        words = [str(torch.nn.Identity()), str(layer), torch.nn.Linear.forward.__name__]
        return called, own.forward(1), seen, letters, words


class Operators:
    """Of one name in each script."""

    child = "fork"

    def set(self, value):
        @torch.library.custom_op("mine_of_a_job::first", mutates_args=())
        def first(x: torch.Tensor) -> torch.Tensor:
            return x + ord(value)

        @torch.library.register_fake("mine_of_a_job::first")
        def _(x):
            return x.new_empty(x.shape)

        self.first = first
        self.library = torch.library.Library("ours_of_a_job", "DEF")
        self.library.define("second(Tensor x) -> Tensor")
        self.library.impl("ours_of_a_job::second", lambda x: x - ord(value), "CPU")
        torch.library.define("mine_of_a_job::third", "(Tensor x) -> Tensor")
        torch.library.impl("mine_of_a_job::third", "cpu", lambda x: x * ord(value))

    def get(self):
        if not hasattr(self, "first"):
            return None  # torch keeps what somebody has defined for as long as somebody holds it
        mine, ours, x = torch.ops.mine_of_a_job, torch.ops.ours_of_a_job, torch.ones(2)
        results = mine.first(x), self.first(x), ours.second(x), mine.third(x)
        return [result.tolist() for result in results], self.fake()

    def fake(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode() as mode:
            return torch.ops.mine_of_a_job.first(mode.from_tensor(torch.ones(3))).shape


class SafeGlobals:
    child = "fork"

    def set(self, value):
        class Saved:
            def __init__(self):
                self.letter = value

        Saved.__qualname__ = "Saved"
        __main__.Saved = Saved
        Saved.__module__ = "__main__"
        torch.serialization.add_safe_globals([Saved])

    def get(self):
        if not hasattr(__main__, "Saved"):
            return [kind for kind in torch.serialization.get_safe_globals() if kind.__module__ == "__main__"]
        file = io.BytesIO()
        torch.save(__main__.Saved(), file)
        file.seek(0)
        loaded = torch.load(file)
        with torch.serialization.safe_globals([Argv]):
            inside = Argv in torch.serialization.get_safe_globals()
        return (
            type(loaded) is __main__.Saved,
            loaded.letter,
            inside,
            Argv in torch.serialization.get_safe_globals(),
        )


class TorchChoices:
    child = "fork"

    def set(self, value):
        torch.hub.set_dir(f"/{value}")
        torch.__future__.set_swap_module_params_on_conversion(value == "a")
        torch.__future__.set_overwrite_module_params_on_conversion(value == "b")
        torch.distributions.Distribution.set_default_validate_args(value == "a")
        torch.utils.data.functional_datapipe("named_by_a_script")(
            type(f"Pipe{value}", (torch.utils.data.IterDataPipe,), {})
        )

    def get(self):
        pipe = torch.utils.data.IterDataPipe.functions.get("named_by_a_script")
        try:
            torch.distributions.Normal(torch.zeros(1), -torch.ones(1))
            checks = False
        except ValueError:
            checks = True
        return (
            os.path.basename(torch.hub.get_dir()),
            torch.__future__.get_swap_module_params_on_conversion(),
            torch.__future__.get_overwrite_module_params_on_conversion(),
            checks,
            torch.distributions.Distribution._validate_args,
            pipe and pipe.args[0].__name__,
        )


class MatplotlibSettings:
    child = "fork"

    def set(self, value):
        import matplotlib
        from matplotlib import rc
        from matplotlib.colors import ListedColormap

        matplotlib.use("agg" if value == "a" else "svg")
        matplotlib.rcParams["lines.linewidth"] = ord(value)
        rc("axes", facecolor="red" if value == "a" else "blue")
        matplotlib.colormaps.register(ListedColormap(["red", "blue"], name=f"of-{value}"), name="colors")

    def get(self):
        import copy

        import matplotlib
        import matplotlib.pyplot as pyplot
        from matplotlib import rcParams

        with matplotlib.rc_context({"lines.linestyle": ":"}):
            inside = rcParams["lines.linestyle"]
        with pyplot.style.context("ggplot"):
            styled = rcParams["axes.facecolor"]
        copied = rcParams.copy()
        copied["lines.linewidth"] = 1000.0
        again = copy.deepcopy(rcParams), pickle.loads(pickle.dumps(rcParams))
        figure = pyplot.figure()
        line = figure.subplots().plot([1, 2])[0].get_linewidth(), type(figure.canvas).__name__
        pyplot.close()
        found = len(rcParams.find_all("lines"))
        with contextlib.suppress(KeyError):
            found = rcParams.pop("lines.linewidth")
        seen = [rcParams[name] for name in ("lines.linewidth", "axes.facecolor", "lines.linestyle")]
        names = [name for name in matplotlib.colormaps if name == "colors"]
        maps = [matplotlib.colormaps[name].name for name in names]
        alike = [kept == rcParams and type(kept).__name__ == "RcParams" for kept in again]
        return inside, styled, line, seen, len(rcParams), rcParams["backend"].lower(), maps, found, alike


class PandasOptions:
    child = "fork"

    def set(self, value):
        import pandas

        pandas.set_option("display.precision", 1 if value == "a" else 3)
        pandas.options.display.max_rows = ord(value)
        own_module.plot = lambda data, **_: f"a plot of {value}"
        pandas.options.plotting.backend = "own_module"

        @pandas.api.extensions.register_dataframe_accessor("of_script")
        class Accessor:
            def __init__(self, frame):
                self.value = value

    def get(self):
        import pandas

        frame = pandas.DataFrame({"x": [1 / 3]})
        with pandas.option_context("display.precision", 5):
            inside = str(frame)
        accessor = getattr(frame, "of_script", None)
        rows = pandas.get_option("display.max_rows"), pandas.options.display.max_rows
        plot = frame.plot() if pandas.options.plotting.backend == "own_module" else None
        return inside, str(frame), rows, accessor and accessor.value, "of_script" in dir(frame), plot


class FileSystems:
    child = "fork"

    def set(self, value):
        import fsspec

        self.kind = type(f"Of{value}", (fsspec.AbstractFileSystem,), {"protocol": "ours"})
        fsspec.register_implementation("ours", self.kind)
        fsspec.register_implementation("later", f"there.{value}")

    def get(self):
        import fsspec
        from fsspec.registry import known_implementations, registry

        known = known_implementations.get("later")
        found = registry.get("ours")
        return found and found.__name__, known and known["class"], "later" in fsspec.available_protocols()


class Codecs:
    child = "fork"
    value = "a"

    def set(self, value):
        def encode(text, errors="strict"):
            return text.encode() + value.encode(), len(text)

        def search(name):
            if name == f"of_{value}":
                return codecs.CodecInfo(encode, codecs.lookup("ascii").decode, name=name)

        codecs.register(search)
        self.value = value

    def get(self):
        try:
            return "text".encode(f"of_{self.value}")
        except LookupError as error:
            return str(error)


class TraceHooks:
    """What a thread is traced by: calls of `marked` are noted."""

    child = "fork"

    def set(self, value):
        self.seen = []

        def trace(frame, event, _):
            if frame.f_code is marked.__code__:
                self.seen.append(f"{event} {value}")

        threading.settrace(trace)
        threading.setprofile(trace)

    def get(self):
        thread = threading.Thread(target=marked)
        thread.start()
        thread.join()
        return getattr(self, "seen", []), threading.gettrace() is None, threading.getprofile() is None


def marked():
    return threading.current_thread().name


class StoragePackages:
    child = "fork"

    def set(self, value):
        def tag(storage):
            return f"of-{value}" if storage.nbytes() == 12 else None

        torch.serialization.register_package(
            5, tag, lambda storage, place: storage if place == tag(storage) else None
        )

    def get(self):
        return torch.serialization.location_tag(torch.ones(3).untyped_storage())
