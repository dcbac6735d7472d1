// The guardians of a launch's ranks that have called so far, and what they have said.
//
//   Crew crew(4);
//   const pid_t mpirun = start_ranks(options, crew.line());
//   while (crew.present() > 0) crew.listen(0.1);
//   crew.tell(Command::stop);
#pragma once
#include <vector>

#include "stretto/launch/inner/judge.h"
#include "stretto/launch/inner/line.h"

namespace stretto {

class Crew {
 public:
  explicit Crew(int ranks) : members_(std::size_t(ranks)) {}
  const std::string& line() const { return switchboard_.name(); }

  // Waits for words, for at most so many seconds or until `wake` can be read.
  void listen(double seconds, std::optional<int> wake = {});
  void tell(Command) const;  // all who are there
  void kill() const;         // all who are there; a guardian takes its rank along
  void dismiss();            // nobody is let in any more, and all who are there are told to end

  int begun() const;
  int present() const;  // have begun and are not gone
  bool failed() const;  // one of them
  std::vector<RankCourse> courses() const;

 private:
  struct Member {
    Line line;
    RankCourse course;
  };
  void let_in();
  void greet(Line&&);
  void hear(Member&);

  Switchboard switchboard_;
  std::vector<Line> strangers_;  // have called and have not said who they are yet
  std::vector<Member> members_;  // per rank
  bool closed_ = false;
};

}  // namespace stretto
