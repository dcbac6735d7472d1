#include "stretto/run/inner/conversations.h"

#include "stretto/base/day.h"
#include "stretto/data/chat.h"
#include "stretto/run/inner/agree.h"

namespace stretto {

void settle_conversations(RunConfig& c, Peers* peers) {
  const bool chats = c.data.field == messages_field;
  // Before they share what they read: whether they read the same, and which day it is where the first one is.
  if (peers) agree(*peers, chats ? data_description(c) : "");
  if (!chats || !c.data.date.empty()) return;
  c.data.date = peers ? peers->gather(today())[0] : today();
}

std::optional<FromFirst> others_of(Peers* peers) {
  if (!peers || peers->size() == 1) return std::nullopt;
  const auto share = [peers](std::vector<std::int32_t>& words) {
    u64 count = words.size();
    peers->broadcast(std::as_writable_bytes(std::span(&count, 1)), 0);
    words.resize(count);
    if (count > 0) peers->broadcast(std::as_writable_bytes(std::span(words)), 0);
  };
  return FromFirst{.first = peers->first(), .share = share};
}

}  // namespace stretto
