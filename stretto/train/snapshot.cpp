#include "stretto/train/snapshot.h"

#include <algorithm>
#include <map>
#include <set>

#include "stretto/base/text.h"
#include "stretto/train/logical.h"

namespace stretto {
namespace {

// The tensors that a checkpoint of this program has.
struct Expected {
  std::string name, state;  // state "": the parameter itself
  const CompiledParam* param;
  ParamId index;
  std::uint8_t which = 0;  // of the states

  // A parameter's own values are its master where it has one.
  bool is_state() const { return !state.empty() || param->has_master(); }
};
std::vector<Expected> expected_of(const Compiled& c) {
  std::vector<Expected> all;
  for (ParamId i : c.params.ids())
    all.push_back({parameter_tensor(c.params[i].name), "", &c.params[i], i, std::uint8_t(c.optimizer.state.size())});
  for (std::uint8_t k = 0; k < c.optimizer.state.size(); ++k)
    for (ParamId i : c.params.ids())
      if (const std::string& state = c.optimizer.state[k]; c.params[i].trained() && c.params[i].has_state(k))
        all.push_back({state_tensor(state, c.params[i].name), state, &c.params[i], i, k});
  return all;
}

// Null: this rank has nothing of it.
ReadBytes memory_of(const Compiled& c, const Worker& w, const Expected& e) {
  const StateId state{e.index, e.which};
  if (!e.is_state()) return parameter_in(c, w, e.index);
  const Offset at = w.program().state_at[state];
  if (!at) return {};
  ReadBytes stored = reading(w, Arena::state, *at);
  return c.state_dtype(state) == bf16 ? widened(std::move(stored)) : stored;
}

// Does a rank of this process keep something of it, if only a copy in bf16?
bool is_here(const Trainer& t, const Expected& e) {
  const std::vector<int>& local = t.engine().local();
  return std::any_of(local.begin(), local.end(), [&](int rank) {
    const Worker& w = t.engine().worker(rank);
    return memory_of(t.compiled(), w, e) != nullptr || (e.state.empty() && w.program().place_of(e.index));
  });
}

Snapshot without_tensors(const Trainer& trainer, std::string config) {
  const Compiled& c = trainer.compiled();
  return {.step = trainer.steps_done(),
          .seed = c.training.seed,
          .config = std::move(config),
          .optimizer = c.optimizer.name,
          .states = c.optimizer.state};
}

struct Share {
  const Expected* tensor;
  StoredPart part;
};
// Every part goes to the rank that has least to write of those that hold it: all ranks find the same.
std::vector<Share> shares_of(const Compiled& c, const std::vector<Expected>& all, int rank) {
  const Program& program = *c.program;
  const ActorId actor = program.actor_of_rank(rank);
  std::vector<i64> load(program.ranks_per_actor());
  std::vector<Share> own;
  for (const Expected& e : all) {
    if (program.owners[e.index] != actor) continue;
    std::map<std::pair<std::vector<i64>, i64>, int> writers;  // by where the part begins
    std::vector<StoredPart> parts;
    for (int k = 0; k < program.ranks_per_actor(); ++k) {
      parts.push_back(stored_part(c, e.index, coordinates_of(program.mesh, k), e.is_state()));
      int& writer = writers.try_emplace({parts.back().offsets, parts.back().first}, k).first->second;
      if (load[k] < load[writer]) writer = k;
    }
    for (const auto& [where, k] : writers) {
      load[k] += parts[k].count;
      if (program.rank_of(actor, k) == rank) own.push_back({&e, parts[k]});
    }
  }
  return own;
}

// A run may go on in another type: what f64 holds is rounded to the nearest of f32.
Array in_type(DType type, Array a, std::string_view name) {
  if (a.dtype == type) return a;
  Array to{type, a.sizes, {}};
  to.bytes.resize(a.elements() * size_of(type));
  if (a.dtype == f64)
    write_values<double>(a.as<double>(), file_type_of(type), to.bytes, name);
  else
    write_values<float>(a.as<float>(), file_type_of(type), to.bytes, name);
  return to;
}

}  // namespace

Snapshot snapshot_of(const Trainer& trainer, std::string config, Snapshot memory) {
  Snapshot s = without_tensors(trainer, std::move(config));
  s.tensors = std::move(memory.tensors);
  const std::vector<Expected> all = expected_of(trainer.compiled());
  s.tensors.resize(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    Snapshot::Tensor& t = s.tensors[i];
    t.name = all[i].name;
    t.value = all[i].state.empty() ? trainer.parameter(all[i].param->name, std::move(t.value))
                                   : trainer.state(all[i].param->name, all[i].state, std::move(t.value));
  }
  return s;
}

void help_snapshot(const Trainer& trainer) {
  Array memory;
  for (const Expected& e : expected_of(trainer.compiled()))
    memory = e.state.empty() ? trainer.parameter(e.param->name, std::move(memory))
                             : trainer.state(e.param->name, e.state, std::move(memory));
}

Snapshot share_of(const Trainer& trainer, int rank, std::string config, Snapshot memory) {
  Snapshot s = without_tensors(trainer, std::move(config));
  const std::vector<Expected> all = expected_of(trainer.compiled());
  trainer.settle();
  const Worker& w = trainer.engine().worker(rank);
  for (const Share& share : shares_of(trainer.compiled(), all, rank)) {
    Fragment fragment = fragment_of(*share.tensor->param, share.part);
    if (fragment.count == 0) continue;  // padding
    const std::size_t i = s.tensors.size();
    Array reused = i < memory.tensors.size() ? std::move(memory.tensors[i].value) : Array();
    const ReadBytes stored = memory_of(trainer.compiled(), w, *share.tensor);
    s.tensors.push_back(
        {share.tensor->name, read_fragment(*share.tensor->param, share.part, stored, std::move(reused))});
    if (!is_whole(fragment)) s.tensors.back().fragment = std::move(fragment);
  }
  return s;
}

void restore(Trainer& trainer, const Checkpoint& checkpoint) {
  const Compiled& c = trainer.compiled();
  const Manifest& m = checkpoint.manifest();
  const std::string where = checkpoint.path().string();
  if (m.optimizer == c.optimizer.name && m.states != c.optimizer.state)
    throw Error(where, "has of every parameter the states {}, and the run's are {}", join(m.states, ", "),
                join(c.optimizer.state, ", "))
        .hint("continue with the momentum and train.ema of that run");
  if (m.optimizer != c.optimizer.name)
    throw Error(where, "has {}, and the run's optimizer is {}",
                m.optimizer.empty() ? "no optimizer state" : "the state of " + m.optimizer, c.optimizer.name)
        .hint("{}", m.optimizer.empty() ? "start a new run from it: convert it and use model.from"
                                        : "continue with optimizer.name = \"" + m.optimizer + "\"");
  std::vector<Fault> faults;
  std::set<std::string, std::less<>> known;
  const std::vector<Expected> expected = expected_of(c);
  for (const Expected& e : expected) {
    known.insert(e.name);
    Array need{e.param->logical_dtype(), {}, {}};
    for (const Dim& d : e.param->dims) need.sizes.push_back(d.valid());
    const auto it = checkpoint.tensors().find(e.name);
    if (it == checkpoint.tensors().end())
      faults.push_back({where, fmt::format("tensor '{}' {} is missing", e.name, need.str()), ""});
    else if (it->second.shape != need.sizes)
      faults.push_back(
          {where, fmt::format("tensor '{}' is {}, and the model's is {}", e.name, it->second.str(), need.str()), ""});
  }
  for (const auto& [name, tensor] : checkpoint.tensors())
    if (!known.contains(name))
      faults.push_back({where, fmt::format("tensor '{}' {} is no part of this model", name, tensor.str()), ""});
  refuse(std::move(faults));
  trainer.set_step(m.step);
  for (const Expected& e : expected) {
    if (!is_here(trainer, e)) continue;
    const DType type = e.param->logical_dtype();
    if (e.state.empty())
      trainer.set_parameter(e.param->name, in_type(type, checkpoint.parameter(e.param->name), e.name));
    else
      trainer.set_state(e.param->name, e.state, in_type(type, checkpoint.state(e.state, e.param->name), e.name));
  }
}

void save(const Trainer& trainer, const std::filesystem::path& directory, int keep, BesideTensors beside) {
  if (keep < 1) throw Error("save", "keep is {}", keep).hint("keep at least one checkpoint");
  const std::shared_ptr<Peers>& peers = trainer.engine().peers();
  if (peers && !peers->first()) return help_snapshot(trainer);
  Snapshot s = snapshot_of(trainer, std::move(beside.config));
  s.extras = std::move(beside.extras);
  write_checkpoint(directory / checkpoint_name(trainer.steps_done()), s);
  prune_checkpoints(directory, keep, trainer.steps_done());
}

bool load(Trainer& trainer, const std::filesystem::path& directory) {
  const Newest newest = newest_checkpoint(directory);
  if (newest.checkpoint) restore(trainer, *newest.checkpoint);
  if (!newest.checkpoint && !newest.damaged.empty())
    throw Error("load", "no checkpoint in '{}' is whole: {}", directory.string(), join(newest.damaged, "; "))
        .hint("to begin again, remove them or choose another directory");
  return newest.checkpoint.has_value();
}

}  // namespace stretto
