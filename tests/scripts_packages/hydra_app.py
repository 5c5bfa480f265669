"""Configured by hydra, with a configuration and a resolver of its own."""

import time
from dataclasses import dataclass

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf


@dataclass
class Config:
    rate: float = 0.1
    number: int = 2
    twice: str = "${double:${number}}"


ConfigStore.instance().store(name="config", node=Config)
OmegaConf.register_new_resolver("double", lambda number: 2 * int(number))


@hydra.main(version_base=None, config_name="config")
def main(config):
    for _ in range(5):
        print(OmegaConf.to_container(config, resolve=True), HydraConfig.get().overrides.task)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
