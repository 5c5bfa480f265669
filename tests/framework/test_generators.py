"""What of torch was bound to the default generator when it was imported."""

import inspect
import subprocess
import sys
import types
from collections.abc import Iterator

import torch
import torch.distributions
import torch.nn.utils.parametrizations
import torch.utils.data.distributed


def functions(holder: types.ModuleType | type) -> Iterator[types.FunctionType]:
    for value in list(vars(holder).values()):
        if isinstance(value, types.FunctionType):
            inner = inspect.unwrap(value)
            if isinstance(inner, types.FunctionType):
                yield inner
        elif isinstance(value, type) and isinstance(holder, types.ModuleType):
            yield from functions(value)


def test_one_default_argument_only() -> None:
    """A later torch may have more of them, which `generators.install` must then know."""
    modules = [m for name, m in sorted(sys.modules.items()) if name.split(".")[0] == "torch"]
    found = {
        function.__qualname__
        for module in modules
        if isinstance(module, types.ModuleType)
        for function in functions(module)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        if default is torch._C.default_generator
    }
    assert found == {"random_split"}


HOST = """
from gpushare.native import library
library.load()
import torch
host = torch.default_generator
from gpushare.framework import generators
generators.install()
from torch import default_generator
print(default_generator is torch.random.default_generator is torch.default_generator is host)
try:
    torch.no_such_name
except AttributeError as error:
    print(error)
print(all(hasattr(torch, name) for name in torch.__all__))
"""


def test_names_without_a_job_are_the_hosts() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", HOST], capture_output=True, text=True, check=False)
    expected = ["True", "module 'torch' has no attribute 'no_such_name'", "True"]
    assert done.stdout.splitlines() == expected, done.stderr
