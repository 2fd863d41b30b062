#include "lamina/lines.h"

#include <algorithm>
#include <vector>

#include "interface/number_text.h"

namespace lamina::driver {

std::string without_middle(const std::string& text, size_t width) {
  constexpr size_t kDots = 3;
  if (text.size() <= width) return text;
  const size_t start = (width - kDots) / 3, end = width - kDots - start;  // names differ at their ends
  return text.substr(0, start) + "..." + text.substr(text.size() - end);
}

std::string wrapped(const std::string& text, const std::string& indent) {
  std::string result, line = indent;
  for (size_t start = text.find_first_not_of(' '); start != std::string::npos; start = text.find_first_not_of(' ', start)) {
    const size_t end = std::min(text.find(' ', start), text.size());
    const bool is_first = line.size() == indent.size();
    if (!is_first && line.size() + 1 + (end - start) > kLineWidth) {
      result += line + '\n';
      line = indent + text.substr(start, end - start);
    } else {
      line += (is_first ? "" : " ") + text.substr(start, end - start);
    }
    start = end;
  }
  return result + line + '\n';
}

std::string beside(const std::string& left, size_t column, const std::string& text) {
  const std::string lines = wrapped(text, std::string(column, ' '));
  return left.size() < column ? left + lines.substr(left.size()) : left + '\n' + lines;
}

std::string share_of_allowed(double of_allowed) {
  constexpr double kMost = 1000;
  if (!(of_allowed <= kMost)) return "over 1000x";  // also of a NaN
  return of_allowed <= 1 ? fixed_text(of_allowed * 100, of_allowed < 0.01 ? 1 : 0) + "%" : general_text(of_allowed, 2) + "x";
}

namespace {

// Of neighbours that changed places, one edit.
size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> least(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      const size_t changed = least[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      least[i][j] = std::min({changed, least[i - 1][j] + 1, least[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
    }
  }
  return least[a.size()][b.size()];
}

}  // namespace

std::string nearest(const std::string& given, const std::vector<std::string>& names) {
  constexpr size_t kMost = 2;
  std::string best;
  size_t least = kMost + 1;
  for (const std::string& name : names) {
    const size_t distance = edits(given, name);
    if (distance >= least) continue;
    best = name, least = distance;
  }
  return best;
}

}  // namespace lamina::driver
