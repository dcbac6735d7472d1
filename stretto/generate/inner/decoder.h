// A model that reads tokens and says what may follow, keeping keys and values of what it has read. The model's own text
// is traced for it: once for a whole prompt, once for a single token.
//
//   Decoder d(config, weights, prompt.size() + 100);     // room for so many tokens
//   std::vector<double> logits = d.feed(prompt);
//   logits = d.feed({{id}});
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "stretto/models/hf.h"
#include "stretto/runtime/engine.h"

namespace stretto {

struct Compiled;

class Decoder {
 public:
  // `dtype`: to compute in, which may be bf16; none: as the weights are.
  Decoder(const ModelConfig&, const Weights&, i64 room, std::optional<DType> dtype = {});
  ~Decoder();

  // Of the last one, over the vocabulary. Any number of ids; the first time they are read all at once.
  std::vector<double> feed(std::span<const std::int32_t> ids);
  i64 position() const { return position_; }  // ids read so far
  i64 room() const { return room_; }

 private:
  struct Mode;  // the program for so many ids at a time
  std::unique_ptr<Mode> compiled_for(i64 ids, const Engine* shared) const;
  std::vector<double> run(Mode&, std::span<const std::int32_t> ids);

  ModelConfig config_;
  DType dtype_;
  i64 room_, position_ = 0;
  std::unique_ptr<Mode> one_;
};

}  // namespace stretto
