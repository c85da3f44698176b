"""What a suite file may hold (see `data/suites/README.md`), validated before it becomes records."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo, field_validator

from liob_core.suites.params import NOT_BLANK, AnyCheck, OverlapCheck, to_check
from liob_core.types import Message, Prompt

Text = Annotated[str, StringConstraints(min_length=1, pattern=NOT_BLANK)]
PromptId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Category = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=NOT_BLANK)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Turn(_Part):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: Text


class Shot(_Part):
    """One worked example before the question."""

    user: Text
    assistant: Text


class PromptEntry(_Part):
    """One prompt as a file states it: `prompt` with `system` and `few_shot`, or `messages`."""

    id: PromptId
    category: Category
    system: Text | None = None
    few_shot: list[Shot] = []
    messages: list[Turn] | None = None
    prompt: Annotated[Text | None, Field(validate_default=True)] = None
    check: AnyCheck | None = None
    rubric: Text | None = None
    reference: Annotated[Text | None, Field(validate_default=True)] = None
    max_tokens: Annotated[int, Field(ge=1, le=131_072)] | None = None

    @field_validator("messages")
    @classmethod
    def _alternates(cls, messages: list[Turn] | None, info: ValidationInfo) -> list[Turn] | None:
        if messages is None:
            return None
        if not messages:
            raise ValueError("must hold at least one message")
        for field in ("system", "few_shot"):
            if info.data.get(field):
                raise ValueError(f"cannot be given together with {field!r}: put those turns into it")
        if messages[-1].role != "user":
            raise ValueError("the last message must be the user's")
        turns = messages[1:] if messages[0].role == "system" else messages
        # Several models' chat templates refuse anything but user and assistant in turn.
        for i, turn in enumerate(turns):
            expected = "user" if i % 2 == 0 else "assistant"
            if turn.role != expected:
                raise ValueError(
                    f"message {len(messages) - len(turns) + i + 1} must be the {expected}'s: "
                    "an optional system message, then user and assistant in turn"
                )
        return messages

    @field_validator("prompt")
    @classmethod
    def _is_the_only_source(cls, prompt: str | None, info: ValidationInfo) -> str | None:
        if "messages" not in info.data:  # it was refused; one report is enough
            return prompt
        has_messages = info.data["messages"] is not None
        if prompt is not None and has_messages:
            raise ValueError("cannot be given together with 'messages': keep one of them")
        if prompt is None and not has_messages:
            raise ValueError("is missing: give 'prompt' or 'messages'")
        return prompt

    @field_validator("reference")
    @classmethod
    def _is_there_to_compare(cls, reference: str | None, info: ValidationInfo) -> str | None:
        check = info.data.get("check")
        if reference is None and isinstance(check, OverlapCheck) and check.references is None:
            raise ValueError(f"is missing: check {check.kind!r} compares with it, or with its 'references'")
        return reference

    def to_record(self) -> Prompt:
        """The frozen record, with all turns and what the check compares with spelled out."""
        check = self.check
        if isinstance(check, OverlapCheck) and check.references is None and self.reference is not None:
            check = check.model_copy(update={"references": [self.reference]})
        return Prompt(
            prompt_id=self.id,
            category=self.category,
            messages=self._turns(),
            check=None if check is None else to_check(check),
            rubric=self.rubric,
            reference=self.reference,
            max_tokens=self.max_tokens,
        )

    def _turns(self) -> tuple[Message, ...]:
        if self.messages is not None:
            return tuple(Message(role=turn.role, content=turn.content) for turn in self.messages)
        turns = [] if self.system is None else [Message(role="system", content=self.system)]
        for shot in self.few_shot:
            turns.append(Message(role="user", content=shot.user))
            turns.append(Message(role="assistant", content=shot.assistant))
        if self.prompt is not None:
            turns.append(Message(role="user", content=self.prompt))
        return tuple(turns)


class SuiteFile(_Part):
    """A whole file: prompts of its own, or a choice of another suite's prompts by id."""

    description: str = ""
    version: Annotated[str, StringConstraints(max_length=64)] = "1"
    subset_of: Annotated[str, StringConstraints(pattern=r"^[^/\\]+$")] | None = None
    prompt_ids: Annotated[list[PromptId], Field(min_length=1)] | None = None
    prompts: Annotated[list[PromptEntry] | None, Field(validate_default=True)] = None

    @field_validator("prompts")
    @classmethod
    def _has_one_source(
        cls, prompts: list[PromptEntry] | None, info: ValidationInfo
    ) -> list[PromptEntry] | None:
        subset_of, prompt_ids = info.data.get("subset_of"), info.data.get("prompt_ids")
        if subset_of is None and prompt_ids is None:
            if not prompts:
                raise ValueError("the suite is empty: give at least one prompt")
        elif prompts is not None:
            raise ValueError("cannot be given together with 'subset_of' and 'prompt_ids'")
        elif subset_of is None or prompt_ids is None:
            raise ValueError("'subset_of' and 'prompt_ids' belong together: give both")
        return prompts
