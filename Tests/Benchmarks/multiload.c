// Loads a URL again and again through libcurl's multi interface, DEPTH at a time, and tells as JSON what it took.
//
//   multiload URL COUNT DEPTH [AUTHORITIES]
//
// AUTHORITIES: a file of certificates that servers may have; with it, all over one connection.
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static size_t take(char *bytes, size_t size, size_t count, void *received)
{
    *(size_t *)received += size * count;
    return size * count;
}

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void fail(const char *reason)
{
    fprintf(stderr, "multiload: %s\n", reason);
    exit(1);
}

// Runs `count` transfers on the handles, each of which is used again as soon as it is free.
static void run(CURLM *multi, CURL **handles, size_t *received, int depth, int count)
{
    int begun = 0, done = 0;
    for (; begun < depth; begun++) curl_multi_add_handle(multi, handles[begun]);
    while (done < count) {
        int running, left;
        if (curl_multi_perform(multi, &running) != CURLM_OK) fail("perform");
        CURLMsg *message;
        while ((message = curl_multi_info_read(multi, &left))) {
            if (message->msg != CURLMSG_DONE) continue;
            if (message->data.result != CURLE_OK) fail(curl_easy_strerror(message->data.result));
            CURL *handle = message->easy_handle;
            long status = 0;
            size_t *bytes = NULL;
            curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
            curl_easy_getinfo(handle, CURLINFO_PRIVATE, (char **)&bytes);
            if (status != 200 || *bytes == 0) fail("no content");
            *bytes = 0;
            done++;
            curl_multi_remove_handle(multi, handle);
            if (begun < count) {
                curl_multi_add_handle(multi, handle);
                begun++;
            }
        }
        if (done < count && curl_multi_poll(multi, NULL, 0, 1000, NULL) != CURLM_OK) fail("poll");
    }
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 5) fail("URL COUNT DEPTH [AUTHORITIES]");
    int count = atoi(argv[2]), depth = atoi(argv[3]);
    if (depth < 1 || count < depth) fail("COUNT is to be at least DEPTH, and DEPTH at least 1");
    curl_global_init(CURL_GLOBAL_DEFAULT);
    CURLM *multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, argc == 5 ? 1L : 32L);
    CURL **handles = calloc(depth, sizeof *handles);
    size_t *received = calloc(depth, sizeof *received);
    for (int index = 0; index < depth; index++) {
        handles[index] = curl_easy_init();
        curl_easy_setopt(handles[index], CURLOPT_URL, argv[1]);
        curl_easy_setopt(handles[index], CURLOPT_WRITEFUNCTION, take);
        curl_easy_setopt(handles[index], CURLOPT_WRITEDATA, &received[index]);
        curl_easy_setopt(handles[index], CURLOPT_PRIVATE, &received[index]);
        if (argc == 5) {
            curl_easy_setopt(handles[index], CURLOPT_CAINFO, argv[4]);
            curl_easy_setopt(handles[index], CURLOPT_PIPEWAIT, 1L);
        }
    }
    run(multi, handles, received, depth, count / 10 > depth ? count / 10 : depth);
    double start = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    run(multi, handles, received, depth, count);
    double spent = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("{\"count\": %d, \"seconds\": %f, \"cpu_seconds\": %f}\n", count, seconds(CLOCK_MONOTONIC) - start, spent);
    return 0;
}
