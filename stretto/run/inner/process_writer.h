// Writes the checkpoints of several processes that see one directory: each its own shards, on a thread of its own; when
// all have, the first one makes a checkpoint of them. Every process makes the same calls and gets the same answers.
//
//   ProcessWriter writer(peers, directory / "checkpoints", keep);
//   writer.save(share_of(trainer, peers.rank(), config, writer.spare()));
//   if (auto saved = writer.poll()) ...            // one has been written, or has failed
#pragma once
#include <future>

#include "stretto/checkpoint/writer.h"
#include "stretto/comm/peers.h"

namespace stretto {

class ProcessWriter {
 public:
  ProcessWriter(Peers&, std::filesystem::path directory, int keep, u64 shard_bytes = default_shard_bytes);
  ~ProcessWriter();  // of one that is not complete nothing stays
  ProcessWriter(const ProcessWriter&) = delete;

  void save(Snapshot share);  // nothing may be under way: wait() first
  Snapshot spare();           // see CheckpointWriter
  std::optional<Saved> poll();
  std::optional<Saved> wait();

 private:
  enum class Phase : std::uint8_t { nothing, shards, manifest };
  bool done() const;  // what this process does in this phase
  void begin();
  void publish(const std::vector<std::string>& manifests);
  bool made_room(const std::vector<std::string>& words);
  Saved finished(std::string error);

  Peers& peers_;
  std::filesystem::path directory_;  // the first one's alone is used
  int keep_;
  u64 shard_bytes_;
  Phase phase_ = Phase::nothing;
  Snapshot snapshot_;                               // the one that is being written
  std::optional<UnfinishedCheckpoint> unfinished_;  // of the first one
  std::future<std::string> work_;                   // in a phase; valid while it is under way
};

// Whether a directory that the first process sees is seen by all of them.
bool all_see(Peers&, const std::filesystem::path& directory);

}  // namespace stretto
