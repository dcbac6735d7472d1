#include "stretto/run/loop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "stretto/base/files.h"
#include "stretto/base/text.h"
#include "stretto/base/threads.h"
#include "stretto/comm/world.h"
#include "stretto/formats/atomic_file.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/models/hf.h"
#include "stretto/run/current.h"
#include "stretto/run/inner/agree.h"
#include "stretto/run/inner/busy.h"
#include "stretto/run/inner/conversations.h"
#include "stretto/run/inner/finished.h"
#include "stretto/run/inner/journal.h"
#include "stretto/run/inner/progress.h"
#include "stretto/run/inner/run_directory.h"
#include "stretto/run/inner/same_data.h"
#include "stretto/run/inner/saving.h"
#include "stretto/run/inner/steps.h"
#include "stretto/run/inner/stop.h"
#include "stretto/run/inner/stragglers.h"
#include "stretto/run/inner/timeline_files.h"
#include "stretto/run/outcome.h"
#include "stretto/run/prepare.h"
#include "stretto/runtime/devices.h"
#include "stretto/saved/resume.h"
#include "stretto/saved/run_lock.h"
#include "stretto/train/snapshot.h"
#include "stretto/train/trainer.h"

namespace stretto {
namespace {

using Steady = std::chrono::steady_clock;
double seconds_since(Steady::time_point start) { return std::chrono::duration<double>(Steady::now() - start).count(); }

constexpr i64 most_said = 5;  // steps that are not finite, on the console

class TrainingRun {
 public:
  TrainingRun(RunConfig config, std::FILE* out, Verbosity verbosity, const std::optional<std::string>& resume,
              std::shared_ptr<Peers> peers)
      : config_(std::move(config)),
        peers_(std::move(peers)),
        nowhere_(std::fopen("/dev/null", "w"), &std::fclose),
        out_(first() ? out : nowhere_.get()),
        console_(out_, verbosity) {
    config_.parallel.remote = peers_ && !peers_->shares_memory();
    if (peers_) config_.parallel.on_machine = ranks_on_machine(*peers_);
    if (!computes()) leave_out_numbers();
    if (!config_.log.profile.empty()) check_directory_of(config_.log.profile);
    std::optional<Resumed> from;
    if (resume) {
      hold_if_locked(directory_to_go_on_in(config_, *resume));
      from = find_checkpoint(config_, *resume);
    }
    settle_conversations(config_, peers_.get());
    if (!config_.model.graph.empty())
      throw Error("train", "a model that is a graph has inputs of its own, and a run has texts")
          .hint(
              "in Python: stretto.Trainer(model={{\"graph\": ...}}), or from_torch; check, show, plan, simulate and "
              "verify take a graph")
          .about({"model.graph"});
    prepared_ = prepare(config_, peers_.get());
    const std::optional<std::string> other_data = settle_data(config_, prepared_.corpus);
    lines_ = about(config_, prepared_);
    if (peers_) {
      const Mesh& mesh = prepared_.compiled.parallel.mesh;
      check_world(peers_->world(), mesh);
      lines_.push_back(fmt::format("ranks    {}, {}", placement_str(mesh, peers_->nodes()), peers_->name()));
      agree(*peers_, description(config_, prepared_, from && from->checkpoint ? from->checkpoint->manifest().step : 0));
    }
    for (const std::string& line : lines_) console_.say(line);
    if (computes()) check_fits_here(*prepared_.compiled.program, peers_.get());
    const bool several = prepared_.compiled.program->ranks() > 1;
    RunOptions options = options_of(config_.parallel);
    options.peers = peers_;
    options.say = [this] { return signals_ && signals_->asked() ? 1 : 0; };
    trainer_.emplace(std::move(prepared_.compiled), options);
    const Engine& engine = trainer_->engine();
    // Those without a core of their own take turns, and their work is no measure.
    if (engine.local().size() * engine.program().threads <= usable_cores().size())
      stragglers_.emplace(engine.ranks(), engine.program().ranks_per_actor());
    if (stragglers_ && computes()) busy_.emplace(prepared_.seconds);
    for (const std::string& note : from ? from->notes : std::vector<std::string>()) console_.say(note);
    if (other_data) console_.say(*other_data);
    if (from && from->checkpoint)
      start_from(*from->checkpoint);
    else
      load_weights(config_, *trainer_);
    if (first()) open_directory(from && from->same_directory);
    if (peers_) config_.log.dir = peers_->gather(config_.log.dir)[0];  // who fails first says where to go on
    if (!first()) return;
    journal_.emplace(console_, summary_.directory,
                     JournalOptions{.every = config_.log.every,
                                    .steps = config_.train.steps,
                                    .tokens_per_step = prepared_.tokens_per_step(),
                                    .flops_per_step = prepared_.flops,
                                    .peak = type_of(config_.parallel.device).takes_time() ? prepared_.peak : NAN,
                                    .measured = computes(),
                                    .bubble = several});
  }

