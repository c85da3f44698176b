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


def added_bos(stream: OllamaStream, models: OllamaModels, load: Mapping[str, JsonValue]) -> str:
    """The text of the BOS that the runner itself puts before a prompt; empty where it adds none.

    Decided by what the runner counts for that text alone, since no field tells it.
    """
    facts = models.show(str(load["model"]), verbose=True).facts
    tokens, number = facts.get("tokenizer.ggml.tokens"), facts.get("tokenizer.ggml.bos_token_id")
    if not isinstance(tokens, list) or not isinstance(number, int) or not 0 <= number < len(tokens):
        return ""
    options = {**load["options"], "num_predict": 1, "temperature": 0.0}
    body = {**load, "prompt": str(tokens[number]), "raw": True, "options": options}
    n_tokens = stream.call("POST", "/api/generate", body).get("prompt_eval_count")
    return str(tokens[number]) if isinstance(n_tokens, int) and n_tokens > 1 else ""
