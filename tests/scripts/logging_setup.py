"""Configures logging for itself, with a file and levels."""

import logging
import logging.config
import os
import warnings

import torch

device = torch.device(os.environ.get("DEVICE", "cpu"))

logging.config.dictConfig(
    {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"short": {"format": "%(levelname)s %(name)s: %(message)s"}},
        "handlers": {
            "file": {"class": "logging.FileHandler", "filename": "train.log", "formatter": "short"},
            "console": {"class": "logging.StreamHandler", "formatter": "short", "level": "WARNING"},
        },
        "root": {"level": "INFO", "handlers": ["file", "console"]},
    }
)
log = logging.getLogger("train")
logging.captureWarnings(True)
torch.manual_seed(31)
w = torch.zeros(2, device=device, requires_grad=True)
for step in range(4):
    loss = (w - 1).square().sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None
    log.info("step %d loss %r", step, loss.item())
log.warning("done")
warnings.warn("into the log")
