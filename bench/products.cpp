// Matrix products of the steps of presets, one thread, in turns: this library's, OpenBLAS's, and those of every library
// with a cblas_sgemm or dnnl_sgemm whose file is named. The best of some rounds, in GFLOP/s of processor time, so that
// programs beside it disturb less; and in parts of what the processor multiplies and adds at without any memory.
//
//   build/bench/products [rounds] [all] [LIBRARY.so ...]
//   STRETTO_KERNELS=avx2 OPENBLAS_CORETYPE=Haswell build/bench/products 10 libdnnl.so.2
//   MKL_THREADING_LAYER=SEQUENTIAL build/bench/products 10 .../libmkl_rt.so.2
#include <cblas.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/kernels/cpu/multiply.h"
#include "stretto/kernels/cpu/product_forms.h"

using namespace stretto;

namespace {

struct Shape {
  std::string of;
  int times;  // in a microbatch of the reference step
  i64 m, n, k;
  bool turned_a, turned_b;
};

// F: the product; I: the gradient of its input; W: that of its weights.
void add_layer(std::vector<Shape>& all, const std::string& of, int times, i64 tokens, i64 in, i64 out) {
  all.push_back({of + ", F", times, tokens, out, in, false, false});
  all.push_back({of + ", I", times, tokens, in, out, false, true});
  all.push_back({of + ", W", times, in, out, tokens, true, false});
}

std::vector<Shape> shapes_of_reference() {
  std::vector<Shape> all;
  add_layer(all, "attention in", 4, 1024, 512, 1536);
  add_layer(all, "attention out", 4, 1024, 512, 512);
  add_layer(all, "up", 4, 1024, 512, 2048);
  add_layer(all, "down", 4, 1024, 2048, 512);
  add_layer(all, "logits", 1, 1024, 512, 8192);
  return all;
}
std::vector<Shape> other_shapes() {
  std::vector<Shape> all;
  add_layer(all, "width 256, in", 0, 1024, 256, 768);
  add_layer(all, "width 256, up", 0, 1024, 256, 1024);
  add_layer(all, "llama, up", 0, 512, 2048, 5632);
  add_layer(all, "tensor=2, in", 0, 1024, 512, 768);
  add_layer(all, "tensor=2, down", 0, 1024, 1024, 512);
  add_layer(all, "an expert's rows", 0, 96, 512, 1024);
  add_layer(all, "few rows", 0, 37, 512, 1024);
  add_layer(all, "a head", 0, 256, 64, 256);
  add_layer(all, "small", 0, 64, 64, 64);
  add_layer(all, "odd", 0, 333, 777, 555);
  all.push_back({"decode", 0, 1, 2048, 512, false, false});
  all.push_back({"decode 8", 0, 8, 2048, 512, false, false});
  all.push_back({"decode, turned", 0, 1, 8192, 512, false, true});
  return all;
}

double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

double peak() {  // of the best tile, with all it needs in the first cache
  const ProductForm<float>& f = product_form<float>();
  constexpr i64 k = 96;
  alignas(64) static float a[most_tile_rows * k], b[32 * (k + 16)], c[most_tile_rows * 32];
  double best = INFINITY;
  for (int r = 0; r < 100; ++r) {
    const double start = now();
    for (int i = 0; i < 200; ++i) f.tiles[1][f.rows - 1](k, a, b, c, f.columns(), false);
    best = std::min(best, now() - start);
  }
  return 200 * 2.0 * double(k * f.rows * f.columns()) / best;
}

using Sgemm = std::function<void(const Shape&, const float*, const float*, float*)>;
struct Library {
  std::string name;
  Sgemm multiply;
};
i64 line_a(const Shape& s) { return s.turned_a ? s.m : s.k; }
i64 line_b(const Shape& s) { return s.turned_b ? s.k : s.n; }

template <class F>
Sgemm through_cblas(F f) {
  return [f](const Shape& s, const float* a, const float* b, float* c) {
    f(CblasRowMajor, s.turned_a ? CblasTrans : CblasNoTrans, s.turned_b ? CblasTrans : CblasNoTrans, int(s.m), int(s.n),
      int(s.k), 1, a, int(line_a(s)), b, int(line_b(s)), 0, c, int(s.n));
  };
}

Library load(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (!library) throw Error("products", "{}", dlerror()).hint("name the file of a library");
  for (const char* name : {"MKL_Set_Num_Threads", "openblas_set_num_threads", "omp_set_num_threads"})
    if (void* const set = dlsym(library, name)) reinterpret_cast<void (*)(int)>(set)(1);
  const std::string name = path.substr(path.rfind('/') + 1);
  if (void* const f = dlsym(library, "cblas_sgemm"))
    return {name, through_cblas(reinterpret_cast<decltype(&cblas_sgemm)>(f))};
  using Dnnl = int (*)(char, char, i64, i64, i64, float, const float*, i64, const float*, i64, float, float*, i64);
  if (void* const f = dlsym(library, "dnnl_sgemm"))
    return {name, [f](const Shape& s, const float* a, const float* b, float* c) {
              reinterpret_cast<Dnnl>(f)(s.turned_a ? 'T' : 'N', s.turned_b ? 'T' : 'N', s.m, s.n, s.k, 1, a, line_a(s),
                                        b, line_b(s), 0, c, s.n);
            }};
  throw Error("products", "'{}' has neither cblas_sgemm nor dnnl_sgemm", path);
}

std::vector<float> some(i64 n) {
  static std::minstd_rand random(1);
  std::vector<float> all(std::size_t(n), 0.f);
  for (float& x : all) x = float(random() % 2001) * 1e-3f - 1;
  return all;
}

// Seconds of each library, the best of all rounds. A small product is made often enough to be seen.
std::vector<double> measure(const Shape& s, const std::vector<Library>& libraries, int rounds) {
  const std::vector<float> a = some(s.m * s.k), b = some(s.k * s.n);
  std::vector<float> c(std::size_t(s.m * s.n));
  const int often = int(std::max(1.0, 2e7 / (2.0 * double(s.m) * double(s.n) * double(s.k))));
  std::vector<double> best(libraries.size(), INFINITY);
  for (int r = 0; r < rounds; ++r)
    for (std::size_t i = 0; i < libraries.size(); ++i) {
      const double start = now();
      for (int again = 0; again < often; ++again) libraries[i].multiply(s, a.data(), b.data(), c.data());
      best[i] = std::min(best[i], (now() - start) / often);
    }
  return best;
}

void print_table(const std::vector<Shape>& shapes, const std::vector<Library>& libraries, int rounds) {
  std::vector<std::vector<std::string>> lines{{"product", "m x n x k"}};
  for (const Library& l : libraries) lines[0].push_back(l.name);
  lines[0].push_back("of peak");
  std::vector<double> together(libraries.size());
  double flops = 0;
  const double top = peak();
  for (const Shape& s : shapes) {
    const std::vector<double> seconds = measure(s, libraries, rounds);
    const double each = 2.0 * double(s.m) * double(s.n) * double(s.k);
    lines.push_back({s.of, fmt::format("{}x{}x{}", s.m, s.n, s.k)});
    for (std::size_t i = 0; i < libraries.size(); ++i) {
      lines.back().push_back(fmt::format("{:.1f}", each / seconds[i] / 1e9));
      together[i] += s.times * seconds[i];
    }
    lines.back().push_back(fmt::format("{:.2f}", each / seconds[0] / top));
    flops += s.times * each;
  }
  if (flops > 0) {
    lines.push_back({"together", ""});
    for (const double t : together) lines.back().push_back(fmt::format("{:.1f}", flops / t / 1e9));
    lines.back().push_back(fmt::format("{:.2f}", flops / together[0] / top));
  }
  fmt::print("peak {:.1f} ({}), OpenBLAS as {}\n{}\n", top / 1e9, product_form<float>().name, openblas_get_corename(),
             table(lines));
}

}  // namespace

int main(int count, char** args) try {
  openblas_set_num_threads(1);
  std::vector<Library> libraries{
      {"own", [](const Shape& s, const float* a, const float* b,
                 float* c) { gemm(s.turned_a, s.turned_b, s.m, s.n, s.k, a, line_a(s), b, line_b(s), false, c, s.n); }},
      {"OpenBLAS", through_cblas(cblas_sgemm)}};
  int rounds = 10;
  bool others = false;
  for (int i = 1; i < count; ++i) {
    const std::string arg = args[i];
    if (arg == "all")
      others = true;
    else if (arg.find_first_not_of("0123456789") == std::string::npos)
      rounds = std::max(1, std::atoi(args[i]));
    else
      libraries.push_back(load(arg));
  }
  print_table(shapes_of_reference(), libraries, rounds);
  if (others) print_table(other_shapes(), libraries, rounds);
} catch (const Error& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