  RunSummary run() {
    const CutFileAdvice advice([this] { return what_next(); });
    try {
      train_all();
    } catch (Error& e) {
      console_.close();
      console_.log(e.within(what_next()).what());
      throw;
    } catch (...) {
      console_.close();
      console_.result(what_next());
      throw;
    }
    return summary_;
  }

 private:
  bool first() const { return !peers_ || peers_->first(); }

  // A run that is on its way removes and replaces checkpoints: nothing is looked at before it has ended. Where there is
  // no lock yet, none is made before it is known that the directory is a run's.
  void hold_if_locked(const std::filesystem::path& directory) {
    if (first() && !directory.empty() && is_there(directory / RunLock::file_name)) lock_ = RunLock(directory);
  }

  void open_directory(bool goes_on) {
    summary_.directory = goes_on ? std::filesystem::path(config_.log.dir) : make_run_directory(config_.log);
    config_.log.dir = summary_.directory.string();
    if (!lock_.held()) lock_ = RunLock(summary_.directory);
    if (!goes_on) check_unused(summary_.directory);  // nobody was faster
    sweep(summary_.directory);
    if (goes_on) say_unless_empty(cut_metrics(summary_.directory / "metrics.jsonl", trainer_->steps_done()));
    write_file(summary_.directory / "config.toml", resolved_toml(config_));
    console_.log_to(summary_.directory / "log.txt");
    console_.say("run      " + config_.log.dir);
  }

  void say_unless_empty(const std::string& note) {
    if (!note.empty()) console_.say(note);
  }

  // What the user does after a run has broken off, or was stopped.
  std::string what_next() const {
    std::vector<int> nodes = peers_ ? peers_->nodes() : std::vector<int>();
    std::sort(nodes.begin(), nodes.end());
    const bool one_machine = nodes.empty() || nodes.front() == nodes.back();
    return advice_after({.directory = config_.log.dir,
                         .ranks = peers_ ? peers_->size() : 1,
                         .launcher = one_machine ? "stretto launch" : "the same launcher"});
  }

  bool asked(const StopSignals& signals) {
    u64 word[] = {signals.asked() ? 1u : 0u};
    if (peers_) peers_->merge(word);
    return word[0] != 0;
  }

