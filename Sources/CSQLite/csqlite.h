#ifndef SLUICE_CSQLITE_H
#define SLUICE_CSQLITE_H
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

// The part of SQLite 3 that the journal of background transfers uses. Declared here, because the library is opened when the
// daemon starts: neither building nor running anything else requires it.

typedef struct sqlite3 sluice_sqlite;
typedef struct sqlite3_stmt sluice_sqlite_statement;

typedef struct {
    int (*open)(const char *, sluice_sqlite **, int, const char *);
    int (*close)(sluice_sqlite *);
    int (*busy_timeout)(sluice_sqlite *, int);
    const char *(*error_text)(sluice_sqlite *);
    int (*error_code)(sluice_sqlite *);
    int (*execute)(sluice_sqlite *, const char *, void *, void *, char **);
    int (*prepare)(sluice_sqlite *, const char *, int, sluice_sqlite_statement **, const char **);
    int (*bind_integer)(sluice_sqlite_statement *, int, int64_t);
    int (*bind_blob)(sluice_sqlite_statement *, int, const void *, int, void (*)(void *));
    int (*step)(sluice_sqlite_statement *);
    int64_t (*column_integer)(sluice_sqlite_statement *, int);
    const void *(*column_blob)(sluice_sqlite_statement *, int);
    int (*column_bytes)(sluice_sqlite_statement *, int);
    int (*reset)(sluice_sqlite_statement *);
    int (*clear_bindings)(sluice_sqlite_statement *);
    int (*finalize)(sluice_sqlite_statement *);
} sluice_sqlite_functions;

enum {
    SLUICE_SQLITE_OK = 0,
    SLUICE_SQLITE_ROW = 100,
    SLUICE_SQLITE_DONE = 101,
    // SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_NOFOLLOW
    SLUICE_SQLITE_OPEN_FLAGS = 0x2 | 0x4 | 0x10000 | 0x1000000,
};

// Creates the file of a database if it is missing, and withdraws all access but its owner's, also to files of its log that are
// there already: SQLite gives new ones the same mode. A file that exists is not opened, as closing it would release the locks of
// this process.
static inline void sluice_sqlite_make_private(const char *path) {
    int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor >= 0) close(descriptor);
    const char *endings[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        char name[4096];
        if (snprintf(name, sizeof name, "%s%s", path, endings[i]) >= (int)sizeof name) continue;
        struct stat found;
        if (lstat(name, &found) == 0 && S_ISREG(found.st_mode) && (found.st_mode & 077) != 0) chmod(name, found.st_mode & 0700);
    }
}

// SQLITE_TRANSIENT: SQLite copies the bytes before the call returns.
static inline int sluice_sqlite_bind_copy(
    const sluice_sqlite_functions *sqlite, sluice_sqlite_statement *statement, int index, const void *bytes, int count) {
    static const char empty = 0;
    return sqlite->bind_blob(statement, index, bytes == NULL ? &empty : bytes, count, (void (*)(void *))(intptr_t)-1);
}

// Opens the library and finds its functions. Returns NULL, or the name of the missing function; "" if there is no library: its
// own name may be gone when the caller reads it.
static inline const char *sluice_sqlite_load(sluice_sqlite_functions *sqlite, const char *library) {
    const struct {
        const char *name;
        void **function;
    } wanted[] = {
        {"sqlite3_open_v2", (void **)&sqlite->open},
        {"sqlite3_close_v2", (void **)&sqlite->close},
        {"sqlite3_busy_timeout", (void **)&sqlite->busy_timeout},
        {"sqlite3_errmsg", (void **)&sqlite->error_text},
        {"sqlite3_extended_errcode", (void **)&sqlite->error_code},
        {"sqlite3_exec", (void **)&sqlite->execute},
        {"sqlite3_prepare_v2", (void **)&sqlite->prepare},
        {"sqlite3_bind_int64", (void **)&sqlite->bind_integer},
        {"sqlite3_bind_blob", (void **)&sqlite->bind_blob},
        {"sqlite3_step", (void **)&sqlite->step},
        {"sqlite3_column_int64", (void **)&sqlite->column_integer},
        {"sqlite3_column_blob", (void **)&sqlite->column_blob},
        {"sqlite3_column_bytes", (void **)&sqlite->column_bytes},
        {"sqlite3_reset", (void **)&sqlite->reset},
        {"sqlite3_clear_bindings", (void **)&sqlite->clear_bindings},
        {"sqlite3_finalize", (void **)&sqlite->finalize},
    };
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) return "";
    for (size_t index = 0; index < sizeof wanted / sizeof *wanted; index++) {
        *wanted[index].function = dlsym(handle, wanted[index].name);
        if (*wanted[index].function == NULL) return wanted[index].name;
    }
    return NULL;
}
#endif
