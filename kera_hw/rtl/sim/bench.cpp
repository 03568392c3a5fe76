// Drives one design cycle by cycle and checks its protocol. Generated constants come from kera_bench.h.
//
// Usage: sim INPUT OUTPUT ITEMS SEED VALID_PERCENT READY_PERCENT RESET_AT MAX_CYCLES [TRACE]
//        sim --serve SEED
// The first runs ITEMS items at the pace of random neighbours; the second answers items of standard input one by one.
// INPUT holds ITEMS rows of IN_WORDS words; OUTPUT gets a header, the result rows and two cycle numbers an item.
#include "Vdut.h"
#include "kera_bench.h"
#include "verilated.h"
#if VM_TRACE_VCD
#include "verilated_vcd_c.h"
typedef VerilatedVcdC Tracer;
#elif VM_TRACE_FST
#include "verilated_fst_c.h"
typedef VerilatedFstC Tracer;
#endif
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

// Numbers of the faults; the Python side has the sentences.
enum Fault : uint64_t {
  FINE = 0, VALID_NEEDS_READY = 1, DATA_NOT_HELD = 2, UNASKED_RESULT = 3, WRONG_IN_READY = 4, WRONG_OUT_VALID = 5,
  TIMED_OUT = 6
};

struct Header { uint64_t fault, fault_cycle, fault_item, cycles, results; };

static uint64_t random_state;
static uint64_t next_random() {
  random_state ^= random_state >> 12; random_state ^= random_state << 25; random_state ^= random_state >> 27;
  return random_state * 0x2545F4914F6CDD1DULL;
}
static bool chance(unsigned percent) { return percent >= 100 || (next_random() >> 32) % 100 < percent; }

// What the plan predicts of the handshake, cycle by cycle, under any stalls.
struct Prediction {
  std::vector<char> holds = std::vector<char>(LATENCY, 0);
  std::vector<char> recent = std::vector<char>(INTERVAL, 0);
  bool out_valid() const { return holds[LATENCY - 1]; }
  bool advance(bool ready) const { return !out_valid() || ready; }
  bool due() const {
    for (int k = 0; k + 1 < INTERVAL; k++) if (recent[k]) return false;
    return true;
  }
  void clock(bool rst, bool in_valid, bool ready) {
    if (rst) { holds.assign(LATENCY, 0); recent.assign(INTERVAL, 0); return; }
    if (!advance(ready)) return;
    bool admitted = in_valid && due();
    memmove(&holds[1], &holds[0], LATENCY - 1); holds[0] = admitted;
    memmove(&recent[1], &recent[0], INTERVAL - 1); recent[0] = admitted;
  }
};

// A caller steps the design: 'r' resets it; 's' and a row of words is an item, answered on standard output by a
// fault, the cycles from its acceptance to its result, and the row of the result.
static int serve(Vdut& dut) {
  std::vector<uint32_t> row(IN_WORDS);
  auto offer = [&](bool present) {
    for (int k = 0; k < IN_WORDS; k++) dut.data_in[k] = present ? row[k] : (uint32_t)(next_random() >> 16);
  };
  auto edge = [&] { dut.clk = 1; dut.eval(); dut.clk = 0; dut.eval(); };
#if STROBES
  Prediction prediction;
#endif
  auto reset = [&] {
#if STROBES
    for (int k = 0; k < 2; k++) {
      dut.rst = 1; dut.in_valid = 0; offer(false);
#if READY
      dut.out_ready = 1;
#endif
      dut.eval(); prediction.clock(true, false, true); edge();
    }
    dut.rst = 0;
#endif
  };
  reset();
  for (int command; (command = getchar()) != EOF;) {
    if (command == 'r') { reset(); continue; }
    if (fread(row.data(), 4, IN_WORDS, stdin) != IN_WORDS) return 2;
    uint64_t answer[2] = {FINE, 0};
    std::vector<uint32_t> result(OUT_WORDS);
    auto take = [&] { memcpy(result.data(), dut.data_out.data(), 4 * OUT_WORDS); };
#if STROBES
    bool accepted = false;
    for (uint64_t waited = 0; ; waited++) {
      dut.in_valid = !accepted; offer(!accepted);
#if READY
      dut.out_ready = 1; dut.eval();
      const bool due = dut.in_ready;
      if (due != (prediction.advance(true) && prediction.due())) answer[0] = WRONG_IN_READY;
#else
      dut.eval();
      const bool due = prediction.due();
#endif
      const bool done = dut.out_valid;
      if (done != prediction.out_valid()) answer[0] = WRONG_OUT_VALID;
      if (done && !accepted) answer[0] = UNASKED_RESULT;
      if (waited > 8 * (LATENCY + INTERVAL)) answer[0] = TIMED_OUT;
      if (done) take();
      prediction.clock(false, dut.in_valid, true); edge();
      answer[1] += accepted;
      if (done || answer[0] != FINE) break;
      accepted = accepted || due;
    }
#else
    for (; answer[1] < LATENCY; answer[1]++) { offer(true); dut.eval(); edge(); }
    take();
#endif
    fwrite(answer, sizeof answer, 1, stdout); fwrite(result.data(), 4, OUT_WORDS, stdout);
    if (fflush(stdout)) return 2;
  }
  return 0;
}

