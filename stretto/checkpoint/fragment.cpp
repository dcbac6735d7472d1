#include "stretto/checkpoint/fragment.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "stretto/base/error.h"
#include "stretto/base/text.h"

namespace stretto {
namespace {

constexpr i64 most_elements = i64(1) << 56;  // products of sizes stay within 64 bits

bool too_many(const std::vector<i64>& sizes) {
  i64 n = 1;
  for (const i64 s : sizes) {
    if (s > 0 && n > most_elements / s) return true;
    n *= s;
  }
  return false;
}

using Box = std::pair<std::vector<i64>, std::vector<i64>>;  // offsets, sizes

bool overlap(const Box& a, const Box& b) {
  for (std::size_t d = 0; d < a.first.size(); ++d)
    if (a.first[d] + a.second[d] <= b.first[d] || b.first[d] + b.second[d] <= a.first[d]) return false;
  return true;
}

}  // namespace

i64 elements_of(const std::vector<i64>& sizes) {
  i64 n = 1;
  for (const i64 s : sizes) n *= s;
  return n;
}

bool is_whole(const Fragment& p) { return p.sizes == p.shape && p.first == 0 && p.count == elements_of(p.shape); }

std::string wrong_with(const Fragment& p) {
  if (p.offsets.size() != p.shape.size() || p.sizes.size() != p.shape.size())
    return "has not as many offsets and sizes as dims";
  for (std::size_t d = 0; d < p.shape.size(); ++d)
    if (p.shape[d] < 1 || p.sizes[d] < 1 || p.offsets[d] < 0 || p.sizes[d] > p.shape[d] ||
        p.offsets[d] > p.shape[d] - p.sizes[d])
      return "does not lie within the tensor";
  if (too_many(p.shape)) return "is of a tensor that is too large";
  const i64 box = elements_of(p.sizes);
  if (p.first < 0 || p.count < 1 || p.count > box || p.first > box - p.count) return "does not lie within its box";
  return "";
}

std::string wrong_with(std::span<const Fragment> all) {
  STRETTO_ASSERT(!all.empty(), "a tensor of no fragments");
  std::map<Box, std::vector<std::pair<i64, i64>>> boxes;  // what is taken of each: first and count
  i64 taken = 0;
  for (const Fragment& p : all) {
    if (p.shape != all[0].shape) return "are of tensors of different shapes";
    boxes[{p.offsets, p.sizes}].push_back({p.first, p.count});
    if (p.count > most_elements - taken) return "are more than the tensor has";
    taken += p.count;
  }
  for (auto a = boxes.begin(); a != boxes.end(); ++a) {
    std::sort(a->second.begin(), a->second.end());
    for (std::size_t i = 1; i < a->second.size(); ++i)
      if (a->second[i - 1].first + a->second[i - 1].second > a->second[i].first) return "overlap";
    for (auto b = std::next(a); b != boxes.end(); ++b)
      if (overlap(a->first, b->first)) return "overlap";
  }
  const i64 needed = elements_of(all[0].shape);
  return taken == needed ? "" : fmt::format("hold {} of its {} elements", taken, needed);
}

void put_fragment(const Fragment& p, std::size_t bytes, std::span<const std::byte> from, std::span<std::byte> to) {
  const std::size_t n = p.shape.size();
  // Dims from `inner` on lie together in the tensor: all but the first of them are complete.
  std::size_t inner = n;
  i64 run = 1;
  while (inner > 0 && (inner == n || p.sizes[inner] == p.shape[inner])) run *= p.sizes[--inner];
  for (i64 done = 0; done < p.count;) {
    const i64 at = p.first + done, length = std::min(p.count - done, run - at % run);
    i64 rest = at / run, place = at % run, step = 1;
    for (std::size_t d = n; d-- > 0; step *= p.shape[d]) {
      place += p.offsets[d] * step;
      if (d < inner) place += rest % p.sizes[d] * step, rest /= p.sizes[d];
    }
    std::memcpy(to.data() + place * bytes, from.data() + done * bytes, length * bytes);
    done += length;
  }
}

}  // namespace stretto
