// The text of the error that something ends with: EXPECT_EQ(refusal_of([&] { load(path); }), "[load] ...");
#pragma once
#include <functional>
#include <string>

#include "stretto/base/error.h"

namespace stretto {

inline std::string refusal_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace stretto
