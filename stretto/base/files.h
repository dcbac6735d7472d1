// What is asked of the file system, in one place: nothing here throws the standard library's exceptions. What is not
// there is an answer; what cannot be known or done (no permission, a link to itself, a name that is too long) is an
// Error of kind input with the path and the system's reason.
//
//   if (is_there(run / "config.toml")) ...
//   for (const std::filesystem::path& entry : entries_of(run / "checkpoints")) ...
#pragma once
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "stretto/base/error.h"
#include "stretto/base/id.h"

namespace stretto {

bool is_there(const std::filesystem::path&);   // whatever it is, and whatever a link leads to
bool is_folder(const std::filesystem::path&);  // or a link to one
bool is_link(const std::filesystem::path&);    // whatever it leads to
bool is_same(const std::filesystem::path&, const std::filesystem::path&);  // one file or folder by two names
bool is_empty_folder(const std::filesystem::path&);                        // false when it is no folder
u64 file_bytes(const std::filesystem::path& file);                         // an Error when there is no file
std::vector<std::filesystem::path> entries_of(
    const std::filesystem::path& folder);  // sorted; of what is no folder: none

// All folders on the way, durably, as a shell's mkdir -p does it: "a/../b" makes a, and is b whatever a is. Says
// whether the last one is new.
bool make_folders(const std::filesystem::path&);
bool make_folders(const std::filesystem::path&, std::error_code& wrong);
void sync_directory(const std::filesystem::path&);  // makes renames in it durable
std::filesystem::path absolute_path(const std::filesystem::path&);
std::string current_folder();                    // for messages: "a folder that is gone" when it is
// For hints: "names are relative to the current directory, /home/you". `beside`: a folder that was looked in, too, for
// names that stand in a run file.
std::string where_names_are(const std::filesystem::path& beside = {});
void remove_tree(const std::filesystem::path&);  // a link goes, what it leads to stays; nothing there is no error

// "[path] cannot be <doing>: <reason>".
Error file_error(const std::filesystem::path&, std::string_view doing, const std::error_code& why);
std::error_code last_error();  // errno

// There is no room for what is to be written, or a quota is used up.
class FullDisk : public Error {
 public:
  explicit FullDisk(Error e) : Error(std::move(e)) {}
};
[[noreturn]] void throw_run_error(Error, const std::error_code& why);  // of kind run; a FullDisk when it is one

}  // namespace stretto
