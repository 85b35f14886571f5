// wsload - single-threaded epoll load generator for WebSocket echo/chat servers and TCP<->WS / TCP<->TCP bridges.
// One file, no dependencies (OpenSSL only with -DTLS). Prints one line of JSON per run. See usage() at the end.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#ifdef TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif
#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

typedef uint8_t u8; typedef uint32_t u32; typedef uint64_t u64;

// ---------------------------------------------------------------- utilities
static u64 now_ns(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec; }
static void die(const char *f, ...) { va_list a; va_start(a, f); fprintf(stderr, "wsload: "); vfprintf(stderr, f, a); fputc('\n', stderr); va_end(a); exit(2); }
static void *xcalloc(size_t n, size_t m) { void *p = calloc(n ? n : 1, m ? m : 1); if (!p) die("out of memory"); return p; }
static u64 rng_s = 0x9E3779B97F4A7C15ull;
static u64 rng(void) { u64 z = (rng_s += 0x9E3779B97F4A7C15ull); z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull; z = (z ^ (z >> 27)) * 0x94D049BB133111EBull; return z ^ (z >> 31); }

static void sha1(const u8 *msg, size_t len, u8 out[20]) { // short inputs only (< 200 bytes)
  u32 h[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  u8 b[256]; memset(b, 0, sizeof b); memcpy(b, msg, len); b[len] = 0x80;
  size_t tot = ((len + 8) / 64 + 1) * 64; u64 bits = (u64)len * 8;
  for (int i = 0; i < 8; i++) b[tot - 1 - (size_t)i] = (u8)(bits >> (8 * i));
#define ROL(x, n) (((x) << (n)) | ((x) >> (32 - (n))))
  for (size_t o = 0; o < tot; o += 64) {
    u32 w[80];
    for (int i = 0; i < 16; i++) w[i] = (u32)b[o + 4 * i] << 24 | (u32)b[o + 4 * i + 1] << 16 | (u32)b[o + 4 * i + 2] << 8 | b[o + 4 * i + 3];
    for (int i = 16; i < 80; i++) w[i] = ROL(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    u32 a = h[0], B = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 80; i++) {
      u32 f, k;
      if (i < 20) f = (B & c) | (~B & d), k = 0x5A827999; else if (i < 40) f = B ^ c ^ d, k = 0x6ED9EBA1;
      else if (i < 60) f = (B & c) | (B & d) | (c & d), k = 0x8F1BBCDC; else f = B ^ c ^ d, k = 0xCA62C1D6;
      u32 t = ROL(a, 5) + f + e + k + w[i]; e = d; d = c; c = ROL(B, 30); B = a; a = t;
    }
    h[0] += a; h[1] += B; h[2] += c; h[3] += d; h[4] += e;
  }
  for (int i = 0; i < 20; i++) out[i] = (u8)(h[i / 4] >> (24 - 8 * (i % 4)));
}
static void b64(const u8 *p, size_t n, char *o) {
  static const char t[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < n; i += 3) {
    u32 v = (u32)p[i] << 16 | (i + 1 < n ? (u32)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
    *o++ = t[v >> 18]; *o++ = t[v >> 12 & 63]; *o++ = i + 1 < n ? t[v >> 6 & 63] : '='; *o++ = i + 2 < n ? t[v & 63] : '=';
  }
  *o = 0;
}

// log-linear histogram of nanoseconds: 64 sub-buckets per power of two (error < 1.6 %)
typedef struct { u64 b[64 * 64]; u64 n, max; } hist;
static inline void hist_add(hist *h, u64 v) {
  u32 i; if (v < 64) i = (u32)v; else { int m = 63 - __builtin_clzll(v); i = (u32)(m - 5) * 64 + (u32)((v >> (m - 6)) & 63); }
  h->b[i]++; h->n++; if (v > h->max) h->max = v;
}
static double hist_q(const hist *h, double q) { // microseconds
  if (!h->n) return 0;
  u64 want = (u64)(q * (double)h->n); if (want >= h->n) want = h->n - 1;
  u64 c = 0;
  for (u32 i = 0; i < 64 * 64; i++) if ((c += h->b[i]) > want) {
    if (i < 64) return (double)i / 1000.0;
    int m = (int)(i / 64) + 5; u64 lo = (1ull << m) + ((u64)(i & 63) << (m - 6)); double v = (double)lo + (double)(1ull << (m - 6)) / 2;
    if (v > (double)h->max) v = (double)h->max;
    return v / 1000.0;
  }
  return (double)h->max / 1000.0;
}
static void hist_json(const hist *h, const char *name) {
  printf(",\"%s\":{\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p99.9\":%.1f,\"max\":%.1f}", name, hist_q(h, .5), hist_q(h, .9), hist_q(h, .99), hist_q(h, .999), (double)h->max / 1000.0);
}

// ---------------------------------------------------------------- watching the server process tree
static int mon_roots[16], mon_nroots; static long clk_tck = 1000000000, page_kb; static u64 tick_ns; // CPU is counted in ns
typedef struct { u64 ticks; u64 rss_kb; } procstat;
static bool slurp(const char *path, char *buf, size_t cap) { int f = open(path, O_RDONLY | O_CLOEXEC); if (f < 0) return false; ssize_t n = read(f, buf, cap - 1); close(f); if (n < 0) return false; buf[n] = 0; return true; }
static void mon_pid(int pid, procstat *s, int depth, bool pss) {
  char p[96], b[4096]; snprintf(p, sizeof p, "/proc/%d/stat", pid);
  if (!slurp(p, b, sizeof b)) return;
  char *q = strrchr(b, ')'); unsigned long ut = 0, st = 0; long cu = 0, cs = 0, rss = 0;
  if (q && sscanf(q + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld %*d %*d %*d %*d %*u %*u %ld", &ut, &st, &cu, &cs, &rss) == 5) {
    clockid_t clk; struct timespec t; // the process's CPU clock: nanoseconds, where utime and stime count in hundredths of a second
    if (!clock_getcpuclockid(pid, &clk) && !clock_gettime(clk, &t)) s->ticks += (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
    else s->ticks += (ut + st) * tick_ns;
    s->ticks += (u64)(cu + cs) * tick_ns; if (!pss) s->rss_kb += (u64)rss * (u64)page_kb;
  }
  if (pss) { // exact, slower: proportional set size
    snprintf(p, sizeof p, "/proc/%d/smaps_rollup", pid);
    if (slurp(p, b, sizeof b)) { char *r = strstr(b, "\nPss:"); if (r) s->rss_kb += strtoull(r + 5, 0, 10); }
  }
  if (depth > 8) return;
  snprintf(p, sizeof p, "/proc/%d/task", pid); DIR *d = opendir(p); if (!d) return;
  struct dirent *e;
  while ((e = readdir(d))) {
    if (e->d_name[0] == '.') continue;
    snprintf(p, sizeof p, "/proc/%d/task/%.20s/children", pid, e->d_name);
    if (!slurp(p, b, sizeof b)) continue;
    int kids[256], nk = 0; for (char *t = b; *t && nk < 256;) { char *x; long v = strtol(t, &x, 10); if (x == t) break; kids[nk++] = (int)v; t = x; }
    for (int i = 0; i < nk; i++) mon_pid(kids[i], s, depth + 1, pss);
  }
  closedir(d);
}
static procstat mon(bool pss) { procstat s = {0, 0}; for (int i = 0; i < mon_nroots; i++) mon_pid(mon_roots[i], &s, 0, pss); return s; }

// ---------------------------------------------------------------- options and state
enum { M_WSECHO, M_TCPECHO, M_IDLE, M_FANOUT, M_STREAM, M_SERVE };
static struct {
  int mode; char host[64]; int port; const char *path, *proto, *origin, *hosthdr; char extra[2048];
  u32 conns, depth; size_t size; double secs, warm; bool text, tls, stream, halfclose, touch; u32 par, spread; double rate; const char *dir, *behave, *tag, *cafile; u64 bytes, reply; double settle; const char *room; u32 stalled; uint16_t also[15]; u32 nalso;
} o;

enum { S_CONNECT, S_TLS, S_HS, S_OPEN, S_DEAD };
typedef struct conn {
  int fd; u8 st, wantout, inmsg, op, fin, hdrn, hdrneed, sentclose, gotclose, eof, wrshut, pub;
  u8 hdr[10], first[8], last[8];
  u32 txq, txv, rxv, tsh, tst, ctln; size_t txoff; u64 frem, mpos, t0, tx, rx, nextseq;
  u8 *ctl, *cout; u32 coutn, coutcap; char *hs; u32 hslen; char acc[32]; u64 *ts;
  char seqhex[16]; char *line; u32 linen; u8 joined;
#ifdef TLS
  SSL *ssl; u8 rwantw;
#endif
} conn;

static int ep; static conn *cs; static u32 n_open, n_started, n_dead, n_pending; static u64 err_proto, err_content, err_conn, err_closed; static char first_err[160];
static u8 *rbuf; enum { RBUF = 512 * 1024 };
static hist *H, *HC; static bool measuring, running, stopping; static u64 msgs, bytes_rx, total_msgs; static u64 now;
// prebuilt frames: 2*K back to back, so that any run of <= K frames is contiguous
static u8 *fr; static size_t flen, fhdr; static u32 K; static u64 *vfirst, *vlast; static size_t chk;
static u32 dmask;
#ifdef TLS
static SSL_CTX *ctx;
#endif

static void fail(u64 *ctr, const char *f, ...) { (*ctr)++; if (!first_err[0]) { va_list a; va_start(a, f); vsnprintf(first_err, sizeof first_err, f, a); va_end(a); for (char *p = first_err; *p; p++) if (*p == '"' || *p == '\\' || (u8)*p < 32) *p = ' '; } }

static size_t put_hdr(u8 *p, u8 op, size_t n, const u8 mask[4]) {
  size_t i = 0; p[i++] = 0x80 | op;
  if (n < 126) p[i++] = 0x80 | (u8)n; else if (n < 65536) { p[i++] = 0x80 | 126; p[i++] = (u8)(n >> 8); p[i++] = (u8)n; }
  else { p[i++] = 0x80 | 127; for (int s = 56; s >= 0; s -= 8) p[i++] = (u8)((u64)n >> s); }
  memcpy(p + i, mask, 4); return i + 4;
}
static u64 ld8(const u8 *p, size_t n) { u64 v = 0; memcpy(&v, p, n < 8 ? n : 8); return v; }
static void build_frames(bool ws) {
  size_t S = o.size; K = S > 65536 ? 4 : 16; while (K < o.depth && K < 256 && (K * 4) * (S + 14) < (64u << 20)) K *= 2;
  fhdr = ws ? (S < 126 ? 6 : S < 65536 ? 8 : 14) : 0; flen = fhdr + S; chk = S < 8 ? S : 8;
  if (!flen) die("size must be > 0"); fr = xcalloc(2 * K, flen); vfirst = xcalloc(K, 8); vlast = xcalloc(K, 8);
  u8 *pl = xcalloc(S, 1);
  for (u32 k = 0; k < K; k++) {
    for (size_t i = 0; i < S; i++) pl[i] = o.text || o.mode == M_FANOUT ? (u8)(32 + rng() % 95) : (u8)rng();
    vfirst[k] = ld8(pl, chk); vlast[k] = ld8(pl + S - chk, chk);
    u8 m[4] = {0}; if (ws) { u32 r = (u32)rng() | 0x01010101u; memcpy(m, &r, 4); }
    u8 *f = fr + k * flen; if (ws) put_hdr(f, o.text ? 1 : 2, S, m);
    for (size_t i = 0; i < S; i++) f[fhdr + i] = pl[i] ^ m[i & 3];
  }
  memcpy(fr + K * flen, fr, K * flen); free(pl);
}

// ---------------------------------------------------------------- socket I/O:  >0 bytes, 0 EOF, -1 would block, -2 error
static ssize_t io_read(conn *c, void *b, size_t n) {
#ifdef TLS
  if (c->ssl) { ERR_clear_error(); int r = SSL_read(c->ssl, b, n > 1 << 30 ? 1 << 30 : (int)n); if (r > 0) return r; int e = SSL_get_error(c->ssl, r);
    if (e == SSL_ERROR_WANT_READ) return -1; if (e == SSL_ERROR_WANT_WRITE) return -1; if (e == SSL_ERROR_ZERO_RETURN) return 0; return -2; }
#endif
  ssize_t r = recv(c->fd, b, n, 0); if (r >= 0) return r; return errno == EAGAIN || errno == EINTR ? -1 : -2;
}
static ssize_t io_write(conn *c, const void *b, size_t n) {
#ifdef TLS
  if (c->ssl) { ERR_clear_error(); int r = SSL_write(c->ssl, b, n > 1 << 20 ? 1 << 20 : (int)n); if (r > 0) return r; int e = SSL_get_error(c->ssl, r);
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE) return -1; return -2; }
#endif
  ssize_t r = send(c->fd, b, n > 1 << 20 ? 1 << 20 : n, MSG_NOSIGNAL); if (r >= 0) return r; return errno == EAGAIN || errno == EINTR ? -1 : -2;
}
static void want(conn *c, bool out) { if (c->wantout == out) return; c->wantout = out; struct epoll_event e = {.events = (c->eof ? 0 : EPOLLIN) | (out ? EPOLLOUT : 0), .data.ptr = c}; epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e); }
static void kill_conn(conn *c) {
  if (c->st == S_DEAD) return;
  if (c->st == S_OPEN) n_open--; else n_pending--;
  c->st = S_DEAD; n_dead++;
#ifdef TLS
  if (c->ssl) { SSL_free(c->ssl); c->ssl = NULL; }
#endif
  struct linger l = {1, 0}; setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof l); close(c->fd); c->fd = -1;
}
static void ctl_queue(conn *c, u8 op, const u8 *p, u32 n) {
  u8 m[4]; u32 r = (u32)rng(); memcpy(m, &r, 4);
  if (c->coutn + n + 14 > c->coutcap) { c->coutcap = (c->coutn + n + 14) * 2; c->cout = realloc(c->cout, c->coutcap); if (!c->cout) die("oom"); }
  u8 *d = c->cout + c->coutn; size_t h = put_hdr(d, op, n, m); for (u32 i = 0; i < n; i++) d[h + i] = p[i] ^ m[i & 3]; c->coutn += (u32)h + n;
}
static bool flush(conn *c) { // false: connection died
  for (;;) {
    if (c->coutn && !c->txoff) {
      ssize_t w = io_write(c, c->cout, c->coutn); if (w == -2) goto bad; if (w == -1) { want(c, true); return true; }
      memmove(c->cout, c->cout + w, c->coutn - (u32)w); c->coutn -= (u32)w; if (c->coutn) continue;
    }
    if (!c->txq) break;
    u32 k = c->txq < K ? c->txq : K; if (c->coutn) k = 1;
    ssize_t w = io_write(c, fr + c->txv * flen + c->txoff, k * flen - c->txoff);
    if (w == -2) goto bad; if (w == -1) { want(c, true); return true; }
    size_t t = c->txoff + (size_t)w; u32 done;
    if (t == k * flen) done = k, c->txoff = 0; else done = (u32)(t / flen), c->txoff = t % flen;
    c->txq -= done; c->txv += done; if (c->txv >= K) c->txv -= K;
  }
  want(c, false); return true;
bad:
  if (!stopping && !c->gotclose) fail(&err_closed, "write: %s", strerror(errno));
  kill_conn(c); return false;
}
static inline void push_msgs(conn *c, u32 n, u64 t) { for (u32 i = 0; i < n; i++) c->ts[c->tsh++ & dmask] = t; c->txq += n; }

// ---------------------------------------------------------------- fan-out bookkeeping
enum { FR = 1 << 16 }; static u64 f_sent, f_done, f_deliv, f_self, f_lost; static u64 f_ts[FR]; static u32 f_cnt[FR]; static conn *f_pub; static u32 f_subs; static u64 f_next, f_lastprog; static u32 n_joined;
static const char HEX[] = "0123456789abcdef";
static void fan_send(u64 t) {
  conn *c = f_pub; u64 s = f_sent++; f_ts[s % FR] = t; f_cnt[s % FR] = 0;
  char pre[320] = ""; const char *post = ""; if (o.room) { snprintf(pre, sizeof pre, "{\"id\":3,\"publish\":{\"channel\":\"%.200s\",\"data\":\"", o.room); post = "\"}}"; }
  size_t a = strlen(pre), z = strlen(post), n = a + o.size + z;
  u8 m[4]; u32 r = (u32)rng(); memcpy(m, &r, 4);
  if (c->coutn + n + 14 > c->coutcap) { c->coutcap = (u32)(c->coutn + n + 14) * 2; c->cout = realloc(c->cout, c->coutcap); if (!c->cout) die("oom"); }
  u8 *d = c->cout + c->coutn; size_t h = put_hdr(d, o.text ? 1 : 2, n, m); u8 *pl = d + h;
  memcpy(pl, pre, a); memcpy(pl + a + o.size, post, z);
  for (size_t i = 0; i < o.size; i++) pl[a + i] = 'a' + (u8)(i % 26);
  for (int i = 0; i < 16; i++) pl[a + i] = (u8)HEX[s >> (60 - 4 * i) & 15];
  for (size_t i = 0; i < n; i++) pl[i] ^= m[i & 3];
  c->coutn += (u32)(h + n);
}

// ---------------------------------------------------------------- receiving
static u32 completed; // messages completed while parsing the current chunk
static inline void fan_end(conn *c) { // a publication is complete: its number in c->seqhex, its length in c->mpos
    u64 s = 0; for (int i = 0; i < 16; i++) { char ch = c->seqhex[i]; s = s << 4 | (u64)(ch <= '9' ? ch - '0' : ch - 'a' + 10); }
    if (c->mpos != o.size) fail(&err_content, "fanout length %llu", (unsigned long long)c->mpos);
    else if (c == f_pub) f_self++;
    else {
      if (s != c->nextseq) fail(&err_content, "fanout seq %llu, expected %llu", (unsigned long long)s, (unsigned long long)c->nextseq);
      c->nextseq = s + 1;
      if (s < f_sent && f_sent - s <= FR) { if (measuring) { hist_add(H, now - f_ts[s % FR]); f_deliv++; } if (++f_cnt[s % FR] == f_subs) { f_done++; f_lastprog = now; } }
    }
}
// ---- --room: replies and pushes of Centrifuge's JSON protocol, a line each
enum { LINE = 512 };
static void room_line(conn *c) { // its first bytes are in c->line, its length in c->mpos
  static const char push[] = "{\"push\":", data[] = "\"data\":\"";
  if (c->linen > sizeof push && !memcmp(c->line, push, sizeof push - 1)) {
    char *d = memmem(c->line, c->linen, data, sizeof data - 1), *text = d ? d + sizeof data - 1 : NULL, *end = text ? memchr(text, '"', (size_t)(c->line + c->linen - text)) : NULL;
    if (!text || c->line + c->linen - text < 16) { fail(&err_content, "no number in %.80s", c->line); return; }
    memcpy(c->seqhex, text, 16); c->mpos = end ? (size_t)(end - text) : o.size; fan_end(c);
  } else if (c->linen == 2 && !memcmp(c->line, "{}", 2)) ctl_queue(c, 1, (const u8 *)"{}", 2); // a ping
  else if (memmem(c->line, c->linen, "\"error\":", 8)) fail(&err_content, "refused: %.*s", (int)(c->linen < 100 ? c->linen : 100), c->line);
  else if (c->linen > 8 && !memcmp(c->line, "{\"id\":2,", 8) && !c->joined) { c->joined = 1; n_joined++; }
}
static inline void room_bytes(conn *c, const u8 *p, size_t n) {
  if (!c->line && !(c->line = malloc(LINE + 1))) die("oom");
  while (n) {
    const u8 *e = memchr(p, '\n', n); size_t k = e ? (size_t)(e - p) : n, room = LINE - c->linen, q = k < room ? k : room;
    memcpy(c->line + c->linen, p, q); c->linen += (u32)q; c->line[c->linen] = 0; c->mpos += k;
    if (!e) return;
    room_line(c); c->linen = 0; c->mpos = 0; p += k + 1; n -= k + 1;
  }
}
static inline void msg_end(conn *c) {
  if (o.mode == M_FANOUT) {
    if (!o.room) fan_end(c); else if (c->linen) { room_line(c); c->linen = 0; }
    c->mpos = 0; return;
  }
  u32 v = c->rxv;
  if (c->tst == c->tsh) fail(&err_content, "unexpected message of %llu bytes", (unsigned long long)c->mpos);
  else {
    if (c->mpos != o.size) fail(&err_content, "length %llu, expected %zu", (unsigned long long)c->mpos, o.size);
    else if (ld8(c->first, chk) != vfirst[v] || ld8(c->last, chk) != vlast[v]) fail(&err_content, "content mismatch");
    u64 t = c->ts[c->tst++ & dmask]; total_msgs++;
    if (measuring) { hist_add(H, now - t); msgs++; bytes_rx += c->mpos; }
    completed++;
  }
  if (++c->rxv == K) c->rxv = 0;
  c->mpos = 0;
}
static inline void payload(conn *c, const u8 *p, size_t n) {
  if (o.room) { room_bytes(c, p, n); return; }
  if (o.mode == M_FANOUT) { if (c->mpos < 16) { size_t k = 16 - (size_t)c->mpos; if (k > n) k = n; memcpy(c->seqhex + c->mpos, p, k); } c->mpos += n; return; }
  size_t S = o.size;
  do {
    size_t k = n; if (o.stream && k > S - (size_t)c->mpos) k = S - (size_t)c->mpos;
    if (c->mpos < chk) { size_t q = chk - (size_t)c->mpos; if (q > k) q = k; memcpy(c->first + c->mpos, p, q); }
    if (c->mpos + k > S - chk && c->mpos < S) { u64 a = c->mpos > S - chk ? c->mpos : S - chk, e = c->mpos + k < S ? c->mpos + k : S; if (e > a) memcpy(c->last + (a - (S - chk)), p + (a - c->mpos), e - a); }
    c->mpos += k; p += k; n -= k;
    if (o.stream && c->mpos == S) msg_end(c);
  } while (n);
}
static bool control(conn *c) { // a complete control frame
  if (c->op == 9) ctl_queue(c, 10, c->ctl, c->ctln);
  else if (c->op == 8) { c->gotclose = 1; if (!stopping) { fail(&err_closed, "server closed with code %d", c->ctln >= 2 ? c->ctl[0] << 8 | c->ctl[1] : 1005); if (!c->sentclose) { c->sentclose = 1; ctl_queue(c, 8, c->ctl, c->ctln >= 2 ? 2 : 0); } } }
  return true;
}
static bool frame_begin(conn *c) { // header complete in c->hdr
  u8 b0 = c->hdr[0], b1 = c->hdr[1]; c->op = b0 & 15; c->fin = b0 >> 7; u64 n = b1 & 127;
  if (n == 126) n = (u64)c->hdr[2] << 8 | c->hdr[3]; else if (n == 127) { n = 0; for (int i = 2; i < 10; i++) n = n << 8 | c->hdr[i]; }
  if (b0 & 0x70) { fail(&err_proto, "RSV bits set: %02x", b0); return false; }
  if (b1 & 0x80) { fail(&err_proto, "masked server frame"); return false; }
  if (c->op >= 8) { if (!c->fin || n > 125 || c->op > 10) { fail(&err_proto, "bad control frame %02x %02x", b0, b1); return false; } if (!c->ctl && !(c->ctl = malloc(128))) die("oom"); c->ctln = 0; }
  else if (c->op == 0) { if (!c->inmsg) { fail(&err_proto, "continuation without start"); return false; } }
  else { if (c->inmsg || c->op > 2) { fail(&err_proto, "bad opcode %02x", b0); return false; } c->inmsg = 1; if (!o.stream && c->op != (o.text ? 1 : 2)) fail(&err_content, "opcode %d", c->op); }
  c->frem = n; return true;
}
static bool frame_end(conn *c) { c->hdrn = 0; c->hdrneed = 2; if (c->op >= 8) return control(c); if (c->fin) { c->inmsg = 0; if (!o.stream) msg_end(c); } return true; }
static bool ws_feed(conn *c, const u8 *p, size_t n) {
  while (n) {
    if (c->hdrn < c->hdrneed) {
      c->hdr[c->hdrn++] = *p++; n--;
      if (c->hdrn == 2) { u8 l = c->hdr[1] & 127; c->hdrneed = l == 126 ? 4 : l == 127 ? 10 : 2; }
      if (c->hdrn < c->hdrneed) continue;
      if (!frame_begin(c)) return false;
      if (!c->frem && !frame_end(c)) return false;
      continue;
    }
    size_t k = n < c->frem ? n : (size_t)c->frem;
    if (c->op >= 8) { memcpy(c->ctl + c->ctln, p, k); c->ctln += (u32)k; } else payload(c, p, k);
    p += k; n -= k; c->frem -= k;
    if (!c->frem && !frame_end(c)) return false;
  }
  return true;
}

// ---------------------------------------------------------------- connecting
static struct sockaddr_in dst;
static void start_conn(conn *c, u32 i) {
  memset(c, 0, sizeof *c); c->hdrneed = 2; c->t0 = now_ns();
  c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); if (c->fd < 0) die("socket: %s", strerror(errno));
  int one = 1; setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (o.spread || (o.conns > 20000 && (ntohl(dst.sin_addr.s_addr) >> 24) == 127)) { // spread over 127.0.0.x: ~28k ephemeral ports each
    setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one);
    struct sockaddr_in s = {.sin_family = AF_INET}; s.sin_addr.s_addr = htonl(0x7f000002u + (o.spread ? i % o.spread : i / 20000)); if (bind(c->fd, (void *)&s, sizeof s)) die("bind: %s", strerror(errno));
  }
  n_started++; n_pending++; c->st = S_CONNECT; c->wantout = 1;
  struct sockaddr_in to = dst; if (o.nalso && i % (o.nalso + 1)) to.sin_port = htons(o.also[i % (o.nalso + 1) - 1]);
  int r = connect(c->fd, (void *)&to, sizeof to);
  if (r && errno != EINPROGRESS) { fail(&err_conn, "connect: %s", strerror(errno)); kill_conn(c); return; }
  struct epoll_event e = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c}; epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e);
}
static void opened(conn *c) { c->st = S_OPEN; n_open++; n_pending--; hist_add(HC, now_ns() - c->t0); free(c->hs); c->hs = NULL; want(c, false);
  if (o.room) { char b[512]; int n = snprintf(b, sizeof b, "{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"%.200s\"}}", o.room); ctl_queue(c, 1, (u8 *)b, (u32)n); flush(c); } }
