// The kernel's interface as Swift can import it: macros and variadic calls become inline functions.
#ifndef SLUICE_CLINUX_H
#define SLUICE_CLINUX_H
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <malloc.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <resolv.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef TCP_USER_TIMEOUT
#define TCP_USER_TIMEOUT 18
#endif

#ifndef TCP_NOTSENT_LOWAT
#define TCP_NOTSENT_LOWAT 25
#endif

#ifndef TCP_KEEPIDLE
#define TCP_KEEPIDLE 4
#define TCP_KEEPINTVL 5
#define TCP_KEEPCNT 6
#endif

// Declared by the headers only under _GNU_SOURCE, which Swift's own view of the C library is built without.
extern int accept4(int, struct sockaddr *, socklen_t *, int);
extern int pthread_setname_np(pthread_t, const char *);

enum { SLUICE_EAI_NODATA = -5 };

// Descriptors that this process may have; a limit above the range of their numbers is no limit.
static inline int sluice_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return INT32_MAX;
    return limit.rlim_cur > INT32_MAX ? INT32_MAX : (int)limit.rlim_cur;
}

static inline void sluice_raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static inline int sluice_duplicate(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 3); }

static inline int64_t sluice_monotonic_nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t sluice_boottime_nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t sluice_wall_clock_milliseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline int sluice_accept(int listener, struct sockaddr_storage *peer, socklen_t *length) {
    return accept4(listener, (struct sockaddr *)peer, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static inline int sluice_errno(void) { return errno; }

// The four calls of every message, made directly: the C library's own are points where a thread may be cancelled, which
// costs two atomic operations a call in a process with several threads. No thread of ours is ever cancelled.
static inline ssize_t sluice_receive(int fd, void *bytes, size_t count) {
    return syscall(SYS_recvfrom, fd, bytes, count, 0, NULL, NULL);
}

static inline ssize_t sluice_send(int fd, const void *bytes, size_t count) {
    return syscall(SYS_sendto, fd, bytes, count, MSG_NOSIGNAL, NULL, 0);
}

static inline ssize_t sluice_send_message(int fd, const struct msghdr *message) {
    return syscall(SYS_sendmsg, fd, message, MSG_NOSIGNAL);
}

static inline int sluice_poll(int poller, struct epoll_event *found, int room, int milliseconds) {
    return (int)syscall(SYS_epoll_pwait, poller, found, room, milliseconds, NULL, 0);
}

// Makes a pipe that splices go through, as large as the system lets it be. Refused with EPERM while a write to a closed
// connection would kill the process by SIGPIPE: a splice, unlike a send, cannot say that it must not.
static inline int sluice_open_pipe(int ends[2], int capacity) {
    struct sigaction action;
    if (sigaction(SIGPIPE, NULL, &action) != 0) return -1;
    if (action.sa_handler != SIG_IGN) {
        errno = EPERM;
        return -1;
    }
    if (syscall(SYS_pipe2, ends, O_NONBLOCK | O_CLOEXEC) != 0) return -1;
    fcntl(ends[1], 1031 /* F_SETPIPE_SZ */, capacity);
    return 0;
}

// SPLICE_F_MOVE and SPLICE_F_NONBLOCK.
static inline ssize_t sluice_splice(int from, int to, size_t count) {
    return syscall(SYS_splice, from, NULL, to, NULL, count, 1 | 2);
}

/* Sends the first `count` bytes of `head`, at most eight, and `length` bytes behind them. */
static inline ssize_t sluice_send_behind(int fd, uint64_t head, size_t count, const void *bytes, size_t length) {
    struct iovec pieces[2] = {{&head, count}, {(void *)bytes, length}};
    struct msghdr message = {0};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    return sluice_send_message(fd, &message);
}

static inline int sluice_bind(int fd, const struct sockaddr *a, socklen_t n) { return bind(fd, a, n); }
static inline int sluice_connect(int fd, const struct sockaddr *a, socklen_t n) { return connect(fd, a, n); }

static inline int sluice_stream_socket(int family) {
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

// A socket of Multipath TCP (RFC 8684), which speaks TCP with a peer that does not know it; -1 where the kernel has none.
static inline int sluice_multipath_socket(int family) {
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 262 /* IPPROTO_MPTCP */);
}

// Whether a connection uses Multipath TCP: not one that fell back to TCP, nor any other socket.
static inline int sluice_is_multipath(int fd) {
    enum { flags_offset = 8, is_fallback = 1 };
    unsigned char information[128];
    socklen_t length = sizeof information;
    uint32_t flags;
    if (getsockopt(fd, 284 /* SOL_MPTCP */, 1 /* MPTCP_INFO */, information, &length) != 0) return 0;
    if (length < flags_offset + sizeof flags) return 0;
    memcpy(&flags, information + flags_offset, sizeof flags);
    return (flags & is_fallback) == 0;
}

// Makes a socket use this interface only. Needs a privilege before Linux 5.7.
static inline int sluice_bind_to_interface(int fd, int interface) {
    return setsockopt(fd, SOL_SOCKET, 62 /* SO_BINDTOIFINDEX */, &interface, sizeof interface);
}

// A socket for questions about routes, which also receives the notifications of `groups`, a bit for each
// (rtnetlink(7)); -1 where there is none.
static inline int sluice_route_socket(uint32_t groups) {
    struct { uint16_t family, padding; uint32_t port, groups; } own = {16 /* AF_NETLINK */, 0, 0, groups};
    int fd = socket(own.family, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0 /* NETLINK_ROUTE */);
    if (fd >= 0 && groups != 0 && bind(fd, (const struct sockaddr *)&own, sizeof own) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

// The flags of an interface, IFF_UP among them; -1 if there is none of that name.
static inline int sluice_interface_flags(const char *name) {
    struct { char name[16]; short flags; char rest[22]; } request = {0};
    if (strlen(name) >= sizeof request.name) return -1;
    strcpy(request.name, name);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    long found = syscall(SYS_ioctl, fd, 0x8913 /* SIOCGIFFLAGS */, &request);
    close(fd);
    return found == 0 ? (uint16_t)request.flags : -1;
}

// The indices of interfaces that are up, without loopback, those known to have a link first: the kernel may know it of a new
// one up to a second late. Returns how many there are, at most `room`.
static inline int sluice_usable_interfaces(uint32_t *found, int room) {
    struct if_nameindex *list = if_nameindex();
    int count = 0;
    for (int wanted = IFF_UP | IFF_RUNNING; wanted != 0; wanted = wanted == IFF_UP ? 0 : IFF_UP) {
        for (struct if_nameindex *each = list; list && each->if_index != 0 && count < room; each++) {
            int flags = sluice_interface_flags(each->if_name);
            if (flags < 0 || (flags & IFF_LOOPBACK)) continue;
            if ((flags & (IFF_UP | IFF_RUNNING)) == wanted) found[count++] = each->if_index;
        }
    }
    if (list) if_freenameindex(list);
    return count;
}

// Without `waits` it neither waits for the writer of a FIFO, nor opens one: fails with ESPIPE.
static inline int sluice_open_for_reading(const char *path, int waits) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | (waits ? 0 : O_NONBLOCK));
    struct stat s;
    if (fd < 0 || waits || fstat(fd, &s) != 0 || !S_ISFIFO(s.st_mode)) return fd;
    close(fd);
    errno = ESPIPE;
    return -1;
}

// Opens a file for each of the descriptors 0 to 2 that is closed, so that no socket or log gets its number. Reads see the end;
// writes fail with EBADF, as on a closed descriptor. Not closed in programs that this one starts.
static inline void sluice_open_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        // The lowest free number, which is this one. Without /dev, reads fail too.
        if (open("/dev/null", O_RDONLY) == -1 && open("/", O_RDONLY | O_DIRECTORY) == -1) return;
    }
}

