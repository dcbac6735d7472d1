// Relatives of the two main models, saved by transformers (tests/files/hf_relatives/make.py): biases, norms of queries
// and keys, stretched positions, other activations.
#include <gtest/gtest.h>

#include <cmath>

#include "gap.h"
#include "stretto/formats/safetensors.h"
#include "stretto/models/hf.h"
#include "stretto/train/trainer.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

TEST(Relatives, LogitsAreThoseOfTransformers) {
  int seen = 0;
  for (const fs::directory_entry& e : fs::directory_iterator(fs::path(STRETTO_TEST_DATA) / "hf_relatives")) {
    if (!e.is_directory()) continue;
    ++seen;
    SCOPED_TRACE(e.path().filename().string());
    const HfModel m = load_hf(e.path(), f64);
    const SafeTensors expected(e.path() / "expected.safetensors");
    const StoredTensor& ids = expected.at("ids");
    const Model model = [&, c = m.config](Trace& t) {
      const Dim batch = t.batch("batch", ids.shape[0]), seq = t.size("seq", ids.shape[1]), vocab{"vocab", c.vocab};
      const Tensor in = t.ids("ids", {batch, seq});
      const Tensor logits = logits_of(t, c, in);
      if (!t.training()) t.metric("logits", logits, Accumulate::concat);
      return cross_entropy(logits, in, vocab);
    };
    Trainer t(compile(model, adamw(), {.dtype = f64}));
    for (const auto& [name, array] : m.weights) t.set_parameter(name, array);
    const StepResult r = t.evaluate({{"ids", Array::of<std::int32_t>(values<std::int32_t>(ids), ids.shape)}});
    const std::vector<double>& ours = r.lists.at("logits");
    const std::vector<double> theirs = values<double>(expected.at("logits"));
    EXPECT_LE(test::gap(ours, theirs), m.config.family == "gpt2" ? 1e-9 : 2e-6);
  }
  EXPECT_EQ(seen, 9);
}

}  // namespace
}  // namespace stretto
