// Megatron's indexed datasets: PREFIX.bin holds tokens, PREFIX.idx says where each sequence and document begins. Both
// are mapped and nothing is copied, so that a hundred million documents cost no memory.
//
//   MegatronTokens data("corpus_text_document");   // or with .idx or .bin after it
//   for (i64 s = data.document_begin(3); s < data.document_begin(4); ++s) use(data.sequence(s));
#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "stretto/formats/atomic_file.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/formats/token_span.h"

namespace stretto {

class MegatronTokens {
 public:
  explicit MegatronTokens(const std::filesystem::path& prefix);  // checks the whole index against the tokens

  i64 sequences() const { return sequences_; }
  TokenSpan sequence(i64 s) const;
  i64 byte_offset(i64 s) const;
  std::optional<int> mode(i64 s) const;  // multimodal sets have one per sequence

  i64 documents() const { return boundaries_ - 1; }
  i64 document_begin(i64 d) const;  // the sequence at which it begins; document_begin(documents()) == sequences()

  // Sequences follow one another without holes, so that `tokens()` is their concatenation.
  bool contiguous() const { return contiguous_; }
  TokenSpan tokens() const { return {type_, bin_.bytes()}; }

 private:
  i64 length(i64 s) const;

  MappedFile idx_, bin_;
  FileType type_ = FileType::U16;
  i64 sequences_ = 0, boundaries_ = 1;
  std::size_t lengths_ = 0, offsets_ = 0, documents_ = 0, modes_ = 0;  // where the arrays begin; modes 0: none
  bool contiguous_ = true;
};

// PREFIX.bin and PREFIX.idx, a document being one sequence:
//
//   MegatronWriter out("corpus_text_document", FileType::U16);
//   out.write(ids);
//   out.end_document();
//   out.commit();
class MegatronWriter {
 public:
  MegatronWriter(const std::filesystem::path& prefix, FileType type);  // U16 or I32
  void write(std::span<const std::int32_t> tokens);                    // Error when one does not fit the type
  void end_document();                                                 // one without tokens is left out
  void commit();                                                       // ends the last document

 private:
  AtomicFile bin_, idx_;
  FileType type_;
  i64 current_ = 0;  // tokens of the document that is open
  std::vector<std::int32_t> lengths_;
};

}  // namespace stretto
