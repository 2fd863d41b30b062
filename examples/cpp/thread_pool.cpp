// lamina on the threads of an application: its engine gets a pool of three functions, and starts no threads of its own.
#include <graph/lamina.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace {

thread_local bool is_worker = false;

// Threads that wait for work. The caller takes part.
class Pool : public lamina::graph::threadpool {
 public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  }
  ~Pool() override {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    wakes_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  int num_threads() const override { return static_cast<int>(workers_.size()) + 1; }
  bool in_parallel() const override { return is_worker; }
  void parallel_for(int count, void (*run)(void* state, int index), void* state) override {
    const std::lock_guard one_loop(loops_);
    {
      const std::lock_guard lock(mutex_);
      run_ = [=](int index) { run(state, index); };
      next_ = 0, count_ = count, busy_ = static_cast<int>(workers_.size());
      ++round_;
    }
    wakes_.notify_all();
    take();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    ++loops_run;
  }
  std::atomic<int> loops_run = 0;

 private:
  void take() {
    is_worker = true;
    for (int index = next_++; index < count_; index = next_++) run_(index);
    is_worker = false;
  }
  void work() {
    for (int seen = 0;;) {
      std::unique_lock lock(mutex_);
      wakes_.wait(lock, [&] { return stops_ || round_ != seen; });
      if (stops_) return;
      seen = round_;
      lock.unlock();
      take();
      lock.lock();
      if (--busy_ == 0) done_.notify_all();
    }
  }

  std::vector<std::thread> workers_;
  std::mutex mutex_, loops_;
  std::condition_variable wakes_, done_;
  std::function<void(int)> run_;
  std::atomic<int> next_ = 0;
  int count_ = 0, busy_ = 0, round_ = 0;
  bool stops_ = false;
};

}  // namespace

int main() {
  using namespace lamina::graph;
  Pool pool(4);
  engine cpu = make_engine_with_threadpool(engine::kind::cpu, 0, pool);
  stream s(cpu);
  const logical_tensor src(0, logical_tensor::data_type::f32, {4096, 512}, logical_tensor::layout_type::strided);
  const logical_tensor dst(1, logical_tensor::data_type::f32, {4096, 512}, logical_tensor::layout_type::strided);
  graph g(engine::kind::cpu);
  g.add_op(op(0, op::kind::SoftMax, {src}, {dst}).set_attr(op::attr::axis, int64_t{-1}));
  g.finalize();
  const compiled_partition softmax = g.get_partitions().at(0).compile({src}, {dst}, cpu);
  std::vector<float> x(4096 * 512, 1.0f), y(x.size());
  softmax.execute(s, {{src, cpu, x.data()}}, {{dst, cpu, y.data()}});
  s.wait();
  std::printf("dst[0] %g, loops on the pool: %d\n", y[0], pool.loops_run.load());
  return y[0] == 1.0f / 512 && pool.loops_run > 0 ? 0 : 1;
}
