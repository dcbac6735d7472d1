// How long tracing, differentiating, cutting, fusing and planning take, by size of the model.
//   build/bench/compile
#include <fmt/format.h>

#include <chrono>

#include "stretto/base/text.h"
#include "stretto/models/family.h"
#include "stretto/stretto.h"

using namespace stretto;

int main() {
  std::vector<std::vector<std::string>> rows{
      {"layers", "microbatches", "seconds", "graph nodes", "instructions", "planned/bound"}};
  for (const auto& [layers, microbatches] : {std::pair{12, 4}, {24, 4}, {48, 4}, {96, 4}, {96, 32}}) {
    const auto start = std::chrono::steady_clock::now();
    const Compiled c =
        compile(make_model({.family = "gpt2", .layers = layers, .width = 256, .heads = 4, .context = 64}, 32), adamw(),
                {.microbatches = microbatches, .clip = 1});
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const ActorProgram& a = c.program->actors[0];
    rows.push_back(
        {fmt::format("{}", layers), fmt::format("{}", microbatches), fmt::format("{:.3f}", s),
         fmt::format("{}", c.graph.nodes.size()), fmt::format("{}", a.code.size()),
         fmt::format("{:.3f}", double(a.bytes[std::size_t(Arena::activations)]) / double(a.activation_bound))});
  }
  fmt::print("{}", table(rows));
}
