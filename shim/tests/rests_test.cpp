// The waits that this program makes, as the interpreter's are, are rests of the job that its thread
// works for: what a wait gave is used only when the job's memory is there.
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <functional>
#include <mutex>
#include <thread>
#include <tuple>

#include "../src/api.h"
#include "check.h"

using namespace gpushare;
using std::chrono::milliseconds;

extern "C" int lock_in_library(pthread_mutex_t* m);

namespace {

constexpr milliseconds kAWhile{30};
constexpr uint64_t kMiB = 1 << 20;

gs_account job = 0;

Account& account() { return runtime()->governor().account(static_cast<uint32_t>(job)); }

void until(const std::function<bool()>& so) {
  for (int n = 0; n < 5000 && !so(); ++n) std::this_thread::sleep_for(milliseconds(1));
  CHECK(so());
}

// As the governor tells it when it copies out, and when the memory is back.
void leave() { account().away = true; }
void come_back() {
  account().away = false;
  gs_job_end(gs_job_begin(0, 0));  // has everybody look
}

timespec from_now(clockid_t clock, long ms) {
  timespec t;
  clock_gettime(clock, &t);
  t.tv_nsec += ms * 1000000;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  return t;
}

// A thread of the job that makes a wait.
class Sleeper {
 public:
  explicit Sleeper(std::function<int()> wait)
      : thread_([this, wait] {
          gs_thread_enter(job, nullptr);
          result_ = wait(), error_ = errno;
          woke = true;
          gs_thread_leave();
        }) {}
  int result() {
    thread_.join();
    return result_;
  }
  int error() const { return error_; }
  std::atomic<bool> woke{false};

 private:
  int result_ = 0, error_ = 0;
  std::thread thread_;
};

// The memory is away when the wait ends.
int ends_while_away(const std::function<int()>& wait, const std::function<void()>& wake) {
  Sleeper sleeper(wait);
  until([] { return account().resting == 1; });
  CHECK(!sleeper.woke);
  leave();
  wake();
  std::this_thread::sleep_for(kAWhile);
  CHECK(!sleeper.woke && account().resting == 1);
  come_back();
  int result = sleeper.result();
  CHECK(account().resting == 0);
  return result;
}

void locks_rest() {
  sem_t s;
  CHECK(sem_init(&s, 0, 0) == 0);
  auto wake = [&] { sem_post(&s); };
  CHECK(ends_while_away([&] { return sem_wait(&s); }, wake) == 0);
  timespec late = from_now(CLOCK_REALTIME, 60000), later = from_now(CLOCK_MONOTONIC, 60000);
  CHECK(ends_while_away([&] { return sem_timedwait(&s, &late); }, wake) == 0);
  CHECK(ends_while_away([&] { return sem_clockwait(&s, CLOCK_MONOTONIC, &later); }, wake) == 0);
  CHECK(sem_trywait(&s) == -1);  // each was taken once
}

void moments_and_files_rest() {
  int ends[2];
  CHECK(pipe(ends) == 0);
  char byte = 0;
  auto wake = [&] { CHECK(write(ends[1], &byte, 1) == 1); };
  auto take = [&] { CHECK(read(ends[0], &byte, 1) == 1); };
  pollfd file{ends[0], POLLIN, 0};
  CHECK(ends_while_away([&] { return poll(&file, 1, -1); }, wake) == 1);
  take();
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  CHECK(ends_while_away([&] { return select(ends[0] + 1, &set, nullptr, nullptr, nullptr); },
                        wake) == 1);
  take();
  int epoll = epoll_create1(0);
  epoll_event event{EPOLLIN, {}}, got{};
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
  CHECK(ends_while_away([&] { return epoll_wait(epoll, &got, 1, -1); }, wake) == 1);
  timespec time{2, 0};
  CHECK(ends_while_away([&] { return clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr); },
                        [] { std::this_thread::sleep_for(std::chrono::milliseconds(2100)); }) == 0);
}

pid_t child_that_waits_for(int file) {
  pid_t child = fork();
  if (child) return child;
  char byte;
  _exit(read(file, &byte, 1) == 1 ? 7 : 1);
}

