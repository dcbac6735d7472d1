// RUN.toml -> RunConfig, with every mistake in it.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/config/keys.h"
#include "stretto/formats/hf_directory.h"
#include "stretto/models/family.h"
#include "stretto/models/hf.h"

namespace stretto {
namespace {

// Reads keys into a section and remembers whether all of them were right.
class Reading {
 public:
  explicit Reading(FieldReader& reader) : reader_(reader) {}
  template <class T, class... R>
  void operator()(std::string_view key, T& value, R... range) {
    const bool there = reader_.has(key);
    right_ = (reader_.read(key, value, range...) || !there) && right_;
  }
  template <class T>
  void operator()(std::string_view key, T& value, const Choices<T>& choices) {
    std::vector<std::string> known;
    for (const auto& c : choices) known.emplace_back(c.first);
    const bool there = reader_.has(key);
    const auto chosen = reader_.choose_index(key, known);
    if (chosen) value = choices[*chosen].second;
    right_ = (chosen || !there) && right_;
  }
  bool right() const { return right_; }

 private:
  FieldReader& reader_;
  bool right_ = true;
};

constexpr std::size_t kMostParts = 1000;  // of a mixture

// For the order of a file; what has no line comes last.
int line_of(const Fault& f) {
  const std::size_t colon = f.where.rfind(':');
  int line = 0;
  if (colon != f.where.npos) std::from_chars(f.where.data() + colon + 1, f.where.data() + f.where.size(), line);
  return line > 0 ? line : std::numeric_limits<int>::max();
}

class RunReader {
 public:
  RunReader(const Field& root, std::string name) : root_(root) { run_.log.name = std::move(name); }

  RunConfig read() {
    read_model();
    read_data();
    read_train();
    read_optimizer();
    read_parallel_section();
    FieldReader checkpoint = root_.section("checkpoint");
    keys_of(run_.checkpoint, Reading(checkpoint));
    check_export(checkpoint);
    FieldReader log = root_.section("log");
    keys_of(run_.log, Reading(log));
    if (run_.log.name.empty() || run_.log.name.find('/') != std::string::npos)
      log.fail("name", "must be a plain name, without '/'");
    read_timeline(log);
    note_origins();
    std::vector<Fault> faults = root_.faults();
    faults.insert(faults.end(), faults_.begin(), faults_.end());
    std::stable_sort(faults.begin(), faults.end(),
                     [](const Fault& a, const Fault& b) { return line_of(a) < line_of(b); });
    refuse(std::move(faults));
    return run_;
  }

 private:
  void fault(FieldReader& section, std::string_view key, std::string what, std::string hint) {
    faults_.push_back({section.where(key), fmt::format("key '{}.{}': {}", section.path(), key, what), std::move(hint)});
  }

  // A mistake that a function of the library found, at the place of the key
  // that led to it.
  void fault(FieldReader& section, std::string_view key, const Error& e) {
    for (const Fault& f : e.faults()) fault(section, key, f.what, f.hint);
  }

  // What `preset`, `config` or `from` says; the other keys are read over it.
  void read_base(FieldReader& section, ModelConfig& config) {
    std::vector<std::string> given;
    for (const std::string_view key : {"preset", "config", "from"}) {
      std::string value;
      if (!section.read(key, value)) continue;
      given.push_back(fmt::format("'{}'", key));
      if (given.size() > 1) continue;
      try {
        if (key == "preset")
          config = preset(value);
        else
          config = read_hf_config(value).config;
        if (key == "from") run_.model.from = value;
      } catch (const Error& e) {
        const bool missing = key != "preset" && !is_there(value);
        for (const Fault& f : e.faults())  // of a file the place in it, too
          fault(section, key, key == "preset" ? f.what : fmt::format("{}: {}", f.where, f.what),
                missing ? "name a Hugging Face directory, or its config.json" : f.hint);
        right_ = false;
      }
    }
    if (given.size() > 1)
      fault(section, "preset", fmt::format("{} are given together", join(given, " and ")), "give one of them");
  }

  void read_model() {
    FieldReader section = root_.section("model");
    ModelConfig c;
    read_base(section, c);
    const ModelConfig base = c;
    Reading reading(section);
    keys_of(c, reading);
    FieldReader rope = section.section("rope_scaling");
    Reading rope_reading(rope);
    keys_of(c.rope_scaling, rope_reading);
    if (!right_ || !reading.right() || !rope_reading.right()) return;
    try {
      c = complete(c);
    } catch (const Error& e) {
      return fault(section, "family", e);
    }
    const std::vector<Fault> wrong = validate(c);
    for (const Fault& f : wrong) fault(section, f.where.substr(f.where.find('.') + 1), f.what, f.hint);
    if (wrong.empty() && !run_.model.from.empty()) same_weights(section, base, c);
    run_.model.config = c;
    right_model_ = wrong.empty();
  }

