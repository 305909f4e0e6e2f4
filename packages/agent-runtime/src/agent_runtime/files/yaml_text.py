"""YAML: PyYAML makes nodes, which know their places, and a small tree walk makes plain data of them.

Only what JSON can say as well is read: no tags, no merge keys, and no keys but texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_runtime.files import limits
from agent_runtime.files.documents import Document, Notes, too_deep, too_many
from agent_runtime.files.problems import Wrong
from agent_runtime.files.values import TOO_LONG
from agent_runtime.files.ways import Way, spell

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node, ScalarNode

_TAG = "tag:yaml.org,2002:"
_TEXTS = {f"{_TAG}str", f"{_TAG}value"}  # the second is a lone "="
_SCALARS = {f"{_TAG}{kind}" for kind in ("null", "bool", "int", "float")}


def parse_yaml(text: str) -> Document:
    """Return the document that a YAML text holds.

    Raises:
        Wrong: If the text is not valid, holds what declarations do not use, or PyYAML is missing.
    """
    try:
        import yaml
    except ImportError as error:
        raise Wrong(None, "needs PyYAML to be read: pip install 'agent-runtime[yaml]'") from error
    try:
        root = _compose(text)
    except yaml.reader.ReaderError as error:
        raise Wrong(error.position, f"is not valid YAML: {error.reason}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise Wrong(mark.index if mark else None, f"is not valid YAML: {problem}") from error
    tree = _YamlTree(text)
    return Document(None if root is None else tree.value(root, ()), tree.places)


def _compose(text: str) -> Node | None:
    import yaml

    class BoundedLoader(yaml.SafeLoader):
        """Makes nodes, but no more and no deeper than the limits: a node takes a hundred times its text."""

        made = depth = 0

        def compose_node(self, parent: Node | None, index: int) -> Node | None:
            self.made += 1
            self.depth += 1
            if self.depth > limits.MAX_DEPTH + 1:
                raise too_deep(self.index)
            if self.made > 2 * limits.MAX_VALUES:
                raise too_many(self.index)
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    loader = BoundedLoader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


class _YamlTree(Notes):
    """Makes plain data of nodes; an alias is followed as often as it stands there."""

    def __init__(self, text: str) -> None:
        import yaml

        super().__init__(text)
        self._nodes = yaml.nodes
        self._constructor = yaml.constructor.SafeConstructor()

    def value(self, node: Node, way: Way) -> Any:
        """Return the data of a node."""
        if isinstance(node, self._nodes.MappingNode) and node.tag == f"{_TAG}map":
            return self._mapping(node, way)
        if isinstance(node, self._nodes.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self._item(child, (*way, place)) for place, child in enumerate(node.value)]
        if isinstance(node, self._nodes.ScalarNode) and node.tag in _TEXTS | _SCALARS:
            return self._scalar(node, way)
        shown = node.tag.removeprefix(_TAG)
        problem = f"{spell(way)} is tagged as {shown}, which declarations do not use: put a text in quotes"
        raise Wrong(node.start_mark.index, problem.lstrip(), spell(way))

    def _mapping(self, node: MappingNode, way: Way) -> dict[str, Any]:
        data = {}
        for key_node, child in node.value:
            key = self._key(key_node)
            if (*way, key) in self.places:
                raise self.repeated((*way, key), key_node.start_mark.index)
            self.note((*way, key), key_node.start_mark.index)
            data[key] = self.value(child, (*way, key))
        return data

    def _key(self, node: Node) -> str:
        if node.tag in _TEXTS and isinstance(node.value, str):
            return node.value
        if node.tag == f"{_TAG}merge":
            raise Wrong(node.start_mark.index, "the merge key << is not read: write the fields out")
        kind = node.tag.removeprefix(_TAG)
        shown = (
            f"the key {node.value!r} is read as {kind}"
            if isinstance(node.value, str)
            else f"a {kind} is no key"
        )
        raise Wrong(node.start_mark.index, f"{shown}: put it in quotes")

    def _item(self, node: Node, way: Way) -> Any:
        self.note(way, node.start_mark.index)
        return self.value(node, way)

    def _scalar(self, node: ScalarNode, way: Way) -> Any:
        if node.tag in _TEXTS:
            return node.value
        if len(node.value) > limits.MAX_DIGITS:
            raise self._unreadable(node, way, TOO_LONG if node.tag == f"{_TAG}int" else "it is too long")
        try:
            return self._constructor.construct_object(node)
        except (ValueError, LookupError, OverflowError) as error:
            raise self._unreadable(node, way, str(error)) from error

    def _unreadable(self, node: ScalarNode, way: Way, problem: str) -> Wrong:
        told = f"{spell(way)} cannot be read as {node.tag.removeprefix(_TAG)}: {problem}"
        return Wrong(node.start_mark.index, told.lstrip(), spell(way))
