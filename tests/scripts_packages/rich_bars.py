"""A Trainer that shows its progress with rich, of which a process has one live display at a time."""

import sys, warnings, logging, torch

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning as L
from lightning.pytorch.callbacks import RichProgressBar
from torch.utils.data import DataLoader, TensorDataset


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(16, 1)

    def training_step(self, batch, _):
        loss = self.net(batch[0]).pow(2).mean()
        self.losses = [*getattr(self, "losses", []), loss.item()]
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


L.seed_everything(int(sys.argv[1]), verbose=False)
net = Net()
shown = sys.stdout
sys.stdout = sys.stderr  # where the bar goes; it has times in it
trainer = L.Trainer(
    max_epochs=3,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_model_summary=False,
    callbacks=[RichProgressBar()],
)
trainer.fit(net, DataLoader(TensorDataset(torch.randn(400, 16)), 8))
sys.stdout = shown
print(len(net.losses), net.losses[-1])
