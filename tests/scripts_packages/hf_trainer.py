"""A transformers Trainer on a randomly initialised small model."""

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainingArguments, set_seed

set_seed(50)


class Numbers(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(1)
        self.rows = torch.randint(60, (count, 16), generator=generator)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def main():
    config = GPT2Config(
        vocab_size=60, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=1
    )
    model = GPT2LMHeadModel(config)
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=12,
        per_device_train_batch_size=4,
        logging_steps=3,
        eval_strategy="steps",
        eval_steps=6,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=50,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Numbers(64), eval_dataset=Numbers(16))
    trainer.remove_callback(PrinterCallback)  # prints runtimes
    trainer.train()
    losses = [entry.get("loss") or entry.get("eval_loss") for entry in trainer.state.log_history]
    print(losses, sum(p.sum().item() for p in model.parameters()))


if __name__ == "__main__":
    main()
