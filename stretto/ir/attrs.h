// Attributes of a node: any plain struct with `fields`. Equality, hash and print for all ops are here and nowhere else.
//
//   struct SumAttrs {
//     DimSet over;
//     static constexpr void fields(auto& s, auto f) { f("over", s.over); }
//   };
//   Attrs a = SumAttrs{.over = {batch}};   a.as<SumAttrs>().over
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "stretto/base/dtype.h"
#include "stretto/base/error.h"
#include "stretto/base/hash.h"
#include "stretto/ir/dim.h"

namespace stretto {

struct Graph;

// The types a field may have. Anything else (int, const char*, ...) does not compile: choose one of these.
inline void attr_hash(u64& h, i64 v) { hash_into(h, v); }
inline void attr_hash(u64& h, double v) { hash_into(h, v); }
inline void attr_hash(u64& h, bool v) { hash_into(h, v); }
inline void attr_hash(u64& h, DType v) { hash_into(h, v); }
inline void attr_hash(u64& h, DimId v) { hash_into(h, v.value); }
inline void attr_hash(u64& h, const std::string& v) { hash_into(h, std::string_view(v)); }
template <class T>
void attr_hash(u64& h, const std::vector<T>& v) {
  hash_into(h, v.size());
  for (const T& x : v) attr_hash(h, x);
}
template <class T>
void attr_hash(u64&, const T&) = delete;

std::string attr_str(const Graph&, i64);
std::string attr_str(const Graph&, double);
std::string attr_str(const Graph&, bool);
std::string attr_str(const Graph&, DType);
std::string attr_str(const Graph&, DimId);
std::string attr_str(const Graph&, const std::string&);
template <class T>
std::string attr_str(const Graph& g, const std::vector<T>& v) {
  std::string s;
  for (const T& x : v) s += (s.empty() ? "" : ",") + attr_str(g, x);
  return s;
}

using DimNames = std::function<DimId(DimId)>;
template <class T>
void attr_rename(T&, const DimNames&) {}
inline void attr_rename(DimId& d, const DimNames& to) { d = to(d); }
inline void attr_rename(DimSet& dims, const DimNames& to) {
  for (DimId& d : dims) d = to(d);
}

struct AnyField {
  template <class T>
  operator T() const;
};
template <class T, class... A>
consteval std::size_t arity() {
  if constexpr (requires { T{A{}..., AnyField{}}; })
    return arity<T, A..., AnyField>();
  else
    return sizeof...(A);
}
template <class T>
concept AttrStruct = std::is_aggregate_v<T> && requires(const T& v) {
  T::fields(v, [](std::string_view, const auto&) {});
};
template <AttrStruct T>
consteval std::size_t listed() {
  std::size_t n = 0;
  T v{};
  T::fields(v, [&](std::string_view, const auto&) { ++n; });
  return n;
}

class Attrs {
 public:
  Attrs() = default;
  template <AttrStruct T>
  Attrs(T v) : value_(std::make_shared<const T>(std::move(v))), table_(&table<T>) {
    static_assert(arity<T>() == listed<T>(),
                  "a member is missing from fields(): it would escape hash, equality and print");
  }
  template <AttrStruct T>
  const T& as() const {
    STRETTO_ASSERT(table_ == &table<T>, "attributes of another op");
    return *static_cast<const T*>(value_.get());
  }
  template <AttrStruct T>
  bool is() const {
    return table_ == &table<T>;
  }
  u64 hash() const { return table_ ? table_->hash(value_.get()) : 0; }
  std::string str(const Graph& g) const {
    return table_ ? table_->str(g, value_.get()) : "";
  }                                                                              // "over=model along=experts"
  std::string name() const { return table_ ? table_->name(value_.get()) : ""; }  // its field of that name, or ""
  // The same of other dims.
  Attrs renamed(const DimNames& to) const { return table_ ? table_->renamed(value_.get(), to) : *this; }
  // Doubles compare by their bits, as the hash does.
  friend bool operator==(const Attrs& a, const Attrs& b) {
    return a.value_ == b.value_ ||
           (a.table_ == b.table_ && a.table_ && a.table_->equal(a.value_.get(), b.value_.get()));
  }

 private:
  struct Table {
    u64 (*hash)(const void*);
    bool (*equal)(const void*, const void*);
    std::string (*str)(const Graph&, const void*);
    std::string (*name)(const void*);
    Attrs (*renamed)(const void*, const DimNames&);
  };
  template <class T>
  static u64 hash_fields(const void* p) {
    u64 h = 14695981039346656037ull;
    T::fields(*static_cast<const T*>(p), [&](std::string_view, const auto& f) { attr_hash(h, f); });
    return h;
  }
  template <class T>
  static bool equal_fields(const void* a, const void* b) {
    // Field by field through the same function that hashes: a 64-bit content hash per field, compared in order.
    std::vector<u64> left, right;
    const auto collect = [](std::vector<u64>& to) {
      return [&to](std::string_view, const auto& f) {
        u64 h = 0;
        attr_hash(h, f);
        to.push_back(h);
      };
    };
    T::fields(*static_cast<const T*>(a), collect(left));
    T::fields(*static_cast<const T*>(b), collect(right));
    return left == right;
  }
  template <class T>
  static std::string print_fields(const Graph& g, const void* p) {
    std::string s;
    T::fields(*static_cast<const T*>(p), [&](std::string_view name, const auto& f) {
      const std::string v = attr_str(g, f);
      if (!v.empty()) s += (s.empty() ? "" : " ") + std::string(name) + "=" + v;
    });
    return s;
  }
  template <class T>
  static std::string name_field(const void* p) {
    if constexpr (requires(const T& v) { std::string(v.name); }) return static_cast<const T*>(p)->name;
    return "";
  }
  template <class T>
  static Attrs renamed_fields(const void* p, const DimNames& to) {
    T all = *static_cast<const T*>(p);
    T::fields(all, [&](std::string_view, auto& f) { attr_rename(f, to); });
    return all;
  }
  template <class T>
  static constexpr Table table{&hash_fields<T>, &equal_fields<T>, &print_fields<T>, &name_field<T>, &renamed_fields<T>};
  std::shared_ptr<const void> value_;
  const Table* table_ = nullptr;
};

}  // namespace stretto
