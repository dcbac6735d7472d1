#include "stretto/formats/token_file.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cstring>
#include <fstream>

#include "stretto/formats/fields.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::Folder;
using testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path tokens_folder = fs::path(STRETTO_TEST_DATA) / "tokens";

const Field& expected() {
  static const Field field = read_json_file(tokens_folder / "expected.json");
  return field;
}
std::vector<std::int32_t> integers(const Field& list) {
  std::vector<std::int32_t> out;
  for (const Field& f : *list.array()) out.push_back(std::int32_t(std::get<i64>(f.value)));
  return out;
}
std::vector<std::int32_t> all_of(const TokenSpan& tokens) {
  std::vector<std::int32_t> out(std::size_t(tokens.size()));
  tokens.read(0, out);
  return out;
}

TEST(TokenFile, ReadsFlatFiles) {
  for (const auto& [name, format] :
       {std::pair{"nanogpt.bin", "nanoGPT"}, {"llmc_gpt2.bin", "llm.c"}, {"llmc_llama3.bin", "llm.c"}}) {
    const TokenFile file(tokens_folder / name);
    EXPECT_EQ(file.format(), format);
    EXPECT_EQ(file.megatron(), nullptr);
    EXPECT_EQ(all_of(file.tokens()), integers(*expected().find(name)->find("tokens"))) << name;
  }
}

TEST(TokenFile, ReadsMegatron) {
  for (const char* name : {"megatron_u16", "megatron_i32", "megatron_modes", "megatron_empty"}) {
    const Field& want = *expected().find(std::string(name) + ".idx");
    const MegatronTokens data(tokens_folder / name);
    const auto& sequences = *want.find("sequences")->array();
    ASSERT_EQ(data.sequences(), i64(sequences.size())) << name;
    std::vector<std::int32_t> joined;
    for (i64 s = 0; s < data.sequences(); ++s) {
      const auto tokens = integers(sequences[std::size_t(s)]);
      EXPECT_EQ(all_of(data.sequence(s)), tokens) << name << s;
      EXPECT_EQ(data.byte_offset(s), integers(*want.find("byte_offsets"))[std::size_t(s)]);
      joined.insert(joined.end(), tokens.begin(), tokens.end());
      if (want.find("modes")->is_null())
        EXPECT_FALSE(data.mode(s));
      else
        EXPECT_EQ(data.mode(s), integers(*want.find("modes"))[std::size_t(s)]);
    }
    const auto documents = integers(*want.find("document_indices"));
    ASSERT_EQ(data.documents(), i64(documents.size()) - 1);
    for (std::size_t d = 0; d < documents.size(); ++d) EXPECT_EQ(data.document_begin(i64(d)), documents[d]);
    EXPECT_TRUE(data.contiguous());
    for (const char* extension : {"", ".bin", ".idx"}) {
      const TokenFile file(tokens_folder / (std::string(name) + extension));
      EXPECT_EQ(file.format(), "Megatron");
      EXPECT_EQ(all_of(file.tokens()), joined);
    }
  }
}

TEST(TokenFile, RefusesDamagedFiles) {
  const auto llmc = [](const char* name) { return refusal_of([&] { LlmcTokens file(tokens_folder / "bad" / name); }); };
  const auto megatron = [](const char* name) {
    return refusal_of([&] { MegatronTokens file(tokens_folder / "bad" / name); });
  };
  EXPECT_THAT(
      llmc("llmc_magic.bin"),
      HasSubstr("llmc_magic.bin] begins with 20240385; a token file of llm.c begins with 20240520 or 20240801"));
  EXPECT_THAT(
      llmc("llmc_short.bin"),
      HasSubstr("says it holds 701 tokens and so should be 2426 bytes long, but is 2424; hint: is the file cut off?"));
  EXPECT_THAT(refusal_of([] { TokenFile file(tokens_folder / "bad/nanogpt_odd.bin"); }),
              HasSubstr("is 3 bytes long, but tokens take two each"));
  EXPECT_THAT(megatron("megatron_magic.idx"), HasSubstr("does not begin with MMIDIDX"));
  EXPECT_THAT(megatron("megatron_version.idx"), HasSubstr("has version 2; only version 1 is known"));
  EXPECT_THAT(megatron("megatron_truncated.idx"),
              HasSubstr("says it holds 7 sequences and 5 document boundaries, which 149 bytes cannot"));
  EXPECT_THAT(megatron("megatron_shortbin.idx"), HasSubstr("sequence 6 is said to be 2 tokens at byte 44, but"));
}

TEST(TokenFile, NamesWhatIsNotThere) {
  Folder dir;
  EXPECT_THAT(refusal_of([&] { TokenFile file(dir / "none.bin"); }),
              HasSubstr("none.bin] cannot be opened: No such file"));
  write_file(dir / "empty.bin", "");
  EXPECT_THAT(refusal_of([&] { TokenFile file(dir / "empty.bin"); }), HasSubstr("empty.bin] is empty"));
  write_file(dir / "a.txt", "some text");
  EXPECT_THAT(refusal_of([&] { TokenFile file(dir / "a.txt"); }), HasSubstr("a.txt] is no token file; hint"));
  write_file(dir / "m.idx", "MMIDIDX");
  EXPECT_THAT(refusal_of([&] { TokenFile file(dir / "m.idx"); }), HasSubstr("m.bin] cannot be opened"));
}

