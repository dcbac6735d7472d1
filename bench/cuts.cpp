// What it costs to cut long matrix products, so that messages move on between the pieces: into pieces
// of about ten and of about two milliseconds; the products of the reference step and of a layer four times as
// wide, whole and cut in turns, one thread.
//
//   build/bench/cuts [rounds]
#include "rounds.h"
#include "stretto/base/clock.h"
#include "stretto/kernels/cpu/blas.h"
#include "stretto/kernels/cpu/gemm_tiles.h"

using namespace stretto;

namespace {

struct Product {
  const char* what;
  i64 m, n, k;
  bool turn_a, turn_b;
};

constexpr Product products[] = {
    {"attention in, F", 1024, 1536, 512, false, false},
    {"attention in, I", 1024, 512, 1536, false, true},
    {"attention in, W", 512, 1536, 1024, true, false},
    {"up, F", 1024, 2048, 512, false, false},
    {"up, I", 1024, 512, 2048, false, true},
    {"up, W", 512, 2048, 1024, true, false},
    {"down, W", 2048, 512, 1024, true, false},
    {"logits, F", 1024, 8192, 512, false, false},
    {"logits, I", 1024, 512, 8192, false, true},
    {"logits, W", 512, 8192, 1024, true, false},
    {"width 2048, up, F", 1024, 8192, 2048, false, false},
    {"width 2048, up, W", 2048, 8192, 1024, true, false},
};

struct Measured {
  std::vector<double> whole, cut, longest;  // seconds, per round
  int pieces = 0;
};

Measured measure(const Product& p, const GemmTiles& tiles, int rounds) {
  std::vector<float> a(std::size_t(p.m * p.k)), b(std::size_t(p.k * p.n)), c(std::size_t(p.m * p.n));
  std::uint32_t x = 1;
  for (std::vector<float>* v : {&a, &b})
    for (float& e : *v) e = float((x = x * 1664525u + 1013904223u) >> 8) / float(1 << 24) - 0.5f;
  const i64 lda = p.turn_a ? p.m : p.k, ldb = p.turn_b ? p.k : p.n;
  const auto piece = [&](const GemmTile& t) {
    const float* from_a = a.data() + (p.turn_a ? t.k0 * lda + t.m0 : t.m0 * lda + t.k0);
    const float* from_b = b.data() + (p.turn_b ? t.n0 * ldb + t.k0 : t.k0 * ldb + t.n0);
    gemm(p.turn_a, p.turn_b, t.m, t.n, t.k, 1.0f, from_a, lda, from_b, ldb, t.k0 > 0 ? 1.0f : 0.0f,
         c.data() + t.m0 * p.n + t.n0, p.n);
  };
  Measured r;
  double longest = 0;
  const auto once = [&] {
    const double start = now();
    piece({0, p.m, 0, p.n, 0, p.k});
    return now() - start;
  };
  const auto in_pieces = [&] {
    const double begin = now();
    double last = begin;
    r.pieces = 0;
    for_gemm_tiles(tiles, p.m, p.n, p.k, [&](const GemmTile& t) {
      piece(t);
      const double end = now();
      longest = std::max(longest, end - last);
      last = end;
      ++r.pieces;
    });
    return last - begin;
  };
  once(), in_pieces();
  for (int round = 0; round < rounds; ++round) {
    longest = 0;
    const double w1 = once(), c1 = in_pieces(), c2 = in_pieces(), w2 = once();  // back again: the machine drifts
    r.whole.push_back((w1 + w2) / 2);
    r.cut.push_back((c1 + c2) / 2);
    r.longest.push_back(longest);
  }
  return r;
}

std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> r;
  for (std::size_t i = 0; i < a.size(); ++i) r.push_back(a[i] / b[i]);
  return r;
}

void table(const char* title, double ms, int rounds) {
  fmt::print("{}\n{:<18} {:>15} {:>9} {:>14} {:>7} {:>11}  {}\n", title, "product", "m x n x k", "whole ms", "piece",
             "pieces", "longest ms", "cut / whole");
  std::vector<double> whole(std::size_t(rounds), 0), cut(std::size_t(rounds), 0);
  for (const Product& p : products) {
    const GemmTiles t = gemm_tiles(p.m, p.n, p.k, sizeof(float), ms);
    const Measured r = measure(p, t, rounds);
    for (std::size_t i = 0; i < whole.size(); ++i) whole[i] += r.whole[i], cut[i] += r.cut[i];
    fmt::print("{:<18} {:>15} {:>9.1f} {:>14} {:>7} {:>11.1f}  {}\n", p.what, fmt::format("{}x{}x{}", p.m, p.n, p.k),
               median(r.whole) * 1e3, fmt::format("{}x{}x{}", t.m, t.n, t.k), r.pieces, median(r.longest) * 1e3,
               interval(ratios(r.cut, r.whole)));
    std::fflush(stdout);
  }
  fmt::print("all: {}\n\n", interval(ratios(cut, whole)));
}

}  // namespace

int main(int count, char** words) try {
  openblas_set_num_threads(1);
  const int rounds = count > 1 ? std::stoi(words[1]) : 9;
  table("train.poll = 10", 10, rounds);
  table("train.poll = 2", 2, rounds);
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
