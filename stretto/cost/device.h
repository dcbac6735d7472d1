// An accelerator as a TOML file: its public peaks, what kernels reach of them, its links. devices/ has some; `stretto
// bench device` writes one of the machine it runs on.
//
//   memory = 80e9                       # bytes
//   memory_bandwidth = 3.35e12          # bytes per second
//   [peak]                              # dense operations per second: f32, bf16, fp8, fp4
//   [rates]                             # what kernels reach, see cost/rates.h
//   [attention]                         # shares of the peak, by name of the kernel: a stack says which it has
//   [narrow]                            # speed of fp8 and fp4 products in parts of bf16's; cast: bytes per element
//   [inside] [between]                  # bandwidth of a rank in one direction, latency, share that collectives reach
//
//   DeviceModel d = read_device("h100-sxm");
//   Cluster c = cluster_of(d, read_stack("nemo"), ProductType::fp8);
#pragma once
#include <map>
#include <string>

#include "stretto/cost/machine.h"
#include "stretto/cost/product_type.h"
#include "stretto/formats/fields.h"

namespace stretto {

struct DeviceLink {
  double bandwidth = std::numeric_limits<double>::infinity(), latency = 0, share = 1;
  Link link() const { return {.latency = latency, .bandwidth = bandwidth * share}; }
  bool operator==(const DeviceLink&) const = default;
};

struct DeviceModel {
  std::string name;
  double f32 = 50e9, bf16 = 0;  // operations per second; 0: as f32
  double memory = std::numeric_limits<double>::infinity(), memory_bandwidth = 10e9;
  Rates rates = {};
  std::map<std::string, double> attention = {};  // by kernel
  double fp8 = 1, fp4 = 1, cast = 0;             // products: speed in parts of bf16's, 1: it has none; bytes of casts
  DeviceLink inside = {}, between = {};
  bool linked = false;  // [inside] and [between] are given
  int domain = 1;       // ranks that are joined by `inside`
  bool operator==(const DeviceModel&) const = default;
};

// A name of devices/, or a file (it ends in .toml). An unknown name is refused with the nearest known one, what is
// wrong in a file with line and key.
DeviceModel read_device(const std::string& name_or_file);
// The keys that a cluster file may give over a device's: rates, attention, inside, between.
void read_over(FieldReader& reader, DeviceModel& device);
std::string device_toml(const DeviceModel&, const std::vector<std::string>& comments = {});

// What both say together.
Cluster cluster_of(const DeviceModel&, const Stack&, ProductType = ProductType::as_kept);

}  // namespace stretto
