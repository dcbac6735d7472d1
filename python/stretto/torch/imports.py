"""from_torch: the passes, one after the other.

module, batch -> export -> known -> infer (atoms) -> names -> nodes -> positions -> Model
"""

import torch

from . import (
    rules_losses,
    rules_pointwise,
    rules_products,
    rules_views,
    rules_windows,
)  # noqa: F401  the table of rules
from . import attention  # noqa: F401
from .atoms import flat
from .check import check_model
from .cuts import cut_at_narrowest
from .export import exported, module_path, source_line, written_out
from .infer import Faults, Refused, inferred
from .known import Host, known_nodes
from .losses import add_terms, is_sum_of_rows, terms_of
from .model import Model, Parameter, as_numpy, error_of
from .names import NamesRefused, named
from .nodes import Builder
from .pieces import Pieces, unmatched
from .experts import with_expert_rows, with_parameters_apart
from .positions import compact_pieces, joined_renames, learned, pruned, rows_meet, with_residual
from .recognised import recognised
from .rules import Refusal, name_of
from .tensors import Tensor

_checked_below = 100_000_000  # parameters


def from_torch(module, batch, loss=None, names=None, boundaries=None, check=None):
    """A PyTorch module with a batch as an example: a model that stretto.Trainer trains.

    loss: what is trained for, lambda module, batch: ...; the module's result or its .loss, when it is not given.
    names: {"*.q_proj.weight": ("kv*group*head", "model")}. boundaries: modules before which a pipeline may be cut.
    check: compare loss and gradients of the batch with PyTorch's; by default below 100 million parameters.
    """
    _check_input(module, batch)
    _check_options(loss, names, boundaries)
    try:
        program = exported(module, batch, loss)
        model = imported(program, names, boundaries)
    except Refused as e:
        raise error_of(e.faults) from None
    except NamesRefused as e:
        raise error_of([("from_torch", what, hint) for what, hint in e.all]) from None
    if check or check is None and sum(p.numel() for p in module.parameters()) < _checked_below:
        model.checked = check_model(model, program)
    return model


def _check_input(module, batch):
    faults = []
    if not isinstance(module, torch.nn.Module):
        raise error_of([("module", f"is {type(module).__name__}", "give a torch.nn.Module")])
    wrapper = type(module).__name__
    if wrapper in ("DistributedDataParallel", "FullyShardedDataParallel", "DataParallel"):
        faults.append(("module", f"is wrapped by {wrapper}", "give module.module: layouts take its place"))
    if wrapper == "OptimizedModule":
        faults.append(("module", "is compiled already", "give the module that went into torch.compile"))
    for name, p in module.named_parameters():
        if p.device.type != "cpu":
            faults.append(("module", f"{name} lies on {p.device}", "use module.cpu() first"))
            break
    half = next(((n, p) for n, p in module.named_parameters() if p.dtype in (torch.float16, torch.bfloat16)), None)
    if half:
        faults.append(
            (
                "module",
                f"{half[0]} is {half[1].dtype}",
                'use module.float(); train={"dtype": "bf16"} computes in 16 bits',
            )
        )
    if not isinstance(batch, dict) or not batch:
        faults.append(("batch", "is no dict of tensors", 'give {"input_ids": ids, ...}: the arguments of forward'))
    else:
        for name, value in batch.items():
            if not isinstance(value, torch.Tensor):
                faults.append((name, f"is {type(value).__name__}", "give a tensor"))
            elif value.device.type != "cpu":
                faults.append((name, f"lies on {value.device}", "use .cpu() first"))
            elif value.dim() == 0:
                faults.append((name, "has no axis of rows", "the first axis of every input is the batch"))
        rows = {n: len(v) for n, v in batch.items() if isinstance(v, torch.Tensor) and v.dim()}
        if len(set(rows.values())) > 1:
            faults.append(
                ("batch", f"has different numbers of rows: {rows}", "the first axis of every input is the batch")
            )
        elif rows and next(iter(rows.values())) < 2:
            faults.append(("batch", f"has {'one row' if 1 in rows.values() else 'no rows'}", "give two or more: one row hides which axes are rows"))
    if faults:
        raise error_of(faults)


