// How long tracing, differentiating, cutting, fusing and planning take, by size of the model.
//   build/bench/compile
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "stretto/base/text.h"
#include "stretto/models/family.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

rusage used() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return u;
}
double of_cpu(const rusage& u) { return double(u.ru_utime.tv_sec) + 1e-6 * double(u.ru_utime.tv_usec); }

}  // namespace

int main() {
  std::vector<std::vector<std::string>> rows{{"layers", "mesh", "microbatches", "seconds", "of the CPU", "graph nodes",
                                              "instructions", "planned/bound", "memory so far"}};
  struct Case {
    int layers, pipe, microbatches, data = 1, tensor = 1;
  };
  for (const auto& [layers, pipe, microbatches, data, tensor] : {Case{12, 1, 4},
                                                                 {24, 1, 4},
                                                                 {48, 1, 4},
                                                                 {96, 1, 4},
                                                                 {96, 1, 32},
                                                                 {96, 8, 64},
                                                                 {96, 64, 512},
                                                                 {96, 16, 64, 8, 8}}) {
    const auto start = std::chrono::steady_clock::now();
    const double cpu = of_cpu(used());
    const Compiled c = compile(
        make_model({.family = "gpt2", .layers = layers, .width = 256, .heads = 8, .context = 64, .vocab = 50304},
                   8 * microbatches),
        adamw(), {.microbatches = microbatches, .clip = 1},
        {.mesh = {{"pipe", pipe}}, .names = {.data = data, .tensor = tensor}, .schedule = "1f1b"});
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    double instructions = 0, most = 0;
    for (const ActorProgram& a : c.program->actors) {
      instructions += double(a.code.size());
      most = std::max(most, double(a.bytes[Arena::activations]) / double(a.activation_bound));
    }
    std::string mesh = fmt::format("pipe={}", pipe);
    if (data * tensor > 1) mesh += fmt::format(" data={} tensor={}", data, tensor);
    const rusage usage = used();
    rows.push_back({fmt::format("{}", layers), mesh, fmt::format("{}", microbatches), fmt::format("{:.3f}", s),
                    fmt::format("{:.3f}", of_cpu(usage) - cpu), fmt::format("{}", c.graph.nodes.size()),
                    fmt::format("{:.0f}", instructions), fmt::format("{:.3f}", most),
                    human_bytes(double(usage.ru_maxrss) * 1024)});
  }
  fmt::print("{}", table(rows));
}
