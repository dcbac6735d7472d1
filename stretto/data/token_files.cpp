// Token files of any known format, one after the other.
#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/data/token_source.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// Tokens that are looked at before training; beyond that a thousand samples per file.
constexpr i64 kCheckedWhole = i64(1) << 31, kSample = 1 << 16, kSamples = 1000;

Error outside(const fs::path& file, i64 position, i64 token, i64 vocab) {
  return Error(file.string(), "token {} is {}, and the vocabulary is {}", position, token, vocab)
      .hint("{}",
            token < 0 || token >= (1 << 24)
                ? "is this a token file of another format? data.format can name it"
                : fmt::format("use model.vocab = {} or more, or tokenize with the tokenizer of this model", token + 1));
}

class TokenFiles : public TokenSource {
 public:
  TokenFiles(const std::vector<fs::path>& paths, const TokenFilesOptions& o) : vocab_(o.vocab) {
    for (fs::path path : paths) {
      if (path.extension() == ".idx") path.replace_extension(".bin");
      if (!files_.empty() && files_.back().path() == path) continue;  // a glob finds both files of a Megatron set
      files_.push_back(o.format ? TokenFile(path, *o.format) : TokenFile(path));
      spans_.push_back(files_.back().tokens());
      ends_.push_back(tokens() + spans_.back().size());
    }
    if (vocab_ == 0) {
      for (const TokenSpan& s : spans_) wide_ = wide_ || size_of(s.type) > 2;
      return;
    }
    for (std::size_t f = 0; f < files_.size(); ++f) check(f, tokens() <= kCheckedWhole);
  }

  i64 tokens() const override { return ends_.empty() ? 0 : ends_.back(); }
  i64 vocab() const override { return vocab_ > 0 ? vocab_ : wide_ ? i64(1) << 31 : 65536; }

  void read(i64 first, std::span<std::int32_t> to) const override {
    STRETTO_ASSERT(first >= 0 && first + i64(to.size()) <= tokens(), "outside of the files");
    std::size_t file = std::size_t(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin());
    i64 at = first - (file == 0 ? 0 : ends_[file - 1]);
    for (; !to.empty(); ++file, at = 0) {
      const std::size_t n = std::size_t(std::min(spans_[file].size() - at, i64(to.size())));
      if (!all_checked_ && vocab_ > 0) look_at(file, at, i64(n));
      spans_[file].read(at, to.first(n));
      to = to.subspan(n);
    }
  }

  std::string str() const override {
    const std::string what = fmt::format("{} ({}), {} tokens", files_[0].path().string(), files_[0].format(), tokens());
    return files_.size() == 1 ? what : fmt::format("{} files from {}", files_.size(), what);
  }

 private:
  void look_at(std::size_t file, i64 first, i64 count) const {
    const auto bad = spans_[file].part(first, count).first_outside(vocab_);
    if (bad) throw outside(files_[file].path(), first + *bad, spans_[file].at(first + *bad), vocab_);
  }

  void check(std::size_t file, bool whole) {
    const TokenSpan& s = spans_[file];
    if (s.type == FileType::U16 && vocab_ >= 65536) return;
    if (whole || s.size() <= kSample * kSamples) return look_at(file, 0, s.size());
    all_checked_ = false;
    for (i64 i = 0; i < kSamples; ++i) look_at(file, (s.size() - kSample) / (kSamples - 1) * i, kSample);
  }

  i64 vocab_;
  bool wide_ = false, all_checked_ = true;
  std::vector<TokenFile> files_;
  std::vector<TokenSpan> spans_;
  std::vector<i64> ends_;  // of each file, in tokens from the start of the first
};

}  // namespace

std::shared_ptr<const TokenSource> open_token_files(const std::vector<fs::path>& files, const TokenFilesOptions& o) {
  return std::make_shared<TokenFiles>(files, o);
}

}  // namespace stretto
