// lwsecho: a WebSocket echo over TLS on libwebsockets, as a yardstick for ours.
//   lwsecho PORT CERTIFICATE KEY
// Build: cc -O3 -o lwsecho lwsecho.c -lwebsockets
#include <libwebsockets.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 17 };
struct session {
    size_t length;
    int binary;
    unsigned char *message;  // LWS_PRE bytes of headroom, as lws_write wants it
};
static volatile sig_atomic_t stopped;

static int echo(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length) {
    struct session *s = user;
    switch (reason) {
    case LWS_CALLBACK_ESTABLISHED:
        s->length = 0;
        s->message = malloc(LWS_PRE + ROOM);
        return s->message ? 0 : -1;
    case LWS_CALLBACK_CLOSED:
        free(s->message);
        s->message = NULL;
        return 0;
    case LWS_CALLBACK_RECEIVE:
        if (s->length + length > ROOM) return -1;
        memcpy(s->message + LWS_PRE + s->length, in, length);
        s->length += length;
        s->binary = lws_frame_is_binary(wsi);
        if (lws_is_final_fragment(wsi) && !lws_remaining_packet_payload(wsi)) {
            lws_rx_flow_control(wsi, 0);
            lws_callback_on_writable(wsi);
        }
        return 0;
    case LWS_CALLBACK_SERVER_WRITEABLE:
        if (!s->length) return 0;
        if (lws_write(wsi, s->message + LWS_PRE, s->length, s->binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT) < 0) return -1;
        s->length = 0;
        lws_rx_flow_control(wsi, 1);
        return 0;
    default:
        return 0;
    }
}
static void stop(int signal) {
    (void)signal;
    stopped = 1;
}
int main(int argc, char **argv) {
    if (argc < 4) { fprintf(stderr, "usage: lwsecho PORT CERTIFICATE KEY\n"); return 2; }
    signal(SIGTERM, stop);
    lws_set_log_level(LLL_ERR, NULL);
    struct lws_protocols protocols[] = {{.name = "echo", .callback = echo, .per_session_data_size = sizeof(struct session), .rx_buffer_size = 65536}, {0}};
    struct lws_context_creation_info settings = {
        .port = atoi(argv[1]), .iface = "lo", .protocols = protocols, .gid = -1, .uid = -1,
        .ssl_cert_filepath = argv[2], .ssl_private_key_filepath = argv[3],
        .options = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT | LWS_SERVER_OPTION_DISABLE_IPV6,
    };
    struct lws_context *context = lws_create_context(&settings);
    if (!context) { fprintf(stderr, "lwsecho: cannot start\n"); return 1; }
    while (!stopped && lws_service(context, 0) >= 0) {}
    lws_context_destroy(context);
    return 0;
}
