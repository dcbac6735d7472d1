// The reference step against a hand-written one and against its own GEMMs, in interleaved rounds of one run.
//   build/bench/step [rounds=9] [--profile]
// Ratios are medians over rounds with the interval that holds the middle half of them.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "handwritten.h"
#include "rounds.h"
#include "stretto/base/text.h"
#include "stretto/kernels/kernel.h"
#include "stretto/models/family.h"
#include "stretto/ops/ops.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

double seconds(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Every contraction of the program, on buffers of its own, with the kernel the program uses.
class Gemms {
 public:
  explicit Gemms(const Program& p) {
    std::map<std::pair<const Calls*, CallId>, std::size_t> known;
    for (const Instruction& i : p.actors[ActorId(0)].code) {
      const auto* r = std::get_if<Run>(&i);
      if (!r) continue;
      const Calls& calls = *p.calls[r->task];
      for (CallId k : calls.calls.ids()) {
        const KernelCall& c = calls.calls[k];
        if (calls.graph.node(c.node).op != &contract_op) continue;
        const auto [it, fresh] = known.try_emplace({&calls, k}, all_.size());
        if (fresh) add(calls, c);
        order_.push_back(it->second);
      }
    }
  }
  void run() {
    const Now now{.overwrite = false};
    for (std::size_t i : order_) {
      Gemm& g = all_[i];
      std::byte *in[2] = {g.in[0].data(), g.in[1].data()}, *out[1] = {g.out.data()};
      g.run({.in = in, .out = out, .scratch = scratch_.data(), .now = now});
    }
  }
  std::size_t count() const { return order_.size(); }

 private:
  struct Gemm {
    Runner run;
    std::vector<std::byte> in[2], out;
  };
  void add(const Calls& calls, const KernelCall& c) {
    Call call{.graph = calls.graph, .node = calls.graph.node(c.node), .accumulate = c.accumulate};
    for (const Ref& r : c.in) call.in.push_back(r.view);
    for (const Ref& r : c.out) call.out.push_back(r.view);
    Gemm g;
    for (int k = 0; k < 2; ++k) {
      g.in[k].resize(calls.buffers[*c.in[std::size_t(k)].buffer].bytes);
      auto* f = reinterpret_cast<float*>(g.in[k].data());
      for (std::size_t j = 0; j < g.in[k].size() / 4; ++j) f[j] = float(j % 17) * 0.01f;
    }
    g.out.resize(calls.buffers[*c.out[0].buffer].bytes);
    g.run = choose_kernel(call).prepare(call);
    scratch_.resize(std::max(scratch_.size(), calls.scratch));
    all_.push_back(std::move(g));
  }
  std::vector<Gemm> all_;
  std::vector<std::size_t> order_;
  std::vector<std::byte> scratch_;
};

// The products inside attention as BLAS calls on blocks of 64 queries that skip what is masked.
class AttentionGemms {
 public:
  AttentionGemms(int seq, int head, int times)
      : n_(seq),
        d_(head),
        times_(times),
        q_(handwritten::buffer(std::size_t(seq) * head, 1)),
        p_(handwritten::buffer(std::size_t(seq) * seq, 1)),
        o_(handwritten::buffer(std::size_t(seq) * head)),
        s_(handwritten::buffer(std::size_t(seq) * seq)) {}
  void run() const {
    constexpr int b = 64;
    for (int t = 0; t < times_; ++t) {
      for (int pass = 0; pass < 2; ++pass)  // scores; gradient of probabilities
        for (int z = 0; z < n_; z += b) handwritten::nt(b, z + b, d_, q_ + z * d_, d_, q_, d_, s_ + z * n_, n_);
      for (int pass = 0; pass < 2; ++pass)  // output; gradient of queries
        for (int z = 0; z < n_; z += b) handwritten::nn(b, d_, z + b, p_ + z * n_, n_, q_, d_, o_ + z * d_, d_);
      for (int pass = 0; pass < 2; ++pass)  // gradients of keys and values
        for (int z = 0; z < n_; z += b)
          handwritten::tn(b, d_, n_ - z, p_ + z * n_ + z, n_, q_ + z * d_, d_, o_ + z * d_, d_, 0);
    }
  }

 private:
  int n_, d_, times_;
  float *q_, *p_, *o_, *s_;
};

struct Ratio {
  double low, median, high;
};
Ratio ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> r;
  for (std::size_t i = 0; i < a.size(); ++i) r.push_back(a[i] / b[i]);
  std::sort(r.begin(), r.end());
  return {r[r.size() / 4], r[r.size() / 2], r[r.size() * 3 / 4]};
}
}  // namespace

int main(int argc, char** argv) try {
  int rounds = 9;
  bool profile = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--profile"))
      profile = true;
    else
      rounds = std::max(1, std::atoi(argv[i]));
  }
  const ModelConfig config = preset("reference");
  const handwritten::Shape shape{};
  const i64 rows = shape.rows * shape.microbatches;
  const int tokens = shape.tokens() * shape.microbatches;
  Trainer trainer(compile(make_model(config, rows), adamw(), {.microbatches = shape.microbatches}),
                  {.profile = profile});
  const Batch batch = some_batch(int(rows), shape.seq);
  if (profile) {
    print_profile(trainer, batch);
    return 0;
  }
  handwritten::Step hand(shape);
  Gemms gemms(*trainer.compiled().program);
  const AttentionGemms attention(shape.seq, shape.width / shape.heads,
                                 shape.rows * shape.heads * shape.layers * shape.microbatches);
  std::vector<double> ours, theirs, alone;
  trainer.step(batch), hand.run(), gemms.run(), attention.run();  // warm
  for (int r = 0; r < rounds; ++r) {
    // There and back again: a machine that gets slower or faster during a round does so for all three.
    double ours_twice = 0, theirs_twice = 0, alone_twice = 0;
    const auto step = [&] { ours_twice += seconds([&] { trainer.step(batch); }); };
    const auto by_hand = [&] { theirs_twice += seconds([&] { hand.run(); }); };
    const auto products = [&] { alone_twice += seconds([&] { gemms.run(), attention.run(); }); };
    step(), by_hand(), products(), products(), by_hand(), step();
    ours.push_back(ours_twice / 2), theirs.push_back(theirs_twice / 2), alone.push_back(alone_twice / 2);
    fmt::print("round {}: stretto {:.3f} s, hand-written {:.3f} s, GEMMs alone {:.3f} s\n", r + 1, ours.back(),
               theirs.back(), alone.back());
    std::fflush(stdout);
  }
  const Ratio to_gemms = ratio(ours, alone), to_hand = ratio(theirs, ours);
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("\n{}", table({{"", "tok/s (median)"},
                            {"stretto", fmt::format("{:.0f}", tokens / median(ours))},
                            {"hand-written", fmt::format("{:.0f}", tokens / median(theirs))}}));
  fmt::print("step / its GEMMs alone    {:.3f} [{:.3f}, {:.3f}]\n", to_gemms.median, to_gemms.low, to_gemms.high);
  fmt::print("stretto / hand-written    {:.3f} [{:.3f}, {:.3f}]\n", to_hand.median, to_hand.low, to_hand.high);
  const std::string memory = trainer.compiled().program->memory_str();
  fmt::print("{}\n", memory.substr(0, memory.find("\n\n")));  // not every task
} catch (const Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return e.exit_code();
}
