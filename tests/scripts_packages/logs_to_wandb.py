"""Logs to a run of Weights & Biases without a network, by the functions of its module."""

import os
import sys
import time

import wandb

number = int(sys.argv[1])
os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_PROJECT": f"project-{number}"}
run = wandb.init(config={"number": number}, name=f"run-{number}")
for step in range(10):
    wandb.log({"loss": step * number})
    time.sleep(0.05)
print(wandb.config["number"], wandb.run.name, wandb.run is run, dict(wandb.run.summary)["loss"], run.project)
wandb.finish()
print(wandb.run is None)
