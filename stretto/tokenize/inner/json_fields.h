// How tokenizer.json is asked: `text(field, "type")`, `flag(field, "split", true)`; Errors name the line.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "stretto/base/error.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/utf8.h"

namespace stretto::tokenizer_fields {

// A key that is not null.
inline const Field* there(const Field& in, std::string_view key) {
  const Field* f = in.find(key);
  return f && !f->is_null() ? f : nullptr;
}

template <class T>
const T& as(const Field& f, std::string_view key, std::string_view what) {
  const T* v = std::get_if<T>(&f.value);
  if (!v) throw Error(f.source.str(), "'{}' is {} where {} is expected", key, f.kind(), what);
  return *v;
}

template <class T>
const T& need(const Field& in, std::string_view key, std::string_view what) {
  const Field* f = there(in, key);
  if (!f) throw Error(in.source.str(), "'{}' is missing", key);
  return as<T>(*f, key, what);
}

inline std::string text(const Field& in, std::string_view key) { return need<std::string>(in, key, "a string"); }
inline bool flag(const Field& in, std::string_view key, bool otherwise) {
  const Field* f = there(in, key);
  return f ? as<bool>(*f, key, "true or false") : otherwise;
}
inline std::int32_t id_of(const Field& f, std::string_view what) {
  const i64 id = as<i64>(f, what, "an id");
  if (id < 0 || id > std::numeric_limits<std::int32_t>::max())
    throw Error(f.source.str(), "the id of '{}' is {}", shown(what), id);
  return id;
}

[[noreturn]] inline void refuse(const Field& f, std::string_view what, std::string_view supported) {
  const Field* type = f.find("type");
  throw Error(f.source.str(), "the {} {} is not supported", what, type ? type->str() : f.str())
      .hint("supported: {}; those of GPT-2, Llama, Mistral, Gemma and Qwen are read", supported);
}

}  // namespace stretto::tokenizer_fields
