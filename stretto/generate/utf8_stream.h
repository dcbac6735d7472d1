// Bytes that come in any pieces, let through as whole characters: a character that is not finished is held back, bytes
// that are none become U+FFFD.
//
//   Utf8Stream stream;
//   std::fputs(stream.push("\xc3").c_str(), out);      // nothing yet
//   std::fputs(stream.push("\xa9").c_str(), out);      // é
//   std::fputs(stream.finish().c_str(), out);
#pragma once
#include <string>
#include <string_view>

namespace stretto {

class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  std::string finish();  // what is held back will not be finished

 private:
  std::string held_;
};

}  // namespace stretto
