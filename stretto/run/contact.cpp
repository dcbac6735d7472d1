#include "stretto/run/contact.h"

#include <algorithm>

#include "stretto/base/text.h"
#include "stretto/comm/lane_check.h"
#include "stretto/kernels/kernel_bench.h"
#include "stretto/run/prepare.h"
#include "stretto/runtime/check_calls.h"
#include "stretto/runtime/devices.h"
#include "stretto/schedule/builders.h"

namespace stretto {
namespace {

class FirstContact {
 public:
  FirstContact(const RunConfig& config, const ContactOptions& options) : config_(config), options_(options) {}

  Contact run() {
    using Look = std::string (FirstContact::*)();
    for (const auto& [what, look] :
         std::initializer_list<std::pair<const char*, Look>>{{"devices", &FirstContact::devices},
                                                             {"kernels", &FirstContact::kernels},
                                                             {"between devices", &FirstContact::lanes},
                                                             {"against the CPU", &FirstContact::against_cpu},
                                                             {"the run twice", &FirstContact::twice},
                                                             {"schedules", &FirstContact::schedules},
                                                             {"memory", &FirstContact::memory},
                                                             {"speed", &FirstContact::speed}}) {
      try {
        out_.rows.push_back({what, (this->*look)()});
      } catch (const Error& e) {
        out_.rows.push_back({what, "WRONG"});
        out_.wrong = fmt::format("{}: {}", what, e.what());
        break;
      }
    }
    return std::move(out_);
  }

 private:
  RunOptions run_options() const { return options_of(config_.parallel); }

  std::string devices() {
    prepared_.emplace(prepare(config_));
    program_ = prepared_->compiled.program;
    std::vector<std::string> seen;
    for (int rank = 0; rank < program_->ranks(); ++rank) {
      devices_.push_back(make_device(*program_, rank, run_options()));
      lanes_.push_back(&dynamic_cast<LaneDevice&>(*devices_.back()));
      seen.push_back(lanes_.back()->about());
    }
    free_ = lanes_[0]->free_bytes();
    const bool same = std::ranges::all_of(seen, [&](const std::string& s) { return s == seen[0]; });
    return same ? fmt::format("{} × {}", seen.size(), seen[0]) : join(seen, ", ");
  }

  std::string kernels() {
    const CallCheck c = check_calls(*program_, *devices_[0]);
    return fmt::format("{} calls of {} ops are the same twice, and the CPU's to {:.1e}{}; {} left out", c.calls, c.ops,
                       c.worst, c.worst > 0 ? fmt::format(" ({})", c.worst_op) : "", c.left_out);
  }

  std::string lanes() {
    if (lanes_.size() < 2) return "there is one";
    for (LaneDevice* d : lanes_)
      for (LaneDevice* other : lanes_)
        if (d != other) d->reach(*other);
    const LaneCheck c = check_lanes(lanes_, options_.copied);
    devices_.resize(1);  // the others' memory is for the run
    return fmt::format("{} pairs, {} collectives; words {} to {}, copies {}/s to {}/s", c.pairs, c.collectives,
                       human_seconds(c.words.best), human_seconds(c.words.worst), human_bytes(c.copies.best),
                       human_bytes(c.copies.worst));
  }

  std::string against_cpu() {
    const Verification v = verify(config_, options_.verify);
    if (v.first) throw Error("verify", "{}", v.first->str());
    Worst worst;
    for (const VerifiedStep& s : v.steps)
      if (s.step == 1) worst = s.gradient;
    return fmt::format("steps 1 to {}, {} tensors; the worst gradient differs by {:.1e} ({})", v.steps.size(),
                       v.tensors, worst.difference, worst.name);
  }

  struct Outcome {
    u64 hash = 0;
    std::optional<u64> free;  // of the first device, while all memory is taken
  };
  Outcome trained(const Compiled& compiled) {
    Trainer t(compiled, run_options());
    load_weights(config_, t);
    for (i64 step = 1; step <= options_.verify.steps; ++step) t.step(batch_of(config_, *prepared_, step));
    return {t.parameters_hash(), lanes_[0]->free_bytes()};
  }

  std::string twice() {
    first_ = trained(prepared_->compiled);
    if (trained(prepared_->compiled).hash != first_.hash)
      throw Error("device", "the same steps gave other parameters").as(Error::Kind::run);
    return fmt::format("parameters {:016x}", first_.hash);
  }

  std::string schedules() {
    if (program_->actors.size() < 2) return "there is one actor";
    std::vector<std::string> same, others;
    std::optional<u64> hash;
    for (const BuilderEntry& b : schedule_builders()) {
      const Compiled& base = prepared_->compiled;
      Parallel parallel = base.parallel;
      parallel.schedule = std::string(b.name), parallel.stages = {}, parallel.chunks = 0;
      std::optional<Compiled> c;
      try {
        c = compile(base.model, base.optimizer, base.training, parallel);
      } catch (const Error&) {
        continue;  // not for so many actors, stages or microbatches
      }
      const u64 now = trained(*c).hash;
      if (b.ascending && hash.value_or(now) != now)
        throw Error("device", "under schedule {} parameters are others than under {}", b.name, same[0])
            .as(Error::Kind::run);
      if (b.ascending) hash = now;
      (b.ascending ? same : others).push_back(std::string(b.name));
    }
    return fmt::format("one hash under {}{}", join(same, ", "),
                       others.empty() ? "" : fmt::format("; {} ran, too", join(others, ", ")));
  }

  std::string memory() {
    u64 planned = 0;
    for (const u64 bytes : program_->actors[ActorId(0)].bytes) planned += bytes;
    if (!free_ || !first_.free) return fmt::format("{} planned", human_bytes(double(planned)));
    return fmt::format("{} planned, {} taken of {} free", human_bytes(double(planned)),
                       human_bytes(double(*free_) - double(*first_.free)), human_bytes(double(*free_)));
  }

  std::string speed() {
    std::vector<std::string> all;
    for (const DType dtype : {f32, bf16}) {
      double product = 0, pass = 0;
      for (const BenchedKernel& k : measure_kernels(*devices_[0], options_.scale, dtype)) {
        if (k.name.starts_with("product")) product = std::max(product, k.cost.flops / k.seconds);
        if (k.name.starts_with("copy")) pass = std::max(pass, (k.cost.read + k.cost.written) / k.seconds);
      }
      all.push_back(
          fmt::format("{}: products {}flop/s, copies {}/s", name_of(dtype), human_count(product), human_bytes(pass)));
    }
    return join(all, "; ");
  }

  const RunConfig& config_;
  const ContactOptions& options_;
  Contact out_;
  std::optional<Prepared> prepared_;
  std::shared_ptr<const Program> program_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<LaneDevice*> lanes_;
  std::optional<u64> free_;  // before anything was taken
  Outcome first_;
};

}  // namespace

bool has_first_contact(const RunConfig& c) { return !type_of(c.parallel.device).same_bits; }

Contact first_contact(const RunConfig& config, const ContactOptions& options) {
  return FirstContact(config, options).run();
}

std::string Contact::str() const {
  std::vector<std::vector<std::string>> all{{"what", "found"}};
  for (const Row& r : rows) all.push_back({r.what, r.found});
  return table(all);
}

}  // namespace stretto
