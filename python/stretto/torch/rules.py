"""The table of rules: what an op of PyTorch is over named dims. One op is one function and one line of a test.

    @rule("mylib.swish")
    def swish(g, x):
        return g.pointwise(lambda b, x: b.op("mul", x, b.op("sigmoid", x)), x)

A rule gets the graph that is read, and the op's arguments as PyTorch names them: tensors as `Tensor`, all else plainly.
It returns a Tensor: axes, and how nodes are built (docs/torch.md).
"""

_rules = {}


class Refusal(Exception):
    """What cannot be imported, and what to do; the place is added where rules are called."""

    def __init__(self, what, hint):
        super().__init__(what)
        self.what, self.hint = what, hint


def rule(*names):
    def kept(function):
        for name in names:
            _rules[name] = function
        return function

    return kept


def rule_of(name):
    return _rules.get(name)


def known_rules():
    return dict(_rules)


def name_of(target):
    """aten.linear for torch.ops.aten.linear.default."""
    schema = getattr(target, "_schema", None)
    if schema is not None:
        return schema.name.replace("::", ".")
    return getattr(target, "__name__", str(target))
