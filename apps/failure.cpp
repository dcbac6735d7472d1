#include "failure.h"

#include <filesystem>
#include <new>

#include "stretto/base/error.h"

namespace stretto::app {

Failure failure_of(const Error& e) { return {e.what(), e.exit_code(), e.kind(), e.faults().front().where}; }

Failure failure_of(std::exception_ptr e) {
  try {
    std::rethrow_exception(e);
  } catch (const Error& error) {
    return failure_of(error);
  } catch (const std::filesystem::filesystem_error& e) {
    return {fmt::format("[{}] {}", e.path1().string(), e.code().message()), int(Error::Kind::input),
            Error::Kind::input};
  } catch (const std::bad_alloc&) {
    return {
        "[memory] out of memory; hint: end other programs; of a run a smaller batch, more microbatches or recompute "
        "need less",
        int(Error::Kind::run)};
  } catch (const std::exception& other) {
    return failure_of(
        Error("internal", "{}", other.what()).hint("this is a bug in Stretto, please report it").as(Error::Kind::bug));
  }
}

}  // namespace stretto::app
