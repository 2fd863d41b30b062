#include "lamina/help_format.h"

#include "lamina/lines.h"

namespace lamina::driver {
namespace {

constexpr size_t kNameColumn = 28;

}  // namespace

std::string HelpFormatter::make_description(const CLI::App* command) const { return wrapped(command->get_description(), ""); }

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return beside("  " + make_option_name(option, is_positional) + make_option_opts(option), kNameColumn,
                make_option_desc(option));
}

std::string HelpFormatter::make_subcommand(const CLI::App* subcommand) const {
  return beside("  " + subcommand->get_name(), kNameColumn / 2, subcommand->get_description());
}

}  // namespace lamina::driver
