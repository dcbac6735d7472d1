#include "stretto/runtime/engine.h"

#include "stretto/comm/threads/routes.h"

namespace stretto {

Engine::Engine(std::shared_ptr<const Program> program, WorkerOptions options, const Engine* shared)
    : transport_(std::make_unique<ThreadRoutes>(*program)) {
  const int actors = int(program->actors.size());
  for (int a = 0; a < actors; ++a) {
    WorkerOptions mine = options;
    mine.transport = transport_.get();
    if (shared) {
      STRETTO_ASSERT(program->actors[std::size_t(a)].param_at == shared->worker(a).program().param_at,
                     "parameters lie elsewhere");
      mine.shared[std::size_t(Arena::params)] = shared->worker(a).arena(Arena::params);
    }
    workers_.push_back(std::make_unique<Worker>(program, a, mine));
  }
  if (actors > 1)
    for (int a = 0; a < actors; ++a) threads_.emplace_back([this, a] { serve(a); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void Engine::run_actor(int actor, i64 step) {
  try {
    worker(actor).run(step);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    transport_->stop();
  }
}

void Engine::serve(int actor) {
  u64 seen = 0;
  while (true) {
    i64 step = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return quit_ || round_ > seen; });
      if (quit_) return;
      seen = round_;
      step = step_;
    }
    run_actor(actor, step);
    {
      const std::lock_guard lock(mutex_);
      --running_;
    }
    changed_.notify_all();
  }
}

void Engine::run(i64 step) {
  if (threads_.empty()) {
    run_actor(0, step);
  } else {
    std::unique_lock lock(mutex_);
    step_ = step;
    running_ = actors();
    ++round_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return running_ == 0; });
  }
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace stretto
