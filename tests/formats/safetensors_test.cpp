#include "stretto/formats/safetensors.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cstring>

#include "stretto/formats/atomic_file.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/hf_directory.h"
#include "stretto/formats/mapped_file.h"
#include "support/files.h"
#include "support/message.h"

namespace stretto {
namespace {

using test::Folder;
using testing::HasSubstr;
namespace fs = std::filesystem;

const fs::path cases_folder = fs::path(STRETTO_TEST_DATA) / "safetensors_cases";
const fs::path hf_folder = fs::path(STRETTO_TEST_DATA) / "hf";

std::span<const std::byte> bytes_in(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string with_header(std::string_view json, std::string_view data) {
  const u64 length = json.size();
  std::string file(reinterpret_cast<const char*>(&length), 8);
  return file.append(json).append(data);
}

std::string header_refusal(std::string_view json, std::string_view data = "") {
  const std::string file = with_header(json, data);
  return refusal_of([&] { parse_safetensors(bytes_in(file), "f"); });
}

// The reference library's verdicts. We are stricter in two things: a name that stands twice is ambiguous, and 8-bit
// floats have no arithmetic here.
TEST(SafeTensors, VerdictsOfTheReferenceLibrary) {
  const Field verdicts = read_json_file(cases_folder / "verdicts.json");
  ASSERT_EQ(verdicts.find("verdicts")->table()->size(), 25u);
  for (const auto& [name, verdict] : *verdicts.find("verdicts")->table()) {
    const bool strict = name == "duplicate_key" || name == "f8_e4m3";
    const bool accepted = std::get<std::string>(verdict.value) == "accepted" && !strict;
    const fs::path path = cases_folder / (name + ".safetensors");
    const std::string message = refusal_of([&] { SafeTensors file(path); });
    EXPECT_EQ(message == "no error", accepted) << name << ": " << message;
    if (!accepted) {
      EXPECT_THAT(message, HasSubstr(path.string()));
    }
  }
}

TEST(SafeTensors, MessagesSayWhatIsWrong) {
  const auto of = [](const std::string& name) {
    return refusal_of([&] { SafeTensors file(cases_folder / (name + ".safetensors")); });
  };
  EXPECT_THAT(of("hole"),
              HasSubstr("tensor 'b' begins at byte 8, but the one before it ends at 4; hint: tensors must follow"));
  EXPECT_THAT(of("overlap"), HasSubstr("tensor 'b' begins at byte 2, but the one before it ends at 4"));
  EXPECT_THAT(of("trailing_bytes"),
              HasSubstr("tensors take 4 bytes, but 5 follow the header; hint: is something appended"));
  EXPECT_THAT(of("short_body"), HasSubstr("tensors take 4 bytes, but 3 follow the header; hint: is the file cut off?"));
  EXPECT_THAT(of("size_mismatch"), HasSubstr("tensor 'a' F32 [1] takes 4 bytes, but its offsets are 0 to 8"));
  EXPECT_THAT(of("negative_offset"), HasSubstr("'data_offsets' of tensor 'a' holds -4, which is negative"));
  EXPECT_THAT(of("header_length_huge"),
              HasSubstr("claims a header of 9223372036854775808 bytes; the format allows 100000000"));
  EXPECT_THAT(of("header_length_past_end"), HasSubstr("claims a header of 4096 bytes, but only 58 follow"));
  EXPECT_THAT(of("header_not_json"), HasSubstr("is not JSON"));
  EXPECT_THAT(of("duplicate_key"), HasSubstr("key 'a' stands twice"));
  EXPECT_THAT(of("unknown_dtype"),
              HasSubstr("tensor 'a' has the element type 'Q7', which is not supported; hint: supported are BOOL"));
  EXPECT_THAT(of("missing_shape"), HasSubstr("tensor 'a' has no 'shape'"));
  EXPECT_THAT(of("empty_file"), HasSubstr("is 0 bytes long"));
}

TEST(SafeTensors, RefusesMalformedHeaders) {
  EXPECT_THAT(header_refusal("[]"), HasSubstr("the header is an array, not an object"));
  EXPECT_THAT(header_refusal("3"), HasSubstr("the header is a number, not an object"));
  EXPECT_THAT(header_refusal(R"({"a":3})"), HasSubstr("'a' in the header is a number, not an object"));
  EXPECT_THAT(header_refusal(R"({"__metadata__":{"k":3}})"), HasSubstr("metadata 'k' is a number, not a string"));
  EXPECT_THAT(header_refusal(R"({"__metadata__":{"k":{}}})"), HasSubstr("metadata 'k' is an object, not a string"));
  EXPECT_THAT(header_refusal(R"({"a":{"dtype":7,"shape":[],"data_offsets":[0,4]}})"),
              HasSubstr("'dtype' of tensor 'a' is a number"));
  EXPECT_THAT(header_refusal(R"({"a":{"dtype":"F32","shape":{},"data_offsets":[0,4]}})"),
              HasSubstr("'shape' of tensor 'a' is an object"));
  EXPECT_THAT(header_refusal(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})"),
              HasSubstr("'shape' of tensor 'a' holds a number that"));
  EXPECT_THAT(header_refusal(R"({"a":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})"),
              HasSubstr("'shape' of tensor 'a' holds an array"));
  EXPECT_THAT(header_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})"),
              HasSubstr("has no complete 'data_offsets'"));
  EXPECT_THAT(header_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})"),
              HasSubstr("more than two numbers"));
  EXPECT_THAT(header_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})"),
              HasSubstr("offsets are 4 to 0"));
  EXPECT_THAT(header_refusal(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"),
              HasSubstr("is larger than any memory"));
  EXPECT_THAT(header_refusal(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})"),
              HasSubstr("no 64-bit integer"));
  EXPECT_THAT(header_refusal("{\"\xff\":{}}"), HasSubstr("is not UTF-8"));
  std::string ones = "1";
  for (int i = 0; i < 40; ++i) ones += ",1";
  EXPECT_THAT(header_refusal(fmt::format(R"({{"a":{{"dtype":"F32","shape":[{}],"data_offsets":[0,4]}}}})", ones)),
              HasSubstr("more than 32 dimensions"));
  std::string deep(100'000, '[');
  EXPECT_THAT(header_refusal(R"({"a":{"x":)" + deep), HasSubstr("nests deeper than 64 levels"));
}

TEST(SafeTensors, SkipsFieldsItDoesNotKnow) {
  const std::string file = with_header(
      R"({"a":{"x":{"dtype":["Q"],"shape":{"k":[{}]}},"dtype":"U8","y":[[1],{"z":null}],"shape":[2],"data_offsets":[0,2],"w":-1.5}})",
      "\x01\x02");
  const auto header = parse_safetensors(bytes_in(file), "f");
  EXPECT_EQ(values<std::int32_t>(header.tensors.at("a")), (std::vector<std::int32_t>{1, 2}));
}

TEST(SafeTensors, ReadsNamesScalarsAndEmptyTensors) {
  const SafeTensors unicode(cases_folder / "ok_unicode_name.safetensors");
  EXPECT_EQ(unicode.tensors().begin()->first, "gewicht/ä 😀\n");
  const SafeTensors both(cases_folder / "ok_scalar_and_empty.safetensors");
  EXPECT_TRUE(both.at("s").shape.empty());
  EXPECT_EQ(values<float>(both.at("s")), std::vector<float>{1});
  EXPECT_EQ(both.at("z").shape, (std::vector<i64>{0, 3}));
  EXPECT_EQ(values<float>(both.at("z")).size(), 0u);
  const SafeTensors swapped(cases_folder / "ok_order_in_file_differs_from_header.safetensors");
  EXPECT_EQ(values<float>(swapped.at("a")), std::vector<float>{1});
  EXPECT_EQ(values<float>(swapped.at("b")), std::vector<float>{2});
  EXPECT_EQ(SafeTensors(cases_folder / "ok_metadata_only.safetensors").metadata().at("k"), "v");
}

TEST(SafeTensors, WriterGivesTheGoldenBytes) {
  Folder dir;
  const float one = 1;
  write_safetensors(dir / "a", {{"a", FileType::F32, {1}, std::as_bytes(std::span(&one, 1))}});
  EXPECT_EQ(MappedFile(dir / "a").text(), MappedFile(cases_folder / "ok_golden.safetensors").text());
}

// What the library wrote, read and written again, is the same file byte for byte.
TEST(SafeTensors, RewritesTheFilesOfTheLibraryUnchanged) {
  Folder dir;
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(hf_folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const SafeTensors file(entry.path());
    std::vector<NamedTensor> tensors;
    for (const auto& [name, t] : file.tensors()) tensors.push_back({name, t.type, t.shape, t.bytes});
    std::reverse(tensors.begin(), tensors.end());
    write_safetensors(dir / "copy", tensors, file.metadata());
    EXPECT_EQ(MappedFile(dir / "copy").text(), MappedFile(entry.path()).text()) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 16);
}

TEST(SafeTensors, WriterRefusesWhatItCouldNotReadBack) {
  Folder dir;
  const float one = 1;
  const auto bytes = std::as_bytes(std::span(&one, 1));
  const auto refused = [&](std::vector<NamedTensor> tensors) {
    return refusal_of([&] { write_safetensors(dir / "a", tensors); });
  };
  EXPECT_THAT(refused({{"a", FileType::F32, {2}, bytes}}), HasSubstr("tensor 'a' F32 [2] takes 8 bytes, but"));
  EXPECT_THAT(refused({{"a", FileType::F32, {1}, bytes}, {"a", FileType::U8, {4}, bytes}}),
              HasSubstr("tensor 'a' is given twice"));
  EXPECT_THAT(refused({{"__metadata__", FileType::F32, {1}, bytes}}), HasSubstr("cannot be a tensor's name"));
  EXPECT_THAT(refused({{"\xff", FileType::F32, {1}, bytes}}), HasSubstr("'\\xff' cannot be a tensor's name"));
  EXPECT_TRUE(fs::is_empty(dir.str()));
}

TEST(SafeTensors, ANameThatIsMissingIsNamedWithTheNearest) {
  const SafeTensors file(hf_folder / "gpt2/model/model.safetensors");
  const std::string message = refusal_of([&] { file.at("transformer.h.0.ln_1.wieght"); });
  EXPECT_THAT(message,
              HasSubstr("has no tensor 'transformer.h.0.ln_1.wieght'; hint: it has 'transformer.h.0.ln_1.weight'"));
}

// Random tensors of all types survive; the order of the list does not matter.
TEST(SafeTensors, RandomFilesRoundTrip) {
  EXPECT_TRUE(rc::check([&] {
    const auto names = *rc::gen::unique<std::vector<std::string>>(
        rc::gen::container<std::string>(rc::gen::element('a', 'B', '.', '"', '\\', '\n', ' ', '\x01', '/')));
    std::vector<std::vector<std::byte>> data;
    std::vector<NamedTensor> tensors;
    for (const auto& name : names) {
      const FileType type{std::uint8_t(*rc::gen::inRange(0, 13))};
      const auto shape = *rc::gen::container<std::vector<i64>>(*rc::gen::inRange(0, 4), rc::gen::inRange<i64>(0, 5));
      std::size_t bytes = size_of(type);
      for (const i64 n : shape) bytes *= std::size_t(n);
      data.push_back(*rc::gen::container<std::vector<std::byte>>(
          bytes, rc::gen::map(rc::gen::inRange(0, 256), [](int b) { return std::byte(b); })));
      tensors.push_back({name, type, shape, {}});
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].bytes = data[i];
    Metadata metadata;
    if (*rc::gen::arbitrary<bool>()) metadata["step"] = "7";
    const SafeTensorsPlan plan = plan_safetensors(tensors, metadata);
    std::string text = plan.head;
    for (const std::size_t i : plan.order)
      text.append(reinterpret_cast<const char*>(tensors[i].bytes.data()), tensors[i].bytes.size());
    const auto file = parse_safetensors(bytes_in(text), "f");
    RC_ASSERT(file.metadata == metadata);
    RC_ASSERT(file.tensors.size() == tensors.size());
    for (const auto& t : tensors) {
      const StoredTensor& read = file.tensors.at(t.name);
      RC_ASSERT(read.type == t.type);
      RC_ASSERT(read.shape == t.shape);
      RC_ASSERT(std::equal(read.bytes.begin(), read.bytes.end(), t.bytes.begin(), t.bytes.end()));
      RC_ASSERT((reinterpret_cast<const char*>(read.bytes.data()) - text.data()) % std::ptrdiff_t(size_of(t.type)) ==
                0);
    }
  }));
}

TEST(HfWeights, ReadsOneFile) {
  const HfWeights weights(hf_folder / "llama/model");
  EXPECT_EQ(weights.tensors().size(), 30u);
  EXPECT_EQ(weights.at("lm_head.weight").str(), "F32 [256, 64]");
}

TEST(HfWeights, ShardsReadBackAndOldOnesGo) {
  Folder dir;
  const HfWeights whole(hf_folder / "gpt2/model");
  std::vector<NamedTensor> tensors;
  for (const auto& [name, t] : whole.tensors()) tensors.push_back({name, t.type, t.shape, t.bytes});
  const auto same = [&] {
    const HfWeights weights(dir.str());
    ASSERT_EQ(weights.tensors().size(), whole.tensors().size());
    for (const auto& [name, t] : whole.tensors())
      EXPECT_TRUE(
          std::equal(t.bytes.begin(), t.bytes.end(), weights.at(name).bytes.begin(), weights.at(name).bytes.end()))
          << name;
  };
  write_hf_weights(dir.str(), tensors, 100'000);
  EXPECT_TRUE(fs::exists(dir / "model-00001-of-00007.safetensors"));
  EXPECT_FALSE(fs::exists(dir / "model.safetensors"));
  same();
  write_hf_weights(dir.str(), tensors, 200'000);
  EXPECT_FALSE(fs::exists(dir / "model-00001-of-00007.safetensors"));
  EXPECT_TRUE(fs::exists(dir / "model-00001-of-00003.safetensors"));
  same();
  write_hf_weights(dir.str(), tensors);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.str()), fs::directory_iterator()), 1);
  same();
}

