// Conversations as transformers renders them (tests/files/chat/make.py), where answers stand in them, and templates
// that would take the machine.
#include "stretto/tokenize/chat_renderer.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "support/chats.h"
#include "support/command.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;
const fs::path chats_folder = fs::path(STRETTO_TEST_DATA) / "chat";

ChatTemplate named(const std::string& source) { return {.source = source, .where = "t.jinja"}; }
ChatTemplate template_in(const std::string& file) {
  return {test::text_of(chats_folder / file), file, {{"bos_token", Field("<s>")}, {"eos_token", Field("</s>")}}};
}
std::string rendered(ChatRenderer& renderer, const std::string& chat) {
  renderer.put(chat, "chat");
  return renderer.take().text;
}
std::string rendered(const std::string& source, const std::string& chat = test::one_message("a"),
                     RenderOptions o = {}) {
  ChatRenderer renderer(named(source), std::move(o));
  return rendered(renderer, chat);
}

class Rendering : public testing::Test {
 protected:
  void SetUp() override { STRETTO_NEEDS_JINJA(); }
};

TEST_F(Rendering, TextsAreThoseOfTransformers) {
  const Field expected = read_json_file(chats_folder / "expected.json");
  const Field::Array& chats = *expected.find("chats")->array();
  int seen = 0, refused = 0;
  for (const auto& [file, results] : *expected.find("templates")->table()) {
    ChatRenderer renderer(template_in(file));
    for (std::size_t i = 0; i < chats.size(); ++i)
      for (const bool prompt : {false, true}) {
        const Field& theirs = (*(*results.array())[i].array())[prompt];
        const std::string chat = write_json(chats[i]);
        const auto ours = [&] { return prompt ? renderer.prompt(chat, "chat") : rendered(renderer, chat); };
        ++seen;
        if (const Field* why = theirs.find("refused")) {
          ++refused;
          EXPECT_THAT(refusal_of([&] { ours(); }), HasSubstr(std::get<std::string>(why->value))) << file << " " << i;
        } else {
          EXPECT_EQ(ours(), std::get<std::string>(theirs.value)) << file << " " << i;
        }
      }
  }
  EXPECT_EQ(seen, 120);
  EXPECT_GT(refused, 0);
}

std::vector<std::string> answers_of(const Conversation& c) {
  std::vector<std::string> all;
  for (const Conversation::Stretch& s : c.answers) all.push_back(c.text.substr(s.begin, s.end - s.begin));
  return all;
}

TEST_F(Rendering, MarkedAnswersAreThoseOfTransformers) {
  const Field expected = read_json_file(chats_folder / "expected.json");
  for (const auto& [file, marked] : *expected.find("marked")->table()) {
    ChatRenderer renderer(template_in(file));
    for (std::size_t i = 0; i < marked.array()->size(); ++i) {
      renderer.put(write_json(expected.find("chats")->array()->at(i)), "chat");
      std::vector<std::string> theirs;
      for (const Field& text : *marked.array()->at(i).array()) theirs.push_back(std::get<std::string>(text.value));
      EXPECT_EQ(answers_of(renderer.take()), theirs) << file << " " << i;
    }
  }
}

// Templates of one's own: STRETTO_CHAT_TEMPLATES names a folder of them.
TEST_F(Rendering, AsTransformersDoesItHere) {
  const char* more = std::getenv("STRETTO_CHAT_TEMPLATES");
  const test::Result r = test::shell(
      "python3 " + (chats_folder / "against_transformers.py").string() + " " + (more ? more : "") + " 2>/dev/null",
      "/");
  if (r.code == 77) GTEST_SKIP() << "there is no transformers: pip install transformers";
  EXPECT_EQ(r.code, 0) << r.out;
}

std::vector<std::string> answers_of(const std::string& file, const std::string& chat) {
  ChatRenderer renderer(template_in(file), {.ends = {"<|im_end|>", "</s>", "<|eot_id|>"}});
  renderer.put(chat, "chat");
  return answers_of(renderer.take());
}

