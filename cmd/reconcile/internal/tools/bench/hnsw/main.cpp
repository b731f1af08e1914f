// Searches among vectors with hnswlib, for bench to compare with: bench compiles it where a compiler and the header are.
//
//   hnsw DATA [INDEX]
//
// DATA holds n, queries and dims, each as 8 bytes, then n + queries rows of float32 numbers, all in the order of bytes of
// this machine. The index is built, unless the file INDEX holds it, which is written otherwise. For each line "EF K" of the
// input all queries are searched on one thread, and one line goes to the output: the seconds of processor time that this took, and K row
// numbers for each query.

#include <hnswlib/hnswlib.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <thread>
#include <vector>

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The processor time of this thread, in seconds; where that is not known, the time.
static double spent() {
#ifdef CLOCK_THREAD_CPUTIME_ID
    timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0) return t.tv_sec + t.tv_nsec / 1e9;
#endif
    return now();
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: hnsw DATA [INDEX]\n");
        return 2;
    }
    std::ifstream in(argv[1], std::ios::binary);
    uint64_t head[3];
    if (!in.read(reinterpret_cast<char *>(head), sizeof head)) {
        fprintf(stderr, "%s: no vectors\n", argv[1]);
        return 1;
    }
    const size_t n = head[0], queries = head[1], dims = head[2];
    std::vector<float> rows((n + queries) * dims);
    if (!in.read(reinterpret_cast<char *>(rows.data()), rows.size() * sizeof(float))) {
        fprintf(stderr, "%s: too short\n", argv[1]);
        return 1;
    }
    hnswlib::InnerProductSpace space(dims);
    const bool saved = argc == 3 && std::ifstream(argv[2]).good();
    const size_t m = 16, efConstruction = 200;
    const double start = now();
    hnswlib::HierarchicalNSW<float> *index;
    if (saved) {
        index = new hnswlib::HierarchicalNSW<float>(&space, argv[2], false, n);
    } else {
        index = new hnswlib::HierarchicalNSW<float>(&space, n, m, efConstruction);
        index->addPoint(rows.data(), 0);
        const size_t threads = std::max(1u, std::thread::hardware_concurrency());
        std::vector<std::thread> all;
        for (size_t t = 0; t < threads; t++) {
            all.emplace_back([&, t] {
                for (size_t i = 1 + t; i < n; i += threads) index->addPoint(rows.data() + i * dims, i);
            });
        }
        for (auto &t : all) t.join();
        if (argc == 3) index->saveIndex(argv[2]);
    }
    printf("%.3f\n", now() - start);
    fflush(stdout);
    size_t ef, k;
    while (scanf("%zu %zu", &ef, &k) == 2) {
        index->setEf(ef);
        std::vector<uint64_t> found(queries * k);
        const double begin = spent();
        for (size_t q = 0; q < queries; q++) {
            auto best = index->searchKnn(rows.data() + (n + q) * dims, k);
            for (size_t i = best.size(); i > 0; i--) {
                found[q * k + i - 1] = best.top().second;
                best.pop();
            }
        }
        printf("%.6f", spent() - begin);
        for (uint64_t row : found) printf(" %llu", static_cast<unsigned long long>(row));
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
