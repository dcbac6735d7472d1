#include "stretto/train/results.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace stretto {
namespace {

double over_microbatches(Accumulate how, int n, auto value) {
  double sum = 0, most = -INFINITY;
  for (int m = 0; m < n; ++m) {
    const double x = value(m);
    sum += x, most = std::max(most, x);
  }
  return how == Accumulate::max ? most : how == Accumulate::mean ? sum / n : sum;
}

// Outputs are kept per microbatch and added in ascending order: no schedule changes the sum.
template <class Value>
StepResult summed(const Compiled& c, Value value) {
  StepResult r;
  const int n = c.program->microbatches;
  for (const TracedTerm& t : c.terms) {
    double sum = 0, count = 0;
    for (int m = 0; m < n; ++m) sum += value(t.sum, m, 0), count += value(t.count, m, 0);
    const double mean = count > 0 ? sum / count : 0;
    r.loss += t.weight * mean;
    r.metrics[t.name] = mean;
  }
  for (const TracedMetric& x : c.metrics) {
    const i64 parts = c.program->shared.parts(c.program->mesh);
    if (x.how == Accumulate::concat)
      for (i64 part = 0, size = x.elements / parts; part < parts; ++part)
        for (int m = 0; m < n; ++m)
          for (i64 e = 0; e < size; ++e) r.lists[x.name].push_back(value(x.output, m, part * size + e));
    else if (x.dims == 0)
      r.metrics[x.name] = over_microbatches(x.how, n, [&](int m) { return value(x.output, m, 0); });
    else
      for (i64 e = 0; e < x.elements; ++e)
        r.lists[x.name].push_back(over_microbatches(x.how, n, [&](int m) { return value(x.output, m, e); }));
  }
  return r;
}

}  // namespace

std::string StepResult::str() const {
  return fmt::format("step {} loss {:.6f} grad_norm {:.4f} lr {:.3g}", step, loss, grad_norm, lr);
}

StepNumbers::StepNumbers(const Engine& e) : engine_(e), taken_(e.ranks()) {
  for (const int rank : e.local()) taken_[rank].resize(e.worker(rank).program().bytes[Arena::results]);
}

void StepNumbers::take(const Worker& w) {
  std::vector<std::byte>& to = taken_[w.rank()];
  w.read(Arena::results, 0, to.data(), to.size());
}

double StepNumbers::read(const Worker& w, u64 at, DType t) const {
  const std::byte* from = taken_[w.rank()].data() + at;
  const auto as = [&]<class T>(T x) -> double { return std::memcpy(&x, from, sizeof x), x; };
  return t == f32 ? as(float{}) : t == f64 ? as(double{}) : as(std::int32_t{});
}

double StepNumbers::norm(const Compiled& c) const {
  const std::optional<ScalarId> i = c.scalar("grad_norm");
  for (const int rank : engine_.local())
    if (const Worker& w = engine_.worker(rank); i && w.program().scalar_at[*i])
      return read(w, *w.program().scalar_at[*i], f64);
  return 0;
}

bool StepNumbers::finite_norm(const Compiled& c, const Worker& w) const {
  return std::isfinite(read(w, w.program().scalar_at[c.scalar("grad_norm").value()].value(), f64));
}

StepResult StepNumbers::result(const Compiled& c) const {
  const auto value = [&](OutputId output, int m, i64 element) {
    const StepOutput& o = c.program->step->outputs[output];
    const Worker& w = engine_.first(c.program->actor_of_output(output, MicrobatchId(m)));
    const u64 at = w.program().output_at[output].value() + o.bytes * m + size_of(o.type.dtype) * element;
    return read(w, at, o.type.dtype);
  };
  if (!engine_.peers()) {
    StepResult r = summed(c, value);
    r.grad_norm = norm(c);
    return r;
  }
  // Everybody says what he has; then everybody has all. Of the norm, all that have it have the same bits.
  std::vector<u64> words{std::bit_cast<u64>(norm(c))};
  summed(c, [&](OutputId output, int m, i64 element) {
    const bool here = engine_.here(c.program->rank_of(c.program->actor_of_output(output, MicrobatchId(m)), 0));
    words.push_back(here ? std::bit_cast<u64>(value(output, m, element)) : 0);
    return 0.0;
  });
  engine_.peers()->merge(words);
  std::size_t next = 0;
  const auto told = [&] { return std::bit_cast<double>(words[next++]); };
  const double norm_of_all = told();
  StepResult r = summed(c, [&](OutputId, int, i64) { return told(); });
  r.grad_norm = norm_of_all;
  return r;
}

void add_times(StepResult& r, const Engine& e, const StepTaken& taken) {
  r.seconds = taken.seconds;
  r.bubble = taken.bubble;
  r.worked.assign(taken.worked.begin(), taken.worked.end());
  if (!e.peers()) return;
  std::vector<u64> all(2 * r.worked.size(), 0);  // of every rank: bubble, work
  const int me = e.peers()->rank();
  all[2 * me] = std::bit_cast<u64>(taken.bubble);
  all[2 * me + 1] = std::bit_cast<u64>(taken.worked[me]);
  e.peers()->merge(all);
  r.bubble = 0;
  for (std::size_t rank = 0; rank < r.worked.size(); ++rank) {
    r.bubble += std::bit_cast<double>(all[2 * rank]) / r.worked.size();
    r.worked[rank] = std::bit_cast<double>(all[2 * rank + 1]);
  }
}

}  // namespace stretto