TEST_F(Rendering, AnswersAreWhatTheAssistantSaysWithTheTokenThatEndsIt) {
  using Texts = std::vector<std::string>;
  const std::string chat = R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": " b "},
      {"role": "user", "content": "b"}, {"role": "assistant", "content": "<think>\nx\n</think>\n\nb c"}]})";
  std::string line = chat;
  line.erase(line.find('\n'), 1);
  EXPECT_EQ(answers_of("llama3_style.jinja", line), (Texts{"b<|eot_id|>", "<think>\nx\n</think>\n\nb c<|eot_id|>"}));
  EXPECT_EQ(answers_of("mistral_style.jinja", line), (Texts{"b</s>", "<think>\nx\n</think>\n\nb c</s>"}));
  // What the template makes of thoughts is a part of the answer when it comes from it.
  EXPECT_EQ(answers_of("qwen_style.jinja", line), (Texts{" b <|im_end|>", "x\n</think>\n\nb c<|im_end|>"}));
  EXPECT_EQ(answers_of("blanks.jinja", line), (Texts{"marked 4"}));
}

// What an answer says stands elsewhere too, answers are empty, alike, next to each other, or not there at all.
TEST_F(Rendering, AnswersAreFoundAmongTheirLikes) {
  const std::string chat = R"({"messages": [{"role": "assistant", "content": "a"}, {"role": "user", "content": "|a|"},)"
                           R"( {"role": "assistant", "content": ""}, {"role": "assistant", "content": "|a|a"},)"
                           R"( {"role": "assistant", "content": "a"}, {"role": "user", "content": "a"}]})";
  const auto found = [&](const std::string& source) {
    ChatRenderer renderer(named(source));
    renderer.put(chat, "chat");
    const Conversation c = renderer.take();
    std::string marked = c.text;
    for (std::size_t i = c.answers.size(); i-- > 0;)
      marked.insert(c.answers[i].end, ">"), marked.insert(c.answers[i].begin, "<");
    return marked;
  };
  EXPECT_EQ(found("{% for m in messages %}{{ m.content }}|{% endfor %}"), "<a>||a|||<|a|a>|<a>|a|");
  EXPECT_EQ(found("{% for m in messages %}{{ m.content }}{% endfor %}"), "<a>|a|<|a|a><a>a");
  EXPECT_EQ(found("{% for m in messages %}{{ m.role[0] }}{{ m.content|upper }}{% endfor %}"), "a<A>u|A|aa<|A|A>a<A>uA");
  EXPECT_EQ(found("{% for m in messages if m.role == 'user' %}{{ m.content }};{% endfor %}"), "|a|;a;");
  EXPECT_EQ(found("{{ messages[0].content }}{{ messages[0].content }}"), "<aa>");
}

std::string conversation_of(int messages) {
  Field::Array all;
  for (int i = 0; i < messages; ++i) {
    Field m{Field::Table{}};
    m.set("role", i % 2 ? "assistant" : "user");
    m.set("content", i % 2 ? fmt::format("<think>\nhm {}\n</think>\n\nanswer {}", i, i % 7) : "question");
    all.push_back(std::move(m));
  }
  Field chat{Field::Table{}};
  chat.set("messages", std::move(all));
  return write_json(chat);
}

// Each answer by a rendering of its own would take hours.
TEST_F(Rendering, ALongConversationTakesAFewRenderings) {
  const std::string chat = conversation_of(10000);
  for (const char* file : {"llama3_style.jinja", "qwen_style.jinja"}) {
    ChatRenderer renderer(template_in(file));
    renderer.put(chat, "chat");
    const Conversation c = renderer.take();
    EXPECT_EQ(c.answers.size(), 5000u) << file;
    EXPECT_THAT(answers_of(c).back(), HasSubstr("answer 3")) << file;
  }
  ChatRenderer mute(named("{% for m in messages if m.role == 'user' %}{{ m.content }};{% endfor %}"));
  mute.put(chat, "chat");
  EXPECT_TRUE(mute.take().answers.empty());
}

TEST_F(Rendering, ConversationsComeInTheirOrderHoweverLongTheyAre) {
  ChatRenderer renderer(named("{% for m in messages %}{{ m.content }}{% endfor %}"));
  const auto text = [](int i) { return std::string(i % 10 == 0 ? 3 << 20 : 10, 'a' + i % 26) + std::to_string(i); };
  for (int i = 0; i < 40; ++i) renderer.put(test::one_message(text(i)), "chat");
  EXPECT_EQ(renderer.waiting(), 40u);
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(renderer.take().text == text(i)) << i;
}

TEST_F(Rendering, TheDayIsTheRuns) {
  EXPECT_EQ(rendered("{{ strftime_now('%d %b %Y') }}", test::one_message("a"), {.date = "2025-02-03"}), "03 Feb 2025");
}

