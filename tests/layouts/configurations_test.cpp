// Any configuration that is not refused trains to the serial run's numbers, in every bit where that is promised; and
// everything but layout, storage and training changes no bit of what a layout gives, whoever has done the step before.
//
//   STRETTO_CONFIGURATIONS=17-20 build/tests/test_layouts --gtest_filter='Configurations.*'
#include "layouts/configurations.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>

#include "stretto/config/describe.h"
#include "stretto/config/run.h"
#include "stretto/run/prepare.h"
#include "stretto/run/verify.h"
#include "stretto/train/snapshot.h"
#include "support/files.h"
#include "support/in_processes.h"

namespace stretto {
namespace {

const std::string examples = STRETTO_SOURCE "/examples";
constexpr i64 steps = 2;

std::string command_of(const Settings& settings) {
  std::string text = fmt::format("stretto verify --steps={}", steps);
  for (const std::string& s : settings) text += s.find_first_of("[*\"") == s.npos ? " " + s : fmt::format(" '{}'", s);
  return text;
}

// The same layout, storage and training: one actor, everything kept, every wait in its place.
Settings plain(const Settings& all) {
  Settings left;
  for (const std::string& s : all) {
    const auto is = [&](std::string_view key) { return s.starts_with(fmt::format("--{}=", key)); };
    const bool schedules = is("parallel.pipe") || is("parallel.schedule") || is("parallel.chunks") ||
                           is("parallel.stages") || is("parallel.recompute") || is("parallel.overlap") ||
                           is("parallel.reshard") || is("parallel.device") || is("parallel.expert_room") ||
                           is("parallel.regather") || is("parallel.threads") || is("train.clip_late");
    if (!schedules) left.push_back(s);
  }
  left.emplace_back("--parallel.overlap=none");
  left.emplace_back("--parallel.expert_room=8");
  return left;
}

// Schedules add gradients in the order of microbatches, and products are whole.
bool keeps_bits(const RunConfig& c) {
  const auto is = [&](const BuilderEntry& b) { return b.name == c.parallel.schedule; };
  const auto builder = std::ranges::find_if(schedule_builders(), is);
  return builder != schedule_builders().end() && builder->ascending && c.parallel.overlap != Overlap::chunks;
}

// How far sums that are taken in another order may be apart. An expert that is chosen for the sake of a last bit has
// another gradient; in f64 that does not happen.
struct Limits {
  double loss = 1e-9, gradient = 1e-9;
};
Limits limits_of(const RunConfig& c) {
  if (c.train.dtype == f64) return {};
  const bool coarse = c.train.dtype == bf16 || c.parallel.reduce == bf16;
  if (c.model.config.experts > 0) return {0.02, INFINITY};
  return coarse ? Limits{0.02, 0.3} : Limits{1e-4, 1e-4};
}

struct Outcome {
  std::string refused = {};  // how; "": it is not
  std::string wrong = {};    // "": nothing is
};

std::string wrong_refusal(const Error& e) {
  if (e.kind() != Error::Kind::input) return fmt::format("is no refusal: {}", e.what());
  for (const Fault& f : e.faults())
    if (f.hint.empty()) return fmt::format("is refused without a hint: {}", e.what());
  return "";
}

std::string wrong_numbers(const RunConfig& c, const Verification& v) {
  if (v.tolerance == 0) return v.first ? v.first->str() : "";
  const Limits limits = limits_of(c);
  for (const VerifiedStep& s : v.steps) {
    if (!std::isfinite(s.serial_loss)) return fmt::format("step {}: the serial loss is {}", s.step, s.serial_loss);
    if (!(std::abs(s.loss - s.serial_loss) <= limits.loss * std::abs(s.serial_loss)))
      return fmt::format("step {}: the loss is {} and serially {}", s.step, s.loss, s.serial_loss);
  }
  const Worst& worst = v.steps.front().gradient;
  if (worst.difference <= limits.gradient) return "";
  return fmt::format("the gradient of {} differs by {}", worst.name, worst.difference);
}

// The hash of the parameters after step `last`, from the folder's checkpoint on if there is one; at the end there is.
u64 trained(const RunConfig& config, i64 last, const std::string& folder) {
  Prepared p = prepare(config);
  const TrainingRows rows(p.corpus, p.rows);
  Trainer t(std::move(p.compiled), options_of(config.parallel));
  if (!load(t, folder)) load_weights(config, t);
  while (t.steps_done() < last) t.step(batch_of(p.rows, rows.at(t.steps_done() + 1)));
  save(t, folder);
  return t.parameters_hash();
}

std::string wrong_run(const RunConfig& config, const Settings& settings) {
  u64 bits = 0;
  const Verification v = verify(config, {.steps = steps, .plant = [&](Trainer& t, i64 step) {
                                           if (step == steps) bits = t.parameters_hash();
                                         }});
  if (const std::string wrong = wrong_numbers(config, v); !wrong.empty()) return wrong;
  if (!keeps_bits(config)) return "";
  const Settings same = plain(settings);
  const test::Folder folder;
  try {
    const RunConfig other = read_run("", same);
    trained(other, steps - 1, folder.str());
    if (trained(config, steps, folder.str()) != bits)
      return fmt::format("the bits are others when it goes on after step {} of {}", steps - 1, command_of(same));
    if (trained(other, steps, (folder / "whole").string()) == bits) return "";
    return fmt::format("the bits are not those of {}", command_of(same));
  } catch (const Error& e) {
    return fmt::format("trains, and {} does not: {}", command_of(same), e.what());
  }
}

Outcome outcome_of(const Settings& settings) {
  try {
    return {.wrong = wrong_run(read_run("", settings), settings)};
  } catch (const Error& e) {
    const std::string wrong = wrong_refusal(e);
    return wrong.empty() ? Outcome{.refused = e.what()} : Outcome{.wrong = wrong};
  } catch (const std::exception& e) {
    return {.wrong = e.what()};
  }
}

// What is wrong with fewer settings, too, is easier to find.
Settings fewest(Settings settings) {
  for (std::size_t i = 0; i < settings.size();) {
    Settings fewer = settings;
    fewer.erase(fewer.begin() + std::ptrdiff_t(i));
    const Outcome o = outcome_of(fewer);
    if (!o.wrong.empty())
      settings = std::move(fewer);
    else
      ++i;
  }
  return settings;
}

// A signal ends the program with the configuration that it came from.
std::string under_way;
void tell(int signal) {
  (void)!::write(2, under_way.data(), under_way.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Keys that change no program, or name files; and muon's, whose layouts tests/optim tries. All others must be tried.
constexpr std::string_view not_tried[] = {"data.path",         "data.mixture",
                                          "data.format",       "data.tokenizer",
                                          "data.field",        "data.template",
                                          "data.date",         "data.hash",
                                          "data.validation",   "model.preset",
                                          "model.config",      "model.from",
                                          "model.graph",       "model.hf_as",
                                          "model.hf_type",     "train.validate",
                                          "train.patience",    "train.validate_batches",
                                          "parallel.timeout",  "parallel.start_timeout",
                                          "parallel.times",    "finetune.adapter",
                                          "optimizer.scale",   "optimizer.newton_schulz",
                                          "optimizer.numbers", "optimizer.others_lr"};

TEST(Configurations, TryEveryKeyThatChangesTheProgram) {
  std::set<std::string> tried;
  for (int n = 1; n <= 1000; ++n)
    for (const std::string& setting : configuration(n, examples))
      tried.insert(setting.substr(2, setting.find('=') - 2));
  const auto is_tried = [&](const std::string& key) {
    const auto at = tried.lower_bound(key);  // of a table: any of its keys
    return at != tried.end() && (*at == key || at->starts_with(key + "."));
  };
  for (const KeyInfo& key : all_keys()) {
    const std::string section = key.name.substr(0, key.name.find('.'));
    if (section == "plan" || section == "log" || section == "checkpoint") continue;
    if (key.name.starts_with("parallel.machine.")) continue;  // of devices that compute nothing
    const bool left_out = std::ranges::find(not_tried, key.name) != std::end(not_tried);
    EXPECT_NE(is_tried(key.name) && key.name != "data.path", left_out) << key.name;
  }
}

// What random ones have found: a product that is written into a larger value, or by itself where it is made again.
TEST(Configurations, ThatWereWrongOnce) {
  if (test::in_processes()) GTEST_SKIP() << "ranks are threads here";
  Settings latent{"--data.path=" + examples + "/data/tales.txt", "--train.batch=2", "--parallel.recompute=selective"};
  for (const char* s : {"family=llama", "layers=2", "width=16", "heads=4", "context=8", "attention_dropout=0.2",
                        "kv_rank=8", "value_dim=4", "rope_dim=2"})
    latent.push_back(std::string("--model.") + s);
  const Outcome o = outcome_of(latent);
  EXPECT_EQ(o.refused + o.wrong, "");
}

TEST(Configurations, TrainToTheSerialNumbers) {
  if (test::in_processes()) GTEST_SKIP() << "ranks are threads here";
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) std::signal(signal, tell);
  const char* asked = std::getenv("STRETTO_CONFIGURATIONS");
  int first = 1, last = std::getenv("STRETTO_LONG") ? 1000 : 50;
  if (asked && std::sscanf(asked, "%d-%d", &first, &last) < 2) last = first;
  int refused = 0;
  for (int n = first; n <= last; ++n) {
    const Settings settings = configuration(n, examples);
    under_way = fmt::format("configuration {}: {}\n", n, command_of(settings));
    const Outcome o = outcome_of(settings);
    refused += !o.refused.empty();
    if (asked && !o.refused.empty()) fmt::print("{}: {}\n", n, o.refused);
    if (o.wrong.empty()) continue;
    ADD_FAILURE() << "configuration " << n << " " << o.wrong << "\n" << command_of(fewest(settings));
  }
  const int all = last - first + 1;
  fmt::print("{} configurations, {} of them refused\n", all, refused);
  if (all >= 50) {
    EXPECT_LT(refused, all / 3);
  }
}

}  // namespace
}  // namespace stretto
