// Serves a file of `lamina export` over HTTP on the loopback interface, in batches. It needs liblamina_runtime and cpp-httplib.
//
//   serve MODEL.lamina [--port N] [--wait MICROSECONDS] [--connections N]
//
//   POST /run     the values of one row as f32 in the machine's order of bytes; the answer has those of the result
//   GET /stats    the rows and batches so far, as JSON
//
// A request of a wrong size gets 400 with a sentence. SIGTERM and SIGINT end the server after the
// requests that it has.
#include <httplib.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <graph/lamina_runtime.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "batcher.h"

namespace {

struct Options {
  std::string model;
  int port = 0;  // 0: any that is free
  int wait = 200;
  int connections = 64;
};

int number(const std::string& option, const char* text) {
  char* end = nullptr;
  const long value = text == nullptr ? -1 : std::strtol(text, &end, 10);
  if (text == nullptr || *end != '\0' || value < 0 || value > 1000000)
    throw std::runtime_error(option + " is '" + (text == nullptr ? "" : text) + "', allowed is 0 to 1000000");
  return static_cast<int>(value);
}

Options options_of(char** arguments) {
  Options options;
  for (char** argument = arguments + 1; *argument != nullptr; ++argument) {
    const std::string name = *argument;
    int* const value = name == "--port"          ? &options.port
                       : name == "--wait"        ? &options.wait
                       : name == "--connections" ? &options.connections
                                                 : nullptr;
    if (value != nullptr)
      *value = number(name, *++argument);
    else if (options.model.empty() && name.rfind("--", 0) != 0)
      options.model = name;
    else
      throw std::runtime_error("unknown argument " + name);
  }
  if (options.model.empty())
    throw std::runtime_error("usage: serve MODEL.lamina [--port N] [--wait MICROSECONDS] [--connections N]");
  return options;
}

void answer(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(text + "\n", "text/plain");
}

void run(Batcher& batcher, const httplib::Request& request, httplib::Response& response) {
  const size_t expected = batcher.input_size() * sizeof(float);
  if (request.body.size() != expected)
    return answer(
        response, 400,
        "the body has " + std::to_string(request.body.size()) + " bytes, a row of the model has " + std::to_string(expected));
  std::vector<float> input(batcher.input_size());
  std::memcpy(input.data(), request.body.data(), expected);
  std::string output(batcher.output_size() * sizeof(float), '\0');
  std::vector<float> values(batcher.output_size());
  try {
    batcher.answer(input.data(), values.data());
  } catch (const std::exception& fault) {
    return answer(response, 500, fault.what());
  }
  std::memcpy(output.data(), values.data(), output.size());
  response.set_content(std::move(output), "application/octet-stream");
}

// `ends`: whether the server ends. It waits until clients close their connections, so it asks them to.
void configure(httplib::Server& server, Batcher& batcher, const Options& options, const std::atomic<bool>& ends) {
  const auto threads = static_cast<size_t>(options.connections);
  server.new_task_queue = [threads] { return new httplib::ThreadPool(threads); };  // a connection occupies a thread
  server.set_keep_alive_max_count(1000000);
  server.set_keep_alive_timeout(2);
  server.set_tcp_nodelay(true);
  server.set_payload_max_length(batcher.input_size() * sizeof(float) + 1);
  // By default two servers could share a port.
  server.set_socket_options([](auto socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.Post("/run", [&](const httplib::Request& request, httplib::Response& response) { run(batcher, request, response); });
  server.set_post_routing_handler([&](const httplib::Request&, httplib::Response& response) {
    if (ends) response.set_header("Connection", "close");
  });
  server.Get("/stats", [&](const httplib::Request&, httplib::Response& response) {
    const Batcher::Counts counts = batcher.counts();
    response.set_content(
        "{\"rows\": " + std::to_string(counts.rows) + ", \"batches\": " + std::to_string(counts.batches) + "}\n",
        "application/json");
  });
}

}  // namespace

int main(int, char** arguments) {
  try {
    const Options options = options_of(arguments);
    // All threads inherit the mask, so only the one below gets these signals.
    sigset_t endings;
    sigemptyset(&endings);
    sigaddset(&endings, SIGTERM);
    sigaddset(&endings, SIGINT);
    pthread_sigmask(SIG_BLOCK, &endings, nullptr);

    const lamina::runtime::model model(options.model);
    Batcher batcher(model, std::chrono::microseconds(options.wait));
    httplib::Server server;
    std::atomic<bool> ends = false;
    configure(server, batcher, options, ends);
    const int port = options.port == 0                                ? server.bind_to_any_port("127.0.0.1")
                     : server.bind_to_port("127.0.0.1", options.port) ? options.port
                                                                      : -1;
    if (port < 0) throw std::runtime_error("port " + std::to_string(options.port) + " is not free");
    std::thread ending([endings, &server, &ends] {
      int signal = 0;
      sigwait(&endings, &signal);
      ends = true;
      server.stop();
    });
    std::printf("%s for %s on http://127.0.0.1:%d\n", options.model.c_str(), model.isa().c_str(), port);
    std::fflush(stdout);
    server.listen_after_bind();
    pthread_kill(ending.native_handle(), SIGTERM);  // if it was not a signal that ended the server
    ending.join();
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "serve: %s\n", fault.what());
    return 1;
  }
  return 0;
}
