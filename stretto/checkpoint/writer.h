// Writes checkpoints of a run on a thread of its own, so that training waits only for the copy that a Snapshot is.
//
//   CheckpointWriter writer(directory / "checkpoints", keep);
//   writer.save(snapshot_of(trainer, config, writer.spare()));     // returns at once
//   if (auto saved = writer.poll()) ...            // one has been written, or has failed
#pragma once
#include <filesystem>
#include <future>
#include <optional>

#include "stretto/checkpoint/checkpoint.h"

namespace stretto {

// Why something could not be written, for a message.
std::string why(const std::exception&);

struct Saved {
  i64 step = 0;
  std::filesystem::path path;
  std::string error;  // "" when it is there
};

class CheckpointWriter {
 public:
  CheckpointWriter(std::filesystem::path directory, int keep, u64 shard_bytes = default_shard_bytes);
  ~CheckpointWriter();  // finishes what it is writing
  CheckpointWriter(const CheckpointWriter&) = delete;

  void save(Snapshot);  // nothing may be under way: wait() first
  Snapshot spare();     // the last one that was written, once: its memory can be filled again
  std::optional<Saved> poll();
  std::optional<Saved> wait();

 private:
  std::filesystem::path directory_;
  int keep_;
  u64 shard_bytes_;
  Snapshot snapshot_;  // the one that is being written
  std::future<Saved> writing_;
};

}  // namespace stretto
