// Answers each request on standard input, a blank line ends one, as service.py does.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

static int64_t spent[2];

static int64_t now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

__attribute__((noinline)) void total() { for (volatile int i = 0; i < 40000; i = i + 1) {} }
__attribute__((noinline)) void taxes() { for (volatile int i = 0; i < 120000; i = i + 1) {} }

__attribute__((noinline)) void handle(int times) {
    int64_t start = now();
    for (int i = 0; i < times; i++) total();
    int64_t middle = now();
    taxes();
    spent[0] += middle - start;
    spent[1] += now() - middle;
    std::printf("spent %lld %lld\n", (long long)spent[0], (long long)spent[1]);
    std::fflush(stdout);
}

int main() {
    char line[256];
    int times = 1;
    while (std::fgets(line, sizeof line, stdin)) {
        if (std::strncmp(line, "GET ", 4) == 0) times = std::strncmp(line, "GET /more", 9) ? 1 : 9;
        if (std::strcmp(line, "\r\n") == 0) handle(times);
    }
}
