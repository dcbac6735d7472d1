// `stretto data`: text to tokens, tokens to text, and what is in a token file.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

#include "commands.h"
#include "progress.h"
#include "run_file.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/data/documents.h"
#include "stretto/data/token_source.h"
#include "stretto/data/tokenize_files.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/formats/interrupt.h"
#include "stretto/tokenize/split_pattern.h"
#include "stretto/tokenize/train_bpe.h"
#include "usage.h"

namespace stretto::app {
namespace {

constexpr const char* own_end = "the tokenizer's own";

std::vector<std::string> names_of(const std::vector<std::filesystem::path>& files) {
  return {files.begin(), files.end()};
}

struct TokenizeCommand {
  std::vector<std::string> inputs;
  std::string tokenizer, out, format = "nanogpt", end;
  TokenizeOptions options;

  void run() {
    const InterruptGuard guard;
    const auto files = find_files(inputs);
    const Tokenizer t = read_tokenizer(tokenizer);
    std::vector<std::string> read = names_of(files);
    if (tokenizer != "bytes") read.push_back(tokenizer_file(tokenizer).string());
    for (const char* ending : {"", ".bin", ".idx"})
      refuse_input("tokenize", *ending ? std::filesystem::path(out).replace_extension(ending).string() : out, read);
    options.format = format == "llmc"       ? TokenFormat::llmc
                     : format == "megatron" ? TokenFormat::megatron
                                            : TokenFormat::nanogpt;
    if (!end.empty()) options.end = end_token(t);
    Progress progress("tokenizing");
    options.progress = [&](u64 done, u64 of) {
      progress.show(done, of, fmt::format("{:.1f} MB/s", 1e-6 * done / progress.seconds()));
    };
    const Tokenized made = tokenize_files(files, t, out, options);
    fmt::print("{}: {} tokens of {} document{}, {:.3f} bytes per token, {:.1f} MB/s\n", out, made.tokens,
               made.documents, made.documents == 1 ? "" : "s", 1.0 * made.bytes / made.tokens,
               1e-6 * made.bytes / progress.seconds());
  }

  std::int32_t end_token(const Tokenizer& t) const {
    const auto id = end == own_end ? t.end_of_text() : t.id_of(end);
    if (id) return *id;
    if (end == own_end)
      throw Error("tokenize", "'{}' has no token that ends a text", tokenizer).hint("name one: --eot '<|im_end|>'");
    throw Error("tokenize", "'{}' has no token '{}'", tokenizer, end)
        .hint("name one that it has; --eot by itself takes the one that ends a text");
  }
};

struct TrainCommand {
  std::vector<std::string> inputs, special{"<|endoftext|>"};
  std::string out, split = "gpt2", key = "text";
  BpeOptions options;

  void run() {
    const auto files = find_files(inputs);
    need_lines_for(key, files);
    check_vocabulary(options.vocab, special.size());
    check_directory_of(out);
    refuse_input("train-bpe", out, names_of(files));
    WordCounts words(split == "llama3" ? llama3_pattern : gpt2_pattern, special);
    u64 total = 0, before = 0, letters = 0;
    for (const auto& f : files) total += file_bytes(f);
    {
      Progress progress("counting words");
      for (const auto& f : files) {
        need_text(f);
        each_document(f, key, [&](const DocumentPart& part) {
          letters += part.text.size();
          words.add(part.text, part.last,
                    [&](std::size_t done) { progress.show(before + std::max(part.done, done), total); });
        });
        before += file_bytes(f);
      }
    }
    if (letters == 0)
      throw Error("train-bpe", "{} no text", files.size() == 1 ? inputs[0] + " has" : "the files have")
          .hint("name a file with text in it");
    Progress progress("merging");
    options.progress = [&](i64 done, i64 of) { progress.show(done, of); };
    const TokenizerParts parts = train_bpe(words, options);
    write_file(out, tokenizer_json(parts));
    fmt::print("{}: {} tokens from {} of text, {}\n", out, parts.vocab.size(), human_bytes(letters),
               human_seconds(progress.seconds()));
    if (std::ssize(parts.vocab) < options.vocab)
      fmt::print("the text has no more pairs that occur {} times\n", options.least);
  }
};

// Files may be larger than memory.
void each_block(const TokenSpan& tokens, i64 first, i64 end,
                const std::function<void(const std::vector<std::int32_t>&)>& visit) {
  constexpr i64 most = 1 << 16;
  std::vector<std::int32_t> ids;
  for (i64 at = first; at < end; at += most) {
    ids.resize(std::min(most, end - at));
    tokens.read(at, ids);
    visit(ids);
  }
}

struct DecodeCommand {
  std::string file, tokenizer;
  i64 first = 0;
  std::optional<i64> count = {};