  void train_all() {
    const StopSignals signals;
    signals_ = &signals;
    stop_ = asked(signals);
    Saving saving(config_, summary_.directory, console_, peers_.get());
    if (config_.checkpoint.best && prepared_.corpus.validation)
      best_place_.emplace(config_, std::filesystem::path(config_.log.dir) / "best", 1, console_, peers_.get());
    if (journal_) best_ = BestLoss(journal_->curve());
    if (peers_) best_.share(*peers_);
    if (summary_.resumed > 0) saving.began_at(summary_.resumed);
    if (summary_.resumed > 0) stop_ = gives_up() || stop_;
    steps_.emplace(config_, prepared_, *trainer_, summary_.resumed);
    const auto pauses = [&](i64 last) {
      return stop_ || saving.saves_after(last) || validates_after(last, false) || samples_after(last, false);
    };
    if (peers_) peers_->set_wait(WaitFor::steps);
    const Steady::time_point start = Steady::now();
    const i64 begin = summary_.resumed + 1;
    // What is under way when the run is stopped still counts.
    for (i64 step = begin; step <= config_.train.steps && (!stop_ || trainer_->steps_under_way() > 0); ++step) {
      const double room = trainer_->compiled().parallel.expert_room;
      StepRecord record = steps_->take(step, pauses);
      say_room(step, room);
      note(record.result);
      stop_ = stop_ || record.result.said != 0;  // by a signal to any of the processes
      const bool finite = !computes() || record.result.finite();
      const bool ends = !finite && config_.train.nonfinite == Nonfinite::stop;
      record.last = step == config_.train.steps || (stop_ && trainer_->steps_under_way() == 0) || ends;
      if (!ends && validates_after(step, record.last))
        summary_.validation_loss = record.validation = validation_loss(*trainer_, prepared_, config_);
      if (journal_) journal_->step(record);
      if (stragglers_)
        for (const std::string& line : stragglers_->step(step, record.result.worked)) console_.say(line);
      if (const i64 done = step - begin + 1; busy_ && done % config_.log.every == 0)
        if (const auto line = busy_->after(done, seconds_since(start), core_time())) console_.say(*line);
      if (record.validation) stop_ = judge(step, *record.validation) || stop_;
      if (!ends && samples_after(step, record.last)) sample();
      if (ends) {
        trainer_->set_step(step - 1);  // nothing was updated: the next one does it again
        save_what_was(saving);
        throw not_finite(config_, record.result);
      }
      if (!finite)
        note_not_finite(record.result);
      else
        saving.after_step(*trainer_);
      console_.progress(step, config_.train.steps,
                        seconds_since(start) / (step - begin + 1) * (config_.train.steps - step));
    }
    saving.save_last(*trainer_);
    if (best_place_) best_place_->settle();
    saving.export_model(*trainer_);
    finish(stop_ && !gave_up_);
  }

  void note(const StepResult& r) {
    summary_.steps = r.step;
    summary_.last_loss = r.loss;
    if (r.step == summary_.resumed + 1) summary_.first_loss = r.loss;
  }

  // Keeps the best; whether the run gives up.
  bool judge(i64 step, double loss) {
    if (best_.put(step, loss) && best_place_) best_place_->save(*trainer_);
    return step < config_.train.steps && gives_up();
  }
  // A run that has done so before does it again when it is resumed.
  bool gives_up() {
    const i64 patience = config_.train.patience;
    if (patience == 0 || best_.tries() < patience) return false;
    console_.say(fmt::format("the last {} validations were no better than that of step {}, {:.5f}: the run ends here",
                             best_.tries(), best_.step(), best_.loss().value_or(0)));
    return gave_up_ = true;
  }

  bool samples_after(i64 step, bool last) const {
    if (config_.log.sample.empty() || !computes()) return false;
    return last || (config_.train.validate > 0 && step % config_.train.validate == 0);
  }
  void sample() {
    const StoredModel m = current_model(*trainer_, config_, first());
    if (first()) console_.say("sample   " + sample_of(m, config_.log.sample, config_.data.tokenizer));
  }

  // Before an error that matters more than whether this succeeds.
  void save_what_was(Saving& saving) {
    try {
      saving.save_last(*trainer_);
    } catch (const Error& e) {
      console_.say(e.what());
    }
  }

  void start_from(const Checkpoint& checkpoint) {
    restore(*trainer_, checkpoint);
    summary_.steps = summary_.resumed = trainer_->steps_done();
    console_.say(fmt::format("resume   after step {}, from {}", summary_.resumed, checkpoint.path().string()));
  }

  void say_room(i64 step, double before) {
    if (const double now = trainer_->compiled().parallel.expert_room; now > before)
      console_.say(fmt::format("room     step {} ran again: expert_room {} was too small for its rows, it is {} now",
                               step, before, now));
  }

  bool validates_after(i64 step, bool last) const {
    if (!prepared_.corpus.validation || !computes()) return false;
    return last || (config_.train.validate > 0 && step % config_.train.validate == 0);
  }

  bool computes() const { return stretto::computes(config_.parallel.device); }
  // A device that computes nothing has nothing to save, and what was asked for by name is not left out silently.
  void leave_out_numbers() {
    const CheckpointSection& c = config_.checkpoint;
    if (!c.export_to.empty() || !c.export_adapter.empty())
      throw Error(c.export_to.empty() ? "checkpoint.export_adapter" : "checkpoint.export",
                  "device {} computes nothing that could be exported", type_of(config_.parallel.device).name)
          .hint("use parallel.device = \"cpu\"");
    summary_.computed = false;
    config_.checkpoint.keep = 0;
    config_.checkpoint.best = false;
  }

