// A rank: a child of the launch, in the place that mpirun has for it.
//
//   Rank rank;
//   rank.begin(std::move(place), options, screens);
//   rank.listen(poll);  ...  rank.look();          // again and again
//   rank.course().end
#pragma once
#include <optional>
#include <string>

#include "stretto/launch/inner/judge.h"
#include "stretto/launch/inner/place.h"
#include "stretto/launch/inner/stream.h"
#include "stretto/launch/inner/system.h"

namespace stretto {

struct Screens {
  Screen out{1}, error{2};
};

class Rank {
 public:
  void begin(Place, const LaunchOptions&, Screens&);
  void listen(Poll&);  // for what it prints, says last, and for its holder
  void look();         // whether it has ended
  void stop() const;   // asks it to end after its step
  void end();          // at once

  bool begun() const { return course_.begun; }
  bool running() const { return begun() && !course_.end; }
  bool failed() const { return course_.end && course_.end->status != 0; }
  const RankCourse& course() const { return course_; }

 private:
  void note_end(int status);
  Place place_;
  pid_t process_ = 0;
  Fd log_, word_;
  Stream out_, error_;
  std::string heard_;
  bool told_ = false;
  std::optional<double> lost_ = {};  // since when its holder is gone
  RankCourse course_;
};

}  // namespace stretto
