// The messages a schedule implies: who sends what to whom, in which order, around which action.
//
//   Traffic t = traffic_of(schedule);
//   for (const Channel& c : t.channels) fmt::print("{}: {} messages\n", c.str(), c.messages);
//
// A receive stands right before its consumer and a send right after its producer. An overlap group posts all its
// receives, waits for them, runs, starts all its sends and waits until they are gone.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "stretto/schedule/schedule.h"

namespace stretto {

// First in, first out. Keyed by (source stage, target stage, kind, pipe); kind F carries activations, I gradients.
// Merged into one per pair of actors, `merged` is set and the stages are those of its first message.
struct Channel {
  Phase kind = Phase::F;
  PipeId pipe = down_pipe;
  bool merged = false;
  StageId from = {}, to = {};
  ActorId source = {}, target = {};
  std::uint32_t messages = 0;  // in one step
  std::string str() const;     // "stage 1 -> 2 F, actor 1 -> 2"
};

struct Message {
  std::uint32_t channel = 0;
  std::uint32_t sent = 0, taken = 0;        // which of its channel, in the order of sends, and of receives
  std::uint32_t sent_at = 0, taken_at = 0;  // position of producer and consumer in their rows
};

// What an actor does about messages, in order. Only receive and complete can block.
struct MessageStep {
  enum class Kind : std::uint8_t {
    post,      // a buffer is ready for the message
    receive,   // waits until the message is there, and takes it
    run,       // the action or group itself; `message` counts its time: 2 for B, 1 for the others
    send,      // the message may leave
    complete,  // waits until it has left
  } kind = Kind::run;
  std::uint32_t message = 0;
  std::uint32_t position = 0;  // of the action it belongs to
};

// The capacity of the channels is given per (source stage, target stage, kind). The two pipes of a bidirectional
// schedule share it, half each: `shares` is 2 then.
struct Traffic {
  int shares = 1;
  std::vector<Channel> channels;
  std::vector<Message> messages;
  IdVector<ActorId, std::vector<MessageStep>> actors;
};

enum class ChannelKey : std::uint8_t { stages, actors };  // one channel per stages and kind, or one per pair of actors

// For a schedule that validate() accepts; what has no partner elsewhere sends and receives nothing. Throws when the
// schedule's shape makes no sense.
Traffic traffic_of(const Schedule&, ChannelKey = ChannelKey::stages);

}  // namespace stretto
