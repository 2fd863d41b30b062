// The manual page and the completions of shells, from the description of the command line.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace lamina::driver {

std::string man_page(const CLI::App& app);  // in roff
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

}  // namespace lamina::driver
