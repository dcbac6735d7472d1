#include "stretto/base/day.h"

#include <chrono>
#include <ctime>

namespace stretto {

bool is_day(std::string_view text) {
  const std::string whole(text);
  std::tm when{};
  const char* end = strptime(whole.c_str(), "%Y-%m-%d", &when);
  using namespace std::chrono;
  const year_month_day date(year(when.tm_year + 1900), month(when.tm_mon + 1), day(when.tm_mday));
  return whole.size() == 10 && end && end == whole.c_str() + whole.size() && date.ok();
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d", &local));
}

}  // namespace stretto
