"""The prompt that an Ollama server makes of chat turns, asked without running it."""

from collections.abc import Mapping, Sequence

from liob_core.engines.ollama_models import OllamaModels
from liob_core.engines.ollama_options import messages_body
from liob_core.engines.ollama_stream import OllamaStream
from liob_core.errors import EngineFailure
from liob_core.types import JsonValue, Message, Outcome


def render(stream: OllamaStream, load: Mapping[str, JsonValue], messages: Sequence[Message]) -> str:
    """The prompt text that the server makes of `messages`; `load` is the body that loaded the model."""
    body = {name: value for name, value in load.items() if name != "prompt"}
    body |= {"messages": messages_body(messages), "_debug_render_only": True}
    info = stream.call("POST", "/api/chat", body).get("_debug_info")
    text = info.get("rendered_template") if isinstance(info, dict) else None
    if not isinstance(text, str):
        raise EngineFailure(
            Outcome.ENGINE_ERROR, "this Ollama cannot tell what it makes of a prompt: update it"
        )
    return text


def without_bos(stream: OllamaStream, models: OllamaModels, load: Mapping[str, JsonValue], text: str) -> str:
    """The text without a BOS that the runner adds itself; decided by what the runner counts."""
    bos = _bos_piece(models, str(load["model"]))
    if not bos or not text.startswith(bos):
        return text
    options = {**load["options"], "num_predict": 1, "temperature": 0.0}
    reply = stream.call("POST", "/api/generate", {**load, "prompt": bos, "raw": True, "options": options})
    n_tokens = reply.get("prompt_eval_count")
    return text.removeprefix(bos) if isinstance(n_tokens, int) and n_tokens > 1 else text


def _bos_piece(models: OllamaModels, name: str) -> str | None:
    facts = models.show(name, verbose=True).facts
    tokens, number = facts.get("tokenizer.ggml.tokens"), facts.get("tokenizer.ggml.bos_token_id")
    if not isinstance(tokens, list) or not isinstance(number, int) or not 0 <= number < len(tokens):
        return None
    return str(tokens[number])