static void send_hs(conn *c) {
  u8 k[16]; u64 r[2] = {rng(), rng()}; memcpy(k, r, 16); char key[32]; b64(k, 16, key);
  char t[128]; int tn = snprintf(t, sizeof t, "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key); u8 d[20]; sha1((u8 *)t, (size_t)tn, d); b64(d, 20, c->acc);
  char b[4096]; int n = snprintf(b, sizeof b, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n%s\r\n", o.path, o.hosthdr, key, o.extra);
  ssize_t w = io_write(c, b, (size_t)n); if (w != n) { fail(&err_conn, "handshake write"); kill_conn(c); return; }
  c->hs = malloc(4097); if (!c->hs) die("oom"); c->hslen = 0; c->st = S_HS; want(c, false);
}
static char *hdr_find(char *h, const char *name) { size_t n = strlen(name); for (char *p = strchr(h, '\n'); p; p = strchr(p, '\n')) { p++; if (!strncasecmp(p, name, n) && p[n] == ':') { p += n + 1; while (*p == ' ' || *p == '\t') p++; return p; } } return NULL; }
static bool need_ws(void) { return o.mode == M_WSECHO || o.mode == M_IDLE || o.mode == M_FANOUT; }
static void after_transport(conn *c) { if (need_ws()) send_hs(c); else opened(c); }
static void on_readable(conn *c);
#ifdef TLS
static void tls_step(conn *c) {
  ERR_clear_error(); int r = SSL_do_handshake(c->ssl);
  if (r == 1) { after_transport(c); return; }
  int e = SSL_get_error(c->ssl, r); if (e == SSL_ERROR_WANT_READ) { want(c, false); return; } if (e == SSL_ERROR_WANT_WRITE) { want(c, true); return; }
  fail(&err_conn, "tls handshake: %s", ERR_reason_error_string(ERR_peek_error())); kill_conn(c);
}
#endif
static void on_connected(conn *c) {
  int e = 0; socklen_t l = sizeof e; getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &l); if (e) { fail(&err_conn, "connect: %s", strerror(e)); kill_conn(c); return; }
#ifdef TLS
  if (o.tls) { c->ssl = SSL_new(ctx); SSL_set_fd(c->ssl, c->fd); SSL_set_connect_state(c->ssl); SSL_set_tlsext_host_name(c->ssl, "localhost"); c->st = S_TLS; tls_step(c); return; }
#endif
  after_transport(c);
}
static void hs_read(conn *c) {
  ssize_t r = io_read(c, c->hs + c->hslen, 4096 - c->hslen);
  if (r == -1) return; if (r <= 0) { c->hs[c->hslen] = 0; fail(&err_conn, "closed in handshake: %.60s", c->hs); kill_conn(c); return; }
  c->hslen += (u32)r; c->hs[c->hslen] = 0; char *e = strstr(c->hs, "\r\n\r\n");
  if (!e) { if (c->hslen >= 4096) { fail(&err_conn, "handshake too long"); kill_conn(c); } return; }
  char *body = e + 4; u32 rest = (u32)(c->hs + c->hslen - body); u8 tail[4096]; memcpy(tail, body, rest); e[2] = 0;
  if (strncmp(c->hs, "HTTP/1.1 101", 12)) { fail(&err_conn, "handshake: %.60s", c->hs); kill_conn(c); return; }
  char *a = hdr_find(c->hs, "Sec-WebSocket-Accept"), *u = hdr_find(c->hs, "Upgrade"), *k = hdr_find(c->hs, "Connection");
  if (!a || strncmp(a, c->acc, 28) || (a[28] != '\r' && a[28] != ' ') || !u || strncasecmp(u, "websocket", 9) || !k || strncasecmp(k, "upgrade", 7)) { fail(&err_conn, "bad 101 response (accept/upgrade/connection)"); kill_conn(c); return; }
  if (hdr_find(c->hs, "Sec-WebSocket-Extensions")) { fail(&err_conn, "unrequested extension"); kill_conn(c); return; }
  opened(c);
  if (rest) { now = now_ns(); if (!ws_feed(c, tail, rest)) { kill_conn(c); return; } if (c->coutn) flush(c); }
#ifdef TLS
  if (c->ssl && c->st == S_OPEN && SSL_pending(c->ssl)) on_readable(c);
#endif
}
// ---------------------------------------------------------------- tcp-stream
enum { PAT = 65521 }; static u8 *pat; static bool st_send; static u64 st_tx, st_rx; static u64 st_sndbytes;
static void stream_rx(conn *c, const u8 *p, size_t n) {
  st_rx += n; if (measuring) bytes_rx += n;
  if (o.dir[0] == 'u') { for (size_t i = 0; i < n && c->hdrn < 24; i++) c->seqhex[(c->hdrn++) % 16] = (char)p[i]; c->rx += n; return; }
  while (n) { size_t off = (size_t)(c->rx % PAT), k = 2 * PAT - off; if (k > n) k = n; if (memcmp(p, pat + off, k)) { fail(&err_content, "stream content differs near offset %llu", (unsigned long long)c->rx); } c->rx += k; p += k; n -= k; }
}
static void stream_tx(conn *c) {
  if (c->wrshut) return;
  for (int loops = 0; loops < 4; loops++) {
    if (!st_send || (o.bytes && c->tx >= o.bytes) || o.dir[0] == 'd') {
      if (o.halfclose && !c->wrshut) { c->wrshut = 1;
#ifdef TLS
        if (c->ssl) SSL_shutdown(c->ssl); else
#endif
        shutdown(c->fd, SHUT_WR); }
      want(c, false); return;
    }
    size_t off = (size_t)(c->tx % PAT), k = o.size; if (k > PAT) k = PAT; if (o.bytes && k > o.bytes - c->tx) k = (size_t)(o.bytes - c->tx);
    ssize_t w = io_write(c, pat + off, k); if (w == -2) { fail(&err_closed, "write: %s", strerror(errno)); kill_conn(c); return; } if (w == -1) { want(c, true); return; }
    c->tx += (u64)w; st_tx += (u64)w; if (measuring) st_sndbytes += (u64)w;
  }
  want(c, true);
}
// ---------------------------------------------------------------- events
static void on_readable(conn *c) {
  for (int loops = 0;; loops++) {
    ssize_t r = io_read(c, rbuf, RBUF);
    if (r == -1) break;
    if (r <= 0) {
      if (o.mode == M_STREAM && r == 0) { c->eof = 1; struct epoll_event e = {.events = c->wantout ? EPOLLOUT : 0, .data.ptr = c}; epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &e); if (c->wrshut || stopping) kill_conn(c); return; }
      if (!stopping && !c->gotclose) fail(&err_closed, "server closed the connection: %s", r ? strerror(errno) : "EOF"); kill_conn(c); return;
    }
    now = now_ns(); completed = 0;
    if (o.mode == M_STREAM) stream_rx(c, rbuf, (size_t)r);
    else if (o.mode == M_TCPECHO) payload(c, rbuf, (size_t)r);
    else if (!ws_feed(c, rbuf, (size_t)r)) { kill_conn(c); return; }
    if (completed && running && (o.mode == M_WSECHO || o.mode == M_TCPECHO)) push_msgs(c, completed, now);
    if (o.mode != M_STREAM && (c->txq || c->coutn) && c != f_pub && !flush(c)) return;
#ifdef TLS
    if (c->ssl && loops < 64) continue;
#endif
    break;
  }
}
static void on_event(struct epoll_event *e) {
  conn *c = e->data.ptr; if (c->st == S_DEAD) return;
  switch (c->st) {
  case S_CONNECT: on_connected(c); break;
#ifdef TLS
  case S_TLS: tls_step(c); break;
#endif
  case S_HS: hs_read(c); break;
  case S_OPEN:
    if (e->events & (EPOLLIN | EPOLLERR | EPOLLHUP)) { if (!c->eof) on_readable(c); else if (e->events & (EPOLLERR | EPOLLHUP)) { kill_conn(c); return; } }
    if (c->st == S_OPEN && (e->events & EPOLLOUT)) { if (o.mode == M_STREAM) stream_tx(c); else flush(c); }
  }
}
static void pump(int ms) { static struct epoll_event ev[512]; int n = epoll_wait(ep, ev, 512, ms); for (int i = 0; i < n; i++) on_event(&ev[i]); }