TEST_F(Rendering, WhatGoesWrongNamesTheLine) {
  const auto said = [](const std::string& source) { return refusal_of([&] { rendered(source); }); };
  EXPECT_EQ(said("a\n{% nonsense %}"),
            "[t.jinja, line 2] jinja2 cannot render the template: Encountered unknown tag 'nonsense'.; hint: is the "
            "template whole?");
  EXPECT_THAT(said("{% if x %}a"), StartsWith("[t.jinja, line 1] jinja2 cannot render the template: Unexpected end"));
  EXPECT_EQ(said("\n\n{{ nothing.at.all }}"),
            "[t.jinja, line 3] jinja2 cannot render the template: 'nothing' is undefined; hint: has the "
            "conversation what the template asks for? (chat)");
  EXPECT_EQ(said("\n{{ raise_exception('no system here') }}"),
            "[t.jinja, line 2] the template refuses the conversation: no system here; hint: look at the roles "
            "and the order of the messages (chat)");
  EXPECT_THAT(said("{{ '\\ud800' }}"), HasSubstr("surrogates not allowed"));
  EXPECT_EQ(said("ab\xff"),
            "[t.jinja] is not UTF-8 from byte 2 on; hint: a chat template is a text: is it the right file?");
}

TEST_F(Rendering, ARendererGoesOnAfterAConversationThatIsRefused) {
  ChatRenderer renderer(named("{% if messages[0].content == 'no' %}{{ raise_exception('no') }}{% endif %}yes"));
  for (int i = 0; i < 3; ++i) renderer.put(test::one_message(i == 1 ? "no" : "go"), fmt::format("c:{}", i));
  EXPECT_EQ(renderer.take().text, "yes");
  EXPECT_THAT(refusal_of([&] { renderer.take(); }), HasSubstr("(c:1)"));
  EXPECT_EQ(renderer.take().text, "yes");
}

struct Hostile {
  std::string name, source, said;
};
void PrintTo(const Hostile& h, std::ostream* out) { *out << h.name; }

class HostileTemplates : public testing::TestWithParam<Hostile> {
 protected:
  void SetUp() override { STRETTO_NEEDS_JINJA(); }
};

// Each of them ends in one message, in limits of its own, and leaves this process as it was.
TEST_P(HostileTemplates, EndInAMessage) {
  const RenderOptions limits{.seconds = 0.5, .bytes = u64(400) << 20};
  const std::string text = refusal_of([&] { rendered(GetParam().source, test::one_message("abc"), limits); });
  EXPECT_THAT(text, StartsWith("[t.jinja")) << text;
  EXPECT_THAT(text, HasSubstr(GetParam().said)) << text;
  EXPECT_THAT(text, HasSubstr("; hint: "));
}

std::string nested(const std::string& open, int count, const std::string& middle, const std::string& close) {
  std::string text;
  for (int i = 0; i < count; ++i) text += open;
  text += middle;
  for (int i = 0; i < count; ++i) text += close;
  return "{{ " + text + " }}";
}

const std::string too_long = "takes more than 500.0 ms of the processor's time";
INSTANTIATE_TEST_SUITE_P(
    Of, HostileTemplates,
    testing::Values(
        Hostile{"NestedLoops", "{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}{% endfor %}{% endfor %}",
                too_long},
        Hostile{"DoublingText",
                "{% set n = namespace(a='aaaaaaaa') %}{% for i in range(60) %}{% set n.a = n.a ~ n.a %}"
                "{% endfor %}{{ n.a }}",
                "needs more than 400 MiB of memory"},
        Hostile{"Power", "{{ 10 ** (10 ** 8) }}", too_long},
        Hostile{"Repetition", "{{ 'a' * 10 ** 11 }}", "needs more than 400 MiB of memory"},
        Hostile{"Padding", "{{ '%1000000000d' % 1 }}", "needs more than 400 MiB of memory"},
        Hostile{"CyclicNamespaces",
                "{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}{{ a }}{{ a.b | tojson }}",
                "jinja2 cannot render the template"},
        Hostile{"DeepValue",
                "{% set n = namespace(a=[]) %}{% for i in range(90000) %}{% set n.a = [n.a] %}{% endfor %}"
                "{{ n.a | tojson }}",
                "it goes too deep"},
        Hostile{"DeepList", nested("[", 5000, "1", "]"), "jinja2 cannot render the template"},
        Hostile{"DeepBrackets", nested("(", 150, "1", ")"), "jinja2 cannot render the template"},
        Hostile{"MacroThatCallsItself", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "it goes too deep"},
        Hostile{"TooLongARange", "{{ range(10 ** 9) }}", "Range too big"},
        Hostile{"PythonsOwn", "{{ messages.__class__.__mro__[1].__subclasses__() }}", "unsafe"},
        Hostile{"FormatOfPythonsOwn", "{{ '{0.__class__.__mro__}'.format(messages) | length + nothing.x }}",
                "jinja2 cannot render the template"},
        Hostile{"NamespaceOfPythonsOwn", "{% set n = namespace(__class__=1) %}{{ n }}", "underscore"},
        Hostile{"ChangedMessages", "{{ messages.append(1) }}", "unsafe"},
        Hostile{"AnotherFile", "{% include '/etc/passwd' %}", "jinja2 cannot render the template"}),
    [](const auto& info) { return info.param.name; });