  void same_weights(FieldReader& section, const ModelConfig& stored, const ModelConfig& asked) {
    const auto shapes = [](const ModelConfig& c) {
      std::vector<std::pair<std::string, std::vector<i64>>> all;
      for (const ParamSpec& p : family_named(c.family).params(c)) all.emplace_back(p.name, p.sizes);
      return all;
    };
    if (shapes(stored) != shapes(asked))
      fault(section, "from",
            fmt::format("the weights are those of {}, and other keys make it {}", stored.str(), asked.str()),
            "leave those keys out, or train from scratch with 'config'");
  }

  void read_data() {
    FieldReader section = root_.section("data");
    DataSection& s = run_.data;
    if (const auto own = std::filesystem::path(run_.model.from) / "tokenizer.json";
        !run_.model.from.empty() && is_there(own))
      s.tokenizer = own.string();
    keys_of(s, Reading(section));
    if (section.read("path", s.path) && s.path.empty()) section.fail("path", "names no files");
    read_mixture(section);
    if (s.documents && right_ && !family_named(run_.model.config.family).attends)
      section.fail_hint("documents", fmt::format("the family '{}' has no attention", run_.model.config.family),
                        "leave it out");
    const Field* validation = section.raw("validation");
    if (validation && (validation->array() || std::holds_alternative<std::string>(validation->value)))
      section.read("validation", s.validation_path);
    else if (section.read("validation", s.validation, at_least(0)) && s.validation >= 1)
      section.fail_hint("validation", "must be below 1", "give the part of the data, e.g. 0.05, or a file");
  }

  // Before hours of training, not after.
  void check_export(FieldReader& section) {
    if (run_.checkpoint.export_to.empty() || !right_) return;
    try {
      hf_config(run_.model.config, FileType::F32);
      check_hf_target(run_.checkpoint.export_to);
    } catch (const Error& e) {
      return fault(section, "export", e);
    }
    std::error_code absent;
    if (std::filesystem::equivalent(run_.checkpoint.export_to, run_.model.from, absent))
      section.fail_hint("export", "model.from reads its weights there, and they would be lost",
                        "name another directory");
  }

  void read_mixture(FieldReader& section) {
    std::vector<MixturePart>& mixture = run_.data.mixture;
    for (FieldReader& part : section.sections("mixture")) {
      MixturePart& p = mixture.emplace_back();
      part.need("path");
      if (part.read("path", p.path) && p.path.empty()) part.fail("path", "names no files");
      part.read("weight", p.weight, Range{.least = 0, .most = 1e12, .open_least = true});
    }
    const Field* given = section.raw("mixture");
    if (!given || !given->array()) return;
    if (section.has("path"))
      fault(section, "mixture", "'path' is given too", "give one of them");
    else if (mixture.empty() || mixture.size() > kMostParts)
      section.fail_hint("mixture", fmt::format("must have from 1 to {} parts", kMostParts),
                        "e.g. [{path = \"books.bin\", weight = 0.7}, {path = \"code.bin\", weight = 0.3}]");
    run_.data.path.clear();
  }

  void read_train() {
    FieldReader section = root_.section("train");
    Reading reading(section);
    TrainSection& s = run_.train;
    keys_of(s, reading);
    right_counts_ = reading.right();
    if (reading.right() && s.batch % s.microbatches != 0)
      fault(section, section.has("microbatches") ? "microbatches" : "batch",
            fmt::format("{} sequences per step cannot be cut into {} equal microbatches", s.batch, s.microbatches),
            fmt::format("use a batch of {}, or train.microbatches = {}",
                        (s.batch + s.microbatches - 1) / s.microbatches * s.microbatches,
                        near_divisors(s.batch, s.microbatches)));
    if (reading.right() && !s.exact && s.leaf != TrainSection().leaf)
      section.fail_hint("leaf", "is of exact training only", "add train.exact = true, or leave it out");
  }

  // "2 or 4": those next to n that divide `all`.
  static std::string near_divisors(i64 all, i64 n) {
    i64 below = std::min(all, n), above = n;
    while (all % below != 0) --below;
    while (above <= all && all % above != 0) ++above;
    return above <= all ? fmt::format("{} or {}", below, above) : fmt::format("{}", below);
  }

