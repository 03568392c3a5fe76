// Drives one design cycle by cycle and checks its protocol. Generated constants come from kera_bench.h.
//
// Usage: sim INPUT OUTPUT ITEMS SEED VALID_PERCENT READY_PERCENT IN_TURN RESET_AT RESETS MAX_CYCLES [WAVE]
//        sim --serve SEED
// WAVE is a file; behind it may stand +fault=N, the planted fault that is in effect, and +record=FILE, which gets all
// ports of the wrapper in every cycle, inputs first.
// The first runs ITEMS items at the pace of random neighbours; the second answers items of standard input one by one.
// INPUT holds ITEMS rows of IN_ROW words, the beats of every channel one behind the other, then the latency of each
// item where they have their own. OUTPUT gets a header,
// the result rows in the same form and three cycle numbers an item: its first beat, its result's first and last.
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
#include <deque>
#include <vector>

// Numbers of the faults; the Python side has the sentences.
enum Fault : uint64_t {
  FINE = 0, VALID_NEEDS_READY = 1, DATA_NOT_HELD = 2, UNASKED_RESULT = 3, WRONG_IN_READY = 4, WRONG_OUT_VALID = 5,
  TIMED_OUT = 6, WRONG_LAST = 7, NOT_RESET = 8
};

struct Header { uint64_t fault, fault_cycle, fault_item, cycles, results; };

// A channel: beats an item, words a beat, where those are in a row and on the bus of all channels.
struct Channel { uint64_t beats, words, row, bus; bool last; };
static const Channel IN[] = IN_CHANNELS, OUT[] = OUT_CHANNELS;
constexpr int N_IN = sizeof IN / sizeof IN[0], N_OUT = sizeof OUT / sizeof OUT[0];

static uint64_t random_state;
static uint64_t next_random() {
  random_state ^= random_state >> 12; random_state ^= random_state << 25; random_state ^= random_state >> 27;
  return random_state * 0x2545F4914F6CDD1DULL;
}
static bool chance(unsigned percent) { return percent >= 100 || (next_random() >> 32) % 100 < percent; }

static bool bit(const WData* bus, int k) { return bus[k / 32] >> (k % 32) & 1; }
static void set_bit(WData* bus, int k, bool high) { bus[k / 32] = (bus[k / 32] & ~(1u << (k % 32))) | (WData)high << (k % 32); }

// Of each item where these differ: the cycles from its admission to its result, a cycle behind which the next one may come.
static std::vector<uint64_t> own_latency;

// What the plan predicts of the handshake, cycle by cycle, under any stalls: beats are collected, items go through
// a pipeline that stalls as a whole, results are sent in beats. `update` looks at the ports in a cycle, `clock` ends it.
struct Prediction {
  std::deque<uint64_t> due_at;  // of items inside, counted in cycles in which the pipeline moves
  uint64_t moved = 0, next_at = 0, count = 0;
  uint64_t have[N_IN] = {}, left[N_OUT] = {};
  bool skid[N_IN] = {}, shown[N_OUT] = {};
  bool offered[N_IN], taken[N_IN], in_ready[N_IN], out_valid[N_OUT], first[N_OUT], ready[N_OUT];
  bool rst, moves, leaves, admitted;
  uint64_t clearing = 0;  // cycles until memories hold their initial words again

