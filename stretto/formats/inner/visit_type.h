// From a type that files name to one that C++ has.
//
//   visit_type(tensor.type, [&]<class T>(T) { fmt::print("{} bytes each\n", sizeof(T)); });
#pragma once
#include <cstdint>

#include "stretto/base/error.h"
#include "stretto/formats/stored_tensor.h"

namespace stretto {

// Two-byte floats as types of their own, so that visitors can tell them from integers.
struct F16Bits {
  std::uint16_t bits;
};
struct BF16Bits {
  std::uint16_t bits;
};
struct BoolByte {
  std::uint8_t value;
};

// Calls f with a value of the type that is stored.
template <class F>
auto visit_type(FileType type, F f) {
  switch (type) {
    case FileType::BOOL:
      return f(BoolByte{});
    case FileType::U8:
      return f(std::uint8_t{});
    case FileType::I8:
      return f(std::int8_t{});
    case FileType::I16:
      return f(std::int16_t{});
    case FileType::U16:
      return f(std::uint16_t{});
    case FileType::F16:
      return f(F16Bits{});
    case FileType::BF16:
      return f(BF16Bits{});
    case FileType::I32:
      return f(std::int32_t{});
    case FileType::U32:
      return f(std::uint32_t{});
    case FileType::F32:
      return f(float{});
    case FileType::F64:
      return f(double{});
    case FileType::I64:
      return f(std::int64_t{});
    case FileType::U64:
      return f(std::uint64_t{});
  }
  STRETTO_ASSERT(false, "a type of files that nobody knows");
}

}  // namespace stretto
