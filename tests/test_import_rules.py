"""The rooms of docs/architecture.md: who may import whom."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent / "gpushare"
BASE = {"errors", "units", "jobs", "places", "streams"}
MAY = {
    "commands": {"commands", "launcher", "views", "simulation", "scheduling.policies", "profiles", "native"},
    "launcher": {"launcher", "profiles", "telemetry", "native"},
    "host": {"host", "isolation", "framework", "scheduling", "native"},
    "isolation": {"isolation", "native"},
    "framework": {"framework", "isolation", "native"},
    "native": {"native"},
    "profiles": {"profiles"},
    "scheduling": {"scheduling", "profiles", "native"},
    "simulation": {"simulation", "scheduling", "profiles", "native"},
    "telemetry": {"telemetry"},
    "views": {"views", "telemetry", "profiles", "launcher.results"},
}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules() -> list[tuple[str, Path]]:
    return [(p.relative_to(ROOT).parts[0].removesuffix(".py"), p) for p in ROOT.rglob("*.py")]


def test_rooms_import_only_what_they_may() -> None:
    assert len(modules()) > 30
    for room, path in modules():
        for name in imports(path):
            parts = name.split(".")
            if parts[0] != "gpushare" or len(parts) < 2 or room.startswith("__"):
                continue
            target = parts[1]
            if target.startswith("__"):  # the version
                continue
            if target in BASE:
                assert room != "native", f"{path} imports {name}"
                continue
            assert room not in BASE, f"{path} imports {name}"
            allowed = target in MAY[room] or ".".join(parts[1:3]) in MAY[room]
            assert allowed, f"{path} imports {name}"


def test_only_framework_imports_torch_and_only_native_ctypes() -> None:
    for room, path in modules():
        tops = {name.split(".")[0] for name in imports(path)}
        assert "torch" not in tops or room == "framework", path
        assert "ctypes" not in tops or room == "native", path
