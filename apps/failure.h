// What is said about an exception, and the exit code that goes with it.
//
//   catch (...) { const Failure f = failure_of(std::current_exception()); ... }
#pragma once
#include <exception>
#include <string>

#include "stretto/base/error.h"

namespace stretto::app {

struct Failure {
  std::string text;
  int code = 0;
  Error::Kind kind = Error::Kind::run;
  std::string where = {};  // of the first fault: "watchdog", a file, ...
};
Failure failure_of(const Error&);
Failure failure_of(std::exception_ptr);

}  // namespace stretto::app
