#include "lamina/command_texts.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <vector>

#include "interface/status.h"
#include "lamina/version.h"

namespace lamina::driver {

namespace {

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_positional(); });
}
std::vector<const CLI::Option*> positionals_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

// ---- the manual page

// A dot or an apostrophe at the start of a line would be a request, and a hyphen a typographic one.
std::string roff(const std::string& text) {
  const std::string safe = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  return safe.starts_with('.') || safe.starts_with('\'') ? "\\&" + safe : safe;
}

std::string roff_of(const CLI::Option& option) {
  std::string text = join(".TP\n\\fB", roff(joined(flags_of(option), ", ")), "\\fR");
  if (takes_value(option)) text += join(" \\fI", roff(option.get_type_name()), "\\fR");
  return join(text, "\n", roff(option.get_description()), "\n");
}

std::string roff_of_command(const CLI::App& command) {
  std::string text = join(".SS lamina ", roff(command.get_name()));
  text += options_of(command).empty() ? "" : " [OPTIONS]";
  for (const CLI::Option* const positional : positionals_of(command)) text += join(" ", roff(positional->get_name(true)));
  text += join("\n", roff(command.get_description()), "\n");
  for (const CLI::Option* const option : options_of(command)) text += roff_of(*option);
  return text;
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::string text =
      ".TH LAMINA 1\n.SH NAME\nlamina \\- replay, explain and draw graphs of deep\\-learning operations\n"
      ".SH SYNOPSIS\n.B lamina\n\\fISUBCOMMAND\\fR [OPTIONS] ...\n.SH COMMANDS\n";
  for (const CLI::App* const command : subcommands_of(app)) text += roff_of_command(*command);
  return text +
         ".SH EXIT STATUS\n0 success; 1 a check failed or a partition is not supported; 2 bad input or usage.\n"
         ".SH ENVIRONMENT\n.TP\n\\fBLAMINA_CACHE_DIR\\fR\na folder for machine code and schedules, which later runs use\n"
         ".TP\n\\fBOMP_NUM_THREADS\\fR\nthe default number of threads\n";
}

// ---- completions

std::string bash_completion(const CLI::App& app) {
  std::vector<std::string> names;
  std::string cases;
  for (const CLI::App* const command : subcommands_of(app)) {
    std::vector<std::string> flags;
    for (const CLI::Option* const option : options_of(*command))
      for (const std::string& flag : flags_of(*option)) flags.push_back(flag);
    names.push_back(command->get_name());
    cases += join("    ", command->get_name(), ") words=\"", joined(flags, " "), "\" ;;\n");
  }
  return join(
      "# bash completion for lamina\n_lamina() {\n  local word=${COMP_WORDS[COMP_CWORD]} words=\n  if [ \"$COMP_CWORD\" -eq 1 "
      "]; then\n"
      "    COMPREPLY=($(compgen -W \"",
      joined(names, " "), " --help --version\" -- \"$word\"))\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n", cases,
      "  esac\n  case $word in\n    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
      "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n  esac\n}\ncomplete -o filenames -F _lamina lamina\n");
}

namespace {

// In single quotes, with the characters escaped that _arguments treats.
std::string zsh_text(const std::string& text) {
  std::string safe = replaced(text, "'", "'\\''");
  for (const char* const special : {"[", "]", ":"}) safe = replaced(safe, special, join("\\", special));
  return safe;
}

}  // namespace

std::string zsh_completion(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* const command : subcommands_of(app)) {
    commands += join("    '", command->get_name(), ":", zsh_text(command->get_description()), "'\n");
    cases += join("    ", command->get_name(), ") _arguments");
    for (const CLI::Option* const option : options_of(*command))
      for (const std::string& flag : flags_of(*option))
        cases += join(" \\\n      '", flag, "[", zsh_text(option->get_description()), "]",
                      takes_value(*option) ? ":value:_files" : "", "'");
    cases += " \\\n      '*:file:_files' ;;\n";
  }
  return join(
      "#compdef lamina\n_lamina() {\n  local -a commands=(\n", commands,
      "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n  local command=$words[2]\n"
      "  shift words\n  (( CURRENT -= 1 ))\n  case $command in\n",
      cases, "  esac\n}\n_lamina \"$@\"\n");
}

std::string fish_completion(const CLI::App& app) {
  const auto quoted = [](const std::string& text) {
    return join("'", replaced(replaced(text, "\\", "\\\\"), "'", "\\'"), "'");
  };
  std::string text = "# fish completion for lamina\n";
  for (const CLI::App* const command : subcommands_of(app)) {
    text += join("complete -c lamina -n __fish_use_subcommand -a ", command->get_name(), " -d ",
                 quoted(command->get_description()), "\n");
    for (const CLI::Option* const option : options_of(*command)) {
      text += join("complete -c lamina -n '__fish_seen_subcommand_from ", command->get_name(), "'");
      for (const std::string& name : option->get_snames()) text += join(" -s ", name);
      for (const std::string& name : option->get_lnames()) text += join(" -l ", name);
      text += join(takes_value(*option) ? " -r" : "", " -d ", quoted(option->get_description()), "\n");
    }
  }
  return text;
}

}  // namespace lamina::driver
