// Text as a tokenizer cuts it.
#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/data/documents.h"
#include "stretto/data/token_source.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr u64 most_bytes = u64(4) << 30;

class Text : public TokenSource {
 public:
  Text(const std::vector<fs::path>& files, const Tokenizer& tokenizer, const std::string& field)
      : vocab_(tokenizer.vocab()) {
    u64 bytes = 0;
    for (const fs::path& f : files) bytes += file_bytes(f);
    refuse_above(bytes, "");
    bytes = 0;  // and of what comes out of compressed ones
    name_ = files.size() == 1 ? files[0].string() : fmt::format("{} files from {} on", files.size(), files[0].string());
    Encoder encoder(tokenizer);
    const auto end = tokenizer.end_of_text();
    for (const fs::path& f : files)
      each_document(f, field, [&](const DocumentPart& part) {
        refuse_above(bytes += part.text.size(), "more than ");
        encoder.encode_part(part.text, part.last, [&](std::span<const std::int32_t> ids, std::size_t) { put(ids); });
        if (!part.last || tokens() == (starts_.empty() ? 0 : starts_.back())) return;
        if (end) put(std::span(&*end, 1));
        starts_.push_back(tokens());
      });
    if (tokens() == 0) throw Error("data", "{} has no text", name_).hint("name a file with text in it");
  }

  i64 tokens() const override { return narrow() ? narrow_.size() : wide_.size(); }
  i64 vocab() const override { return vocab_; }
  void read(i64 first, std::span<std::int32_t> to) const override {
    STRETTO_ASSERT(first >= 0 && first + std::ssize(to) <= tokens(), "outside of the text");
    if (narrow())
      std::copy_n(narrow_.begin() + first, to.size(), to.begin());
    else
      std::copy_n(wide_.begin() + first, to.size(), to.begin());
  }
  std::vector<i64> documents(i64 first, i64 end) const override {
    const auto begin = std::upper_bound(starts_.begin(), starts_.end(), first);
    return {begin, std::lower_bound(begin, starts_.end(), end)};
  }
  std::string str() const override { return fmt::format("{}, {} tokens", name_, tokens()); }

 private:
  static void refuse_above(u64 bytes, std::string_view more) {
    if (bytes <= most_bytes) return;
    throw Error("data", "{}{} of text would be tokenized in memory before training; {} is the most", more,
                human_bytes(more.empty() ? bytes : most_bytes), human_bytes(most_bytes))
        .hint("tokenize it once, with 'stretto data tokenize', and train on that file");
  }
  bool narrow() const { return vocab_ <= 65536; }
  void put(std::span<const std::int32_t> ids) {
    if (narrow())
      narrow_.insert(narrow_.end(), ids.begin(), ids.end());
    else
      wide_.insert(wide_.end(), ids.begin(), ids.end());
  }

  i64 vocab_;
  std::string name_;
  std::vector<i64> starts_;            // of all documents but the first
  std::vector<std::uint16_t> narrow_;  // one of the two is used
  std::vector<std::int32_t> wide_;
};

}  // namespace

std::shared_ptr<const TokenSource> open_text(const std::vector<fs::path>& files, const Tokenizer& tokenizer,
                                             const std::string& field) {
  return std::make_shared<Text>(files, tokenizer, field);
}

}  // namespace stretto
