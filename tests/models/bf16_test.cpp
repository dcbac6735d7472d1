// Gradients in bf16 of models that transformers has saved, against those of PyTorch in bf16
// (tests/files/hf_bf16/make.py): both are rounded, at other places. Ours are no farther from the exact ones than
// PyTorch's are.
#include <gtest/gtest.h>

#include <cmath>

#include "stretto/formats/safetensors.h"
#include "stretto/models/hf.h"
#include "stretto/train/trainer.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

struct SavedModel {
  const char *name, *folder, *batch, *ids, *targets;
};
constexpr SavedModel saved_models[] = {
    {"gpt2", "hf/gpt2/model", "hf/gpt2/batch", "input_ids", "targets"},
    {"llama", "hf/llama/model", "hf/llama/batch", "input_ids", "targets"},
    {"mixtral", "hf/mixtral/model", "hf/mixtral/batch", "input_ids", "targets"},
    {"qwen3", "hf_relatives/qwen3", "hf_relatives/qwen3/expected", "ids", "ids"},
};

using Gradients = std::map<std::string, std::vector<double>>;

Gradients gradients_in(DType dtype, const SavedModel& s) {
  const fs::path files = STRETTO_TEST_DATA;
  const HfModel m = load_hf(files / s.folder, wide(dtype));
  const SafeTensors stored(files / (std::string(s.batch) + ".safetensors"));
  const auto rows = [&](const char* name) {
    return Array::of<std::int32_t>(values<std::int32_t>(stored.at(name)), stored.at(name).shape);
  };
  const Array ids = rows(s.ids), targets = rows(s.targets);
  const Model model = [&, c = m.config](Trace& t) {
    const Dim batch = t.batch("batch", ids.sizes[0]), seq = t.size("seq", ids.sizes[1]), vocab{"vocab", c.vocab};
    const Tensor x = t.ids("ids", {batch, seq}), y = t.ids("targets", {batch, seq});
    return cross_entropy(logits_of(t, c, x), y, vocab);
  };
  Trainer trainer(compile(model, adamw(), {.dtype = dtype}));
  for (const auto& [name, array] : m.weights) trainer.set_parameter(name, array);
  trainer.step({{"ids", ids}, {"targets", targets}});
  Gradients all;
  for (const auto& [name, array] : m.weights) all[name] = trainer.gradient(name).doubles();
  return all;
}

Gradients gradients_of_torch(const SavedModel& s) {
  const fs::path files = STRETTO_TEST_DATA;
  const ModelConfig config = load_hf(files / s.folder, f32).config;
  const SafeTensors stored(files / "hf_bf16" / (std::string(s.name) + ".safetensors"));
  Gradients all;
  for (const ParamSpec& p : family_named(config.family).params(config))
    all[p.name] = from_files(
                      p, [&](const ParamSpec& one) -> const StoredTensor& { return stored.at(one.stored); }, f64)
                      .doubles();
  return all;
}

double norm_of(const std::vector<double>& a) {
  double sum = 0;
  for (const double x : a) sum += x * x;
  return std::sqrt(sum);
}
double distance(std::vector<double> a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) a[i] -= b[i];
  return norm_of(a);
}

class GradientsInBf16 : public testing::TestWithParam<SavedModel> {};

TEST_P(GradientsInBf16, AreWithinTheSpreadOfPyTorchs) {
  const Gradients exact = gradients_in(f64, GetParam()), ours = gradients_in(bf16, GetParam()),
                  theirs = gradients_of_torch(GetParam());
  double our_sum = 0, their_sum = 0, between = 0, whole = 0, spread = 0;
  for (const auto& [name, g] : exact) spread = std::max(spread, distance(theirs.at(name), g) / norm_of(g));
  for (const auto& [name, g] : exact) {
    const double size = norm_of(g), our = distance(ours.at(name), g), their = distance(theirs.at(name), g);
    const double apart = distance(ours.at(name), theirs.at(name));
    EXPECT_LE(our, std::max(1.5 * their, spread * size)) << name << ": of " << size;
    EXPECT_LE(apart, std::max(2 * their, 1.5 * spread * size)) << name << ": of " << size;
    our_sum += our * our, their_sum += their * their, between += apart * apart, whole += size * size;
  }
  RecordProperty("ours", fmt::format("{:.5f}", std::sqrt(our_sum / whole)));
  RecordProperty("theirs", fmt::format("{:.5f}", std::sqrt(their_sum / whole)));
  RecordProperty("between", fmt::format("{:.5f}", std::sqrt(between / whole)));
  EXPECT_GT(their_sum, 0);
  // A token whose choice of experts falls differently counts for more than all rounding, in theirs or in ours.
  EXPECT_LE(our_sum, (std::string(GetParam().name) == "mixtral" ? 2 : 1) * their_sum);
}

INSTANTIATE_TEST_SUITE_P(Models, GradientsInBf16, testing::ValuesIn(saved_models),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stretto
