#include "stretto/base/error.h"

#include "stretto/base/text.h"

namespace stretto {
namespace {

// Of one message. A word is what a value looks like: names and paths fit, a file that was taken for one does not.
constexpr std::size_t longest_shown_word = 400, longest_shown_part = 8000, most_faults = 50, most_text = 32000;

std::string bounded(std::string_view part) { return printable(part, longest_shown_word, longest_shown_part); }

}  // namespace

std::string Fault::str() const {
  std::string s = where.empty() ? bounded(what) : "[" + bounded(where) + "] " + bounded(what);
  return hint.empty() ? s : s + "; hint: " + bounded(hint);
}

Error&& Error::or_hint(std::string_view h) && {
  for (Fault& f : faults_)
    if (f.hint.empty()) f.hint = h;
  write();
  return std::move(*this);
}

Error&& Error::about(const std::vector<std::string>& settings) && {
  for (Fault& f : faults_)
    if (f.subjects.empty()) f.subjects = settings;
  return std::move(*this);
}

Error& Error::within(std::string context) {
  contexts_.push_back(std::move(context));
  write();
  return *this;
}

void Error::write() {
  text_.clear();
  std::size_t said = 0;
  for (; said < faults_.size() && said < most_faults && text_.size() < most_text; ++said) {
    if (said > 0) text_ += '\n';
    text_ += faults_[said].str();
  }
  if (said < faults_.size()) text_ += fmt::format("\nand {} more faults like these", faults_.size() - said);
  for (const std::string& c : contexts_) text_ += " (" + bounded(c) + ")";
}

void broken(const char* file, int line, const char* condition, const char* why) {
  throw Error("internal", "{}:{}: {} does not hold{}{}", file, line, condition, *why ? ": " : "", why)
      .hint("this is a bug in Stretto, please report it with the command that led here")
      .as(Error::Kind::bug);
}

}  // namespace stretto