def _check_options(loss, names, boundaries):
    faults = []
    if loss is not None and not callable(loss):
        faults.append(("loss", f"is {type(loss).__name__}", "give lambda module, batch: ... that returns one number"))
    texts = lambda given: isinstance(given, (list, tuple)) and all(x is None or isinstance(x, str) for x in given)
    if boundaries is not None and not texts(boundaries):
        faults.append(("boundaries", f"is {boundaries!r}", 'give a list of paths of modules: ["layers.*", "norm"]'))
    named = lambda key, spec: isinstance(key, str) and (isinstance(spec, str) or texts(spec))
    fits = isinstance(names, dict) and all(named(*item) for item in names.items())
    if names is not None and not fits:
        faults.append(("names", f"is {names!r}", 'give {"*.up.weight": ("ff", "model")}: a name, or None, for each axis'))
    if faults:
        raise error_of(faults)


def imported(program, names, boundaries):
    """The passes after the export."""
    missing = unmatched(program.nodes, boundaries)
    if missing:
        raise Refused(
            [
                (
                    "from_torch",
                    f"boundaries: '{m}' fits no module",
                    'give paths of modules that forward calls, e.g. "layers.*"',
                )
                for m in missing
            ]
        )
    program, known, g = _read(program)
    names = named(g, names)
    b, loss, listed = _built(program, g, names, boundaries)
    nodes, loss = pruned(b.nodes, loss)
    meets = rows_meet(nodes)
    first_of_axes = lambda x: [names.of(flat(axis)[0]) for axis in x.axes if flat(axis)]
    leads = lambda name, dim: dim in first_of_axes(b.parameters[name])
    exact = any(p.dtype == torch.float64 for p in program.module.parameters())
    nodes, loss = pruned(*recognised(nodes, loss, names, exact))
    nodes, loss = pruned(*with_expert_rows(nodes, loss, names))
    nodes, loss = _with_positions(nodes, loss, names)
    nodes, loss, places = with_parameters_apart(*pruned(*joined_renames(nodes, loss)), leads)
    nodes, loss = pruned(nodes, loss)
    nodes = learned(nodes, loss)
    if not listed and boundaries is None:
        nodes, loss = cut_at_narrowest(nodes, loss, names)
    pieces = compact_pieces(nodes)
    return _model(program, known, b, names, nodes, loss, pieces, meets, places)


def _read(program):
    """The graph, read by the rules. What they refuse is tried written in other ops; when that is of no use, the first
    refusal is the one that counts."""
    refused = None
    while True:
        known = known_nodes(program)
        try:
            return program, known, inferred(program, known)
        except Refused as e:
            refused = refused or e
            program = written_out(program, e.ops)
            if program is None:
                raise refused from None


def _built(program, g, names, boundaries):
    """Nodes of all that the loss needs, in the order of the exported graph."""
    b, pieces, faults = Builder(names, program.inputs), Pieces(boundaries), Faults()
    terms, behind = terms_of(g, program)
    loss_only = behind | {t.node for t in terms if g.made[t.node].term or is_sum_of_rows(g, t.node)}
    for node in program.nodes:
        made = g.made.get(node)
        if node.op != "call_function" or not isinstance(made, Tensor) or made.known is not None:
            continue
        b.piece = pieces.of(node)
        if node in loss_only or made.rows_of:
            continue
        b.scope, b.source = module_path(node), source_line(node)
        try:
            b.get(made)
        except Refusal as e:
            faults.add(node, f"{name_of(node.target)}: {e.what}", e.hint)
    faults.check()
    b.scope, b.source, b.in_loss = "", "", True
    try:
        loss = add_terms(b, g, terms)
    except Refusal as e:
        faults.add(terms[0].node, e.what, e.hint)
        faults.check()
    return b, loss, bool(pieces.blocks)


def _with_positions(nodes, loss, names):
    for base in [n for n in ("seq", *(f"seq_{k}" for k in range(2, 9))) if n in names.sizes]:
        widths = [n for n in ("model", "model_2", "model_3") if n in names.sizes]
        for width in widths:
            if any(base in n["_dims"] and width in n["_dims"] for n in nodes):
                nodes, loss = with_residual(nodes, loss, names, base, width)
                break
    return nodes, loss


