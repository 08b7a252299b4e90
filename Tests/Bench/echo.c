/* Messages back and forth through tunnels that were switched by Upgrade: both ends in one thread, so that the proxy between them is kept busy.

   echo SERVER_DESCRIPTOR PORT CONNECTIONS SIZE SECONDS prints how many messages went to the server and back. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char request[] =
    "GET /echo HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
static const char response[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                               "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

struct end {
    int descriptor, is_server;
    size_t missing;
};

static void fail(const char *what) {
    fprintf(stderr, "echo: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void read_head(int descriptor) {
    char last[4] = {0};
    while (memcmp(last, "\r\n\r\n", 4) != 0) {
        memmove(last, last + 1, 3);
        if (recv(descriptor, last + 3, 1, 0) != 1) fail("no head");
    }
}

static void send_all(int descriptor, const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = send(descriptor, bytes, count, 0);
        if (sent < 0) fail("send");
        bytes += sent;
        count -= (size_t)sent;
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int count, char **arguments) {
    if (count != 6) return 64;
    int listener = atoi(arguments[1]), port = atoi(arguments[2]), connections = atoi(arguments[3]);
    size_t size = (size_t)atol(arguments[4]);
    double seconds = atof(arguments[5]);
    int poll = epoll_create1(0);
    struct end *ends = calloc((size_t)connections * 2, sizeof *ends);
    char *message = calloc(1, size), *buffer = malloc(1 << 20);
    for (int index = 0; index < connections; index++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        int client = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(client, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
        send_all(client, request, sizeof request - 1);
        int server = accept(listener, NULL, NULL);
        if (server < 0) fail("accept");
        read_head(server);
        send_all(server, response, sizeof response - 1);
        read_head(client);
        int both[2] = {client, server};
        for (int side = 0; side < 2; side++) {
            int on = 1;
            setsockopt(both[side], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            struct end *end = &ends[index * 2 + side];
            *end = (struct end){both[side], side, size};
            struct epoll_event event = {.events = EPOLLIN, .data.ptr = end};
            epoll_ctl(poll, EPOLL_CTL_ADD, both[side], &event);
        }
    }
    printf("ready\n");
    fflush(stdout);
    getchar();
    double deadline = now() + seconds;
    long done = 0, waiting = connections;
    for (int index = 0; index < connections; index++) send_all(ends[index * 2].descriptor, message, size);
    struct epoll_event events[512];
    while (waiting > 0) {
        int ready = epoll_wait(poll, events, 512, 5000);
        if (ready <= 0) fail("a message was lost");
        int is_over = now() >= deadline;
        for (int index = 0; index < ready; index++) {
            struct end *end = events[index].data.ptr;
            ssize_t got = recv(end->descriptor, buffer, end->missing < (1 << 20) ? end->missing : (1 << 20), 0);
            if (got <= 0) fail("a tunnel was closed");
            end->missing -= (size_t)got;
            if (end->missing > 0) continue;
            end->missing = size;
            if (!end->is_server) {
                done++;
                if (is_over) {
                    waiting--;
                    continue;
                }
            }
            send_all(end->descriptor, message, size);
        }
    }
    printf("%ld\n", done);
    return 0;
}