  void read_optimizer() {
    FieldReader section = root_.section("optimizer");
    OptimizerSection& s = run_.optimizer;
    Reading first(section);
    std::vector<std::string_view> asked;
    OptimizerSection probe = s;
    keys_of(probe, [&](std::string_view key, auto& value, const auto&... limits) {
      if (key == "name" || key == "schedule") first(key, value, limits...);
    });
    if (probe.name == "lion") s.lr = Lion().lr, s.betas = {Lion().beta1, Lion().beta2}, s.decay = Lion().decay;
    if (probe.name == "sgd") s.lr = Sgd().lr, s.momentum = Sgd().momentum, s.decay = Sgd().decay;
    s.name = probe.name;
    s.schedule = probe.schedule;
    Reading rest(section);
    keys_of(s, [&](std::string_view key, auto& value, const auto&... limits) {
      asked.push_back(key);
      if (key != "name" && key != "schedule") rest(key, value, limits...);
    });
    for (const std::string_view key : {"betas", "eps", "momentum", "nesterov", "floor", "stable"}) {
      if (std::find(asked.begin(), asked.end(), key) != asked.end() || !section.raw(key) || !first.right()) continue;
      const bool of_schedule = key == "floor" || key == "stable";
      section.fail_hint(key,
                        fmt::format("{} '{}' has no {}", of_schedule ? "schedule" : "optimizer",
                                    of_schedule ? s.schedule : s.name, key),
                        "leave it out");
    }
    if (rest.right() && s.name != "sgd" && (s.betas.size() != 2 || s.betas[0] >= 1 || s.betas[1] >= 1))
      section.fail_hint("betas", "must be two numbers from 0 up to, not including, 1", "e.g. [0.9, 0.95]");
    if (rest.right() && s.nesterov && s.momentum == 0)
      section.fail_hint("nesterov", "momentum is 0", "give optimizer.momentum, e.g. 0.9");
  }

  void read_parallel_section() {
    FieldReader section = root_.section("parallel");
    const bool right = read_parallel(section, run_.parallel);
    if (const int n = run_.parallel.names.expert; n > 1 && right_model_ && run_.model.config.experts == 0)
      section.fail_hint("expert", fmt::format("family '{}' has no experts", run_.model.config.family),
                        fmt::format("use parallel.data = {}, or family 'mixtral'", n));
    if (!right || !right_counts_) return;
    for (const Fault& f : schedule_faults(run_.parallel, run_.train.microbatches)) {
      // A builder's name in front of a fault says nothing new; a file, or a place in it, does.
      const bool plain =
          f.where == "schedule" || (f.where == run_.parallel.schedule && !names_a_file(run_.parallel.schedule));
      fault(section, section.has("schedule") ? "schedule" : "pipe",
            plain ? f.what : fmt::format("{}: {}", f.where, f.what), f.hint);
    }
  }

  void read_timeline(FieldReader& log) {
    const Field* field = log.raw("timeline");
    if (!field) return;
    const auto* text = std::get_if<std::string>(&field->value);
    const auto* off = std::get_if<bool>(&field->value);
    i64 step = 0;
    if (text && *text == "last")
      run_.log.timeline = -1;
    else if (text || (off && *off))
      log.fail_hint("timeline", "must be the number of a step, \"last\", or 0 for none", "");
    else if (!off && log.read("timeline", step, at_least(0)))
      run_.log.timeline = step;
    if (step > run_.train.steps)
      fault(log, "timeline", fmt::format("step {} is never done: train.steps is {}", step, run_.train.steps),
            "\"last\" is the last one, whichever it is");
  }

  void note_origins() {
    for (const Member& section : *root_.field().table()) note_origins(section.key, section.value);
  }
  void note_origins(const std::string& path, const Field& field) {
    run_.origins.emplace(path, field.source.str());
    if (!field.table()) return;
    for (const Member& m : *field.table()) note_origins(fmt::format("{}.{}", path, m.key), m.value);
  }

  FieldReader root_;
  RunConfig run_;
  std::vector<Fault> faults_;
  bool right_ = true;         // so far, in the model's base
  bool right_model_ = false;  // all of its keys
  bool right_counts_ = true;  // of sequences and microbatches
};

RunConfig read_fields(Field root, const std::string& name, const std::vector<std::string>& overrides) {
  for (const std::string& o : overrides) override_field(root, o);
  return RunReader(root, name).read();
}

std::string name_of_file(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return stem.empty() ? "run" : stem;
}

}  // namespace

RunConfig read_run(const std::string& file, const std::vector<std::string>& overrides) {
  if (file.empty()) return read_fields(Field(Field::Table{}), "run", overrides);
  return read_fields(read_toml_file(file), name_of_file(file), overrides);
}

RunConfig parse_run(std::string_view toml, const std::string& file, const std::vector<std::string>& overrides) {
  return read_fields(read_toml(toml, file), name_of_file(file), overrides);
}

}  // namespace stretto