_dims_keys = (
    "dims",
    "over",
    "along",
    "from",
    "to",
    "dim",
    "vocab",
    "query",
    "key",
    "head",
    "value",
    "out",
    "expert",
    "choice",
    "seq",
)


def _used_names(nodes, loss):
    used = {}
    for n in [*nodes, *loss]:
        for key in _dims_keys:
            value = n.get(key)
            for name in value if isinstance(value, list) else [value] if isinstance(value, str) else []:
                used[name] = True
    return list(used)


def _dims_of(nodes, loss, names):
    used = _used_names(nodes, loss)
    used = [u for u in used if not (u == "run")]
    for name in list(used):
        kind = names.kinds.get(name, {})
        used += [d for d in (kind.get("like"), kind.get("minus")) if d and d not in used]
    depth = lambda n: max((1 + depth(names.kinds[n][k]) for k in ("like", "minus") if k in names.kinds.get(n, {})), default=0)
    return [names.entry(n) for n in sorted(used, key=lambda n: (depth(n), used.index(n)))]


def _parameter(ties, x, names, trained, place=None):
    """place: (dim, number), of a parameter that is cut along the leading dim of an axis."""
    dims = [names.of(a) for axis in x.axes for a in flat(axis)]
    start, length = getattr(x, "range", None) or (0, x.leaf.shape[0] if x.leaf.dim() else 1)
    part = [slice(start, start + length)] + [slice(None)] * (x.leaf.dim() - 1)
    whole = getattr(x, "range", None) is None
    if place is not None:
        dim, at = place
        axis = next(i for i, axis in enumerate(x.axes) if dim in [names.of(a) for a in flat(axis)])
        step = x.shape[axis] // names.size(dim)
        first = (start if axis == 0 else 0) + at * step
        part[axis], whole = slice(first, first + step), False
        dims.remove(dim)
    return Parameter(
        ties[id(x.leaf)],
        tuple(x.leaf.shape),
        None if whole else tuple(part),
        tuple(names.size(d) for d in dims),
        tuple(dims),
        trained,
        buffer=x.known is not None,
    )


def _ties(held):
    """{id: names}"""
    names = {}
    for name, value in held.items():
        names[id(value)] = (*names.get(id(value), ()), name)
    return names


def _model(program, known, b, names, nodes, loss, pieces, meets, places):
    live = {n["name"]: n["op"] == "param" and n["train"] for n in nodes if n["op"] in ("param", "state")}
    by_name = dict(program.module.named_parameters(remove_duplicate=False))
    held = by_name | dict(program.module.named_buffers(remove_duplicate=False))
    ties = _ties(held)
    parameters, arrays = {}, {}
    for name, trained in live.items():
        whole_name, *place = places.get(name, (name,))
        x = b.parameters[whole_name]
        x.leaf = held.get(x.parameter, x.leaf)
        parameters[name] = p = _parameter(ties, x, names, trained, place or None)
        whole = as_numpy(x.leaf)
        arrays[name] = (whole if p.part is None else whole[p.part]).reshape(p.sizes).copy()
    used = {p.key for p in parameters.values()} | {k for p in parameters.values() for k in p.keys}
    dropped = {n: "it does not reach the loss" for n in by_name if n not in used}
    one = (
        meets and f"{meets[0]['op']} in {meets[0].get('scope') or 'the loss'} ({meets[0].get('source', '')}) {meets[1]}"
    )
    host = Host(
        program,
        known,
        {k: v for k, v in b.inputs.items() if any(n["op"] in ("input", "ids") and n["name"] == k for n in nodes)},
        b.leads,
        b.functions,
    )
    graph = {"version": 1, "dims": _dims_of(nodes, loss, names), "nodes": [_entry(n) for n in nodes], "loss": loss}
    about = {
        "one_microbatch": one,
        "dropped": dropped,
        "pieces": pieces,
        "any_rows": program.any_rows,
    }
    return Model(program.module, graph, parameters, arrays, host, dict(program.batch), program.rows, about)


def _entry(node):
    empty = lambda v: v is None or isinstance(v, str) and not v
    return {k: v for k, v in node.items() if not k.startswith("_") and not empty(v)}
