// Every element of a product has the bits of one chain of std::fma per block of what is summed, in every form, wherever
// rows lie and however the product is cut.
#include "stretto/kernels/cpu/multiply.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "stretto/kernels/cpu/product_forms.h"

namespace stretto {
namespace {

struct ProductCase {
  ProductSize size;
  bool summed_left = false, summed_right = false, add = false;
  bool gathered_left = false, gathered_right = false, scattered = false;
  i64 parts = 1;

  std::string str() const {
    const auto [m, n, k] = size;
    std::string s = std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) + " in " +
                    std::to_string(parts) + ":";
    for (const bool x : {summed_left, summed_right, add, gathered_left, gathered_right, scattered})
      s += x ? " 1" : " 0";
    return s;
  }
};

template <class T>
class TriedProduct {
 public:
  explicit TriedProduct(const ProductCase& c, u64 seed) : c_(c), random_(seed) {
    const auto [m, n, k] = c.size;
    a_ = lines(c.summed_left ? k : m, c.summed_left ? m : k, c.gathered_left);
    b_ = lines(c.summed_right ? k : n, c.summed_right ? n : k, c.gathered_right);
    out_ = lines(m, n, c.scattered);
    expect();
  }

  void check(const ProductForm<T>& form) {
    std::vector<T> made = out_.data;
    for (i64 i = 0; i < c_.parts; ++i) multiply(form, part_of(product(made), i, c_.parts));
    // What lies between the rows stays, and zeros have their signs.
    EXPECT_EQ(std::memcmp(made.data(), expected_.data(), made.size() * sizeof(T)), 0) << form.name;
  }

 private:
  struct Lines {
    std::vector<T> data;  // ends with the last line
    std::vector<i64> at;
    i64 step;
    bool gathered;
    T& operator()(i64 line, i64 i) { return data[std::size_t(at[std::size_t(line)] + i)]; }
  };
  MatrixProduct<T> product(std::vector<T>& made) const {
    const auto operand = [](const Lines& l, bool summed) {
      return ProductLines<T>{l.data.data(), l.gathered ? l.at.data() : nullptr, l.step, summed};
    };
    return {c_.size,
            operand(a_, c_.summed_left),
            operand(b_, c_.summed_right),
            {made.data(), out_.gathered ? out_.at.data() : nullptr, out_.step, c_.add}};
  }
  Lines lines(i64 count, i64 length, bool gathered) {
    Lines l{.step = length + i64(random_() % 3), .gathered = gathered};
    l.at.resize(std::size_t(count));
    for (i64 i = 0; i < count; ++i) l.at[std::size_t(i)] = i * l.step;
    if (gathered) std::shuffle(l.at.begin(), l.at.end(), random_);
    l.data.resize(std::size_t(count == 0 ? 0 : (count - 1) * l.step + length));
    for (T& x : l.data) x = T(i64(random_() % 2001) - 1000) * T(1e-3);
    return l;
  }
  void expect() {
    const auto [m, n, k] = c_.size;
    Lines made = out_;
    for (i64 i = 0; i < m; ++i)
      for (i64 j = 0; j < n; ++j) {
        T& to = made(i, j);
        if (k == 0 && !c_.add) to = 0;
        for (i64 k0 = 0; k0 < k; k0 += 256) {
          T sum = 0;
          for (i64 l = k0; l < std::min<i64>(k, k0 + 256); ++l)
            sum = std::fma(c_.summed_left ? a_(l, i) : a_(i, l), c_.summed_right ? b_(l, j) : b_(j, l), sum);
          to = c_.add || k0 > 0 ? to + sum : sum;
        }
      }
    expected_ = made.data;
  }

