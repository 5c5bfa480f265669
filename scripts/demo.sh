#!/usr/bin/env bash
# Installs gpushare into .venv and runs two training scripts in a budget below the sum of their peaks. On the CPU, whose
# sizes the budget is for, also where there is a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
install examples

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cnn="scripts/examples/digits_cnn.py --steps 30 --device cpu"
autoencoder="scripts/examples/autoencoder.py --steps 30 --device cpu"

say "two jobs that need more together than the budget has"
OMP_NUM_THREADS=1 .venv/bin/gpushare run "$cnn" "$autoencoder" --budget 120MiB --device cpu \
  --log-dir "$work/logs" --summary "$work/summary.json"
.venv/bin/python - "$work/summary.json" <<'PY'
import json
import sys

summary = json.load(open(sys.argv[1]))
mib = 1 << 20
print(f"sum of the peaks alone: {summary['solo_peaks_sum_bytes'] / mib:.0f} MiB")
print(f"the pool's peak:        {summary['pool_peak_bytes'] / mib:.0f} MiB")
print(f"budget:                 {summary['budget_bytes'] / mib:.0f} MiB")
PY