// A step that is larger than any list takes the first of its elements.
TEST_F(Rendering, SlicesMayHaveAnyStep) {
  EXPECT_EQ(rendered("{{ 'abcdef'[1::9223372036854775807] }}{{ [1, 2, 3][::-99999999999999999999] }}"), "b[3]");
}

// The process that renders, of a child of this one; none: it has not begun yet.
std::optional<pid_t> only_child_of(pid_t parent) {
  const std::string id = std::to_string(parent);
  const std::string children = test::text_of("/proc/" + id + "/task/" + id + "/children");
  return children.empty() ? std::nullopt : std::optional<pid_t>(std::stoi(children));
}
bool is_running(pid_t process) {
  if (!fs::exists("/proc/" + std::to_string(process))) return false;
  const std::string stat = test::text_of("/proc/" + std::to_string(process) + "/stat");
  return !stat.empty() && stat.substr(stat.rfind(')') + 2, 1) != "Z";
}

TEST_F(Rendering, NoProcessIsLeftWhenTheOneThatAskedIsKilled) {
  for (const bool busy : {false, true}) {
    int begun[2];
    ASSERT_EQ(pipe(begun), 0);
    const pid_t asking = fork();
    if (asking == 0) {
      ChatRenderer renderer(named("{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}{% endfor %}"
                                  "{% endfor %}"),
                            {.seconds = 600, .bytes = u64(8) << 30});
      if (busy) renderer.put(test::one_message("a"), "chat");
      if (write(begun[1], "!", 1) != 1) _exit(1);
      pause();
      _exit(0);
    }
    char mark = 0;
    ASSERT_EQ(read(begun[0], &mark, 1), 1);
    const std::optional<pid_t> renders = only_child_of(asking);
    ASSERT_TRUE(renders);
    EXPECT_TRUE(is_running(*renders));
    kill(asking, SIGKILL);
    waitpid(asking, nullptr, 0);
    for (int i = 0; i < 1000 && is_running(*renders); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(is_running(*renders)) << (busy ? "rendering" : "idle");
    close(begun[0]), close(begun[1]);
  }
}

TEST_F(Rendering, TheProcessEndsWithTheRenderer) {
  { ChatRenderer renderer(named("x")); }
  EXPECT_FALSE(only_child_of(getpid()));
}

TEST(Renderer, WithoutPythonOrJinjaTheMessageNamesThePackage) {
  const test::Folder folder;
  folder.write("bare", "#!/bin/sh\nexec python3 -S -E \"$@\"\n");  // without packages
  fs::permissions(folder / "bare", fs::perms::owner_all);
  const auto said = [](std::vector<std::string> pythons) {
    return refusal_of([&] { ChatRenderer(named("x"), {.pythons = std::move(pythons)}); });
  };
  EXPECT_EQ(said({"/nowhere/python3", "no-such-python3"}),
            "[t.jinja] chat templates are rendered by jinja2, and there is no python3; hint: apt-get install "
            "python3-jinja2 (or pip install jinja2)");
  EXPECT_THAT(said({"/nowhere/python3", (folder / "bare").string()}),
              testing::MatchesRegex(".*rendered by jinja2, and /.*python3.* does not have it; hint: apt-get install "
                                    "python3-jinja2 .*"));
  folder.write("broken", "#!/bin/sh\necho some trouble >&2\nexit 3\n");
  fs::permissions(folder / "broken", fs::perms::owner_all);
  EXPECT_THAT(said({(folder / "broken").string()}), HasSubstr("the process that renders it has ended: some trouble"));
}

}  // namespace
}  // namespace stretto
