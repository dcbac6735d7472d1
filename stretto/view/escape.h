// Text made safe for where it is put: `escape_xml("a<b") == "a&lt;b"`, `quoted_json("a\"b") == "\"a\\\"b\""`.
#pragma once
#include <string>
#include <string_view>

namespace stretto {

std::string escape_xml(std::string_view);   // control characters become spaces, broken UTF-8 becomes U+FFFD
std::string quoted_json(std::string_view);  // quoted, ASCII only, and without "<", so that it may stand inside <script>

}  // namespace stretto
