"""A PyTorch optimizer as Stretto's: what it is, the rates and decays of its groups, its state both ways."""

import dataclasses

import torch

from .model import error_of

# Options that must be as they usually are: (option, what it is then).
_plain = {
    "AdamW": {"amsgrad": False, "maximize": False, "decoupled_weight_decay": True},
    "Adam": {"amsgrad": False, "maximize": False},
    "SGD": {"dampening": 0, "maximize": False},
}
_states = {"AdamW": {"m": "exp_avg", "v": "exp_avg_sq"}, "Adam": {"m": "exp_avg", "v": "exp_avg_sq"},
           "SGD": {"momentum": "momentum_buffer"}}
_shared = {"AdamW": ("betas", "eps"), "Adam": ("betas", "eps"), "SGD": ("momentum", "nesterov")}


@dataclasses.dataclass
class Placed:
    """Where a parameter of the module stands in the optimizer."""

    rate: str  # of its group: "lr", "lr.1", ...
    decay: float  # a factor of the optimizer's
    number: int  # in its state_dict


def _rate(group):
    return "lr" if group == 0 else f"lr.{group}"


class Optimizer:
    """`keys`: {id of a parameter of the module: its name}."""

    def __init__(self, optimizer, keys):
        self.optimizer = optimizer
        self.kind = type(optimizer).__name__
        faults = self._faults(keys)
        if faults:
            raise error_of(faults)
        first = optimizer.param_groups[0]
        self.decay = max((float(g["weight_decay"]) for g in optimizer.param_groups), default=0.0)
        self.placed, number = {}, 0
        for i, group in enumerate(optimizer.param_groups):
            share = float(group["weight_decay"]) / self.decay if self.decay else 0.0
            for p in group["params"]:
                self.placed[keys[id(p)]] = Placed(_rate(i), share, number)
                number += 1
        self._first = first
        self._decays = [group["weight_decay"] for group in optimizer.param_groups]
        self.states = _states[self.kind]
        if self.kind == "SGD" and not first["momentum"]:
            self.states = {}

    def _faults(self, keys):
        if self.kind not in _plain:
            known = ", ".join(_plain)
            hint = 'give one of them, or a section: optimizer={"name": "lion", "lr": 1e-4}'
            return [("optimizer", f"is {self.kind}, and {known} are known", hint)]
        faults, groups = [], self.optimizer.param_groups
        for i, group in enumerate(groups):
            where = f"optimizer, group {i}"
            for option, usual in _plain[self.kind].items():
                if group.get(option, usual) != usual:
                    faults.append((where, f"{option} is {group[option]}", f"{option}={usual} is known"))
            for option in _shared[self.kind]:
                if group[option] != groups[0][option]:
                    what = f"{option} is {group[option]}, and {groups[0][option]} in group 0"
                    faults.append((where, what, "groups may differ in lr and weight_decay"))
            if self.kind == "Adam" and group["weight_decay"] and not group.get("decoupled_weight_decay", False):
                what = f"weight_decay is {group['weight_decay']}, which Adam adds to the gradient"
                faults.append((where, what, "use AdamW, or weight_decay=0"))
            strange = [tuple(p.shape) for p in group["params"] if id(p) not in keys]
            if strange:
                hint = "make the optimizer of the parameters of the module that was given to from_torch"
                faults.append((where, f"{len(strange)} parameters are none of the module's, the first of {strange[0]}", hint))
        return faults

    def section(self):
        """[optimizer] of a run; every step gives its rates."""
        usual = {"lr": float(self._first["lr"]) or 1.0, "decay": self.decay, "schedule": "constant"}
        if self.kind == "SGD":
            return {"name": "sgd", "momentum": float(self._first["momentum"]),
                    "nesterov": bool(self._first["nesterov"]), **usual}
        return {"name": "adamw", "betas": [float(b) for b in self._first["betas"]], "eps": float(self._first["eps"]), **usual}

    def rates(self):
        """Those of the groups as they are now: schedulers change them."""
        for i, group in enumerate(self.optimizer.param_groups):
            if group["weight_decay"] != self._decays[i]:
                what = f"weight_decay was {self._decays[i]} and is {group['weight_decay']}"
                raise error_of([(f"optimizer, group {i}", what, "only lr may change from step to step: make another trainer")])
        return {_rate(i): float(group["lr"]) for i, group in enumerate(self.optimizer.param_groups)}

    # State, both ways: {key: {state of ours: array}}.
    def state_dict(self, step, values, tensor):
        """As the optimizer's own load_state_dict takes it. tensor(key, array): under the module's shape and type."""
        given = self.optimizer.state_dict()
        given["state"] = {}
        for key, states in values.items():
            state = {self.states[name]: tensor(key, array) for name, array in states.items()}
            if self.kind != "SGD":
                state["step"] = torch.tensor(float(step))
            given["state"][self.placed[key].number] = state
        return given

    def values_of(self, state_dict):
        """(steps done, {key: {state of ours: tensor}})."""
        keys = {placed.number: key for key, placed in self.placed.items()}
        states, steps, faults = {}, set(), []
        for number, state in state_dict["state"].items():
            key = keys.get(int(number))
            if key is None:
                faults.append(("optimizer", f"its state has parameter {number}, and there are {len(keys)}",
                               "give the state of an optimizer of the same groups"))
                continue
            if "step" in state:
                steps.add(int(state["step"]))
            missing = [theirs for theirs in self.states.values() if state.get(theirs) is None]
            if missing:
                faults.append((key, f"its state has no {', '.join(missing)}", f"give the state of {self.kind}"))
            else:
                states[key] = {ours: state[theirs] for ours, theirs in self.states.items()}
        if len(steps) > 1:
            faults.append(("optimizer", f"its parameters have done {sorted(steps)} steps", "all have the same here"))
        if faults:
            raise error_of(faults)
        return (steps.pop() if steps else None), states
