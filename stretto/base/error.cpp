#include "stretto/base/error.h"

namespace stretto {

std::string Fault::str() const {
  std::string s = where.empty() ? what : "[" + where + "] " + what;
  return hint.empty() ? s : s + "; hint: " + hint;
}

Error& Error::within(std::string context) {
  contexts_.push_back(std::move(context));
  write();
  return *this;
}

void Error::write() {
  text_.clear();
  for (const Fault& f : faults_) {
    if (!text_.empty()) text_ += '\n';
    text_ += f.str();
  }
  for (const std::string& c : contexts_) text_ += " (" + c + ")";
}

void broken(const char* file, int line, const char* condition, const char* why) {
  throw Error("internal", "{}:{}: {} does not hold{}{}", file, line, condition, *why ? ": " : "", why)
      .hint("this is a bug in Stretto, please report it with the command that led here")
      .as(Error::Kind::bug);
}

}  // namespace stretto