// Kind of an open file: 0 another, 1 a regular file, 2 a directory; -1 if the system does not say. Times are in nanoseconds.
static inline int sluice_file_status(int fd, int64_t *size, int64_t *modified, uint64_t *inode) {
    struct stat s;
    if (fstat(fd, &s) != 0) return -1;
    *size = s.st_size;
    *modified = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
    *inode = s.st_ino;
    return S_ISREG(s.st_mode) ? 1 : S_ISDIR(s.st_mode) ? 2 : 0;
}

// O_PATH: files in the folder can be opened without permission to list it.
static inline int sluice_open_folder(const char *path) {
    return open(path, 010000000 /* O_PATH */ | O_DIRECTORY | O_CLOEXEC);
}

// Opens a file below a folder for reading, never waiting for a FIFO's writer. By openat2(2) with RESOLVE_BENEATH and
// RESOLVE_NO_MAGICLINKS: the kernel refuses a name or a link that leads out of the folder.
static inline int sluice_open_beneath(int folder, const char *name) {
    struct { uint64_t flags, mode, resolve; } how = {O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0, 0x08 | 0x02};
    return (int)syscall(437 /* SYS_openat2 */, folder, name, &how, sizeof how);
}

// The same with openat(2), where there is no openat2: segment by segment, without following links.
static inline int sluice_open_stepwise(int folder, const char *name) {
    int current = folder;
    for (;;) {
        char segment[256];
        size_t length = strcspn(name, "/");
        int is_last = name[length] == 0;
        if (length == 0 || length >= sizeof segment || (length == 2 && name[0] == '.' && name[1] == '.')) {
            if (current != folder) close(current);
            errno = length >= sizeof segment ? ENAMETOOLONG : length == 0 ? ENOENT : EXDEV;
            return -1;
        }
        memcpy(segment, name, length);
        segment[length] = 0;
        int flags = is_last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : 010000000 /* O_PATH */ | O_DIRECTORY;
        int next = openat(current, segment, flags | O_NOFOLLOW | O_CLOEXEC);
        int error = errno;
        if (current != folder) close(current);
        errno = error;
        if (next < 0 || is_last) return next;
        current = next;
        name += length + 1;
    }
}

