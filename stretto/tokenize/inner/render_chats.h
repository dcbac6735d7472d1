// scripts/render_chats as a part of the library, so that it is there wherever the library is.
#pragma once
#include <string_view>

namespace stretto {

std::string_view render_chats_script();

}  // namespace stretto
