// The one exception type. Smallest use:
//
//   throw Error("contract", "dim '{}' is {} in {}", name, size, tensor).hint("rename '{}' first", name);
//
// prints as `[contract] dim 'ff' is 2048 in h.3; hint: rename 'ff' first`. Verifiers return a list of faults and
// `refuse(faults)` throws them all. Whatever the values in it, a message stays short and has no control characters.
#pragma once
#include <fmt/format.h>

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace stretto {

struct Fault {
  std::string where, what, hint;
  // The settings that it may be about, the likeliest first: {"parallel.stages", "parallel.pipe"}. Whoever has read them
  // says where the first of them that was given stands.
  std::vector<std::string> subjects = {};
  std::string str() const;  // "[where] what; hint: hint"
  Fault&& about(std::vector<std::string> settings) && {
    subjects = std::move(settings);
    return std::move(*this);
  }
  bool operator==(const Fault&) const = default;
};

class Error : public std::exception {
 public:
  // The process exit code. A bug also exits with 3: to the user it is a failed run.
  enum class Kind { input = 1, usage = 2, run = 3, bug = 4 };

  template <class... A>
  Error(std::string_view where, fmt::format_string<A...> what, A&&... a)
      : faults_{{std::string(where), fmt::format(what, std::forward<A>(a)...), ""}} {
    write();
  }
  explicit Error(std::vector<Fault> all) : faults_(std::move(all)) { write(); }

  template <class... A>
  Error&& hint(fmt::format_string<A...> h, A&&... a) && {
    faults_.back().hint = fmt::format(h, std::forward<A>(a)...);
    write();
    return std::move(*this);
  }
  Error&& or_hint(std::string_view h) &&;                      // all faults that have no hint yet
  Error&& about(const std::vector<std::string>& settings) &&;  // all faults that have no subject yet
  Error&& as(Kind k) && {
    kind_ = k;
    return std::move(*this);
  }
  Error& within(std::string context);  // "rank 3, stage 1, microbatch 2": added while the error travels up

  const std::vector<Fault>& faults() const { return faults_; }
  Kind kind() const { return kind_; }
  int exit_code() const { return kind_ == Kind::bug ? 3 : int(kind_); }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  void write();  // text_ from faults_ and contexts_, so that what() cannot fail; of many faults only the first ones
  std::vector<Fault> faults_;
  std::vector<std::string> contexts_;
  Kind kind_ = Kind::input;
  std::string text_;
};

// What f() returns; its Errors say at least this: with_hint("is the file cut off?", [&] { return parse(text); })
template <class F>
auto with_hint(std::string_view hint, F&& f) {
  try {
    return f();
  } catch (Error& e) {
    throw std::move(e).or_hint(hint);
  }
}

inline void refuse(std::vector<Fault> faults) {
  if (!faults.empty()) throw Error(std::move(faults));
}

// A broken invariant of ours, not a mistake of the user's. Checked in release builds too.
#define STRETTO_ASSERT(condition, ...)                                   \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::stretto::broken(__FILE__, __LINE__, #condition, "" __VA_ARGS__); \
  } while (false)
[[noreturn]] void broken(const char* file, int line, const char* condition, const char* why);

template <class... A>
Fault fault(std::string_view where, std::string hint, fmt::format_string<A...> what, A&&... a) {
  return {std::string(where), fmt::format(what, std::forward<A>(a)...), std::move(hint)};
}

}  // namespace stretto
