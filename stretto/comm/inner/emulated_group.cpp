#include "stretto/comm/inner/emulated_group.h"

#include <optional>

#include "stretto/comm/emulated_clock.h"
#include "stretto/comm/inner/emulated_link.h"
#include "stretto/cost/collective.h"

namespace stretto {
namespace {

class EmulatedGroup : public CollectiveGroup {
 public:
  EmulatedGroup(const Cluster& links, std::vector<int> ranks, int under_way, std::unique_ptr<CollectiveGroup> real,
                GroupWithMemory told)
      : links_(links), ranks_(std::move(ranks)), real_(std::move(real)), told_(std::move(told)) {
    CollectiveShape starts{.kind = CollectiveKind::gather, .dtype = f64, .members = members()};
    add_box_dim(starts, 1, 1, 1);
    starts.out_step = 1;
    starts_ = told_.group->prepare(starts);
    double* at = reinterpret_cast<double*>(told_.at);
    for (int m = 0; m < members(); ++m) {
      Member& member = members_.emplace_back();
      for (int p = 0; p < under_way; ++p, at += members()) member.places.push_back({.starts = at});
    }
  }

  std::uint32_t prepare(const CollectiveShape& s) override {
    if (s.members != members())
      throw Error("collective", "{} is for {} members, the group has {}", s.str(), s.members, members());
    for (std::uint32_t i = 0; i < prepared_.size(); ++i)
      if (prepared_[i].shape == s) return i;
    prepared_.push_back({s, collective_seconds(s, links_, ranks_), real_ ? real_->prepare(s) : 0});
    return prepared_.size() - 1;
  }

  u64 start(int member, std::uint32_t prepared, const void* in, void* out, const void* counts) override {
    stopped_.check();
    Member& me = members_[member];
    Place& p = me.place(me.next);
    if (p.open)
      throw Error("collective", "member {} starts {} while {} others are under way", member,
                  prepared_[prepared].shape.str(), me.places.size())
          .as(Error::Kind::bug);
    p.open = me.next;
    p.what = prepared;
    if (real_) p.moved = real_->start(member, prepared_[prepared].real, in, out, counts);
    p.starts[member] = emulated_now();
    p.told = told_.group->start(member, starts_, &p.starts[member], p.starts);
    return me.next++;
  }

  bool progress(int member, u64 ticket) override {
    Member& me = members_[member];
    Place& p = me.place(ticket);
    if (p.open != ticket) return true;
    stopped_.check();
    const bool moved = !real_ || real_->progress(member, p.moved);
    for (; me.heard <= ticket; settle(me))
      if (!told_.group->progress(member, me.place(me.heard).told)) return false;
    if (!moved || emulated_now() < p.due) return false;
    p.open.reset();
    return true;
  }

  double wait(int member, u64 ticket) override {
    Member& me = members_[member];
    Place& p = me.place(ticket);
    if (p.open != ticket) return 0;
    const double from = emulated_now();
    double slept = real_ ? real_->wait(member, p.moved) : 0;
    for (; me.heard <= ticket; settle(me)) slept += told_.group->wait(member, me.place(me.heard).told);
    slept += pass_until(std::max(from, p.due), stopped_);
    p.open.reset();
    return slept;
  }

  void stop() noexcept override {
    stopped_.set();
    if (real_) real_->stop();
    told_.group->stop();
  }

 private:
  struct Prepared {
    CollectiveShape shape;
    double seconds = 0;
    std::uint32_t real = 0;  // as the real group has prepared it
  };
  struct Place {
    std::optional<u64> open = {};  // the ticket that is under way
    std::uint32_t what = 0;
    u64 moved = 0, told = 0;   // tickets
    double* starts = nullptr;  // per member
    double due = 0;
  };
  struct Member {  // touched by its own thread only
    std::vector<Place> places;
    u64 next = 0, heard = 0;  // tickets: the next to start; the first that some member may not have started yet
    EmulatedLink link;
    Place& place(u64 ticket) { return places[ticket % places.size()]; }
  };
  int members() const { return ranks_.size(); }
  // All have started it. Collectives follow each other on the link in the order of tickets, on all members.
  void settle(Member& me) {
    Place& p = me.place(me.heard++);
    p.due = me.link.collective(*std::max_element(p.starts, p.starts + members()), prepared_[p.what].seconds);
  }

  Cluster links_;
  std::vector<int> ranks_;  // per member
  std::unique_ptr<CollectiveGroup> real_;
  GroupWithMemory told_;
  std::uint32_t starts_ = 0;  // what members tell each other, prepared
  std::vector<Member> members_;
  std::vector<Prepared> prepared_;
  StopFlag stopped_;
};

}  // namespace

u64 bytes_of_starts(std::size_t members, int under_way) { return members * members * under_way * sizeof(double); }

std::unique_ptr<CollectiveGroup> emulated_group(const Cluster& links, std::vector<int> ranks, int under_way,
                                                std::unique_ptr<CollectiveGroup> real, GroupWithMemory told) {
  return std::make_unique<EmulatedGroup>(links, std::move(ranks), under_way, std::move(real), std::move(told));
}

}  // namespace stretto
