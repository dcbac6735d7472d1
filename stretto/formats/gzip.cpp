#include "stretto/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <new>

#include "stretto/base/error.h"
#include "stretto/formats/mapped_file.h"

namespace stretto {
namespace {

constexpr std::size_t gzip_block = 256 << 10;
constexpr std::size_t most_input = 1 << 30;  // zlib counts in 32 bits

}  // namespace

bool looks_like_gzip(std::string_view content) { return content.starts_with("\x1f\x8b"); }

struct GzipReader::State {
  MappedFile file;
  std::string_view bytes;
  std::filesystem::path name;
  std::size_t at = 0;   // everything before is done
  bool inside = false;  // of a member
  z_stream stream = {};

  State() {
    if (inflateInit2(&stream, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~State() { inflateEnd(&stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void check_head() const {
    if (!looks_like_gzip(bytes))
      throw Error(name.string(), "is named like a gzip file and is none")
          .hint("{}", bytes.empty() ? "it is empty" : "if it is not compressed, name it without .gz");
  }
};

GzipReader::GzipReader(const std::filesystem::path& file) : state_(std::make_unique<State>()) {
  state_->file = MappedFile(file);
  state_->bytes = state_->file.text();
  state_->name = file;
  state_->check_head();
}

GzipReader::GzipReader(std::string_view bytes, const std::filesystem::path& name) : state_(std::make_unique<State>()) {
  state_->bytes = bytes;
  state_->name = name;
  state_->check_head();
}

GzipReader::~GzipReader() = default;
GzipReader::GzipReader(GzipReader&&) noexcept = default;

std::size_t GzipReader::done() const { return state_->at; }

bool GzipReader::read(std::string& to) {
  State& s = *state_;
  const std::size_t before = to.size();
  to.resize(before + gzip_block);
  s.stream.next_out = reinterpret_cast<Bytef*>(to.data() + before);
  s.stream.avail_out = gzip_block;
  while (s.stream.avail_out > 0 && s.at < s.bytes.size()) {
    // Between members only zeros, which some programs pad files with, or another member.
    if (!s.inside && s.bytes.substr(s.at).find_first_not_of('\0') == std::string_view::npos) s.at = s.bytes.size();
    if (s.at == s.bytes.size()) break;
    const std::size_t given = std::min(most_input, s.bytes.size() - s.at);
    s.stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(s.bytes.data() + s.at));
    s.stream.avail_in = given;
    s.inside = true;
    const int status = inflate(&s.stream, Z_NO_FLUSH);
    s.at += given - s.stream.avail_in;
    if (status == Z_STREAM_END) {
      s.inside = false;
      inflateReset(&s.stream);
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw Error(s.name.string(), "is damaged near byte {} of {}: {}", s.at, s.bytes.size(),
                  s.stream.msg ? s.stream.msg : "no gzip data")
          .hint("fetch it again; 'gzip -t' checks it");
    }
  }
  to.resize(to.size() - s.stream.avail_out);
  if (to.size() > before) return true;
  if (s.inside)
    throw Error(s.name.string(), "ends in the middle of its compressed data, after {} bytes", s.bytes.size())
        .hint("the file is cut off: fetch it again; 'gzip -t' checks it");
  return false;
}

}  // namespace stretto
