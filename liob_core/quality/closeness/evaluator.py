"""Carries out one order: every variant over every window, against the reference.

Reference and variants advance window by window together, so that nothing is stored. Where memory does
not hold them, groups of windows are taken with one model at a time, and the reference's logits of a group
lie in an unnamed temporary file meanwhile, as exact as they came.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from liob_core.quality.closeness import scoring
from liob_core.quality.closeness.gathered import Gathered
from liob_core.quality.closeness.model import FailedError, Model, ModelError
from liob_core.quality.closeness.records import Ending, score_to_json
from liob_core.quality.closeness.windows import (
    Piece,
    choose_windows,
    n_scored_tokens,
    pieces,
    window_tokens,
)

_FLOAT_BYTES = 4
Reply = Callable[..., None]
Rows = Callable[[Piece], scoring.Logits]


class Evaluator:
    """One order carried out."""

    def __init__(self, order: dict[str, Any], reply: Reply, load_model: Callable[..., Model]) -> None:
        self._order, self._reply, self._load_model = order, reply, load_model
        self._n_ctx: int = order["n_ctx"]
        self._n_batch: int = min(order["n_ctx"], order["n_batch"])
        self._reference: str = order["reference"]["label"]
        self._done = {label: set(windows) for label, windows in order["done"].items()}
        self._pool = ThreadPoolExecutor(order["threads"])
        self._failed: set[str] = set()
        self._tokens: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._windows: tuple[int, ...] = ()
        self._bos: int | None = None
        self._vocabulary = ""
        self._n_vocab = 0

    def run(self) -> None:
        """Evaluate everything that is not done yet; FailedError where the reference cannot."""
        batches: list[list[dict[str, Any]]] = self._order["batches"]
        if self._order["spill_bytes"] is None:
            for batch in batches:
                self._together(batch)
        else:
            self._one_at_a_time([candidate for batch in batches for candidate in batch])

    def _together(self, batch: Sequence[dict[str, Any]]) -> None:
        """Reference and variants loaded at once; the reference's logits are used where they lie."""
        with self._loaded(self._order["reference"]) as reference:
            models = {}
            for candidate in batch:
                is_open = self._is_open((candidate["label"],), self._windows)
                model = self._load_variant(candidate) if is_open else None
                if model is not None:
                    models[candidate["label"]] = model
            for window in self._windows:
                todo = {label: model for label, model in models.items() if self._wants(label, window)}
                if todo or self._wants(self._reference, window):
                    own = self._start(window, reference)
                    rows = partial(self._prefill, own, reference, self._reference)
                    self._evaluate(window, todo, rows, own)
            for model in models.values():
                model.close()

    def _one_at_a_time(self, candidates: Sequence[dict[str, Any]]) -> None:
        """Groups of windows: the reference's logits into a file, then each variant against that file."""
        remaining: list[int] | None = None  # known once the reference has cut the text
        while remaining is None or remaining:
            with self._spill_file() as file:
                with self._loaded(self._order["reference"]) as reference:
                    if remaining is None:
                        labels = [self._reference, *(one["label"] for one in candidates)]
                        remaining = [w for w in self._windows if self._is_open(labels, (w,))]
                    n_group = max(1, self._order["spill_bytes"] // self._window_bytes())
                    group, remaining = remaining[:n_group], remaining[n_group:]
                    for window in group:
                        self._write_rows(reference, window, file)
                for candidate in candidates:
                    self._evaluate_spilled(candidate, group, file)

    def _evaluate_spilled(self, candidate: dict[str, Any], group: Sequence[int], file: IO[bytes]) -> None:
        label = candidate["label"]
        todo = [window for window in group if self._wants(label, window)]
        model = self._load_variant(candidate) if todo else None
        if model is None:
            return
        shape = (len(group), n_scored_tokens(self._n_ctx), self._n_vocab)
        stored = np.memmap(file, dtype=np.float32, mode="r", shape=shape)
        first = self._n_ctx // 2
        for window in todo:
            rows = stored[group.index(window)]

            def part(piece: Piece, rows: scoring.Logits = rows) -> scoring.Logits:
                start = piece.first_scored - first
                return rows[start : start + piece.n_scored]

            self._evaluate(window, {label: model}, part)
        model.close()

    def _evaluate(
        self, window: int, models: dict[str, Model], reference_rows: Rows, reference: Gathered | None = None
    ) -> None:
        """One window of some variants, piece by piece against the reference's rows.

        `reference` gathers what the reference itself is found to be worth, where that is not known yet.
        """
        gathered = {label: self._start(window, model) for label, model in models.items()}
        for piece in pieces(self._n_ctx, self._n_batch):
            rows = {self._reference: reference_rows(piece)}
            for label in list(gathered):
                try:
                    rows[label] = self._prefill(gathered[label], models[label], label, piece)
                except FailedError as error:
                    self._fail(label, error)
                    del gathered[label]
            if piece.n_scored:
                scores = self._score(window, piece, rows)
                if reference is not None:
                    reference.keep(scores[self._reference])
                for label, own in gathered.items():
                    own.keep(scores[label])
        if reference is not None:
            self._send(reference, self._reference, window)
        for label, own in gathered.items():
            try:
                self._send(own, label, window)
            except FailedError as error:
                self._fail(label, error)

    def _write_rows(self, reference: Model, window: int, file: IO[bytes]) -> None:
        own = self._start(window, reference)

        def write(piece: Piece) -> scoring.Logits:
            logits = self._prefill(own, reference, self._reference, piece)
            try:
                file.write(logits.data)
                file.flush()
            except OSError as error:
                raise FailedError(
                    Ending.DISK_FULL, f"the reference's logits do not fit the disk ({error.strerror})"
                ) from error
            return logits

        self._evaluate(window, {}, write, own)

    def _start(self, window: int, model: Model) -> Gathered:
        model.start_window()
        return Gathered(self._window_tokens(window))

    def _window_tokens(self, window: int) -> NDArray[np.int32]:
        return window_tokens(self._tokens, window, self._n_ctx, self._bos)

    def _prefill(self, own: Gathered, model: Model, label: str, piece: Piece) -> scoring.Logits:
        self._reply("at", variant=label, doing="evaluating")
        return own.prefill(model, piece)

    def _score(self, window: int, piece: Piece, rows: dict[str, scoring.Logits]) -> dict[str, scoring.Scores]:
        """The scores of one piece, by label; the reference's rows come first."""
        first = piece.first_scored + 1
        targets = self._window_tokens(window)[first : first + piece.n_scored]
        scores = scoring.score(
            list(rows.values()), targets, pool=self._pool, n_workers=self._order["threads"]
        )
        return dict(zip(rows, scores, strict=True))

    def _send(self, own: Gathered, label: str, window: int) -> None:
        score = own.finished(label, window)
        if self._wants(label, window):
            self._done.setdefault(label, set()).add(window)
            self._reply("score", **score_to_json(score))

    @contextmanager
    def _loaded(self, candidate: dict[str, Any]) -> Iterator[Model]:
        """The reference while it is loaded; the first time, the text is cut by its vocabulary."""
        model = self._load(candidate)
        try:
            if not self._windows:
                self._cut_text(model)
            yield model
        finally:
            model.close()

    def _load(self, candidate: dict[str, Any]) -> Model:
        self._reply("at", variant=candidate["label"], doing="loading")
        try:
            model = self._load_model(
                candidate, n_ctx=self._n_ctx, n_batch=self._n_batch, threads=self._order["threads"]
            )
        except ModelError as error:
            raise FailedError(Ending.BAD_FILE, str(error)) from error
        self._reply("loaded", variant=candidate["label"], load_ns=model.load_ns)
        return model

    def _load_variant(self, candidate: dict[str, Any]) -> Model | None:
        """The variant, or None where it failed or reads other tokens than the reference."""
        label = candidate["label"]
        if label in self._failed:
            return None
        try:
            model = self._load(candidate)
        except FailedError as error:
            self._fail(label, error)
            return None
        reason = self._vocabulary_difference(model)
        if reason is None:
            return model
        model.close()
        self._fail(label, FailedError(Ending.OTHER_VOCABULARY, reason))
        return None

    def _vocabulary_difference(self, model: Model) -> str | None:
        if model.n_vocab != self._n_vocab:
            return f"its vocabulary has {model.n_vocab} tokens, the reference's {self._n_vocab}"
        if model.vocabulary_digest() != self._vocabulary:
            return "its vocabulary is as large as the reference's but holds other tokens"
        return None

    def _cut_text(self, reference: Model) -> None:
        self._tokens = reference.tokenize(Path(self._order["text"]).read_bytes())
        self._bos, self._n_vocab = reference.bos, reference.n_vocab
        self._vocabulary = reference.vocabulary_digest()
        self._windows = choose_windows(
            len(self._tokens), self._n_ctx, self._order["n_windows"], from_start=self._order["from_start"]
        )
        self._reply("text", n_tokens=len(self._tokens), windows=self._windows)

    def _fail(self, label: str, error: FailedError) -> None:
        self._failed.add(label)
        self._reply("failed", variant=label, ending=error.ending, reason=str(error))

    def _wants(self, label: str, window: int) -> bool:
        return label not in self._failed and window not in self._done.get(label, ())

    def _is_open(self, labels: Sequence[str], windows: Sequence[int]) -> bool:
        return any(self._wants(label, window) for label in labels for window in windows)

    def _window_bytes(self) -> int:
        return n_scored_tokens(self._n_ctx) * self._n_vocab * _FLOAT_BYTES

    def _spill_file(self) -> IO[bytes]:
        # Without a name it is gone whatever ends this process.
        return tempfile.TemporaryFile(dir=self._order["temp_dir"])