static inline ssize_t sluice_read_at(int fd, void *bytes, size_t count, int64_t offset) {
    return pread(fd, bytes, count, offset);
}

// Appends the names in an open directory, each after a byte for its kind ('d' for a folder) and before a zero byte. Returns
// the bytes used; -1 with an error. Stops when `room` is used up, and says so in `is_whole`.
static inline ssize_t sluice_list_folder(int fd, char *names, size_t room, int *is_whole) {
    char entries[8192];
    size_t used = 0;
    *is_whole = 1;
    for (;;) {
        long count = syscall(SYS_getdents64, fd, entries, sizeof entries);
        if (count < 0) return -1;
        if (count == 0) return (ssize_t)used;
        for (long at = 0; at < count;) {
            uint16_t length;
            memcpy(&length, entries + at + 16, sizeof length);
            unsigned char kind = (unsigned char)entries[at + 18];
            const char *name = entries + at + 19;
            size_t size = strlen(name) + 2;
            at += length;
            if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
            if (size > room - used) {
                *is_whole = 0;
                return (ssize_t)used;
            }
            names[used] = kind == 4 /* DT_DIR */ ? 'd' : '-';
            memcpy(names + used + 1, name, size - 1);
            used += size;
        }
    }
}

static inline ssize_t sluice_send_file(int to, int from, int64_t offset, size_t count) {
    return syscall(SYS_sendfile, to, from, &offset, count);
}

// Whether a write to a closed connection fails without a signal, which sendfile(2) cannot ask for.
static inline int sluice_ignores_broken_pipes(void) {
    struct sigaction action;
    return sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static inline int sluice_datagram_type(void) { return SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK; }

static inline ssize_t sluice_send_to(int fd, const void *bytes, size_t count, const struct sockaddr *a, socklen_t n) {
    return sendto(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT, a, n);
}

static inline void sluice_prepare_passed(int fd) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

// Processors that this process may run on: fewer than are online when it is pinned.
static inline int sluice_usable_cores(void) {
    unsigned long mask[128] = {0};
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    int count = 0;
    for (long i = 0; i < bytes / (long)sizeof *mask; i++) count += __builtin_popcountl(mask[i]);
    return count > 0 ? count : 1;
}

static inline uint64_t sluice_random(void) {
    uint64_t value = 0;
    getentropy(&value, sizeof value);
    return value;
}

// The mode bits of a socket file, or -1 when the path is something else.
static inline int sluice_is_socket_file(const char *path) {
    struct stat s;
    return lstat(path, &s) == 0 && S_ISSOCK(s.st_mode);
}

// Locks a folder for this process; closing the descriptor unlocks it. -1 if it cannot be read, or if another process still has
// the lock after 200 ms: any that may read the folder can take it.
static inline int sluice_lock_folder(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int tries = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; tries++) {
        if (tries == 20 || (errno != EWOULDBLOCK && errno != EINTR)) {
            close(fd);
            return -1;
        }
        struct timespec pause = {0, 10 * 1000 * 1000};
        nanosleep(&pause, NULL);
    }
    return fd;
}

