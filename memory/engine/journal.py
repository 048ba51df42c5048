"""Writing to the timeline so that node, lexical key and embedding queue commit together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory.errors import require
from memory.events import NodeRecorded
from memory.recall.substring_scan import ScanOutcome, scan
from memory.rest.chunking import check_cuts
from memory.storage.stores import Stores
from memory.storage.timeline import CHUNKING_NEEDED, CHUNKING_NONE
from memory.text import folded, normalise, terms
from memory.values import (
    Conversation,
    Cut,
    Node,
    NodeDraft,
    NodeId,
    NodeKind,
    NodeStatus,
    Role,
)


class Journal:
    """Records nodes; what a method returned is durable."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def record(self, draft: NodeDraft) -> Node:
        """Appends a node and its keys in one transaction."""
        with self._stores.database.transaction():
            node = self._add(draft)
        self.tell(node)
        return node

    def attach(self, draft: NodeDraft, cuts: Sequence[Cut]) -> Node:
        """Appends a document, with the places where it is to be cut when it is long."""
        check_cuts(draft.content, cuts, self._stores.config.rest.chunk_characters)
        with self._stores.database.transaction():
            node = self._add(draft)
            if len(cuts) > 1:
                self._stores.documents.put_cuts(node.id, cuts)
        self.tell(node)
        return node

    def begin_turn(self, draft: NodeDraft, title: str) -> tuple[Conversation, Node, Node]:
        """Question, empty answer and, where the draft names none, their conversation: all of it or nothing."""
        timeline = self._stores.timeline
        with self._stores.database.transaction():
            known = timeline.conversations(draft.conversation_id) if draft.conversation_id else ()
            conversation = (
                known[0] if known else timeline.create_conversation(draft.project_id, title)
            )
            question = self._add(
                replace(
                    draft,
                    conversation_id=conversation.id,
                    project_id=conversation.project_id,
                )
            )
            answer = self._add(_answer_to(question))
        self.tell(question)
        self.tell(answer)
        return conversation, question, answer

    def _add(self, draft: NodeDraft) -> Node:
        return self.add(draft, chunking=self._chunking(draft))

    def add(self, draft: NodeDraft, *, chunking: int) -> Node:
        """Appends a node and its keys inside the caller's transaction; `tell` of it afterwards."""
        node = self._stores.timeline.add(draft, chunking=chunking)
        self._index(node)
        return node

    def tell(self, node: Node) -> None:
        """Says that a node is durable."""
        self._stores.sink.emit(NodeRecorded(node_id=node.id, conversation_id=node.conversation_id))

    def _chunking(self, draft: NodeDraft) -> int:
        limit = self._stores.config.rest.chunk_characters
        long = draft.kind is NodeKind.DOCUMENT and len(draft.content) > limit
        return CHUNKING_NEEDED if long else CHUNKING_NONE

    def _index(self, node: Node) -> None:
        found = self._stores.timeline.recallable([node.seq])
        for recallable in found.values():
            self._stores.lexical.index(recallable)
            self._stores.vectors.enqueue(recallable.seq)

    def begin_answer(self, question: Node) -> Node:
        """An empty partial answer to a question."""
        return self.record(_answer_to(question))

    def checkpoint(self, node_id: NodeId, content: str, trace: str | None = None) -> None:
        """Makes the text so far durable, and the host's own JSON about it."""
        with self._stores.database.transaction():
            self._stores.timeline.checkpoint(node_id, content, trace)

    def finish(
        self,
        node_id: NodeId,
        *,
        content: str,
        status: NodeStatus,
        derived_from: tuple[NodeId, ...] = (),
        trace: str | None = None,
        sampled: tuple[tuple[int, ...] | None, str | None] = (None, None),
    ) -> Node:
        """Closes a partial answer; from here on it may be recalled."""
        with self._stores.database.transaction():
            node = self._stores.timeline.finish(
                node_id,
                content=content,
                status=status,
                derived_from=derived_from,
                trace=trace,
                sampled=sampled,
            )
            self._index(node)
        self.tell(node)
        return node

    def annotate(self, node_id: NodeId, trace: str) -> None:
        """Replaces the host's own JSON about a finished answer."""
        with self._stores.database.transaction():
            self._stores.timeline.annotate(node_id, trace)

    def recover(self) -> int:
        """Answers that a crash left partial become cancelled; their text stays."""
        ids = self._stores.timeline.partial_ids()
        for node_id in ids:
            node = self._stores.timeline.node(node_id)
            require(node is not None, "a partial answer vanished")
            assert node is not None
            self.finish(
                node_id,
                content=node.content,
                status=NodeStatus.CANCELLED,
                derived_from=node.derived_from,
                trace=node.trace,
            )
        return len(ids)

    def search_messages(self, text: str, limit: int) -> tuple[Node, ...]:
        """Messages with all words or with the text as it stands, newest first."""
        config = self._stores.config.recall
        needle = folded(normalise(text))
        if not needle or limit < 1:
            return ()
        wanted = list(dict.fromkeys(terms(needle)))
        seqs = set(self._stores.lexical.messages_with_all(wanted, limit))
        limits = (limit, config.search_rows_max, config.scan_slice_rows)
        outcome = ScanOutcome()
        for _ in scan(self._stores.timeline, needle, (), outcome, limits=limits, messages=True):
            continue  # one step: the limit keeps it short
        seqs.update(outcome.seqs)
        newest = sorted(seqs, reverse=True)[:limit]
        found = self._stores.timeline.recallable(newest)
        return tuple(found[seq] for seq in newest if seq in found)


def _answer_to(question: Node) -> NodeDraft:
    return NodeDraft(
        kind=NodeKind.MESSAGE,
        role=Role.ASSISTANT,
        content="",
        conversation_id=question.conversation_id,
        project_id=question.project_id,
        reply_to=question.id,
        status=NodeStatus.PARTIAL,
    )
