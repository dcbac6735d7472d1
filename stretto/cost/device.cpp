#include "stretto/cost/device.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/text.h"
#include "stretto/cost/inner/shipped.h"

namespace stretto {
namespace {

constexpr Range peak_range{.least = 1, .most = 1e30};
constexpr Range share_range{.least = 0, .most = 4, .open_least = true};

bool read_device_link(FieldReader& file, std::string_view name, DeviceLink& to, int* domain = nullptr) {
  const bool there = file.has(name);
  FieldReader section = file.section(name);
  section.read("bandwidth", to.bandwidth, peak_range);
  section.read("latency", to.latency, between(0, 1e6));
  section.read("share", to.share, share_range);
  if (domain) section.read("domain", *domain, between(1, 1 << 20));
  return there;
}

void read_table(FieldReader& file, std::string_view name, std::map<std::string, double>& to) {
  FieldReader section = file.section(name);
  if (const Field::Table* table = section.field().table())
    for (const Member& m : *table) section.read(m.key, to[m.key], share_range);
}

DeviceModel read_fields(const Field& fields, std::string name) {
  DeviceModel d{.name = std::move(name)};
  FieldReader reader(fields);
  reader.need("memory_bandwidth");
  reader.read("memory", d.memory, above(0));
  reader.read("memory_bandwidth", d.memory_bandwidth, peak_range);
  FieldReader peak = reader.section("peak");
  peak.need("f32");
  peak.read("f32", d.f32, peak_range);
  peak.read("bf16", d.bf16, peak_range);
  double unused = 0;  // public numbers, for whoever reads the file: what products reach is in [narrow]
  peak.read("fp8", unused, peak_range);
  peak.read("fp4", unused, peak_range);
  FieldReader narrow = reader.section("narrow");
  narrow.read("fp8", d.fp8, between(1, 16));
  narrow.read("fp4", d.fp4, between(1, 16));
  narrow.read("cast", d.cast, between(0, 64));
  read_over(reader, d);
  reader.finish();
  return d;
}

}  // namespace

void read_over(FieldReader& reader, DeviceModel& d) {
  FieldReader rates = reader.section("rates");
  rates.read("product", d.rates.product, share_range);
  rates.read("grouped", d.rates.grouped, share_range);
  rates.read("small", d.rates.small, between(0, 1e6));
  rates.read("attention", d.rates.attention, share_range);
  rates.read("attention_backward", d.rates.attention_backward, share_range);
  rates.read("elements", d.rates.elements, share_range);
  rates.read("kernel", d.rates.kernel, between(0, 1));
  read_table(reader, "attention", d.attention);
  const bool inside = read_device_link(reader, "inside", d.inside, &d.domain);
  const bool between = read_device_link(reader, "between", d.between);
  d.linked = d.linked || inside || between;
}

DeviceModel read_device(const std::string& name) {
  return with_hint("docs/costs.md says what a device file holds",
                   [&] { return read_fields(read_shipped("device", shipped_devices(), name), name); });
}

std::string device_toml(const DeviceModel& d, const std::vector<std::string>& comments) {
  Field to{Field::Table{}};
  if (std::isfinite(d.memory)) to.set("memory", d.memory);
  to.set("memory_bandwidth", d.memory_bandwidth);
  to.set("peak.f32", d.f32);
  if (d.bf16 > 0) to.set("peak.bf16", d.bf16);
  to.set("rates.product", d.rates.product);
  if (d.rates.grouped != 1) to.set("rates.grouped", d.rates.grouped);
  to.set("rates.small", d.rates.small);
  to.set("rates.attention", d.rates.attention);
  to.set("rates.attention_backward", d.rates.attention_backward);
  to.set("rates.elements", d.rates.elements);
  to.set("rates.kernel", d.rates.kernel);
  for (const auto& [kernel, share] : d.attention) to.set("attention." + kernel, share);
  if (d.fp8 > 1) to.set("narrow.fp8", d.fp8);
  if (d.fp4 > 1) to.set("narrow.fp4", d.fp4);
  if (d.cast > 0) to.set("narrow.cast", d.cast);
  const auto put = [&](const std::string& name, const DeviceLink& l) {
    if (std::isfinite(l.bandwidth)) to.set(name + ".bandwidth", l.bandwidth);
    to.set(name + ".latency", l.latency);
    to.set(name + ".share", l.share);
  };
  if (d.linked) {
    put("inside", d.inside);
    to.set("inside.domain", d.domain);
    put("between", d.between);
  }
  std::string text;
  for (const std::string& line : comments) text += "# " + line + "\n";
  return text + write_toml(to);
}

Cluster cluster_of(const DeviceModel& d, const Stack& stack, ProductType products) {
  Cluster c{.machine = {.flops = d.f32, .memory_bandwidth = d.memory_bandwidth, .flops_bf16 = d.bf16, .rates = d.rates},
            .inside = d.inside.link(),
            .between = d.between.link(),
            .ranks_per_node = d.domain,
            .one_ring = true,
            .stack = stack};
  Rates& r = *c.machine.rates;
  if (const auto own = d.attention.find(stack.kernel); own != d.attention.end()) r.attention = own->second;
  if (stack.kept) r.scores_forward = stack.scores_forward, r.scores_backward = stack.scores_backward;
  if (products == ProductType::fp8) r.narrow = d.fp8, r.cast = d.cast;
  if (products == ProductType::fp4) r.narrow = d.fp4, r.cast = d.cast;
  const std::string device = std::filesystem::path(d.name).stem().string();
  if (const auto own = stack.factors.find(device); own != stack.factors.end()) c.stack.factor *= own->second;
  return c;
}

}  // namespace stretto
