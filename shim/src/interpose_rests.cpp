// The waits of the interpreter, and of those of its modules that sleep for a script, as rests
// (rests.cpp). They are libc's; only Python's calls of them are taken over, so a wait inside an
// operator is none: others may compute for it meanwhile. The exception are locks of libraries that
// hold them while they allocate: who has one may wait for memory of the job that wants it.
//
// Those that have an end by themselves also end when something is sent to the job's main thread
// (interruption.cpp), as if it had come: Python then goes on to the next bytecode, where that is
// raised. A wait for a lock with no limit can't, since Python would take it for its own. Handlers
// of signals run in all of them (handlers.cpp).
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <ctime>

#include "api.h"
#include "calls.h"
#include "gil.h"
#include "handlers.h"
#include "interruption.h"
#include "python.h"

namespace {
using namespace gpushare;

// Not as this library would call it: where it is part of the program, that call is taken over too.
template <typename Function>
Function* libc(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// The job whose memory is safe from the calling thread while it sleeps; 0: none. Who keeps the GIL
// can't rest, nor who has a lock in hand that other jobs may want: they could not go on.
uint32_t resting_job() {
  const ThreadState& t = thread_state;
  bool rests = t.entered && t.no_wait <= 0 && !t.collecting && active() && !holds_gil();
  return rests ? t.account : 0;
}

constexpr int kCut = -2;  // no result of the calls
constexpr int kMostCuts = 64;

Rest here() { return thread_state.awaits_fork ? Rest::kForItsTurnToFork : Rest::kInPython; }

// What handles signals runs in the wait, which Python then begins anew, with the time that is left.
int interrupted() {
  errno = EINTR;
  return -1;
}

template <typename Call>
int rest(Call call) {
  uint32_t job = resting_job();
  if (!job) return call();
  if (run_handlers_before_wait()) return interrupted();
  WaitOfMain wait;
  Governor& governor = active()->governor();
  governor.begin_rest(job, here());
  int result = call(), error = errno;
  if (!governor.end_rest(job, here())) governor.rest_on(job, here());
  errno = error;
  return result;
}

// What was taken while the thread must rest on is given back until it need not: another job may
// want the same lock. (From Python 3.14 on a semaphore is where a thread is parked for a lock,
// which may have been handed to it when it was woken. Who wants that waits until the job is back.)
template <typename Try, typename Call, typename GiveBack>
int rest_for(Try try_it, Call call, GiveBack give_back, Rest rest) {
  if (try_it() == 0) return 0;
  uint32_t job = resting_job();
  if (!job) return call();
  Governor& governor = active()->governor();
  for (;;) {
    governor.begin_rest(job, rest);
    int result = call(), error = errno;
    bool over = governor.end_rest(job, rest);
    if (!over) {
      if (result == 0) give_back();
      if (!governor.rest_on(job, rest)) rest = Rest::kHeldForLong;
    }
    errno = error;
    // Who was late may find it now.
    if (over || (result != 0 && error != ETIMEDOUT)) return result;
  }
}

template <typename Call>
int rest_for(sem_t* semaphore, Call call) {
  if (sem_trywait(semaphore) == 0) return 0;
  auto rests = [&] {
    return rest_for([&] { return sem_trywait(semaphore); }, call, [&] { sem_post(semaphore); },
                    here());
  };
  // Who waits for a lock is in its queue by then, and a handler's own wait must not come into it.
  if (python().parks_locks) return rests();
  if (resting_job() && run_handlers_before_wait()) return interrupted();
  WaitOfMain wait;
  return rests();
}

// Unlike the others it tells an error by its result alone. Python gives the GIL up before its own
// waits, a library may not: who has the mutex, or the room to bring the memory back, may need it.
int lock_mutex(pthread_mutex_t* m) {
  static const auto real = libc<decltype(pthread_mutex_lock)>("pthread_mutex_lock");
  int kept = errno;
  auto try_it = [&] { return pthread_mutex_trylock(m); };
  auto lock = [&] { return errno = real(m); };
  if (try_it() == 0) return 0;
  GilReleased released;
  int result = rest_for(try_it, lock, [&] { pthread_mutex_unlock(m); }, Rest::kInLibrary);
  errno = kept;
  return result;
}

// The call, or `over` and `error` where it was cut.
template <typename Call, typename Result>
Result until_cut(Call call, Result over, int error = 0, int most = kMostCuts) {
  bool main = thread_state.leads && active() && !holds_gil();
  CuttableWait wait(main ? thread_state.account : 0, most);
  if (!wait.is_cut()) {
    Result result = call();
    if (result != -1 || errno != EINTR || !wait.is_cut()) return result;
  }
  wait.cut();
  errno = error;
  return over;
}

// Once: the end of a thread is waited for again where its limit has not come (Thread.join).
template <typename Call>
int lock_until_cut(sem_t* s, Call call) {
  return rest_for(s, [&] { return until_cut(call, -1, ETIMEDOUT, 1); });
}

int plain_wait(sem_t* s) {
  static const auto real = libc<decltype(sem_wait)>("sem_wait");
  return rest_for(s, [&] { return real(s); });
}

int timed_wait(sem_t* s, const timespec* until) {
  static const auto real = libc<decltype(sem_timedwait)>("sem_timedwait");
  return lock_until_cut(s, [&] { return real(s, until); });
}

int clock_wait(sem_t* s, clockid_t clock, const timespec* until) {
  static const auto real = libc<int(sem_t*, clockid_t, const timespec*)>("sem_clockwait");
  return lock_until_cut(s, [&] { return real(s, clock, until); });
}

int sleep_by_clock(clockid_t clock, int flags, const timespec* time, timespec* left) {
  static const auto real = libc<decltype(clock_nanosleep)>("clock_nanosleep");
  // It returns its errors.
  auto sleep = [&] { return (errno = real(clock, flags, time, left)) ? -1 : 0; };
  int result = rest([&] { return until_cut(sleep, 0); });
  return result ? errno : 0;
}

int poll_files(pollfd* files, nfds_t n, int timeout_ms) {
  static const auto real = libc<decltype(poll)>("poll");
  auto none = [&] {
    for (nfds_t i = 0; i < n; ++i) files[i].revents = 0;
    return 0;
  };
  int result = rest([&] { return until_cut([&] { return real(files, n, timeout_ms); }, kCut); });
  return result == kCut ? none() : result;
}

int select_files(int n, fd_set* read, fd_set* write, fd_set* except, timeval* timeout) {
  static const auto real = libc<decltype(select)>("select");
  auto call = [&] { return real(n, read, write, except, timeout); };
  int result = rest([&] { return until_cut(call, kCut); });
  if (result != kCut) return result;
  for (fd_set* set : {read, write, except})
    if (set) FD_ZERO(set);
  return 0;
}

int wait_for_events(int set, epoll_event* events, int most, int timeout_ms) {
  static const auto real = libc<decltype(epoll_wait)>("epoll_wait");
  return rest([&] { return until_cut([&] { return real(set, events, most, timeout_ms); }, 0); });
}

pid_t wait_for_child(pid_t child, int* status, int options) {
  static const auto real = libc<decltype(waitpid)>("waitpid");
  if (status) *status = 0;  // as it is where no child has ended
  return rest([&] { return until_cut([&] { return real(child, status, options); }, pid_t{0}); });
}

pid_t wait_for_usage(pid_t child, int* status, int options, rusage* usage) {
  static const auto real = libc<pid_t(pid_t, int*, int, rusage*)>("wait4");
  if (status) *status = 0;
  auto call = [&] { return real(child, status, options, usage); };
  return rest([&] { return until_cut(call, pid_t{0}); });
}

// Whether reading would wait until something comes, however long.
bool would_wait(int file) {
  pollfd wanted{file, POLLIN, 0};
  if (poll(&wanted, 1, 0) != 0) return false;
  timeval longest{};
  socklen_t bytes = sizeof longest;
  bool limited = getsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &longest, &bytes) == 0 &&
                 (longest.tv_sec || longest.tv_usec);
  return !limited && !(fcntl(file, F_GETFL) & O_NONBLOCK);
}

// Waits for what is to be read, but reads when the memory is there, as it may be read into it.
// False: it does not read, but has failed, or was cut: as at the end of the file. Not so the
// standard input, since Python makes an error of its own of that (`input`).
bool wait_to_read(int file, ssize_t& result) {
  if (!resting_job() || !would_wait(file)) return true;
  pollfd wanted{file, POLLIN, 0};
  result = poll_files(&wanted, 1, -1);
  return result > 0 || (result == 0 && file == STDIN_FILENO);
}

ssize_t read_file(int file, void* to, size_t bytes) {
  static const auto real = libc<decltype(read)>("read");
  ssize_t result = 0;
  return !bytes || wait_to_read(file, result) ? real(file, to, bytes) : result;
}

ssize_t receive(int file, void* to, size_t bytes, int flags) {
  static const auto real = libc<decltype(recv)>("recv");
  bool at_once = !bytes || (flags & (MSG_DONTWAIT | MSG_OOB | MSG_ERRQUEUE));
  ssize_t result = 0;
  return at_once || wait_to_read(file, result) ? real(file, to, bytes, flags) : result;
}

template <typename Function>
Redirection to(const char* name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

}  // namespace

extern "C" int gs_rests_watch(void) {
  const Redirection locks[] = {
      to("sem_wait", plain_wait),
      to("sem_timedwait", timed_wait),
      to("sem_clockwait", clock_wait),
  };
  const Redirection others[] = {
      to("clock_nanosleep", sleep_by_clock),
      to("poll", poll_files),
      to("select", select_files),
      to("epoll_wait", wait_for_events),
      to("waitpid", wait_for_child),
      to("wait4", wait_for_usage),
      to("read", read_file),
      to("recv", receive),
  };
  // The program is Python itself where it has no library of its own.
  const char* const callers[] = {"", "libpython3", "select.", "_multiprocessing.", "_socket."};
  int found = redirect(callers, locks);
  return found ? found + redirect(callers, others) : 0;
}

extern "C" int gs_rests_watch_locks(const char* library) {
  const char* const callers[] = {library};
  const Redirection locks[] = {to("pthread_mutex_lock", lock_mutex)};
  return redirect(callers, locks);
}
