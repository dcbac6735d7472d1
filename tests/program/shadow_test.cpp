// The memory plan played on shadow memory: every byte knows what was written to it last, and whoever reads it must find
// what it expects. Messages and collectives write as early and as late as they may.
#include <gmock/gmock.h>

#include <map>

#include "stretto/stretto.h"
#include "support/small_models.h"

namespace stretto {
namespace {
using testing::IsEmpty;

class Shadow {
 public:
  Shadow(const Program& p, ActorId a) : p_(p), a_(p.actors[a]), owner_((a_.bytes[Arena::activations] + 63) / 64, 0) {
    for (const Instruction& i : a_.code)
      if (const Receive* r = std::get_if<Receive>(&i)) arrives_[p.transfers[r->transfer].posted].push_back(r->transfer);
  }

  std::vector<std::string> run() {
    for (InstructionId i : a_.code.ids()) {
      at_ = i;
      for (TransferId t : arrives_[i]) receive(t);
      match(
          a_.code[i], [&](const stretto::Run& r) { calls(r, true, true); },
          [&](const Start& s) {
            calls(s.run, true, true);
            started_[s.collective] = s.run;
          },
          [&](const Await& w) { calls(started_.at(w.collective), false, true); },
          [&](const Send& s) { send(s.transfer); }, [&](const Receive& r) { receive(r.transfer); });
    }
    return std::move(wrong_);
  }

 private:
  // A temporary is one per run, a value one per microbatch; of a gathered parameter there may be several.
  std::string name(const stretto::Run& r, BufferId b) const {
    const BodyBuffer& buffer = p_.calls[r.task]->buffers[b];
    const Task& t = p_.task(r);
    if (buffer.temporary())
      return fmt::format("{} m{} buffer {} at {}", str(t), r.microbatch.value, b.value, r.args.value);
    const Binding& x = buffer.result() ? t.outputs[*buffer.result()] : t.inputs[*buffer.argument()];
    const ValueId* v = as<ValueId>(x);
    if (!v) return "";
    return value(*v, r.microbatch);
  }
  std::string value(ValueId v, MicrobatchId m) const {
    const bool gathered = p_.step->tasks[p_.step->values[v].producer].part == Part::U;
    return gathered ? fmt::format("value {}", v.value) : fmt::format("value {} m{}", v.value, m.value);
  }
  void calls(const stretto::Run& r, bool reads, bool writes) {
    const Calls& body = *p_.calls[r.task];
    for (CallId c : ids(calls_of(r, body))) {
      if (reads)
        for (const Ref& x : body.calls[c].in)
          if (x.buffer) touch(r, *x.buffer, false);
      if (writes)
        for (const Ref& x : body.calls[c].out)
          if (x.buffer) touch(r, *x.buffer, true);
    }
  }
  void touch(const stretto::Run& r, BufferId b, bool write) {
    const Slot& s = a_.slots[SlotId(r.args.value + b.value)];
    const std::string n = name(r, b);
    if (s.arena != Arena::activations || s.elsewhere || n.empty()) return;
    touch(s, p_.calls[r.task]->buffers[b].bytes, n, write);
  }
  void touch(const Slot& s, u64 bytes, const std::string& n, bool write) {
    const int id = ids_.try_emplace(n, static_cast<int>(ids_.size()) + 1).first->second;
    names_[id] = n;
    for (u64 k = s.offset / 64; k < (s.offset + bytes + 63) / 64; ++k) {
      if (!write && owner_[k] != id && wrong_.size() < 5)
        wrong_.push_back(fmt::format("instruction {}, {}: expects {} and finds {}", at_.value, p_.str(a_.code[at_]), n,
                                     names_[owner_[k]]));
      if (write) owner_[k] = id;
      if (!write && owner_[k] != id) return;
    }
  }
  void receive(TransferId t) {
    const Transfer& x = p_.transfers[t];
    if (x.value()) touch(x.extents[0].to, x.extents[0].bytes, value(x.value()->value, x.value()->microbatch), true);
  }
  void send(TransferId t) {
    const Transfer& x = p_.transfers[t];
    if (x.value() && !x.direct)
      touch(x.extents[0].from, x.extents[0].bytes, value(x.value()->value, x.value()->microbatch), false);
  }

  const Program& p_;
  const ActorProgram& a_;
  std::vector<int> owner_;  // per 64 bytes
  std::map<std::string, int> ids_;
  std::map<int, std::string> names_ = {{0, "nothing"}};
  std::map<InstructionId, std::vector<TransferId>> arrives_;
  std::map<CollectiveId, stretto::Run> started_;
  std::vector<std::string> wrong_;
  InstructionId at_{0};
};

struct Layout {
  const char* family;
  ParallelNames names;
  bool regather = false;
};
class ShadowMemory : public testing::TestWithParam<Layout> {};

TEST_P(ShadowMemory, EveryReaderFindsWhatItExpects) {
  const Layout& l = GetParam();
  ModelConfig config = tiny(l.family, 4);
  if (config.family == "mixtral") config.experts = 4, config.top_k = 2;
  for (const char* schedule : {"1f1b", "zb-v", "dualpipe-v", "kimi-k2"}) {
    const bool remote = std::string_view(schedule) == "1f1b";
    const Compiled c = compile(
        make_model(config, 32), adamw(), {.microbatches = 16},
        {.mesh = {{"pipe", 2}}, .names = l.names, .regather = l.regather, .schedule = schedule, .remote = remote});
    for (ActorId a : c.program->actors.ids())
      EXPECT_THAT(Shadow(*c.program, a).run(), IsEmpty()) << schedule << ", actor " << a.value;
  }
}
INSTANTIATE_TEST_SUITE_P(Layouts, ShadowMemory,
                         testing::Values(Layout{"gpt2", {}}, Layout{"llama", {.tensor = 2, .sequence = true}},
                                         Layout{"llama", {.data = 2, .context = 2}, true},
                                         Layout{"llama", {.data = 2, .zero = 3}}, Layout{"mixtral", {.expert = 2}}));

}  // namespace
}  // namespace stretto
