// `stretto check`: everything that can be known about a run or a schedule without running it. All faults, or a summary.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "commands.h"
#include "run_file.h"
#include "schedule_options.h"
#include "stretto/base/error.h"
#include "stretto/exports/torch_schedule.h"
#include "stretto/run/loop.h"
#include "stretto/schedule/choice.h"
#include "stretto/schedule/prove.h"
#include "usage.h"

namespace stretto::app {
namespace {

struct CheckOptions {
  RunFile run;
  std::string schedule;  // name or file
  Request request{.actors = 0, .microbatches = 0};
  ChoiceOptions choice;
  ProofOptions proof;
  std::optional<int> capacity = {};
  std::string reader;  // torch
};

void print_summary(const CheckOptions& o, const CheckedSchedule& c, const Proof& p) {
  const Schedule& s = c.schedule;
  std::string peak;
  for (const double x : c.validation.peak) peak += fmt::format("{}{:g}", peak.empty() ? "" : " ", x);
  std::uint64_t messages = 0;
  for (const Channel& ch : p.channels) messages += ch.messages;
  const int held = p.occupancy.empty() ? 0 : *std::max_element(p.occupancy.begin(), p.occupancy.end());
  fmt::print("ok: {}\n", s.name.empty() ? o.schedule : s.name);
  fmt::print("actors              {}\n", s.actors());
  fmt::print("stages              {}{}\n", s.stages, s.pipes() > 1 ? " in each of two pipes" : "");
  fmt::print("microbatches        {}{}\n", s.microbatches,
             s.segments > 1 ? fmt::format(" of {} segments", s.segments) : "");
  fmt::print("actions             {}\n", s.actions());
  fmt::print("messages            {} in {} channels, at most {} held in one\n", messages, p.channels.size(), held);
  if (p.smallest) fmt::print("smallest capacity   {}\n", *p.smallest);
  if (o.capacity) fmt::print("deadlock-free at    capacity {}\n", *o.capacity);
  fmt::print("peak activations    {} (full stages, per actor)\n", peak);
  if (!o.reader.empty())
    fmt::print("{:20}takes it: its rows say all, each stage is on one rank, and nothing waits in a circle\n",
               torch_version);
  for (const Finding& n : c.validation.notes) fmt::print("note: {}\n", n.fault.str());
}

void check(const CheckOptions& o) {
  CheckedSchedule c = check_schedule(o.schedule, o.request, o.choice);
  Proof proof;
  if (c.validation.ok()) {
    ProofOptions options = o.proof;
    if (o.capacity) options.capacity = *o.capacity;
    proof = prove(c.schedule, options);
    c.validation.faults = proof.faults;
  }
  if (c.validation.ok()) {
    if (!o.reader.empty()) refuse(refused_by_torch(c.schedule));
    return print_summary(o, c, proof);
  }
  fmt::print(stderr, "{}", marked_rows(c.schedule, c.validation));
  refuse(c.validation.all_faults());
}

}  // namespace

void add_check(CLI::App& app) {
  const auto o = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand("check", "find everything that is wrong with a run or a schedule");
  o->run.declare(*command);
  command->add_option("--schedule", o->schedule, "a schedule's name, or a CSV file in PyTorch's notation")
      ->type_name("NAME|FILE.csv");
  const OptionGroup group(*command, of_schedule);
  declare_request(*command, o->request);
  command->add_option("--capacity", o->capacity, "messages a channel holds; 0: a send waits for its receive")
      ->type_name("C")
      ->check(whole_number(0));
  declare_file_options(*command, o->choice);
  declare_reader(*command, o->reader);
  command->add_flag_callback(
      "--fifo-per-pair", [o] { o->proof.matching = Matching::pair; },
      "for a transport with one first-in-first-out queue per pair of actors");
  command->add_flag_callback(
      "--tagged", [o] { o->proof.matching = Matching::tagged; }, "for a transport that matches messages by name");
  command->callback([o, command] {
    const bool run = o->run.given(*command);
    if (run && o->schedule.empty()) {
      refuse_beside_run(*command, {of_schedule});
      fmt::print("{}", check_run(o->run.read(*command)));
      return;
    }
    if (run || o->schedule.empty()) {
      throw Error("check", "{}",
                  o->schedule.empty() ? "there is nothing to check" : "a run and a schedule are given together")
          .hint("give RUN.toml, --schedule NAME or --schedule FILE.csv")
          .as(Error::Kind::usage);
    }
    check(*o);
  });
}

}  // namespace stretto::app
