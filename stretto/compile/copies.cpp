#include "stretto/compile/copies.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "stretto/ir/op.h"
#include "stretto/program/account.h"
#include "stretto/step/keeps.h"

namespace stretto {
namespace {

// Of the values between tasks those that depend on nothing but parameters.
class MadeOfParameters {
 public:
  explicit MadeOfParameters(const Step& s) : yes_(s.values.size(), 0) {
    for (const bool gathers : {true, false})  // what U gathers is read by the others
      for (const Task& t : s.tasks)
        if ((t.part == Part::U) == gathers) look_at(t);
  }
  bool operator()(ValueId v) const { return yes_[v] != 0; }

 private:
  void look_at(const Task& t) {
    const Graph& g = *t.body;
    std::vector<char> of(g.nodes.size(), 0);
    std::size_t arguments = 0;
    for (std::size_t n = 0; n < g.nodes.size(); ++n) {
      const Node& node = g.nodes[n];
      const auto made = [&](Value v) { return of[v.node.value] != 0; };
      of[n] = node.op->leaf == Leaf::argument ? is_one(t.inputs[ArgumentId(arguments++)])
                                              : !node.operands.empty() && std::ranges::all_of(node.operands, made);
    }
    for (ResultId r : t.outputs.ids())
      if (const ValueId* value = as<ValueId>(t.outputs[r])) yes_[*value] = of[g.outputs[r.value].node.value];
  }
  bool is_one(const Binding& b) const {
    const ValueId* value = as<ValueId>(b);
    return value ? yes_[*value] != 0 : as<ParamId>(b) != nullptr;
  }

  IdVector<ValueId, char> yes_;
};

// Bytes that a stage's forward keeps of them, per microbatch.
IdVector<StageId, u64> copies_of_stages(const Program& p) {
  const MadeOfParameters copies(*p.step);
  IdVector<StageId, u64> bytes;
  for (const StageKeeps& stage : keeps(*p.step, p.stage_of)) {
    bytes.push_back(0);
    for (const Keep& k : stage.values)
      if (copies(k.value) && k.from == Part::F && !k.arrives) bytes.back() += p.step->values[k.value].bytes;
  }
  return bytes;
}

}  // namespace

KeptCopies kept_copies(const Program& p) {
  const IdVector<StageId, u64> bytes = copies_of_stages(p);
  KeptCopies k;
  for (const ActorAccount& actor : account(p)) {
    std::set<std::pair<StageId, MicrobatchId>> under_way;
    for (const Holding& h : actor.peak)
      if (h.stage && (h.kind == Holding::Kind::until_i || h.kind == Holding::Kind::until_w))
        for (const MicrobatchId m : h.microbatches) under_way.emplace(*h.stage, m);
    u64 here = 0;
    for (const auto& [stage, microbatch] : under_way) here += bytes[stage];
    k.most = std::max(k.most, here);
    k.all += here * u64(p.ranks_per_actor());
  }
  return k;
}

}  // namespace stretto
