// How a rank says what it ends with: over a pipe of which only it and the launch have an end. An exit code alone may
// be one that MPI's library has chosen.
//
//   keep_last_word();                                   // first thing in main: no child of ours gets the pipe
//   say_last_word(1, "[model] width is 0");             // last thing
#pragma once
#include <optional>
#include <string>

namespace stretto {

void keep_last_word();
void say_last_word(int code, const std::string& why);  // of several the first counts

// The launch's end.
constexpr const char* last_word_variable = "STRETTO_LAST_WORD";  // the descriptor
struct LastWord {
  int code = 0;
  std::string why;
};
std::optional<LastWord> last_word_of(const std::string& bytes);  // none: nothing was said

}  // namespace stretto
