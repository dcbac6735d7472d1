// Text, or ids, that a model goes on with.
//
//   StoredModel m = load_model("runs/tales");
//   Codec codec = codec_of(m);
//   generate(m, codec.encode("Once upon a time", true), {.tokens = 100}, [&](std::int32_t id) { return true; });
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/generate/sample.h"
#include "stretto/saved/model_directory.h"

namespace stretto {

struct GenerateOptions {
  i64 tokens = 100;  // at most, after the prompt
  SampleOptions sample = {};
  u64 seed = 0;
  std::vector<std::int32_t> stop = {};  // ends before one of these
  std::optional<DType> dtype = {};      // to compute in: bf16, or as the weights are
};
// `next` gets every new token as soon as it is known, and says whether to go on. Returns how many there were.
i64 generate(const StoredModel&, const std::vector<std::int32_t>& prompt, const GenerateOptions&,
             const std::function<bool(std::int32_t)>& next);

// Between text and ids, as the files beside the weights say; without any, a vocabulary of 256 is bytes.
struct Codec {
  // with_special: with the tokens that the tokenizer puts around a text. A chat template puts its own.
  std::function<std::vector<std::int32_t>(std::string_view, bool with_special)> encode;
  std::function<std::string(std::int32_t)> decode;  // bytes, which need not be whole characters
  std::vector<std::int32_t> ends;                   // tokens that end a text
  std::vector<std::pair<std::string, std::int32_t>> special = {};  // tokens that stand for no text
};
// `tokenizer`: a file or directory to read instead; "bytes".
Codec codec_of(const StoredModel&, const std::string& tokenizer = {});

}  // namespace stretto
