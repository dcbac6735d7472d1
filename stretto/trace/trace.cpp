#include "stretto/trace/trace.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "stretto/base/text.h"
#include "stretto/ops/cast.h"
#include "stretto/ops/constant.h"
#include "stretto/ops/dropout.h"
#include "stretto/ops/fit.h"
#include "stretto/ops/input.h"
#include "stretto/ops/param.h"

namespace stretto {

Init fan_in(const Dims& in) {
  double n = 1;
  for (const Dim& d : in) n *= double(d.valid());
  return normal(1 / std::sqrt(n));
}

Trace::Trace(TraceOptions options) : options_(std::move(options)) {
  if (options_.microbatches < 1)
    throw Error("training", "microbatches is {}", options_.microbatches).hint("use at least 1");
}

std::string Trace::scoped(std::string_view name) const {
  return scope_.empty() ? std::string(name) : scope_ + "." + std::string(name);
}

Dim Trace::size(std::string name, i64 usual) {
  const auto bound = options_.sizes.find(name);
  return {.name = std::move(name), .size = bound == options_.sizes.end() ? usual : bound->second};
}

Dim Trace::batch(std::string name, i64 per_step) {
  if (!batch_name.empty() && batch_name != name)
    throw Error("batch", "dims '{}' and '{}' are both batch dims", batch_name, name)
        .hint("one dim is cut into microbatches; make the other a plain Dim or t.size");
  batch_name = name;
  Dim d = size(name, per_step);
  rows_per_step = d.size;
  const i64 m = options_.microbatches;
  if (d.size % m != 0)
    throw Error("batch", "dim '{}' has {} rows per step, which {} microbatches do not divide", name, d.size, m)
        .hint("use {} or {} rows", std::max<i64>(1, d.size / m) * m, (d.size / m + 1) * m);
  d.size /= m;
  return d;
}

Tensor Trace::source(std::string_view name, DType dtype, Dims dims) {
  for (const Tensor& t : inputs)
    if (builder.graph.node(t.value).attrs.as<InputAttrs>().name == name)
      throw Error("input", "'{}' is declared twice", name)
          .hint("use the Tensor again, or give the second one another name");
  const Tensor t = stretto::input(builder, std::string(name), dtype, dims);
  inputs.push_back(t);
  return t;
}

Tensor Trace::input(std::string_view name, Dims dims) {
  return cast(source(name, wide(options_.dtype), std::move(dims)), options_.dtype);
}
Tensor Trace::ids(std::string_view name, Dims dims) { return source(name, i32, std::move(dims)); }

Tensor Trace::scalar(std::string_view name) {
  for (const Tensor& t : scalars)
    if (builder.graph.node(t.value).attrs.as<InputAttrs>().name == name) return t;
  scalars.push_back(stretto::input(builder, std::string(name), f64, {}, true));
  return scalars.back();
}

Tensor Trace::param(std::string_view name, Dims dims, ParamOptions options) {
  const std::string full = scoped(name);
  if (by_name_.contains(full))
    throw Error("param", "the name '{}' is taken", full)
        .hint("put the layers in a Scope (Scope in(t, \"h\", i);), or use the first Tensor again to tie the two");
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i].name == batch_name && !batch_name.empty())
      throw Error("param", "'{}' has the batch dim '{}'", full, batch_name)
          .hint("parameters cannot depend on the batch; use another dim");
  if (is_frozen(options_.frozen, full)) options.trainable = false;
  const Tensor t = stretto::param(builder, full, kept_in(full, options), dims);
  by_name_[full] = params.size();
  params.push_back({full, t, options});
  return options.own_type ? t : cast(t, options_.dtype);
}

DType Trace::kept_in(std::string_view param, const ParamOptions& options) const {
  if (options.own_type || kept_in_f32(param)) return wide(options_.dtype);
  return options.trainable ? options_.dtype : options_.frozen_dtype.value_or(options_.dtype);
}

bool is_name_or_part(std::string_view part, std::string_view name) {
  if (part == name) return true;
  for (std::size_t at = 0; (at = name.find(part, at)) != name.npos; ++at) {
    const std::size_t end = at + part.size();
    if ((at == 0 || name[at - 1] == '.') && (end == name.size() || name[end] == '.')) return true;
  }
  return false;
}

