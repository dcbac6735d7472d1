// Text to tokens in MB/s, and batches from token files in tokens/s; one thread, the best of five.
//
//   build/bench/data
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>

#include "stretto/base/philox.h"
#include "stretto/data/prefetch.h"
#include "stretto/data/sequences.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/tokenize/split_pattern.h"
#include "stretto/tokenize/train_bpe.h"

using namespace stretto;

namespace {

namespace fs = std::filesystem;

double seconds(const std::function<void()>& work) {
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

void row(const std::string& what, double amount, const char* unit, double time) {
  fmt::print("{:<66} {:>8.1f} {}\n", what, amount / time / 1e6, unit);
}

void tokenizers() {
  const MappedFile file(STRETTO_SOURCE "/examples/data/tales.txt");
  const std::string_view text = file.text();
  for (const auto& [name, pattern] : {std::pair{"gpt2", gpt2_pattern}, std::pair{"llama3", llama3_pattern}}) {
    TokenizerParts learned;
    row(fmt::format("learn 4096 tokens, split as {}", name), double(text.size()), "MB/s", seconds([&] {
          WordCounts words(pattern, {"<|endoftext|>"});
          words.add(text);
          learned = train_bpe(words, {.vocab = 4096});
        }));
    const Tokenizer t(learned);
    std::vector<std::int32_t> ids;
    row(fmt::format("encode, split as {}, every word new at first", name), double(text.size()), "MB/s", seconds([&] {
          Encoder encoder(t);
          ids.clear();
          encoder.encode(text, ids);
        }));
    Encoder warm(t);
    row(fmt::format("encode, split as {}, words seen before", name), double(text.size()), "MB/s", seconds([&] {
          ids.clear();
          warm.encode(text, ids);
        }));
    row(fmt::format("decode, split as {}", name), double(text.size()), "MB/s", seconds([&] { t.decode(ids); }));
  }
}

// Uniform tokens, with a document's end every thousand or so.
void write_tokens(const fs::path& path, i64 count) {
  TokenFileWriter out(path, TokenFormat::megatron, 50257);
  std::vector<std::int32_t> document;
  for (i64 at = 0; at < count; at += i64(document.size())) {
    document.clear();
    const i64 length = 500 + i64(uniform_at(philox_key(1, "length"), u64(at)) * 1000);
    for (i64 i = 0; i < length; ++i) document.push_back(std::int32_t((at + i) * 48271 % 50257));
    out.write(document);
    out.end_document();
  }
  out.commit();
}

void loaders(const fs::path& folder) {
  for (const char* name : {"a", "b"}) write_tokens(folder / name, 16 << 20);
  const std::string a = (folder / "a").string(), b = (folder / "b").string();
  row("check 16 million tokens against the vocabulary", 16 << 20, "million tokens/s",
      seconds([&] { open_corpus({.path = {a}, .vocab = 50257}, 1024); }));
  const Corpus one = open_corpus({.path = {a}, .documents = true}, 1024);
  const Corpus mixed = open_corpus({.mixture = {{{a}, 0.7}, {{b}, 0.3}}, .documents = true}, 1024);
  constexpr i64 measured_steps = 100;
  for (const bool documents : {false, true})
    for (const Corpus* corpus : {&one, &mixed}) {
      const RowsOptions o{.length = 1024, .batch = 16, .seed = 1, .documents = documents};
      const TrainingRows training(*corpus, o);
      const std::string what =
          fmt::format("{}{}", corpus == &one ? "one source" : "mixture of two", documents ? ", with documents" : "");
      const double tokens = double(measured_steps * o.length * o.batch);
      row("batches of 16 x 1024, " + what, tokens, "million tokens/s", seconds([&] {
            for (i64 step = 1; step <= measured_steps; ++step) training.at(step);
          }));
      row("batches of 16 x 1024, " + what + ", read ahead", tokens, "million tokens/s", seconds([&] {
            Prefetch<Rows> batches([&](i64 step) { return training.at(step); }, {.first = 1, .last = measured_steps});
            for (i64 step = 1; step <= measured_steps; ++step) batches.next();
          }));
    }
}

}  // namespace

int main() {
  const fs::path folder = fs::temp_directory_path() / fmt::format("stretto-bench-data-{}", ::getpid());
  fs::create_directory(folder);
  int code = 0;
  try {
    tokenizers();
    loaders(folder);
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    code = e.exit_code();
  }
  fs::remove_all(folder);
  return code;
}
