#include "stretto/formats/event_file.h"

#include <unistd.h>

#include <array>
#include <chrono>

#include "stretto/base/error.h"

namespace stretto {
namespace {

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
    table[i] = c;
  }
  return table;
}
constexpr auto crc_table = make_crc_table();

std::uint32_t masked_crc(std::string_view bytes) {
  const std::uint32_t c = crc32c(bytes);
  return (c >> 15 | c << 17) + 0xA282EAD8u;
}

template <class T>
std::string raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// Protocol buffers' wire format: a field's number and kind, then its value.
std::string varint(u64 value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out += static_cast<char>(value);
}
std::string field(int number, double value) { return varint(u64(number) << 3 | 1) + raw(value); }
std::string field(int number, float value) { return varint(u64(number) << 3 | 5) + raw(value); }
std::string field(int number, i64 value) { return varint(u64(number) << 3) + varint(u64(value)); }
std::string field(int number, std::string_view bytes) {
  return (varint(u64(number) << 3 | 2) + varint(bytes.size())).append(bytes);
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string host() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0 || !*name) return "host";
  return name;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t c = 0xFFFFFFFFu;
  for (const char byte : bytes) c = crc_table[(c ^ static_cast<unsigned char>(byte)) & 0xFF] ^ c >> 8;
  return ~c;
}

EventFile::EventFile(const std::filesystem::path& directory) : EventFile(directory, Options{}) {}

EventFile::EventFile(const std::filesystem::path& directory, const Options& options)
    : EventFile(directory, options, options.wall_time.value_or(now())) {}

EventFile::EventFile(const std::filesystem::path& directory, const Options& options, double time)
    : file_(directory / (options.name.empty()
                             ? fmt::format("events.out.tfevents.{:010d}.{}.{}.0", i64(time), host(), ::getpid())
                             : options.name)) {
  std::string event = field(1, time) + field(3, std::string_view("brain.Event:2"));
  if (!options.writer.empty()) event += field(10, std::string_view(field(1, std::string_view(options.writer))));
  record(event);
}

void EventFile::scalar(std::string_view tag, i64 step, double value, std::optional<double> wall_time) {
  const std::string entry = field(1, tag) + field(2, float(value));
  std::string event = field(1, wall_time.value_or(now()));
  if (step != 0) event += field(2, step);  // zero is what an absent number means
  record(event + field(5, std::string_view(field(1, std::string_view(entry)))));
}

void EventFile::record(std::string_view event) {
  const std::string length = raw(u64(event.size()));
  std::string bytes = length + raw(masked_crc(length));
  bytes.append(event).append(raw(masked_crc(event)));
  file_.append(bytes);
}

}  // namespace stretto
