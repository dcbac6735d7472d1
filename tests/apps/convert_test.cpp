// Hugging Face directories and checkpoints into each other, on the command line.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "stretto/formats/fields.h"
#include "stretto/formats/hf_directory.h"
#include "stretto/models/hf.h"
#include "support/command.h"
#include "support/files.h"

namespace stretto::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string data_folder = STRETTO_TEST_DATA;

class Convert : public testing::Test {
 protected:
  Result convert(const std::string& arguments) const { return stretto("convert " + arguments, folder_.str()); }
  static void expect_same(const fs::path& a, const fs::path& b) {
    const HfModel x = load_hf(a), y = load_hf(b);
    EXPECT_EQ(x.config, y.config);
    ASSERT_EQ(x.weights.size(), y.weights.size());
    for (const auto& [name, value] : x.weights) EXPECT_EQ(value.bytes, y.weights.at(name).bytes) << name;
  }
  Folder folder_;
};

TEST_F(Convert, ThereAndBackForEveryModelType) {
  std::vector<fs::path> all{data_folder + "/hf/gpt2/model", data_folder + "/hf/llama/model",
                            data_folder + "/hf/mixtral/model"};
  for (const auto& e : fs::directory_iterator(data_folder + "/hf_relatives"))
    if (e.is_directory()) all.push_back(e.path());
  EXPECT_EQ(all.size(), 12u);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string n = std::to_string(i);
    Result r = convert(all[i].string() + " c" + n);
    ASSERT_EQ(r.code, 0) << all[i] << r.error;
    EXPECT_THAT(r.out, HasSubstr("-> checkpoint c" + n));
    r = convert("c" + n + " h" + n);
    ASSERT_EQ(r.code, 0) << all[i] << r.error;
    EXPECT_THAT(r.out, HasSubstr("-> Hugging Face directory h" + n));
    expect_same(all[i], folder_ / ("h" + n));
  }
}

TEST_F(Convert, WhatIsInF64StaysInF64) {
  ASSERT_EQ(convert(data_folder + "/hf/gpt2/model c").code, 0);
  ASSERT_EQ(convert("c wide --dtype f64").code, 0);
  // Weights that f32 does not have.
  HfModel third = load_hf(folder_ / "wide", f64);
  for (auto& [name, value] : third.weights) reinterpret_cast<double*>(value.bytes.data())[0] = 1.0 / 3;
  fs::create_directory(folder_ / "third");
  save_hf(folder_ / "third", third.config, third.weights, {.stored = FileType::F64});
  ASSERT_EQ(convert("third again").code, 0);
  ASSERT_EQ(convert("again back").code, 0);
  const HfModel back = load_hf(folder_ / "back", f64);
  for (const auto& [name, value] : third.weights) EXPECT_EQ(value.bytes, back.weights.at(name).bytes) << name;
}

TEST_F(Convert, ShardsTypesAndTheFilesBesideTheWeights) {
  fs::copy(data_folder + "/hf/llama/model", folder_ / "hf");
  folder_.write("hf/tokenizer.json", "{\"a\": 1}");
  folder_.write("hf/notes.txt", "not the model's");
  ASSERT_EQ(convert("hf c").code, 0);
  ASSERT_EQ(convert("c small --shard-size 100KB --dtype bf16").code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "small/model.safetensors.index.json"));
  EXPECT_EQ(text_of(folder_ / "small/tokenizer.json"), "{\"a\": 1}");
  EXPECT_TRUE(fs::exists(folder_ / "small/generation_config.json"));
  EXPECT_FALSE(fs::exists(folder_ / "small/notes.txt"));
  const HfWeights small(folder_ / "small");
  for (const auto& [name, t] : small.tensors()) EXPECT_EQ(t.type, FileType::BF16) << name;
  // What was rounded once stays as it is.
  ASSERT_EQ(convert("small c2").code, 0);
  ASSERT_EQ(convert("c2 again --dtype bf16").code, 0);
  expect_same(folder_ / "small", folder_ / "again");
  ASSERT_EQ(convert("c half --dtype f16").code, 0);
  EXPECT_EQ(load_hf(folder_ / "half").stored, FileType::F16);
}

