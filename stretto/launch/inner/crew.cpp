#include "stretto/launch/inner/crew.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "stretto/launch/inner/system.h"

namespace stretto {

void Crew::listen(double seconds, std::optional<int> wake) {
  std::vector<pollfd> fds{to_read(wake), to_read(switchboard_.fd())};
  for (const Line& l : strangers_) fds.push_back(to_read(l.fd()));
  for (const Member& m : members_) fds.push_back(to_read(m.line.fd()));
  if (::poll(fds.data(), fds.size(), int(seconds * 1e3)) <= 0) return;
  auto at = fds.begin() + 2;
  std::vector<Line> waiting;
  for (Line& l : std::exchange(strangers_, {})) {
    if ((at++)->revents != 0)
      greet(std::move(l));
    else
      waiting.push_back(std::move(l));
  }
  strangers_ = std::move(waiting);
  for (Member& m : members_)
    if ((at++)->revents != 0) hear(m);
  if (fds[1].revents != 0) let_in();
}

void Crew::let_in() {
  while (auto line = switchboard_.accept())
    if (!closed_) strangers_.push_back(std::move(*line));
}

void Crew::greet(Line&& line) {
  const auto word = line.word();
  if (closed_ || !word || word->kind != Word::Kind::begins || word->rank < 0 || word->rank >= int(members_.size()))
    return;
  Member& m = members_[word->rank];
  if (m.course.begun || !line.tell(Command::go)) return;
  m.course.begun = true;
  m.line = std::move(line);
}

void Crew::hear(Member& m) {
  const auto word = m.line.word();
  if (!word)
    m.line.close();
  else if (word->kind == Word::Kind::said)
    m.course.said = LastWord{.code = word->number, .why = word->text};
  else if (word->kind == Word::Kind::ended)
    m.course.end = RankEnd{.status = word->number, .time = word->time, .told = word->told, .last_line = word->text};
}

void Crew::tell(Command c) const {
  for (const Member& m : members_)
    if (m.line.open()) m.line.tell(c);
}

// As long as its line is open the process is there, and its number nobody else's.
void Crew::kill() const {
  for (const Member& m : members_)
    if (m.line.open() && m.line.other() > 0) ::kill(m.line.other(), SIGKILL);
}

void Crew::dismiss() {
  closed_ = true;
  strangers_.clear();
  tell(Command::end);
}

int Crew::begun() const {
  return int(std::count_if(members_.begin(), members_.end(), [](const Member& m) { return m.course.begun; }));
}
int Crew::present() const {
  return int(std::count_if(members_.begin(), members_.end(), [](const Member& m) { return m.line.open(); }));
}
bool Crew::failed() const {
  return std::any_of(members_.begin(), members_.end(), [](const Member& m) {
    return m.course.end ? m.course.end->status != 0 : m.course.begun && !m.line.open();
  });
}
std::vector<RankCourse> Crew::courses() const {
  std::vector<RankCourse> all;
  for (const Member& m : members_) all.push_back(m.course);
  return all;
}

}  // namespace stretto
