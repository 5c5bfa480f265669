"""Exit codes that no byte holds, and how a script ends that is interrupted by itself: as plain python has them."""

import json
import re
from pathlib import Path

from conftest import Run

NO_STRING = "class Bad:\n    def __str__(self): raise ValueError('no')\n"
SCRIPTS = {
    "large": "import sys; sys.exit(2**64)",
    "larger": "import sys; sys.exit(-2**63 - 1)",
    "largest": "import sys; sys.exit(2**63 - 1)",
    "least": "import sys; sys.exit(-2**63)",
    "byte": "import sys; sys.exit(256)",
    "hard": "import os; os._exit(259)",
    "hard_byte": "import os; os._exit(256)",
    "hard_negative": "import os; os._exit(status=-1)",
    "hard_large": "import os\ntry:\n    os._exit(2**31)\nexcept OverflowError as error:\n    print(error)",
    "hard_text": "import os\ntry:\n    os._exit('1')\nexcept TypeError as error:\n    print(error)",
    "interrupts": "raise KeyboardInterrupt('now')",
    "kin": "class Mine(KeyboardInterrupt): pass\nraise Mine",
    "hook": "import sys\nsys.excepthook = lambda *_: print('seen')\nraise KeyboardInterrupt",
    "hook_exits": "import sys\nsys.excepthook = lambda *_: sys.exit(5)\nraise KeyboardInterrupt",
    "no_string": f"import sys\n{NO_STRING}sys.exit(Bad())",
    "tuple": "import sys; sys.exit(('a', 1))",
}


def test_exit_codes_are_those_of_plain_python(gpushare: Run, plain: Run, tmp_path: Path) -> None:
    for name, text in SCRIPTS.items():
        (tmp_path / f"{name}.py").write_text(text + "\n")
    done = gpushare("run", *(f"{name}.py" for name in SCRIPTS), "--summary", "s.json", "--log-dir", "logs")
    assert done.returncode == 1, done.stderr
    jobs = {job["name"]: job for job in json.loads((tmp_path / "s.json").read_text())["jobs"]}
    for name in SCRIPTS:
        alone = plain(f"{name}.py")
        code = 128 - alone.returncode if alone.returncode < 0 else alone.returncode  # as a shell tells it
        assert (name, jobs[name]["exit_code"]) == (name, code)
        assert jobs[name]["status"] == ("failed" if code else "ok")
        assert (tmp_path / "logs" / f"{name}.out").read_text() == alone.stdout
        # From Python 3.12 on it tells once more, when it ends, of what was no exit code, 3.13.0 of no text either.
        told = r"Exception ignored on threading shutdown:\n(Traceback.*\n(  .*\n)*)?"
        again = rf"({told})?(OverflowError: .*|ValueError: no)\n\Z"
        assert (tmp_path / "logs" / f"{name}.err").read_text() == re.sub(again, "", alone.stderr)
