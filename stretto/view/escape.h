// Text made safe for where it is put: `escape_xml("a<b") == "a&lt;b"`, `json_text("a\"b") == "\"a\\\"b\""`.
#pragma once
#include <string>
#include <string_view>

namespace stretto {

std::string escape_xml(std::string_view);  // control characters become spaces, broken UTF-8 becomes U+FFFD
std::string json_text(std::string_view);   // quoted, ASCII only, and without "<", so that it may stand inside <script>

}  // namespace stretto
