"""PyTorch modules as models of Stretto (docs/torch.md). PyTorch is imported when something of this is used.

model = stretto.from_torch(module, batch)
print(model)
trainer = stretto.Trainer(model=model, optimizer=torch.optim.AdamW(module.parameters(), lr=3e-4))
"""

import importlib

_where = {
    "Model": "model",
    "Parameter": "model",
    "Refusal": "rules",
    "from_torch": "imports",
    "known_rules": "rules",
    "rule": "rules",
}

__all__ = list(_where)


def __getattr__(name):
    if name not in _where:
        raise AttributeError(f"module 'stretto.torch' has no attribute '{name}'")
    return getattr(importlib.import_module(f".{_where[name]}", __name__), name)
