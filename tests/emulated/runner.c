/* Loads machine code and runs it on batches, as its standard input asks; answers on its standard output.
 *
 * All numbers are 64 bits. 'L': bytes of code, the code. 'R': the number of parameters and of results, items,
 * bytes of memory, bytes that it begins with, 1 for buffers that end at a page's end; bytes of each parameter and
 * result; what the memory begins with, the parameters. The answer is the results, and so much of the memory. Each buffer lies between pages
 * without access. Code is written, then made executable, never both at once.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MOST_LEAVES = 4096 };

struct pages { char *start; size_t whole; char *data; };

static void must(int good, const char *what)
{
    if (!good) { fprintf(stderr, "runner: %s\n", what); exit(2); }
}

static void get(void *to, size_t size)
{
    must(size == 0 || fread(to, size, 1, stdin) == 1, "the request ends too early");
}

static uint64_t number(void)
{
    uint64_t found;
    get(&found, sizeof found);
    return found;
}

static struct pages guarded(size_t size, int at_end)
{
    size_t middle = size ? (size + PAGE - 1) / PAGE * PAGE : PAGE;
    struct pages made;
    made.whole = middle + 2 * PAGE;
    made.start = mmap(NULL, made.whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(made.start != MAP_FAILED, "mmap");
    must(mprotect(made.start + PAGE, middle, PROT_READ | PROT_WRITE) == 0, "mprotect");
    made.data = made.start + PAGE + (at_end ? middle - size : 0);
    return made;
}

typedef void (*function)(uint64_t, void **, void *);

/* Calls a function; whether a register that is the caller's comes back with something else. */
#if defined(__aarch64__)
static uint64_t changes(function run, uint64_t items, void **ports, void *memory)
{
    uint64_t changed;
    __asm__ volatile(
        "mov x9, #0x5a5a\n"
        ".irp k,19,20,21,22,23,24,25,26,27,28\n add x\\k, x9, #\\k\n .endr\n"
        ".irp k,8,9,10,11,12,13,14,15\n fmov d\\k, x9\n .endr\n"
        "ldr x0, %1\n ldr x1, %2\n ldr x2, %3\n ldr x3, %4\n blr x3\n"
        "mov x9, #0x5a5a\n mov x10, #0\n"
        ".irp k,19,20,21,22,23,24,25,26,27,28\n"
        " add x11, x9, #\\k\n eor x11, x11, x\\k\n orr x10, x10, x11\n .endr\n"
        ".irp k,8,9,10,11,12,13,14,15\n fmov x11, d\\k\n eor x11, x11, x9\n orr x10, x10, x11\n .endr\n"
        "str x10, %0\n"
        : "=m"(changed) : "m"(items), "m"(ports), "m"(memory), "m"(run)
        : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
          "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30",
          "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
          "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30",
          "v31", "cc", "memory");
    return changed;
}
#elif defined(__riscv)
static uint64_t changes(function run, uint64_t items, void **ports, void *memory)
{
    uint64_t changed;
    __asm__ volatile(
        ".irp k,0,1,2,3,4,5,6,7,8,9,10,11\n li s\\k, 0x5a5a + \\k\n fmv.d.x fs\\k, s\\k\n .endr\n"
        "ld a0, %1\n ld a1, %2\n ld a2, %3\n ld a3, %4\n jalr a3\n"
        "li t0, 0\n"
        ".irp k,0,1,2,3,4,5,6,7,8,9,10,11\n"
        " li t1, 0x5a5a + \\k\n xor t2, t1, s\\k\n or t0, t0, t2\n"
        " fmv.x.d t2, fs\\k\n xor t2, t1, t2\n or t0, t0, t2\n .endr\n"
        "sd t0, %0\n"
        : "=m"(changed) : "m"(items), "m"(ports), "m"(memory), "m"(run)
        : "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7",
          "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11",
          "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "ft8", "ft9", "ft10", "ft11",
          "fs0", "fs1", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8", "fs9", "fs10", "fs11",
          "fa0", "fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "memory");
    return changed;
}
#endif

int main(void)
{
    function run = NULL;
    char *code = NULL;
    size_t code_bytes = 0;
    for (int kind; (kind = getchar()) != EOF;) {
        if (kind == 'L') {
            if (code) munmap(code, code_bytes);
            uint64_t size = number();
            code_bytes = (size + PAGE - 1) / PAGE * PAGE;
            code = mmap(NULL, code_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            must(code != MAP_FAILED, "mmap");
            get(code, size);
            must(mprotect(code, code_bytes, PROT_READ | PROT_EXEC) == 0, "mprotect");
            __builtin___clear_cache(code, code + code_bytes);
            memcpy(&run, &code, sizeof run);
            continue;
        }
        must(kind == 'R', "no such request");
        uint64_t params = number(), results = number(), items = number();
        uint64_t memory_bytes = number(), image_bytes = number(), at_end = number();
        static struct pages leaves[MOST_LEAVES];
        static uint64_t sizes[MOST_LEAVES];
        static void *ports[MOST_LEAVES];
        must(params + results <= MOST_LEAVES, "too many leaves");
        for (uint64_t k = 0; k < params + results; k++) sizes[k] = number();
        struct pages memory = guarded(memory_bytes, at_end);
        get(memory.data, image_bytes);
        for (uint64_t k = 0; k < params + results; k++) {
            leaves[k] = guarded(sizes[k], at_end);
            ports[k] = leaves[k].data;
            if (k < params) get(leaves[k].data, sizes[k]);
        }
        must(!changes(run, items, ports, memory.data), "a register of the caller's has changed");
        for (uint64_t k = params; k < params + results; k++)
            if (sizes[k]) fwrite(leaves[k].data, sizes[k], 1, stdout);
        if (image_bytes) fwrite(memory.data, image_bytes, 1, stdout);
        fflush(stdout);
        for (uint64_t k = 0; k < params + results; k++) munmap(leaves[k].start, leaves[k].whole);
        munmap(memory.start, memory.whole);
    }
    return 0;
}
