"""The exported graph, computed by PyTorch in f64: what a trained step is held against."""

import torch
from torch.fx import map_arg

from .known import function_of, is_check, known_nodes, live_nodes, result_of
from .rules import name_of

_half_precision = (torch.float32, torch.float16, torch.bfloat16)


def _without_dropout(node, args):
    if name_of(node.target) == "aten.dropout":
        return (args[0], 0.0, False)
    if name_of(node.target) == "aten.scaled_dot_product_attention" and len(args) > 4:
        return (*args[:4], 0.0, *args[5:])
    return args


def _copied(value):
    """In f64. A copy: batch norm writes into its buffers, and the module keeps its own."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(torch.float64 if value.is_floating_point() else value.dtype, copy=True)


def loss_and_gradients(program, known=None):
    """(loss, {parameter: gradient}) of the example batch. Casts to smaller floats are none, and nothing drops out."""
    known = known_nodes(program) if known is None else known
    live, values, leaves = live_nodes(program), {}, {}
    wide = lambda x: torch.float64 if x in _half_precision else x
    take = lambda a: map_arg(
        torch.fx.node.map_aggregate(a, lambda x: wide(x) if isinstance(x, torch.dtype) else x), lambda n: values[n]
    )
    for node in program.nodes:
        if node not in live or node.op == "output" or is_check(node):
            continue
        if node in known:
            value = known[node].value
            values[node] = _copied(value)
        elif node in program.state:
            _, name, value = program.state[node]
            values[node] = leaves[name] = value.detach().double().requires_grad_(value.requires_grad)
        else:
            values[node] = function_of(node)(*_without_dropout(node, take(node.args)), **take(node.kwargs))
    loss = values[result_of(program)]
    loss.backward()
    return loss.item(), {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
