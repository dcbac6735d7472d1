#include "stretto/train/logical.h"

#include <algorithm>
#include <array>

#include "stretto/base/bf16.h"
#include "stretto/base/philox.h"
#include "stretto/kernels/normal.h"

namespace stretto {
namespace {

// Calls f(offset, logical, length) for every run of consecutive logical elements: `offset` is where they are stored.
template <class F>
void for_runs(const Dims& dims, const StoredPart& part, F f) {
  const std::size_t n = dims.size();
  // Dims from `inner` on make one run: all but the first of them are complete.
  std::size_t inner = n;
  i64 step = 1;  // stored elements of a run, padding at its end included
  const auto complete = [&](std::size_t d) { return part.sizes[d] == dims[d].size && dims[d].valid() == dims[d].size; };
  while (inner > 0 && (inner == n || complete(inner))) step *= part.sizes[--inner];
  i64 rows = 1, deeper = 1;
  for (std::size_t d = 0; d < inner; ++d) rows *= part.sizes[d];
  for (std::size_t d = inner + 1; d < n; ++d) deeper *= part.sizes[d];
  const i64 begin = part.first / step, end = std::min(rows, (part.first + part.count + step - 1) / step);
  std::vector<i64> at(n, 0);
  for (i64 row = begin; row < end; ++row) {
    i64 rest = row, logical = 0, run = step;
    bool padding = false;
    for (std::size_t d = inner; d-- > 0; rest /= part.sizes[d]) at[d] = rest % part.sizes[d];
    for (std::size_t d = 0; d < n; ++d) {
      const i64 index = part.offsets[d] + at[d];
      logical = logical * dims[d].valid() + index;
      if (d < inner) padding = padding || index >= dims[d].valid();
      if (d == inner) run = std::clamp<i64>(dims[d].valid() - index, 0, part.sizes[d]) * deeper;
    }
    const i64 from = std::max(row * step, part.first), to = std::min(row * step + run, part.first + part.count);
    if (!padding && from < to) f(from - part.first, logical + from - row * step, to - from);
  }
}

std::vector<i64> logical_sizes(const Dims& dims) {
  std::vector<i64> s;
  for (const Dim& d : dims) s.push_back(d.valid());
  return s;
}

void fill_rounded(PhiloxKey key, u64 first, double scale, std::span<BF16> to) {
  std::array<float, 1024> some;
  for (std::size_t done = 0; done < to.size();) {
    const std::size_t n = std::min(some.size(), to.size() - done);
    fill_normal(key, first + done, scale, std::span<float>(some).first(n));
    for (std::size_t i = 0; i < n; ++i) to[done + i] = BF16(some[i]);
    done += n;
  }
}

// Elements from a logical index on.
template <class T>
void fill(const Init& init, PhiloxKey key, u64 logical, std::span<T> to) {
  switch (init.kind) {
    case Init::Kind::zeros:
      std::ranges::fill(to, T(0));
      break;
    case Init::Kind::ones:
      std::ranges::fill(to, T(Wide<T>(init.scale)));
      break;
    case Init::Kind::uniform:
      for (T& x : to) x = T(Wide<T>((2 * uniform_at(key, logical++) - 1) * init.scale));
      break;
    case Init::Kind::normal:
      if constexpr (std::is_same_v<T, BF16>)
        fill_rounded(key, logical, init.scale, to);
      else
        fill_normal(key, logical, init.scale, to);
      break;
  }
}

template <class T>
void fill(const CompiledParam& p, const StoredPart& part, u64 seed, const WriteBytes& write) {
  constexpr i64 most = 1 << 14;  // made at a time, in the cache
  std::vector<T> made(most);
  const PhiloxKey key = philox_key(seed, p.name);
  for_runs(p.dims, part, [&](i64 offset, i64 logical, i64 length) {
    for (i64 i = 0; i < length; i += most) {
      const std::span<T> some(made.data(), std::min(most, length - i));
      fill(p.options.init, key, logical + i, some);
      write((offset + i) * sizeof(T), some.data(), some.size_bytes());
    }
  });
}

}  // namespace

StoredPart whole_part(const CompiledParam& p) {
  StoredPart part{.count = 1};
  for (const Dim& d : p.dims) {
    part.sizes.push_back(d.size);
    part.offsets.push_back(0);
    part.count *= d.size;
  }
  return part;
}

StoredPart stored_part(const Compiled& c, ParamId param, const Coordinates& at, bool updated) {
  if (!c.sharded) return whole_part(c.params[param]);
  const Sharded& s = *c.sharded;
  const ShardedParam& p = s.params[param];
  const View box = on_rank(contiguous_view(s.graph.graph, p.type), s.graph.graph, s.mesh, at);
  StoredPart part{.sizes = box.sizes, .offsets = box.offsets, .count = p.elements};
  const AxisNames& cut = updated ? p.state : p.params;
  if (!cut.empty()) {
    part.count = s.graph.graph.elements(updated ? p.updated : p.stored);
    part.first = block_of(s.mesh, at, cut) * part.count;
  }
  const auto has = [](const AxisNames& list, const std::string& a) {
    return std::find(list.begin(), list.end(), a) != list.end();
  };
  for (std::size_t a = 0; a < s.mesh.size(); ++a)
    part.copy = part.copy || (at[a] > 0 && !has(p.split, s.mesh[a].name) && !has(cut, s.mesh[a].name));
  return part;
}

Array logical_array(const CompiledParam& p, Array memory) {
  Array a{p.logical_dtype(), logical_sizes(p.dims), std::move(memory.bytes)};
  a.bytes.resize(a.elements() * size_of(a.dtype));
  return a;
}

ReadBytes reading(const Worker& w, Arena arena, u64 offset) {
  return [=, &w](std::size_t at, void* to, std::size_t bytes) { w.read(arena, offset + at, to, bytes); };
}

ReadBytes widened(ReadBytes narrow) {
  return [narrow = std::move(narrow)](std::size_t at, void* to, std::size_t bytes) {
    std::vector<BF16> some(bytes / sizeof(float));
    narrow(at / 2, some.data(), bytes / 2);
    widen(some.data(), std::ssize(some), static_cast<float*>(to));
  };
}

ReadBytes parameter_in(const Compiled& c, const Worker& w, ParamId i) {
  const std::optional<Slot> at = w.program().place_of(i);
  if (!at) return {};
  ReadBytes stored = reading(w, at->arena, at->offset);
  return c.params[i].dtype == bf16 ? widened(std::move(stored)) : stored;
}

WriteBytes writing(Worker& w, Arena arena, u64 offset) {
  return [=, &w](std::size_t at, const void* from, std::size_t bytes) { w.write(arena, offset + at, from, bytes); };
}

void initialise(const CompiledParam& p, const StoredPart& part, u64 seed, const WriteBytes& write, DType as) {
  if (as == f64)
    fill<double>(p, part, seed, write);
  else if (as == bf16)
    fill<BF16>(p, part, seed, write);
  else
    fill<float>(p, part, seed, write);
}

void read_logical(const CompiledParam& p, const StoredPart& part, const ReadBytes& read, Array& to) {
  const std::size_t size = size_of(p.logical_dtype());
  for_runs(p.dims, part, [&](i64 offset, i64 logical, i64 length) {
    read(offset * size, to.bytes.data() + logical * size, length * size);
  });
}

void write_logical(const CompiledParam& p, const StoredPart& part, const Array& a, const WriteBytes& write, DType as) {
  const Array expect{p.logical_dtype(), logical_sizes(p.dims), {}};
  if (a.dtype != expect.dtype || a.sizes != expect.sizes)
    throw Error("parameter", "'{}' is {} and the array is {}", p.name, expect.str(), a.str())
        .hint("pass the logical values, in the order of the parameter's dims {}", p.dims.str());
  if (as == bf16) {
    const float* const values = a.as<float>().data();
    std::vector<BF16> rounded;
    return for_runs(p.dims, part, [&](i64 offset, i64 logical, i64 length) {
      rounded.resize(length);
      narrow(values + logical, length, rounded.data());
      write(offset * sizeof(BF16), rounded.data(), length * sizeof(BF16));
    });
  }
  const std::size_t size = size_of(as);
  for_runs(p.dims, part, [&](i64 offset, i64 logical, i64 length) {
    write(offset * size, a.bytes.data() + logical * size, length * size);
  });
}

Fragment fragment_of(const CompiledParam& p, const StoredPart& part) {
  Fragment fragment{.shape = logical_sizes(p.dims), .offsets = part.offsets};
  for (std::size_t d = 0; d < p.dims.size(); ++d)
    fragment.sizes.push_back(std::clamp<i64>(fragment.shape[d] - part.offsets[d], 0, part.sizes[d]));
  // Elements of the box before the `stored`-th that are no padding.
  const auto before = [&](i64 stored) {
    i64 with = 1, without = 1, n = 0;
    for (std::size_t d = 0; d < p.dims.size(); ++d) with *= part.sizes[d], without *= fragment.sizes[d];
    if (stored >= with) return without;
    for (std::size_t d = 0; d < p.dims.size(); ++d) {
      with /= part.sizes[d];
      if (fragment.sizes[d] == 0) return i64(0);
      without /= fragment.sizes[d];
      const i64 index = stored / with;
      n += std::min(index, fragment.sizes[d]) * without;
      if (index >= fragment.sizes[d]) return n;
      stored %= with;
    }
    return n;
  };
  fragment.first = before(part.first);
  fragment.count = before(part.first + part.count) - fragment.first;
  return fragment;
}

Array read_fragment(const CompiledParam& p, const StoredPart& part, const ReadBytes& read, Array memory) {
  const Fragment fragment = fragment_of(p, part);
  const bool box = fragment.count == elements_of(fragment.sizes);
  Array a{p.logical_dtype(), box ? fragment.sizes : std::vector<i64>{fragment.count}, std::move(memory.bytes)};
  const std::size_t size = size_of(a.dtype);
  a.bytes.resize(std::size_t(fragment.count) * size);
  std::size_t at = 0;
  for_runs(p.dims, part, [&](i64 offset, i64, i64 length) {
    read(offset * size, a.bytes.data() + at, length * size);
    at += length * size;
  });
  STRETTO_ASSERT(at == a.bytes.size(), "a part has the elements of its fragment");
  return a;
}

}  // namespace stretto
