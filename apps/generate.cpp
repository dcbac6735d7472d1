// `stretto generate`: text that a model goes on with, token by token.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "commands.h"
#include "load_options.h"
#include "stretto/base/error.h"
#include "stretto/generate/chat.h"
#include "stretto/generate/generate.h"
#include "stretto/generate/utf8_stream.h"
#include "usage.h"

namespace stretto::app {
namespace {

struct Options {
  std::string directory, prompt, tokenizer;
  LoadOptions load;
  std::string ids_in_commas;
  bool chats = false;
  std::string chat;  // a file; "": the prompt is what a user says
  ChatPromptOptions chat_prompt;
  GenerateOptions generate{.sample = {.temperature = 0.8}};
  bool ignore_end = false;
};

// "12,7,99"; none when something else is in it.
std::optional<std::vector<std::int32_t>> ids_of(std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const char *at = text.data(), *end = at + text.size();; ++at) {
    const auto [next, error] = std::from_chars(at, end, ids.emplace_back());
    if (error != std::errc() || (next != end && *next != ',')) return std::nullopt;
    if (at = next; at == end) return ids;
  }
}

const CLI::Validator whole_numbers(
    [](const std::string& text) {
      return ids_of(text) ? "" : fmt::format("'{}' is not a list of whole numbers such as 12,7,99", text);
    },
    "");

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// Fewer tokens than were asked for, without a token that ends a text.
void say_if_full(const StoredModel& m, const Options& o, i64 prompt, i64 made) {
  if (made < o.generate.tokens && prompt + made >= m.config.context)
    fmt::print(stderr, "note: the model's context of {} tokens is full after {} of {}\n", m.config.context, made,
               o.generate.tokens);
}

struct Prompt {
  std::string shown;  // before what the model goes on with
  std::vector<std::int32_t> ids, ends;
};

Prompt prompt_of(const StoredModel& m, const Codec& codec, const Options& o) {
  if (!o.chats) return {o.prompt, codec.encode(o.prompt, true), codec.ends};
  const ChatPrompt p =
      o.chat.empty() ? chat_prompt(m, codec, user_says(o.prompt), "--prompt", o.chat_prompt)
                     : chat_prompt(m, codec, read_json_file(o.chat), o.chat, o.chat_prompt);
  return {"", codec.encode(p.text, false), p.ends};
}

void run(const Options& o, bool as_ids) {
  const StoredModel m = load_model(o.directory, o.load);
  for (const std::string& note : m.notes) fmt::print(stderr, "{}\n", note);
  if (as_ids) {
    const std::vector<std::int32_t> ids = *ids_of(o.ids_in_commas);
    const i64 made = generate(m, ids, o.generate, [first = true](std::int32_t id) mutable {
      put(fmt::format("{}{}", first ? "" : " ", id));
      first = false;
      return true;
    });
    put("\n");
    return say_if_full(m, o, ids.size(), made);
  }
  const Codec codec = codec_of(m, o.tokenizer);
  const Prompt prompt = prompt_of(m, codec, o);
  GenerateOptions options = o.generate;
  if (!o.ignore_end) options.stop = prompt.ends;
  Utf8Stream stream;
  // Before the first token and not earlier: until then something may be refused.
  bool begun = false;
  const auto begin = [&] {
    if (!std::exchange(begun, true)) put(stream.push(prompt.shown));
  };
  const i64 made = generate(m, prompt.ids, options, [&](std::int32_t id) {
    begin();
    put(stream.push(codec.decode(id)));
    return true;
  });
  begin();
  put(stream.finish() + "\n");
  say_if_full(m, o, prompt.ids.size(), made);
}

}  // namespace

void add_generate(CLI::App& app) {
  const auto o = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("generate", "let a model go on with a text");
  command->add_option("DIR", o->directory, "a run, a checkpoint, a Hugging Face directory or one of PEFT's")
      ->required();
  add_load_options(*command, o->load);
  command
      ->add_option_function<std::string>(
          "--base", [o](const std::string& base) { o->load.base = base; },
          "of an adapter: the model it belongs to, if not the one it names")
      ->type_name("DIR");
  CLI::Option* prompt = command->add_option("--prompt", o->prompt, "the text to go on from");
  CLI::Option* ids =
      command->add_option("--ids", o->ids_in_commas, "the prompt as token ids, e.g. 12,7,99; prints ids too")
          ->check(whole_numbers)
          ->excludes(prompt);
  CLI::Option* chat = command
                          ->add_flag("--chat{}", o->chat,
                                     "the prompt is what a user says, in the model's chat template, and the answer is "
                                     "printed; --chat=FILE: a conversation instead, {\"messages\": [...]}")
                          ->excludes(ids);
  command
      ->add_option("--template", o->chat_prompt.chat_template,
                   "of a chat: a Jinja file instead of the one beside the weights")
      ->type_name("FILE")
      ->needs(chat);
  command->add_option("--date", o->chat_prompt.date, "of a chat: for templates that ask for it (default: today)")
      ->type_name("2026-11-18")
      ->check(day())
      ->needs(chat);
  command
      ->add_option("--tokenizer", o->tokenizer,
                   "instead of the one beside the weights: a file, its directory, or 'bytes'")
      ->excludes(ids);
  command->add_option("--tokens", o->generate.tokens, "how many at most")->check(whole_number(0))->type_name("N");
  command->add_option("--temperature", o->generate.sample.temperature, "0: always the most likely")->type_name("T");
  command->add_option("--top-k", o->generate.sample.top_k, "only the K most likely; 0: all")->type_name("K");
  command->add_option("--top-p", o->generate.sample.top_p, "only the most likely that reach P together")
      ->type_name("P");
  command->add_option("--seed", o->generate.seed, "of the random choices")->type_name("S");
  command
      ->add_option_function<std::string>(
          "--dtype", [o](const std::string& name) { o->generate.dtype = dtype_named(name); },
          "to compute in, if not as the weights are")
      ->type_name("f32|bf16")
      ->transform(one_of({"f32", "bf16"}));
  command->add_flag("--ignore-end", o->ignore_end, "go on after a token that ends a text");
  command->callback([o, prompt, ids, chat] {
    o->chats = chat->count() > 0;
    const bool conversation = !o->chat.empty();
    if (conversation && prompt->count() > 0)
      throw Error("generate", "there are a conversation, '{}', and a prompt", o->chat)
          .hint("give one of them; --chat by itself makes a conversation of the prompt")
          .as(Error::Kind::usage);
    if (prompt->count() + ids->count() == 0 && !conversation)
      throw Error("generate", "there is no prompt").hint("give --prompt TEXT, or --ids 1,2,3").as(Error::Kind::usage);
    run(*o, ids->count() > 0);
  });
}

}  // namespace stretto::app
