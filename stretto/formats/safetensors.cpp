#include "stretto/formats/safetensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "stretto/base/error.h"
#include "stretto/base/text.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/inner/json_events.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

constexpr u64 longest_header = 100'000'000;
constexpr std::size_t most_dims = 32;  // keeps an absurd shape from costing memory

struct Entry {
  StoredTensor tensor;
  u64 begin = 0, end = 0;
  bool has_type = false, has_shape = false;
  int offsets = 0;
};

// The header's grammar as a state machine over events: memory stays proportional to the entries.
class HeaderEvents : public JsonEvents {
 public:
  explicit HeaderEvents(std::string_view file) : file_(file) {}
  std::map<std::string, Entry, std::less<>> entries;
  Metadata metadata;

  void null() override { value("null"); }
  void boolean(bool) override { value("a boolean"); }
  void number(double) override { value("a number that is no 64-bit integer"); }
  void integer(i64 n) override {
    if (within_ != Within::shape && within_ != Within::offsets) return value("a number");
    if (n < 0) fail("'{}' of tensor '{}' holds {}, which is negative", field_, shown(name_), n);
    if (within_ == Within::shape) {
      if (entry_->tensor.shape.size() == most_dims)
        fail("tensor '{}' has more than {} dimensions", shown(name_), most_dims);
      entry_->tensor.shape.push_back(n);
    } else {
      if (entry_->offsets == 2) fail("'data_offsets' of tensor '{}' has more than two numbers", shown(name_));
      (entry_->offsets++ == 0 ? entry_->begin : entry_->end) = u64(n);
    }
  }
  void string(std::string text) override {
    if (within_ == Within::metadata) {
      metadata[field_] = std::move(text);
    } else if (within_ == Within::entry && field_ == "dtype") {
      const auto type = file_type_named(text);
      if (!type)
        throw Error(file_, "tensor '{}' has the element type '{}', which is not supported", shown(name_), shown(text))
            .hint("supported are BOOL U8 I8 I16 U16 F16 BF16 I32 U32 F32 F64 I64 U64");
      entry_->tensor.type = *type;
      entry_->has_type = true;
    } else {
      value("a string");
    }
  }
  void key(std::string text) override {
    (within_ == Within::top ? name_ : within_ == Within::skip ? skipped_ : field_) = std::move(text);
  }
  void begin_object() override {
    if (within_ == Within::before) {
      within_ = Within::top;
    } else if (within_ == Within::top) {
      within_ = name_ == "__metadata__" ? Within::metadata : Within::entry;
      if (within_ == Within::entry) entry_ = &entries[name_];
    } else {
      skip("an object");
    }
  }
  void end_object() override {
    if (close_skipped()) return;
    if (within_ == Within::entry) check_complete();
    within_ = within_ == Within::top ? Within::before : Within::top;
  }
  void begin_array() override {
    if (within_ == Within::entry && field_ == "shape") {
      within_ = Within::shape;
      entry_->has_shape = true;
    } else if (within_ == Within::entry && field_ == "data_offsets") {
      within_ = Within::offsets;
    } else {
      skip("an array");
    }
  }
  void end_array() override {
    if (!close_skipped()) within_ = Within::entry;
  }

 private:
  enum class Within { before, top, metadata, entry, shape, offsets, skip };

  template <class... A>
  [[noreturn]] void fail(fmt::format_string<A...> what, A&&... a) const {
    throw Error(file_, what, std::forward<A>(a)...);
  }
  // A value where the grammar has no room for it. Fields of a tensor that we do not know are skipped.
  void value(const char* what) {
    switch (within_) {
      case Within::before:
        fail("the header is {}, not an object", what);
      case Within::top:
        fail("'{}' in the header is {}, not an object", shown(name_), what);
      case Within::metadata:
        fail("metadata '{}' is {}, not a string", shown(field_), what);
      case Within::entry:
        if (field_ == "dtype" || field_ == "shape" || field_ == "data_offsets")
          fail("'{}' of tensor '{}' is {}", field_, shown(name_), what);
        return;
      case Within::shape:
      case Within::offsets:
        fail("'{}' of tensor '{}' holds {}", field_, shown(name_), what);
      case Within::skip:
        return;
    }
  }
  void skip(const char* what) {
    value(what);
    within_ = Within::skip;
    ++skipping_;
  }
  bool close_skipped() {
    if (skipping_ == 0) return false;
    if (--skipping_ == 0) within_ = Within::entry;
    return true;
  }
  void check_complete() const {
    const char* missing = !entry_->has_type      ? "dtype"
                          : !entry_->has_shape   ? "shape"
                          : entry_->offsets != 2 ? "data_offsets"
                                                 : nullptr;
    if (missing) fail("tensor '{}' has no {}'{}'", shown(name_), entry_->offsets == 1 ? "complete " : "", missing);
  }

  std::string file_, name_, field_, skipped_;
  Entry* entry_ = nullptr;
  Within within_ = Within::before;
  int skipping_ = 0;
};

void check_size(const std::string& name, const Entry& entry, std::string_view file) {
  u64 bytes = size_of(entry.tensor.type);
  bool overflow = false;
  for (const i64 n : entry.tensor.shape) overflow |= __builtin_mul_overflow(bytes, u64(n), &bytes);
  if (overflow) throw Error(file, "tensor '{}' {} is larger than any memory", shown(name), entry.tensor.str());
  if (entry.begin > entry.end || entry.end - entry.begin != bytes)
    throw Error(file, "tensor '{}' {} takes {} bytes, but its offsets are {} to {}", shown(name), entry.tensor.str(),
                bytes, entry.begin, entry.end);
}

}  // namespace

