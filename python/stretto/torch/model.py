"""A PyTorch module as a model of Stretto: a graph, arrays, and how values go both ways."""

import dataclasses
import json
import os
import pathlib

import numpy as np
import torch

from .._library import Error, Fault

_most_inline = 64  # numbers of an array in the JSON itself


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One of the graph's parameters, or a buffer that training changes, and where it lies in the module."""

    keys: tuple  # names in the module's state_dict; tied ones have several
    shape: tuple  # there, of the whole
    part: tuple  # a slice of every axis there; None: all of it
    sizes: tuple  # in the graph
    dims: tuple
    trained: bool
    buffer: bool = False

    @property
    def key(self):
        return self.keys[0]


def error_of(faults):
    """One Error with all of them."""
    faults = [Fault(*f) for f in faults]
    return Error("\n".join(f"[{f.where}] {f.what}; hint: {f.hint}" for f in faults), faults, 1)


def as_numpy(value, dtype=None):
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        if value.dtype in (torch.bfloat16, torch.float16):
            value = value.float()
        value = value.numpy()
    return np.asarray(value, dtype, order="C")


class Model:
    """What from_torch returns. `graph` is a dict as in the file, `parameters` its parameters by name."""

    def __init__(self, module, graph, parameters, arrays, host, example, rows, about):
        self.module, self.graph, self.parameters, self.arrays = module, graph, parameters, arrays
        self.example, self.rows = example, rows
        self.one_microbatch = about["one_microbatch"]
        self.dropped = about["dropped"]
        self.pieces, self.any_rows = about["pieces"], about["any_rows"]
        self.float64 = any(p.dtype == torch.float64 for p in module.parameters())
        self._host = host

    @property
    def trainer_type(self):
        from .trainer import ModuleTrainer

        return ModuleTrainer

    # Values, both ways.
    def into(self, values):
        """Values under the module's keys as arrays of the graph's parameters; those that are not there are left out."""
        ours = {}
        for name, p in self.parameters.items():
            key = next((k for k in p.keys if k in values), None)
            if key is None:
                continue
            whole = as_numpy(values[key])
            if whole.shape != p.shape:
                raise error_of(
                    [
                        (
                            key,
                            f"it is {list(whole.shape)}, and the module has {list(p.shape)}",
                            "give the state of the module that was imported",
                        )
                    ]
                )
            ours[name] = np.ascontiguousarray(whole if p.part is None else whole[p.part]).reshape(p.sizes)
        return ours

    def out_of(self, arrays, base=None):
        """The other way: arrays of the graph's parameters under the module's keys. What the graph has no part of is
        taken from `base`, and is zero without one."""
        theirs = {}
        for name, array in arrays.items():
            p = self.parameters[name]
            array = np.asarray(array)
            if p.part is None:
                whole = array.reshape(p.shape)
            else:
                whole = theirs.get(p.key)
                if whole is None:
                    given = base and next((base[k] for k in p.keys if k in base), None)
                    whole = np.zeros(p.shape, array.dtype) if given is None else as_numpy(given, array.dtype).copy()
                whole[p.part] = array.reshape(whole[p.part].shape)
            for key in p.keys:
                theirs[key] = whole
        return theirs

    # A batch.
    def host(self, batch):
        """The graph's inputs, of a batch as the module takes it: what PyTorch computes before a step."""
        tensors = self._checked(batch)
        return {name: self._as_input(name, value) for name, value in self._host(tensors).items()}

    def _as_input(self, name, value):
        node = next(n for n in self.graph["nodes"] if n["op"] in ("input", "ids") and n["name"] == name)
        array = as_numpy(value)
        if node["op"] == "ids":
            array = array.astype(np.int64)
            if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
                raise error_of(
                    [(name, f"has the number {array.max()}, which 32 bits do not hold", "give ids of the vocabulary")]
                )
            array = array.astype(np.int32)
        size = {d["name"]: d["size"] for d in self.graph["dims"]}
        return array.reshape([-1 if d == "batch" else size[d] for d in node["dims"]])

    def _checked(self, batch):
        faults, tensors = [], {}
        for name in batch:
            if name not in self.example:
                faults.append((name, "is no input of this model", f"its inputs are {', '.join(self.example)}"))
        for name, example in self.example.items():
            if name not in batch:
                faults.append((name, "is not in the batch", "give what the model was imported with"))
                continue
            try:
                value = torch.as_tensor(batch[name])
            except (TypeError, ValueError, RuntimeError) as e:
                faults.append((name, f"is {type(batch[name]).__name__}, which is no tensor ({e})", "give a tensor or an array"))
                continue
            if list(value.shape[1:]) != list(example.shape[1:]) or value.dim() != example.dim():
                faults.append(
                    (
                        name,
                        f"is {list(value.shape)}, and the example was {list(example.shape)}",
                        "sizes other than the number of rows are part of the graph: import it again for others",
                    )
                )
            elif value.is_floating_point() != example.is_floating_point():
                faults.append((name, f"is {value.dtype}, and the example was {example.dtype}", "convert it"))
            elif value.is_floating_point() and not bool(torch.isfinite(value).all()):
                faults.append(
                    (name, "has NaN or infinity in it", "look at the data: training would spread it everywhere")
                )
            else:
                tensors[name] = value.to(example.dtype) if value.is_floating_point() else value
        rows = {name: len(value) for name, value in tensors.items()}
        if not faults and len(set(rows.values())) > 1:
            faults.append(("batch", f"has different numbers of rows: {rows}", "give all inputs the same"))
        elif not faults and not self.any_rows and set(rows.values()) != {self.rows}:
            faults.append(
                ("batch", f"has {next(iter(rows.values()))} rows", f"this module's graph holds for {self.rows} only")
            )
        if faults:
            raise error_of(faults)
        return tensors

    # Files.
    def prepared(self, optimizer=None, one_microbatch=True):
        """The graph with what an optimizer says of its parameters: their rate, decay, whether they are trained."""
        nodes = [self._trained_as(node, optimizer) if node["op"] == "param" else node for node in self.graph["nodes"]]
        more = {"one_microbatch": self.one_microbatch} if self.one_microbatch and one_microbatch else {}
        return {**self.graph, **more, "nodes": nodes}

    def _trained_as(self, node, optimizer):
        if optimizer is None:
            return node
        keys = self.parameters[node["name"]].keys
        placed = next((optimizer.placed[k] for k in keys if k in optimizer.placed), None)
        if placed is None:
            return {**node, "train": False}
        return {**node, "decay": placed.decay, "rate": placed.rate}

    def save(self, path, parameters=True):
        """The graph as JSON, and its arrays as safetensors beside it: stretto check --model.graph=path. Without the
        parameters they are drawn anew."""
        self.write(pathlib.Path(os.fspath(path)), self.prepared(), self.arrays if parameters else {})

    def write(self, path, graph, arrays):
        arrays, nodes = dict(arrays), []
        for i, node in enumerate(graph["nodes"]):
            if "numbers" in node:
                numbers = node["numbers"]
                if len(numbers) > _most_inline:
                    name = f"values.{i}"
                    arrays[name] = numbers
                    node = {**node, "numbers": name}
                else:
                    node = {**node, "numbers": numbers.tolist()}
            nodes.append(node)
        graph = {**graph, "nodes": nodes}
        if arrays:
            beside = path.with_suffix(".safetensors")
            write_safetensors(beside, arrays)
            graph["arrays"] = beside.name
        path.write_text(json.dumps(graph))

    def __repr__(self):
        from .table import table_of

        return table_of(self)


_stored_types = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int16": "I16",
                 "int8": "I8", "uint8": "U8", "bool": "BOOL"}


def write_safetensors(path, arrays):
    """{name: array} as others read it, too."""
    header, at = {}, 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _stored_types[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for array in arrays.values():
            f.write(np.ascontiguousarray(array).tobytes())
