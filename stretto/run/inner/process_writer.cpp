#include "stretto/run/inner/process_writer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/base/threads.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds shortest_pause{1}, longest_pause{50};  // between two looks at what the others do

// A word that processes tell each other: what went wrong, or what came out.
struct Word {
  static std::string failed(const std::string& why) { return "-" + why; }
  static std::string full(const std::string& why) { return "!" + why; }  // the disk is
  static std::string well(const std::string& what) { return "+" + what; }
  static bool is_full(const std::string& w) { return w.starts_with('!'); }
  static bool is_well(const std::string& w) { return w.starts_with('+'); }
  static std::string rest(const std::string& w) { return w.substr(1); }
};

template <class F>
std::string attempt(F f) {
  try {
    return Word::well(f());
  } catch (const FullDisk& e) {
    return Word::full(e.what());
  } catch (const std::exception& e) {
    return Word::failed(why(e));
  }
}

// "rank 1: [...] ...": of everybody who failed.
std::string failures(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (std::size_t r = 0; r < words.size(); ++r)
    if (!Word::is_well(words[r])) all.push_back(fmt::format("rank {}: {}", r, Word::rest(words[r])));
  return join(all, "; ");
}

}  // namespace

ProcessWriter::ProcessWriter(Peers& peers, fs::path directory, int keep, u64 shard_bytes)
    : peers_(peers), directory_(std::move(directory)), keep_(keep), shard_bytes_(shard_bytes) {}

ProcessWriter::~ProcessWriter() {
  if (work_.valid()) work_.wait();
}

void ProcessWriter::save(Snapshot share) {
  STRETTO_ASSERT(phase_ == Phase::nothing, "one checkpoint at a time");
  snapshot_ = std::move(share);
  begin();
}

void ProcessWriter::begin() {
  phase_ = Phase::shards;
  const std::string made = !peers_.first() ? "" : attempt([&] {
    unfinished_.emplace(absolute_path(directory_) / checkpoint_name(snapshot_.step));
    return unfinished_->directory().string();
  });
  const std::string place = peers_.gather(made)[0];
  if (!Word::is_well(place)) {  // everybody hears it again when they are asked
    std::promise<std::string> known;
    known.set_value(peers_.first() ? place : Word::well(""));
    work_ = known.get_future();
    return;
  }
  work_ = in_background([this, directory = fs::path(Word::rest(place))] {
    return attempt([&] {
      const std::string stem = fmt::format("shard-rank-{:05}", peers_.rank());
      return manifest_text({.shards = write_shards(directory, snapshot_, stem, shard_bytes_)});
    });
  });
}

Snapshot ProcessWriter::spare() {
  STRETTO_ASSERT(phase_ == Phase::nothing, "it is being written");
  return std::exchange(snapshot_, {});
}

bool ProcessWriter::done() const {
  return !work_.valid() || work_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void ProcessWriter::publish(const std::vector<std::string>& manifests) {
  phase_ = Phase::manifest;
  if (!peers_.first()) return;
  work_ = in_background([this, manifests] {
    return attempt([&] {
      std::vector<ManifestFile> shards;
      for (const std::string& text : manifests)
        for (ManifestFile& f : parse_manifest(Word::rest(text), "what a rank has written").shards)
          shards.push_back(std::move(f));
      unfinished_->publish(snapshot_, std::move(shards));
      prune_checkpoints(directory_, keep_, snapshot_.step);
      return std::string();
    });
  });
}

// As one process does it: see write_with_room. The first one looks; all know.
bool ProcessWriter::made_room(const std::vector<std::string>& words) {
  if (std::none_of(words.begin(), words.end(), &Word::is_full)) return false;
  unfinished_.reset();
  const bool made = peers_.first() && Word::is_well(attempt([&] {
                      if (!make_room(directory_, keep_)) throw Error("checkpoint", "there is nothing to remove");
                      return std::string();
                    }));
  u64 word[] = {made ? 1u : 0u};
  peers_.merge(word);
  return word[0] != 0;
}

Saved ProcessWriter::finished(std::string error) {
  phase_ = Phase::nothing;
  unfinished_.reset();
  return {.step = snapshot_.step, .path = directory_ / checkpoint_name(snapshot_.step), .error = std::move(error)};
}

std::optional<Saved> ProcessWriter::poll() {
  if (phase_ == Phase::nothing) return std::nullopt;
  u64 busy[] = {done() ? 0u : 1u};
  peers_.merge(busy);
  if (busy[0]) return std::nullopt;
  const std::vector<std::string> words = peers_.gather(work_.valid() ? work_.get() : Word::well(""));
  const std::string error = failures(words);
  if (!error.empty() && made_room(words)) {
    begin();
    return std::nullopt;
  }
  if (!error.empty() || phase_ == Phase::manifest) return finished(error);
  publish(words);
  return std::nullopt;
}

std::optional<Saved> ProcessWriter::wait() {
  for (std::chrono::milliseconds pause = shortest_pause; phase_ != Phase::nothing;
       pause = std::min(2 * pause, longest_pause)) {
    if (auto saved = poll()) return saved;
    if (work_.valid()) work_.wait_for(pause);
  }
  return std::nullopt;
}

bool all_see(Peers& peers, const fs::path& directory) {
  constexpr std::string_view seen_mark = ".seen-";
  std::error_code wrong;
  std::string mark;
  if (peers.first()) {
    mark = (absolute_path(directory) / fmt::format("{}{}.tmp", seen_mark, ::getpid())).string();
    fs::create_directory(mark, wrong);
  }
  const std::string told = peers.gather(mark)[0];
  u64 blind[] = {!fs::is_directory(told, wrong)};
  peers.merge(blind);
  if (peers.first())
    for (const auto& entry : fs::directory_iterator(directory, wrong))  // those of runs that were killed, too
      if (entry.path().filename().string().starts_with(seen_mark)) fs::remove(entry.path(), wrong);
  return !blind[0];
}

}  // namespace stretto