  ProductCase c_;
  std::mt19937_64 random_;
  Lines a_, b_, out_;
  std::vector<T> expected_;
};

template <class T>
void check_product_forms(const ProductCase& c, u64 seed) {
  SCOPED_TRACE(c.str());
  TriedProduct<T> tried(c, seed);
  const Processor here = this_processor();
  for (const ProductForm<T>& form : product_forms<T>())
    if (form.runs(here)) tried.check(form);
}

TEST(Multiply, HasTheBitsOfOneChainPerBlockInEveryForm) {
  std::mt19937 random(5);
  const auto between = [&](i64 a, i64 b) { return a + i64(random() % u64(b - a + 1)); };
  const auto maybe = [&] { return random() % 2 == 1; };
  for (u64 round = 0; round < 120 && !testing::Test::HasFailure(); ++round) {
    const ProductCase c{.size = {between(1, round % 3 ? 40 : 100), between(1, round % 2 ? 40 : 140), between(0, 600)},
                        .summed_left = maybe(),
                        .summed_right = maybe(),
                        .add = maybe(),
                        .gathered_left = maybe(),
                        .gathered_right = maybe(),
                        .scattered = maybe(),
                        .parts = between(1, 9)};
    check_product_forms<float>(c, round);
    check_product_forms<double>(c, round);
  }
}

// More rows and more columns than a buffer has room for.
TEST(Multiply, HasThemWhereItIsCut) {
  for (const bool turned : {false, true}) {
    check_product_forms<float>({.size = {1700, 3, 300}, .summed_left = turned, .add = true}, 1);
    check_product_forms<float>({.size = {5, 1111, 300}, .summed_right = turned, .add = turned}, 2);
    check_product_forms<double>({.size = {900, 5, 270}, .summed_left = turned}, 3);
    check_product_forms<double>({.size = {3, 600, 513}, .summed_right = turned, .scattered = true}, 4);
  }
}

// Parts are blocks that cover the result, each place once, and are as large as each other where there is enough.
TEST(Multiply, PartsCoverTheResultOnce) {
  for (const ProductSize size : {ProductSize{1, 1, 1}, {100, 3, 5}, {1024, 1536, 512}, {37, 4096, 8}, {0, 7, 3}})
    for (const i64 count : {1, 2, 3, 5, 8, 12}) {
      std::vector<int> seen(std::size_t(size.m * size.n));
      i64 most = 0;
      for (i64 i = 0; i < count; ++i) {
        const ProductBlock b = block_of_part(size, false, i, count);
        most = std::max(most, b.rows * b.columns);
        for (i64 r = b.row; r < b.row + b.rows; ++r)
          for (i64 c = b.column; c < b.column + b.columns; ++c) ++seen[std::size_t(r * size.n + c)];
        EXPECT_EQ(block_of_part(size, true, i, count).rows, size.m);
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), size.m * size.n) << size.m << " in " << count;
      if (size.m == 1024) {
        EXPECT_LE(double(most * count), 1.05 * double(size.m * size.n));
      }
    }
}

// Rows that go to one place are added one after the other.
TEST(Multiply, AddsRowsOfOnePlaceInTheirOrder) {
  constexpr i64 rows = 5, n = 7, k = 3;
  std::vector<float> a(rows * k), b(k * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = float(i) * 0.37f - 2;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = float(i) * 0.21f - 3;
  const std::vector<i64> to{n, 0, n, n, 0};
  std::vector<float> out(2 * n, 0.5f), expected = out;
  const MatrixProduct<float> product{
      {rows, n, k}, {a.data(), nullptr, k}, {b.data(), nullptr, n, true}, {out.data(), to.data(), 0, true}};
  for (i64 i = 0; i < 3; ++i) multiply(part_of(product, i, 3));
  for (i64 i = 0; i < rows; ++i)
    for (i64 j = 0; j < n; ++j) {
      float sum = 0;
      for (i64 l = 0; l < k; ++l) sum = std::fma(a[std::size_t(i * k + l)], b[std::size_t(l * n + j)], sum);
      expected[std::size_t(to[std::size_t(i)] + j)] += sum;
    }
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace stretto
