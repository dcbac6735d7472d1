#include "held.h"

#include <unistd.h>

#include <map>

#include "stretto/run/current.h"

namespace stretto::python {
namespace {

// Never taken down: in a fork of the process the threads of trainers are not there to be joined.
struct Registry {
  std::map<i64, std::shared_ptr<HeldTrainer>> trainers;
  i64 next = 1;
  pid_t process = getpid();
  std::mutex mutex;
};
Registry& held() {
  static Registry* all = new Registry;
  return *all;
}

}  // namespace

void check_process() {
  if (const pid_t here = getpid(); here != held().process)
    throw Error("trainer", "it belongs to process {}, and this is {}, a fork of it, which has none of its threads",
                held().process, here)
        .hint("make trainers in the process that uses them: multiprocessing.get_context(\"spawn\")");
}

const StoredModel& HeldTrainer::current() {
  if (!run.model.graph.empty())
    throw Error("trainer", "a model that is a graph is none of a family's, which have tokenizers, logits and files")
        .hint("trainer.to_torch(module) gives its values back, and the module does the rest");
  if (!model) {
    model = current_model(trainer, run);
    model->path = run.model.from;
    model->extras = beside_tensors(run).extras;
  }
  return *model;
}

i64 hold(std::shared_ptr<HeldTrainer> made) {
  const std::lock_guard lock(held().mutex);
  const i64 id = held().next++;
  held().trainers[id] = std::move(made);
  return id;
}

void forget(i64 id) {
  if (getpid() != held().process) return;
  std::shared_ptr<HeldTrainer> last;  // ends outside of the lock
  const std::lock_guard lock(held().mutex);
  if (const auto it = held().trainers.find(id); it != held().trainers.end()) {
    last = std::move(it->second);
    held().trainers.erase(it);
  }
}

std::shared_ptr<HeldTrainer> Use::found(const Arguments& a) {
  check_process();
  const std::lock_guard lock(held().mutex);
  const auto it = held().trainers.find(a.whole("trainer"));
  if (it == held().trainers.end()) throw Error("trainer", "it has been closed").hint("make another one");
  return it->second;
}

}  // namespace stretto::python
