// A call that no exception leaves, as the C ABIs of the library and of the runtime need it.
#pragma once

#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "interface/status.h"

namespace lamina {

// Calls `body`. If it throws, calls `report` with the sentence of the exception. Returns the status.
template <typename Body, typename Report>
Status status_of_call(Body&& body, const Report& report) noexcept {
  const auto failed = [&](Status status, std::string_view sentence) {
    report(sentence);
    return status;
  };
  try {
    std::forward<Body>(body)();
    return Status::success;
  } catch (const Error& error) {
    return failed(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return failed(Status::out_of_memory, "out of memory");
  } catch (const std::exception& error) {
    return failed(Status::runtime_error, error.what());
  } catch (...) {
    return failed(Status::runtime_error, "unknown exception: this is a bug in lamina");
  }
}

}  // namespace lamina
