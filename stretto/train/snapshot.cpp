#include "stretto/train/snapshot.h"

#include <set>

#include "stretto/base/text.h"

namespace stretto {
namespace {

bool trained(const CompiledParam& p) { return !p.accumulators.empty(); }

// The tensors that a checkpoint of this program has.
struct Expected {
  std::string name, state;  // state "": the parameter itself
  const CompiledParam* param;
};
std::vector<Expected> expected_of(const Compiled& c) {
  std::vector<Expected> all;
  for (const CompiledParam& p : c.params) all.push_back({parameter_tensor(p.name), "", &p});
  for (const std::string& state : c.optimizer.state)
    for (const CompiledParam& p : c.params)
      if (trained(p)) all.push_back({state_tensor(state, p.name), state, &p});
  return all;
}

}  // namespace

Snapshot snapshot_of(const Trainer& trainer, std::string config, Snapshot memory) {
  const Compiled& c = trainer.compiled();
  Snapshot s{.step = trainer.steps_done(),
             .seed = c.training.seed,
             .config = std::move(config),
             .optimizer = c.optimizer.name,
             .states = c.optimizer.state};
  s.tensors = std::move(memory.tensors);
  const std::vector<Expected> all = expected_of(c);
  s.tensors.resize(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto& [name, value] = s.tensors[i];
    name = all[i].name;
    value = all[i].state.empty() ? trainer.parameter(all[i].param->name, std::move(value))
                                 : trainer.state(all[i].param->name, all[i].state, std::move(value));
  }
  return s;
}

void restore(Trainer& trainer, const Checkpoint& checkpoint) {
  const Compiled& c = trainer.compiled();
  const Manifest& m = checkpoint.manifest();
  const std::string where = checkpoint.path().string();
  if (m.optimizer != c.optimizer.name || m.states != c.optimizer.state)
    throw Error(where, "has {}, and the run's optimizer is {}",
                m.optimizer.empty() ? "no optimizer state" : "the state of " + m.optimizer, c.optimizer.name)
        .hint("{}", m.optimizer.empty() ? "start a new run from it: convert it and use model.from"
                                        : "continue with optimizer.name = \"" + m.optimizer + "\"");
  std::vector<Fault> faults;
  std::set<std::string, std::less<>> known;
  for (const Expected& e : expected_of(c)) {
    known.insert(e.name);
    Array need{e.param->dtype, {}, {}};
    for (const Dim& d : e.param->dims) need.sizes.push_back(d.valid());
    const auto it = checkpoint.tensors().find(e.name);
    if (it == checkpoint.tensors().end())
      faults.push_back({where, fmt::format("tensor '{}' {} is missing", e.name, need.str()), ""});
    else if (it->second.shape != need.sizes || it->second.type != file_type_of(need.dtype))
      faults.push_back(
          {where, fmt::format("tensor '{}' is {}, and the model's is {}", e.name, it->second.str(), need.str()), ""});
  }
  for (const auto& [name, tensor] : checkpoint.tensors())
    if (!known.contains(name))
      faults.push_back({where, fmt::format("tensor '{}' {} is no part of this model", name, tensor.str()), ""});
  refuse(std::move(faults));
  for (const CompiledParam& p : c.params) trainer.set_parameter(p.name, checkpoint.parameter(p.name));
  for (const std::string& state : c.optimizer.state)
    for (const CompiledParam& p : c.params)
      if (trained(p)) trainer.set_state(p.name, state, checkpoint.state(state, p.name));
  trainer.set_step(m.step);
}

}  // namespace stretto