TEST(TokenFile, FindsTokensOutsideTheVocabulary) {
  std::vector<std::uint16_t> tokens(10'000, 3);
  const TokenSpan span{FileType::U16, std::as_bytes(std::span(tokens))};
  EXPECT_EQ(span.first_outside(4), std::nullopt);
  EXPECT_EQ(span.first_outside(3), 0);
  tokens[8191] = 50257;
  EXPECT_EQ(span.first_outside(50257), 8191);
  EXPECT_EQ(span.at(8191), 50257);
  EXPECT_EQ(span.first_outside(50258), std::nullopt);
  const std::int32_t negative[] = {1, -1};
  EXPECT_EQ((TokenSpan{FileType::I32, std::as_bytes(std::span(negative))}).first_outside(10), 1);
}

TEST(TokenFile, RangesBeyondTheEndAreRefused) {
  const NanogptTokens file(tokens_folder / "nanogpt.bin");
  std::vector<std::int32_t> window(10);
  file.tokens().read(990, window);
  EXPECT_EQ(window.back(), integers(*expected().find("nanogpt.bin")->find("tokens")).back());
  EXPECT_EQ(refusal_of([&] { file.tokens().read(991, window); }),
            "[tokens] 10 tokens from position 991 are wanted, but there are 1000");
  EXPECT_NE(refusal_of([&] { file.tokens().read(-1, window); }), "no error");
  EXPECT_NE(refusal_of([&] { file.tokens().at(std::numeric_limits<i64>::max()); }), "no error");
}

TEST(TokenFile, WrittenFilesReadBack) {
  Folder dir;
  const std::vector<std::int32_t> first{0, 1, 65535}, second{7, 50256};
  const std::vector<std::int32_t> both{0, 1, 65535, 7, 50256};
  NanogptWriter nanogpt(dir / "n.bin");
  LlmcWriter narrow(dir / "l16.bin", LlmcKind::narrow), wide(dir / "l32.bin", LlmcKind::wide);
  for (const auto& part : {first, second}) nanogpt.write(part), narrow.write(part), wide.write(part);
  nanogpt.commit(), narrow.commit(), wide.commit();
  EXPECT_EQ(all_of(TokenFile(dir / "n.bin").tokens()), both);
  EXPECT_EQ(TokenFile(dir / "l16.bin").tokens().type, FileType::U16);
  EXPECT_EQ(all_of(TokenFile(dir / "l16.bin").tokens()), both);
  EXPECT_EQ(all_of(TokenFile(dir / "l32.bin").tokens()), both);
  const std::vector<std::int32_t> large{128'000};
  EXPECT_THAT(refusal_of([&] { NanogptWriter(dir / "x").write(large); }),
              HasSubstr("element 0 is 128000, which does not fit U16"));
}

// The files of the oracle, written again from their tokens, are the same bytes.
TEST(TokenFile, WriterGivesTheSameBytes) {
  Folder dir;
  for (const auto& [name, kind] : {std::pair{"llmc_gpt2.bin", LlmcKind::narrow}, {"llmc_llama3.bin", LlmcKind::wide}}) {
    LlmcWriter out(dir / name, kind);
    out.write(integers(*expected().find(name)->find("tokens")));
    out.commit();
    EXPECT_TRUE(MappedFile(dir / name).text() == MappedFile(tokens_folder / name).text()) << name;
  }
}

// Any bytes changed in the index or the tokens: read in full or refused.
TEST(TokenFile, ChangedMegatronIndexesAreReadOrRefused) {
  Folder dir;
  const std::string idx(MappedFile(tokens_folder / "megatron_modes.idx").text()),
      bin(MappedFile(tokens_folder / "megatron_modes.bin").text());
  std::ofstream(dir / "m.bin", std::ios::binary) << bin;
  int refused = 0;
  EXPECT_TRUE(rc::check([&] {
    std::string changed = idx;
    for (int n = *rc::gen::inRange(1, 5); n > 0; --n) {
      const auto at = *rc::gen::inRange<std::size_t>(9, changed.size());
      changed[at] = *rc::gen::element('\0', '\x01', '\x7f', '\x80', '\xff');
    }
    changed.resize(
        *rc::gen::element(changed.size(), changed.size(), changed.size() - 1, std::size_t(40), std::size_t(8)));
    std::ofstream(dir / "m.idx", std::ios::binary) << changed;
    try {
      const MegatronTokens data(dir / "m");
      for (i64 s = 0; s < data.sequences(); ++s) RC_ASSERT(data.sequence(s).size() >= 0);
      RC_ASSERT(data.document_begin(data.documents()) == data.sequences());
    } catch (const Error& error) {
      RC_ASSERT(error.exit_code() == 1);
      ++refused;
    }
  }));
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace stretto
