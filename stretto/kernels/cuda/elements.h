// What pointwise ops compute, as an expression of CUDA C++ in a, b and c: T is the first operand's type, R the
// result's.
//
//   cuda_element("silu")      // "a * sigmoid(a)"; empty: none is written
#pragma once
#include <string_view>

namespace stretto {

std::string_view cuda_element(std::string_view op);
std::string_view cuda_element_functions();  // that the expressions call

}  // namespace stretto
