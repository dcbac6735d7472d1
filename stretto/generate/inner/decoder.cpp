#include "stretto/generate/inner/decoder.h"

#include <algorithm>
#include <numeric>

#include "stretto/compile/compile.h"
#include "stretto/models/family.h"
#include "stretto/train/logical.h"

namespace stretto {

struct Decoder::Mode {
  Compiled compiled;
  std::unique_ptr<Engine> engine;

  const ActorProgram& program() const { return worker().program(); }
  Worker& worker() const { return engine->worker(0); }
  void write(InputId i, std::span<const std::byte> from) const {
    worker().write(Arena::inputs, program().input_at[i].value(), from.data(), from.size());
  }
  std::vector<std::byte> read(InputId i) const {
    std::vector<std::byte> all(bytes(i));
    worker().read(Arena::inputs, program().input_at[i].value(), all.data(), all.size());
    return all;
  }
  i64 bytes(InputId i) const {
    i64 n = size_of(compiled.inputs[i].dtype);
    for (const Dim& d : compiled.inputs[i].dims) n *= d.size;
    return n;
  }
};

std::unique_ptr<Decoder::Mode> Decoder::compiled_for(i64 ids, const Engine* shared) const {
  auto mode = std::make_unique<Mode>();
  mode->compiled = compile_forward(make_decoder(config_), {.dtype = dtype_}, {},
                                   {{"batch", 1}, {"seq", ids}, {std::string(Trace::cache_size), room_}});
  mode->engine = std::make_unique<Engine>(mode->compiled.program, WorkerOptions{}, shared);
  return mode;
}

Decoder::Decoder(const ModelConfig& config, const Weights& weights, i64 room, std::optional<DType> dtype)
    : config_(checked(config)),
      dtype_(dtype.value_or(weights.empty() ? f32 : weights.begin()->second.dtype)),
      room_(room) {
  if (room < 1 || room > config_.context)
    throw Error("generate", "{} tokens are asked for, prompt included, and the model's context is {}", room,
                config_.context)
        .hint("ask for fewer, or shorten the prompt");
  one_ = compiled_for(1, nullptr);
  for (ParamId i : one_->compiled.params.ids()) {
    const CompiledParam& p = one_->compiled.params[i];
    const auto found = weights.find(p.name);
    if (found == weights.end()) throw Error("generate", "there is no parameter '{}'", p.name);
    const Slot at = one_->program().place_of(i).value();
    write_logical(p, whole_part(p), found->second, writing(one_->worker(), at.arena, at.offset), p.dtype);
  }
}

Decoder::~Decoder() = default;

std::vector<double> Decoder::run(Mode& mode, std::span<const std::int32_t> ids) {
  for (InputId i : mode.compiled.inputs.ids()) {
    const std::string& name = mode.compiled.inputs[i].name;
    if (name == "ids") mode.write(i, std::as_bytes(ids));
    if (name != Trace::positions_name) continue;
    std::vector<std::int32_t> positions(ids.size());
    std::iota(positions.begin(), positions.end(), position_);
    mode.write(i, std::as_bytes(std::span(positions)));
  }
  mode.engine->run(0);
  position_ += std::ssize(ids);
  const TracedMetric& m = mode.compiled.metrics.at(0);
  const auto logits = [&]<class T>(T) {
    std::vector<T> all(config_.vocab);  // padding follows
    mode.worker().read(Arena::results, mode.program().output_at[m.output].value(), all.data(), all.size() * sizeof(T));
    return std::vector<double>(all.begin(), all.end());
  };
  return m.dtype == f64 ? logits(double()) : logits(float());
}

std::vector<double> Decoder::feed(std::span<const std::int32_t> ids) {
  if (ids.empty()) throw Error("generate", "there is no token to go on from").hint("give a prompt");
  if (position_ + std::ssize(ids) > room_)
    throw Error("generate", "{} tokens have been read, and there is room for {}", position_ + std::ssize(ids), room_);
  for (const std::int32_t id : ids)
    if (id < 0 || id >= config_.vocab)
      throw Error("generate", "token {} is outside of a vocabulary of {}", id, config_.vocab)
          .hint("is the tokenizer the model's?");
  if (position_ == 0 && ids.size() > 1) {
    const std::unique_ptr<Mode> all = compiled_for(std::ssize(ids), one_->engine.get());
    std::vector<double> logits = run(*all, ids);
    for (InputId i : all->compiled.inputs.ids())  // the same inputs in the same order
      if (all->compiled.inputs[i].name.starts_with(Trace::kept_prefix)) one_->write(i, all->read(i));
    return logits;
  }
  std::vector<double> logits;
  for (std::size_t k = 0; k < ids.size(); ++k) logits = run(*one_, ids.subspan(k, 1));
  return logits;
}

}  // namespace stretto