// Whether the path is that of a socket file; then its device and number.
static inline int sluice_socket_file(const char *path, uint64_t *device, uint64_t *inode) {
    struct stat s;
    if (lstat(path, &s) != 0 || !S_ISSOCK(s.st_mode)) return 0;
    *device = s.st_dev;
    *inode = s.st_ino;
    return 1;
}

/* Whether there is a file at the path, and it is no socket. Links are followed, as connect does. */
static inline int sluice_is_other_file(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 && !S_ISSOCK(s.st_mode);
}

static inline int sluice_getsockname(int fd, struct sockaddr_storage *a, socklen_t *n) {
    return getsockname(fd, (struct sockaddr *)a, n);
}

static inline int sluice_getpeername(int fd, struct sockaddr_storage *a, socklen_t *n) {
    return getpeername(fd, (struct sockaddr *)a, n);
}

// Effective user of the process at the other end of a Unix socket; -1 if the system does not say. The struct is declared by
// the headers only under _GNU_SOURCE.
static inline int64_t sluice_peer_user(int fd) {
    struct {
        pid_t pid;
        uid_t uid;
        gid_t gid;
    } peer = {0, (uid_t)-1, 0};
    socklen_t length = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || length != sizeof peer) return -1;
    return peer.uid == (uid_t)-1 ? -1 : (int64_t)peer.uid;
}

// Bytes of a connection's output that the peer has not acknowledged, those not sent yet included; of a Unix socket, memory
// of what the peer has not read. -1 where that is unknown.
static inline int sluice_unacknowledged(int fd) {
    int count = 0;
    return syscall(SYS_ioctl, fd, 0x5411 /* SIOCOUTQ */, &count) == 0 ? count : -1;
}

// What TCP_INFO says of a connection's output, by the offsets of the kernel's own struct: the C library's is an older one.
// Bytes not sent yet, and the window that the peer offers; -1 where the kernel is too old to say.
static inline void sluice_output_information(int fd, int64_t *unsent, int64_t *window) {
    enum { notsent_bytes = 144, snd_wnd = 228 };
    unsigned char information[256];
    socklen_t length = sizeof information;
    uint32_t value;
    *unsent = *window = -1;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, information, &length) != 0) return;
    if (length >= notsent_bytes + sizeof value) {
        memcpy(&value, information + notsent_bytes, sizeof value);
        *unsent = value;
    }
    if (length >= snd_wnd + sizeof value) {
        memcpy(&value, information + snd_wnd, sizeof value);
        *window = value;
    }
}

// Signals that control the process. The handler stores them for the main program, and ends the process by itself: a
// first ending signal starts a timer, a second one a timer of one second, a third ends the process at once. It uses no
// thread, loop or lock of ours. Weak: one instance per process, whichever objects this header is compiled into.
__attribute__((weak, visibility("hidden"))) struct {
    int waker;
    uint64_t taken;
    uint64_t ending;
    uint32_t asked;
    uint32_t patience;
    int code;
    int has_terminal;
    unsigned char terminal[64];
} sluice_steering = {.waker = -1};

static inline void sluice_end_now(void) {
    if (__atomic_load_n(&sluice_steering.has_terminal, __ATOMIC_ACQUIRE)) {
        syscall(SYS_ioctl, STDIN_FILENO, 0x5402 /* TCSETS */, sluice_steering.terminal);
    }
    _exit(sluice_steering.code);
}

