"""The exact bytes that are sent: rendered once, checked on their tokens, the same for every variant."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from liob_core.engines.protocol import Engine
from liob_core.store.journal import read_record, write_atomic
from liob_core.types import Message, Prompt, RenderedPrompt, Suite, Variant, to_json

PROMPTS_FILE = "prompts.json"
LONGEST_BOS_CHARS = 40


def render_suite(
    suite: Suite, variant: Variant, engine: Engine, *, by_engine: bool = False
) -> dict[str, RenderedPrompt]:
    """Each prompt of the suite, by id, as the template in this variant's own file renders it.

    Whether there is a template comes from the file's header, never from the engine: engines make one up.
    That one is wanted `by_engine` alone, where the engine's own behaviour is what is compared.
    """
    is_files_own = engine.capabilities.uses_file_template
    template_sha256 = variant.model.chat_template_sha256 if variant.model and is_files_own else None
    has_template = engine.capabilities.renders_templates and (
        by_engine or variant.model is None or variant.model.has_chat_template
    )
    return {
        prompt.prompt_id: _render(prompt, engine, template_sha256 if has_template else None, has_template)
        for prompt in suite.prompts
    }


def write_prompts(run_dir: Path, prompts: Mapping[str, RenderedPrompt]) -> None:
    """Keep the rendered prompts in the run folder; a resumed run sends these same bytes."""
    write_atomic(run_dir / PROMPTS_FILE, json.dumps([to_json(prompt) for prompt in prompts.values()]))


def read_prompts(run_dir: Path) -> dict[str, RenderedPrompt] | None:
    """The rendered prompts of a run by id, or None where none were rendered yet."""
    path = run_dir / PROMPTS_FILE
    if not path.exists():
        return None
    prompts: list[RenderedPrompt] = read_record(list[RenderedPrompt], path.read_text(encoding="utf-8"))
    return {prompt.prompt_id: prompt for prompt in prompts}


def plain_text(messages: Sequence[Message]) -> str:
    """The prompt of a model without a chat template: the turns as paragraphs, and nothing else."""
    return "\n\n".join(message.content for message in messages) + "\n"


def without_doubled_bos(text: str, engine: Engine) -> tuple[str, int]:
    """The text that gives one BOS at the most when the engine reads it, and its number of tokens.

    Decided on the tokens: a BOS may be an ordinary-looking piece of the prompt, so text cannot tell.
    """
    tokens, bos = engine.tokenize(text, add_special=True), engine.bos_id()
    if bos is None or tokens[:2] != [bos, bos]:
        return text, len(tokens)
    for length in range(1, min(LONGEST_BOS_CHARS, len(text)) + 1):
        shorter = engine.tokenize(text[length:], add_special=True)
        if shorter == tokens[1:]:
            return text[length:], len(shorter)
    return text, len(tokens)


def _render(
    prompt: Prompt, engine: Engine, template_sha256: str | None, has_template: bool
) -> RenderedPrompt:
    text = engine.render(prompt.messages) if has_template else plain_text(prompt.messages)
    n_tokens: int | None = None
    if engine.capabilities.tokenizes:
        text, n_tokens = without_doubled_bos(text, engine)
    return RenderedPrompt(
        prompt_id=prompt.prompt_id,
        text=text,
        sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        n_tokens=n_tokens,
        templated=has_template,
        template_sha256=template_sha256,
    )