  void note_not_finite(const StepResult& r) {
    if (++summary_.nonfinite > most_said) return;
    console_.say(fmt::format("step {}: the loss is {} and the gradient norm {}; {}", r.step, r.loss, r.grad_norm,
                             !r.updated ? "the step is skipped" : "training goes on"));
  }

  void finish(bool stopped) {
    console_.close();
    summary_.stopped = stopped && summary_.steps < config_.train.steps;
    if (computes()) summary_.parameters = trainer_->parameters_hash();
    if (!first()) return;
    if (const auto& drawn = steps_->drawn()) {
      write_timeline(summary_.directory, *drawn);
      std::string text = timeline_text(*drawn, options_for(out_));
      text.pop_back();
      console_.say("\n" + text);
      console_.say(fmt::format("timeline {}", (summary_.directory / "timeline.html").string()));
    }
    if (!config_.log.profile.empty() && summary_.steps == config_.train.steps) {
      write_file(config_.log.profile, times_tsv(steps_->times()));
      console_.say(
          fmt::format("profile  {}: for a run with --parallel.times={}", config_.log.profile, config_.log.profile));
    }
    if (summary_.nonfinite > 0)
      console_.say(fmt::format("{} of {} steps had a loss or gradient norm that is not finite", summary_.nonfinite,
                               summary_.steps));
    const std::string end = ending(summary_, config_.train.steps, journal_->seconds());
    lines_.insert(lines_.end(), {"", end,
                                 computes() ? fmt::format("parameters {:016x}", summary_.parameters)
                                            : fmt::format("parameters none: device {} computes nothing",
                                                          type_of(config_.parallel.device).name)});
    std::optional<Error> lost;  // the run is done, and what it has come to is said first
    try {
      if (summary_.steps > summary_.resumed) write_files();
    } catch (Error& e) {
      lost = std::move(e);
    }
    if (summary_.stopped) console_.say(what_next());
    console_.result(end);
    console_.result(lines_.back());
    journal_->finish();
    if (lost) throw std::move(*lost);
  }

  void write_files() {
    const FinishedRun run{.config = config_,
                          .summary = summary_,
                          .lines = lines_,
                          .curve = journal_->curve(),
                          .loads = journal_->loads(),
                          .planned = bytes_per_actor(*trainer_->compiled().program),
                          .drawn = steps_->drawn() ? &*steps_->drawn() : nullptr};
    console_.say("report   " + write_report(run).string());
    write_measured(run);
  }

  RunConfig config_;
  std::shared_ptr<Peers> peers_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> nowhere_;
  Prepared prepared_;  // `compiled` is the trainer's afterwards
  std::FILE* out_;
  Console console_;
  std::optional<Trainer> trainer_;
  std::optional<TrainingSteps> steps_;
  std::optional<Journal> journal_;
  std::optional<Stragglers> stragglers_;
  std::optional<BusyMachine> busy_;  // none: ranks take turns, or compute nothing
  const StopSignals* signals_ = nullptr;
  bool stop_ = false;  // asked for by a signal
  std::optional<Saving> best_place_;
  BestLoss best_;
  bool gave_up_ = false;            // before the last step, as train.patience says
  RunLock lock_;                    // on the run directory; of the first rank
  std::vector<std::string> lines_;  // what the run says about itself, for the report
  RunSummary summary_;
};

}  // namespace

RunSummary train(const RunConfig& config, std::FILE* out, Verbosity verbosity, const std::optional<std::string>& resume,
                 std::shared_ptr<Peers> peers) {
  return TrainingRun(config, out, verbosity, resume, std::move(peers)).run();
}

std::string check_run(const RunConfig& config) {
  if (!config.model.from.empty()) check_hf(config.model.from, config.model.hf_as);
  const Prepared p = prepare(config);
  std::vector<std::string> lines = about(config, p);
  if (const double there = machine_bytes(); planned_bytes(*p.compiled.program) > there)
    lines.push_back(fmt::format("note     this machine has {}: on it alone the run does not fit", human_bytes(there)));
  return join(lines, "\n") + "\n";
}

}  // namespace stretto
