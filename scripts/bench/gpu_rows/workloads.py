"""Scripts that the GPU benchmark runs, with options that give them the size of the models they are named after."""

import shlex

from common import JOBS, ROOT

LAUNCH_BOUND = "launch_bound"
FOLDER = ROOT / "scripts" / "bench" / "workloads"
WORKLOADS = {
    "resnet50": "resnet.py --width 64 --side 224 --batch-size 64",
    "bert": "bert.py",
    "gpt": "gpt.py --width 768 --depth 12 --heads 12 --length 1024 --vocabulary 50257 --batch-size 8",
    "gnmt": "gnmt.py",
    "nasnet": "nasnet.py",
    "dcgan": "gan.py --width 64",
    "pointnet": "pointnet.py",
    "rhn": "rhn.py",
    "resnet110": "cifar_resnet.py",
    "tacotron2": "tacotron.py",
}
ZICO_PAIRS = ("nasnet+gnmt", "bert+gnmt", "rhn+gnmt", "nasnet+resnet110")  # its Figure 8
WATERWAVE_PAIRS = ("resnet50+bert", "resnet50+tacotron2", "bert+tacotron2")  # its Table 2
OWN_PAIRS = ("resnet50+resnet50", "gpt+gnmt", "nasnet+dcgan", "pointnet+pointnet")
PAIRS = (WATERWAVE_PAIRS[0], *ZICO_PAIRS, *WATERWAVE_PAIRS[1:], *OWN_PAIRS)


def command(name: str, sizes: str) -> str:
    """The script and its options, `sizes` after a workload's own: the last one of an option counts."""
    if name == LAUNCH_BOUND:
        return shlex.quote(str(JOBS / "launch_bound.py"))
    script, *options = WORKLOADS[name].split()
    return " ".join([shlex.quote(str(FOLDER / script)), *options, *sizes.split()])


def unknown(names: list[str]) -> list[str]:
    """Those of the names that no workload has."""
    return sorted(set(names) - set(WORKLOADS))