static inline void sluice_take_signal(int number, siginfo_t *information, void *context) {
    (void)context;
    int saved = errno;
    if (number == SIGALRM) {
        // Our timer runs after a signal that ends the process. The kernel's codes are above 0.
        if (information->si_code > 0 && __atomic_load_n(&sluice_steering.asked, __ATOMIC_SEQ_CST) > 0) sluice_end_now();
        return;
    }
    __atomic_fetch_or(&sluice_steering.taken, (uint64_t)1 << number, __ATOMIC_SEQ_CST);
    if (sluice_steering.ending >> number & 1) {
        uint32_t asked = __atomic_add_fetch(&sluice_steering.asked, 1, __ATOMIC_SEQ_CST);
        if (asked > 2) sluice_end_now();
        uint32_t patience = asked == 2 ? 1 : __atomic_load_n(&sluice_steering.patience, __ATOMIC_SEQ_CST);
        if (patience > 0) alarm(patience);
    }
    uint64_t one = 1;
    (void)!write(sluice_steering.waker, &one, sizeof one);
    errno = saved;
}

// From here on the signals of both sets (a bit for each number below 64) are taken; those of `ending` ask for the end.
// Returns an eventfd that is readable when signals were received, or -1.
static inline int sluice_take_signals(uint64_t ending, uint64_t others, int code) {
    int waker = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (waker < 0) return -1;
    sluice_steering.waker = waker;
    sluice_steering.ending = ending;
    sluice_steering.code = code;
    struct sigaction action = {0};
    sigset_t set;
    action.sa_sigaction = sluice_take_signal;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    sigfillset(&action.sa_mask);
    sigemptyset(&set);
    for (int number = 1; number < 64; number++) {
        if (!((ending | others) >> number & 1) && number != SIGALRM) continue;
        sigaction(number, &action, NULL);
        sigaddset(&set, number);
    }
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    return waker;
}

static inline int sluice_signal_waker(void) { return sluice_steering.waker; }

// The signals received since the last call.
static inline uint64_t sluice_signals_taken(void) {
    uint64_t count;
    (void)!read(sluice_steering.waker, &count, sizeof count);
    return __atomic_exchange_n(&sluice_steering.taken, 0, __ATOMIC_SEQ_CST);
}

// Waits until a signal is received.
static inline void sluice_await_signal(void) {
    struct pollfd wanted = {.fd = sluice_steering.waker, .events = POLLIN};
    poll(&wanted, 1, -1);
}

// Seconds from the first ending signal to the end of the process; 0: no limit. Counted from now if one was received.
static inline void sluice_set_patience(uint32_t seconds) {
    __atomic_store_n(&sluice_steering.patience, seconds, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&sluice_steering.asked, __ATOMIC_SEQ_CST) == 1) alarm(seconds);
}

// An end of that kind sets the terminal to what it is set to now, or leaves it. By the kernel's own calls: were the C library's
// types seen here, Swift would take them for this module's alone.
static inline void sluice_keep_terminal(int keeps) {
    __atomic_store_n(&sluice_steering.has_terminal, 0, __ATOMIC_SEQ_CST);
    if (!keeps || syscall(SYS_ioctl, STDIN_FILENO, 0x5401 /* TCGETS */, sluice_steering.terminal) != 0) return;
    __atomic_store_n(&sluice_steering.has_terminal, 1, __ATOMIC_RELEASE);
}

// Addresses: filled from and read into integers, so that no union crosses into Swift. A length of 0 means "does not fit".
static inline socklen_t sluice_fill_ipv4(struct sockaddr_storage *s, uint32_t address, uint16_t port) {
    struct sockaddr_in *a = (struct sockaddr_in *)s;
    memset(a, 0, sizeof *a);
    a->sin_family = AF_INET;
    a->sin_port = htons(port);
    a->sin_addr.s_addr = htonl(address);
    return sizeof *a;
}

static inline socklen_t sluice_fill_ipv6(
    struct sockaddr_storage *s, uint64_t high, uint64_t low, uint32_t scope, uint16_t port) {
    struct sockaddr_in6 *a = (struct sockaddr_in6 *)s;
    memset(a, 0, sizeof *a);
    a->sin6_family = AF_INET6;
    a->sin6_port = htons(port);
    a->sin6_scope_id = scope;
    for (int i = 0; i < 8; i++) {
        a->sin6_addr.s6_addr[i] = (uint8_t)(high >> (56 - 8 * i));
        a->sin6_addr.s6_addr[8 + i] = (uint8_t)(low >> (56 - 8 * i));
    }
    return sizeof *a;
}

