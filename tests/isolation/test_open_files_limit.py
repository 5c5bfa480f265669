"""The limit of open files that scripts see where gpushare has raised it."""

import resource
import subprocess
import sys

SCRIPT = """
import resource
from gpushare.isolation import open_files, settings
NOFILE = resource.RLIMIT_NOFILE
own = resource.getrlimit
_, hard = own(NOFILE)
assert hard >= 500
resource.setrlimit(NOFILE, (300, hard))
open_files.show(64)
settings.install()
assert resource.getrlimit(NOFILE) == (64, hard) and own(NOFILE) == (300, hard)
for wanted, allowed in ((100, 300), (32, 300), (400, 400), (350, 400)):
    resource.setrlimit(NOFILE, (wanted, hard))
    assert resource.getrlimit(NOFILE) == (wanted, hard) and own(NOFILE) == (allowed, hard), wanted
try:
    resource.setrlimit(NOFILE, (hard + 1, hard))
except ValueError:
    assert resource.getrlimit(NOFILE) == (350, hard)
else:
    raise AssertionError("a soft limit above the hard one")
resource.setrlimit(NOFILE, (10, 200))
assert resource.getrlimit(NOFILE) == (10, 200) and own(NOFILE) == (200, 200)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
"""


def test_it_is_what_they_would_have_found_or_have_set() -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 500
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=60)
