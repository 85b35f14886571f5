// deflateload: permessage-deflate (RFC 7692) through a WebSocket echo, every answer inflated and compared.
//   deflateload echo HOST:PORT PATH [options]
// Options: -c N connections (16)  -s N bytes per message (1024)  -t S seconds (3)  -l N level (6)  --no-takeover
//          --pid P process whose CPU time is read
// One line of JSON: messages, CPU seconds, microseconds of CPU per message.
// Build: cc -O3 -o deflateload deflateload.c -lz
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { TEXTS = 64, ROOM = 1 << 18 };
static int contexts = 16, size = 1024, level = 6, takeover = 1;
static double seconds = 3;
static char *texts[TEXTS];

static void die(const char *what) { fprintf(stderr, "deflateload: %s\n", what); exit(2); }
static double now(clockid_t clock) {
    struct timespec t;
    if (clock_gettime(clock, &t)) die("no such clock");
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static uint64_t seed = 1;
static unsigned chance(unsigned below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}
// Records like those of a feed: the same keys, changing values.
static void make_texts(void) {
    static const char *words[] = {"bid", "ask", "trade", "quote", "cancel", "open", "closed", "auction", "volume", "spread"};
    for (int t = 0; t < TEXTS; t++) {
        char *p = texts[t] = malloc((size_t)size + 256);
        int n = 0;
        while (n < size)
            n += sprintf(p + n, "{\"id\":%u,\"type\":\"%s\",\"price\":%u.%02u,\"size\":%u,\"flags\":[\"%s\",\"%s\"]},", chance(1000000),
                         words[chance(10)], chance(5000), chance(100), chance(900), words[chance(10)], words[chance(10)]);
        p[size] = 0;
    }
}
typedef struct {
    z_stream in, out;
} context;
static void start(context *c) {
    memset(c, 0, sizeof *c);
    if (inflateInit2(&c->in, -15) != Z_OK || deflateInit2(&c->out, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) die("zlib");
}
// RFC 7692 §7.2.1: flush, then leave the last four bytes 00 00 ff ff away.
static size_t squeeze(context *c, const void *from, size_t n, uint8_t *to) {
    c->out.next_in = (void *)from;
    c->out.avail_in = (unsigned)n;
    c->out.next_out = to;
    c->out.avail_out = ROOM;
    if (deflate(&c->out, Z_SYNC_FLUSH) != Z_OK || c->out.avail_out == 0) die("deflate");
    size_t made = ROOM - c->out.avail_out - 4;
    if (!takeover) deflateReset(&c->out);
    return made;
}
static size_t unsqueeze(context *c, uint8_t *from, size_t n, uint8_t *to) {
    memcpy(from + n, "\x00\x00\xff\xff", 4);
    c->in.next_in = from;
    c->in.avail_in = (unsigned)n + 4;
    c->in.next_out = to;
    c->in.avail_out = ROOM;
    int r = inflate(&c->in, Z_SYNC_FLUSH);
    if ((r != Z_OK && r != Z_BUF_ERROR) || c->in.avail_in) die("inflate");
    size_t made = ROOM - c->in.avail_out;
    if (!takeover) inflateReset(&c->in);
    return made;
}
static void report(uint64_t messages, uint64_t wire, double cpu) {
    printf("{\"messages\":%llu,\"wire_bytes_per_message\":%.1f,\"cpu_s\":%.4f,\"cpu_us_per_message\":%.4f}\n", (unsigned long long)messages,
           messages ? (double)wire / (double)messages : 0, cpu, messages ? cpu * 1e6 / (double)messages : 0);
}
// As long as windows fill up, each message takes more work than the one before.
static uint64_t warmup(void) { return (uint64_t)contexts * TEXTS; }
typedef struct {
    int fd, at;  // at: which text is awaited
    context zip;
    uint8_t *have;
    size_t n;
} connection;
static void put_all(int fd, const void *bytes, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t w = send(fd, (const char *)bytes + done, n - done, MSG_NOSIGNAL);
        if (w <= 0) die("the server closed the connection");
        done += (size_t)w;
    }
}
static void ask(connection *c) {
    static uint8_t squeezed[ROOM], frame[ROOM + 16];
    size_t n = squeeze(&c->zip, texts[c->at % TEXTS], (size_t)size, squeezed), head = 2;
    frame[0] = 0xc1;  // final, RSV1, text
    if (n < 126) frame[1] = 0x80 | (uint8_t)n;
    else { frame[1] = 0x80 | 126; frame[2] = (uint8_t)(n >> 8); frame[3] = (uint8_t)n; head = 4; }
    uint8_t key[4] = {(uint8_t)chance(255) + 1, (uint8_t)chance(255) + 1, (uint8_t)chance(255) + 1, (uint8_t)chance(255) + 1};
    memcpy(frame + head, key, 4);
    for (size_t i = 0; i < n; i++) frame[head + 4 + i] = squeezed[i] ^ key[i & 3];
    put_all(c->fd, frame, head + 4 + n);
}
// Takes one answer, when all of it is there.
static int answered(connection *c, uint64_t *wire) {
    static uint8_t body[ROOM + 4], plain[ROOM];
    if (c->n < 2) return 0;
    size_t n = c->have[1] & 0x7f, head = 2;
    if (c->have[1] & 0x80 || n == 127) die("an answer is masked or too long");
    if (n == 126) { if (c->n < 4) return 0; n = (size_t)c->have[2] << 8 | c->have[3]; head = 4; }
    if (c->n < head + n) return 0;
    uint8_t first = c->have[0];
    if (first == 0x89) die("pings are not expected in a run this short");
    if (first != 0xc1 && first != 0x81) die("an answer is no whole text message");
    const uint8_t *text = c->have + head;
    size_t length = n;
    if (first == 0xc1) { memcpy(body, text, n); length = unsqueeze(&c->zip, body, n, plain); text = plain; }
    else die("an answer came uncompressed");
    if (length != (size_t)size || memcmp(text, texts[c->at % TEXTS], length)) die("an answer differs");
    *wire += n;
    memmove(c->have, c->have + head + n, c->n - head - n);
    c->n -= head + n;
    return 1;
}
static void dial(connection *c, const struct sockaddr_in *address, const char *host, const char *path) {
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (c->fd < 0 || connect(c->fd, (const void *)address, sizeof *address)) die("cannot connect");
    char text[2048];
    int n = snprintf(text, sizeof text,
                     "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate%s\r\n\r\n",
                     path, host, takeover ? "" : "; client_no_context_takeover; server_no_context_takeover");
    put_all(c->fd, text, (size_t)n);
    char reply[4096];
    size_t have = 0;
    while (have < sizeof reply - 1) {
        if (recv(c->fd, reply + have, 1, 0) != 1) die("no answer to the opening handshake");
        reply[++have] = 0;
        if (have >= 4 && !memcmp(reply + have - 4, "\r\n\r\n", 4)) break;
    }
    if (strncmp(reply, "HTTP/1.1 101", 12) || !strcasestr(reply, "permessage-deflate")) die("permessage-deflate was not accepted");
    if (takeover && strcasestr(reply, "no_context_takeover")) die("the server wants no context takeover");
    start(&c->zip);
    c->have = malloc(ROOM);
    c->n = 0;
}
static int echo(char *where, const char *path, int pid) {
    char host[64];
    snprintf(host, sizeof host, "%s", where);
    char *colon = strrchr(where, ':');
    if (!colon) die("HOST:PORT");
    *colon = 0;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
    if (inet_pton(AF_INET, where, &address.sin_addr) != 1) die("HOST must be an IPv4 address");
    connection *all = calloc((size_t)contexts, sizeof *all);
    struct pollfd *polls = calloc((size_t)contexts, sizeof *polls);
    for (int i = 0; i < contexts; i++) {
        all[i].at = i;
        dial(&all[i], &address, host, path);
        polls[i] = (struct pollfd){.fd = all[i].fd, .events = POLLIN};
    }
    clockid_t clock;
    if (clock_getcpuclockid(pid, &clock)) die("no such process");
    for (int i = 0; i < contexts; i++) ask(&all[i]);
    uint64_t messages = 0, counted = 0, wire = 0;
    double cpu = now(clock), until = 0;
    while (!until || now(CLOCK_MONOTONIC) < until) {
        if (!until && messages >= warmup()) { until = now(CLOCK_MONOTONIC) + seconds; counted = wire = 0; cpu = now(clock); }
        if (poll(polls, (nfds_t)contexts, 5000) <= 0) die("the server answers nothing");
        for (int i = 0; i < contexts; i++) {
            connection *c = &all[i];
            if (!polls[i].revents) continue;
            ssize_t r = recv(c->fd, c->have + c->n, ROOM - c->n, MSG_DONTWAIT);
            if (r <= 0 && errno != EAGAIN) die("the server closed the connection");
            if (r > 0) c->n += (size_t)r;
            while (answered(c, &wire)) { messages++; counted++; c->at++; ask(c); }
        }
    }
    report(counted, wire, now(clock) - cpu);
    return 0;
}
int main(int argc, char **argv) {
    int pid = 0, at = 4;
    if (argc < 4 || strcmp(argv[1], "echo")) die("echo HOST:PORT PATH");
    for (int i = at; i < argc; i++) {
        if (!strcmp(argv[i], "--no-takeover")) { takeover = 0; continue; }
        if (i + 1 >= argc) die("an option lacks its value");
        if (!strcmp(argv[i], "-c")) contexts = atoi(argv[++i]);
        else if (!strcmp(argv[i], "-s")) size = atoi(argv[++i]);
        else if (!strcmp(argv[i], "-t")) seconds = atof(argv[++i]);
        else if (!strcmp(argv[i], "-l")) level = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--pid")) pid = atoi(argv[++i]);
        else die("unknown option");
    }
    make_texts();
    return echo(argv[2], argv[3], pid);
}
