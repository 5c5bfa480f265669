# Shared by demo.sh and test.sh: a virtual environment in .venv with this tree installed in it. PYTHON and TORCH (a
# version) choose with what it is made.
# Quick when nothing changed: the tree's files are hashed, and the hash is kept beside what was installed.

say() { printf '== %s\n' "$*"; }

find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
    [ -n "$candidate" ] && command -v "$candidate" >/dev/null || continue
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))'; then
      echo "$candidate"
      return
    fi
  done
  echo "gpushare needs Python 3.11 to 3.14; set PYTHON to one" >&2
  return 1
}

tree_hash() {
  find pyproject.toml CMakeLists.txt README.md LICENSE gpushare shim scripts/lib.sh -type f \
    -not -path '*/_shim/*' -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1
}

# install EXTRAS: the package with these extras, unless the same tree is installed already.
install() {
  local extras=$1 stamp
  command -v g++ >/dev/null || { echo "gpushare needs g++ to build its shim" >&2; return 1; }
  if [ ! -x .venv/bin/python ]; then
    say "making .venv"
    "$(find_python)" -m venv .venv
  fi
  stamp="$extras $(tree_hash)"
  if [ "$(cat ".venv/gpushare-$extras" 2>/dev/null)" = "$stamp" ]; then
    return
  fi
  if ! .venv/bin/python -c 'import torch' 2>/dev/null; then
    say "installing torch ${TORCH:=2.13.0}"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "torch==$TORCH"
  fi
  say "installing gpushare"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check ".[$extras]"
  rm -f .venv/gpushare-*
  echo "$stamp" > ".venv/gpushare-$extras"
}
