#include "stretto/run/inner/progress.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "stretto/comm/peers.h"
#include "stretto/formats/fields.h"
#include "stretto/generate/generate.h"
#include "stretto/generate/utf8_stream.h"
#include "stretto/run/inner/journal.h"

namespace stretto {
namespace {

constexpr i64 sample_tokens = 64;

}  // namespace

BestLoss::BestLoss(const std::vector<CurvePoint>& before) {
  for (const CurvePoint& p : before)
    if (p.validation) put(p.step, *p.validation);
}

bool BestLoss::put(i64 step, double loss) {
  const bool better = std::isfinite(loss) && (!loss_ || loss < *loss_);
  if (better) loss_ = loss, step_ = step;
  tries_ = better ? 0 : tries_ + 1;
  return better;
}

void BestLoss::share(Peers& peers) {
  const bool first = peers.first();
  u64 words[] = {first && loss_ ? 1u : 0u, first ? std::bit_cast<u64>(loss_.value_or(0)) : 0, first ? u64(step_) : 0,
                 first ? u64(tries_) : 0};
  peers.merge(words);
  loss_ = words[0] ? std::optional(std::bit_cast<double>(words[1])) : std::nullopt;
  step_ = i64(words[2]), tries_ = i64(words[3]);
}

std::string sample_of(const StoredModel& m, const std::string& prompt, const std::string& tokenizer) {
  const Codec codec = codec_of(m, tokenizer == "none" ? "" : tokenizer);
  GenerateOptions o{.tokens = sample_tokens, .sample = {.temperature = 0.8}};
  o.stop = codec.ends;
  Utf8Stream stream;
  std::string text = stream.push(prompt);
  generate(m, codec.encode(prompt, true), o, [&](std::int32_t id) {
    text += stream.push(codec.decode(id));
    return true;
  });
  return json_text(text + stream.finish());
}

}  // namespace stretto
