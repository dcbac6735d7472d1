#include "stretto/kernels/cuda/share.h"

#include <algorithm>
#include <limits>

#include "stretto/base/error.h"
#include "stretto/ir/tree_sum.h"

namespace stretto {
namespace {

constexpr i64 most_in_box = std::numeric_limits<std::int32_t>::max();  // of a box that is not one run
constexpr i64 elements_each = 8, most_blocks = 64;  // of a thread; that keep to themselves what others compute with

// As `Share` of the text: 64-bit numbers, then sizes and strides of every dim.
std::vector<std::byte> table_of(const CollectiveShape& s, int member) {
  std::vector<i64> numbers{member, s.box(), s.box_valid(member), s.in_step, s.out_step};
  if (s.rows) numbers.insert(numbers.end(), {s.rows->elements, s.result()});
  for (const std::vector<i64>* list : {&s.sizes, &s.in_strides, &s.out_strides})
    numbers.insert(numbers.end(), list->begin(), list->end());
  const auto* const bytes = reinterpret_cast<const std::byte*>(numbers.data());
  return {bytes, bytes + sizeof(i64) * numbers.size()};
}

std::string struct_of(const CollectiveShape& s) {
  const std::size_t dims = s.sizes.size();
  return fmt::format("struct Share {{ i64 member, box, valid, in_step, out_step{}, size[{}], in[{}], out[{}]; }};\n",
                     s.rows ? ", row, result" : "", dims, dims, dims);
}

// What is only moved is of no type.
std::string element_of(const CollectiveShape& s) {
  if (s.sums()) return cuda_memory_type(s.dtype);
  const std::size_t bytes = size_of(s.dtype);
  return bytes == 8 ? "u64" : bytes == 4 ? "unsigned" : bytes == 2 ? "unsigned short" : "unsigned char";
}

// Where an element of a box lies; the last dim is the fastest.
std::string place_of(const CollectiveShape& s) {
  if (s.sizes.size() == 1)
    return "__device__ __forceinline__ i64 at(const Share& s, const i64* strides, i64 x) {\n"
           "  return x * strides[0];\n}\n";
  std::string t =
      "__device__ __forceinline__ i64 at(const Share& s, const i64* strides, i64 element) {\n"
      "  unsigned x = unsigned(element);\n  i64 at = 0;\n";
  for (std::size_t d = s.sizes.size(); d-- > 1;)
    t += fmt::format("  at += x % unsigned(s.size[{0}]) * strides[{0}], x /= unsigned(s.size[{0}]);\n", d);
  return t + "  return at + x * strides[0];\n}\n";
}

// Sums of bf16 are rounded after every addition, so that a tree over groups stays the tree over all.
std::string join_of(const CollectiveShape& s) {
  const std::string what = s.how == Reduce::max ? "a < b || b != b ? b : a"
                           : s.dtype == i32     ? "int(unsigned(a) + unsigned(b))"
                                                : "a + b";
  return fmt::format(
      "__device__ __forceinline__ T join(T left, T right) {{\n"
      "  const {0} a = left, b = right;\n  return T({1});\n}}\n",
      cuda_type(s.dtype), what);
}

std::string signature(const CollectiveShape& s) {
  std::string t = fmt::format("extern \"C\" __global__ void {}(", cuda_share_entry(s.kind));
  for (int m = 0; m < s.members; ++m) t += fmt::format("const T* i{}, ", m);
  if (s.rows) t += "const int* counts, ";
  for (int m = 0; m < s.members; ++m) t += fmt::format("T* o{}, ", m);
  return t + "const Now now, char* work, const char* table, Fault* fault) {\n";
}

std::string own(char which, int members) {
  std::string t = fmt::format("{}{}", which, members - 1);
  for (int m = members - 1; m-- > 0;) t = fmt::format("s.member == {} ? {}{} : {}", m, which, m, t);
  return t;
}
std::string tree(const CollectiveShape& s, std::string_view at) {
  return tree_reduce(
      0, s.members, [&](int m) { return fmt::format("i{}[{}]", m, at); },
      [](const std::string& a, const std::string& b) { return fmt::format("join({}, {})", a, b); });
}
std::string to_all(const CollectiveShape& s, std::string_view at) {
  std::string t;
  for (int m = 0; m < s.members; ++m) t += fmt::format("    o{}[{}] = v;\n", m, at);
  return t;
}

std::string reduced(const CollectiveShape& s) {
  return fmt::format(
      "  const i64 part = (s.box + {0} - 1) / {0}, first = s.member * part;\n"
      "  const i64 last = first + part < s.box ? first + part : s.box;\n"
      "  for (i64 x = first + thread; x < last; x += threads) {{\n"
      "    const i64 from = at(s, s.in, x), to = at(s, s.out, x);\n    const T v = {1};\n{2}  }}\n",
      s.members, tree(s, "from"), to_all(s, "to"));
}
std::string gathered(const CollectiveShape& s) {
  return fmt::format(
      "  const T* const mine = {};\n"
      "  for (i64 x = thread; x < s.valid; x += threads) {{\n"
      "    const T v = mine[at(s, s.in, x)];\n    const i64 to = s.member * s.out_step + at(s, s.out, x);\n{}  }}\n",
      own('i', s.members), to_all(s, "to"));
}
std::string scattered(const CollectiveShape& s) {
  return fmt::format(
      "  T* const mine = {};\n"
      "  for (i64 x = thread; x < s.box; x += threads) {{\n"
      "    const i64 from = s.member * s.in_step + at(s, s.in, x);\n"
      "    mine[at(s, s.out, x)] = x < s.valid ? {} : T(0);\n  }}\n",
      own('o', s.members), tree(s, "from"));
}
std::string exchanged(const CollectiveShape& s) {
  std::string t = fmt::format("  T* const mine = {};\n", own('o', s.members));
  for (int m = 0; m < s.members; ++m)
    t += fmt::format(
        "  for (i64 x = thread; x < s.box; x += threads)\n"
        "    mine[{0} * s.out_step + at(s, s.out, x)] = i{0}[s.member * s.in_step + at(s, s.in, x)];\n",
        m);
  return t;
}
// Rows of every source, one after the other, then zeros.
std::string rows_of(const CollectiveShape& s) {
  std::string t = fmt::format("  T* const mine = {};\n  i64 came = 0;\n", own('o', s.members));
  for (int m = 0; m < s.members; ++m)
    t += fmt::format(
        "  {{\n    i64 sent = 0;\n"
        "    for (int to = 0; to < s.member; ++to) sent += counts[{0} + to];\n"
        "    const i64 n = counts[{0} + s.member] * s.row;\n"
        "    for (i64 x = thread; x < n && came * s.row + x < s.result; x += threads)\n"
        "      mine[came * s.out_step + at(s, s.out, x)] = i{1}[sent * s.in_step + at(s, s.in, x)];\n"
        "    came += counts[{0} + s.member];\n  }}\n",
        m * s.members, m);
  return t + "  for (i64 x = came * s.row + thread; x < s.result; x += threads) mine[at(s, s.out, x)] = T(0);\n";
}

std::string body_of(const CollectiveShape& s) {
  switch (s.kind) {
    case CollectiveKind::reduce:
      return reduced(s);
    case CollectiveKind::gather:
      return gathered(s);
    case CollectiveKind::scatter:
      return scattered(s);
    case CollectiveKind::exchange:
      return exchanged(s);
    case CollectiveKind::rows:
      break;
  }
  return rows_of(s);
}

}  // namespace

std::string cuda_share_entry(CollectiveKind kind) { return fmt::format("stretto_{}", name_of(kind)); }

CudaSource cuda_share(const CollectiveShape& shape, int member) {
  CollectiveShape s = merged(shape);
  if (s.sizes.empty()) s.sizes = {1}, s.in_strides = {1}, s.out_strides = {1};
  if (s.sizes.size() > 1 && s.box() > most_in_box)
    throw Error("cuda", "{} runs over {} elements, a kernel over {} at most", s.str(), s.box(), most_in_box)
        .hint("split it over more ranks");
  CudaSource out{.block = 128, .table = table_of(s, member)};
  const i64 elements = s.rows ? s.result() : s.box();
  out.grid = unsigned(std::clamp<i64>(elements / (elements_each * out.block), 1, most_blocks));
  out.text = fmt::format("{}typedef {} T;\n", cuda_prelude(), element_of(s)) + struct_of(s) + place_of(s) +
             (s.sums() ? join_of(s) : std::string()) + signature(s) +
             "  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;\n"
             "  const Share& s = *(const Share*)table;\n" +
             body_of(s) + "}\n";
  return out;
}

}  // namespace stretto
