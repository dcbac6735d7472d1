// tokenizer.json -> TokenizerParts. What changes the ids and is not understood is refused; the rest is passed over.
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/inner/json_fields.h"
#include "stretto/tokenize/inner/json_steps.h"
#include "stretto/tokenize/inner/sentencepiece.h"
#include "stretto/tokenize/tokenizer.h"

namespace stretto {
namespace {

using namespace tokenizer_fields;

class PartsReader {
 public:
  explicit PartsReader(const Field& root) : root_(root) {}

  TokenizerParts read() {
    if (!root_.table())
      throw Error(root_.source.str(), "is {} and not a tokenizer", root_.kind()).hint("expected an object");
    read_added();
    read_model();
    if (const Field* normalizer = there(root_, "normalizer")) read_normalizer(*normalizer, parts_);
    const Field* pre = there(root_, "pre_tokenizer");
    const bool byte_level = pre && read_pre_tokenizer(*pre, parts_);
    if (byte_level && unigram_)
      throw Error(pre->source.str(), "ByteLevel before a Unigram model is not supported").hint("BPE models have it");
    if (byte_level) read_byte_level_decoder();
    if (!byte_level) read_characters();
    if (const Field* post = there(root_, "post_processor")) read_post(*post);
    return std::move(parts_);
  }

 private:
  void read_added() {
    const Field* added = there(root_, "added_tokens");
    if (!added) return;
    for (const Field& f : as<Field::Array>(*added, "added_tokens", "a list")) {
      AddedToken t{.text = text(f, "content")};
      const Field* id = there(f, "id");
      if (!id) throw Error(f.source.str(), "the added token '{}' has no id", shown(t.text));
      t.id = id_of(*id, t.text);
      t.special = flag(f, "special", false);
      t.single_word = flag(f, "single_word", false);
      t.lstrip = flag(f, "lstrip", false);
      t.rstrip = flag(f, "rstrip", false);
      t.normalized = flag(f, "normalized", !t.special);
      parts_.added.push_back(std::move(t));
    }
  }

  void read_model() {
    const Field* model = there(root_, "model");
    if (!model) throw Error(root_.source.str(), "has no 'model' and so is no tokenizer");
    const std::string type = there(*model, "type") ? text(*model, "type") : "BPE";
    if (type == "Unigram") return read_unigram(*model);
    if (type != "BPE") refuse(*model, "model", "BPE, Unigram");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (there(*model, key) && !text(*model, key).empty())
        throw Error(model->source.str(), "'{}' is not supported", key).hint("byte-level vocabularies have none");
    if (const Field* dropout = there(*model, "dropout"); dropout && dropout->str() != "0" && dropout->str() != "0.0")
      throw Error(dropout->source.str(), "'dropout' is {}, which makes ids random", dropout->str())
          .hint("set it to null");
    parts_.ignore_merges = flag(*model, "ignore_merges", false);
    const Field* vocab = there(*model, "vocab");
    if (!vocab || !vocab->table())
      throw Error((vocab ? vocab : model)->source.str(), "'model.vocab' is not an object of tokens and ids");
    parts_.vocab.reserve(vocab->table()->size());
    for (const Member& m : *vocab->table()) parts_.vocab.emplace_back(m.key, id_of(m.value, m.key));
    const auto& merges = need<Field::Array>(*model, "merges", "a list");
    parts_.merges.reserve(merges.size());
    for (const Field& m : merges) parts_.merges.push_back(merge_of(m));
  }

  void read_unigram(const Field& model) {
    unigram_ = true;
    for (const Field& entry : need<Field::Array>(model, "vocab", "a list of tokens and scores")) {
      const Field::Array* pair = entry.array();
      if (!pair || pair->size() != 2)
        throw Error(entry.source.str(), "an entry of 'model.vocab' is {} and not a token with its score", entry.str());
      const Field& score = (*pair)[1];
      const std::int32_t id = parts_.vocab.size();
      parts_.vocab.emplace_back(as<std::string>((*pair)[0], "vocab", "a token"), id);
      const i64* whole = std::get_if<i64>(&score.value);
      parts_.scores.push_back(whole ? double(*whole) : as<double>(score, "score", "a number"));
    }
    if (const Field* id = there(model, "unk_id")) {
      parts_.unknown = id_of(*id, "unk_id");
      if (*parts_.unknown >= std::ssize(parts_.vocab))
        throw Error(id->source.str(), "'unk_id' is {}, and there are {} tokens", *parts_.unknown, parts_.vocab.size());
    }
    parts_.fuse_unknown = true;
  }

  void read_byte_level_decoder() {
    const Field* decoder = there(root_, "decoder");
    if (decoder && text(*decoder, "type") != "ByteLevel" && text(*decoder, "type") != "Sequence")
      refuse(*decoder, "decoder", "ByteLevel after a ByteLevel pre-tokenizer");
  }