  void update(bool reset, const bool* in_valid, const bool* out_ready) {
    const bool result = !due_at.empty() && due_at.front() <= moved;
    bool begun = true, whole = true;
    rst = reset;
    for (int k = 0; k < N_OUT; k++) {
      ready[k] = out_ready[k];
      out_valid[k] = left[k] || (result && !shown[k]);
      first[k] = !left[k] && result && !shown[k] && ready[k];
      begun = begun && (shown[k] || (!left[k] && ready[k]));
    }
    moves = !result || begun;
    leaves = result && begun;
    // Where items have paces of their own, each has a unit to itself, of UNITS that take them in turn.
    const bool free = OWN_PACE ? due_at.size() < UNITS : moves && moved >= next_at;
    const bool takes = free && clearing == 0 && !rst;
    for (int k = 0; k < N_IN; k++) {
      offered[k] = skid[k] || in_valid[k];
      whole = whole && (COLLECTS_WHOLE ? have[k] == IN[k].beats : have[k] == IN[k].beats - 1 && offered[k]);
    }
    admitted = whole && takes;
    for (int k = 0; k < N_IN; k++) {
      const bool room = COLLECTS_WHOLE ? have[k] < IN[k].beats || admitted : have[k] < IN[k].beats - 1 || takes;
      taken[k] = offered[k] && room && !rst;
      in_ready[k] = (REGISTERED_READY ? !skid[k] : room) && !rst;
    }
  }
  void clock() {
    if (rst) { *this = Prediction(); clearing = RESET_CYCLES; return; }
    if (clearing) clearing--;
    for (int k = 0; k < N_IN; k++) {
      skid[k] = REGISTERED_READY && offered[k] && !taken[k];
      have[k] = admitted ? (COLLECTS_WHOLE ? taken[k] : 0) : have[k] + taken[k];
    }
    for (int k = 0; k < N_OUT; k++) {
      left[k] = first[k] ? OUT[k].beats - 1 : left[k] - (left[k] && ready[k]);
      shown[k] = (shown[k] || first[k]) && !leaves;
    }
    if (!moves && !OWN_PACE) return;
    if (leaves) due_at.pop_front();
    if (admitted) {
      const uint64_t latency = OWN_PACE && count < own_latency.size() ? own_latency[count] : LATENCY;
      due_at.push_back(moved + latency);
      next_at = moved + INTERVAL;
      count++;
    }
    moved++;
  }
};

// One side of a channel: the item it is at and the beat of it.
struct Side {
  uint64_t item = 0, beat = 0;
  bool busy = false;  // offering, or the offer seen before was not taken
  void step(const Channel& channel) { busy = false; if (++beat == channel.beats) { beat = 0; item++; } }
};

static void put_beat(Vdut& dut, int k, const uint32_t* row, uint64_t beat) {
  memcpy(dut.data_in.data() + IN[k].bus, row + IN[k].row + beat * IN[k].words, 4 * IN[k].words);
}
static void put_noise(Vdut& dut, int k) {
  const uint32_t noise = (uint32_t)(next_random() >> 16);
  for (uint64_t word = 0; word < IN[k].words; word++) dut.data_in[IN[k].bus + word] = noise;
}
static void take_beat(const Vdut& dut, int k, uint32_t* row, uint64_t beat) {
  memcpy(row + OUT[k].row + beat * OUT[k].words, dut.data_out.data() + OUT[k].bus, 4 * OUT[k].words);
}

