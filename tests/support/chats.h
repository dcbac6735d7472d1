// What tests of conversations need: whether anything here can render them, and conversations as JSON.
#pragma once
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/tokenize/chat_renderer.h"

namespace stretto::test {

inline bool can_render() {
  static const bool can = [] {
    try {
      ChatRenderer({.source = "x", .where = "x"});
      return true;
    } catch (const Error&) {
      return false;
    }
  }();
  return can;
}

inline std::string one_message(const std::string& content) {
  return R"({"messages": [{"role": "user", "content": )" + json_text(content) + "}]}";
}

}  // namespace stretto::test

#define STRETTO_NEEDS_JINJA() \
  if (!::stretto::test::can_render()) GTEST_SKIP() << "there is no python3 with jinja2: apt-get install python3-jinja2"