  // What vocabularies that are not byte-level say besides.
  void read_characters() {
    const Field& model = *there(root_, "model");
    parts_.model = unigram_ ? TokenizerParts::Model::unigram : TokenizerParts::Model::bpe;
    parts_.byte_fallback = flag(model, "byte_fallback", false);
    if (!unigram_ && there(model, "unk_token")) {
      const std::string name = text(model, "unk_token");
      for (const auto& [token, id] : parts_.vocab)
        if (token == name) parts_.unknown = id;
      parts_.fuse_unknown = flag(model, "fuse_unk", false);
    }
    const Field* decoder = there(root_, "decoder");
    if (!decoder)
      throw Error(root_.source.str(), "there is neither a ByteLevel pre-tokenizer nor a decoder")
          .hint("a decoder says how tokens become text; Llama 2 has Replace, ByteFallback, Fuse, Strip");
    read_decoder(*decoder, parts_);
  }

  static std::pair<std::string, std::string> merge_of(const Field& f) {
    if (const auto* both = std::get_if<std::string>(&f.value)) {
      const std::size_t blank = both->find(' ');
      if (blank == both->npos || both->find(' ', blank + 1) != both->npos)
        throw Error(f.source.str(), "the merge '{}' is not two tokens with a blank between them", shown(*both));
      return {both->substr(0, blank), both->substr(blank + 1)};
    }
    const Field::Array* pair = f.array();
    if (!pair || pair->size() != 2) throw Error(f.source.str(), "a merge is {} and not two tokens", f.kind());
    return {as<std::string>((*pair)[0], "merge", "a token"), as<std::string>((*pair)[1], "merge", "a token")};
  }

  void read_post(const Field& f) {
    const std::string type = text(f, "type");
    if (type == "Sequence") {
      for (const Field& p : need<Field::Array>(f, "processors", "a list")) read_post(p);
    } else if (type == "TemplateProcessing") {
      read_template(f);
    } else if (type != "ByteLevel") {
      refuse(f, "post-processor", "TemplateProcessing, ByteLevel, Sequence");
    }
  }

  void read_template(const Field& f) {
    bool after = false;
    for (const Field& part : need<Field::Array>(f, "single", "a list")) {
      if (const Field* token = there(part, "SpecialToken")) {
        const std::string name = text(*token, "id");
        const Field* all = there(f, "special_tokens");
        const Field* entry = all ? there(*all, name) : nullptr;
        if (!entry) throw Error(token->source.str(), "the special token '{}' is not described", shown(name));
        for (const Field& id : need<Field::Array>(*entry, "ids", "a list"))
          (after ? parts_.after : parts_.before).push_back(id_of(id, name));
      } else if (there(part, "Sequence")) {
        after = true;
      } else {
        throw Error(part.source.str(), "the template has {}", part.str());
      }
    }
  }

  const Field& root_;
  TokenizerParts parts_;
  bool unigram_ = false;
};

// What lies beside a tokenizer.model says whether a text begins and ends with special tokens.
void read_config(const std::filesystem::path& file, TokenizerParts& parts) {
  const std::filesystem::path path = file.parent_path() / "tokenizer_config.json";
  if (!is_there(path)) return;
  const Field config = read_json_file(path);
  if (!flag(config, "add_bos_token", true)) parts.before.clear();
  if (!flag(config, "add_eos_token", false)) return;
  for (const AddedToken& a : parts.added)
    if (a.text == "</s>" || a.text == "<eos>") parts.after = {a.id};
}

}  // namespace

TokenizerParts parse_tokenizer(std::string_view content, std::string_view file) {
  if (file.ends_with(".model") || looks_like_sentencepiece(content)) return parse_sentencepiece(content, file);
  Field root;
  try {
    root = read_json(content, file);
  } catch (Error& e) {
    throw std::move(e).hint("a tokenizer is a tokenizer.json, a tokenizer.model or their directory");
  }
  return PartsReader(root).read();
}

std::filesystem::path tokenizer_file(const std::filesystem::path& file) {
  if (!is_folder(file)) return file;
  const std::filesystem::path json = file / "tokenizer.json", model = file / "tokenizer.model";
  if (!is_there(json) && !is_there(model))
    throw Error(file.string(), "there is neither a tokenizer.json nor a tokenizer.model in this directory")
        .hint("name a directory with one of them, or the file itself");
  return is_there(json) ? json : model;
}

Tokenizer read_tokenizer(const std::filesystem::path& name) {
  if (name == "bytes") return Tokenizer::bytes();
  const std::filesystem::path file = tokenizer_file(name);
  const MappedFile mapped(file);
  return with_hint("is it a tokenizer that the tokenizers or sentencepiece library has written, and whole?", [&] {
    TokenizerParts parts = parse_tokenizer(mapped.text(), file.string());
    if (parts.sentencepiece) read_config(file, parts);
    return Tokenizer(parts, file.string());
  });
}

}  // namespace stretto
