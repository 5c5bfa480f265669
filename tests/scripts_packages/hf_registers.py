"""A model of the script's own among those that transformers knows by name: saved, and made again from the file."""

import sys, torch
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel


class Config(PretrainedConfig):
    model_type = "small"

    def __init__(self, width=int(sys.argv[1]), **rest):
        super().__init__(**rest)
        self.width = width


class Model(PreTrainedModel):
    config_class = Config

    def __init__(self, config):
        super().__init__(config)
        self.net = torch.nn.Linear(config.width, config.width)
        self.post_init()

    def _init_weights(self, module):
        if isinstance(module, torch.nn.Linear):
            torch.nn.init.normal_(module.weight, std=0.1)

    def forward(self, x):
        return self.net(x)


AutoConfig.register("small", Config)
AutoModel.register(Config, Model)
torch.manual_seed(int(sys.argv[1]))
model = AutoModel.from_config(Config())
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
for step in range(30):
    loss = model(torch.randn(16, model.config.width)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
model.save_pretrained(f"small-{sys.argv[1]}")
again = AutoModel.from_pretrained(f"small-{sys.argv[1]}")
print(type(again) is Model, again.net.weight.sum().item() == model.net.weight.sum().item())