// Files have the head in one, whatever the run had that came from them and went to them. A step so small that the
// weights stay what they were.
TEST_F(Convert, HeadsInParts) {
  folder_.write("a.txt", std::string(2000, 'a'));
  for (const char* type : {"gpt2", "llama"}) {
    const std::string model = data_folder + "/hf/" + type + "/model", run = std::string("run-") + type,
                      back = std::string("back-") + type;
    const Result r =
        stretto("train --model.from=" + model +
                    " --model.head_parts=3 --data.path=a.txt --data.tokenizer=bytes "
                    "--data.validation=0 --train.batch=2 --train.steps=1 --optimizer.lr=1e-30 --optimizer.decay=0 "
                    "--parallel.pipe=2 --checkpoint.every=1 --log.dir=" +
                    run,
                folder_.str());
    ASSERT_EQ(r.code, 0) << r.error;
    ASSERT_EQ(convert(run + " " + back).code, 0);
    expect_same(model, folder_ / back);
    const auto said = [&](const std::string& command) {
      const Result x = stretto(command, folder_.str());
      EXPECT_EQ(x.code, 0) << x.error;
      return x.out;
    };
    const std::string tokens = " --prompt abc --tokens 5 --seed 1", text = " --data a.txt --plain";
    EXPECT_EQ(said("generate " + run + tokens), said("generate " + back + tokens));
    const auto loss = [&](const std::string& of) {
      const std::string table = said("eval " + of + text);
      return std::stod(table.substr(table.find('\n') + 1));
    };
    EXPECT_NEAR(loss(run), loss(back), 1e-6 * loss(back));
  }
}

// Where only config.json says them, they come out in both files; a tokenizer's own end is taken where nobody says one.
TEST_F(Convert, WeightsOf16BitsAreTrainedInATypeThatIsSaid) {
  folder_.write("a.txt", std::string(1000, 'a'));
  ASSERT_EQ(convert(data_folder + "/hf/llama/model c").code, 0);
  ASSERT_EQ(convert("c narrow --dtype bf16").code, 0);
  ASSERT_EQ(convert("c wide").code, 0);
  const auto check = [&](const std::string& arguments) {
    const Result r = stretto("check --data.path=a.txt --model.context=16 " + arguments, folder_.str());
    EXPECT_EQ(r.code, 0) << r.error;
    return r.out;
  };
  const auto note = HasSubstr(
      "note     the weights in 'narrow' have 16 bits, and the run computes in f32; hint: "
      "train.dtype = \"bf16\"");
  EXPECT_THAT(check("--model.from=narrow"), note);
  EXPECT_THAT(check("--model.from=narrow --train.dtype=bf16"), testing::Not(HasSubstr("16 bits")));
  EXPECT_THAT(check("--model.from=wide"), testing::Not(HasSubstr("16 bits")));
}

TEST_F(Convert, TokensThatEndATextAreKept) {
  fs::copy(data_folder + "/hf/llama/model", folder_ / "hf");
  fs::remove(folder_ / "hf/generation_config.json");
  Field config = read_json_file(folder_ / "hf/config.json");
  config.set("bos_token_id", Field(1));
  config.set("eos_token_id", Field(Field::Array{Field(2), Field(7)}));
  folder_.write("hf/config.json", write_json(config));
  ASSERT_EQ(convert("hf c").code, 0);
  ASSERT_EQ(convert("c back").code, 0);
  for (const char* file : {"back/config.json", "back/generation_config.json"}) {
    const Field said = read_json_file(folder_ / file);
    EXPECT_EQ(said.find("bos_token_id")->str(), "1") << file;
    EXPECT_EQ(said.find("eos_token_id")->str(), "[2, 7]") << file;
  }
  folder_.write("text.txt", "a text of words and words and words");
  ASSERT_EQ(stretto("data train-bpe text.txt --vocab 260 --special '<s>' --special '</s>' --out tokenizer.json",
                    folder_.str())
                .code,
            0);
  config.set("eos_token_id", Field());
  folder_.write("hf/config.json", write_json(config));
  fs::copy(folder_ / "tokenizer.json", folder_ / "hf/tokenizer.json");
  ASSERT_EQ(convert("hf c2").code, 0);
  ASSERT_EQ(convert("c2 back2").code, 0);
  EXPECT_EQ(read_json_file(folder_ / "back2/config.json").find("eos_token_id")->str(), "1");
}