// A caller steps the design: 'r' resets it; 's' and a row of words (then its latency, if it has its own) is an item, answered on standard output by a
// fault, the cycles from its first beat to the first of its result, and the row of the result.
static int serve(Vdut& dut) {
  std::vector<uint32_t> row(IN_ROW + 1), result(OUT_ROW + 1);
  auto edge = [&] { dut.clk = 1; dut.eval(); dut.clk = 0; dut.eval(); };
#if STROBES
  Prediction prediction;
  bool in_valid[N_IN], ready[N_OUT];
  for (bool& answer : ready) answer = true;
#endif
  auto reset = [&] {
#if STROBES
    dut.rst = 1;
    for (int k = 0; k < N_OUT; k++) set_bit(dut.out_ready.data(), k, true);
    for (int k = 0; k < N_IN; k++) { in_valid[k] = false; set_bit(dut.in_valid.data(), k, false); put_noise(dut, k); }
    for (int k = 0; k < 2; k++) {
      dut.eval(); prediction.update(true, in_valid, ready); prediction.clock(); edge();
    }
    dut.rst = 0;
#endif
  };
  reset();
  for (int command; (command = getchar()) != EOF;) {
    if (command == 'r') { reset(); continue; }
    if (fread(row.data(), 4, IN_ROW, stdin) != IN_ROW) return 2;
    own_latency.assign(OWN_PACE, LATENCY);
    if (OWN_PACE && fread(own_latency.data(), 8, 1, stdin) != 1) return 2;
    uint64_t answer[2] = {FINE, 0};
#if STROBES
    Side source[N_IN], sink[N_OUT];
    bool begun = false, shown = false;
    prediction.count = 0;
    for (uint64_t waited = 0, left = N_OUT; left && answer[0] == FINE; waited++) {
      for (int k = 0; k < N_IN; k++) {
        in_valid[k] = !source[k].item;
        set_bit(dut.in_valid.data(), k, in_valid[k]);
        set_bit(dut.in_last.data(), k, source[k].beat == IN[k].beats - 1);
        if (in_valid[k]) put_beat(dut, k, row.data(), source[k].beat); else put_noise(dut, k);
      }
      dut.eval();
      prediction.update(false, in_valid, ready);
      for (int k = 0; k < N_OUT; k++) {
        const bool valid = bit(dut.out_valid.data(), k);
        if (PREDICTED && valid != prediction.out_valid[k]) answer[0] = WRONG_OUT_VALID;
        if (!valid) continue;
        if (!begun || sink[k].item) { answer[0] = UNASKED_RESULT; continue; }
        if (OUT[k].last && bit(dut.out_last.data(), k) != (sink[k].beat == OUT[k].beats - 1)) answer[0] = WRONG_LAST;
        take_beat(dut, k, result.data(), sink[k].beat);
        sink[k].step(OUT[k]);
        shown = true;
        left -= sink[k].item;
      }
      answer[1] += begun && !shown;
      for (int k = 0; k < N_IN; k++) {
        const bool accepts = READY ? bit(dut.in_ready.data(), k) : prediction.in_ready[k];
        if (PREDICTED && accepts != prediction.in_ready[k]) answer[0] = WRONG_IN_READY;
        if (!in_valid[k] || !accepts) continue;
        if (!begun) { begun = true; answer[1] = 1; }
        source[k].step(IN[k]);
      }
      if (waited > PATIENCE) answer[0] = TIMED_OUT;
      prediction.clock();
      edge();
    }
#else
    for (; answer[1] < LATENCY; answer[1]++) { put_beat(dut, 0, row.data(), 0); dut.eval(); edge(); }
    take_beat(dut, 0, result.data(), 0);
#endif
    fwrite(answer, sizeof answer, 1, stdout); fwrite(result.data(), 4, OUT_ROW, stdout);
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
    dut.clk = 0;  // at random, too, until it is set
    const int status = serve(dut);
    dut.final();
    return status;
  }
  if (argc < 11) return 2;
  const uint64_t items = strtoull(argv[3], nullptr, 10), max_cycles = strtoull(argv[10], nullptr, 10);
  random_state = strtoull(argv[4], nullptr, 10) * 2 + 1;
  const unsigned valid_percent = atoi(argv[5]), ready_percent = atoi(argv[6]);
  const bool in_turn = atoi(argv[7]);
  const int64_t first_reset = atoll(argv[8]);
  std::vector<uint32_t> input(items * IN_ROW + 1), output(items * OUT_ROW + 1, 0);
  std::vector<uint64_t> accepted_at(items + 1, 0), emitted_at(items + 1, 0), finished_at(items + 1, 0);
  FILE* file = fopen(argv[1], "rb");
  if (!file || fread(input.data(), 4, items * IN_ROW, file) != items * IN_ROW) return 2;
  own_latency.assign(OWN_PACE ? items : 0, LATENCY);
  if (OWN_PACE && fread(own_latency.data(), 8, items, file) != items) return 2;
  fclose(file);

  VerilatedContext context;
  context.commandArgs(argc, argv);
  context.randReset(2);  // registers without an initial value start at random
  context.randSeed((int)(random_state % 1000000 + 1));
  Vdut dut{&context};
  dut.clk = 0;  // at random, too, until it is set
#if VM_TRACE
  Tracer trace;
  const bool tracing = argc > 11 && argv[11][0] != '+';
  if (tracing) { context.traceEverOn(true); dut.trace(&trace, 99); trace.open(argv[11]); }
#define DUMP(time) do { if (tracing) trace.dump(time); } while (0)
#else
#define DUMP(time) do { } while (0)
#endif

  Header header = {FINE, 0, 0, 0, 0};
  uint64_t got = 0, cycle = 0, settle = 0;
  auto fail = [&](Fault fault) {
    if (header.fault == FINE) { header.fault = fault; header.fault_cycle = cycle; header.fault_item = got; }
  };
  auto offer = [&](int k, const Side& side, bool present) {
    if (present) put_beat(dut, k, &input[side.item * IN_ROW], side.beat); else put_noise(dut, k);
  };
  auto take = [&](int k, const Side& side) { take_beat(dut, k, &output[side.item * OUT_ROW], side.beat); };
  FILE* record = nullptr;
  for (int k = 11; k < argc; k++) if (!strncmp(argv[k], "+record=", 8)) record = fopen(argv[k] + 8, "wb");
  auto note = [&](const auto& port) { fwrite(port.data(), sizeof port, 1, record); };
  auto edge = [&] {
    DUMP(2 * cycle);
    if (record) {
#if STROBES
      const uint32_t rst = dut.rst;
      fwrite(&rst, sizeof rst, 1, record);
#endif
      note(dut.in_valid); note(dut.in_last); note(dut.data_in); note(dut.out_ready);
      note(dut.out_valid); note(dut.out_last); note(dut.in_ready); note(dut.data_out);
    }
    dut.clk = 1; dut.eval(); DUMP(2 * cycle + 1);
    dut.clk = 0; cycle++;
  };

  Side source[N_IN], sink[N_OUT];
#if STROBES
  Prediction prediction;
  std::vector<uint32_t> held(dut.data_out.data(), dut.data_out.data() + OUT_BUS);
  bool in_valid[N_IN], ready[N_OUT], was_last[N_OUT] = {}, offered[N_OUT];
  const uint64_t reset_cycles = 2;
  int64_t reset_at = first_reset, resets = first_reset < 0 ? 0 : atoll(argv[9]);
  uint64_t seen[N_OUT] = {};  // results that had come before a reset
  while (header.fault == FINE && (got < items || settle++ < SETTLE)) {
    if (cycle >= max_cycles) { fail(TIMED_OUT); break; }
    if (resets > 0 && cycle >= (uint64_t)reset_at + reset_cycles && --resets > 0)
      reset_at = cycle + 1 + next_random() % (2 * first_reset);
    const bool late_reset = resets > 0 && cycle >= (uint64_t)reset_at && cycle < (uint64_t)reset_at + reset_cycles;
    const bool rst = cycle < reset_cycles || late_reset;
    if (late_reset) {  // everything starts over
      got = settle = 0;
      for (int k = 0; k < N_OUT; k++) if (sink[k].item > seen[k]) seen[k] = sink[k].item;
      for (Side& side : source) side = Side();
      for (Side& side : sink) side = Side();
    }
    dut.rst = rst;
    for (int k = 0; k < N_IN; k++) {
      Side& side = source[k];
      const bool turn = !in_turn || k == 0 || source[k - 1].item > side.item;
      side.busy = side.item < items && (side.busy || (turn && chance(valid_percent)));
      in_valid[k] = side.busy;
    }
    for (int k = 0; k < N_OUT; k++) {
      const bool turn = !in_turn || k == 0 || sink[k - 1].item > sink[k].item;
      ready[k] = !READY || (turn && chance(ready_percent));
    }
    prediction.update(rst, in_valid, ready);
    for (int k = 0; k < N_IN; k++) {
      const bool present = in_valid[k] && (READY || prediction.in_ready[k]);  // what comes too early may be anything
      set_bit(dut.in_valid.data(), k, in_valid[k]);
      set_bit(dut.in_last.data(), k, present ? source[k].beat == IN[k].beats - 1 : next_random() >> 60 & 1);
      offer(k, source[k], present);
    }
#if READY
    if (ready_percent < 100) {  // the offer must not depend on the answer
      for (int k = 0; k < N_OUT; k++) set_bit(dut.out_ready.data(), k, !ready[k]);
      dut.eval();
      for (int k = 0; k < N_OUT; k++) offered[k] = bit(dut.out_valid.data(), k);
    }
    for (int k = 0; k < N_OUT; k++) set_bit(dut.out_ready.data(), k, ready[k]);
    dut.eval();
    for (int k = 0; k < N_OUT && ready_percent < 100; k++)
      if (offered[k] != bit(dut.out_valid.data(), k)) fail(VALID_NEEDS_READY);
#else
    dut.eval();
#endif
    uint64_t complete = items;
    for (int k = 0; k < N_IN; k++) {
      const uint64_t begun = source[k].item + (PREDICTED ? 0 : source[k].beat > 0);
      if (begun < complete) complete = begun;
      if (PREDICTED && READY && cycle > 0 && bit(dut.in_ready.data(), k) != prediction.in_ready[k]) fail(WRONG_IN_READY);
    }
    uint64_t least = items;
    for (int k = 0; k < N_OUT; k++) {
      Side& side = sink[k];
      const bool valid = bit(dut.out_valid.data(), k), last = !OUT[k].last || bit(dut.out_last.data(), k);
      const uint32_t *bus = dut.data_out.data() + OUT[k].bus, *kept = &held[OUT[k].bus];
      if (PREDICTED && cycle > 0 && valid != prediction.out_valid[k]) fail(WRONG_OUT_VALID);
      if (side.busy && (!valid || last != was_last[k] || memcmp(kept, bus, 4 * OUT[k].words))) fail(DATA_NOT_HELD);
      side.busy = valid && !ready[k] && !rst;
      if (side.busy) { memcpy(&held[OUT[k].bus], bus, 4 * OUT[k].words); was_last[k] = last; }
      if (valid && ready[k] && !rst) {
        if (side.item >= complete) { fail(UNASKED_RESULT); break; }
        if (OUT[k].last && last != (side.beat == OUT[k].beats - 1)) fail(WRONG_LAST);
        const uint32_t* before = &output[side.item * OUT_ROW] + OUT[k].row + side.beat * OUT[k].words;
        if (side.item < seen[k] && memcmp(before, bus, 4 * OUT[k].words)) fail(NOT_RESET);
        take(k, side);
        if (!emitted_at[side.item]) emitted_at[side.item] = cycle;
        finished_at[side.item] = cycle;
        side.step(OUT[k]);
      }
      if (side.item < least) least = side.item;
    }
    got = least;
    for (int k = 0; k < N_IN; k++) {
      const bool accepts = READY ? bit(dut.in_ready.data(), k) : prediction.in_ready[k];
      if (!in_valid[k] || !accepts) continue;
      if (!source[k].beat && (!accepted_at[source[k].item] || cycle < accepted_at[source[k].item]))
        accepted_at[source[k].item] = cycle;
      source[k].step(IN[k]);
    }
    if (late_reset) { accepted_at.assign(items + 1, 0); emitted_at.assign(items + 1, 0); }
    prediction.clock();
    edge();
  }
#else
  // An item in every cycle from power-up, its result LATENCY cycles after it.
  while (got < items) {
    const bool due = source[0].item < items;
    offer(0, source[0], due);
    dut.eval();
    if (cycle >= LATENCY) {
      take(0, sink[0]);
      finished_at[got] = emitted_at[got] = cycle;
      sink[0].item = ++got;
    }
    if (due) accepted_at[source[0].item++] = cycle;
    edge();
  }
#endif
  dut.eval();
  DUMP(2 * cycle);
  dut.final();
  if (record && fclose(record)) return 2;
#if VM_TRACE
  if (tracing) trace.close();
#endif
  header.cycles = cycle; header.results = got;
  file = fopen(argv[2], "wb");
  if (!file) return 2;
  fwrite(&header, sizeof header, 1, file);
  fwrite(output.data(), 4, items * OUT_ROW, file);
  fwrite(accepted_at.data(), 8, items, file);
  fwrite(emitted_at.data(), 8, items, file);
  fwrite(finished_at.data(), 8, items, file);
  return fclose(file) ? 2 : 0;
}
