// The whole C interface: stretto_call("simulate_run", "{...}") gives {"result": ...} or {"error": ...} as text, which
// stretto_free() takes back. Nothing is thrown across it. Calls on one trainer come from one thread at a time.
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include "calls.h"
#include "stretto/kernels/processor.h"

namespace stretto::python {
namespace {

using Call = Field (*)(const Arguments&);
const std::map<std::string_view, Call>& calls() {
  static const std::map<std::string_view, Call> all{
#define CALL(name) {#name, name},
#include "calls.def"
#undef CALL
  };
  return all;
}

Field error_field(const Error& e) {
  Field::Array faults;
  for (const Fault& f : e.faults())
    faults.push_back(Field::Table{{"where", f.where}, {"what", f.what}, {"hint", f.hint}});
  return Field::Table{{"error", Field::Table{{"faults", faults}, {"text", e.what()}, {"code", e.exit_code()}}}};
}

Field answer(const char* name, const char* arguments) try {
  static const bool checked = (check_kernels_run_here(), true);
  (void)checked;
  const auto it = calls().find(name);
  STRETTO_ASSERT(it != calls().end(), "a call that does not exist");
  const Field given = read_json(arguments, "arguments");
  return Field::Table{{"result", it->second(Arguments(given))}};
} catch (const Error& e) {
  return error_field(e);
} catch (const std::bad_alloc&) {
  return error_field(
      Error("memory", "out of memory").hint("a smaller batch, more microbatches or recompute need less"));
} catch (const std::exception& e) {
  return error_field(Error("internal", "{}", e.what()).as(Error::Kind::bug));
}

}  // namespace

// What Python gave may be of another type than the one that is wanted.
template <class T>
static const T& value_of(const Field& f, std::string_view key, const char* wanted) {
  if (const T* value = std::get_if<T>(&f.value)) return *value;
  throw Error("arguments", "'{}' is {} ({}) and should be {}", key, f.str(), f.kind(), wanted).hint("give {}", wanted);
}

const Field* Arguments::find(std::string_view key) const {
  const Field* f = all_.find(key);
  return f && !f->is_null() ? f : nullptr;
}
std::string Arguments::text(std::string_view key) const {
  const Field* f = find(key);
  return f ? value_of<std::string>(*f, key, "text") : "";
}
i64 Arguments::whole(std::string_view key, i64 otherwise) const {
  const Field* f = find(key);
  return f ? value_of<i64>(*f, key, "a whole number") : otherwise;
}
double Arguments::number(std::string_view key, double otherwise) const {
  const Field* f = find(key);
  if (!f) return otherwise;
  const i64* whole = std::get_if<i64>(&f->value);
  return whole ? double(*whole) : value_of<double>(*f, key, "a number");
}
bool Arguments::flag(std::string_view key) const {
  const Field* f = find(key);
  return f && std::get<bool>(f->value);
}
std::vector<std::string> Arguments::texts(std::string_view key) const {
  std::vector<std::string> all;
  if (const Field* f = find(key))
    for (const Field& text : *f->array()) all.push_back(std::get<std::string>(text.value));
  return all;
}

RunConfig run_of(const Arguments& a) {
  RunConfig run = read_run(a.text("run"), a.texts("settings"));
  if (!run.searched.empty())
    throw Error("run", "'{}' is \"auto\"", run.searched.front())
        .hint("stretto.plan(...).best[0].settings says what to use");
  return run;
}

Field numbers(const std::vector<double>& all) { return Field::Array(all.begin(), all.end()); }

}  // namespace stretto::python

#define STRETTO_PUBLIC __attribute__((visibility("default")))

extern "C" {

STRETTO_PUBLIC char* stretto_call(const char* name, const char* arguments) {
  const std::string text = stretto::write_json(stretto::python::answer(name, arguments));
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

STRETTO_PUBLIC void stretto_free(char* text) { std::free(text); }

STRETTO_PUBLIC const char* stretto_version() { return STRETTO_VERSION; }
}
