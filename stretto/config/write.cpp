// RunConfig -> RUN.toml.
#include "stretto/config/keys.h"

namespace stretto {
namespace {

Field field_of(i64 v) { return Field(v); }
Field field_of(int v) { return Field(v); }
Field field_of(double v) { return Field(v); }
Field field_of(bool v) { return Field(v); }
Field field_of(const std::string& v) { return Field(v); }
Field field_of(const std::optional<bool>& v) { return v ? Field(*v) : Field(); }
template <class T>
Field field_of(const std::vector<T>& v) {
  return Field(Field::Array(v.begin(), v.end()));
}

Field mixture_field(const std::vector<MixturePart>& mixture) {
  Field::Array parts;
  for (const MixturePart& p : mixture)
    parts.push_back(Field(Field::Table{{"path", field_of(p.path)}, {"weight", Field(p.weight)}}));
  return Field(std::move(parts));
}

// Writes the keys of a section into a table.
struct Writing {
  Field& to;
  template <class T, class... R>
  void operator()(std::string_view key, T& value, const R&...) {
    to.set(key, field_of(value));
  }
  template <class T>
  void operator()(std::string_view key, T& value, const Choices<T>& choices) {
    for (const auto& [name, choice] : choices)
      if (choice == value) to.set(key, Field(std::string(name)));
  }
};

}  // namespace

std::string resolved_toml(const RunConfig& config) {
  RunConfig c = config;  // keys_of wants what it can write to
  Field root{Field::Table{}};
  Field& model = root.set("model", Field(Field::Table{}));
  if (!c.model.from.empty()) model.set("from", Field(c.model.from));
  keys_of(c.model.config, Writing{model});
  Field& rope = model.set("rope_scaling", Field(Field::Table{}));
  keys_of(c.model.config.rope_scaling, Writing{rope});
  Field& data = root.set("data", Field(Field::Table{}));
  if (c.data.mixture.empty())
    data.set("path", field_of(c.data.path));
  else
    data.set("mixture", mixture_field(c.data.mixture));
  keys_of(c.data, Writing{data});
  data.set("validation", c.data.validation_path.empty() ? Field(c.data.validation) : field_of(c.data.validation_path));
  keys_of(c.train, Writing{root.set("train", Field(Field::Table{}))});
  keys_of(c.optimizer, Writing{root.set("optimizer", Field(Field::Table{}))});
  root.set("parallel", parallel_field(c.parallel));
  keys_of(c.checkpoint, Writing{root.set("checkpoint", Field(Field::Table{}))});
  Field& log = root.set("log", Field(Field::Table{}));
  keys_of(c.log, Writing{log});
  log.set("timeline", c.log.timeline < 0 ? Field("last") : Field(c.log.timeline));
  return write_toml(root);
}

}  // namespace stretto
