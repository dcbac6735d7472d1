#include "stretto/data/documents.h"

#include <algorithm>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/id.h"
#include "stretto/base/text.h"
#include "stretto/formats/fields.h"
#include "stretto/formats/gzip.h"
#include "stretto/formats/mapped_file.h"
#include "stretto/formats/utf8.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t looked_at = 1 << 20;  // bytes
constexpr u64 longest_line = u64(1) << 30;  // of a compressed file, whose size says little
constexpr std::size_t few_bad = 16;         // bytes that are not UTF-8 and may be a slip

struct Magic {
  std::string_view begins, what, hint;
};
constexpr Magic magics[] = {
    {"\x1f\x8b", "is compressed with gzip", "give it a name that ends with .gz (.jsonl.gz: a document per line)"},
    {"PAR1", "is a Parquet file",
     "make a .jsonl.gz of it: pip install pandas pyarrow && python3 -c \"import pandas; "
     "pandas.read_parquet('FILE').to_json('FILE.jsonl.gz', orient='records', lines=True)\""},
    {"\x28\xb5\x2f\xfd", "is compressed with zstd", "unpack it: zstd -d FILE"},
    {"BZh", "is compressed with bzip2", "unpack it: bunzip2 FILE"},
    {std::string_view("\xfd"
                      "7zXZ\0",
                      6),
     "is compressed with xz", "unpack it: unxz FILE"},
    {"PK\x03\x04", "is a zip archive", "unpack it: unzip FILE"},
    {"ARROW1", "is an Arrow file", "write its texts as .jsonl, a document per line"},
};

fs::path stem_of(const fs::path& file) { return is_compressed(file) ? file.stem() : file.filename(); }

// The hint as a command to copy: FILE is this one.
std::string with_name(std::string_view hint, const fs::path& file) {
  std::string text(hint);
  for (std::size_t at = text.find("FILE"); at != text.npos; at = text.find("FILE", at + file.string().size()))
    text.replace(at, 4, file.string());
  return text;
}

void look_at(const fs::path& file, std::string_view text) {
  for (const Magic& m : magics)
    if (text.starts_with(m.begins))
      throw Error(file.string(), "{} and not text", m.what).hint("{}", with_name(m.hint, file));
  if (stem_of(file).extension() == ".json")
    throw Error(file.string(), "is JSON and not text")
        .hint("{}",
              with_name(
                  "make a list a .jsonl, an object per line: jq -c '.[]' FILE > FILEl; data.format = \"text\" takes a "
                  "file as it is",
                  file));
  text = text.substr(0, looked_at);
  if (const std::size_t at = text.find('\0'); at != text.npos)
    throw Error(file.string(), "has a NUL byte at {} and so is not text", at)
        .hint(
            "is it a token file? data.format can name its format. UTF-16 becomes UTF-8 with: iconv -f UTF-16 -t UTF-8");
  std::size_t bad = 0, first = 0;
  for (std::size_t done = 0; done < text.size(); ++bad) {
    const auto at = first_bad_utf8(text.substr(done));
    if (!at || text.size() - done - *at < 4) break;  // what is cut off at the end does not count
    if (bad == 0) first = *at;
    done += *at + 1;
  }
  if (bad > few_bad && bad > text.size() / 100)
    throw Error(file.string(), "is not UTF-8: {} of its first {} bytes are not, the first at {}", bad, text.size(),
                first)
        .hint("convert it, e.g. iconv -f LATIN1 -t UTF-8; data.format = \"text\" takes a file as it is");
}

// One line after the other, each without its end; done: bytes of the file.
class Lines {
 public:
  Lines(const fs::path& file, const std::function<void(std::string_view line, std::size_t done)>& use)
      : file_(file), use_(use) {}

  void run() { is_compressed(file_) ? compressed() : plain(); }