void children_rest() {
  int ends[2], status = 0;
  CHECK(pipe(ends) == 0);
  auto wake = [&] { CHECK(write(ends[1], "x", 1) == 1); };
  pid_t child = child_that_waits_for(ends[0]);
  CHECK(ends_while_away([&] { return waitpid(child, &status, 0); }, wake) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  child = child_that_waits_for(ends[0]);
  rusage usage{};
  CHECK(ends_while_away([&] { return wait4(child, &status, 0, &usage); }, wake) == child);
  CHECK(usage.ru_maxrss > 0);
}

// What comes while the memory is away is read when it is back.
void readers_rest() {
  int ends[2], sockets[2];
  char got = 0;
  CHECK(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  auto wake = [&] { CHECK(write(ends[1], "x", 1) == 1); };
  CHECK(ends_while_away([&] { return static_cast<int>(read(ends[0], &got, 1)); }, wake) == 1);
  CHECK(got == 'x');
  auto send_one = [&] { CHECK(send(sockets[1], "y", 1, 0) == 1); };
  CHECK(ends_while_away([&] { return static_cast<int>(recv(sockets[0], &got, 1, 0)); }, send_one) ==
        1);
  CHECK(got == 'y');
  auto hang_up = [&] { CHECK(close(ends[1]) == 0); };
  CHECK(ends_while_away([&] { return static_cast<int>(read(ends[0], &got, 1)); }, hang_up) == 0);
}

void readers_that_need_not_wait_do_not() {
  int ends[2], sockets[2];
  char got = 0;
  CHECK(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  Sleeper sleeper([&] {
    CHECK(recv(sockets[0], &got, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    timeval soon{0, 20000};
    CHECK(setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon) == 0);
    CHECK(recv(sockets[0], &got, 1, 0) == -1 && errno == EAGAIN);
    CHECK(recv(sockets[0], &got, 1, MSG_OOB) == -1);
    CHECK(read(ends[0], &got, 0) == 0);
    CHECK(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    CHECK(read(ends[0], &got, 1) == -1 && errno == EAGAIN);
    CHECK(write(ends[1], "z", 1) == 1 && read(ends[0], &got, 1) == 1);
    CHECK(read(-1, &got, 1) == -1 && errno == EBADF);
    return 0;
  });
  CHECK(sleeper.result() == 0 && got == 'z');
}

// Other jobs may want the lock meanwhile.
void a_lock_is_given_back_while_the_memory_is_away() {
  sem_t s;
  CHECK(sem_init(&s, 0, 0) == 0);
  Sleeper sleeper([&] { return sem_wait(&s); });
  until([] { return account().resting == 1; });
  leave();
  sem_post(&s);
  std::this_thread::sleep_for(kAWhile);
  CHECK(sem_trywait(&s) == 0);
  come_back();
  std::this_thread::sleep_for(kAWhile);
  CHECK(!sleeper.woke);
  sem_post(&s);
  CHECK(sleeper.result() == 0);
}

// It is counted as one that waits, so not as one that rests beside.
void who_waits_for_its_turn_to_fork_is_counted_once() {
  sem_t s;
  CHECK(sem_init(&s, 0, 0) == 0);
  auto counted = [] {
    std::tuple<uint32_t, uint32_t, uint32_t> all;
    runtime()->governor().inspect(static_cast<uint32_t>(job), [&](const Account& a) {
      all = {a.threads, a.waiting_threads, a.resting};
    });
    return all;
  };
  Sleeper sleeper([&] {
    gs_await_fork(job, 1);
    sem_wait(&s);
    gs_await_fork(job, 0);
    return poll(nullptr, 0, 300);
  });
  until([&] { return counted() == std::tuple(1u, 1u, 0u); });
  leave();
  sem_post(&s);
  std::this_thread::sleep_for(kAWhile);
  CHECK(sem_trywait(&s) == 0 && counted() == std::tuple(1u, 1u, 0u));  // it was given back
  sem_post(&s);
  come_back();
  until([&] { return counted() == std::tuple(1u, 0u, 1u); });
  CHECK(sleeper.result() == 0 && counted() == std::tuple(0u, 0u, 0u));
}

void who_is_late_may_find_the_lock() {
  sem_t s;
  CHECK(sem_init(&s, 0, 0) == 0);
  timespec soon = from_now(CLOCK_REALTIME, 2000);
  auto wait = [&] { return sem_timedwait(&s, &soon); };
  CHECK(ends_while_away(wait, [&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(2100));
          sem_post(&s);
        }) == 0);
  Sleeper late(wait);
  CHECK(late.result() == -1 && late.error() == ETIMEDOUT);
}

void a_librarys_mutex_rests() {
  CHECK(gs_rests_watch_locks("no such library") == 0);
  CHECK(gs_rests_watch_locks("liblocking_library") > 0);
  std::mutex m;
  auto lock_and_unlock = [&] {
    int result = lock_in_library(m.native_handle());
    m.unlock();
    return result;
  };
  m.lock();
  CHECK(ends_while_away(lock_and_unlock, [&] { m.unlock(); }) == 0);
  m.lock();
  Sleeper sleeper(lock_and_unlock);
  until([] { return account().resting == 1; });
  leave();
  m.unlock();
  std::this_thread::sleep_for(kAWhile);
  CHECK(m.try_lock());  // given back while the memory is away
  come_back();
  std::this_thread::sleep_for(kAWhile);
  CHECK(!sleeper.woke);
  m.unlock();
  CHECK(sleeper.result() == 0 && account().resting == 0);
}

// As who leaves them to the system does.
void errors_of_mutexes_are_told() {
  pthread_mutexattr_t kind;
  pthread_mutex_t m;
  CHECK(pthread_mutexattr_init(&kind) == 0);
  CHECK(pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK) == 0);
  CHECK(pthread_mutex_init(&m, &kind) == 0);
  Sleeper sleeper([&] {
    errno = ETIMEDOUT;
    CHECK(lock_in_library(&m) == 0);
    return lock_in_library(&m) + pthread_mutex_unlock(&m);
  });
  CHECK(sleeper.result() == EDEADLK && sleeper.error() == ETIMEDOUT);
}

void others_do_not_rest() {
  sem_t s;
  CHECK(sem_init(&s, 0, 0) == 0);
  std::thread of_no_job([&] { sem_wait(&s); });
  std::thread in_a_section_of_others([&] {
    gs_thread_enter(job, nullptr);
    gs_nowait(1);
    sem_wait(&s);
    gs_nowait(-1);
    gs_thread_leave();
  });
  std::this_thread::sleep_for(kAWhile);
  CHECK(account().resting == 0);
  for (int n = 0; n < 2; ++n) sem_post(&s);
  of_no_job.join();
  in_a_section_of_others.join();
}

void a_forked_child_does_not_rest() {
  gs_thread_enter(job, nullptr);
  leave();
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    poll(nullptr, 0, 1);
    _exit(account().resting == 0 ? 0 : 1);
  }
  come_back();
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  gs_thread_leave();
}

}  // namespace

int main() {
  gs_config config = {64 * kMiB, 64 << 10, 2 * kMiB, 0, GS_ZICO, -1, 0, -1, 0, GS_HOST, 0, nullptr};
  CHECK(gs_start(&config) == 0);
  CHECK(gs_rests_watch() >= 11);
  CHECK(gs_rests_watch() == 0);
  job = gs_job_begin(0, 0);
  CHECK(job > 0);
  locks_rest();
  moments_and_files_rest();
  children_rest();
  readers_rest();
  readers_that_need_not_wait_do_not();
  a_lock_is_given_back_while_the_memory_is_away();
  who_waits_for_its_turn_to_fork_is_counted_once();
  who_is_late_may_find_the_lock();
  a_librarys_mutex_rests();
  errors_of_mutexes_are_told();
  others_do_not_rest();
  a_forked_child_does_not_rest();
  printf("rests: ok\n");
}
