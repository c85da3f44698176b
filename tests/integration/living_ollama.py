"""The scripted Ollama server with a life of its own: it registers, renders, answers and removes."""

import json
from dataclasses import dataclass
from typing import Any

from tests.integration.ollama_server import Answer, OllamaServer, Seen, line

TOKEN_NS = 10_000_000  # 100 tokens a second
TEMPLATE_END = "<|im_start|>assistant\n"


def chatml(messages: list[dict[str, str]]) -> str:
    turns = "".join(f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in messages)
    return turns + TEMPLATE_END


def count_tokens(prompt: str) -> int:
    """A word a token in a list of words, as most vocabularies have it; else a character a token."""
    return prompt.count(" ") if prompt.startswith(" ") else len(prompt)


@dataclass
class LivingOllama(OllamaServer):
    """Answers every request with as many tokens as it may have."""

    def _usual(self, seen: Seen) -> Answer:
        body: dict[str, Any] = seen.body if isinstance(seen.body, dict) else {}
        if seen.path == "/api/create":
            return self._create(body)
        if seen.path == "/api/pull":
            return self._pull(body)
        if seen.path == "/api/delete":
            return self._delete(body["model"])
        if seen.path == "/api/chat":
            return self._chat(body)
        if seen.path == "/api/generate" and body.get("prompt"):
            return _answer(body, count_tokens(body["prompt"]), lambda text: {"response": text})
        return super()._usual(seen)

    def _create(self, body: dict[str, Any]) -> Answer:
        digests = [digest for digest in body["files"].values() if digest not in self.blobs]
        if digests:
            return Answer(pieces=(status_line(error=f"invalid digest: {digests[0]}"),))
        entry = {**self.tags["models"][0], "name": body["model"], "model": body["model"], "digest": "0" * 64}
        self.tags["models"].append(entry)
        return Answer(pieces=(status_line(status="parsing GGUF"), status_line(status="success")))

    def _pull(self, body: dict[str, Any]) -> Answer:
        entry = {**self.tags["models"][0], "name": body["model"], "model": body["model"], "digest": "1" * 64}
        self.tags["models"].append(entry)
        layer = {"digest": "sha256:abc", "total": 1000}
        steps = [{"status": "pulling abc", **layer, "completed": done} for done in (100, 1000)]
        steps = [{"status": "pulling manifest"}, *steps, {"status": "success"}]
        return Answer(pieces=[status_line(**step) for step in steps])

    def _delete(self, name: str) -> Answer:
        self.tags["models"] = [model for model in self.tags["models"] if model["name"] != name]
        return Answer()

    def _chat(self, body: dict[str, Any]) -> Answer:
        text = chatml(body["messages"])
        if body.get("_debug_render_only"):
            return Answer(pieces=(status_line(_debug_info={"rendered_template": text}),))
        return _answer(
            body, count_tokens(text), lambda text: {"message": {"role": "assistant", "content": text}}
        )


def _answer(body: dict[str, Any], n_in: int, wrapped: Any) -> Answer:
    n_out = body["options"]["num_predict"]
    # No two pieces in a row are equal, nor does the text loop.
    pieces = [line(done=False, **wrapped(f"{number} ")) for number in range(n_out)]
    counts = {
        "done_reason": "length",
        "total_duration": (n_in + n_out + 1) * TOKEN_NS,
        "load_duration": 1_000_000,
        "prompt_eval_count": n_in,
        "prompt_eval_duration": n_in * TOKEN_NS // 10,
        "eval_count": n_out,
        "eval_duration": max(1000, (n_out - 1) * TOKEN_NS),
    }
    return Answer(pieces=(*pieces, line(done=True, **wrapped(""), **counts)))


def status_line(**fields: Any) -> bytes:
    """One line of what a pull or a registration tells."""
    return json.dumps(fields).encode() + b"\n"