 private:
  void plain() {
    const MappedFile mapped(file_);
    const std::string_view text = mapped.text();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::size_t next = std::min(end + 1, text.size());
      use_(text.substr(at, end - at), next);
      at = next;
    }
  }

  void compressed() {
    GzipReader reader(file_);
    std::string text;
    std::size_t looked = 0;  // no line ends before
    while (reader.read(text)) {
      std::size_t at = 0;
      for (std::size_t end = text.find('\n', looked); end != text.npos; end = text.find('\n', at)) {
        use_(std::string_view(text).substr(at, end - at), reader.done());
        at = end + 1;
      }
      text.erase(0, at);
      looked = text.size();
      if (text.size() > longest_line)
        throw Error(file_.string(), "has a line of more than {}", human_bytes(longest_line))
            .hint("is it a file with a document per line?");
    }
    if (!text.empty()) use_(text, reader.done());
  }

  const fs::path& file_;
  const std::function<void(std::string_view, std::size_t)>& use_;
};

void unpack_text(const fs::path& file, const std::function<void(const DocumentPart&)>& use) {
  GzipReader reader(file);
  std::string text;
  for (bool more = true; more; text.clear()) {
    more = reader.read(text);
    use({.text = text, .last = !more, .done = reader.done()});
  }
}

Field object_of(std::string_view line, const std::string& where) {
  try {
    return read_json(line, where);
  } catch (const Error& e) {
    throw Error(where, "{}", e.faults().front().what)
        .hint("every line of a .jsonl file is one JSON object, e.g. {{\"text\": \"Once upon a time\"}}");
  }
}

// Lines that are not blank, as JSON.
void lines_of(const fs::path& file, const std::function<void(const Field& object, std::string_view line,
                                                             const std::string& where, std::size_t done)>& use) {
  std::size_t number = 0;
  Lines(file, [&](std::string_view line, std::size_t done) {
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) return;
    const std::string where = fmt::format("{}:{}", file.string(), number);
    use(object_of(line, where), line, where, done);
  }).run();
}

std::string keys_text(const Field& object) {
  std::vector<std::string> keys;
  for (const Member& m : object.table() ? *object.table() : Field::Table())
    if (keys.size() < 8) keys.push_back(fmt::format("'{}'", m.key));
  return keys.empty() ? "" : ", but " + join(keys, ", ");
}

}  // namespace

bool is_compressed(const fs::path& file) { return file.extension() == ".gz"; }
bool has_lines(const fs::path& file) { return stem_of(file).extension() == ".jsonl"; }

void need_lines_for(const std::string& field, std::span<const fs::path> files) {
  if (field == usual_field || std::any_of(files.begin(), files.end(), has_lines)) return;
  throw Error("data", "the field '{}' is asked for, and only lines of .jsonl files have fields: {}", field,
              files.size() == 1 ? fmt::format("'{}' is none", files[0].string())
                                : fmt::format("none of the {} files is one", files.size()))
      .hint("leave the field out to take each file as one text, or name .jsonl files");
}

void need_text(const fs::path& file) {
  if (!is_compressed(file)) {
    const MappedFile mapped(file);
    return look_at(file, mapped.text());
  }
  std::string begin;
  for (GzipReader reader(file); begin.size() < looked_at && reader.read(begin);) {
  }
  look_at(file, begin);
}

void each_document(const fs::path& file, const std::string& field,
                   const std::function<void(const DocumentPart&)>& use) {
  if (!has_lines(file)) {
    if (is_compressed(file)) return unpack_text(file, use);
    const MappedFile mapped(file);
    return use({.text = mapped.text()});
  }
  lines_of(file, [&](const Field& document, std::string_view, const std::string& where, std::size_t done) {
    const Field* found = document.find(field);
    const auto* words = found ? std::get_if<std::string>(&found->value) : nullptr;
    if (!words)
      throw Error(where, "{}",
                  found ? fmt::format("'{}' is {} and not text", field, found->kind())
                        : fmt::format("has no key '{}'{}", field, keys_text(document)))
          .hint("{}", document.find("messages")
                          ? "for conversations write data.field = \"messages\" in the run, or eval --field messages"
                          : "name the key that holds the text: stretto data tokenize --key, or data.field of a run");
    use({.text = *words, .done = done});
  });
}

void each_line(const fs::path& file,
               const std::function<void(const Field&, std::string_view, const std::string&)>& use) {
  lines_of(file, [&](const Field& object, std::string_view line, const std::string& where, std::size_t) {
    use(object, line, where);
  });
}

}  // namespace stretto
