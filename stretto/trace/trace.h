// What a user writes models with.
//
//   Loss model(Trace& t) {
//     Dim batch = t.batch("batch", 64), in{"in", 64}, label{"label", 10};
//     Tensor x = t.input("x", {batch, in}), y = t.ids("y", {batch});
//     return cross_entropy(contract(x, t.param("w", {in, label}), in), y, label);
//   }
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/ir/op.h"
#include "stretto/trace/loss.h"

namespace stretto {

struct Init {
  enum class Kind { zeros, ones, normal, uniform } kind = Kind::normal;
  double scale = 0.02;  // standard deviation, or half the width of the uniform interval
};
inline Init normal(double std = 0.02) { return {Init::Kind::normal, std}; }
inline Init uniform(double bound) { return {Init::Kind::uniform, bound}; }
Init fan_in(const Dims& in);  // normal with variance 1 / product(in)
inline constexpr Init zeros{Init::Kind::zeros, 0}, ones{Init::Kind::ones, 1};

// What a state becomes after a step, element by element, of its value and what was seen: Trace::observe.
using StateUpdate = std::function<Tensor(Tensor value, Tensor seen)>;

struct ParamOptions {
  Init init = {};
  double decay = 1;       // times the optimizer's; stated, not guessed from the rank: a qkv bias has three dims
  bool trainable = true;  // a frozen one has no gradient, no weight-gradient work and no optimizer state
  double lr_scale = 1;
  std::string rate = "lr";  // the number of a step that its learning rate is: Trainer::set_rate
  // The model gets it in the type it is kept in and takes care of the rest. Else it is cast to the run's type.
  bool own_type = false;
  StateUpdate update = {};  // of a state that is observed; it is not trainable
};

struct ParamInfo {
  std::string name;
  Tensor tensor;
  ParamOptions options;
  Tensor seen = {};  // of a state: what a microbatch tells of it
};
enum class Accumulate : std::uint8_t { sum, mean, max, concat };
struct Metric {
  std::string name;
  Tensor value;
  Accumulate how = Accumulate::sum;
};

// How tokens get to experts that several ranks share: every rank gathers all tokens of its group and takes its experts'
// part, or rows go to the ranks of the experts they name. Automatic: the latter where there are more ranks than a token
// has experts, for then fewer rows travel.
enum class ExpertRows : std::uint8_t { automatic, gather, exchange };

// A layer whose rows travel to their experts and back. `lost` counts those that found no room; what they reach is NaN,
// so that a step that lost any changes nothing and can run again. Not a number where the router's weights are none:
// such a step has another fault.
struct RowExchange {
  std::string layer;  // "h.3"
  Tensor lost;
};

// What a layer of experts has to send: tokens of a microbatch, numbers of each, experts that each is for.
struct ExpertTraffic {
  i64 tokens = 0, width = 0, top_k = 1;
  DType dtype = f32;
};
using ExchangesRows = std::function<bool(const ExpertTraffic&)>;

// Sequences are cut into so many equal segments, or into segments of these sizes: stretches that go through the model
// one after the other, each with the keys and values of those before it.
struct SegmentSizes {
  int count = 1;
  std::vector<i64> sizes = {};  // in tokens; empty: equal ones
  int number() const { return sizes.empty() ? count : int(sizes.size()); }
  bool operator==(const SegmentSizes&) const = default;
};

struct TraceOptions {
  DType dtype = f32;
  i64 microbatches = 1;
  std::map<std::string, i64> sizes = {};  // t.batch and t.size dims bound to other sizes (evaluation, decoding)
  bool training = true;                   // false: dropout does nothing
  // Parameters that a bf16 run keeps in f32: by their name, or by a part of it between dots.
  std::vector<std::string> in_f32 = {};
  // Parameters that are not trained, as by ParamOptions::trainable: names, parts of them, or globs. One that begins
  // with ! takes back what those before it say: {"*", "!h.3"} trains layer 3 alone.
  std::vector<std::string> frozen = {};
  std::optional<DType> frozen_dtype = {};  // that those are kept in; none: as others
  SegmentSizes segments = {};              // of the dim "seq"
  ExpertRows expert_rows = ExpertRows::automatic;
  int expert_ranks = 1;               // that share experts
  ExchangesRows exchanges_rows = {};  // of ExpertRows::automatic; none: where less is sent, beyond top_k ranks
};

// Is it the name, or a run of its parts between dots: "router", "h.3", "h.3.router" of "h.3.router"?
bool is_name_or_part(std::string_view part, std::string_view name);
// The same, or a glob of the whole name: "h.*.q", "*.bias".
bool is_name_or_glob(const std::string& pattern, const std::string& name);
// What the last pattern that is about this name says; see TraceOptions::frozen.
bool is_frozen(const std::vector<std::string>& patterns, const std::string& name);

class Trace {
 public:
  explicit Trace(TraceOptions options = {});
  Trace(const Trace&) = delete;

