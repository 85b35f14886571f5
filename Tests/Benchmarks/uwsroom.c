// uwsroom: one chat room on µWebSockets, as a yardstick for ours. Each message goes to all other connections.
//   uwsroom PORT LIBRARY
// LIBRARY is libsocketify of PyPI's socketify: µWebSockets on libuv with an interface in C, which comes without a header.
// The declarations below are those of its native.py. No Python runs here.
// Build: cc -O3 -o uwsroom uwsroom.c -ldl
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void app, websocket, response, request, socket_context;
struct socket_options { const char *key, *certificate, *passphrase, *dh_parameters, *authorities, *ciphers; int low_memory; };
struct listen_options { int port; const char *host; int options; };
struct behavior {
    int compression;
    unsigned maximum_payload;
    unsigned short idle_timeout;
    unsigned maximum_backpressure;
    bool close_on_backpressure, reset_idle_on_send, sends_pings;
    unsigned short maximum_lifetime;
    void (*upgrade)(response *, request *, socket_context *, void *);
    void (*open)(websocket *, void *);
    void (*message)(websocket *, const char *, size_t, int opcode, void *);
    void (*drain)(websocket *, void *);
    void (*ping)(websocket *, const char *, size_t, void *);
    void (*pong)(websocket *, const char *, size_t, void *);
    void (*close)(websocket *, int, const char *, size_t, void *);
    void (*subscription)(websocket *, const char *, size_t, int, int, void *);
};
static app *(*create_app)(int ssl, struct socket_options);
static void (*ws)(int ssl, app *, const char *pattern, struct behavior, void *);
static void (*listen_at)(int ssl, app *, struct listen_options, void (*)(void *, struct listen_options *, void *), void *);
static void (*run)(int ssl, app *);
static bool (*subscribe)(int ssl, websocket *, const char *, size_t);
static bool (*publish)(int ssl, websocket *, const char *, size_t, const char *, size_t, int opcode, bool compress);

static void opened(websocket *socket, void *data) {
    (void)data;
    subscribe(0, socket, "room", 4);
}
static void received(websocket *socket, const char *bytes, size_t count, int opcode, void *data) {
    (void)data;
    publish(0, socket, "room", 4, bytes, count, opcode, false);
}
static void listening(void *listener, struct listen_options *options, void *data) {
    (void)data;
    if (listener) return;
    fprintf(stderr, "uwsroom: cannot listen at port %d\n", options->port);
    exit(1);
}
static void load(void *library, void *function, const char *name) {
    void *found = dlsym(library, name);
    if (!found) { fprintf(stderr, "uwsroom: no %s in the library\n", name); exit(1); }
    memcpy(function, &found, sizeof found);
}
int main(int argc, char **argv) {
    if (argc < 3) { fprintf(stderr, "usage: uwsroom PORT LIBRARY\n"); return 2; }
    void *library = dlopen(argv[2], RTLD_NOW);
    if (!library) { fprintf(stderr, "uwsroom: %s\n", dlerror()); return 1; }
    load(library, &create_app, "uws_create_app");
    load(library, &ws, "uws_ws");
    load(library, &listen_at, "uws_app_listen_with_config");
    load(library, &run, "uws_app_run");
    load(library, &subscribe, "uws_ws_subscribe");
    load(library, &publish, "uws_ws_publish_with_options");
    app *server = create_app(0, (struct socket_options){0});
    ws(0, server, "/*", (struct behavior){
        .maximum_payload = 1 << 20, .idle_timeout = 120, .maximum_backpressure = 4 << 20, .open = opened, .message = received,
    }, NULL);
    listen_at(0, server, (struct listen_options){.port = atoi(argv[1]), .host = "127.0.0.1"}, listening, NULL);
    run(0, server);
    return 0;
}
