// The sentence of an error about an index.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "interface/status.h"

namespace lamina::testing {

// Returns the message of the index error that `body` throws.
inline std::string index_error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::index_out_of_range);
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace lamina::testing