bool is_name_or_glob(const std::string& pattern, const std::string& name) {
  return is_name_or_part(pattern, name) || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool is_frozen(const std::vector<std::string>& patterns, const std::string& name) {
  bool frozen = false;
  for (const std::string& p : patterns) {
    const bool taken_back = p.starts_with('!');
    if (is_name_or_glob(taken_back ? p.substr(1) : p, name)) frozen = !taken_back;
  }
  return frozen;
}

bool Trace::kept_in_f32(std::string_view param) const {
  return std::any_of(options_.in_f32.begin(), options_.in_f32.end(),
                     [&](const std::string& part) { return is_name_or_part(part, param); });
}

Tensor Trace::tied(std::string_view name) {
  const auto it = by_name_.find(std::string(name));
  if (it != by_name_.end()) return cast(params[it->second].tensor, options_.dtype);
  std::vector<std::string> known;
  for (const ParamInfo& p : params) known.push_back(p.name);
  const auto near = nearest(name, known);
  throw Error("tied", "there is no parameter '{}' yet", name)
      .hint("{}", near ? fmt::format("did you mean '{}'?", *near)
                       : "names are absolute, and the parameter must be made before it is tied");
}

Tensor Trace::state(std::string_view name, Dims dims, Init init) {
  return param(name, std::move(dims), {.init = init, .decay = 0, .trainable = false, .own_type = true});
}

void Trace::observe(Tensor state, Tensor seen, StateUpdate update) {
  const auto it =
      std::find_if(params.begin(), params.end(), [&](const ParamInfo& p) { return p.tensor.value == state.value; });
  if (it == params.end() || it->options.trainable)
    throw Error("observe", "{} is no state", state.str()).hint("make it with t.state(name, dims)");
  if (it->seen) throw Error("observe", "state '{}' is observed twice", it->name).hint("add up what is seen before");
  const auto sorted = [](Dims dims) {
    std::sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return a.name < b.name; });
    return dims;
  };
  if (sorted(seen.dims()) != sorted(it->tensor.dims()))
    throw Error("observe", "state {} has other dims than what is seen of it, {}", it->tensor.str(), seen.str())
        .hint("sum or mean over the others: mean(x, batch)");
  if (!options_.training || is_frozen(options_.frozen, it->name)) return;
  it->seen = fit(cast(seen, it->tensor.dtype()), it->tensor.type());
  it->options.update = std::move(update);
}

Tensor Trace::constant(double v) { return stretto::constant(builder, v, options_.dtype); }

Tensor Trace::dropout(Tensor x, double rate, std::string_view name) {
  if (rate < 0 || rate >= 1)
    throw Error("dropout", "the rate is {}", rate).hint("use a rate from 0 up to, not including, 1");
  if (!options_.training || rate == 0) return x;
  std::string full = scoped(name);
  if (const int n = dropouts_[full]++)
    full += fmt::format("#{}", n);  // several in one scope: numbered in program order
  return stretto::dropout(x, rate, full);
}

bool Trace::exchanges_rows(const ExpertTraffic& t) {
  experts = t;
  if (!training() || options_.expert_rows == ExpertRows::gather) return false;
  if (options_.expert_rows == ExpertRows::exchange) return true;
  return options_.exchanges_rows ? options_.exchanges_rows(t) : options_.expert_ranks > t.top_k;
}

void Trace::metric(std::string_view name, Tensor x, Accumulate how) {
  const Dims dims = x.dims();
  if (how != Accumulate::concat &&
      std::any_of(dims.begin(), dims.end(), [&](const Dim& d) { return d.name == batch_name; }))
    throw Error("metric", "'{}' still has the batch dim: {}", name, x.str())
        .hint("reduce it first: mean(x, batch), or use Accumulate::concat");
  for (const Metric& m : metrics)
    if (m.name == name) throw Error("metric", "'{}' is declared twice", name).hint("give the second one another name");
  metrics.push_back({std::string(name), x, how});
}

Dim Trace::cache() const {
  const auto bound = options_.sizes.find(std::string(cache_size));
  if (bound == options_.sizes.end())
    throw Error("trace", "there is a cache only when decoding").hint("ask t.decoding() first");
  return {.name = std::string(cache_size), .size = bound->second};
}

Tensor Trace::positions(const Dim& seq) {
  for (const Tensor& t : inputs)
    if (builder.graph.node(t.value).attrs.as<InputAttrs>().name == positions_name) return t;
  return ids(positions_name, seq);
}

Tensor Trace::kept(std::string_view name, Dims dims) {
  return source(fmt::format("{}{}", kept_prefix, scoped(name)), options_.dtype, std::move(dims));
}

Scope::Scope(Trace& t, std::string_view name) : trace_(t), outer_(t.scope_) {
  t.scope_ = t.scoped(name);
  t.builder.scope = t.builder.intern_scope(t.scope_);
}

Scope::Scope(Trace& t, std::string_view name, int index) : Scope(t, fmt::format("{}.{}", name, index)) {}

Scope::~Scope() {
  trace_.scope_ = outer_;
  trace_.builder.scope = trace_.builder.intern_scope(outer_);
}

}  // namespace stretto