  Dim batch(std::string name, i64 per_step);       // the dim that microbatches cut; inside, its size is per microbatch
  Dim size(std::string name, i64 usual);           // evaluation and generation may bind another size
  Tensor input(std::string_view name, Dims dims);  // in the run's float type; given in f32 where that is bf16
  Tensor ids(std::string_view name, Dims dims);    // i32
  Tensor scalar(std::string_view name);            // f64, given by the host each step: "lr", "step"
  Tensor param(std::string_view name, Dims dims, ParamOptions options = {});
  Tensor tied(std::string_view absolute_name);  // a parameter made elsewhere; its gradients are added
  Tensor bias(std::string_view name, Dims dims) { return param(name, std::move(dims), {.init = zeros, .decay = 0}); }
  Tensor gain(std::string_view name, Dims dims) { return param(name, std::move(dims), {.init = ones, .decay = 0}); }
  // What a step changes without a gradient, e.g. running statistics: a parameter that is not trained, saved and laid
  // out like the others. `seen` has its dims; after the step it becomes update(value, mean of `seen` over
  // microbatches), where sums over ranks and microbatches are made as those of gradients are: no schedule changes them.
  // It has no part in the gradient norm and is not clipped. Nothing happens where nothing is trained. It is kept in f32
  // in a bf16 run.
  Tensor state(std::string_view name, Dims dims, Init init = zeros);
  void observe(Tensor state, Tensor seen, StateUpdate update);
  Tensor constant(double v);  // in the run's float type
  Tensor dropout(Tensor x, double rate, std::string_view name = "dropout");
  // What comes out of a step beside the loss, over microbatches: a number, or numbers per element of `x`; concat: rows.
  void metric(std::string_view name, Tensor x, Accumulate how);
  // Rows of the layer that the scope names are exchanged, and some of them may be lost.
  void exchange(Tensor lost) { exchanges.push_back({scope_, lost}); }

  // Decoding: tokens come a few at a time, and what a model needs of earlier ones it keeps. The mode is asked for by
  // binding the size `cache_size` to the room there is.
  static constexpr std::string_view cache_size = "kv_cache", positions_name = "positions", kept_prefix = "kept/";
  bool decoding() const { return options_.sizes.contains(std::string(cache_size)); }
  Dim cache() const;                              // positions there is room for
  Tensor positions(const Dim& seq);               // i32, where the tokens of this call stand
  Tensor kept(std::string_view name, Dims dims);  // from call to call; zeros at first

  DType dtype() const { return options_.dtype; }
  bool training() const { return options_.training; }
  bool exchanges_rows(const ExpertTraffic&);  // see ExpertRows; only when training
  const TraceOptions& options() const { return options_; }
  std::string scoped(std::string_view name) const;
  bool kept_in_f32(std::string_view param) const;  // by name
  DType kept_in(std::string_view param, const ParamOptions&) const;

  Builder builder;
  std::vector<ParamInfo> params;
  std::vector<Tensor> inputs;   // per-microbatch ones
  std::vector<Tensor> scalars;  // per-step ones
  std::vector<Metric> metrics;
  std::vector<RowExchange> exchanges;    // in the order in which layers follow each other
  std::optional<ExpertTraffic> experts;  // of the last layer that asked how rows get to them
  Loss penalties;                        // terms that layers add to a model's loss
  std::string batch_name;
  i64 rows_per_step = 0;

 private:
  friend class Scope;
  Tensor source(std::string_view name, DType, Dims dims);
  TraceOptions options_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::string, int> dropouts_;
  std::string scope_;
};

// While alive, parameter names and nodes are under "h.3.".
class Scope {
 public:
  [[nodiscard]] Scope(Trace& t, std::string_view name);
  [[nodiscard]] Scope(Trace& t, std::string_view name, int index);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Trace& trace_;
  std::string outer_;
};

using Model = std::function<Loss(Trace&)>;

}  // namespace stretto
