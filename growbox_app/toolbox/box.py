"""The toolbox: servers, experience and tool memory of one data folder, put together for the loop and for the faces.

Event-loop thread. The tools of servers that the model is told of change only when the user changes or looks at a server, so that the
beginning of a prompt stays the same otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from growbox_app.api import Problem, ProblemCode, ProblemError
from growbox_app.executors.base import Executor
from growbox_app.mcp_client.service import McpParts, McpService, SetUpError
from growbox_app.mcp_client.tool import McpTool, tools_of
from growbox_app.mcp_client.values import ServerSpec, ServerStatus
from growbox_app.routing.experience import Experience
from growbox_app.routing.lessons import Lessons, Situation
from growbox_app.routing.ranking import rank
from growbox_app.secrets import Secrets, SecretsTrouble
from growbox_app.text import tr
from growbox_app.toolbox.face import Remembered
from memory.ports import Clock
from memory.values import ConversationId, ProjectId


class Toolbox:
    """Implements `growbox_app.toolbox.face.Tools`."""

    def __init__(
        self,
        data_path: Path,
        secrets: Secrets,
        clock: Clock,
        *,
        offline: Callable[[], bool],
        changed: Callable[[], None],
    ) -> None:
        self._data_path = data_path
        self._secrets = secrets
        self._experience = Experience(data_path, clock)
        self.lessons = Lessons(self._experience, clock)
        parts = McpParts(
            data_path=data_path, secrets=secrets, clock=clock, offline=offline, changed=changed
        )
        self._service = McpService(parts)
        self._tools: tuple[McpTool, ...] = ()
        self._made_of: object = None

    # -- for the loop -----------------------------------------------------------------------------
    def foreign(self) -> Sequence[Executor]:
        """The tools of all servers."""
        statuses = self._service.statuses()
        made_of = tuple((status.spec, status.tools) for status in statuses)
        if made_of != self._made_of:
            self._tools = tools_of(self._service, statuses)
            self._made_of = made_of
        return self._tools

    def rank(self, wish: str, tools: Sequence[Executor]) -> Sequence[Executor]:
        """Tools by how well they fit a wish, with what was experienced."""
        ranked = rank(wish, tools, lambda name: self._experience.score(name, wish))
        return tuple(one.tool for one in ranked)

    def forget_conversation(self, conversation_id: ConversationId) -> None:
        """A conversation is deleted: what its calls taught goes, too.

        Raises:
            ProblemError: the data folder keeps it.
        """
        self._forget(
            lambda: self._experience.forget(lambda one: one.conversation == conversation_id)
        )

    def network_changed(self) -> None:
        """The user has switched Offline on or off."""
        self._service.network_changed()

    async def close(self) -> None:
        """Ends every server."""
        await self._service.close()

    # -- for the faces ----------------------------------------------------------------------------
    def servers(self) -> tuple[ServerStatus, ...]:
        """See `Tools.servers`."""
        return self._service.statuses()

    async def has_keyring(self) -> bool:
        """See `Tools.has_keyring`."""
        return await self._secrets.available()

    async def save_server(self, spec: ServerSpec, secrets: Mapping[str, str]) -> None:
        """See `Tools.save_server`."""
        try:
            only_now = bool(secrets) and not await self._secrets.available()
            await self._service.put(spec, secrets, only_now=only_now)
        except SetUpError as error:
            fields = {"reason": tr(f"mcp.invalid.{error.reason}")}
            raise ProblemError(Problem(code=ProblemCode.SERVER_INVALID, fields=fields)) from error
        except SecretsTrouble as trouble:
            raise _kept_no_secret(trouble) from trouble
        except OSError as error:
            raise self._unwritable(error) from error

    async def remove_server(self, name: str) -> None:
        """See `Tools.remove_server`."""
        try:
            await self._service.remove(name)
        except SecretsTrouble as trouble:
            raise _kept_no_secret(trouble) from trouble
        except OSError as error:
            raise self._unwritable(error) from error

    async def mark_safe(self, name: str, tool: str, *, safe: bool) -> None:
        """See `Tools.mark_safe`."""
        try:
            self._service.mark(name, tool, safe=safe)
        except OSError as error:
            raise self._unwritable(error) from error

    async def check_server(self, name: str) -> ServerStatus | None:
        """See `Tools.check_server`."""
        return await self._service.refresh(name)

    def remembered(self) -> tuple[Remembered, ...]:
        """See `Tools.remembered`."""
        return tuple(
            Remembered(
                tool=situation.tool,
                shape=situation.shape,
                project=ProjectId(situation.project) if situation.project else None,
                counsel=advice.counsel,
                failing=advice.failing,
                worked=advice.worked,
                failed=advice.failed,
                why=advice.why,
            )
            for situation, advice in self.lessons.situations().items()
        )

    async def forget(self, item: Remembered | None) -> None:
        """See `Tools.forget`."""
        if item is None:
            self._forget(lambda: self._experience.forget(lambda _record: True))
            return
        situation = Situation(tool=item.tool, shape=item.shape, project=item.project or "")
        self._forget(lambda: self.lessons.forget(situation))

    def _forget(self, work: Callable[[], int]) -> None:
        try:
            work()
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ProblemError:
        fields = {"path": str(self._data_path)}
        return ProblemError(
            Problem(code=ProblemCode.DATA_UNWRITABLE, fields=fields, detail=str(error))
        )


def _kept_no_secret(trouble: SecretsTrouble) -> ProblemError:
    fields = {"reason": tr(f"secrets.trouble.{trouble.reason}")}
    return ProblemError(Problem(code=ProblemCode.SECRETS, fields=fields))
