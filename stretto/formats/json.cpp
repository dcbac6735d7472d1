// JSON text to a tree.
#include "stretto/formats/fields.h"
#include "stretto/formats/inner/json_events.h"

namespace stretto {
namespace {

class TreeEvents : public JsonEvents {
 public:
  explicit TreeEvents(std::string_view file) : file_(std::make_shared<const std::string>(file)) {}
  Field root;

  void null() override { put(Field()); }
  void boolean(bool v) override { put(Field(v)); }
  void integer(i64 v) override { put(Field(v)); }
  void number(double v) override { put(Field(v)); }
  void string(std::string v) override { put(Field(std::move(v))); }
  void key(std::string k) override { key_ = std::move(k); }
  void begin_object() override { open(Field(Field::Table{})); }
  void begin_array() override { open(Field(Field::Array{})); }
  void end_object() override { open_.pop_back(); }
  void end_array() override { open_.pop_back(); }

 private:
  // Containers that are open stay in place: only the innermost one grows.
  Field& put(Field field) {
    field.source = {file_, line};
    if (open_.empty()) return root = std::move(field);
    if (auto* table = std::get_if<Field::Table>(&open_.back()->value))
      return table->emplace_back(Member{std::move(key_), std::move(field)}).value;
    return std::get<Field::Array>(open_.back()->value).emplace_back(std::move(field));
  }
  void open(Field field) { open_.push_back(&put(std::move(field))); }

  std::shared_ptr<const std::string> file_;
  std::vector<Field*> open_;
  std::string key_;
};

}  // namespace

Field read_json(std::string_view text, std::string_view file) {
  TreeEvents events(file);
  parse_json(text, file, events);
  return std::move(events.root);
}

}  // namespace stretto
