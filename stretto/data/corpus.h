// The data of a run: what it trains on, with weights, and what is held out.
//
//   Corpus corpus = open_corpus({.path = {"tales.txt"}, .validation = 0.05}, 256);
//   Corpus mixed = open_corpus({.mixture = {{{"books/*.bin"}, 0.7}, {{"code.bin"}, 0.3}}, .vocab = 50257}, 1024);
//
// Text and token files are told apart by their look. Everything that can be wrong with the files is an Error here.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stretto/data/from_first.h"
#include "stretto/data/token_source.h"

namespace stretto {

enum class DataFormat : std::uint8_t { automatic, text, nanogpt, llmc, megatron };

struct MixturePart {
  std::vector<std::string> path;  // files or globs
  double weight = 1;              // of its sequences, against the other parts'
  bool operator==(const MixturePart&) const = default;
};

struct CorpusOptions {
  std::vector<std::string> path = {};     // files or globs
  std::vector<MixturePart> mixture = {};  // instead of `path`
  DataFormat format = DataFormat::automatic;
  std::string tokenizer = "bytes";  // of text: a file or its directory; "none": text is refused
  std::string field = "text";       // of a line of .jsonl files: what holds the text; "messages": conversations
  std::string chat_template = {};   // of conversations: a file; "": the one beside the tokenizer
  std::string date = {};            // of conversations: for templates that ask for it, 2026-11-18; "": today
  std::optional<FromFirst> others = {};  // of conversations: the first process renders
  i64 vocab = 0;                    // ids must be below it; 0: any
  bool documents = false;           // where documents begin must be known
  double validation = 0;            // the last part of every source, 0 to 1, that is held out
  std::vector<std::string> validation_path = {};  // or files of their own
  std::filesystem::path beside = {};              // where names were looked for as well: for messages
};

struct Corpus {
  struct Source {
    std::shared_ptr<const TokenSource> source;
    double weight = 1;
  };
  std::vector<Source> training;
  std::shared_ptr<const TokenSource> validation;  // null when there is none
  std::string name;                               // "tales.txt, 400184 bytes"

  i64 training_tokens() const;
  u64 hash() const;  // of how many tokens there are to train on, and of samples of them: 64 Ki of each source, at most
};

// Every source holds at least one sequence of `length`, else an Error with the sizes.
Corpus open_corpus(const CorpusOptions&, i64 length);

// How many ids a model of this data needs: those of the tokenizer, else up to the largest in the token files. None:
// nothing but the files themselves could say.
std::optional<i64> vocabulary_of(const CorpusOptions&);

}  // namespace stretto