static double open_all(void) { // returns seconds taken
  u64 t0 = now_ns(), last = t0; u32 seen = 0, next = 0;
  while (next < o.conns || n_pending) {
    while (next < o.conns && n_pending < o.par) { start_conn(&cs[next], next); next++; if (err_conn > 100) break; }
    pump(100); u64 t = now_ns(); if (n_open + n_dead != seen) seen = n_open + n_dead, last = t;
    if (t - last > 10000000000ull) { fail(&err_conn, "stuck: %u connections pending", n_pending); break; }
    if (err_conn > 100) break;
  }
  return (double)(now_ns() - t0) / 1e9;
}
static double cpu_self(void) { struct rusage r; getrusage(RUSAGE_SELF, &r); return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6; }

static u64 rss_sum, rss_n, rss_peak; static u64 next_sample;
static void sample(u64 t) { if (!mon_nroots || t < next_sample) return; next_sample = t + 100000000ull; u64 k = mon(false).rss_kb; rss_sum += k; rss_n++; if (k > rss_peak) rss_peak = k; }
static void close_all(void) {
  stopping = true; bool ws = need_ws();
  for (u32 i = 0; i < o.conns; i++) { conn *c = &cs[i]; if (c->st != S_OPEN) continue; c->txq = c->txoff ? 1 : 0; if (ws && !c->sentclose) { u8 code[2] = {3, 232}; c->sentclose = 1; ctl_queue(c, 8, code, 2); flush(c); } }
  u64 t = now_ns(); while (ws && n_open && now_ns() - t < 1000000000ull) pump(50);
  for (u32 i = 0; i < o.conns; i++) if (cs[i].st != S_DEAD && cs[i].fd > 0) kill_conn(&cs[i]);
}
static const char *mode_name[] = {"ws-echo", "tcp-echo", "ws-idle", "ws-fanout", "tcp-stream", "serve-tcp"};
static void json_head(void) { printf("{\"mode\":\"%s\",\"tag\":\"%s\",\"tls\":%s,\"host\":\"%s:%d\",\"conns\":%u,\"inflight\":%u,\"size\":%zu", mode_name[o.mode], o.tag, o.tls ? "true" : "false", o.host, o.port, o.conns, o.depth, o.size); }
static void json_errs(void) { printf(",\"errors\":%llu,\"err\":{\"connect\":%llu,\"protocol\":%llu,\"content\":%llu,\"closed\":%llu},\"first_error\":\"%s\"", (unsigned long long)(err_proto + err_content + err_conn + err_closed), (unsigned long long)err_conn, (unsigned long long)err_proto, (unsigned long long)err_content, (unsigned long long)err_closed, first_err); }
static void json_srv(double cpu, double secs, u64 units) {
  if (!mon_nroots) return;
  printf(",\"srv_cpu_s\":%.3f,\"srv_cpu_pct\":%.1f,\"srv_cpu_s_per_Mmsg\":%.3f,\"srv_rss_peak_kb\":%llu,\"srv_rss_avg_kb\":%llu", cpu, 100 * cpu / secs, units ? cpu * 1e6 / (double)units : 0, (unsigned long long)rss_peak, (unsigned long long)(rss_n ? rss_sum / rss_n : 0));
}

