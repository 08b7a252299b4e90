#define _GNU_SOURCE
/* The program in the containers of the trial of discover: `app PORT`. It answers each GET with its container's name and the request's path,
   keeps connections, and on SIGTERM finishes the requests that it has, accepts no more, and ends: as a program in a container should. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_int ending, busy;
static int listener;
static char name[64];

static void on_term(int signal) {
    (void)signal;
    ending = 1;
    close(listener);
}

static void *serve(void *argument) {
    int peer = (int)(long)argument, used = 0;
    char head[8192], answer[1024];
    while (used < (int)sizeof head - 1) {
        int count = (int)read(peer, head + used, sizeof head - 1 - (size_t)used);
        if (count <= 0) break;
        used += count;
        head[used] = 0;
        char *end = strstr(head, "\r\n\r\n");
        if (!end) continue;
        busy++;
        char path[256] = "", host[256] = "";
        sscanf(head, "%*s %255s", path);
        char *field = strcasestr(head, "\r\nhost:");
        if (field) sscanf(field + 7, " %255[^\r]", host);
        if (!strncmp(path, "/slow", 5)) usleep(300000);
        char content[700];
        int length = snprintf(content, sizeof content, "%s %s %s\n", name, host, path);
        int size = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s", length,
            ending ? "Connection: close\r\n" : "", content);
        int sent = (int)write(peer, answer, (size_t)size);
        busy--;
        if (sent != size || ending) break;
        used -= (int)(end + 4 - head);
        memmove(head, end + 4, (size_t)used);
    }
    close(peer);
    return 0;
}

int main(int count, char **words) {
    /* `app check` is the health check. */
    if (count > 1 && !strcmp(words[1], "check")) return 0;
    int port = count > 1 ? atoi(words[1]) : 3000, on = 1;
    gethostname(name, sizeof name - 1);
    struct sigaction action = {.sa_handler = on_term};
    sigaction(SIGTERM, &action, 0);
    signal(SIGPIPE, SIG_IGN);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 512)) return 1;
    while (!ending) {
        int peer = accept4(listener, 0, 0, SOCK_CLOEXEC);
        if (peer < 0) continue;
        setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pthread_t thread;
        if (pthread_create(&thread, 0, serve, (void *)(long)peer)) close(peer);
        else pthread_detach(thread);
    }
    /* Requests that are on their way still arrive on the open connections. */
    for (int turn = 0; turn < 40; turn++) {
        usleep(25000);
        if (turn > 12 && !busy) break;
    }
    return 0;
}
