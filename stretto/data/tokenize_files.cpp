#include "stretto/data/tokenize_files.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/mapped_file.h"

namespace stretto {

namespace fs = std::filesystem;

void each_document(const fs::path& file, const std::string& key,
                   const std::function<void(std::string_view, std::size_t)>& use) {
  const MappedFile mapped(file);
  const std::string_view text = mapped.text();
  if (file.extension() != ".jsonl") return use(text, 0);
  std::size_t line = 1;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view row = text.substr(at, end - at);
    at = end + 1;
    if (row.find_first_not_of(" \t\r") == row.npos) continue;
    const std::string where = fmt::format("{}:{}", file.string(), line);
    const Field document = read_json(row, where);
    const Field* found = document.find(key);
    const auto* words = found ? std::get_if<std::string>(&found->value) : nullptr;
    if (!words)
      throw Error(
          where, "{}",
          found ? fmt::format("'{}' is {} and not text", key, found->kind()) : fmt::format("has no key '{}'", key))
          .hint("name the key that holds the text: stretto data tokenize --key KEY");
    use(*words, std::min(at, text.size()));
  }
}

Tokenized tokenize_files(const std::vector<fs::path>& files, const Tokenizer& tokenizer, const fs::path& out,
                         const TokenizeOptions& o) {
  Tokenized t;
  u64 before = 0;  // bytes of the files that are done
  for (const fs::path& f : files) t.bytes += file_bytes(f);
  TokenFileWriter writer(out, o.format, tokenizer.vocab());
  Encoder encoder(tokenizer);
  for (const fs::path& f : files) {
    const std::size_t size = file_bytes(f);
    each_document(f, o.key, [&](std::string_view text, std::size_t read) {
      encoder.encode(text, [&](std::span<const std::int32_t> ids, std::size_t done) {
        writer.write(ids);
        if (o.progress) o.progress(before + std::max(read, std::min(done, size)), t.bytes);
      });
      if (o.end) writer.write(std::span(&*o.end, 1));
      writer.end_document();
    });
    before += size;
  }
  if (writer.tokens() == 0)
    throw Error("tokenize", "there is no text in {}",
                files.size() == 1 ? files[0].string() : fmt::format("the {} files", files.size()));
  writer.commit();
  t.tokens = writer.tokens();
  t.documents = writer.documents();
  return t;
}

}  // namespace stretto
