#include "stretto/compile/inner/refusals.h"

#include <algorithm>
#include <utility>

namespace stretto {
namespace {

// Sums of gradients in bf16 are made once per step and are not those of the serial run.
void check_reduce(const Parallel& p, const Training& t) {
  if (p.reduce != bf16) return;
  const auto refuse_it = [](std::string_view what, std::string_view hint) {
    throw Error("parallel", "reduce = \"bf16\": {}", what).hint("{}", hint).about({"parallel.reduce"});
  };
  if (t.exact) refuse_it("exact training adds gradients up in f32", "leave one of the two out");
  if (t.dtype == f64) refuse_it("the run is in f64", "leave it out");
  if (!p.storage.gradients.empty())
    refuse_it("gradients that are cut over ranks are added up in every microbatch", "use zero = 1 or 0");
}

void check_segments(const Training& t, const Parallel& p) {
  if (t.segments.number() == 1) return;
  if (t.exact)
    throw Error("segments", "exact training adds gradients up leaf by leaf, and segments add to each of them")
        .hint("leave one of the two out")
        .about({"train.segments"});
  if (p.measured)
    throw Error("times", "measured times are of pieces of whole sequences, and these are cut into segments")
        .hint("leave one of the two out")
        .about({"parallel.times", "train.segments"});
  for (Recompute r : p.recompute)
    if (r == Recompute::full || r == Recompute::layer)
      throw Error("recompute", "{} would make keys and values again, which later segments read and F keeps", name_of(r))
          .hint("use selective, which keeps them in any case, or none")
          .about({"parallel.recompute"});
}

void check_states(const Optimizer& o, const Training& t) {
  if (o.state_dtype == f32) return;
  const auto refuse_it = [](Error e) { throw std::move(e).about({"optimizer.state"}); };
  if (o.state_dtype != bf16)
    refuse_it(Error("optimizer", "states cannot be kept in {}", name_of(o.state_dtype)).hint("use f32 or bf16"));
  if (o.matrices)
    refuse_it(Error("optimizer", "'{}' makes whole matrices of its states, which are kept in f32", o.name)
                  .hint("leave optimizer.state out"));
  if (t.dtype == f64) refuse_it(Error("optimizer", "states in bf16 and a run in f64").hint("leave one of the two out"));
}

void check_late(const Training& t) {
  if (t.clip_late && !t.skip_nonfinite)
    throw Error("train", "clip_late undoes steps that are not finite, and nonfinite = \"continue\" goes on with them")
        .hint("leave clip_late out, or use nonfinite = \"stop\" or \"skip\"")
        .about({"train.clip_late"});
}

// A step whose rows found no room runs again, and must have changed nothing.
void check_lost(const Traced& t, const Training& training) {
  if (training.skip_nonfinite || t.exchanges.empty()) return;
  throw Error("train",
              "a step whose rows find no room with their experts is made again, and nonfinite = \"continue\" "
              "updates parameters with it")
      .hint("use nonfinite = \"stop\" or \"skip\", or parallel.expert_rows = \"gather\"")
      .about({"train.nonfinite"});
}

}  // namespace

void check_together(const Traced& traced, const Optimizer* optimizer, const Training& training, const Parallel& p) {
  check_reduce(p, training);
  check_segments(training, p);
  if (optimizer) check_states(*optimizer, training);
  check_late(training);
  if (optimizer) check_lost(traced, training);
}

}  // namespace stretto
