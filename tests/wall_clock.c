/* Shows a wall clock that is ahead of the right one by the seconds in a file, for processes that preload this (LD_PRELOAD).
 *
 * The clocks of intervals are left alone, as by a clock that is set. A wait until a time of the wall clock ends when that clock, as it is
 * shown, has come there: so it is early after a leap ahead, and late after one back, as with the kernel's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* A time of the wall clock, and none since the start of the machine. */
#define WALL 1000000000L
#define SLICE_NS 50000000L

static long right_only;
static volatile long *ahead = &right_only;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("WALL_CLOCK_FILE");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) ahead = found;
    if (file >= 0) close(file);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, clock, at);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += *ahead;
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *at, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, at) ? base : 0;
}

/* The end of the next slice by the right wall clock, and whether the wait ends with it. */
static int slice(const struct timespec *until, struct timespec *end) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    long left = (until->tv_sec - *ahead - now.tv_sec) * 1000000000L + until->tv_nsec - now.tv_nsec;
    int last = left <= SLICE_NS;
    long nanoseconds = now.tv_nsec + (last ? (left > 0 ? left : 0) : SLICE_NS);
    end->tv_sec = now.tv_sec + nanoseconds / 1000000000L;
    end->tv_nsec = nanoseconds % 1000000000L;
    return last;
}

typedef int (*wait_cond)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
    static wait_cond next;
    if (!next) next = (wait_cond)dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!next) next = (wait_cond)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    if (until->tv_sec < WALL) return next(cond, mutex, until);
    for (;;) {
        struct timespec end;
        int last = slice(until, &end), result = next(cond, mutex, &end);
        if (result != ETIMEDOUT || last) return result;
    }
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    static int (*next)(sem_t *, const struct timespec *);
    if (!next) next = (int (*)(sem_t *, const struct timespec *))dlsym(RTLD_NEXT, "sem_timedwait");
    for (;;) {
        struct timespec end;
        int last = slice(until, &end), result = next(semaphore, &end);
        if (!result || errno != ETIMEDOUT || last) return result;
    }
}

int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict until) {
    static int (*next)(cnd_t *, mtx_t *, const struct timespec *);
    if (!next) next = (int (*)(cnd_t *, mtx_t *, const struct timespec *))dlsym(RTLD_NEXT, "cnd_timedwait");
    for (;;) {
        struct timespec end;
        int last = slice(until, &end), result = next(cond, mutex, &end);
        if (result != thrd_timedout || last) return result;
    }
}
