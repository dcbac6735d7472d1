// What a CUDA device costs beside its kernels, on any machine: our own part of a launch, with a driver whose functions
// do nothing; and, where NVRTC is, what it takes to compile a run's kernels and to read them again.
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "rounds.h"
#include "stretto/base/clock.h"
#include "stretto/kernels/cuda/api.h"
#include "stretto/models/family.h"
#include "stretto/runtime/engine.h"
#include "stretto/stretto.h"

using namespace stretto;

namespace {

std::atomic<long> launches, words, compiled_kernels;

// A driver and a cublasLt that agree to everything.
CudaApi nothing() {
  CudaApi a;
  CudaDriver& d = a.driver;
  d.init = [](unsigned) { return 0; };
  d.version = [](int* v) { return *v = 13000, 0; };
  d.device_count = [](int* n) { return *n = 8, 0; };
  d.device = [](int* device, int n) { return *device = n, 0; };
  d.device_name = [](char* name, int, int) { return name[0] = 0, 0; };
  d.attribute = [](int* v, int what, int) { return *v = what == cuda_number::capability_major ? 8 : 0, 0; };
  d.retain = [](CudaContext* c, int device) {
    return *c = reinterpret_cast<CudaContext>(std::uintptr_t(device) + 1), 0;
  };
  d.use = [](CudaContext) { return 0; };
  d.can_reach = [](int* yes, int, int) { return *yes = 1, 0; };
  d.reach = [](CudaContext, unsigned) { return 0; };
  d.memory = [](std::size_t* free, std::size_t* total) { return *free = *total = std::size_t(80) << 30, 0; };
  d.allocate = [](CudaAddress* at, std::size_t bytes) {
    static std::atomic<CudaAddress> next = CudaAddress(1) << 40;
    return *at = next.fetch_add((bytes + 511) / 512 * 512), 0;
  };
  d.free = [](CudaAddress) { return 0; };
  d.fill = [](CudaAddress, unsigned char, std::size_t) { return 0; };
  d.to_device = [](CudaAddress, const void*, std::size_t) { return 0; };
  d.to_host = [](void* to, CudaAddress, std::size_t n) { return std::memset(to, 0, n), 0; };
  d.copy = [](CudaAddress, CudaAddress, std::size_t, CudaStream) { return 0; };
  d.host_memory = [](void** at, std::size_t n, unsigned) { return *at = std::calloc(n, 1), 0; };
  d.free_host_memory = [](void* at) { return std::free(at), 0; };
  d.write_word = [](CudaStream, CudaAddress, std::uint32_t, unsigned) { return ++words, 0; };
  d.wait_for_word = [](CudaStream, CudaAddress, std::uint32_t, unsigned) { return ++words, 0; };
  d.stream = [](CudaStream* s, unsigned) { return *s = reinterpret_cast<CudaStream>(1), 0; };
  d.end_stream = [](CudaStream) { return 0; };
  d.synchronize = [](CudaStream) { return 0; };
  d.event = [](CudaEvent* e, unsigned) { return *e = reinterpret_cast<CudaEvent>(1), 0; };
  d.end_event = [](CudaEvent) { return 0; };
  d.record = [](CudaEvent, CudaStream) { return 0; };
  d.wait = [](CudaStream, CudaEvent, unsigned) { return 0; };
  d.elapsed = [](float* ms, CudaEvent, CudaEvent) { return *ms = 0, 0; };
  d.load = [](CudaModule* m, const void*) { return *m = reinterpret_cast<CudaModule>(1), 0; };
  d.unload = [](CudaModule) { return 0; };
  d.function = [](CudaFunction* f, CudaModule, const char*) { return *f = reinterpret_cast<CudaFunction>(1), 0; };
  d.function_attribute = [](int* v, int, CudaFunction) { return *v = 32, 0; };
  d.launch = [](CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CudaStream, void**,
                void**) { return ++launches, 0; };
  d.error_text = [](int, const char** text) { return *text = "", 0; };
  CudaProducts& p = a.products;
  p.create = [](CublasHandle* h) { return *h = reinterpret_cast<CublasHandle>(1), 0; };
  p.destroy = [](CublasHandle) { return 0; };
  p.product = [](CublasProduct* x, int, int) { return *x = reinterpret_cast<CublasProduct>(1), 0; };
  p.set_product = [](CublasProduct, int, const void*, std::size_t) { return 0; };
  p.end_product = [](CublasProduct) { return 0; };
  p.matrix = [](CublasMatrix* m, int, std::uint64_t, std::uint64_t, std::int64_t) {
    return *m = reinterpret_cast<CublasMatrix>(1), 0;
  };
  p.set_matrix = [](CublasMatrix, int, const void*, std::size_t) { return 0; };
  p.end_matrix = [](CublasMatrix) { return 0; };
  p.preference = [](CublasPreference* x) { return *x = reinterpret_cast<CublasPreference>(1), 0; };
  p.set_preference = [](CublasPreference, int, const void*, std::size_t) { return 0; };
  p.end_preference = [](CublasPreference) { return 0; };
  p.choose = [](CublasHandle, CublasProduct, CublasMatrix, CublasMatrix, CublasMatrix, CublasMatrix, CublasPreference,
                int, CublasChoice* choices, int* found) { return choices[0] = {}, *found = 1, 0; };
  p.multiply = [](CublasHandle, CublasProduct, const void*, const void*, CublasMatrix, const void*, CublasMatrix,
                  const void*, const void*, CublasMatrix, void*, CublasMatrix, const CublasAlgorithm*, void*,
                  std::size_t, CudaStream) { return ++launches, 0; };
  CudaCompiler& c = a.compiler;
  c.version = [](int* major, int* minor) { return *major = 13, *minor = 0, 0; };
  c.create = [](CudaProgram* x, const char*, const char*, int, const char* const*, const char* const*) {
    return *x = reinterpret_cast<CudaProgram>(1), 0;
  };
  c.compile = [](CudaProgram, int, const char* const*) { return 0; };
  c.log_size = [](CudaProgram, std::size_t* n) { return *n = 0, 0; };
  c.log = [](CudaProgram, char*) { return 0; };
  c.image_size = [](CudaProgram, std::size_t* n) { return *n = 1, 0; };
  c.image = [](CudaProgram, char* image) { return image[0] = 0, 0; };
  c.destroy = [](CudaProgram* x) { return *x = nullptr, 0; };
  return a;
}

Compiled gpt2(const Parallel& parallel) {
  const ModelConfig model{.layers = 4, .width = 256, .heads = 4, .context = 128, .vocab = 1024};
  return compile(make_model(model, 16), adamw({}), {.microbatches = 8, .clip = 1}, parallel);
}

void launching(const char* name, const Parallel& parallel) {
  const CudaApi api = nothing();
  use_cuda_api(&api);
  const Compiled c = gpt2(parallel);
  Engine e(c.program, {.seed = 1, .run = {.device = DeviceKind::cuda, .pin = false}});
  e.run(1);
  launches = words = 0;
  e.run(2);
  const long each = launches, others = words;
  std::vector<double> seconds;
  for (int step = 3; step < 60; ++step) {
    const double start = now();
    e.run(step);
    seconds.push_back(now() - start);
  }
  fmt::print("{:<20} {:>6} launches, {:>6} words a step: {:.3f} us of ours a launch (best {:.3f})\n", name, each,
             others, 1e6 * median(seconds) / double(each), 1e6 * *std::ranges::min_element(seconds) / double(each));
  use_cuda_api(nullptr);
}

void compiling() {
  CudaApi api = nothing();
  try {
    find_library(api.compiler, {"libnvrtc.so.13", "libnvrtc.so.12"}, cuda_folders());
  } catch (const Error& e) {
    return fmt::print("kernels are not compiled: {}\n", e.what());
  }
  static const CudaCompiler found = api.compiler;
  api.compiler.compile = [](CudaProgram p, int n, const char* const* o) {
    return ++compiled_kernels, found.compile(p, n, o);
  };
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("stretto-bench-cuda-{}", int(now()));
  api.cache = folder / "first";
  use_cuda_api(&api);
  const Compiled c = gpt2({});
  const auto start = [&] {
    const std::clock_t from = std::clock();
    Engine e(c.program, {.seed = 1, .run = {.device = DeviceKind::cuda, .pin = false}});
    return double(std::clock() - from) / CLOCKS_PER_SEC;
  };
  const double first = start();
  std::filesystem::copy(api.cache, folder / "second");
  api.cache = folder / "second";  // read as by another process
  const double second = start();
  fmt::print("first start          {:>6} kernels, {:.2f} s of a processor: {:.1f} ms each\n", compiled_kernels.load(),
             first, 1e3 * first / double(compiled_kernels));
  fmt::print("from disk            {:.3f} s\n", second);
  std::filesystem::remove_all(folder);
  use_cuda_api(nullptr);
}

}  // namespace

int main() {
  launching("one rank", {});
  launching("pipe=2 zb-v", {.mesh = {{"pipe", 2}}, .schedule = "zb-v"});
  launching("data=2 zero=3", {.names = {.data = 2, .zero = 3}});
  compiling();
}