TEST(HfWeights, NamesWhatIsMissing) {
  Folder dir;
  const std::vector<float> w{1, 2};
  const auto bytes = std::as_bytes(std::span(w));
  const auto refused = [&] { return refusal_of([&] { HfWeights weights(dir.str()); }); };
  EXPECT_THAT(refused(), HasSubstr("holds neither model.safetensors nor model.safetensors.index.json"));
  EXPECT_THAT(refusal_of([&] { HfWeights weights(dir / "none"); }), HasSubstr("is not a directory"));
  write_hf_weights(
      dir.str(), {{"a", FileType::F32, {2}, bytes}, {"b", FileType::F32, {2}, bytes}, {"c", FileType::F32, {2}, bytes}},
      8);
  fs::remove(dir / "model-00002-of-00003.safetensors");
  fs::copy_file(dir / "model-00001-of-00003.safetensors", dir / "model-00003-of-00003.safetensors",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(refused(),
              testing::AllOf(HasSubstr("model-00002-of-00003.safetensors] is missing, but the index names it"),
                             HasSubstr("model-00003-of-00003.safetensors] has no tensor 'c', but the index says so")));
  const auto index = [&](std::string_view text) { write_file(dir / "model.safetensors.index.json", text); };
  index(R"({"weight_map":{"a":"../secret"}})");
  EXPECT_THAT(refused(), HasSubstr("index.json:1] 'a' is said to be in \"../secret\", which is no file name"));
  index(R"({"weight_map":{"a":3}})");
  EXPECT_THAT(refused(), HasSubstr("'a' is said to be in 3, which is no file name"));
  index(R"({"weight":{}})");
  EXPECT_THAT(refused(), HasSubstr("has no table 'weight_map'"));
  index("{");
  EXPECT_THAT(refused(), HasSubstr("is not JSON"));
}

}  // namespace
}  // namespace stretto
