// The products of attention's tiles, in the form that suits this processor: an ordered table, best first, of which the
// first that runs here is taken. Every form adds in the same order, with one rounding per product and sum: its bits are
// those of every other.
//
//   tile_form<float>().plain(k, a, pitch_a, panel, c, pitch_c, add);
#pragma once
#include <span>
#include <string_view>

#include "stretto/base/id.h"
#include "stretto/base/processor.h"

namespace stretto {

// c[6][width] = (add ? c : 0) + sum over k of a[6][k] * panel[k][width], where 64 bytes are a row of the panel.
template <class T>
using TileProduct = void (*)(i64 k, const T* a, i64 pitch_a, const T* panel, T* c, i64 pitch_c, bool add);
template <class T>
struct TileForm {
  std::string_view name;
  bool (*runs)(const Processor&);
  TileProduct<T> plain, turned;  // turned: a is stored as [k][6]
};

template <class T>
std::span<const TileForm<T>> tile_forms();  // float, double
template <class T>
const TileForm<T>& tile_form();  // chosen once

}  // namespace stretto
