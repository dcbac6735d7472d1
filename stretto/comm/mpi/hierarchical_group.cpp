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
      places_(under_way),
      in_order_(under_way) {
  for (Place& p : places_) {
    p.before.reserve(nodes_);
    p.after.reserve(nodes_);
  }
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
  for (std::uint32_t i = 0; i < prepared_.size(); ++i)
    if (prepared_[i].asked == s) return i;
  Prepared& p = prepared_.emplace_back();
  p.asked = s;
  plan(p);
  return prepared_.size() - 1;
}

void HierarchicalGroup::plan(Prepared& p) {
  const CollectiveShape s = merged(p.asked);
  const bool line_shaped = s.sizes.empty() || (s.sizes.size() == 1 && s.in_strides[0] == 1 && s.out_strides[0] == 1);
  p.flat =
      s.exchanges() || (s.sums() && !subtrees_) || s.box() == 0 || (s.kind == CollectiveKind::reduce && !line_shaped);
  if (p.flat)
    p.across = wires_.flat->prepare(p.asked);
  else if (s.kind == CollectiveKind::reduce)
    plan_reduce(p, s);
  else if (s.kind == CollectiveKind::scatter)
    plan_scatter(p, s);
  else
    plan_gather(p, s);
}

void HierarchicalGroup::plan_reduce(Prepared& p, const CollectiveShape& s) {
  const i64 box = s.box(), share = (box + per_node_ - 1) / per_node_;
  CollectiveShape scatter = line(CollectiveKind::scatter, s, per_node_, share);
  scatter.in_step = share;
  scatter.valid = box;
  CollectiveShape gather = line(CollectiveKind::gather, s, per_node_, share);
  gather.out_step = share;
  gather.valid = box;
  p.before = {before_.prepare(scatter)};
  p.across = wires_.across->prepare(line(CollectiveKind::reduce, s, nodes_, share));
  p.after = {after_.prepare(gather)};
  reserve(share * size_of(s.dtype));
}

// One node's boxes of it, without the padding of others'.
CollectiveShape HierarchicalGroup::in_node(const CollectiveShape& s, int node) const {
  const i64 boxes = per_node_ * s.box();
  CollectiveShape part = s;
  part.members = per_node_;
  if (s.valid) part.valid = std::clamp<i64>(*s.valid - node * boxes, 0, boxes);
  return part;
}

void HierarchicalGroup::plan_scatter(Prepared& p, const CollectiveShape& s) {
  const i64 element = size_of(s.dtype);
  const std::vector<i64> packed = packed_strides(s.sizes);
  reserve(nodes_ * s.box() * element);
  p.staged_block = s.box() * element;
  p.in_block = per_node_ * s.in_step * element;
  for (int node = 0; node < nodes_; ++node) {
    CollectiveShape scatter = in_node(s, node);
    scatter.out_strides = packed;
    p.before.push_back(before_.prepare(scatter));
  }
  CollectiveShape across = s;
  across.members = nodes_;
  across.in_strides = packed;
  across.in_step = s.box();
  across.valid.reset();  // padding is zero by now
  p.across = wires_.across->prepare(across);
}

void HierarchicalGroup::plan_gather(Prepared& p, const CollectiveShape& s) {
  const i64 element = size_of(s.dtype);
  const std::vector<i64> packed = packed_strides(s.sizes);
  reserve(nodes_ * s.box() * element);
  p.staged_block = s.box() * element;
  p.out_block = per_node_ * s.out_step * element;
  CollectiveShape across = s;
  across.members = nodes_;
  across.out_strides = packed;
  across.out_step = s.box();
  if (s.valid) {  // the boxes of the members at this place: whole ones, perhaps a part of one, empty ones
    i64 valid = 0;
    for (int node = 0; node < nodes_; ++node) valid += s.box_valid(node * per_node_ + member_ % per_node_);
    across.valid = valid;
  }
  p.across = wires_.across->prepare(across);
  for (int node = 0; node < nodes_; ++node) {
    CollectiveShape gather = in_node(s, node);
    gather.in_strides = packed;
    p.after.push_back(after_.prepare(gather));
  }
}

u64 HierarchicalGroup::start(int, std::uint32_t prepared, const void* in, void* out, const std::int32_t* counts) {
  stopped_.check();
  Place& p = place(next_);
  STRETTO_ASSERT(!p.open, "too many collectives are under way");
  p.open = true;
  p.what = &prepared_[prepared];
  p.in = static_cast<const std::byte*>(in);
  p.out = static_cast<std::byte*>(out);
  if (p.what->flat) {
    p.flat = wires_.flat->start(member_, p.what->across, in, out, counts);
    last_flat_ = p.flat;
  } else {
    p.order = started_++;
    p.stage = Stage::queued;
    ordered(p.order) = &p;
    advance(NodeGroup::Eagerness::fair_share);
  }
  return next_++;
}

void HierarchicalGroup::advance(NodeGroup::Eagerness how) {
  if (last_flat_ && wires_.flat->progress(member_, *last_flat_)) last_flat_.reset();
  for (u64 k = complete_; k < started_; ++k) step(*ordered(k), how);
  while (complete_ < started_ && ordered(complete_)->stage == Stage::complete) ++complete_;
}

// Each part begins in the order of starts, which is the same on all members.
void HierarchicalGroup::step(Place& p, NodeGroup::Eagerness how) {
  const Prepared& w = *p.what;
  if (p.stage == Stage::queued) {
    if (began_before_ != p.order || p.order >= complete_ + slots) return;
    ++began_before_;
    p.before.clear();
    for (i64 node = 0; node < std::ssize(w.before); ++node)
      p.before.push_back(before_.start(member_ % per_node_, w.before[node], p.in + node * w.in_block,
                                       staged(p) + node * w.staged_block));
    p.stage = Stage::before;
  }
  if (p.stage == Stage::before) {
    bool all = true;
    for (const u64 t : p.before) all = before_.advance(t, how) && all;
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
    for (i64 node = 0; node < std::ssize(w.after); ++node)
      p.after.push_back(after_.start(member_ % per_node_, w.after[node], staged(p) + node * w.staged_block,
                                     p.out + node * w.out_block));
    p.stage = Stage::after;
  }
  if (p.stage == Stage::after) {
    bool all = true;
    for (const u64 t : p.after) all = after_.advance(t, how) && all;
    if (all) p.stage = Stage::complete;
  }
}

bool HierarchicalGroup::ended(const Place& p) {
  return p.what->flat ? wires_.flat->progress(member_, p.flat) : p.order < complete_;
}

bool HierarchicalGroup::progress(int, u64 ticket) {
  stopped_.check();
  Place& p = place(ticket);
  if (!p.open) return true;
  advance(NodeGroup::Eagerness::fair_share);
  if (!ended(p)) return false;
  p.open = false;
  return true;
}

double HierarchicalGroup::wait(int, u64 ticket) {
  Place& p = place(ticket);
  if (!p.open) return 0;
  Patience patience(spins_);
  while (stopped_.check(), advance(NodeGroup::Eagerness::all_there_is), !ended(p)) patience.pause();
  p.open = false;
  return patience.waited();
}

void HierarchicalGroup::stop() noexcept {
  stopped_.set();
  before_.stop();
  after_.stop();
  wires_.across->stop();
  wires_.flat->stop();
}

}  // namespace stretto
