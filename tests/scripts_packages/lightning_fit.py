"""A Lightning Trainer with validation, a callback, checkpointing and two data modules' worth of loaders."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset


class Regression(lightning.LightningModule):
    def __init__(self, width=16):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)
        )

    def loss_of(self, batch):
        x, y = batch
        return torch.nn.functional.mse_loss(self.layers(x), y)

    def training_step(self, batch, index):
        loss = self.loss_of(batch)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        self.log("validation", self.loss_of(batch), prog_bar=True)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1)}


class Shows(lightning.Callback):
    def on_validation_epoch_end(self, trainer, module):
        print(trainer.current_epoch, {k: v.item() for k, v in sorted(trainer.callback_metrics.items())})


def main():
    lightning.seed_everything(51)
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=True,
        callbacks=[Shows(), lightning.pytorch.callbacks.ModelCheckpoint("best", monitor="validation")],
    )
    trainer.fit(Regression(), DataLoader(data, 16, shuffle=True), DataLoader(data, 32))
    print(trainer.checkpoint_callback.best_model_path.split("/")[-1])


if __name__ == "__main__":
    main()
