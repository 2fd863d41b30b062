// Runs a model for many threads, each of which has one row: requests that wait at the same time become one batch.
//
// The model has one input and one output of f32, whose first dim is the batch. It was exported for one or several batch sizes
// (`lamina export --shapes`). A row's result has the same bits in every batch, so batching can not be seen in it.
#pragma once

#include <graph/lamina_runtime.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

class Batcher {
 public:
  struct Counts {
    uint64_t rows = 0, batches = 0;
  };

  // `patience`: for how long the first row of a batch waits for others.
  Batcher(const lamina::runtime::model& model, std::chrono::microseconds patience) : model_(model), patience_(patience) {
    for (size_t variant = 0; variant < model.variant_count(); ++variant) add(variant);
    worker_ = std::thread([this] { work(); });
  }
  // No thread may be in answer().
  ~Batcher() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    arrived_.notify_all();
    worker_.join();
  }
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  size_t input_size() const { return input_size_; }
  size_t output_size() const { return output_size_; }
  Counts counts() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return counts_;
  }

  // Returns when the row has its result. Throws what the run of its batch threw.
  void answer(const float* input, float* output) {
    Request request{input, output};
    std::unique_lock<std::mutex> lock(mutex_);
    waiting_.push_back(&request);
    arrived_.notify_one();
    request.done.wait(lock, [&] { return request.is_done; });
    if (request.fault) std::rethrow_exception(request.fault);
  }

 private:
  struct Request {
    const float* input;
    float* output;
    std::exception_ptr fault = nullptr;
    bool is_done = false;
    std::condition_variable done = {};
  };
  struct Variant {
    lamina::runtime::tensor input, output;
  };

  static size_t elements_of_row(const lamina::runtime::tensor& tensor) {
    return static_cast<size_t>(tensor.size() / std::max<int64_t>(tensor.shape[0], 1));
  }

  void add(size_t index) {
    const auto inputs = model_.inputs(index), outputs = model_.outputs(index);
    const auto fits = [](const std::vector<lamina::runtime::tensor>& tensors) {
      return tensors.size() == 1 && tensors[0].dtype == lamina_runtime_f32 && !tensors[0].shape.empty();
    };
    if (!fits(inputs) || !fits(outputs) || inputs[0].shape[0] != outputs[0].shape[0])
      throw std::runtime_error("the model must have one input and one output of f32, with the batch as first dim");
    const size_t input_size = elements_of_row(inputs[0]), output_size = elements_of_row(outputs[0]);
    if (!variants_.empty() && (input_size != input_size_ || output_size != output_size_))
      throw std::runtime_error("the shapes for which the model was exported must differ in the batch alone");
    input_size_ = input_size;
    output_size_ = output_size;
    variants_[static_cast<size_t>(inputs[0].shape[0])] = {inputs[0], outputs[0]};
  }

  // The largest batch for which the model was exported and for which there are rows; the smallest one if there are fewer.
  size_t batch_for(size_t rows) const {
    const auto above = variants_.upper_bound(rows);
    return above == variants_.begin() ? above->first : std::prev(above)->first;
  }

  void work() {
    const size_t largest = variants_.rbegin()->first;
    std::vector<float> inputs(largest * input_size_), outputs(largest * output_size_);
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      arrived_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      arrived_.wait_for(lock, patience_, [&] { return ends_ || waiting_.size() >= largest; });
      const size_t batch = batch_for(waiting_.size()), rows = std::min(batch, waiting_.size());
      const std::vector<Request*> requests(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(rows));
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(rows));
      counts_.rows += rows;
      ++counts_.batches;
      lock.unlock();
      run(batch, requests, inputs, outputs);
      lock.lock();
      for (Request* request : requests) {
        request->is_done = true;
        request->done.notify_one();
      }
    }
  }

  // Rows of the batch without a request keep what they had.
  void run(size_t batch, const std::vector<Request*>& requests, std::vector<float>& inputs, std::vector<float>& outputs) const {
    for (size_t i = 0; i < requests.size(); ++i) std::copy_n(requests[i]->input, input_size_, inputs.data() + i * input_size_);
    try {
      const Variant& variant = variants_.at(batch);
      model_.run({variant.input.with(inputs.data())}, {variant.output.with(outputs.data())});
      for (size_t i = 0; i < requests.size(); ++i)
        std::copy_n(outputs.data() + i * output_size_, output_size_, requests[i]->output);
    } catch (...) {
      for (Request* request : requests) request->fault = std::current_exception();
    }
  }

  const lamina::runtime::model& model_;
  const std::chrono::microseconds patience_;
  std::map<size_t, Variant> variants_;  // by batch
  size_t input_size_ = 0, output_size_ = 0;

  mutable std::mutex mutex_;  // of what follows, and of is_done in requests
  std::condition_variable arrived_;
  std::deque<Request*> waiting_;
  Counts counts_;
  bool ends_ = false;
  std::thread worker_;
};
