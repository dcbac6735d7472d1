#include "stretto/tokenize/inner/sentencepiece.h"

#include <bit>
#include <cmath>
#include <limits>

#include "stretto/base/error.h"
#include "stretto/base/id.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/inner/bytes.h"

namespace stretto {
namespace {

// One field after the other of a message of protocol buffers.
class Message {
 public:
  Message(std::string_view bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  bool next() {
    if (at_ == bytes_.size()) return false;
    const u64 key = varint();
    field = key >> 3;
    const unsigned wire = key & 7;
    text = {};
    number = 0;
    if (wire == 0) {
      number = varint();
    } else if (wire == 2) {
      text = take(varint());
    } else if (wire == 1 || wire == 5) {
      const std::string_view fixed = take(wire == 1 ? 8 : 4);
      for (std::size_t n = fixed.size(); n-- > 0;) number = number << 8 | byte_of(fixed[n]);
    } else {
      damaged(fmt::format("a field of the kind {}", wire));
    }
    if (field == 0) damaged("a field without a number");
    return true;
  }

  u64 field = 0;
  u64 number = 0;         // of numbers
  std::string_view text;  // of texts and messages

  float real() const { return std::bit_cast<float>(std::uint32_t(number)); }
  bool yes() const { return number != 0; }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    throw Error(file_, "is no SentencePiece model: {} before byte {}", what, at_)
        .hint("name a tokenizer.model as SentencePiece writes it, or a tokenizer.json");
  }
  u64 varint() {
    u64 value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) damaged("the file ends in a number");
      const u64 byte = byte_of(bytes_[at_++]);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    damaged("a number of more than 64 bits");
  }
  std::string_view take(u64 size) {
    if (size > bytes_.size() - at_)
      damaged(fmt::format("a text of {} bytes where {} are left", size, bytes_.size() - at_));
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  std::string_view bytes_, file_;
  std::size_t at_ = 0;
};

enum class PieceKind : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

class ModelReader {
 public:
  ModelReader(std::string_view bytes, std::string_view file) : bytes_(bytes), file_(file) {
    parts_.sentencepiece.emplace();
    parts_.model = TokenizerParts::Model::unigram;  // the file's default
    parts_.fuse_unknown = true;
  }

  TokenizerParts read() {
    for (Message m(bytes_, file_); m.next();) {
      if (m.field == 1)
        read_piece(m.text);
      else if (m.field == 2)
        read_trainer(m.text);
      else if (m.field == 3)
        read_normalizer(m.text);
      else if (m.field == 5)
        read_denormalizer(m.text);
    }
    if (parts_.vocab.empty())
      throw Error(file_, "is no SentencePiece model: it has no pieces")
          .hint("name a tokenizer.model as SentencePiece writes it, or a tokenizer.json");
    if (!parts_.unknown) throw Error(file_, "has no piece for what is unknown").hint("SentencePiece always writes one");
    finish();
    return std::move(parts_);
  }

 private:
  void read_piece(std::string_view bytes) {
    std::string piece;
    float score = 0;
    u64 kind = 1;
    for (Message m(bytes, file_); m.next();) {
      if (m.field == 1) piece = m.text;
      if (m.field == 2) score = m.real();
      if (m.field == 3) kind = m.number;
    }
    const std::int32_t id = parts_.vocab.size();
    if (piece.empty() || first_bad_utf8(piece))
      throw Error(file_, "piece {} is '{}', which is no text", id, shown(piece));
    if (!std::isfinite(score)) throw Error(file_, "piece {} ('{}') has the score {}", id, shown(piece), score);
    if (kind < 1 || kind > 6) throw Error(file_, "piece {} ('{}') is of the unknown kind {}", id, shown(piece), kind);
    add(piece, id, score, PieceKind(kind));
  }

