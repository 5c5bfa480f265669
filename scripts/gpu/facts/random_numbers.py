"""Generators of a CUDA device."""

from typing import Any

from ..checks import CannotCheck, Seen, check
from ..device import in_threads, ready
from ..later import torch


@check(
    "Each generator has a seed and a Philox offset of its own; setting the offset back gives the same numbers again."
)
def generators_have_offsets(seen: Seen) -> None:
    ready()
    one, other = torch.Generator("cuda"), torch.Generator("cuda")
    one.manual_seed(5)
    other.manual_seed(5)
    first = torch.rand(1000, device="cuda", generator=one)
    offset = one.get_offset()
    seen.figure("offset_after_1000_numbers", offset)
    seen.claim("drawing moves the offset", offset > 0)
    seen.claim("of this generator alone", other.get_offset() == 0)
    second = torch.rand(1000, device="cuda", generator=one)
    one.set_offset(0)
    seen.claim("offset 0 gives the first numbers", torch.equal(first, torch.rand_like(first, generator=one)))
    seen.claim("then the second ones", torch.equal(second, torch.rand_like(first, generator=one)))


@check(
    "torch.cuda's functions for seeds and states go through torch.cuda.default_generators: another generator there is "
    "seeded and read in place of the device's own.",
)
def python_side_uses_default_generators(seen: Seen) -> None:
    ready()
    real, own = torch.cuda.default_generators[0], torch.Generator("cuda")
    seed, state = real.initial_seed(), real.get_state()
    torch.cuda.default_generators = (own,)
    torch.cuda.manual_seed(seed + 7)
    seen.claim("manual_seed seeds ours", own.initial_seed() == seed + 7)
    torch.manual_seed(seed + 8)
    seen.claim("so does torch.manual_seed", own.initial_seed() == seed + 8)
    seen.claim("get_rng_state reads ours", torch.equal(torch.cuda.get_rng_state(), own.get_state()))
    torch.cuda.set_rng_state(state)
    seen.claim("set_rng_state sets ours", torch.equal(own.get_state(), state))
    seen.claim("the device's own is left alone", torch.equal(real.get_state(), state))


def recurrent() -> Any:
    torch.manual_seed(0)
    return torch.nn.LSTM(64, 64, num_layers=2, dropout=0.5).cuda()


@check(
    "The dropout of cuDNN's recurrent networks follows the device's generator: the same seed brings the same numbers "
    "back, in any thread, and nothing else does.",
)
def recurrent_dropout_follows_the_generator(seen: Seen) -> None:
    if not torch.backends.cudnn.is_available():
        raise CannotCheck("cuDNN is not there")
    ready()
    network, data = recurrent(), torch.randn(16, 8, 64, device="cuda")

    def drawn(seed: int | None = 1) -> Any:
        if seed is not None:
            torch.cuda.manual_seed(seed)
        made = network(data)[0].detach().clone()
        torch.cuda.synchronize()
        return made

    first, again = drawn(), drawn()
    (elsewhere,) = in_threads(drawn)
    others = {
        "without a seed": drawn(None),
        "of another seed": drawn(2),
        "evaluated": network.eval()(data)[0],
    }
    seen.claim("the same seed gives the same numbers", torch.equal(first, again))
    seen.claim("in another thread too", torch.equal(first, elsewhere))
    for name, numbers in others.items():
        seen.claim(f"{name} they are others", not torch.equal(first, numbers))
