// Named dimensions. `Dim heads{"heads", 8}; Dims{heads, head}`; within one traced program a name has one size.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/id.h"

namespace stretto {

struct Like;

struct Dim {
  std::string name;
  i64 size = 0;                         // what is stored and computed on
  i64 logical = 0;                      // 0: the same as size; smaller when the dim is padded
  std::string parent = {};              // like(): inherits the parent's axes unless the layout maps this name
  std::vector<std::string> minus = {};  // ... except those taken by these dims
  std::vector<std::string> plus = {};   // ... and those of these dims
  // grouped(): rows of which each names an index of another dim, and which are where that index is. How many a rank has
  // is known at run time only: of a shard `size` is what there is room for and `filled` what it has on average.
  std::string by = {};
  i64 filled = 0;
  bool is_whole = false;  // whole(): never split
  i64 first = 0;          // of a segment: its first element's place in the whole. Positions count from there
  // Of a shard: the mesh axes it is split over, major to minor. `size` is then one rank's part and `logical` the valid
  // size of the whole.
  std::vector<std::string> axes = {};

  Dim like(std::string new_name) const;
  Dim like(std::string new_name, const Like&) const;  // batch.like("batch_x", {.minus = experts})
  Dim whole(std::string new_name) const;
  Dim grouped(const Dim& by) const;
  Dim padded(i64 multiple) const;  // {"vocab", 50257}.padded(128): 50304 stored; files, loss and norms see 50257
  i64 valid() const { return logical ? logical : size; }
  std::string str() const;  // "vocab=50257" or "vocab=50257+47"
  bool operator==(const Dim&) const = default;
};

struct Dims : std::vector<Dim> {  // `in`, `{heads, head}` and `{{"in", 3}}` all convert
  Dims() = default;
  Dims(Dim one) { push_back(std::move(one)); }
  Dims(std::initializer_list<Dim> many) : vector(many) {}
  explicit Dims(std::vector<Dim> many) : vector(std::move(many)) {}
  std::string str() const;  // "{batch=8 ff=2048}"
};

struct Like {
  Dims minus = {}, plus = {};
  i64 size = 0;  // 0: the parent's
};

using DimSet = std::vector<DimId>;  // ordered: major to minor
bool contains(const DimSet&, DimId);
std::optional<int> find(const DimSet&, DimId);
int position(const DimSet&, DimId);          // it must be there
DimSet without(DimSet, const DimSet& gone);  // keeps the order
DimSet joined(DimSet, const DimSet& more);   // appends what is missing

}  // namespace stretto