  void run() const {
    const TokenFile tokens(file);
    const Tokenizer t = read_tokenizer(tokenizer);
    const i64 all = tokens.tokens().size();
    if (first > all)
      throw Error(file, "has {} tokens; the first wanted is {}", all, first).hint("use --first {} or less", all);
    const i64 end = count ? std::min(all, first + *count) : all;
    each_block(tokens.tokens(), first, end, [&, at_start = true](const std::vector<std::int32_t>& ids) mutable {
      std::string text;
      if (at_start)
        text = t.decode(ids);
      else
        for (const std::int32_t id : ids) text += t.decode({{id}}, true, false);
      at_start = false;
      std::fwrite(text.data(), 1, text.size(), stdout);
    });
  }
};

void info(const std::string& file) {
  const TokenFile tokens(file);
  const TokenSpan all = tokens.tokens();
  i64 least = all.at(0), most = all.at(0);
  each_block(all, 0, all.size(), [&](const std::vector<std::int32_t>& ids) {
    const auto [low, high] = std::minmax_element(ids.begin(), ids.end());
    least = std::min<i64>(least, *low);
    most = std::max<i64>(most, *high);
  });
  fmt::print("{}\nformat      {}, {} per token\ntokens      {}\n", file, tokens.format(), name_of(all.type),
             all.size());
  if (const MegatronTokens* m = tokens.megatron()) fmt::print("documents   {}\n", m->documents());
  fmt::print("ids         {} to {}\n", least, most);
  std::string start;
  for (i64 i = 0; i < std::min<i64>(10, all.size()); ++i) start += fmt::format("{}{}", i ? " " : "", all.at(i));
  fmt::print("begins with {}\n", start);
}

void add_tokenize(CLI::App& data) {
  const auto c = std::make_shared<TokenizeCommand>();
  CLI::App* command = data.add_subcommand("tokenize", "text to a token file");
  command->add_option("INPUT", c->inputs, "text files, .jsonl files (a document per line), also .gz, or globs")
      ->required();
  command->add_option("--tokenizer", c->tokenizer, "tokenizer.json or .model, its directory, or 'bytes'")->required();
  command->add_option("--out", c->out, "the file to write; for megatron .bin and .idx")->required();
  command->add_option("--format", c->format, "nanogpt, llmc or megatron")
      ->check(one_of({"nanogpt", "llmc", "megatron"}))
      ->capture_default_str();
  command->add_option("--eot", c->end, "end every document with this token, or with the tokenizer's own")
      ->expected(0, 1)
      ->default_str(own_end)
      ->type_name("[TOKEN]");
  command->add_option("--key,--field", c->options.key, "of .jsonl files: which one holds the text")
      ->capture_default_str();
  command->callback([c] { c->run(); });
}

void add_train_bpe(CLI::App& data) {
  const auto c = std::make_shared<TrainCommand>();
  CLI::App* command = data.add_subcommand("train-bpe", "learn a vocabulary from text; writes tokenizer.json");
  command->add_option("INPUT", c->inputs, "text files, .jsonl files (a document per line), also .gz, or globs")
      ->required();
  command->add_option("--vocab", c->options.vocab, "tokens, with the 256 bytes and the special tokens")
      ->required()
      ->check(whole_number(1, any_count));
  command->add_option("--out", c->out, "the tokenizer.json to write")->required();
  command->add_option("--split", c->split, "how text is cut into words: gpt2 or llama3")
      ->check(one_of({"gpt2", "llama3"}))
      ->capture_default_str();
  command->add_option("--special", c->special, "special tokens, which get the first ids")->capture_default_str();
  command->add_option("--least", c->options.least, "a pair that occurs less often is not merged")
      ->check(whole_number(1))
      ->capture_default_str();
  command->add_option("--key,--field", c->key, "of .jsonl files: which one holds the text")->capture_default_str();
  command->callback([c] { c->run(); });
}

void add_decode(CLI::App& data) {
  const auto c = std::make_shared<DecodeCommand>();
  CLI::App* command = data.add_subcommand("decode", "a token file as text");
  command->add_option("FILE", c->file, "a token file")->required();
  command->add_option("--tokenizer", c->tokenizer, "tokenizer.json or .model, its directory, or 'bytes'")->required();
  command->add_option("--first", c->first, "the token to begin with")->check(whole_number(0, any_count));
  command->add_option("--count", c->count, "how many tokens (default: all)")->check(whole_number(0, any_count));
  command->callback([c] { c->run(); });
}

void add_info(CLI::App& data) {
  const auto file = std::make_shared<std::string>();
  CLI::App* command = data.add_subcommand("info", "what is in a token file");
  command->add_option("FILE", *file, "a token file")->required();
  command->callback([file] { info(*file); });
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "tokenize text, learn a vocabulary, look into token files");
  data->require_subcommand(1);
  add_tokenize(*data);
  add_train_bpe(*data);
  add_decode(*data);
  add_info(*data);
}

}  // namespace stretto::app
