#include "stretto/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/base/files.h"

namespace stretto {
namespace {

// Every file that is mapped, by where it begins.
class Mappings {
 public:
  static Mappings& all() {
    static Mappings* const one = new Mappings;  // never goes away: files of static variables may outlive it
    return *one;
  }
  void add(const std::byte* data, std::size_t size, const std::filesystem::path& path) {
    const std::lock_guard lock(mutex_);
    files_[data] = {size, path.string()};
  }
  void remove(const std::byte* data) {
    const std::lock_guard lock(mutex_);
    files_.erase(data);
  }
  std::string at(const std::byte* address) {  // "" when it is in none
    const std::lock_guard lock(mutex_);
    auto it = files_.upper_bound(address);
    if (it == files_.begin()) return "";
    --it;
    return std::size_t(address - it->first) < it->second.first ? it->second.second : "";
  }
  void advise(std::function<std::string()> f) {
    const std::lock_guard lock(mutex_);
    advice_ = std::move(f);
  }
  std::string advice() {
    std::unique_lock lock(mutex_);
    const std::function<std::string()> f = advice_;
    lock.unlock();  // it may look at files
    return f ? f() : "a run goes on from its newest checkpoint with --resume";
  }

 private:
  std::mutex mutex_;
  std::map<const std::byte*, std::pair<std::size_t, std::string>> files_;
  std::function<std::string()> advice_;
};

// Comes out of a read of mapped memory, never out of the midst of an allocation or of Mappings: all of the library may
// be used here.
void bus_error(int number, siginfo_t* about, void*) {
  const std::string file = Mappings::all().at(static_cast<const std::byte*>(about->si_addr));
  if (file.empty()) {  // nothing of ours: as if this had not been here
    std::signal(number, SIG_DFL);
    return;
  }
  const std::string text = fmt::format(
      "[{}] has been cut off, or cannot be read any more, while it is in use; hint: bring the whole file back; {}\n",
      file, Mappings::all().advice());
  [[maybe_unused]] const ssize_t said = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(int(Error::Kind::run));
}

// The system's fault, or the file's.
Error failed(const std::filesystem::path& path, std::string_view doing, int why) {
  Error e(path.string(), "cannot be {}: {}", doing, std::strerror(why));
  for (const int scarce : {ENOMEM, EMFILE, ENFILE, EAGAIN})
    if (why == scarce) return std::move(e).as(Error::Kind::run);
  return e;
}

Error not_opened(const std::filesystem::path& path, int why) {
  Error e = failed(path, "opened", why);
  if (why == EACCES) return std::move(e).hint("allow reading it and the directories it is in (chmod), or name a copy");
  if (why != ENOENT || path.is_absolute()) return e;
  return std::move(e).hint("{}", where_names_are());
}

}  // namespace

void report_cut_files() {
  struct sigaction action {};
  action.sa_sigaction = bus_error;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

CutFileAdvice::CutFileAdvice(std::function<std::string()> f) { Mappings::all().advise(std::move(f)); }
CutFileAdvice::~CutFileAdvice() { Mappings::all().advise({}); }

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe is refused, not waited for
  if (!file) throw not_opened(path, errno);
  struct stat info {};
  const bool known = ::fstat(file.get(), &info) == 0;
  void* data = nullptr;
  if (known && S_ISREG(info.st_mode) && info.st_size > 0) {
    data = ::mmap(nullptr, std::size_t(info.st_size), PROT_READ, MAP_PRIVATE, file.get(), 0);
  }
  if (!known || data == MAP_FAILED) throw failed(path, "read", errno);
  if (!S_ISREG(info.st_mode))
    throw Error(path.string(), "is {}, not a file",
                S_ISDIR(info.st_mode)    ? "a directory"
                : S_ISFIFO(info.st_mode) ? "a pipe"
                                         : "a device")
        .hint("{}", S_ISDIR(info.st_mode) ? "name a file in it" : "write what it gives into a file first");
  data_ = static_cast<const std::byte*>(data);
  size_ = std::size_t(info.st_size);
  if (data_) Mappings::all().add(data_, size_, path_);
}

MappedFile::~MappedFile() {
  if (!data_) return;
  Mappings::all().remove(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

}  // namespace stretto
