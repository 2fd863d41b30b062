// The help of the command line in lines of at most 80 columns. Only the newest versions of CLI11 wrap lines themselves.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace lamina::driver {

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* command) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* subcommand) const override;
};

}  // namespace lamina::driver
