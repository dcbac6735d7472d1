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
  std::vector<LostRows> lost;
  for (const TracedExchange& x : c.exchanges)
    lost.push_back({x.layer, over_microbatches(Accumulate::sum, n, [&](int m) { return value(x.lost, m, 0); })});
  r.lost = first_lost(lost);
  return r;
}

}  // namespace

std::optional<LostRows> first_lost(std::span<const LostRows> layers) {
  const auto first = std::ranges::find_if(layers, [](const LostRows& layer) { return layer.rows != 0; });
  return first != layers.end() && first->rows > 0 ? std::optional(*first) : std::nullopt;
}

std::string StepResult::str() const {
  return fmt::format("step {} loss {:.6f} grad_norm {:.4f} lr {:.3g}", step, loss, grad_norm, lr);
}

StepNumbers::StepNumbers(const Engine& e, const Compiled& c, std::function<u64()> say)
    : engine_(e), say_(std::move(say)), peers_(e.peers()), taken_(e.ranks()) {
  for (const int rank : e.local()) taken_[rank].resize(e.worker(rank).program().bytes[Arena::results]);
  if (peers_) board_ = peers_->board(own_words(c, 0).size());
}

void StepNumbers::take(const Compiled& c, const Worker& w, double worked) {
  std::vector<std::byte>& to = taken_[w.rank()];
  w.read(Arena::results, 0, to.data(), to.size());
  if (board_) board_->say(own_words(c, worked));
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

// What this process has, and zeros for what others have: what anybody said, what each has worked, the norm, of which
// all that have it have the same bits, and the outputs.
std::vector<u64> StepNumbers::own_words(const Compiled& c, double worked) const {
  std::vector<u64> words(1 + engine_.ranks(), 0);
  words[0] = say_ ? say_() : 0;
  words[1 + engine_.peers()->rank()] = std::bit_cast<u64>(worked);
  words.push_back(std::bit_cast<u64>(norm(c)));
  summed(c, [&](OutputId output, int m, i64 element) {
    const int rank = c.program->rank_of(c.program->actor_of_output(output, MicrobatchId(m)), 0);
    words.push_back(engine_.here(rank) ? std::bit_cast<u64>(value(c, output, m, element)) : 0);
    return 0.0;
  });
  return words;
}

double StepNumbers::value(const Compiled& c, OutputId output, int m, i64 element) const {
  const StepOutput& o = c.program->step->outputs[output];
  const Worker& w = engine_.first(c.program->actor_of_output(output, MicrobatchId(m)));
  return read(w, w.program().output_at[output].value() + o.bytes * m + size_of(o.type.dtype) * element, o.type.dtype);
}

StepResult StepNumbers::result(const Compiled& c, const StepTaken& taken) {
  StepResult r;
  if (board_) {
    const std::vector<u64> words = board_->merged();
    std::size_t next = 1;
    const auto told = [&] { return std::bit_cast<double>(words[next++]); };
    std::vector<double> worked(engine_.ranks());
    for (double& w : worked) w = told();
    const double norm_of_all = told();
    r = summed(c, [&](OutputId, int, i64) { return told(); });
    r.grad_norm = norm_of_all;
    r.worked = std::move(worked);
    r.said = words[0];
  } else {
    r = summed(c, [&](OutputId output, int m, i64 element) { return value(c, output, m, element); });
    r.grad_norm = norm(c);
    r.worked.assign(taken.worked.begin(), taken.worked.end());
    r.said = say_ ? say_() : 0;
  }
  r.seconds = taken.seconds;
  r.ended = taken.ended;
  double worked = 0;
  for (const double w : r.worked) worked += w;
  if (taken.seconds > 0) r.bubble = std::max(0.0, 1 - worked / (taken.seconds * double(r.worked.size())));
  return r;
}

}  // namespace stretto
