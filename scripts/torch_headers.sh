#!/usr/bin/env bash
# Fetches releases of torch from the package index, where they are built for CUDA, without installing them: what the
# bridge is compiled and linked against. Each takes about 1 GB of disk, and twice that while it is unpacked.
#   GPUSHARE_TORCH_HEADERS=$(scripts/torch_headers.sh build/torch 2.11.0 2.13.0) \
#     .venv/bin/pytest tests/framework/test_cuda_bridge.py -k compiles
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 FOLDER VERSION..." >&2; exit 2; }
python=${PYTHON:-python3}
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift

unpack() {  # WHEEL FOLDER
  "$python" - "$@" <<'EOF'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    wanted = ("torch/include/", *(f"torch/lib/lib{name}.so" for name in ("c10", "c10_cuda", "torch_cpu", "torch_cuda")))
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith(wanted)])
EOF
}

found=
for version; do
  at=$folder/$version
  if [ ! -d "$at" ]; then
    rm -rf "$at.new"
    # Three signs: not a build of that version which has a name of its own ("+cpu").
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$at.new" "torch===$version" >&2
    unpack "$at.new"/torch-*.whl "$at.new"
    rm "$at.new"/torch-*.whl
    mv "$at.new" "$at"
  fi
  found+=${found:+:}$at/torch/include
done
echo "$found"
