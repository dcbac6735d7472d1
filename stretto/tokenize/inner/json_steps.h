// The parts of tokenizer.json that are lists of steps: normalizers, pre-tokenizers, decoders.
//
//   TokenizerParts parts;
//   read_normalizer(*root.find("normalizer"), parts);
#pragma once
#include "stretto/formats/fields.h"
#include "stretto/tokenize/parts.h"

namespace stretto {

void read_normalizer(const Field&, TokenizerParts&);
bool read_pre_tokenizer(const Field&, TokenizerParts&);  // true: the last step is ByteLevel
void read_decoder(const Field&, TokenizerParts&);        // of tokens that are not byte-level

}  // namespace stretto
