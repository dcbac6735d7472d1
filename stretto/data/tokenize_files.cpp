#include "stretto/data/tokenize_files.h"

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/data/documents.h"

namespace stretto {

namespace fs = std::filesystem;

Tokenized tokenize_files(const std::vector<fs::path>& files, const Tokenizer& tokenizer, const fs::path& out,
                         const TokenizeOptions& o) {
  Tokenized t;
  u64 before = 0, all = 0;  // bytes of the files that are done, of all
  for (const fs::path& f : files) all += file_bytes(f);
  need_lines_for(o.key, files);
  for (const fs::path& f : files) need_text(f);
  TokenFileWriter writer(out, o.format, tokenizer.vocab());
  Encoder encoder(tokenizer);
  i64 ended = 0;  // tokens of the documents that have ended; one without any is none
  for (const fs::path& f : files) {
    const std::size_t size = file_bytes(f);
    each_document(f, o.key, [&](const DocumentPart& part) {
      t.bytes += part.text.size();
      encoder.encode_part(part.text, part.last, [&](std::span<const std::int32_t> ids, std::size_t done) {
        writer.write(ids);
        if (o.progress) o.progress(before + (part.done > 0 ? part.done : std::min(done, size)), all);
      });
      if (!part.last || writer.tokens() == ended) return;
      if (o.end) writer.write(std::span(&*o.end, 1));
      writer.end_document();
      ended = writer.tokens();
    });
    before += size;
  }
  if (writer.tokens() == 0)
    throw Error("tokenize", "there is no text in {}",
                files.size() == 1 ? files[0].string() : fmt::format("the {} files", files.size()))
        .hint("name a file with text in it");
  writer.commit();
  t.tokens = writer.tokens();
  t.documents = writer.documents();
  return t;
}

}  // namespace stretto