static int run_echo(void) {
  build_frames(o.mode == M_WSECHO); if (o.mode == M_TCPECHO) o.stream = true;
  u32 rs = 1; while (rs < o.depth) rs *= 2; dmask = rs - 1;
  double ct = open_all();
  for (u32 i = 0; i < o.conns; i++) if (cs[i].st == S_OPEN) cs[i].ts = xcalloc(rs, 8);
  if (!n_open) { json_head(); json_errs(); printf("}\n"); return 1; }
  running = true; u64 t0 = now_ns();
  for (u32 i = 0; i < o.conns; i++) if (cs[i].st == S_OPEN) { push_msgs(&cs[i], o.depth, now_ns()); flush(&cs[i]); }
  u64 tw = t0 + (u64)(o.warm * 1e9), te = tw + (u64)(o.secs * 1e9), tm = 0; double c0 = 0, s0 = 0;
  for (;;) {
    u64 t = now_ns(); if (!measuring && t >= tw) { measuring = true; tm = now_ns(); c0 = cpu_self(); s0 = (double)mon(false).ticks / (double)clk_tck; t = tm; te = tm + (u64)(o.secs * 1e9); }
    if (measuring) sample(t);
    if (t >= te || !n_open) break;
    pump(20);
  }
  u64 tend = now_ns(); double dt = (double)(tend - tm) / 1e9, c1 = cpu_self(), s1 = (double)mon(false).ticks / (double)clk_tck; measuring = running = false;
  u64 got = msgs; if (total_msgs == 0) fail(&err_content, "no message came back");
  // let what is in flight come back, so that a server that loses the last messages is seen
  u64 td = now_ns(); u64 left; do { pump(20); left = 0; for (u32 i = 0; i < o.conns; i++) if (cs[i].st == S_OPEN) left += cs[i].tsh - cs[i].tst; } while (left && now_ns() - td < 2000000000ull);
  if (left) fail(&err_content, "%llu messages never came back", (unsigned long long)left);
  u32 open_end = n_open; close_all();
  json_head(); printf(",\"secs\":%.2f,\"open\":%u,\"msgs\":%llu,\"msgs_per_s\":%.0f,\"mb_per_s\":%.2f", dt, open_end, (unsigned long long)got, (double)got / dt, (double)bytes_rx / dt / 1e6);
  hist_json(H, "lat_us"); json_errs(); json_srv(s1 - s0, dt, got); printf(",\"client_cpu_pct\":%.1f,\"connects_per_s\":%.0f}\n", 100 * (c1 - c0) / dt, o.conns / ct);
  return err_proto + err_content + err_conn + err_closed ? 1 : 0;
}
static int run_idle(void) {
  o.size = o.size ? o.size : 16; build_frames(true); dmask = 0;
  procstat a = mon(true), a2 = mon(false); double c0 = cpu_self(); double ct = open_all(); double c1 = cpu_self(); u32 op = n_open; procstat hs = mon(false);
  if (o.touch) { // one echo on every connection
    running = false; u64 t = now_ns(); for (u32 i = 0; i < o.conns; i++) { conn *c = &cs[i]; if (c->st != S_OPEN) continue; c->ts = xcalloc(1, 8); push_msgs(c, 1, now_ns()); flush(c); if (i % 256 == 255) pump(0); }
    while (total_msgs < op && now_ns() - t < 20000000000ull) pump(50);
    if (total_msgs < op) fail(&err_content, "%llu of %u touched", (unsigned long long)total_msgs, op);
  }
  u64 t = now_ns(); while (now_ns() - t < (u64)(o.settle * 1e9)) pump(50);
  procstat b = mon(true), b2 = mon(false); u32 op_settled = n_open;
  t = now_ns(); while (now_ns() - t < (u64)(o.secs * 1e9)) pump(100);
  u32 ope = n_open; procstat d = mon(false); close_all(); t = now_ns(); while (now_ns() - t < 1000000000ull) pump(100); procstat z = mon(true);
  json_head(); printf(",\"open\":%u,\"open_at_end\":%u,\"connect_s\":%.3f,\"connects_per_s\":%.0f,\"touched\":%s", op, ope, ct, op / ct, o.touch ? "true" : "false"); hist_json(HC, "handshake_us"); json_errs();
  if (mon_nroots) printf(",\"rss_before_kb\":%llu,\"rss_after_kb\":%llu,\"pss_before_kb\":%llu,\"pss_after_kb\":%llu,\"pss_after_close_kb\":%llu,\"bytes_per_conn\":%.0f,\"srv_cpu_us_per_handshake\":%.1f,\"srv_cpu_idle_pct\":%.2f", (unsigned long long)a2.rss_kb, (unsigned long long)b2.rss_kb, (unsigned long long)a.rss_kb, (unsigned long long)b.rss_kb, (unsigned long long)z.rss_kb, op_settled ? ((double)b.rss_kb - (double)a.rss_kb) * 1024.0 / op_settled : 0, op ? (double)(hs.ticks - a.ticks) / (double)clk_tck * 1e6 / op : 0, o.secs > 0 ? 100.0 * (double)(d.ticks - b2.ticks) / (double)clk_tck / o.secs : 0);
  printf(",\"client_cpu_s\":%.2f}\n", c1 - c0); return err_proto + err_content + err_conn + err_closed ? 1 : 0;
}
static int run_fanout(void) { // o.conns = subscribers + 1
  if (o.size < 16) o.size = 16; flen = 1; K = 1; open_all(); f_subs = o.conns - 1; f_pub = &cs[o.conns - 1];
  if (n_open != o.conns) { json_head(); json_errs(); printf("}\n"); return 1; }
  u64 t = now_ns(); while (now_ns() - t < 300000000ull || (o.room && n_joined < o.conns && now_ns() - t < 20000000000ull)) pump(50); // let every subscription settle
  if (o.room && n_joined < o.conns) { fail(&err_conn, "%u of %u entered the room", n_joined, o.conns); json_head(); json_errs(); printf("}\n"); return 1; }
  f_subs -= o.stalled; for (u32 i = 0; i < o.stalled; i++) epoll_ctl(ep, EPOLL_CTL_DEL, cs[i].fd, NULL); // never read again
  if (o.depth > FR / 2) o.depth = FR / 2;
  t = now_ns(); u64 t0 = t, tm = 0, te = t0 + (u64)((o.warm + o.secs) * 1e9), n0 = 0, self0 = 0; f_lastprog = t; f_next = t; double c0 = 0, s0 = 0; double gap = o.rate > 0 ? 1e9 / o.rate : 0; u64 k = 0, f_rss = 0, l_rss = 0;
  for (;;) {
    t = now_ns(); if (!measuring && t - t0 >= (u64)(o.warm * 1e9)) { measuring = true; tm = t; te = t + (u64)(o.secs * 1e9); c0 = cpu_self(); s0 = (double)mon(false).ticks / (double)clk_tck; n0 = f_done; self0 = f_self; }
    if (measuring) { sample(t); if (!f_rss) f_rss = mon(false).rss_kb; }
    if (t >= te || n_open < 2 || f_pub->st != S_OPEN) break;
    if (gap > 0) { while (t >= f_next && f_sent - f_done - f_lost < FR / 2) { fan_send(f_next); k++; f_next = t0 + (u64)((double)k * gap); } }
    else {
      if (f_sent - f_done - f_lost >= o.depth && t - f_lastprog > 2000000000ull) { u64 l = f_sent - f_done - f_lost; f_lost += l; f_lastprog = t; fail(&err_content, "%llu broadcasts did not reach everyone within 2 s", (unsigned long long)l); }
      while (f_sent - f_done - f_lost < o.depth) fan_send(now_ns());
    }
    if (f_pub->coutn && !f_pub->wantout) flush(f_pub);
    int wait = 20; if (gap > 0) { u64 t2 = now_ns(); wait = f_next > t2 ? (int)((f_next - t2) / 1000000) : 0; if (wait > 20) wait = 20; }
    pump(wait);
  }
  double dt = (double)(now_ns() - tm) / 1e9, s1 = (double)mon(false).ticks / (double)clk_tck, c1 = cpu_self(); u64 deliv = f_deliv, done = f_done - n0, self = f_self - self0; measuring = false; l_rss = mon(false).rss_kb;
  u64 td = now_ns(); while (f_sent - f_done - f_lost && now_ns() - td < 3000000000ull) pump(20);
  u64 left = f_sent - f_done - f_lost; if (left) fail(&err_content, "%llu broadcasts incomplete at the end", (unsigned long long)left);
  for (u32 i = 0; i < o.stalled; i++) kill_conn(&cs[i]);
  close_all(); json_head(); printf(",\"subscribers\":%u,\"secs\":%.2f,\"published_per_s\":%.0f,\"deliveries\":%llu,\"deliveries_per_s\":%.0f,\"mb_per_s\":%.2f,\"self_deliveries\":%llu,\"lost_broadcasts\":%llu", f_subs, dt, (double)done / dt, (unsigned long long)deliv, (double)deliv / dt, (double)deliv * (double)o.size / dt / 1e6, (unsigned long long)self, (unsigned long long)(f_lost + left));
  hist_json(H, "lat_us"); json_errs(); json_srv(s1 - s0, dt, deliv); if (mon_nroots) printf(",\"srv_rss_first_kb\":%llu,\"srv_rss_last_kb\":%llu", (unsigned long long)f_rss, (unsigned long long)l_rss);
  printf(",\"client_cpu_pct\":%.1f}\n", 100 * (c1 - c0) / dt); return err_proto + err_content + err_conn + err_closed ? 1 : 0;
}
static void make_pat(void) { pat = xcalloc(3, PAT); u64 s = rng_s; rng_s = 42; for (size_t i = 0; i < PAT; i++) pat[i] = (u8)rng(); rng_s = s; memcpy(pat + PAT, pat, PAT); memcpy(pat + 2 * PAT, pat, PAT); }
static int run_stream(void) {
  make_pat(); if (o.size > PAT) o.size = PAT; open_all(); if (!n_open) { json_head(); json_errs(); printf("}\n"); return 1; }
  bool down = o.dir[0] == 'd', both = o.dir[0] == 'b', up = o.dir[0] == 'u'; st_send = !down;
  u64 t0 = now_ns(), tm = 0; double c0 = 0, s0 = 0; for (u32 i = 0; i < o.conns; i++) if (cs[i].st == S_OPEN) stream_tx(&cs[i]);
  if (o.bytes) o.warm = 0; u64 te = t0 + (u64)((o.warm + o.secs) * 1e9); u64 limit = t0 + (u64)((o.secs + o.warm + 60) * 1e9);
  for (;;) {
    u64 t = now_ns(); if (!measuring && t - t0 >= (u64)(o.warm * 1e9)) { measuring = true; tm = t; if (o.warm == 0) { tm = t0; st_sndbytes = st_tx; bytes_rx = st_rx; } c0 = cpu_self(); s0 = (double)mon(false).ticks / (double)clk_tck; }
    sample(t); if (!n_open) break;
    if (!o.bytes && t >= te) break;
    if (o.bytes) { bool all = true; for (u32 i = 0; i < o.conns; i++) { conn *c = &cs[i]; if (c->st != S_OPEN) continue; if ((up || both) && c->tx < o.bytes) all = false; if ((down || both) && c->rx < o.bytes && !c->eof) all = false; } if (all || t > limit) break; }
    pump(20);
  }
  double dt = (double)(now_ns() - tm) / 1e9, c1 = cpu_self(), s1 = (double)mon(false).ticks / (double)clk_tck; u64 btx = st_sndbytes, brx = bytes_rx; measuring = false; st_send = false;
  // drain: with --half-close we have shut down writing and want everything back and then EOF
  if (o.halfclose) for (u32 i = 0; i < o.conns; i++) if (cs[i].st == S_OPEN) stream_tx(&cs[i]);
  u64 td = now_ns(), lastrx = st_rx, lastt = td; const char *hc = "not tested";
  if (!down || o.halfclose) for (;;) {
    u64 left = 0; for (u32 i = 0; i < o.conns; i++) { conn *c = &cs[i]; if (c->st == S_OPEN && (o.halfclose ? !c->eof : both && c->rx < c->tx)) left++; }
    u64 t = now_ns(); if (st_rx != lastrx) lastrx = st_rx, lastt = t; if (!left || t - lastt > 3000000000ull) break; pump(20);
  }
  u64 lost = 0; u32 noeof = 0, bad = 0; for (u32 i = 0; i < o.conns; i++) { conn *c = &cs[i]; if (down && o.bytes && c->rx != o.bytes) { bad++; lost += c->rx < o.bytes ? o.bytes - c->rx : 0; }
    if (both && c->rx != c->tx) { bad++; lost += c->tx > c->rx ? c->tx - c->rx : 0; }
    if (up && o.halfclose) { char want_[32]; snprintf(want_, sizeof want_, "%016llx", (unsigned long long)c->tx); if (o.reply ? c->rx != o.reply : c->rx != 16 || memcmp(want_, c->seqhex, 16)) bad++; }
    if (o.halfclose && !c->eof) noeof++; }
  if (bad) fail(&err_content, "%u connections did not get the whole answer (%llu bytes missing)", bad, (unsigned long long)lost);
  if (o.halfclose) { hc = bad || noeof || err_closed ? "FAIL" : "ok"; if (noeof) fail(&err_closed, "%u connections saw no EOF after half-close", noeof); }
  stopping = true; close_all(); json_head();
  printf(",\"dir\":\"%s\",\"secs\":%.3f,\"up_mb_per_s\":%.1f,\"down_mb_per_s\":%.1f,\"tx_bytes\":%llu,\"rx_bytes\":%llu,\"half_close\":\"%s\"", o.dir, dt, (double)btx / dt / 1e6, (double)brx / dt / 1e6, (unsigned long long)st_tx, (unsigned long long)st_rx, hc);
  json_errs(); if (mon_nroots) { double gb = (double)(up ? btx : brx) / 1e9; printf(",\"srv_cpu_pct\":%.1f,\"srv_cpu_s_per_GB\":%.3f,\"srv_rss_peak_kb\":%llu", 100 * (s1 - s0) / dt, gb > 0 ? (s1 - s0) / gb : 0, (unsigned long long)rss_peak); }
  printf(",\"client_cpu_pct\":%.1f}\n", 100 * (c1 - c0) / dt); return err_proto + err_content + err_conn + err_closed ? 1 : 0;
}
// ---------------------------------------------------------------- serve-tcp: backend for bridges (echo | sink | source)
typedef struct sc { int fd; u8 eof, out, phase; u32 n, off; u64 rx, tx; u8 *buf; } sc;
enum { SB = 262144 };
static void run_serve(void) {
  make_pat(); int l = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1; setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(l, (void *)&dst, sizeof dst) || listen(l, 4096)) die("listen: %s", strerror(errno));
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL}; epoll_ctl(ep, EPOLL_CTL_ADD, l, &e); fprintf(stderr, "serve-tcp %s on %s:%d\n", o.behave, o.host, o.port);
  char b = o.behave[0] == 's' ? o.behave[1] : o.behave[0]; // e(cho), i = sink, o = source
  for (;;) {
    struct epoll_event ev[256]; int n = epoll_wait(ep, ev, 256, -1);
    for (int i = 0; i < n; i++) {
      sc *c = ev[i].data.ptr;
      if (!c) { for (;;) { int fd = accept4(l, NULL, NULL, SOCK_NONBLOCK); if (fd < 0) break; setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); c = xcalloc(1, sizeof *c); c->fd = fd; struct epoll_event x = {.events = EPOLLIN | (b == 'o' ? EPOLLOUT : 0), .data.ptr = c}; epoll_ctl(ep, EPOLL_CTL_ADD, fd, &x); } continue; }
      bool dead = false, blocked = false; if (ev[i].events & EPOLLERR) dead = true;
      for (int loops = 0; !dead && loops < 8; loops++) {
        if (c->n > c->off) { ssize_t w = send(c->fd, c->buf + c->off, c->n - c->off, MSG_NOSIGNAL); if (w < 0) { if (errno == EAGAIN) blocked = true; else dead = true; break; } c->off += (u32)w; if (c->off < c->n) { blocked = true; break; } c->n = c->off = 0; if (b == 'e') { free(c->buf); c->buf = NULL; } }
        if (b == 'o' || (b == 'i' && c->eof && o.reply)) { u64 tot = b == 'o' ? o.bytes : o.reply; if (tot && c->tx >= tot) { shutdown(c->fd, SHUT_WR); dead = b == 'i' || c->eof; c->phase = 1; break; }
          u64 k = tot ? tot - c->tx : PAT; if (k > PAT) k = PAT; ssize_t w = send(c->fd, pat + c->tx % PAT, k, MSG_NOSIGNAL); if (w < 0) { if (errno == EAGAIN) { blocked = true; } else dead = true; break; } c->tx += (u64)w; continue; }
        if (c->eof) { shutdown(c->fd, SHUT_WR); dead = true; break; }
        if (b == 'e' && !c->buf && !(c->buf = malloc(SB))) die("oom");
        static u8 junk[SB]; ssize_t r = recv(c->fd, b == 'e' ? c->buf : junk, SB, 0);
        if (r < 0) { if (errno != EAGAIN) dead = true; else if (b == 'e') { free(c->buf); c->buf = NULL; } break; }
        if (r == 0) { c->eof = 1; if (b == 'i' && !o.reply) { c->buf = malloc(32); snprintf((char *)c->buf, 32, "%016llx", (unsigned long long)c->rx); c->n = 16; } continue; }
        c->rx += (u64)r; if (b == 'e') { c->n = (u32)r; c->off = 0; }
      }
      if (b == 'o' && !dead && (ev[i].events & EPOLLIN)) { static u8 j2[65536]; ssize_t r = recv(c->fd, j2, sizeof j2, 0); if (r == 0) { c->eof = 1; if (c->phase || !o.bytes) dead = true; } else if (r < 0 && errno != EAGAIN) dead = true; }
      if (dead) { close(c->fd); free(c->buf); free(c); continue; }
      if (c->n > c->off || (c->eof && b != 'o')) blocked = true;
      struct epoll_event x = {.events = (c->eof || (b == 'e' && blocked) ? 0 : EPOLLIN) | (blocked || (b == 'o' && !c->phase) || (c->eof && b == 'i') ? EPOLLOUT : 0), .data.ptr = c}; epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &x);
    }
  }
}

