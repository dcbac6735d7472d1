#include "failure.h"

#include <filesystem>
#include <new>

#include "stretto/base/error.h"

namespace stretto::app {

Failure failure_of(std::exception_ptr e) {
  try {
    std::rethrow_exception(e);
  } catch (const Error& error) {
    return {error.what(), error.exit_code()};
  } catch (const std::filesystem::filesystem_error& e) {
    return {fmt::format("[{}] {}", e.path1().string(), e.code().message()), int(Error::Kind::input)};
  } catch (const std::bad_alloc&) {
    return {"[memory] out of memory; hint: a smaller batch, more microbatches or recompute need less",
            int(Error::Kind::run)};
  } catch (const std::exception& other) {
    const Error said = Error("internal", "{}", other.what()).hint("this is a bug in Stretto, please report it");
    return {said.what(), int(Error::Kind::run)};
  }
}

}  // namespace stretto::app
