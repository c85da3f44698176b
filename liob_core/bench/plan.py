"""From a run's spec to its cells in order. Pure: the same spec gives the same plan, on any machine."""

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from liob_core.types import Cell, RunSpec, Shape, Task

# (prompt tokens, output tokens) of each shape; llama-bench's pp512, tg128 and `-d 512 -n 128`.
SHAPE_TOKENS = {Shape.PP512: (512, 1), Shape.TG128: (1, 128), Shape.CHAT512: (512, 128)}
WARMUP_TOKENS = (128, 32)
SEED_LIMIT = 2**32 - 1  # llama.cpp turns a larger seed into 0, and this very value into a random one


def make_plan(spec: RunSpec) -> tuple[Cell, ...]:
    """Every request of the run, in order.

    Blocks are visited one after another; within a block each variant is loaded once, and the order of
    variants is a rotation of one shuffled order, so that over the blocks no variant always comes first.
    """
    cells: list[Cell] = []
    for block in range(max(spec.n_blocks, spec.suite_repeats)):  # more seeds than blocks of `speed`
        for variant in block_order(spec, block):
            cells.extend(_block_cells(spec, block, variant))
    return tuple(replace(cell, index=index) for index, cell in enumerate(cells))


def block_order(spec: RunSpec, block: int) -> tuple[str, ...]:
    """The labels of the variants in the order in which this block visits them."""
    labels = [variant.label for variant in spec.variants]
    # Not for secrecy: the order must be reproducible from the spec.
    random.Random(spec.order_seed).shuffle(labels)  # noqa: S311
    turn = block % len(labels)
    return tuple(labels[turn:] + labels[:turn])


def prompt_ids(spec: RunSpec, cell: Cell, n_tokens: int, vocab_size: int | None) -> tuple[int, ...]:
    """`n_tokens` token ids that differ from the first one on in every cell, so that no cache can serve them.

    Ids come from the middle of the vocabulary: special tokens sit at either end of it.
    """
    size = vocab_size or 32_000
    low, high = (size // 8, size * 3 // 4) if size >= 64 else (0, size)
    seed = hashlib.sha256(f"{spec.run_id}:{cell.cell_id}".encode()).digest()
    picker = random.Random(seed)  # noqa: S311
    return tuple(picker.randrange(low, high) for _ in range(n_tokens))


def remaining(plan: Sequence[Cell], finished: set[str]) -> tuple[Cell, ...]:
    """The cells still to do: the plan minus what is stored.

    A block that has measured cells left keeps its warm-ups, since its model is loaded anew; a block
    that has none left loses them.
    """
    open_blocks = {
        (cell.block, cell.variant) for cell in plan if not cell.warmup and cell.cell_id not in finished
    }
    return tuple(
        cell
        for cell in plan
        if (cell.block, cell.variant) in open_blocks and (cell.warmup or cell.cell_id not in finished)
    )


def _block_cells(spec: RunSpec, block: int, variant: str) -> Iterator[Cell]:
    suite_runs_here = Task.SUITE in spec.tasks and spec.suite is not None and block < spec.suite_repeats
    speed_runs_here = Task.SPEED in spec.tasks and block < spec.n_blocks
    if not speed_runs_here and not suite_runs_here:
        return
    first_task = Task.SPEED if speed_runs_here else Task.SUITE
    for number in range(spec.n_warmups):
        yield _cell(block, variant, first_task, f"warmup-{number}", spec.sampling.seed, warmup=True)
    if speed_runs_here:
        for shape in spec.shapes:
            yield _cell(block, variant, Task.SPEED, shape, spec.sampling.seed, shape=shape)
    if suite_runs_here and spec.suite is not None:
        for prompt in spec.suite.prompts:
            yield _cell(
                block,
                variant,
                Task.SUITE,
                prompt.prompt_id,
                # The first block, which is graded, has the seed that was asked for.
                spec.sampling.seed + (block if spec.n_seeds > 1 else 0),
                prompt_id=prompt.prompt_id,
                category=prompt.category,
            )


def _cell(
    block: int,
    variant: str,
    task: Task,
    what: str,
    seed: int,
    *,
    shape: Shape | None = None,
    prompt_id: str | None = None,
    category: str | None = None,
    warmup: bool = False,
) -> Cell:
    return Cell(
        cell_id=f"b{block}/{variant}/{task}/{what}",
        index=0,
        variant=variant,
        block=block,
        task=task,
        shape=shape,
        prompt_id=prompt_id,
        category=category,
        repeat=block,
        warmup=warmup,
        seed=seed,
    )
