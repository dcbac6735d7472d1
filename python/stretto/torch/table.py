"""What print(model) shows."""


def _pattern(name):
    from .names import pattern_of

    return pattern_of(name)


def table_of(model):
    groups = {}
    for name, p in model.parameters.items():
        groups.setdefault((_pattern(name), p.dims, p.sizes, p.trained), []).append(name)
    lines = [f"{len(model.graph['nodes'])} nodes in {model.pieces} pieces, {len(model.parameters)} parameters"]
    width = max((len(k[0]) for k in groups), default=0)
    for (pattern, dims, sizes, trained), names in groups.items():
        shown = " ".join(f"{d}={s}" for d, s in zip(dims, sizes))
        more = f" x {len(names)}" if len(names) > 1 else ""
        lines.append(f"  {pattern:{width}}  {{{shown}}}{more}{'' if trained else ', frozen'}")
    inputs = [n for n in model.graph["nodes"] if n["op"] in ("input", "ids")]
    lines.append("inputs: " + ", ".join(f"{n['name']} {{{' '.join(n['dims'])}}}" for n in inputs))
    computed = [n["name"] for n in inputs if n["name"] not in model.example]
    if computed:
        lines.append("computed by PyTorch for every batch: " + ", ".join(computed))
    for key, why in model.dropped.items():
        lines.append(f"left out: {key}, {why}")
    if model.one_microbatch:
        lines.append(f"one microbatch only: {model.one_microbatch}")
    return "\n".join(lines)
