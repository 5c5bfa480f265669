"""A tiny network that Lightning's Trainer or that of transformers trains, validated each epoch: mostly Python."""

import argparse
import hashlib
import os
import tempfile
import warnings

import torch

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--package", choices=("lightning", "transformers"), required=True)
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--workers", type=int, default=0, help="of each DataLoader")
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
warnings.filterwarnings("ignore")
os.environ["HF_HUB_OFFLINE"] = "1"


class Tokens(torch.utils.data.Dataset):
    """As both want them; 20 batches of 16."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(0, 500, (320, 32), generator=generator)
        self.labels = torch.randint(0, 2, (320,), generator=generator)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.ids[index], "labels": self.labels[index]}


def by_lightning(folder: str) -> torch.nn.Module:
    import lightning

    class Classifier(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(500, 64)
            layer = torch.nn.TransformerEncoderLayer(64, 2, 128, batch_first=True)
            self.encode = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = torch.nn.Linear(64, 2)

        def loss(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            found = self.head(self.encode(self.embed(batch["input_ids"])).mean(1))
            return torch.nn.functional.cross_entropy(found, batch["labels"])

        def training_step(self, batch: dict[str, torch.Tensor], _: int) -> torch.Tensor:
            loss = self.loss(batch)
            self.log("loss", loss)
            return loss

        def validation_step(self, batch: dict[str, torch.Tensor], _: int) -> None:
            self.log("validated", self.loss(batch))

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), 1e-3)

    lightning.seed_everything(args.seed, verbose=False)
    model = Classifier()
    trainer = lightning.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        logger=False,
        default_root_dir=folder,
        enable_model_summary=False,
        enable_progress_bar=False,
    )
    load = torch.utils.data.DataLoader
    trainer.fit(
        model, *(load(Tokens(args.seed + n), batch_size=16, num_workers=args.workers) for n in range(2))
    )
    return model


def by_transformers(folder: str) -> torch.nn.Module:
    import transformers
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    transformers.set_seed(args.seed)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    model = BertForSequenceClassification(BertConfig(vocab_size=500, **sizes))
    told = TrainingArguments(
        folder,
        num_train_epochs=args.epochs,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=16,
        report_to=[],
        save_strategy="no",
        eval_strategy="epoch",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_num_workers=args.workers,
        seed=args.seed,
    )
    Trainer(model, told, train_dataset=Tokens(args.seed), eval_dataset=Tokens(args.seed + 1)).train()
    return model


with tempfile.TemporaryDirectory() as folder:
    trained = {"lightning": by_lightning, "transformers": by_transformers}[args.package](folder)
weights = torch.cat([parameter.detach().flatten() for parameter in trained.parameters()])
print(f"trained to {hashlib.sha256(weights.numpy().tobytes()).hexdigest()}")
