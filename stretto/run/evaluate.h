// How well a model predicts a text that it was not trained on.
//
//   Evaluated e = evaluate(load_model("runs/tales"), {.data = {"test.txt"}});
//   fmt::print("{:.4f} nats per token, {:.4f} bits per byte\n", e.loss, *e.bits_per_byte());
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stretto/compile/compile.h"
#include "stretto/data/corpus.h"
#include "stretto/runtime/options.h"
#include "stretto/saved/model_directory.h"

namespace stretto {

struct EvaluateOptions {
  std::vector<std::string> data = {};  // files or globs
  DataFormat format = DataFormat::automatic;
  std::string tokenizer = {};  // of text; "": the one beside the weights, else bytes
  std::string field = "text";  // of .jsonl files; "messages": conversations, of which answers are predicted
  std::string chat_template = {};
  std::string date = {};  // of conversations: for templates that ask for it; "": today
  bool documents = false;  // attention stays within documents
  i64 batch = 8;           // rows at a time
  i64 batches = 0;         // at most, spread evenly over the data; 0: all of it
  int microbatches = 1;
  Parallel parallel = {};  // changes no number
  RunOptions run = {};
  std::function<void(i64 done, i64 all)> progress = {};
};

struct Evaluated {
  double loss = 0;                // nats per token
  i64 tokens = 0;                 // that were predicted
  std::optional<i64> bytes = {};  // of text that they are; none when no tokenizer says so
  double seconds = 0;
  std::string data;  // "test.txt, 400184 bytes"

  double perplexity() const;
  std::optional<double> bits_per_byte() const;
};

// The data is read in rows of the model's context; what is left at the end of it, less than a row, is not.
Evaluated evaluate(const StoredModel&, const EvaluateOptions&);

}  // namespace stretto
