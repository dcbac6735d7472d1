#include "stretto/comm/lane_check.h"

#include <algorithm>

#include "stretto/base/bf16.h"
#include "stretto/base/philox.h"
#include "stretto/comm/lanes/lane_group.h"
#include "stretto/kernels/collective_work.h"

namespace stretto {
namespace {

constexpr int rounds = 50;
constexpr i64 elements = 3001;  // of a member's box

std::vector<std::byte> random_bytes(DType dtype, i64 n, u64 seed) {
  std::vector<std::byte> all(std::size_t(n) * size_of(dtype));
  const PhiloxKey key = philox_key(seed, "lanes");
  for (i64 i = 0; i < n; ++i) {
    const float x = float(uniform_at(key, u64(i)) - 0.5);
    const BF16 half(x);
    std::memcpy(&all[std::size_t(i) * size_of(dtype)], dtype == bf16 ? static_cast<const void*>(&half) : &x,
                size_of(dtype));
  }
  return all;
}

class Pair {
 public:
  Pair(LaneDevice& a, LaneDevice& b) : a_(a), b_(b), begin_(a.event()), end_(a.event()), words_(a.words(2)) {}

  double word_seconds() {
    const auto there_and_back = [&](std::uint32_t n) {
      a_.advance(lane, *words_, 0, n), b_.wait_for(lane, *words_, 0, n);
      b_.advance(lane, *words_, 1, n), a_.wait_for(lane, *words_, 1, n);
    };
    return seconds([&] {
             for (std::uint32_t n = 0; n < rounds; ++n) there_and_back(++round_);
           }) /
           (2 * rounds);
  }
  double bytes_per_second(std::byte* to, const std::byte* from, std::size_t bytes) {
    const double took = seconds([&] { a_.copy(lane, to, from, bytes); });
    return double(bytes) / std::max(took, 1e-9);
  }

 private:
  static constexpr DeviceLane lane = DeviceLane::compute;
  template <class Work>
  double seconds(Work work) {
    a_.record(begin_, lane);
    work();
    a_.record(end_, lane);
    a_.finish(), b_.finish();
    return a_.seconds(end_) - a_.seconds(begin_);
  }
  LaneDevice &a_, &b_;
  EventId begin_, end_;
  std::shared_ptr<LaneWords> words_;
  std::uint32_t round_ = 0;
};

void add(LaneCheck::Range& range, double x, bool first, bool less_is_better) {
  if (first) range = {x, x};
  range.best = less_is_better ? std::min(range.best, x) : std::max(range.best, x);
  range.worst = less_is_better ? std::max(range.worst, x) : std::min(range.worst, x);
}

Error wrong(std::string_view what, std::string_view who) {
  return Error("device", "{} {}: what came is not what was sent", what, who)
      .hint("this is worth a report, with what nvidia-smi topo -m says")
      .as(Error::Kind::run);
}

void check_pairs(const std::vector<LaneDevice*>& devices, std::size_t bytes, LaneCheck& out) {
  const std::vector<std::byte> sent = random_bytes(f32, i64(bytes / 4), 1), nothing(sent.size());
  std::vector<std::byte> came(sent.size());
  std::vector<std::byte*> from, to;
  for (LaneDevice* d : devices) {
    from.push_back(d->allocate(sent.size())), to.push_back(d->allocate(sent.size()));
    d->write(from.back(), sent.data(), sent.size());
  }
  for (std::size_t a = 0; a < devices.size(); ++a)
    for (std::size_t b = 0; b < devices.size(); ++b) {
      if (a == b) continue;
      Pair pair(*devices[a], *devices[b]);
      devices[b]->write(to[b], nothing.data(), nothing.size());
      const bool first = out.pairs++ == 0;
      add(out.words, pair.word_seconds(), first, true);
      add(out.copies, pair.bytes_per_second(to[b], from[a], sent.size()), first, false);
      devices[b]->read(came.data(), to[b], came.size());
      if (came != sent) throw wrong("a copy", fmt::format("from device {} to device {}", a, b));
    }
}

CollectiveShape shape_for(CollectiveKind kind, DType dtype, int members) {
  CollectiveShape s{.kind = kind, .dtype = dtype, .members = members, .axes = {"all"}};
  add_box_dim(s, elements, 1, 1);
  if (kind == CollectiveKind::scatter || kind == CollectiveKind::exchange) s.in_step = elements;
  if (kind == CollectiveKind::gather || kind == CollectiveKind::exchange) s.out_step = elements;
  return s;
}

// Every member's results are those that the host has of the same operands.
void check_collective(const std::vector<LaneDevice*>& devices, const CollectiveShape& s) {
  const std::size_t in_bytes = std::size_t(s.operand()) * size_of(s.dtype);
  const std::size_t out_bytes = std::size_t(s.result()) * size_of(s.dtype);
  std::vector<std::vector<std::byte>> in, expected(devices.size(), std::vector<std::byte>(out_bytes));
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  LaneMemory memory;
  std::vector<LaneMember> members;
  std::vector<std::byte*> operands, results;
  for (std::size_t m = 0; m < devices.size(); ++m) {
    in.push_back(random_bytes(s.dtype, s.operand(), m));
    operands.push_back(devices[m]->allocate(in_bytes)), results.push_back(devices[m]->allocate(out_bytes));
    devices[m]->write(operands[m], in[m].data(), in_bytes);
    memory.add({{operands[m], in_bytes}, {results[m], out_bytes}});
    members.push_back({devices[m], int(m)});
  }
  for (std::size_t m = 0; m < devices.size(); ++m) from.push_back(in[m].data()), to.push_back(expected[m].data());
  const CollectiveWork work(s);
  for (std::uint32_t c = 0; c < work.chunks(); ++c) work.run(c, from.data(), to.data());
  LaneGroup group(members, memory, DeviceLane::collectives);
  const std::uint32_t prepared = group.prepare(s);
  for (std::size_t m = 0; m < devices.size(); ++m) group.start(int(m), prepared, operands[m], results[m]);
  for (LaneDevice* d : devices) d->finish();
  std::vector<std::byte> came(out_bytes);
  for (std::size_t m = 0; m < devices.size(); ++m) {
    devices[m]->read(came.data(), results[m], out_bytes);
    if (came != expected[m]) throw wrong(s.str(), fmt::format("on device {}", m));
  }
}

}  // namespace

LaneCheck check_lanes(const std::vector<LaneDevice*>& devices, std::size_t bytes) {
  LaneCheck out;
  check_pairs(devices, bytes, out);
  for (const CollectiveKind kind :
       {CollectiveKind::reduce, CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::exchange})
    for (const DType dtype : {f32, bf16})
      check_collective(devices, shape_for(kind, dtype, int(devices.size()))), ++out.collectives;
  return out;
}

}  // namespace stretto
