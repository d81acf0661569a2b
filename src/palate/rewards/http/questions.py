"""Single questions to a server: what is it, how many tokens is this?"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from palate.errors import ModelError
from palate.llm.failures import cause_of
from palate.llm.transport import open_plain_client
from palate.rewards.http.options import Options

START_RETRIES = 2
ABSENT = (404, 405)


@dataclass
class Questions:
    """Asks one thing after the other and remembers what it found, for messages.

    Raises:
        ModelError: the server cannot be reached, or wants another key.
    """

    options: Options
    found: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _client(self) -> Any:
        return open_plain_client(self.options.endpoint, self.options.endpoint.key)

    def get(self, path: str) -> Any:
        """Return the JSON at a path, or None if there is none."""
        reply, why = self._ask("GET", path, None, START_RETRIES)
        return None if why or isinstance(reply, str) else reply

    def offers(self, path: str) -> bool:
        """Return whether something takes requests at a path; it is sent an empty one."""
        self._ask("POST", path, {}, START_RETRIES)
        return self.found[path] not in map(str, ABSENT)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the reply.

        Raises:
            ModelError: the server refuses; its words are told.
        """
        reply, why = self._ask("POST", path, body, self.options.endpoint.retries)
        if why:
            raise ModelError(f"model '{self.name}': {path} refuses: {why}")
        return reply

    @property
    def name(self) -> str:
        """The model's name in messages."""
        return f"http/{self.options.id}"

    @property
    def told(self) -> str:
        """What was found where."""
        return ", ".join(f"{path}: {status}" for path, status in self.found.items())

    def _ask(self, method: str, path: str, body: dict[str, Any] | None, retries: int) -> tuple[Any, str | None]:
        """Return the reply, and why there is none."""
        import openai

        more: Any = {"max_retries": retries}
        try:
            if method == "GET":
                reply = self._client.get(path, cast_to=object, options=more)
            else:
                reply = self._client.post(path, cast_to=object, body=body, options=more)
        except openai.APIStatusError as bad:
            self.found[path] = str(bad.status_code)
            return None, self._cause(bad)
        except ValueError as bad:
            self.found[path] = "no JSON"
            return None, self._cause(bad)
        except openai.OpenAIError as bad:
            raise ModelError(
                f"model '{self.name}': nothing answers at {self.options.endpoint.shown} ({self._cause(bad)})."
            ) from None
        self.found[path] = "200"
        return reply, None

    def _cause(self, bad: Exception) -> str:
        cause = self.options.hide(cause_of(bad))
        if getattr(bad, "status_code", None) in (401, 403):
            raise ModelError(
                f"model '{self.name}': {cause}\nThe key is read from ${self.options.endpoint.key_env}; "
                "?key_env=NAME reads another variable."
            ) from None
        return cause
