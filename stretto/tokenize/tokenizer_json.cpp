// tokenizer.json <-> TokenizerParts. What changes the ids and is not understood is refused; the rest is passed over.
#include <cctype>
#include <limits>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/formats/utf8.h"
#include "stretto/tokenize/byte_level.h"
#include "stretto/tokenize/bytes.h"
#include "stretto/tokenize/split_pattern.h"
#include "stretto/tokenize/tokenizer.h"

namespace stretto {
namespace {

constexpr std::size_t kMostSteps = 16;

class PartsReader {
 public:
  explicit PartsReader(const Field& root) : root_(root) {}

  TokenizerParts read() {
    if (!root_.table())
      throw Error(root_.source.str(), "is {} and not a tokenizer", root_.kind()).hint("expected an object");
    read_added();
    read_model();
    if (const Field* normalizer = there(root_, "normalizer"); normalizer && !nothing(*normalizer, "normalizers"))
      refuse(*normalizer, "normalizer");
    const Field* pre = there(root_, "pre_tokenizer");
    if (pre) read_step(*pre);
    if (!byte_level_)
      throw Error(pre ? pre->source.str() : root_.source.str(), "the pre-tokenizer has no ByteLevel")
          .hint("only byte-level BPE is read, the kind of GPT-2, Llama 3 and Qwen");
    if (const Field* post = there(root_, "post_processor")) read_post(*post);
    return std::move(parts_);
  }

 private:
  // A key that is not null.
  static const Field* there(const Field& in, std::string_view key) {
    const Field* f = in.find(key);
    return f && !f->is_null() ? f : nullptr;
  }

  template <class T>
  static const T& as(const Field& f, std::string_view key, std::string_view what) {
    const T* v = std::get_if<T>(&f.value);
    if (!v) throw Error(f.source.str(), "'{}' is {} where {} is expected", key, f.kind(), what);
    return *v;
  }

  template <class T>
  static const T& need(const Field& in, std::string_view key, std::string_view what) {
    const Field* f = there(in, key);
    if (!f) throw Error(in.source.str(), "'{}' is missing", key);
    return as<T>(*f, key, what);
  }

  static std::string text(const Field& in, std::string_view key) { return need<std::string>(in, key, "a string"); }
  static bool flag(const Field& in, std::string_view key, bool otherwise) {
    const Field* f = there(in, key);
    return f ? as<bool>(*f, key, "true or false") : otherwise;
  }
  static std::int32_t id_of(const Field& f, std::string_view what) {
    const i64 id = as<i64>(f, what, "an id");
    if (id < 0 || id > std::numeric_limits<std::int32_t>::max())
      throw Error(f.source.str(), "the id of '{}' is {}", shown(what), id);
    return id;
  }

  [[noreturn]] static void refuse(const Field& f, std::string_view what) {
    const Field* type = f.find("type");
    throw Error(f.source.str(), "the {} {} is not supported", what, type ? type->str() : f.str())
        .hint("tokenizers of the GPT-2 and Llama 3 kind are");
  }

  static bool nothing(const Field& f, std::string_view list) {  // a Sequence of nothing
    const Field* members = f.find(list);
    return members && members->array() && members->array()->empty();
  }

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
    if (const Field* type = there(*model, "type"); type && text(*model, "type") != "BPE") refuse(*model, "model");
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

  void add_step(TokenizerParts::Step step, const Field& f) {
    if (parts_.steps.size() == kMostSteps)
      throw Error(f.source.str(), "the pre-tokenizer has more than {} steps", kMostSteps);
    parts_.steps.push_back(std::move(step));
  }

  void read_step(const Field& f) {
    const std::string type = text(f, "type");
    if (byte_level_) throw Error(f.source.str(), "the pre-tokenizer '{}' comes after ByteLevel", shown(type));
    if (type == "Sequence") {
      for (const Field& step : need<Field::Array>(f, "pretokenizers", "a list")) read_step(step);
    } else if (type == "ByteLevel") {
      if (flag(f, "add_prefix_space", true)) add_step({.prefix_space = true}, f);
      if (flag(f, "use_regex", true)) add_step({.pattern = std::string(kGpt2Pattern)}, f);
      byte_level_ = true;
    } else if (type == "Digits") {
      add_step({.pattern = flag(f, "individual_digits", false) ? "\\p{N}" : "\\p{N}+"}, f);
    } else if (type == "Split") {
      read_split(f);
    } else {
      refuse(f, "pre-tokenizer");
    }
  }

  void read_split(const Field& f) {
    const Field* pattern = there(f, "pattern");
    if (!pattern) throw Error(f.source.str(), "a Split has no 'pattern'");
    const std::string behavior = text(f, "behavior");
    const bool invert = flag(f, "invert", false);
    std::string expression;
    if (there(*pattern, "Regex")) {
      expression = text(*pattern, "Regex");
    } else {
      for (const char c : text(*pattern, "String")) {
        if (!(byte_of(c) & 0x80) && !std::isalnum(byte_of(c))) expression += '\\';
        expression += c;
      }
    }
    if (behavior == "Removed" && !invert) refuse_behavior(f, behavior, invert);
    if (behavior != "Removed" && behavior != "Isolated") refuse_behavior(f, behavior, invert);
    add_step({.pattern = std::move(expression), .keep_rest = behavior == "Isolated"}, f);
  }