static inline socklen_t sluice_fill_unix(struct sockaddr_storage *s, const char *path, size_t length) {
    struct sockaddr_un *a = (struct sockaddr_un *)s;
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    if (length >= sizeof a->sun_path) return 0;
    memcpy(a->sun_path, path, length);
    if (length > 0 && path[0] == '@') {
        a->sun_path[0] = 0;
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    }
    return sizeof *a;
}

static inline uint32_t sluice_ipv4_address(const struct sockaddr_storage *s) {
    return ntohl(((const struct sockaddr_in *)s)->sin_addr.s_addr);
}

static inline uint64_t sluice_ipv6_half(const struct sockaddr_storage *s, int half) {
    const uint8_t *b = ((const struct sockaddr_in6 *)s)->sin6_addr.s6_addr + 8 * half;
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value = value << 8 | b[i];
    return value;
}

static inline uint32_t sluice_ipv6_scope(const struct sockaddr_storage *s) {
    return ((const struct sockaddr_in6 *)s)->sin6_scope_id;
}

static inline uint16_t sluice_port(const struct sockaddr_storage *s) {
    return ntohs(s->ss_family == AF_INET ? ((const struct sockaddr_in *)s)->sin_port
                                         : ((const struct sockaddr_in6 *)s)->sin6_port);
}

// `path` has room for 128 bytes and ends in a NUL.
static inline void sluice_unix_path(const struct sockaddr_storage *s, socklen_t length, char *path) {
    const struct sockaddr_un *a = (const struct sockaddr_un *)s;
    size_t head = offsetof(struct sockaddr_un, sun_path), n = length > head ? length - head : 0;
    if (n > sizeof a->sun_path) n = sizeof a->sun_path;
    memcpy(path, a->sun_path, n);
    path[n] = 0;
    if (n > 1 && path[0] == 0) path[0] = '@';
}

static inline int sluice_parse_literal(const char *host, struct sockaddr_storage *s) {
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found = NULL;
    // getaddrinfo takes `127.1` and `0x7f000001` for addresses too; only the written-out forms are literals here.
    uint8_t bytes[16];
    char bare[64];
    size_t n = strcspn(host, "%");
    if (n >= sizeof bare) return 0;
    memcpy(bare, host, n);
    bare[n] = 0;
    if (inet_pton(AF_INET, host, bytes) != 1 && inet_pton(AF_INET6, bare, bytes) != 1) return 0;
    if (getaddrinfo(host, NULL, &hints, &found) != 0 || !found) return 0;
    memcpy(s, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 1;
}

// Asks the system's name servers, or the one at an IPv4 address other than 0, for records of a type, and whether they have
// authenticated the answer (RFC 6840 §5.7). Returns the length of the answer, or a negated error of netdb.h, as where the
// C library cannot ask.
static inline int sluice_query_authenticated(
    const char *name, int type, uint32_t server, uint16_t port, unsigned char *answer, int room) {
#ifdef RES_TRUSTAD
    struct __res_state state;
    memset(&state, 0, sizeof state);
    if (res_ninit(&state) != 0) return -NO_RECOVERY;
    state.options |= RES_TRUSTAD | RES_USE_EDNS0;
    if (server != 0) {
        state.nscount = 1;
        memset(state.nsaddr_list, 0, sizeof state.nsaddr_list);
        state.nsaddr_list[0].sin_family = AF_INET;
        state.nsaddr_list[0].sin_port = htons(port);
        state.nsaddr_list[0].sin_addr.s_addr = htonl(server);
    }
    int count = res_nquery(&state, name, 1 /* IN */, type, answer, room);
    int error = state.res_h_errno;
    res_nclose(&state);
    return count >= 0 ? count : error > 0 ? -error : -NO_RECOVERY;
#else
    (void)name, (void)type, (void)server, (void)port, (void)answer, (void)room;
    return -NO_RECOVERY;
#endif
}

static inline int sluice_format_host(const struct sockaddr *a, char *text, socklen_t room) {
    socklen_t length = a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    return getnameinfo(a, length, text, room, NULL, 0, NI_NUMERICHOST) == 0;
}
#endif
