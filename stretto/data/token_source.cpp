#include "stretto/data/token_source.h"

#include <glob.h>

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/files.h"

namespace stretto {
namespace {

bool is_pattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

std::vector<std::filesystem::path> matches(const std::string& pattern) {
  glob_t found{};
  const int status = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::filesystem::path> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (status == GLOB_NOSPACE) throw std::bad_alloc();
  std::erase_if(paths, [](const auto& p) { return is_folder(p); });
  std::sort(paths.begin(), paths.end());
  return paths;
}

class Excerpt : public TokenSource {
 public:
  Excerpt(std::shared_ptr<const TokenSource> whole, i64 first, i64 tokens)
      : whole_(std::move(whole)), first_(first), tokens_(tokens) {
    STRETTO_ASSERT(first >= 0 && tokens >= 0 && first + tokens <= whole_->tokens(), "part of a token source");
  }
  i64 tokens() const override { return tokens_; }
  i64 vocab() const override { return whole_->vocab(); }
  void read(i64 first, std::span<std::int32_t> to) const override {
    STRETTO_ASSERT(first >= 0 && first + std::ssize(to) <= tokens_, "outside of a part of a token source");
    whole_->read(first_ + first, to);
  }
  void targets(i64 first, std::span<std::int32_t> to) const override { whole_->targets(first_ + first, to); }
  bool in_rows() const override { return whole_->in_rows(); }
  std::vector<i64> documents(i64 first, i64 end) const override {
    std::vector<i64> starts = whole_->documents(first_ + first, first_ + end);
    for (i64& s : starts) s -= first_;
    return starts;
  }
  std::string str() const override {
    return fmt::format("tokens {} to {} of {}", first_, first_ + tokens_, whole_->str());
  }

 private:
  std::shared_ptr<const TokenSource> whole_;
  i64 first_, tokens_;
};

class Joined : public TokenSource {
 public:
  explicit Joined(std::vector<std::shared_ptr<const TokenSource>> sources) : sources_(std::move(sources)) {
    STRETTO_ASSERT(!sources_.empty(), "no sources to join");
    for (const auto& s : sources_) ends_.push_back(tokens() + s->tokens());
  }
  i64 tokens() const override { return ends_.empty() ? 0 : ends_.back(); }
  i64 vocab() const override {
    i64 most = 0;
    for (const auto& s : sources_) most = std::max(most, s->vocab());
    return most;
  }
  void read(i64 first, std::span<std::int32_t> to) const override {
    each(first, to, [](const TokenSource& s, i64 at, std::span<std::int32_t> part) { s.read(at, part); });
  }
  void targets(i64 first, std::span<std::int32_t> to) const override {
    each(first, to, [](const TokenSource& s, i64 at, std::span<std::int32_t> part) { s.targets(at, part); });
  }
  bool in_rows() const override {
    return std::all_of(sources_.begin(), sources_.end(), [](const auto& s) { return s->in_rows(); });
  }
  std::vector<i64> documents(i64 first, i64 end) const override {
    std::vector<i64> starts;
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      const i64 begin = k == 0 ? 0 : ends_[k - 1];
      if (begin >= end || ends_[k] <= first) continue;
      if (begin > first) starts.push_back(begin);
      for (const i64 s : sources_[k]->documents(std::max<i64>(first - begin, 0), std::min(end, ends_[k]) - begin))
        starts.push_back(begin + s);
    }
    return starts;
  }
  std::string str() const override {
    return sources_.size() == 1 ? sources_[0]->str()
                                : fmt::format("{} sources from {} on", sources_.size(), sources_[0]->str());
  }

 private:
  template <class Use>
  void each(i64 first, std::span<std::int32_t> to, Use use) const {
    STRETTO_ASSERT(first >= 0 && first + std::ssize(to) <= tokens(), "outside of the joined sources");
    std::size_t source = std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin();
    i64 at = first - (source == 0 ? 0 : ends_[source - 1]);
    for (; !to.empty(); ++source, at = 0) {
      const std::size_t n = std::min<i64>(sources_[source]->tokens() - at, to.size());
      use(*sources_[source], at, to.first(n));
      to = to.subspan(n);
    }
  }
  std::vector<std::shared_ptr<const TokenSource>> sources_;
  std::vector<i64> ends_;  // of each source, in tokens from the start of the first
};

}  // namespace

std::vector<std::filesystem::path> find_files(const std::vector<std::string>& names,
                                              const std::filesystem::path& beside) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : names) {
    const bool there = is_there(name);
    if (there && is_folder(name))
      throw Error("data", "'{}' is a directory", name)
          .hint("name its files: '{}'", (std::filesystem::path(name) / "*").string());
    if (!there && is_pattern(name)) {
      const auto found = matches(name);
      if (found.empty())
        throw Error("data", "no file matches '{}'", name).hint("{}", where_names_are(beside));
      files.insert(files.end(), found.begin(), found.end());
    } else if (!there && is_there(name + ".idx")) {
      files.emplace_back(name + ".bin");  // Megatron names a set without the extensions
    } else if (!there) {
      throw Error("data", "there is no file '{}'", name).hint("{}", where_names_are(beside));
    } else {
      files.emplace_back(name);
    }
  }
  if (files.empty()) throw Error("data", "no files are named").hint("data.path = \"FILE\", a glob or a list of them");
  return files;
}

std::shared_ptr<const TokenSource> joined(std::vector<std::shared_ptr<const TokenSource>> sources) {
  return std::make_shared<Joined>(std::move(sources));
}

std::shared_ptr<const TokenSource> part_of(std::shared_ptr<const TokenSource> whole, i64 first, i64 tokens) {
  return std::make_shared<Excerpt>(std::move(whole), first, tokens);
}

}  // namespace stretto
