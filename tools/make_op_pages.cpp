// Writes the pages of docs/ops: `make_op_pages FOLDER`.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "lamina/op_pages.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_op_pages FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const auto& [name, text] : lamina::driver::op_pages()) {
    std::ofstream file(folder / name, std::ios::binary);
    if (!(file << text)) {
      std::cerr << "cannot write " << (folder / name).string() << '\n';
      return 1;
    }
  }
  return 0;
}
