// TokenizerParts -> tokenizer.json.
#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/formats/fields.h"
#include "stretto/tokenize/split_pattern.h"
#include "stretto/tokenize/tokenizer.h"

namespace stretto {
namespace {

Field::Table table(std::initializer_list<std::pair<const char*, Field>> members) {
  Field::Table t;
  for (const auto& [key, value] : members) t.push_back({key, value});
  return t;
}

Field byte_level(bool prefix_space, bool use_regex) {
  return table(
      {{"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", true}, {"use_regex", use_regex}});
}

constexpr std::string_view behavior_names[] = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext",
                                               "Contiguous"};

Field pre_tokenizer(const std::vector<CutStep>& steps) {
  Field::Array all;
  bool prefix_space = false, gpt2 = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const CutStep& s = steps[i];
    if (s.prefix_space)
      prefix_space = true;
    else if (i + 1 == steps.size() && s == CutStep{.pattern = std::string(gpt2_pattern)})
      gpt2 = true;
    else
      all.push_back(table({{"type", "Split"},
                           {"pattern", table({{"Regex", s.pattern}})},
                           {"behavior", std::string(behavior_names[std::size_t(s.matches)])},
                           {"invert", s.invert}}));
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

std::string tokenizer_json(const TokenizerParts& p) {
  const bool spaces = std::any_of(p.steps.begin(), p.steps.end(), [](const CutStep& s) { return !s.space.empty(); });
  if (p.model != TokenizerParts::Model::bytes || !p.normalizers.empty() || spaces)
    throw Error("tokenizer", "only byte-level tokenizers without normalizers are written")
        .hint("copy its file instead");
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
