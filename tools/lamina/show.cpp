#include "lamina/show.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string_view>

#include "interface/json/json.h"
#include "interface/json/measured_times.h"
#include "interface/status.h"
#include "lamina/files.h"
#include "pictures/dot.h"
#include "pictures/page.h"
#include "pictures/words.h"

namespace lamina::driver {
namespace {

namespace fs = std::filesystem;

// The path at which the shell would find a program; "" if there is none.
std::string program_in_path(const std::string& name) {
  const char* const folders = std::getenv("PATH");
  for (std::string_view rest = folders == nullptr ? "" : folders; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    const std::string program = join(folder.empty() ? "." : folder, "/", name);
    if (::access(program.c_str(), X_OK) == 0 && !is_directory(program)) return program;
  }
  return "";
}

std::string quoted_for_shell(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// A file with contents `text`, removed by the destructor.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    path_ = (std::filesystem::temp_directory_path() / "lamina-show-XXXXXX").string();
    const int file = ::mkstemp(path_.data());
    if (file < 0) throw Error(Status::runtime_error, join("lamina show: ", path_, " cannot be created"));
    ::close(file);
    std::ofstream(path_, std::ios::binary) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string svg_of(const std::string& dot_text, const std::string& picture) {
  const std::string program = program_in_path("dot");
  if (program.empty())
    throw Error(Status::invalid_arguments,
                join(picture,
                     ": an SVG is drawn by Graphviz' dot, which is not in PATH; install Graphviz (Debian: apt-get install "
                     "graphviz), or choose a name that ends in .html or .dot, which do not need it"));
  const TemporaryFile source(dot_text);
  const std::string command = join(quoted_for_shell(program), " -Tsvg ", quoted_for_shell(source.path()));
  FILE* const output = ::popen(command.c_str(), "r");
  if (output == nullptr) throw Error(Status::runtime_error, join(picture, ": ", program, " cannot be started"));
  std::string svg;
  for (std::array<char, 4096> block; const size_t count = std::fread(block.data(), 1, block.size(), output);)
    svg.append(block.data(), count);
  const int status = ::pclose(output);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || svg.empty())
    throw Error(Status::runtime_error, join(picture, ": ", program, " could not draw it"));
  return svg;
}

std::string drawn(const ExplainedGraph& graph, const std::string& picture) {
  if (picture.ends_with(".html")) return pictures::html_page(graph);
  const std::string dot = pictures::dot_text(graph);
  return picture.ends_with(".svg") ? svg_of(dot, picture) : dot;
}

bool names_a_picture(const std::string& name) {
  return name.ends_with(".html") || name.ends_with(".svg") || name.ends_with(".dot");
}

// The output path for each file. Determined first, so that errors are reported before anything is computed.
std::vector<std::string> picture_names(const ShowOptions& options) {
  if (names_a_picture(options.out)) {
    if (options.files.size() == 1) return {options.out};
    throw Error(Status::invalid_arguments,
                join("-o ", options.out, ": there are ", options.files.size(), " files, allowed is a folder"));
  }
  const bool is_folder = options.out.empty() || options.out.ends_with('/') || is_directory(options.out);
  if (!is_folder)
    throw Error(Status::invalid_arguments,
                join("-o ", options.out, ": the name of a picture ends in .html, .svg or .dot; else it is a folder, FOLDER/"));
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const std::string& file : options.files) {
    names.push_back((fs::path(options.out) / fs::path(file).stem()).string() + ".html");
    if (!taken.insert(names.back()).second)
      throw Error(Status::invalid_arguments,
                  join(file, ": two files would be drawn as ", names.back(), ", allowed are files of different names"));
  }
  return names;
}

}  // namespace

int show(const ShowOptions& options) {
  const std::vector<std::string> names = picture_names(options);
  const std::string report = options.report.empty() ? "" : read_dump_file(options.report);
  Bar bar(options.files.size());
  OutputFiles files;
  std::string told;
  for (size_t i = 0; i < options.files.size(); ++i) {
    GraphChoice choice = options.choice;
    choice.file = options.files[i];
    bar.next_file(choice.file);
    ExplainedGraph graph = explained_graph(choice, options.compile, bar);
    if (!options.report.empty()) add_measured_times(graph, report, options.report, choice.file);
    const std::string text = drawn(graph, names[i]);
    files.add(names[i], [&](std::ostream& out) { out << text; });
    told += join(names[i], ": ", pictures::headline(graph), "\n");
  }
  files.commit();
  std::cout << told;
  return 0;
}

}  // namespace lamina::driver