SafeTensorsHeader parse_safetensors(std::span<const std::byte> bytes, std::string_view file) {
  if (bytes.size() < 8) throw Error(file, "is {} bytes long and so no safetensors file", bytes.size());
  u64 length = 0;
  std::memcpy(&length, bytes.data(), 8);
  if (length > longest_header)
    throw Error(file, "claims a header of {} bytes; the format allows {}", length, longest_header)
        .hint("is it a safetensors file?");
  if (length > bytes.size() - 8)
    throw Error(file, "claims a header of {} bytes, but only {} follow", length, bytes.size() - 8)
        .hint("is the file cut off?");
  HeaderEvents events(file);
  parse_json({reinterpret_cast<const char*>(bytes.data()) + 8, std::size_t(length)}, file, events);

  const std::span<const std::byte> data = bytes.subspan(8 + std::size_t(length));
  std::vector<std::pair<const std::string, Entry>*> order;
  for (auto& entry : events.entries) {
    check_size(entry.first, entry.second, file);
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::tie(a->second.begin, a->second.end) < std::tie(b->second.begin, b->second.end);
  });
  u64 covered = 0;
  for (const auto* entry : order) {
    const Entry& e = entry->second;
    if (e.begin != covered)
      throw Error(file, "tensor '{}' begins at byte {}, but the one before it ends at {}", shown(entry->first), e.begin,
                  covered)
          .hint("tensors must follow each other without holes or overlap");
    covered = e.end;
  }
  if (covered != data.size())
    throw Error(file, "tensors take {} bytes, but {} follow the header", covered, data.size())
        .hint("{}", covered > data.size() ? "is the file cut off?" : "is something appended to the file?");

  SafeTensorsHeader header;
  header.metadata = std::move(events.metadata);
  for (auto& [name, entry] : events.entries) {
    entry.tensor.bytes = data.subspan(std::size_t(entry.begin), std::size_t(entry.end - entry.begin));
    header.tensors.emplace_hint(header.tensors.end(), name, std::move(entry.tensor));
  }
  return header;
}

SafeTensors::SafeTensors(const std::filesystem::path& path) : path_(path), file_(std::make_shared<MappedFile>(path)) {
  header_ = with_hint("the file is damaged or no safetensors file: fetch or write it again",
                      [&] { return parse_safetensors(file_->bytes(), path.string()); });
}

const StoredTensor* SafeTensors::find(std::string_view name) const {
  const auto found = header_.tensors.find(name);
  return found == header_.tensors.end() ? nullptr : &found->second;
}

const StoredTensor& SafeTensors::at(std::string_view name) const { return tensor_at(header_.tensors, name, path_); }

const StoredTensor& tensor_at(const TensorMap& tensors, std::string_view name, const std::filesystem::path& where) {
  if (const auto found = tensors.find(name); found != tensors.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, tensor] : tensors) names.push_back(known);
  Error error(where.string(), "has no tensor '{}'", name);
  if (const auto near = nearest(name, names)) throw std::move(error).hint("it has '{}'", *near);
  throw std::move(error).hint("it has {} other tensors", names.size());
}

SafeTensorsPlan plan_safetensors(std::span<const NamedTensor> tensors, const Metadata& metadata) {
  SafeTensorsPlan plan;
  plan.order.resize(tensors.size());
  std::iota(plan.order.begin(), plan.order.end(), 0);
  std::sort(plan.order.begin(), plan.order.end(), [&](std::size_t a, std::size_t b) {
    const auto size_a = size_of(tensors[a].type), size_b = size_of(tensors[b].type);
    return size_a != size_b ? size_a > size_b : tensors[a].name < tensors[b].name;
  });

  std::string& json = plan.head;
  json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, text] : metadata) json += json_text(key) + ":" + json_text(text) + ",";
    json.back() = '}';
    json += ",";
  }
  u64 at = 0;
  for (std::size_t i : plan.order) {
    const NamedTensor& t = tensors[i];
    Entry entry{{t.type, t.shape, t.bytes}, 0, t.bytes.size()};
    check_size(t.name, entry, "safetensors writer");
    if (t.name == "__metadata__" || first_bad_utf8(t.name))
      throw Error("safetensors writer", "'{}' cannot be a tensor's name", shown(t.name));
    json += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},", json_text(t.name),
                        name_of(t.type), fmt::join(t.shape, ","), at, at + t.bytes.size());
    at += t.bytes.size();
  }
  std::vector<std::string_view> names;
  for (const NamedTensor& t : tensors) names.push_back(t.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    throw Error("safetensors writer", "tensor '{}' is given twice", shown(*twice));

  if (json.back() == ',') json.pop_back();
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  if (json.size() > longest_header)
    throw Error("safetensors writer", "{} tensors need a header of {} bytes; the format allows {}", tensors.size(),
                json.size(), longest_header)
        .hint("write several files");
  const u64 length = json.size();
  json.insert(0, reinterpret_cast<const char*>(&length), 8);
  return plan;
}

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const Metadata& metadata) {
  const SafeTensorsPlan plan = plan_safetensors(tensors, metadata);
  AtomicFile file(path);
  file.write(plan.head);
  for (std::size_t i : plan.order) file.write(tensors[i].bytes);
  file.commit();
}

}  // namespace stretto
