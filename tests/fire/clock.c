/* Preloaded, it sets the clock of a process: the file that CLOCK names holds by how many seconds, as a long, and whoever
   writes there sets the clocks of all processes that run by it. A wait until a moment of the day lasts until it is that
   late by this clock, as it does where the system's own is set. Monotonic clocks stay as they are. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static const volatile long still = 0, *ahead_s = &still;
static const long year_s = 31536000, look_every_ns = 200000000, second_ns = 1000000000;

typedef int wait_until(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static wait_until *system_wait;

__attribute__((constructor)) static void begin(void) {
    system_wait = (wait_until *)dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!system_wait)
        system_wait = (wait_until *)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    const char *name = getenv("CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *held = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    if (held != MAP_FAILED)
        ahead_s = held;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *ahead_s;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    int failed = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *told) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (told)
        *told = exact.tv_sec;
    return exact.tv_sec;
}

static int is_before(const struct timespec *one, const struct timespec *other) {
    return one->tv_sec < other->tv_sec || (one->tv_sec == other->tv_sec && one->tv_nsec < other->tv_nsec);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    if (until->tv_sec < year_s) /* a moment of the monotonic clock: the machine has not run for that long */
        return system_wait(condition, mutex, until);
    for (;;) {
        struct timespec look, due = *until;
        due.tv_sec -= *ahead_s;
        syscall(SYS_clock_gettime, CLOCK_REALTIME, &look);
        look.tv_nsec += look_every_ns;
        if (look.tv_nsec >= second_ns) {
            look.tv_nsec -= second_ns;
            look.tv_sec++;
        }
        int is_last = !is_before(&look, &due);
        int failed = system_wait(condition, mutex, is_last ? &due : &look);
        if (failed != ETIMEDOUT || is_last)
            return failed;
    }
}

/* To glibc these are the same. */
int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until) {
    int failed = pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);
    return failed == ETIMEDOUT ? thrd_timedout : failed ? thrd_error : thrd_success;
}
