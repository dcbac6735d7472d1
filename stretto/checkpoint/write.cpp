// Writing: all files into a directory beside the final one, each made durable, the manifest last; then one rename. At
// any moment before it the old state stands, at any moment after it the new one.
#include <fcntl.h>
#include <fmt/ranges.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>

#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/text.h"
#include "stretto/base/threads.h"
#include "stretto/checkpoint/checkpoint.h"
#include "stretto/formats/atomic_file.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t writer_count = 4;  // shards are hashed and written side by side

[[noreturn]] void fail(const fs::path& path, std::string_view doing, const std::error_code& why) {
  throw_run_error(file_error(path, doing, why), why);
}

// Without its manifest it is no checkpoint any more: whatever stops this half-way, nobody reads what is left. Of a link
// only the link goes: what it leads to may be another run's.
void remove_checkpoint(const fs::path& path) {
  std::error_code wrong;
  if (!is_link(path)) fs::remove(path / manifest_name, wrong);
  if (!wrong) fs::remove_all(path, wrong);
  if (wrong) fail(path, "removed", wrong);
}

// Removes what was being written when a run was killed. Returns whether there was anything.
bool remove_leftovers(const fs::path& directory) {
  const auto left = [&] {
    const std::vector<fs::path> all = entries_of(directory);
    return std::any_of(all.begin(), all.end(), is_unfinished);
  };
  if (!left()) return false;
  remove_unfinished(directory);
  return true;
}

ManifestFile write_shard(const fs::path& directory, std::string name,
                         const std::vector<const Snapshot::Tensor*>& given) {
  std::vector<NamedTensor> tensors;
  for (const Snapshot::Tensor* t : given)
    tensors.push_back({t->name, file_type_of(t->value.dtype), t->value.sizes, t->value.bytes});
  const SafeTensorsPlan plan = plan_safetensors(tensors, {});
  ManifestFile f{.name = std::move(name)};
  StreamHash hash;
  AtomicFile file(directory / f.name);
  const auto put = [&](std::span<const std::byte> bytes) {
    file.write(bytes);
    hash.add(bytes.data(), bytes.size());
    f.bytes += bytes.size();
  };
  put(std::as_bytes(std::span(plan.head)));
  for (const std::size_t i : plan.order) {
    put(tensors[i].bytes);
    const u64 own = hash_bytes(tensors[i].bytes.data(), tensors[i].bytes.size());
    f.tensors.push_back({tensors[i].name, own, given[i]->fragment});
  }
  file.commit();
  f.hash = hash.value();
  return f;
}

void put_in_place(const fs::path& from, const fs::path& to) {
  // What stands there is exchanged for the new one in one step, and goes away with the temporary directory.
  if (is_there(to) && ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return;
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  if (errno != ENOTEMPTY && errno != EEXIST && !(errno == ENOTDIR && is_link(to)))
    fail(to, "put in its place", last_error());
  remove_checkpoint(to);  // a file system that cannot exchange
  if (::rename(from.c_str(), to.c_str()) != 0) fail(to, "put in its place", last_error());
}

}  // namespace

std::vector<ManifestFile> write_shards(const fs::path& directory, const Snapshot& s, std::string_view stem,
                                       u64 shard_bytes) {
  std::vector<std::vector<const Snapshot::Tensor*>> shards(s.tensors.empty() ? 0 : 1);
  u64 filled = 0;
  for (const Snapshot::Tensor& t : s.tensors) {
    if (!shards.back().empty() && filled + t.value.bytes.size() > shard_bytes) shards.emplace_back(), filled = 0;
    shards.back().push_back(&t);
    filled += t.value.bytes.size();
  }
  std::vector<ManifestFile> files(shards.size());
  std::atomic<std::size_t> next{0};
  const auto write_some = [&] {
    try {
      for (std::size_t i = next++; i < shards.size(); i = next++)
        files[i] = write_shard(directory, fmt::format("{}-{:05}.safetensors", stem, i + 1), shards[i]);
    } catch (...) {
      next = shards.size();  // the others need not begin another
      throw;
    }
  };
  std::vector<std::future<void>> writers;
  for (std::size_t i = 0; i < std::min(writer_count, shards.size()); ++i) writers.push_back(in_background(write_some));
  for (std::future<void>& w : writers) w.get();
  return files;
}

void UnfinishedCheckpoint::publish(const Snapshot& about, std::vector<ManifestFile> shards) {
  Manifest m{.step = about.step,
             .seed = about.seed,
             .config = about.config,
             .optimizer = about.optimizer,
             .states = about.states,
             .shards = std::move(shards)};
  if (const std::vector<std::string> faults = incomplete(m); !faults.empty())
    throw Error(unfinished_.path().string(), "would have no whole tensor {}", join(faults, "; ")).as(Error::Kind::run);
  for (const Snapshot::Extra& e : about.extras) {
    if (!is_extra_name(e.name))
      throw Error(unfinished_.path().string(), "cannot carry '{}' along", e.name)
          .hint("files may be {}", fmt::join(extra_names, ", "));
    write_file(directory() / e.name, e.text);
    m.extras.push_back({.name = e.name, .bytes = e.text.size(), .hash = hash_bytes(e.text.data(), e.text.size())});
  }
  write_file(directory() / manifest_name, manifest_text(m));
  put_in_place(directory(), unfinished_.path());
  sync_directory(unfinished_.path().parent_path());
}

void write_checkpoint(const fs::path& path, const Snapshot& s, u64 shard_bytes) {
  UnfinishedCheckpoint unfinished(path);
  unfinished.publish(s, write_shards(unfinished.directory(), s, "shard", shard_bytes));
}

void prune_checkpoints(const fs::path& directory, int keep, i64 newest) {
  int kept = 0;
  for (const fs::path& path : checkpoints_in(directory)) {
    // Those of later steps than the newest were written before the run was continued from an earlier step.
    const bool later = path.filename().string() > checkpoint_name(newest);
    if (!later && is_checkpoint(path) && kept < keep)
      ++kept;
    else
      remove_checkpoint(path);
  }
  remove_leftovers(directory);
}

bool make_room(const fs::path& directory, int keep) {
  if (remove_leftovers(directory)) return true;
  const std::vector<fs::path> all = checkpoints_in(directory);
  if (keep < 2 || std::ssize(all) < keep) return false;
  const Newest newest = newest_checkpoint(directory);  // read and compared with its hashes
  const auto oldest = std::find_if(
      all.rbegin(), all.rend(), [&](const fs::path& p) { return newest.checkpoint && p != newest.checkpoint->path(); });
  if (oldest == all.rend()) return false;
  remove_checkpoint(*oldest);
  return true;
}

}  // namespace stretto
