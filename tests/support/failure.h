// Captures the exception that a public interface throws: its status and its message.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace lamina::testing {

template <typename Status>
struct Failure {
  Status status{};
  std::string sentence;
};

// Returns the Error that `body` throws; the test fails if `body` throws none.
template <typename Error, typename Body>
auto failure_by(const Body& body) {
  Failure<decltype(Error::status)> failure;
  try {
    body();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    failure = {error.status, error.what()};
  }
  return failure;
}

MATCHER_P2(FailsWith, status, words, "") {
  *result_listener << "status " << arg.status << ": " << arg.sentence;
  return arg.status == status && arg.sentence.find(words) != std::string::npos;
}

}  // namespace lamina::testing
