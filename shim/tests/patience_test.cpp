// Nobody is refused memory, nor kept waiting, by a clock that has run while nothing could be given:
// during another job's iteration, while pages are copied, while the process is stopped.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../src/simulation.h"
#include "world.h"

using Answer = Simulation::Answer;

namespace {

constexpr uint64_t kMs = 1000000, kSecond = 1000 * kMs;

class Scene : public Simulation {
 public:
  explicit Scene(Device* device = nullptr) : Simulation(Policy::kZico, kPage, 100, device) {}
  uint32_t known(uint32_t peak, uint64_t residue) {
    return begin_job({peak / 2, peak}, {0, 50 * kMs}, residue, 100 * kMs);
  }
  void pass(uint64_t ns) {
    for (uint64_t end = time() + ns; time() < end;) {
      set_time(time() + 10 * kMs);
      tick();
      CHECK_EMPTY(check());
    }
  }
  void iterate(uint32_t id, uint64_t peak, uint64_t residue) {
    CHECK(door(id) == Answer::kGo && hold(id, peak) == Answer::kGo);
    pass(100 * kMs);
    free_down_to(id, residue);
  }
  uint64_t left(uint32_t id) { return telemetry().slot(id, kCopiesOut); }
};

// Job a asks beyond its claim while b's iteration goes on for a minute; once b is at its door it
// can leave.
void an_iteration_that_ends_is_waited_for() {
  Scene s;
  uint32_t a = s.known(60, 10), b = s.known(60, 30);
  CHECK(s.hold(a, 10) == Answer::kGo && s.hold(b, 30) == Answer::kGo);
  CHECK(s.door(b) == Answer::kGo && s.hold(b, 60) == Answer::kGo);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 30) == Answer::kGo);
  s.pass(100 * kMs);
  CHECK(s.hold(a, 75) == Answer::kWaits);
  s.pass(60 * kSecond);
  s.free_down_to(b, 30);
  CHECK(s.door(b) == Answer::kWaits);
  s.pass(500 * kMs);
  CHECK(s.look(a) == Answer::kGo && s.left(b) == 1);
}

// A page takes a second to copy out.
struct Slow : NoDevice {
  Scene* scene = nullptr;
  bool copy_out(char*, size_t bytes) override {
    scene->set_time(scene->time() + bytes / kPage * kSecond);
    return true;
  }
};

// Job a goes first and is passed by b; before that another one was copied out, for seconds.
void what_was_copied_before_is_no_excuse() {
  Slow device;
  Scene s(&device);
  device.scene = &s;
  uint32_t a = s.known(70, 10), b = s.known(60, 40), c = s.known(4, 4);
  for (auto [id, holds] : {std::pair{a, 10}, {b, 5}, {c, 4}})
    CHECK(s.hold(id, holds) == Answer::kGo);
  s.iterate(c, 4, 4);
  s.iterate(b, 60, 40);
  s.set_aside(uint64_t{1} << c);
  CHECK(s.door(c) == Answer::kWaits);
  uint64_t begun = s.time();
  s.pass(kSecond);
  CHECK(s.left(c) == 1 && s.time() > begun + 3 * kSecond);
  begun = s.time();
  CHECK(s.door(a) == Answer::kWaits);
  bool waits = false;
  while (!(s.ready() >> a & 1) && s.time() < begun + 30 * kSecond) {
    if (!waits) waits = s.door(b) == Answer::kWaits;
    if (!waits) {
      CHECK(s.hold(b, 60) == Answer::kGo);
      s.pass(100 * kMs);
      s.free_down_to(b, 40);
    }
    s.pass(10 * kMs);
  }
  CHECK(s.left(b) == 1 && s.time() - begun < (11 + 40) * kSecond);
}

// Job a has given back all that it had, and sleeps in its last iteration. Nothing of it can leave.
void who_has_room_goes_on_beside_a_sleeper() {
  Scene s;
  uint32_t a = s.known(20, 0), b = s.begin_job({}, {}, 0);
  CHECK(s.door(a) == Answer::kGo && s.hold(a, 20) == Answer::kGo);
  s.pass(100 * kMs);
  s.free_down_to(a, 0);
  s.mark(a);
  s.governor().begin_rest(a);
  CHECK(s.hold(b, 10) == Answer::kGo && s.door(b) == Answer::kWaits);
  s.pass(30 * kSecond);
  CHECK(s.look(b) == Answer::kGo);
}

// Job b sleeps, copied out for a, and is not about to come back.
void a_smaller_budget_comes_while_a_job_sleeps_away() {
  Scene s;
  uint32_t a = s.known(85, 10), b = s.known(30, 20);
  CHECK(s.hold(a, 10) == Answer::kGo && s.hold(b, 10) == Answer::kGo);
  s.iterate(b, 30, 20);
  s.mark(b);
  s.governor().begin_rest(b);
  CHECK(s.door(a) == Answer::kWaits);
  s.pass(12 * kSecond);
  CHECK(s.look(a) == Answer::kGo && s.left(b) == 1 && s.hold(a, 85) == Answer::kGo);
  s.free_down_to(a, 10);
  CHECK_EMPTY(s.set_budget(88));
  for (int n = 0; n < 3; ++n) s.iterate(a, 85, 10);
  CHECK(s.governor().pool_state().budget == 88);
}

// Job 1 waits with a lock in hand, for two seconds at most, for what job 2 gives back. All of it is
// stopped meanwhile, as by Ctrl-Z.
int stops_while_one_waits() {
  World w(Policy::kZico, 100);
  for (int i = 0; i < 2; ++i) w.governor.begin_job(1);
  w.governor.tick();  // as the sampler has long done
  std::atomic<bool> has{false};
  std::thread other([&] {
    w.governor.thread_enters(2);
    Job j{w, 2};
    for (int i = 0; i < 60; ++i) j.take();
    has = true;
    while (w.telemetry.slot(1, kWaits) == 0) std::this_thread::yield();
    kill(getpid(), SIGSTOP);
    std::this_thread::sleep_for(milliseconds(500));
    while (!j.pages.empty()) j.give();
    w.governor.thread_leaves(2);
    w.governor.end_job(2);
  });
  while (!has) std::this_thread::yield();
  w.governor.thread_enters(1);
  Job j{w, 1};
  for (int i = 0; i < 40; ++i) j.take();
  bool refused = false;
  try {
    w.governor.charge(1, 5, true, 5 * kPage);
    w.governor.uncharge(1, 5);
  } catch (const OutOfMemory&) {
    refused = true;
  }
  other.join();
  w.governor.thread_leaves(1);
  j.end();
  return refused;
}

void while_the_process_is_stopped_nobody_waits() {
  pid_t child = fork();
  if (child == 0) _exit(stops_while_one_waits());
  int status = 0;
  CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
  std::this_thread::sleep_for(std::chrono::seconds(3));
  kill(child, SIGCONT);
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

int main() {
  while_the_process_is_stopped_nobody_waits();
  an_iteration_that_ends_is_waited_for();
  what_was_copied_before_is_no_excuse();
  who_has_room_goes_on_beside_a_sleeper();
  a_smaller_budget_comes_while_a_job_sleeps_away();
  puts("patience: ok");
}
