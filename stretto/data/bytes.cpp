// Any file as its bytes.
#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/data/token_source.h"
#include "stretto/formats/mapped_file.h"

namespace stretto {
namespace {

class Bytes : public TokenSource {
 public:
  explicit Bytes(const std::vector<std::filesystem::path>& paths) {
    for (const auto& path : paths) {
      files_.emplace_back(path);
      ends_.push_back(tokens() + files_.back().bytes().size());
    }
    if (tokens() > 0) return;
    throw Error("data", "{} has 0 bytes", paths.size() == 1 ? "'" + paths[0].string() + "'" : "every file of data.path")
        .hint("name a file with text in it");
  }

  i64 tokens() const override { return ends_.empty() ? 0 : ends_.back(); }
  i64 vocab() const override { return 256; }

  void read(i64 first, std::span<std::int32_t> to) const override {
    STRETTO_ASSERT(first >= 0 && first + std::ssize(to) <= tokens(), "outside of the files");
    std::size_t file = std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin();
    i64 at = first - (file == 0 ? 0 : ends_[file - 1]);
    for (std::size_t done = 0; done < to.size(); ++file, at = 0) {
      const auto bytes = files_[file].bytes().subspan(at);
      const std::size_t n = std::min(bytes.size(), to.size() - done);
      std::transform(bytes.begin(), bytes.begin() + n, to.begin() + done,
                     [](std::byte b) { return std::to_integer<std::int32_t>(b); });
      done += n;
    }
  }

  std::vector<i64> documents(i64 first, i64 end) const override {
    std::vector<i64> starts;
    for (const i64 e : ends_)
      if (e > first && e < end && (starts.empty() || starts.back() != e)) starts.push_back(e);
    return starts;
  }

  std::string str() const override {
    return files_.size() == 1
               ? fmt::format("{}, {} bytes", files_[0].path().string(), tokens())
               : fmt::format("{} files from {} on, {} bytes", files_.size(), files_[0].path().string(), tokens());
  }

 private:
  std::vector<MappedFile> files_;
  std::vector<i64> ends_;  // of each file, in tokens from the start of the first
};

}  // namespace

std::shared_ptr<const TokenSource> open_bytes(const std::vector<std::filesystem::path>& files) {
  return std::make_shared<Bytes>(files);
}

}  // namespace stretto
