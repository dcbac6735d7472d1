// RunConfig -> RUN.toml.
#include "stretto/config/inner/visitors.h"

namespace stretto {

std::string resolved_toml(const RunConfig& config) {
  RunConfig c = config;  // keys_of wants what it can write to
  Field root{Field::Table{}};
  const auto section = [&](std::string_view name) { return Writing{root.set(name, Field(Field::Table{}))}; };
  const Writing model = section("model");
  if (!c.model.graph.empty()) model.to.set("graph", Field(c.model.graph));
  if (!c.model.from.empty()) model.to.set("from", Field(c.model.from));
  if (!c.model.hf_as.empty()) model.to.set("hf_as", Field(c.model.hf_as));
  if (c.model.frozen_dtype) model.to.set("frozen_dtype", Field(std::string(name_of(*c.model.frozen_dtype))));
  if (c.model.graph.empty()) keys_of(c.model.config, model);
  keys_of(c.data, section("data"));
  keys_of(c.train, section("train"));
  keys_of(c.optimizer, section("optimizer"));
  keys_of(c.finetune, section("finetune"));
  keys_of(c.parallel, section("parallel"));
  keys_of(c.checkpoint, section("checkpoint"));
  keys_of(c.log, section("log"));
  keys_of(c.plan, section("plan"));
  for (const std::string& key : c.searched) root.set(key, Field("auto"));
  return write_toml(root);
}

}  // namespace stretto
