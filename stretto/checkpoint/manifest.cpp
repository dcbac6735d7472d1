#include "stretto/checkpoint/manifest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "stretto/base/hash.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

constexpr std::string_view format_name = "stretto checkpoint";
constexpr i64 version_of_whole = 1, version_of_fragments = 2;
constexpr std::string_view fragments_key = "pieces";  // of a shard: what version 2 calls them

std::string hex(u64 v) { return fmt::format("{:016x}", v); }

Field numbers(const std::vector<i64>& v) { return Field(Field::Array(v.begin(), v.end())); }

Field fragment_field(const Fragment& p) {
  Field f{Field::Table{}};
  f.set("shape", numbers(p.shape));
  f.set("offsets", numbers(p.offsets));
  f.set("sizes", numbers(p.sizes));
  f.set("first", Field(p.first));
  f.set("count", Field(p.count));
  return f;
}

bool has_fragments(const Manifest& m) {
  for (const ManifestFile& f : m.shards)
    for (const ManifestTensor& t : f.tensors)
      if (t.fragment) return true;
  return false;
}

Field files_field(const std::vector<ManifestFile>& files) {
  Field::Array all;
  for (const ManifestFile& f : files) {
    Field file{Field::Table{}};
    file.set("file", Field(f.name));
    file.set("bytes", Field(i64(f.bytes)));
    file.set("hash", Field(hex(f.hash)));
    Field::Table tensors, fragments;
    for (const ManifestTensor& t : f.tensors) {
      tensors.push_back({t.name, Field(hex(t.hash))});
      if (t.fragment) fragments.push_back({t.name, fragment_field(*t.fragment)});
    }
    if (!tensors.empty()) file.set("tensors", Field(std::move(tensors)));
    if (!fragments.empty()) file.set(fragments_key, Field(std::move(fragments)));
    all.push_back(std::move(file));
  }
  return Field(std::move(all));
}

// Over the written form, which holds no floating-point numbers and so is the same whoever writes it.
u64 content_hash(const Field& without_hash) {
  const std::string text = write_json(without_hash);
  return hash_bytes(text.data(), text.size());
}

class ManifestReader {
 public:
  explicit ManifestReader(FieldReader root) : root_(std::move(root)) {}

  Manifest read() {
    Manifest m;
    root_.ignore({"format", "version"});
    for (const char* key : {"step", "seed", "config", "shards"}) root_.need(key);
    root_.read("step", m.step, at_least(0));
    read_hash(root_, "seed", m.seed);
    root_.read("config", m.config);
    root_.read("optimizer", m.optimizer);
    root_.read("states", m.states);
    m.shards = read_files("shards");
    m.extras = read_files("extras");
    root_.finish();
    return m;
  }

 private:
  static void read_hash(FieldReader& r, std::string_view key, u64& to) {
    std::string text;
    if (!r.read(key, text)) return;
    if (const auto v = hash_named(text))
      to = *v;
    else
      r.fail(key, "must be 16 hex digits");
  }
  static std::optional<u64> hash_named(std::string_view text) {
    u64 v = 0;
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), v, 16);
    if (text.size() != 16 || wrong != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return v;
  }

  std::vector<ManifestFile> read_files(std::string_view key) {
    std::vector<ManifestFile> files;
    for (FieldReader& r : root_.sections(key)) {
      ManifestFile f;
      for (const char* k : {"file", "bytes", "hash"}) r.need(k);
      r.read("file", f.name);
      // A name with a directory in it could lead anywhere on the machine.
      if (f.name.empty() || f.name.find('/') != std::string::npos || f.name == "." || f.name == ".." ||
          f.name == manifest_name || !names_.insert(f.name).second)
        r.fail("file", "must be the name of a file of its own in this directory");
      else if (key == "extras" && !is_extra_name(f.name))
        r.fail("file", "is '{}', and must be one of {}", shown(f.name), fmt::join(extra_names, ", "));
      i64 bytes = 0;
      r.read("bytes", bytes, at_least(0));
      f.bytes = u64(bytes);
      read_hash(r, "hash", f.hash);
      if (const Field* tensors = r.raw("tensors")) read_tensors(r, *tensors, f);
      if (r.has(fragments_key)) read_fragments(r, f);
      for (const ManifestTensor& t : f.tensors)
        if (!tensors_.insert({t.name, t.fragment.has_value()}).second && !t.fragment)
          r.fail("tensors", "names '{}' a second time", shown(t.name));
      files.push_back(std::move(f));
    }
    return files;
  }

  void read_tensors(FieldReader& r, const Field& tensors, ManifestFile& f) {
    if (!tensors.table()) return r.fail("tensors", "must be a table of names and hashes");
    for (const auto& [name, value] : *tensors.table()) {
      const auto* text = std::get_if<std::string>(&value.value);
      const auto hash = text ? hash_named(*text) : std::nullopt;
      if (!hash) return r.fail("tensors", "has no hash of 16 hex digits for '{}'", shown(name));
      f.tensors.push_back({name, *hash});
    }
  }

  void read_fragments(FieldReader& r, ManifestFile& f) {
    FieldReader all = r.section(fragments_key);
    if (!all.field().table()) return;
    for (const Member& member : *all.field().table()) {
      const std::string& name = member.key;
      const auto t = std::find_if(f.tensors.begin(), f.tensors.end(), [&](const auto& x) { return x.name == name; });
      if (t == f.tensors.end())
        return r.fail(fragments_key, "has a place for '{}', which the file has not", shown(name));
      FieldReader place = all.section(name);
      Fragment p;
      for (const char* key : {"shape", "offsets", "sizes", "first", "count"}) place.need(key);
      place.read("shape", p.shape);
      place.read("offsets", p.offsets);
      place.read("sizes", p.sizes);
      place.read("first", p.first);
      place.read("count", p.count);
      if (const std::string wrong = wrong_with(p); !wrong.empty())
        return r.fail(fragments_key, "has a fragment of '{}' that {}", shown(name), wrong);
      t->fragment = std::move(p);
    }
  }

  FieldReader root_;
  std::set<std::string, std::less<>> names_;
  std::set<std::pair<std::string, bool>> tensors_;  // with whether it is in fragments
};

}  // namespace