  void add(const std::string& piece, std::int32_t id, float score, PieceKind kind) {
    parts_.vocab.emplace_back(piece, id);
    parts_.scores.push_back(score);
    if (kind == PieceKind::unused)
      throw Error(file_, "piece {} ('{}') is marked as unused, which is not supported", id, shown(piece))
          .hint("write the model again without a restricted vocabulary");
    if (kind == PieceKind::user_defined) {
      parts_.sentencepiece->user_defined.push_back(piece);
      user_ids_.push_back(id);
    }
    if (kind == PieceKind::normal || kind == PieceKind::user_defined) return;
    parts_.unmatched.push_back(id);
    if (kind == PieceKind::unknown) parts_.unknown = id;
    if (kind == PieceKind::byte) parts_.byte_fallback = true;
    if (kind == PieceKind::control)
      parts_.added.push_back({.text = piece, .id = id, .special = true, .in_text = false});
  }

  void read_trainer(std::string_view bytes) {
    static constexpr std::string_view model_kinds[] = {"", "unigram", "bpe", "word", "char"};
    for (Message m(bytes, file_); m.next();) {
      if (m.field == 3) {
        if (m.number != 1 && m.number != 2)
          throw Error(file_, "the model type {} is not supported",
                      m.number < std::size(model_kinds) ? model_kinds[m.number] : std::to_string(m.number))
              .hint("bpe and unigram are");
        parts_.model = m.number == 2 ? TokenizerParts::Model::bpe : TokenizerParts::Model::unigram;
      }
      if (m.field == 24) parts_.sentencepiece->blank_as_suffix = m.yes();
      if (m.field == 41) begin_ = id_of(m.number);
      if (m.field == 44) unknown_text_ = m.text;
    }
  }

  // An int32 that is -1 when there is none.
  static std::optional<std::int32_t> id_of(u64 number) {
    return number > u64(std::numeric_limits<std::int32_t>::max()) ? std::nullopt : std::optional<std::int32_t>(number);
  }

  void read_normalizer(std::string_view bytes) {
    SentencePieceRules& r = *parts_.sentencepiece;
    for (Message m(bytes, file_); m.next();) {
      if (m.field == 2) r.characters = m.text;
      if (m.field == 3) r.dummy_prefix = m.yes();
      if (m.field == 4) r.remove_extra_blanks = m.yes();
      if (m.field == 5 && !m.yes())
        throw Error(file_, "blanks are not written as U+2581 (escape_whitespaces), which is not supported")
            .hint("models that are trained with the defaults are");
    }
  }

  void read_denormalizer(std::string_view bytes) {
    for (Message m(bytes, file_); m.next();)
      if (m.field == 2 && !m.text.empty())
        throw Error(file_, "has a denormalizer, which is not supported").hint("train the model without one");
  }

  void finish() {
    const bool bpe = parts_.model == TokenizerParts::Model::bpe;
    if (bpe)  // merges never touch them
      for (const std::int32_t id : user_ids_)
        parts_.added.push_back({.text = parts_.vocab[id].first, .id = id, .normalized = true});
    if (begin_ && *begin_ < std::ssize(parts_.vocab)) parts_.before = {*begin_};
    DecodeRules& d = parts_.decode;
    d.replace = {{std::string(metaspace), " "}};
    d.bytes = true;
    const SentencePieceRules& r = *parts_.sentencepiece;
    if (r.dummy_prefix || r.remove_extra_blanks) d.drop_at_start = metaspace;
    d.drop_until_text = r.remove_extra_blanks;
    d.unknown = unknown_text_;
  }

  std::string_view bytes_, file_;
  TokenizerParts parts_;
  std::vector<std::int32_t> user_ids_;
  std::optional<std::int32_t> begin_ = 1;  // the file's default
  std::string unknown_text_ = " \u2047 ";
};

}  // namespace

// A JSON file begins with a bracket or a blank; a model with its first piece: field 1, a message.
bool looks_like_sentencepiece(std::string_view bytes) {
  return !bytes.empty() && bytes[0] == 0x0A && bytes.size() > 1 && byte_of(bytes[1]) < 0x80 &&
         bytes.substr(2, 1) == "\x0A";
}

TokenizerParts parse_sentencepiece(std::string_view bytes, std::string_view file) {
  return ModelReader(bytes, file).read();
}

}  // namespace stretto
