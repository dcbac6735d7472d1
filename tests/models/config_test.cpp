#include "stretto/models/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "stretto/base/text.h"
#include "stretto/models/family.h"
#include "support/message.h"

namespace stretto {
namespace {

TEST(ModelConfig, PresetsAreValidAndHaveNames) {
  std::set<std::string_view> names;
  for (const Preset& p : presets()) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_EQ(refusal_of([&] { checked(p.config); }), "no error") << p.name;
    EXPECT_EQ(preset(p.name), p.config);
    EXPECT_FALSE(p.summary.empty());
  }
  EXPECT_TRUE(refusal_of([] { preset("gpt2-medum"); })
                  .starts_with("[model.preset] there is no preset 'gpt2-medum'; hint: did you mean 'gpt2-medium'? the "
                               "presets are gpt2-tiny, reference, gpt2, "));
}

TEST(ModelConfig, ParameterCountsAreThePublishedOnes) {
  const auto count = [](const char* name) { return parameter_count(preset(name)); };
  EXPECT_EQ(count("gpt2"), 124'439'808);
  EXPECT_EQ(count("gpt2-medium"), 354'823'168);
  EXPECT_EQ(count("gpt2-large"), 774'030'080);
  EXPECT_EQ(count("gpt2-xl"), 1'557'611'200);
  EXPECT_EQ(count("llama-1b"), 1'235'814'400);
  EXPECT_EQ(count("llama-2-7b"), 6'738'415'616);
  EXPECT_EQ(count("llama-3-8b"), 8'030'261'248);
  EXPECT_EQ(count("llama-3-70b"), 70'553'706'496);
  EXPECT_EQ(count("qwen2.5-0.5b"), 494'032'768);
  EXPECT_EQ(count("qwen3-0.6b"), 596'049'920);
  EXPECT_EQ(count("mixtral-8x7b"), 46'702'792'704);
}

TEST(ModelConfig, OpenFieldsAreFilledInByFamily) {
  const ModelConfig g = complete({.family = "gpt2", .width = 96, .heads = 6});
  EXPECT_EQ(g.kv_heads, 6);
  EXPECT_EQ(g.head_dim, 16);
  EXPECT_EQ(g.ff, 384);
  EXPECT_EQ(g.tied, true);
  EXPECT_EQ(g.activation, Activation::gelu);
  const ModelConfig l = complete({.family = "llama", .width = 96, .heads = 6, .kv_heads = 2});
  EXPECT_EQ(l.group(), 3);
  EXPECT_EQ(l.ff, 256);
  EXPECT_EQ(l.tied, false);
  EXPECT_EQ(l.activation, Activation::silu);
  EXPECT_EQ(complete(l), l);
  EXPECT_EQ(complete({.family = "mixtral"}).str(),
            "mixtral, 4 layers, width 128, 4 heads, ff 352, 2 of 8 experts, context 128, vocabulary 256");
  EXPECT_EQ(l.str(), "llama, 4 layers, width 96, 6 heads (2 key/value), ff 256, context 128, vocabulary 256");
}

TEST(ModelConfig, FaultsNameTheKeyTheValueAndAWayOut) {
  const auto say = [](ModelConfig c) { return refusal_of([&] { checked(c); }); };
  EXPECT_EQ(say({.width = 512, .heads = 7}),
            "[model.heads] 7 heads do not divide width 512; hint: use 4 or 8 heads, or width 518");
  EXPECT_EQ(say({.width = 4, .heads = 7}),
            "[model.heads] 7 heads do not divide width 4; hint: use 4 heads, or width 7");
  EXPECT_EQ(say({.width = i64(1) << 62}),
            "[model.width] width is 4611686018427387904; hint: use a number from 1 to 1048576");
  EXPECT_EQ(say({.family = "llama", .width = 96, .heads = 6, .kv_heads = 4}),
            "[model.kv_heads] 4 key/value heads do not divide 6 heads; hint: use 3 or 6");
  EXPECT_EQ(say({.width = 64, .heads = 4, .kv_heads = 2}),
            "[model.kv_heads] gpt2 has as many key/value heads as heads: 4 and not 2; hint: leave it out, or use "
            "family 'llama'");
  EXPECT_EQ(say({.width = 64, .heads = 4, .head_dim = 8}),
            "[model.head_dim] gpt2's heads fill its width: 4 heads of 8 are not 64; hint: leave it out, or use family "
            "'llama'");
  EXPECT_EQ(say({.layers = 0}), "[model.layers] layers is 0; hint: use a number from 1 to 10000");
  EXPECT_EQ(say({.vocab = -5}), "[model.vocab] vocab is -5; hint: use a number from 1 to 67108864");
  EXPECT_EQ(say({.heads = 0}), "[model.heads] heads is 0; hint: use a number from 1 to 65536");
  EXPECT_EQ(say({.width = -128}), "[model.width] width is -128; hint: use a number from 1 to 1048576");
  EXPECT_EQ(say({.dropout = 1}), "[model.dropout] dropout is 1; hint: use a rate from 0 up to, not including, 1");
  EXPECT_EQ(say({.norm_eps = 0}), "[model.norm_eps] norm_eps is 0; hint: use a positive number");
  EXPECT_EQ(say({.experts = 8}),
            "[model.experts] experts is 8, and family 'gpt2' has no experts; hint: leave it out, or "
            "use family 'mixtral'");
  EXPECT_EQ(say({.family = "llama", .balance = 0.5}),
            "[model.balance] balance is 0.5, and family 'llama' has no experts; hint: leave it out, or use family "
            "'mixtral'");
  EXPECT_EQ(say({.top_k = 3}),
            "[model.top_k] top_k is 3, and family 'gpt2' has no experts; hint: leave it out, or use family 'mixtral'");
  EXPECT_EQ(say({.family = "llama", .balance_pooled = true}),
            "[model.balance_pooled] balance_pooled is true, and family 'llama' has no experts; hint: leave it out, or "
            "use family 'mixtral'");
  EXPECT_EQ(say({.rope_base = 5e5}),
            "[model.rope_base] rope_base is 500000, and gpt2 has no rotary positions; hint: leave it out, or use "
            "family 'llama'");
  EXPECT_EQ(say({.family = "mlp",
                 .attention_dropout = 0.1,
                 .rope_base = 5e5,
                 .rope_scaling = {.kind = RopeScaling::Kind::linear, .factor = 2},
                 .qk_norm = true}),
            "[model.rope_base] family 'mlp' has no attention, and no rope_base; hint: leave it out, or use family "
            "'llama'\n"
            "[model.rope_scaling] family 'mlp' has no attention, and no rope_scaling; hint: leave it out, or use "
            "family 'llama'\n"
            "[model.qk_norm] family 'mlp' has no attention, and no qk_norm; hint: leave it out, or use family "
            "'llama'\n"
            "[model.attention_dropout] family 'mlp' has no attention, and no attention_dropout; hint: leave it out, "
            "or use family 'llama'");
  EXPECT_EQ(say({.family = "mixtral", .experts = 4, .top_k = 5}),
            "[model.top_k] top_k is 5 of 4 experts; hint: use a number from 1 to 4");
  EXPECT_EQ(say({.family = "mixtral", .experts = -1}),
            "[model.experts] experts is -1; hint: use a number from 1 to 65536, e.g. 8\n"
            "[model.top_k] top_k is 2 of -1 experts; hint: use a number from 1 to 1");
  EXPECT_EQ(
      say({.family = "mixtral", .capacity = -1, .router_z = NAN}),
      "[model.capacity] capacity is -1; hint: use 0 or more\n[model.router_z] router_z is nan; hint: use 0 or more");
  EXPECT_EQ(say({.family = "llama", .width = 60, .heads = 4}),
            "[model.head_dim] head_dim is 15; hint: use an even number: rotary positions turn pairs");
  std::vector<std::string> names;
  for (const Family* f : families()) names.emplace_back(f->name);
  EXPECT_EQ(
      say({.family = "lama"}),
      "[model.family] there is no family 'lama'; hint: did you mean 'llama'? the families are " + join(names, ", "));
  EXPECT_EQ(say({.family = "llama",
                 .rope_scaling = {.kind = RopeScaling::Kind::llama3, .factor = 0.5, .low_freq = 4, .high_freq = 2}}),
            "[model.rope_scaling] factor is 0.5; hint: use a factor of at least 1\n"
            "[model.rope_scaling] low_freq is 4 and high_freq 2; hint: use 0 < low_freq < high_freq");
}

TEST(ModelConfig, AllFaultsComeAtOnce) {
  const std::vector<Fault> faults =
      validate(complete({.layers = 0, .width = 100, .heads = 3, .context = 0, .dropout = 2, .qk_norm = true}));
  std::vector<std::string> where;
  for (const Fault& f : faults) where.push_back(f.where);
  EXPECT_EQ(where, (std::vector<std::string>{"model.layers", "model.context", "model.heads", "model.dropout",
                                             "model.qk_norm"}));
}

TEST(ModelConfig, ActivationNamesRoundTrip) {
  for (const Activation a : {Activation::gelu, Activation::gelu_erf, Activation::relu, Activation::silu})
    EXPECT_EQ(activation_named(name_of(a)), a);
  EXPECT_EQ(activation_named("swiglu"), std::nullopt);
}

}  // namespace
}  // namespace stretto
