// A config.json in one direction or the other: one function per model type names its keys once. For models/hf_*.cpp
// only.
//
//   x("rms_norm_eps", c.norm_eps, above(0));      // read from the file, or written to it
#pragma once
#include "stretto/models/inner/hf_keys.h"

namespace stretto {

class Exchange {
 public:
  explicit Exchange(FieldReader& from) : in_(&from) {}
  explicit Exchange(Field& to) : out_(&to) {}
  bool reading() const { return in_ != nullptr; }
  FieldReader& in() { return *in_; }
  Field& out() { return *out_; }

  // A key of the file and what it is here; `need`: the file must have it.
  void operator()(std::string_view key, i64& value, Range range = {}) { number(key, value, range); }
  void operator()(std::string_view key, double& value, Range range = {}) { number(key, value, range); }
  void operator()(std::string_view key, bool& value) {
    reading() ? void(in_->read(key, value)) : void(out_->set(key, value));
  }
  void need(std::string_view key, i64& value) {
    if (reading()) in_->need(key);
    number(key, value, at_least(1));
  }
  // A number that is null where there is none.
  template <class T>
  void maybe(std::string_view key, T& value) {
    if (reading())
      in_->read(key, value, at_least(0));
    else
      out_->set(key, value == 0 ? Field() : Field(value));
  }
  void must_be(std::string_view key, bool value) {
    reading() ? hf::must_be(*in_, key, value) : void(out_->set(key, value));
  }
  void ignore(std::initializer_list<std::string_view> keys) {
    if (reading()) in_->ignore(keys);
  }

 private:
  template <class T>
  void number(std::string_view key, T& value, Range range) {
    reading() ? void(in_->read(key, value, range)) : void(out_->set(key, value));
  }
  FieldReader* in_ = nullptr;
  Field* out_ = nullptr;
};

}  // namespace stretto
