"""Logs to a run of Weights & Biases without a network, by the functions of its module."""

import os
import pathlib
import sys
import time

import wandb

number = int(sys.argv[1])
os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_PROJECT": f"project-{number}"}
run = wandb.init(config={"number": number}, name=f"run-{number}")
for step in range(10):
    wandb.log({"loss": step * number})
    print(f"step {step} of {number}")
    time.sleep(0.05)
print(wandb.config["number"], wandb.run.name, wandb.run is run, dict(wandb.run.summary)["loss"], run.project)
kept = pathlib.Path(run.dir, "output.log")
wandb.finish()
print(wandb.run is None)
print(kept.read_text())  # of this run's console
