// The text of the error that something ends with: EXPECT_EQ(refusal_of([&] { load(path); }), "[load] ...");
#pragma once
#include <gtest/gtest.h>

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

// ... of an error whose kind is input: the user can mend it.
inline std::string input_refusal_of(const std::function<void()>& f) {
  return refusal_of([&] {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code(), 1) << e.what();
      throw;
    }
  });
}

}  // namespace stretto