bool is_extra_name(std::string_view name) {
  return std::find(extra_names.begin(), extra_names.end(), name) != extra_names.end();
}

std::string manifest_text(const Manifest& m) {
  Field f{Field::Table{}};
  f.set("format", Field(std::string(format_name)));
  f.set("version", Field(has_fragments(m) ? version_of_fragments : version_of_whole));
  f.set("step", Field(m.step));
  f.set("seed", Field(hex(m.seed)));
  f.set("config", Field(m.config));
  f.set("optimizer", Field(m.optimizer));
  f.set("states", Field(Field::Array(m.states.begin(), m.states.end())));
  f.set("shards", files_field(m.shards));
  f.set("extras", files_field(m.extras));
  const u64 hash = content_hash(f);
  f.set("hash", Field(hex(hash)));
  return write_json(f, 1) + "\n";
}

Manifest parse_manifest(std::string_view text, std::string_view file) {
  Field root = read_json(text, file);
  Field::Table* table = std::get_if<Field::Table>(&root.value);
  const auto text_at = [&](std::string_view key) {
    const Field* f = root.find(key);
    const std::string* s = f ? std::get_if<std::string>(&f->value) : nullptr;
    return s ? *s : std::string();
  };
  if (!table || text_at("format") != format_name)
    throw Error(file, "is no manifest of a checkpoint").hint("it should say \"format\": \"{}\"", format_name);
  if (const Field* version = root.find("version"); !version || (version->str() != std::to_string(version_of_whole) &&
                                                                version->str() != std::to_string(version_of_fragments)))
    throw Error(file, "has version {}; this program reads versions {} and {}", version ? version->str() : "none",
                version_of_whole, version_of_fragments)
        .hint("use the program that wrote it");
  const std::string hash = text_at("hash");
  std::erase_if(*table, [](const Member& m) { return m.key == "hash"; });
  if (hash != hex(content_hash(root)))
    throw Error(file, "is not as it was written: its hash is not the one it says").hint("the checkpoint is damaged");
  return ManifestReader(FieldReader(root)).read();
}

std::vector<std::string> incomplete(const Manifest& m) {
  std::map<std::string_view, std::vector<Fragment>> fragments;
  std::set<std::string_view> whole;
  for (const ManifestFile& f : m.shards)
    for (const ManifestTensor& t : f.tensors) {
      if (t.fragment)
        fragments[t.name].push_back(*t.fragment);
      else
        whole.insert(t.name);
    }
  std::vector<std::string> faults;
  for (const auto& [name, all] : fragments) {
    const std::string wrong = whole.contains(name) ? "are there beside the whole" : wrong_with(std::span(all));
    if (!wrong.empty()) faults.push_back(fmt::format("'{}': its fragments {}", shown(name), wrong));
  }
  return faults;
}

}  // namespace stretto
