// SentencePiece's tokenizer.model, a message of protocol buffers, as the parts of a tokenizer.
//
//   TokenizerParts parts = parse_sentencepiece(bytes, "tokenizer.model");
#pragma once
#include <string_view>

#include "stretto/tokenize/parts.h"

namespace stretto {

bool looks_like_sentencepiece(std::string_view bytes);
TokenizerParts parse_sentencepiece(std::string_view bytes, std::string_view file);

}  // namespace stretto
