#include "stretto/data/token_source.h"

#include <glob.h>

#include <algorithm>

#include "stretto/base/error.h"

namespace stretto {
namespace {

bool is_pattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

std::vector<std::filesystem::path> matches(const std::string& pattern) {
  glob_t found{};
  const int status = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::filesystem::path> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (status == GLOB_NOSPACE) throw std::bad_alloc();
  std::erase_if(paths, [](const auto& p) { return std::filesystem::is_directory(p); });
  std::sort(paths.begin(), paths.end());
  return paths;
}

class Part : public TokenSource {
 public:
  Part(std::shared_ptr<const TokenSource> whole, i64 first, i64 tokens)
      : whole_(std::move(whole)), first_(first), tokens_(tokens) {
    STRETTO_ASSERT(first >= 0 && tokens >= 0 && first + tokens <= whole_->tokens(), "part of a token source");
  }
  i64 tokens() const override { return tokens_; }
  i64 vocab() const override { return whole_->vocab(); }
  void read(i64 first, std::span<std::int32_t> to) const override {
    STRETTO_ASSERT(first >= 0 && first + i64(to.size()) <= tokens_, "outside of a part of a token source");
    whole_->read(first_ + first, to);
  }
  std::string str() const override {
    return fmt::format("tokens {} to {} of {}", first_, first_ + tokens_, whole_->str());
  }

 private:
  std::shared_ptr<const TokenSource> whole_;
  i64 first_, tokens_;
};

}  // namespace

std::vector<std::filesystem::path> find_files(const std::vector<std::string>& names) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : names) {
    std::error_code ignored;
    const auto status = std::filesystem::status(name, ignored);
    if (std::filesystem::is_directory(status))
      throw Error("data", "'{}' is a directory", name)
          .hint("name its files: '{}'", (std::filesystem::path(name) / "*").string());
    if (!std::filesystem::exists(status) && is_pattern(name)) {
      const auto found = matches(name);
      if (found.empty())
        throw Error("data", "no file matches '{}' in {}", name, std::filesystem::current_path().string());
      files.insert(files.end(), found.begin(), found.end());
    } else if (!std::filesystem::exists(status)) {
      throw Error("data", "there is no file '{}'", name)
          .hint("names are relative to the current directory, {}", std::filesystem::current_path().string());
    } else {
      files.emplace_back(name);
    }
  }
  if (files.empty()) throw Error("data", "no files are named");
  return files;
}

std::shared_ptr<const TokenSource> part_of(std::shared_ptr<const TokenSource> whole, i64 first, i64 tokens) {
  return std::make_shared<Part>(std::move(whole), first, tokens);
}

}  // namespace stretto
