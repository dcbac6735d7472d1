#include "stretto/comm/mpi/hierarchical_group.h"

#include <algorithm>

#include "stretto/comm/mpi/patience.h"

namespace stretto {
namespace {

std::vector<i64> packed_strides(const std::vector<i64>& sizes) {
  std::vector<i64> strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

CollectiveShape line(CollectiveKind kind, const CollectiveShape& like, int members, i64 elements) {
  CollectiveShape s{.kind = kind, .dtype = like.dtype, .how = like.how, .members = members, .axes = like.axes};
  add_box_dim(s, elements, 1, 1);
  return s;
}

}  // namespace

HierarchicalGroup::HierarchicalGroup(HierarchyWires wires, int member, int members, int per_node, int under_way,
                                     int spins)
    : wires_(std::move(wires)),
      before_({wires_.arenas, wires_.staging.get()}, std::move(wires_.before), member % per_node,
              {.under_way = slots * (members / per_node)}),
      after_({wires_.arenas, wires_.staging.get()}, std::move(wires_.after), member % per_node,
             {.under_way = slots * (members / per_node)}),
      member_(member),
      members_(members),
      per_node_(per_node),
      nodes_(members / per_node),
      spins_(spins),
      subtrees_(nodes_are_subtrees(members, per_node)),
      places_(std::size_t(under_way)),
      in_order_(std::size_t(under_way)) {
  for (Place& p : places_) {
    p.before.reserve(std::size_t(nodes_));
    p.after.reserve(std::size_t(nodes_));
  }
}

void HierarchicalGroup::check() const {
  if (stopped_) throw Error("runtime", "stopped because another rank failed").as(Error::Kind::run);
}

// Staging memory of all slots; before the first of them is used.
void HierarchicalGroup::reserve(u64 bytes) {
  if (bytes <= staging_bytes_) return;
  STRETTO_ASSERT(started_ == complete_, "prepared while others are under way");
  staging_bytes_ = (bytes + 4095) / 4096 * 4096;
  staging_ = wires_.staging->allocate(slots * staging_bytes_);
  if (!staging_) throw Error("memory", "{} bytes cannot be had", slots * staging_bytes_).as(Error::Kind::run);
}

std::uint32_t HierarchicalGroup::prepare(const CollectiveShape& s) {
  for (std::size_t i = 0; i < prepared_.size(); ++i)
    if (prepared_[i].asked == s) return std::uint32_t(i);
  Prepared& p = prepared_.emplace_back();
  p.asked = s;
  plan(p);
  return std::uint32_t(prepared_.size() - 1);
}

void HierarchicalGroup::plan(Prepared& p) {
  const CollectiveShape s = merged(p.asked);
  const i64 box = s.box(), element = i64(size_of(s.dtype)), node_boxes = per_node_ * box;
  const bool line_shaped = s.sizes.empty() || (s.sizes.size() == 1 && s.in_strides[0] == 1 && s.out_strides[0] == 1);
  p.flat = s.kind == CollectiveKind::exchange || (s.sums() && !subtrees_) || box == 0 ||
           (s.kind == CollectiveKind::reduce && !line_shaped);
  if (p.flat) {
    p.across = wires_.flat->prepare(p.asked);
    return;
  }
  // The padding of one node's boxes.
  const auto valid_in_node = [&](int node) {
    return s.valid < 0 ? -1 : std::clamp<i64>(s.valid - node * node_boxes, 0, node_boxes);
  };
  CollectiveShape across = s;
  across.members = nodes_;
  if (s.kind == CollectiveKind::reduce) {
    const i64 share = (box + per_node_ - 1) / per_node_;
    CollectiveShape scatter = line(CollectiveKind::scatter, s, per_node_, share);
    scatter.in_step = share;
    scatter.valid = box;
    CollectiveShape gather = line(CollectiveKind::gather, s, per_node_, share);
    gather.out_step = share;
    gather.valid = box;
    p.before = {before_.prepare(scatter)};
    p.across = wires_.across->prepare(line(CollectiveKind::reduce, s, nodes_, share));
    p.after = {after_.prepare(gather)};
    reserve(u64(share * element));
    return;
  }
  reserve(u64(nodes_ * box * element));
  p.staged_block = box * element;
  const std::vector<i64> packed = packed_strides(s.sizes);
  if (s.kind == CollectiveKind::scatter) {
    p.in_block = per_node_ * s.in_step * element;
    for (int node = 0; node < nodes_; ++node) {
      CollectiveShape scatter = s;
      scatter.members = per_node_;
      scatter.out_strides = packed;
      scatter.valid = valid_in_node(node);
      p.before.push_back(before_.prepare(scatter));
    }
    across.in_strides = packed;
    across.in_step = box;
    across.valid = -1;  // padding is zero by now
    p.across = wires_.across->prepare(across);
    return;
  }
  p.out_block = per_node_ * s.out_step * element;
  across.out_strides = packed;
  across.out_step = box;
  if (s.valid >= 0) {  // the boxes of the members at this place: whole ones, perhaps a part of one, empty ones
    across.valid = 0;
    for (int node = 0; node < nodes_; ++node) across.valid += s.box_valid(node * per_node_ + member_ % per_node_);
  }
  p.across = wires_.across->prepare(across);
  for (int node = 0; node < nodes_; ++node) {
    CollectiveShape gather = s;
    gather.members = per_node_;
    gather.in_strides = packed;
    gather.valid = valid_in_node(node);
    p.after.push_back(after_.prepare(gather));
  }
}

u64 HierarchicalGroup::start(int, std::uint32_t prepared, const void* in, void* out) {
  check();
  Place& p = place(next_);
  STRETTO_ASSERT(!p.open, "too many collectives are under way");
  p.open = true;
  p.what = &prepared_[prepared];
  p.in = static_cast<const std::byte*>(in);
  p.out = static_cast<std::byte*>(out);
  if (p.what->flat) {
    p.flat = last_flat_ = wires_.flat->start(member_, p.what->across, in, out);
    any_flat_ = true;
  } else {
    p.order = started_++;
    p.stage = Stage::queued;
    in_order_[std::size_t(p.order % places_.size())] = &p;
    advance(false);
  }
  return next_++;
}

void HierarchicalGroup::advance(bool everything) {
  if (any_flat_) any_flat_ = !wires_.flat->progress(member_, last_flat_);
  for (u64 k = complete_; k < started_; ++k) step(ordered(k), everything);
  while (complete_ < started_ && ordered(complete_).stage == Stage::complete) ++complete_;
}

// Each part begins in the order of starts, which is the same on all members.
void HierarchicalGroup::step(Place& p, bool everything) {
  const Prepared& w = *p.what;
  if (p.stage == Stage::queued) {
    if (began_before_ != p.order || p.order >= complete_ + slots) return;
    ++began_before_;
    p.before.clear();
    for (std::size_t node = 0; node < w.before.size(); ++node)
      p.before.push_back(before_.start(member_ % per_node_, w.before[node], p.in + i64(node) * w.in_block,
                                       staged(p) + i64(node) * w.staged_block));
    p.stage = Stage::before;
  }
  if (p.stage == Stage::before) {
    bool all = true;
    for (const u64 t : p.before) all = before_.advance(t, everything) && all;
    if (!all || began_across_ != p.order) return;
    ++began_across_;
    const bool gathers = w.before.empty(), scatters = w.after.empty();
    p.across =
        wires_.across->start(member_ / per_node_, w.across, gathers ? p.in : staged(p), scatters ? p.out : staged(p));
    p.stage = Stage::across;
  }
  if (p.stage == Stage::across) {
    if (!wires_.across->progress(member_ / per_node_, p.across) || began_after_ != p.order) return;
    ++began_after_;
    p.after.clear();
    for (std::size_t node = 0; node < w.after.size(); ++node)
      p.after.push_back(after_.start(member_ % per_node_, w.after[node], staged(p) + i64(node) * w.staged_block,
                                     p.out + i64(node) * w.out_block));
    p.stage = Stage::after;
  }
  if (p.stage == Stage::after) {
    bool all = true;
    for (const u64 t : p.after) all = after_.advance(t, everything) && all;
    if (all) p.stage = Stage::complete;
  }
}

bool HierarchicalGroup::ended(const Place& p) {
  return p.what->flat ? wires_.flat->progress(member_, p.flat) : p.order < complete_;
}

bool HierarchicalGroup::progress(int, u64 ticket) {
  check();
  Place& p = place(ticket);
  if (!p.open) return true;
  advance(false);
  if (!ended(p)) return false;
  p.open = false;
  return true;
}

double HierarchicalGroup::wait(int, u64 ticket) {
  Place& p = place(ticket);
  if (!p.open) return 0;
  Patience patience(spins_);
  while (check(), advance(true), !ended(p)) patience.pause();
  p.open = false;
  return patience.waited();
}

void HierarchicalGroup::stop() noexcept {
  stopped_ = true;
  before_.stop();
  after_.stop();
  wires_.across->stop();
  wires_.flat->stop();
}

}  // namespace stretto
