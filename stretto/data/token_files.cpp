// Token files of any known format, one after the other.
#include <algorithm>
#include <set>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/data/token_source.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// Tokens that are looked at before training; beyond that a thousand samples per file.
constexpr i64 checked_whole = i64(1) << 31, sample_length = 1 << 16, sample_count = 1000;

// None of no tokens.
std::optional<i64> largest_in(const TokenSpan& tokens) {
  std::optional<i64> largest;
  std::vector<std::int32_t> ids;
  for (i64 at = 0; at < tokens.size(); at += sample_length) {
    ids.resize(std::min(sample_length, tokens.size() - at));
    tokens.read(at, ids);
    largest = std::max<i64>(largest.value_or(ids[0]), *std::max_element(ids.begin(), ids.end()));
  }
  return largest;
}

// The first one that is outside, and the largest of all that are looked at, so that one change of the vocabulary does.
Error outside(const fs::path& file, i64 position, i64 token, i64 vocab, i64 largest) {
  const bool absurd = token < 0 || largest >= (1 << 24);
  return Error(file.string(), "token {} is {}, {}and the vocabulary is {}", position, token,
               largest > token && !absurd ? fmt::format("the largest is {}, ", largest) : "", vocab)
      .hint("{}", absurd ? "is this a token file of another format? data.format can name it"
                         : fmt::format("use model.vocab = {} or more, or tokenize with the tokenizer of this model",
                                       largest + 1));
}

class TokenFiles : public TokenSource {
 public:
  TokenFiles(const std::vector<fs::path>& paths, const TokenFilesOptions& o) : vocab_(o.vocab) {
    std::set<fs::path> opened, by_index;
    for (fs::path path : paths) {
      const bool index = path.extension() == ".idx";
      if (index) path.replace_extension(".bin");
      if (index) by_index.insert(path);
      if (!opened.insert(path).second && by_index.contains(path)) continue;  // both files of a set are named
      files_.push_back(o.format ? TokenFile(path, *o.format) : TokenFile(path));
      spans_.push_back(files_.back().tokens());
      ends_.push_back(tokens() + spans_.back().size());
    }
    end_ = o.end;
    if (o.documents && !end_)
      for (const TokenFile& f : files_)
        if (!f.megatron())
          throw Error(f.path().string(), "does not say where documents begin, and no token that ends one is known")
              .hint("data.tokenizer can name the tokenizer that the file was made with; its end-of-text token is used");
    if (vocab_ == 0) {
      for (const TokenSpan& s : spans_) wide_ = wide_ || size_of(s.type) > 2;
      return;
    }
    for (std::size_t f = 0; f < files_.size(); ++f) check(f, tokens() <= checked_whole);
  }

  i64 tokens() const override { return ends_.empty() ? 0 : ends_.back(); }
  i64 vocab() const override { return vocab_ > 0 ? vocab_ : wide_ ? i64(1) << 31 : 65536; }

  void read(i64 first, std::span<std::int32_t> to) const override {
    STRETTO_ASSERT(first >= 0 && first + std::ssize(to) <= tokens(), "outside of the files");
    std::size_t file = std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin();
    i64 at = first - (file == 0 ? 0 : ends_[file - 1]);
    for (; !to.empty(); ++file, at = 0) {
      const std::size_t n = std::min<i64>(spans_[file].size() - at, to.size());
      if (!all_checked_ && vocab_ > 0) look_at(file, at, n);
      spans_[file].read(at, to.first(n));
      to = to.subspan(n);
    }
  }

  std::vector<i64> documents(i64 first, i64 end) const override {
    std::vector<i64> starts;
    for (std::size_t f = 0; f < files_.size(); ++f) {
      const i64 begin = f == 0 ? 0 : ends_[f - 1];
      if (begin >= end || ends_[f] <= first) continue;
      if (begin > first) starts.push_back(begin);
      // Of this file: strictly between these two, counted in it.
      const i64 from = std::max<i64>(first - begin, 0), to = std::min(end - begin, spans_[f].size());
      if (const MegatronTokens* m = files_[f].megatron())
        indexed(*m, begin, from, to, starts);
      else if (end_)
        marked(spans_[f], begin, from, to, starts);
    }
    return starts;
  }

  std::string str() const override {
    const std::string what = fmt::format("{} ({}), {} tokens", files_[0].path().string(), files_[0].format(), tokens());
    return files_.size() == 1 ? what : fmt::format("{} files from {}", files_.size(), what);
  }

 private:
  // A document may be empty, and then begins where the next one does.
  static void indexed(const MegatronTokens& m, i64 begin, i64 from, i64 to, std::vector<i64>& starts) {
    const i64 item = size_of(m.tokens().type);
    const auto start = [&](i64 d) {
      const i64 s = m.document_begin(d);
      return s < m.sequences() ? m.byte_offset(s) / item : m.tokens().size();
    };
    i64 low = 0, high = m.documents();  // the first document that begins after `from`
    while (low < high) {
      const i64 middle = low + (high - low) / 2;
      if (start(middle) > from)
        high = middle;
      else
        low = middle + 1;
    }
    for (; low < m.documents() && start(low) < to; ++low)
      if (starts.empty() || starts.back() != begin + start(low)) starts.push_back(begin + start(low));
  }

  void marked(const TokenSpan& span, i64 begin, i64 from, i64 to, std::vector<i64>& starts) const {
    std::vector<std::int32_t> ids(std::max<i64>(to - from - 1, 0));
    span.read(from, ids);
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (ids[i] == *end_) starts.push_back(begin + from + i + 1);
  }

  void look_at(std::size_t file, i64 first, i64 count) const {
    const auto bad = spans_[file].part(first, count).first_outside(vocab_);
    if (!bad) return;
    const i64 token = spans_[file].at(first + *bad);
    i64 largest = token;
    if (tokens() <= checked_whole)
      for (const TokenSpan& s : spans_) largest = std::max(largest, largest_in(s).value_or(token));
    throw outside(files_[file].path(), first + *bad, token, vocab_, largest);
  }

  void check(std::size_t file, bool whole) {
    const TokenSpan& s = spans_[file];
    if (s.type == FileType::U16 && vocab_ >= 65536) return;
    if (whole || s.size() <= sample_length * sample_count) return look_at(file, 0, s.size());
    all_checked_ = false;
    for (i64 i = 0; i < sample_count; ++i)
      look_at(file, (s.size() - sample_length) / (sample_count - 1) * i, sample_length);
  }

  i64 vocab_;
  std::optional<std::int32_t> end_;
  bool wide_ = false, all_checked_ = true;
  std::vector<TokenFile> files_;
  std::vector<TokenSpan> spans_;
  std::vector<i64> ends_;  // of each file, in tokens from the start of the first
};

}  // namespace

std::optional<i64> largest_token(const std::vector<fs::path>& files, std::optional<TokenFormat> format) {
  std::optional<i64> largest;
  i64 tokens = 0;
  for (fs::path path : files) {
    if (path.extension() == ".idx") path.replace_extension(".bin");
    const TokenFile file = format ? TokenFile(path, *format) : TokenFile(path);
    tokens += file.tokens().size();
    if (tokens > checked_whole) return std::nullopt;
    largest = std::max(largest, largest_in(file.tokens()));  // none is below all
  }
  return largest && *largest >= 0 ? largest : std::nullopt;  // negative ones are refused by whoever reads them
}

std::shared_ptr<const TokenSource> open_token_files(const std::vector<fs::path>& files, const TokenFilesOptions& o) {
  return std::make_shared<TokenFiles>(files, o);
}

}  // namespace stretto