int main(int argc, char** argv) {
  const bool serving = argc == 3 && !strcmp(argv[1], "--serve");
  if (serving) {
    random_state = strtoull(argv[2], nullptr, 10) * 2 + 1;
    VerilatedContext context;
    context.randReset(2);
    context.randSeed((int)(random_state % 1000000 + 1));
    Vdut dut{&context};
    const int status = serve(dut);
    dut.final();
    return status;
  }
  if (argc < 9) return 2;
  const uint64_t items = strtoull(argv[3], nullptr, 10), max_cycles = strtoull(argv[8], nullptr, 10);
  random_state = strtoull(argv[4], nullptr, 10) * 2 + 1;
  const unsigned valid_percent = atoi(argv[5]), ready_percent = atoi(argv[6]);
  const int64_t reset_at = atoll(argv[7]);
  std::vector<uint32_t> input(items * IN_WORDS + 1), output(items * OUT_WORDS + 1, 0);
  std::vector<uint64_t> accepted_at(items + 1, 0), emitted_at(items + 1, 0);
  FILE* file = fopen(argv[1], "rb");
  if (!file || fread(input.data(), 4, items * IN_WORDS, file) != items * IN_WORDS) return 2;
  fclose(file);

  VerilatedContext context;
  context.randReset(2);  // registers without an initial value start at random
  context.randSeed((int)(random_state % 1000000 + 1));
  Vdut dut{&context};
#if VM_TRACE
  Tracer trace;
  const bool tracing = argc > 9;
  if (tracing) { context.traceEverOn(true); dut.trace(&trace, 99); trace.open(argv[9]); }
#define DUMP(time) do { if (tracing) trace.dump(time); } while (0)
#else
#define DUMP(time) do { } while (0)
#endif

  Header header = {FINE, 0, 0, 0, 0};
  uint64_t next = 0, got = 0, cycle = 0, settle = 0;
  auto fail = [&](Fault fault) {
    if (header.fault == FINE) { header.fault = fault; header.fault_cycle = cycle; header.fault_item = got; }
  };
  auto offer = [&](bool present) {
    if (present) { memcpy(dut.data_in.data(), &input[next * IN_WORDS], 4 * IN_WORDS); return; }
    const uint32_t noise = (uint32_t)(next_random() >> 16);
    for (int k = 0; k < IN_WORDS; k++) dut.data_in[k] = noise;
  };
  auto edge = [&] {
    DUMP(2 * cycle);
    dut.clk = 1; dut.eval(); DUMP(2 * cycle + 1);
    dut.clk = 0; cycle++;
  };

#if STROBES
  Prediction prediction;
  bool offering = false;
#if READY
  bool was_stalled = false;
  std::vector<uint32_t> held(OUT_WORDS);
#endif
  const uint64_t reset_cycles = 2;
  while (header.fault == FINE && (got < items || settle++ < LATENCY + 4)) {
    if (cycle >= max_cycles) { fail(TIMED_OUT); break; }
    const bool late_reset = reset_at >= 0 && cycle >= (uint64_t)reset_at && cycle < (uint64_t)reset_at + reset_cycles;
    const bool rst = cycle < reset_cycles || late_reset;
    if (late_reset) { next = got = settle = 0; offering = false; }  // everything starts over
    offering = next < items && (offering || chance(valid_percent));
#if READY
    const bool ready = chance(ready_percent);
    dut.rst = rst; dut.in_valid = offering; offer(offering);
    if (ready_percent < 100) {  // the offer must not depend on the answer
      dut.out_ready = !ready; dut.eval();
      const bool before = dut.out_valid;
      dut.out_ready = ready; dut.eval();
      if (before != dut.out_valid) fail(VALID_NEEDS_READY);
    } else { dut.out_ready = ready; dut.eval(); }
#else
    const bool ready = true, due = prediction.due() && !rst;  // what comes too early is ignored, so it may be anything
    dut.rst = rst; dut.in_valid = offering; offer(offering && due); dut.eval();
#endif
    if (cycle > 0) {  // before the first edge nothing has been reset
      if (dut.out_valid != prediction.out_valid()) fail(WRONG_OUT_VALID);
#if READY
      if (dut.in_ready != (prediction.advance(ready) && prediction.due() && !rst)) fail(WRONG_IN_READY);
#endif
    }
#if READY
    if (was_stalled && (!dut.out_valid || memcmp(held.data(), dut.data_out.data(), 4 * OUT_WORDS))) fail(DATA_NOT_HELD);
    was_stalled = dut.out_valid && !ready && !rst;
    if (was_stalled) memcpy(held.data(), dut.data_out.data(), 4 * OUT_WORDS);
#endif
    if (dut.out_valid && ready && !rst) {
      if (got >= next) { fail(UNASKED_RESULT); break; }
      memcpy(&output[got * OUT_WORDS], dut.data_out.data(), 4 * OUT_WORDS);
      emitted_at[got++] = cycle;
    }
#if READY
    const bool due = dut.in_ready;
#endif
    if (offering && due) { accepted_at[next++] = cycle; offering = false; }
    prediction.clock(rst, dut.in_valid, ready);
    edge();
  }
#else
  // An item in every cycle from power-up, its result LATENCY cycles after it.
  while (got < items) {
    const bool due = next < items;
    offer(due);
    dut.eval();
    if (cycle >= LATENCY) {
      memcpy(&output[got * OUT_WORDS], dut.data_out.data(), 4 * OUT_WORDS);
      emitted_at[got++] = cycle;
    }
    if (due) accepted_at[next++] = cycle;
    edge();
  }
#endif
  dut.eval();
  DUMP(2 * cycle);
  dut.final();
#if VM_TRACE
  if (tracing) trace.close();
#endif
  header.cycles = cycle; header.results = got;
  file = fopen(argv[2], "wb");
  if (!file) return 2;
  fwrite(&header, sizeof header, 1, file);
  fwrite(output.data(), 4, items * OUT_WORDS, file);
  fwrite(accepted_at.data(), 8, items, file);
  fwrite(emitted_at.data(), 8, items, file);
  return fclose(file) ? 2 : 0;
}
