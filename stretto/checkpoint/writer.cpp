#include "stretto/checkpoint/writer.h"

#include <new>
#include <utility>

#include "stretto/base/files.h"
#include "stretto/base/threads.h"

namespace stretto {
namespace {

// Room for `keep` checkpoints is enough: the oldest goes before the new one is there, if it must.
template <class F>
void write_with_room(const std::filesystem::path& directory, int keep, F write) {
  while (true) {
    try {
      return write();
    } catch (const FullDisk&) {
      if (!make_room(directory, keep)) throw;
    }
  }
}

Saved write(const std::filesystem::path& directory, const Snapshot& s, int keep, u64 shard_bytes) {
  Saved saved{.step = s.step, .path = directory / checkpoint_name(s.step)};
  try {
    write_with_room(directory, keep, [&] { write_checkpoint(saved.path, s, shard_bytes); });
    prune_checkpoints(directory, keep, s.step);
  } catch (const std::exception& e) {
    saved.error = why(e);
  }
  return saved;
}

}  // namespace

std::string why(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e))
    return "there is no memory left; hint: raise the limit on it (ulimit -v)";
  return e.what();
}

CheckpointWriter::CheckpointWriter(std::filesystem::path directory, int keep, u64 shard_bytes)
    : directory_(std::move(directory)), keep_(keep), shard_bytes_(shard_bytes) {}

CheckpointWriter::~CheckpointWriter() {
  if (writing_.valid()) writing_.wait();
}

void CheckpointWriter::save(Snapshot s) {
  STRETTO_ASSERT(!writing_.valid(), "one checkpoint at a time");
  snapshot_ = std::move(s);
  writing_ = in_background([this] { return write(directory_, snapshot_, keep_, shard_bytes_); });
}

Snapshot CheckpointWriter::spare() {
  STRETTO_ASSERT(!writing_.valid(), "it is being written");
  return std::exchange(snapshot_, {});
}

std::optional<Saved> CheckpointWriter::poll() {
  if (!writing_.valid() || writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
  return writing_.get();
}

std::optional<Saved> CheckpointWriter::wait() {
  if (!writing_.valid()) return std::nullopt;
  return writing_.get();
}

}  // namespace stretto