static void usage(void) {
  fprintf(stderr,
    "wsload MODE HOST:PORT [options]          (one JSON line on stdout; exit 1 if any error was counted)\n"
    " ws-echo     C connections, D messages in flight each, against a WebSocket echo\n"
    " tcp-echo    the same in raw TCP, fixed-size blocks (TCP<->TCP or TCP<->WS bridge in front of an echo)\n"
    " ws-idle     open C connections, hold them: memory per connection, handshake rate\n"
    " ws-fanout   C subscribers and one publisher in a chat room (each message goes to everyone)\n"
    " tcp-stream  bulk transfer through a bridge: --dir up|down|both\n"
    " serve-tcp   backend for bridges: --behave echo|sink|source\n"
    " -c N  connections (64)    -d N  in flight (1)     -s N  message or block bytes (64)\n"
    " -t S  seconds (5)         -w S  warm-up (1)       --path P   --text   --proto SUBPROTOCOL   --origin O   --header 'K: V'   --host-header H\n"
    " --stream   (ws-echo) count blocks in the byte stream, whatever the frames: for WS<->TCP bridges in front of a TCP echo\n"
    " --tls      wss / TLS (built with -DTLS)   --cafile F verifies the server's certificate\n"
    " --pid P    watch this process and its descendants (CPU, RSS); may be given several times\n"
    " --spread N source addresses 127.0.0.2.. (automatic, 20000 each, above 20000 connections)\n"
    " --par N    connections being opened at once (128)   --touch (ws-idle) one echo on each first   --settle S (ws-idle, 1)\n"
    " --rate R   (ws-fanout) messages/s, open loop; without it D broadcasts are kept in flight\n"
    " --bytes N  (tcp-stream, serve-tcp source) bytes per connection instead of seconds   --half-close   --reply N (serve-tcp sink: N bytes after EOF)\n"
    " --room C   (ws-fanout) by Centrifuge's JSON protocol, in the channel C; --stalled N more subscribers, which stop reading once they are in\n"
    " --also P   this port too, may be given several times: connections are spread over all\n"
    " --tag T    copied into the JSON\n");
  exit(2);
}
int main(int ac, char **av) {
  if (ac < 3) usage();
  o.mode = -1; for (int i = 0; i < 6; i++) if (!strcmp(av[1], mode_name[i])) o.mode = i; if (o.mode < 0) usage();
  char *colon = strrchr(av[2], ':'); if (!colon) usage(); snprintf(o.host, sizeof o.host, "%.*s", (int)(colon - av[2]), av[2]); o.port = atoi(colon + 1);
  o.path = "/"; o.conns = o.mode == M_STREAM ? 1 : 64; o.depth = 1; o.size = o.mode == M_STREAM ? 65521 : 64; o.secs = 5; o.warm = 1; o.par = 128; o.dir = "both"; o.behave = "echo"; o.tag = ""; o.settle = 1; o.hosthdr = av[2];
  for (int i = 3; i < ac; i++) {
    const char *a = av[i]; 
#define ARG (i + 1 < ac ? av[++i] : (usage(), ""))
    if (!strcmp(a, "-c")) o.conns = (u32)atoi(ARG); else if (!strcmp(a, "-d")) o.depth = (u32)atoi(ARG); else if (!strcmp(a, "-s")) o.size = strtoull(ARG, 0, 10);
    else if (!strcmp(a, "-t")) o.secs = atof(ARG); else if (!strcmp(a, "-w")) o.warm = atof(ARG); else if (!strcmp(a, "--path")) o.path = ARG; else if (!strcmp(a, "--text")) o.text = true;
    else if (!strcmp(a, "--binary")) o.text = false; else if (!strcmp(a, "--proto")) { size_t n = strlen(o.extra); snprintf(o.extra + n, sizeof o.extra - n, "Sec-WebSocket-Protocol: %s\r\n", ARG); }
    else if (!strcmp(a, "--origin")) { size_t n = strlen(o.extra); snprintf(o.extra + n, sizeof o.extra - n, "Origin: %s\r\n", ARG); } else if (!strcmp(a, "--header")) { size_t n = strlen(o.extra); snprintf(o.extra + n, sizeof o.extra - n, "%s\r\n", ARG); }
    else if (!strcmp(a, "--host-header")) o.hosthdr = ARG; else if (!strcmp(a, "--stream")) o.stream = true; else if (!strcmp(a, "--tls")) o.tls = true; else if (!strcmp(a, "--cafile")) o.cafile = ARG;
    else if (!strcmp(a, "--pid")) { if (mon_nroots < 16) mon_roots[mon_nroots++] = atoi(ARG); } else if (!strcmp(a, "--par")) o.par = (u32)atoi(ARG); else if (!strcmp(a, "--spread")) o.spread = (u32)atoi(ARG); else if (!strcmp(a, "--touch")) o.touch = true;
    else if (!strcmp(a, "--settle")) o.settle = atof(ARG); else if (!strcmp(a, "--rate")) o.rate = atof(ARG); else if (!strcmp(a, "--bytes")) o.bytes = strtoull(ARG, 0, 10); else if (!strcmp(a, "--half-close")) o.halfclose = true;
    else if (!strcmp(a, "--reply")) o.reply = strtoull(ARG, 0, 10); else if (!strcmp(a, "--dir")) o.dir = ARG; else if (!strcmp(a, "--behave")) o.behave = ARG; else if (!strcmp(a, "--tag")) o.tag = ARG;
    else if (!strcmp(a, "--room")) { o.room = ARG; o.text = true; } else if (!strcmp(a, "--stalled")) o.stalled = (u32)atoi(ARG);
    else if (!strcmp(a, "--also")) { if (o.nalso == 15) usage(); o.also[o.nalso++] = (uint16_t)atoi(ARG); } else usage();
  }
  if (o.conns < 1 || o.depth < 1) usage(); if (o.mode == M_FANOUT) o.conns += 1 + o.stalled; else o.room = NULL;
  signal(SIGPIPE, SIG_IGN); tick_ns = 1000000000u / (u64)sysconf(_SC_CLK_TCK); page_kb = sysconf(_SC_PAGESIZE) / 1024; (void)!getrandom(&rng_s, 8, 0);
  struct rlimit rl; getrlimit(RLIMIT_NOFILE, &rl); rlim_t need = o.conns + 200; if (rl.rlim_cur < need) { rl.rlim_cur = need; if (rl.rlim_max < need) rl.rlim_max = need; if (setrlimit(RLIMIT_NOFILE, &rl)) die("cannot raise RLIMIT_NOFILE to %llu", (unsigned long long)need); }
  dst.sin_family = AF_INET; dst.sin_port = htons((uint16_t)o.port); if (inet_pton(AF_INET, o.host, &dst.sin_addr) != 1) die("HOST must be an IPv4 address");
  ep = epoll_create1(EPOLL_CLOEXEC); H = xcalloc(1, sizeof *H); HC = xcalloc(1, sizeof *HC); rbuf = malloc(RBUF); cs = xcalloc(o.conns, sizeof *cs); for (u32 i = 0; i < o.conns; i++) { cs[i].st = S_DEAD; cs[i].fd = -1; }
  if (o.tls) {
#ifdef TLS
    ctx = SSL_CTX_new(TLS_client_method()); SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS); SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    if (o.cafile) { if (SSL_CTX_load_verify_locations(ctx, o.cafile, NULL) != 1) die("cafile"); SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL); }
#else
    die("built without -DTLS");
#endif
  }
  switch (o.mode) { case M_WSECHO: case M_TCPECHO: return run_echo(); case M_IDLE: return run_idle(); case M_FANOUT: return run_fanout(); case M_STREAM: return run_stream(); default: run_serve(); }
  return 0;
}
