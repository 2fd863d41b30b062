// A strict check of a page: every element is closed, every attribute is quoted, every & begins an entity.
#pragma once

#include <cctype>
#include <set>
#include <string>
#include <vector>

namespace lamina::driver::testing {

// Returns the first fault of a text in which `&` must begin an entity; "" if there is none.
inline std::string fault_of_entities(const std::string& text) {
  for (size_t at = text.find('&'); at != std::string::npos; at = text.find('&', at + 1)) {
    const size_t end = text.find(';', at);
    if (end == std::string::npos || end - at > 7) return "a bare & in: " + text.substr(at, 40);
  }
  return "";
}

// Returns the first fault, "" if there is none. Scripts and styles are not checked.
inline std::string fault_of_page(const std::string& page) {
  std::vector<std::string> open;
  size_t at = page.find("<html");
  if (!page.starts_with("<!DOCTYPE html>") || at == std::string::npos) return "it does not begin as a page";
  while (at != std::string::npos && at < page.size()) {
    const size_t end = page.find('>', at);
    if (end == std::string::npos) return "a tag does not end: " + page.substr(at, 60);
    std::string tag = page.substr(at + 1, end - at - 1);
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1))
        return "</" + tag.substr(1) + "> closes " + (open.empty() ? "nothing" : open.back());
      open.pop_back();
    } else {
      if (tag.find('<') != std::string::npos) return "a tag within a tag: " + tag.substr(0, 60);
      if (const std::string fault = fault_of_entities(tag); !fault.empty()) return fault;
      bool quoted = false;
      for (size_t i = 0; i < tag.size(); ++i) {
        quoted = quoted != (tag[i] == '"');
        if (tag[i] == '=' && !quoted && (i + 1 >= tag.size() || tag[i + 1] != '"'))
          return "an attribute without quotes: " + tag;
      }
      if (quoted) return "a quote does not end: " + tag;
      if (!tag.ends_with('/')) open.push_back(tag.substr(0, tag.find_first_of(" \n")));
    }
    size_t next = end + 1;
    if (!open.empty() && (open.back() == "script" || open.back() == "style") && !tag.starts_with('/')) {
      next = page.find("</" + open.back() + ">", next);
    } else {
      next = page.find('<', next);
      if (const std::string fault = fault_of_entities(page.substr(end + 1, next - end - 1)); !fault.empty()) return fault;
    }
    at = next;
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

}  // namespace lamina::driver::testing
