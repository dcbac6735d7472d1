// Days as they are written: 2026-11-18.
#pragma once
#include <string>
#include <string_view>

namespace stretto {

bool is_day(std::string_view);
std::string today();  // where this machine is

}  // namespace stretto