TEST_F(Convert, WhatCannotBeWrittenLeavesNothingBehind) {
  ASSERT_EQ(convert(data_folder + "/hf/llama/model c").code, 0);
  const Result r =
      shell("ulimit -f 16; '" + binaries() + "/stretto' convert c parts/out --shard-size 8KB", folder_.str());
  EXPECT_EQ(r.code, 3);
  EXPECT_THAT(r.error, HasSubstr("cannot be written: File too large"));
  EXPECT_TRUE(fs::is_empty(folder_ / "parts"));
}

TEST_F(Convert, MistakesAreNamed) {
  Result r = convert("none c");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("[none] is not a directory; hint: give a Hugging Face directory, a checkpoint or"));
  fs::create_directory(folder_ / "empty");
  r = convert("empty c");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("[empty] is neither a Hugging Face directory (config.json), nor a checkpoint"));
  fs::copy(data_folder + "/hf/gpt2/model", folder_ / "hf");
  ASSERT_EQ(convert("hf c").code, 0);
  r = convert("hf c");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("'c' exists and is not empty"));
  EXPECT_THAT(convert("c other --base hf").error, HasSubstr("[c] is no adapter, and a base is given: 'hf'; hint: "));
  EXPECT_EQ(convert("hf other --dtype bf16").code, 2);
  EXPECT_EQ(convert("c other --dtype int8").code, 2);
  EXPECT_EQ(convert("c").code, 2);
  folder_.write("c/shard-00001.safetensors", "damaged");
  r = convert("c other");
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.error, HasSubstr("shard-00001.safetensors] is 7 bytes long"));
  folder_.write("hf/config.json", "{\"model_type\": \"mamba\"}");
  EXPECT_THAT(convert("hf x").error, HasSubstr("mamba"));
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

// Only where there is a python with transformers: STRETTO_PYTHON names it.
TEST_F(Convert, TransformersLoadsWhatIsExported) {
  const char* named = std::getenv("STRETTO_PYTHON");
  const std::string python = named ? named : "python3";
  if (shell(python + " -c 'import torch, transformers'", "/").code != 0) GTEST_SKIP() << "no transformers";
  for (const char* model : {"hf/gpt2/model", "hf/llama/model", "hf/mixtral/model", "hf_relatives/qwen2",
                            "hf_relatives/qwen3", "hf_relatives/mistral", "hf_relatives/llama_llama3"}) {
    ASSERT_EQ(convert(data_folder + "/" + model + " c").code, 0);
    ASSERT_EQ(convert("c out --shard-size 100KB").code, 0);
    const Result r =
        shell(python + " - '" + data_folder + "/" + model +
                  "' out <<'E'\n"
                  "import sys, torch\n"
                  "from transformers import AutoModelForCausalLM\n"
                  "a, b = (AutoModelForCausalLM.from_pretrained(d, dtype=torch.float32) for d in sys.argv[1:])\n"
                  "ids = torch.arange(24).reshape(2, 12) * 7 % a.config.vocab_size\n"
                  "d = (a(ids).logits - b(ids).logits).abs().max().item()\n"
                  "assert d <= 1e-5, d\n"
                  "E",
              folder_.str());
    EXPECT_EQ(r.code, 0) << model << r.error;
    fs::remove_all(folder_ / "c");
    fs::remove_all(folder_ / "out");
  }
}

}  // namespace
}  // namespace stretto::test
