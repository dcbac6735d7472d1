"""Where a pipeline may be cut: the items of lists of modules, in the order in which they are used first."""

import fnmatch
import re

from .export import module_paths

_item = re.compile(r"(?:^|.*?\.)\d+(?=\.|$)")


def item_of(paths):
    """The outermost item of a list that a node stands in: "layers.3"."""
    for path in paths:
        found = _item.match(path)
        if found:
            return found[0].removeprefix(".")
    return None


def matching(paths, patterns):
    for path in paths:
        if any(fnmatch.fnmatchcase(path, p) or fnmatch.fnmatchcase(path, "*." + p) for p in patterns):
            return path
    return None


class Pieces:
    """Of a node: its piece. What comes after a block, and before the next, belongs to it."""

    def __init__(self, boundaries=None):
        self.boundaries = boundaries
        self.blocks = []

    def of(self, node):
        paths = [p.removeprefix(".") for p in module_paths(node)]
        block = matching(paths, self.boundaries) if self.boundaries else item_of(paths)
        if block and block not in self.blocks:
            self.blocks.append(block)
        return max(len(self.blocks) - 1, 0)


def unmatched(nodes, boundaries):
    """Patterns that no module fits."""
    paths = {p.removeprefix(".") for node in nodes for p in module_paths(node)}
    return [p for p in boundaries or [] if not any(matching([path], [p]) for path in paths)]
