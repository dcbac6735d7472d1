// What is said about an exception, and the exit code that goes with it.
//
//   catch (...) { const Failure f = failure_of(std::current_exception()); ... }
#pragma once
#include <exception>
#include <string>

namespace stretto::app {

struct Failure {
  std::string text;
  int code = 0;
};
Failure failure_of(std::exception_ptr);

}  // namespace stretto::app
