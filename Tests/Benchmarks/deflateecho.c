// deflateecho: zlib and next to nothing around it, as a yardstick for permessage-deflate: a WebSocket echo that inflates every message
// and deflates it again, one context each way and connection.
//   deflateecho PORT [LEVEL]
// It trusts its peer: whole unfragmented messages below 64 KiB, no control frames, no limits. Never expose it.
// Build: cc -O3 -o deflateecho deflateecho.c -lcrypto -lz
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

enum { ROOM = 1 << 18 };
typedef struct {
    int fd, open, takeover;
    z_stream in, out;
    size_t n;
    uint8_t have[1 << 17];
} side;
static uint8_t plain[ROOM], reply[ROOM];

static int handshake(side *s, int level) {
    s->have[s->n] = 0;
    char *text = (char *)s->have, *end = strstr(text, "\r\n\r\n"), *key = strcasestr(text, "\r\nsec-websocket-key:");
    if (!end) return 0;
    if (!key) return -1;
    key += 20;
    key += strspn(key, " ");
    s->takeover = !strcasestr(text, "no_context_takeover");
    char joined[128], answer[512];
    snprintf(joined, sizeof joined, "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    uint8_t digest[20], accept[40];
    SHA1((uint8_t *)joined, strlen(joined), digest);
    EVP_EncodeBlock(accept, digest, 20);
    int n = snprintf(answer, sizeof answer,
                     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
                     "Sec-WebSocket-Extensions: permessage-deflate%s\r\n\r\n",
                     accept, s->takeover ? "" : "; server_no_context_takeover; client_no_context_takeover");
    if (inflateInit2(&s->in, -15) != Z_OK || deflateInit2(&s->out, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) return -1;
    s->open = 1;
    s->n = 0;
    return send(s->fd, answer, (size_t)n, MSG_NOSIGNAL) == n ? 1 : -1;
}
// Answers the message whose unmasked payload is `body` (room for four more bytes behind it); the length of the frame in `reply`.
static size_t turn(side *s, uint8_t *body, size_t n) {
    uint8_t saved[4];
    memcpy(saved, body + n, 4);
    memcpy(body + n, "\x00\x00\xff\xff", 4);
    s->in.next_in = body;
    s->in.avail_in = (unsigned)n + 4;
    s->in.next_out = plain;
    s->in.avail_out = ROOM;
    int r = inflate(&s->in, Z_SYNC_FLUSH);
    memcpy(body + n, saved, 4);
    if (r != Z_OK && r != Z_BUF_ERROR) return 0;
    s->out.next_in = plain;
    s->out.avail_in = ROOM - s->in.avail_out;
    s->out.next_out = reply + 4;
    s->out.avail_out = ROOM - 4;
    if (deflate(&s->out, Z_SYNC_FLUSH) != Z_OK) return 0;
    if (!s->takeover) { inflateReset(&s->in); deflateReset(&s->out); }
    size_t length = (size_t)(ROOM - 4) - s->out.avail_out - 4;
    reply[0] = 0xc1;
    reply[1] = 126;
    reply[2] = (uint8_t)(length >> 8);
    reply[3] = (uint8_t)length;
    if (length >= 126) return 4 + length;
    memmove(reply + 2, reply + 4, length);
    reply[1] = (uint8_t)length;
    return 2 + length;
}
static int readable(side *s, int level) {
    ssize_t r = recv(s->fd, s->have + s->n, sizeof s->have - 8 - s->n, 0);
    if (r <= 0) return r < 0 && errno == EAGAIN ? 0 : -1;
    s->n += (size_t)r;
    if (!s->open) return handshake(s, level) < 0 ? -1 : 0;
    size_t at = 0;
    while (s->n - at >= 6) {
        uint8_t *f = s->have + at;
        size_t length = f[1] & 0x7f, head = 2;
        if (length == 127) return -1;
        if (length == 126) { if (s->n - at < 8) break; length = (size_t)f[2] << 8 | f[3]; head = 4; }
        if (s->n - at < head + 4 + length) break;
        uint8_t *body = f + head + 4;
        for (size_t i = 0; i < length; i++) body[i] ^= f[head + (i & 3)];
        size_t made = turn(s, body, length);
        if (!made || send(s->fd, reply, made, MSG_NOSIGNAL) != (ssize_t)made) return -1;
        at += head + 4 + length;
    }
    memmove(s->have, s->have + at, s->n - at);
    s->n -= at;
    return 0;
}
int main(int argc, char **argv) {
    if (argc < 2) { fprintf(stderr, "usage: deflateecho PORT [LEVEL]\n"); return 2; }
    int level = argc > 2 ? atoi(argv[2]) : 6, one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), ep = epoll_create1(0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (struct sockaddr *)&a, sizeof a) || listen(listener, 1024)) { perror("deflateecho"); return 1; }
    struct epoll_event e = {.events = EPOLLIN};
    epoll_ctl(ep, EPOLL_CTL_ADD, listener, &e);
    for (struct epoll_event events[64];;) {
        int n = epoll_wait(ep, events, 64, -1);
        for (int i = 0; i < n; i++) {
            side *s = events[i].data.ptr;
            if (s) {
                if (readable(s, level) == 0) continue;
                close(s->fd);
                if (s->open) { inflateEnd(&s->in); deflateEnd(&s->out); }
                free(s);
                continue;
            }
            int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
            if (fd < 0) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            s = calloc(1, sizeof *s);
            s->fd = fd;
            e = (struct epoll_event){.events = EPOLLIN, .data.ptr = s};
            epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
        }
    }
}