  [[noreturn]] static void refuse_behavior(const Field& f, const std::string& behavior, bool invert) {
    throw Error(f.source.str(), "a Split with behavior '{}'{} is not supported", shown(behavior),
                invert ? " and invert" : "")
        .hint("'Isolated' is, and 'Removed' with invert");
  }

  void read_post(const Field& f) {
    const std::string type = text(f, "type");
    if (type == "Sequence") {
      for (const Field& p : need<Field::Array>(f, "processors", "a list")) read_post(p);
    } else if (type == "TemplateProcessing") {
      read_template(f);
    } else if (type != "ByteLevel") {
      refuse(f, "post-processor");
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
  bool byte_level_ = false;
};

Field::Table table(std::initializer_list<std::pair<const char*, Field>> members) {
  Field::Table t;
  for (const auto& [key, value] : members) t.push_back({key, value});
  return t;
}

Field byte_level(bool prefix_space, bool use_regex) {
  return table(
      {{"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", true}, {"use_regex", use_regex}});
}

Field pre_tokenizer(const std::vector<TokenizerParts::Step>& steps) {
  Field::Array all;
  bool prefix_space = false, gpt2 = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const TokenizerParts::Step& s = steps[i];
    if (s.prefix_space)
      prefix_space = true;
    else if (i + 1 == steps.size() && s.pattern == kGpt2Pattern && s.keep_rest)
      gpt2 = true;
    else
      all.push_back(table({{"type", "Split"},
                           {"pattern", table({{"Regex", s.pattern}})},
                           {"behavior", s.keep_rest ? "Isolated" : "Removed"},
                           {"invert", !s.keep_rest}}));
  }
  Field last = byte_level(prefix_space, gpt2);
  if (all.empty()) return last;
  all.push_back(std::move(last));
  return table({{"type", "Sequence"}, {"pretokenizers", std::move(all)}});
}

Field post_processor(const TokenizerParts& p) {
  const Field byte = byte_level(true, true);
  if (p.before.empty() && p.after.empty()) return byte;
  Field::Array single;
  Field::Table described;
  const auto add = [&](std::int32_t id) {
    for (const AddedToken& a : p.added) {
      if (a.id != id) continue;
      single.push_back(table({{"SpecialToken", table({{"id", a.text}, {"type_id", 0}})}}));
      for (const Member& m : described)
        if (m.key == a.text) return;
      described.push_back(
          {a.text, table({{"id", a.text}, {"ids", Field::Array{id}}, {"tokens", Field::Array{a.text}}})});
      return;
    }
  };
  for (const std::int32_t id : p.before) add(id);
  single.push_back(table({{"Sequence", table({{"id", "A"}, {"type_id", 0}})}}));
  for (const std::int32_t id : p.after) add(id);
  Field::Array pair = single;
  for (Field f : single) {
    if (f.find("Sequence")) f.set("Sequence.id", "B");
    pair.push_back(std::move(f));
  }
  return table({{"type", "Sequence"},
                {"processors", Field::Array{byte, table({{"type", "TemplateProcessing"},
                                                         {"single", single},
                                                         {"pair", pair},
                                                         {"special_tokens", described}})}}});
}

}  // namespace

TokenizerParts parse_tokenizer(std::string_view json, std::string_view file) {
  const Field root = read_json(json, file);
  return PartsReader(root).read();
}

Tokenizer read_tokenizer(const std::filesystem::path& file) {
  if (file == "bytes") return Tokenizer::bytes();
  if (is_folder(file)) return read_tokenizer(file / "tokenizer.json");
  const MappedFile mapped(file);
  return Tokenizer(parse_tokenizer(mapped.text(), file.string()), file.string());
}

std::string tokenizer_json(const TokenizerParts& p) {
  Field::Array added, merges;
  for (const AddedToken& a : p.added)
    added.push_back(table({{"id", i64{a.id}},
                           {"content", a.text},
                           {"single_word", a.single_word},
                           {"lstrip", a.lstrip},
                           {"rstrip", a.rstrip},
                           {"normalized", a.normalized},
                           {"special", a.special}}));
  Field::Table vocab;
  for (const auto& [token, id] : p.vocab) vocab.push_back({token, Field(i64{id})});
  for (const auto& [left, right] : p.merges) merges.push_back(Field(left + " " + right));
  const Field model = table({{"type", "BPE"},
                             {"dropout", Field()},
                             {"unk_token", Field()},
                             {"continuing_subword_prefix", Field()},
                             {"end_of_word_suffix", Field()},
                             {"fuse_unk", false},
                             {"byte_fallback", false},
                             {"ignore_merges", p.ignore_merges},
                             {"vocab", std::move(vocab)},
                             {"merges", std::move(merges)}});
  return write_json(table({{"version", "1.0"},
                           {"truncation", Field()},
                           {"padding", Field()},
                           {"added_tokens", std::move(added)},
                           {"normalizer", Field()},
                           {"pre_tokenizer", pre_tokenizer(p.steps)},
                           {"post_processor", post_processor(p)},
                           {"decoder", byte_level(true, true)},
                           {"model", model}}),
                    1) +
         "\n";
}

}  // namespace stretto
