// countmalloc: counts the allocations of a process, for LD_PRELOAD. The count is the first eight bytes of the file that
// COUNTMALLOC_FILE names (made by who wants to read it), mapped and shared, so it can be read while the process works.
// Build: cc -O2 -shared -fPIC -o countmalloc.so countmalloc.c
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
static _Atomic uint64_t early, *counter = &early;

__attribute__((constructor)) static void map_counter(void) {
    const char *path = getenv("COUNTMALLOC_FILE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page != MAP_FAILED) counter = page;
}
static void count(void) { atomic_fetch_add_explicit(counter, 1, memory_order_relaxed); }
void *malloc(size_t n) { count(); return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { count(); return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { count(); return __libc_realloc(p, n); }
void *memalign(size_t alignment, size_t n) { count(); return __libc_memalign(alignment, n); }
void *aligned_alloc(size_t alignment, size_t n) { count(); return __libc_memalign(alignment, n); }
int posix_memalign(void **p, size_t alignment, size_t n) {
    count();
    void *made = __libc_memalign(alignment, n);
    if (!made) return ENOMEM;
    *p = made;
    return 0;
}
