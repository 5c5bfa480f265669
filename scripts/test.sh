#!/usr/bin/env bash
# Installs gpushare with its development tools into .venv, checks the sources and runs all tests.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
install dev
bin=$PWD/.venv/bin

say "style and types"
"$bin/ruff" check .
"$bin/ruff" format --check .
"$bin/mypy"
"$bin/clang-format" --dry-run -Werror $(find shim scripts/gpu -name '*.cpp' -o -name '*.h')

command -v cmake >/dev/null && cmake=cmake || { "$bin/pip" install --quiet cmake; cmake=$bin/cmake; }
for kind in plain address,undefined thread; do
  say "shim tests ($kind)"
  dir=build/tests-${kind/,/-}
  sanitize=$([ "$kind" = plain ] || echo "$kind")
  "$cmake" -S . -B "$dir" -DGPUSHARE_TESTS=ON -DGPUSHARE_SANITIZE="$sanitize" \
    -DGPUSHARE_ACROSS_FILES=OFF >/dev/null
  "$cmake" --build "$dir" -j 2 >/dev/null
  (cd "$dir" && ctest -j 2 --output-on-failure)
done

say "python tests"
# One more than two cores take: a third of the time of most tests is waiting.
"$bin/pytest" -q -n 3 --dist worksteal --durations 30
