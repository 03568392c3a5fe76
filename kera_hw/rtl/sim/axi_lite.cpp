// Drives the AXI4-Lite port of a design: a list of accesses one after the other, each channel at a pace of its own.
//
// Usage: sim INPUT OUTPUT ACCESSES SEED VALID_PERCENT READY_PERCENT RESET_AT MAX_CYCLES [WAVE] [+fault=N]
// An access is four words: kind, address, data (of DELAY, cycles), strobes. OUTPUT gets a header, then two words for each access: what
// was read, or the cycle at which a write was taken or the interrupt came; and the response.
#include "Vdut.h"
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
#include <vector>

enum Kind : uint32_t { WRITE = 0, READ = 1, AWAIT = 2, DELAY = 3 };
// Numbers of the faults; the Python side has the sentences.
enum Fault : uint64_t { FINE = 0, NOT_HELD = 1, UNASKED = 2, TIMED_OUT = 3, READY_IN_RESET = 4 };

struct Header { uint64_t fault, cycle, access; };
struct Access { uint32_t kind, address, data, strobes; };

static uint64_t random_state;
static uint64_t next_random() {
  random_state ^= random_state >> 12; random_state ^= random_state << 25; random_state ^= random_state >> 27;
  return random_state * 0x2545F4914F6CDD1DULL;
}
static bool chance(unsigned percent) { return percent >= 100 || (next_random() >> 32) % 100 < percent; }

// What an access has still to do, and what the design offers.
struct State {
  bool send_address = false, send_data = false, await = false;  // still to be sent, and to be answered
  bool address_valid = false, data_valid = false;               // offered
  bool b_held = false, r_held = false;
  uint32_t b_resp = 0, r_resp = 0, r_data = 0;
};

int main(int argc, char** argv) {
  if (argc < 9) return 2;
  const uint64_t count = strtoull(argv[3], nullptr, 10), max_cycles = strtoull(argv[8], nullptr, 10);
  random_state = strtoull(argv[4], nullptr, 10) * 2 + 1;
  const unsigned valid_percent = atoi(argv[5]), ready_percent = atoi(argv[6]);
  const int64_t reset_at = atoll(argv[7]);
  std::vector<Access> accesses(count + 1);
  std::vector<uint32_t> output(2 * count + 1, 0);
  FILE* file = fopen(argv[1], "rb");
  if (!file || fread(accesses.data(), sizeof(Access), count, file) != count) return 2;
  fclose(file);

  VerilatedContext context;
  context.commandArgs(argc, argv);
  context.randReset(2);
  context.randSeed((int)(random_state % 1000000 + 1));
  Vdut dut{&context};
#if VM_TRACE
  Tracer trace;
  const bool tracing = argc > 9 && argv[9][0] != '+';
  if (tracing) { context.traceEverOn(true); dut.trace(&trace, 99); trace.open(argv[9]); }
#define DUMP(time) do { if (tracing) trace.dump(time); } while (0)
#else
#define DUMP(time) do { } while (0)
#endif
  Header header = {FINE, 0, 0};
  uint64_t cycle = 0, at = 0, since = 0;
  State state;
  bool begun = false;
  auto fail = [&](Fault fault) {
    if (header.fault == FINE) header = {fault, cycle, at};
  };
  while (at < count && header.fault == FINE) {
    if (cycle >= max_cycles) { fail(TIMED_OUT); break; }
    const bool late_reset = reset_at >= 0 && cycle >= (uint64_t)reset_at && cycle < (uint64_t)reset_at + 2;
    const bool reset = cycle < 2 || late_reset;
    if (reset) { at = 0; state = State(); begun = false; }
    const Access& access = accesses[at];
    if (!reset && !begun) {
      begun = true;
      state.send_address = access.kind <= READ;
      state.send_data = access.kind == WRITE;
      state.await = access.kind <= READ;
      since = cycle;
    }
    state.address_valid = state.send_address && (state.address_valid || chance(valid_percent));
    state.data_valid = state.send_data && (state.data_valid || chance(valid_percent));
    const bool writes = access.kind == WRITE, reads = access.kind == READ, ready = chance(ready_percent);
    dut.aresetn = !reset;
    dut.s_axi_awvalid = writes && state.address_valid; dut.s_axi_awaddr = access.address; dut.s_axi_awprot = 0;
    dut.s_axi_arvalid = reads && state.address_valid; dut.s_axi_araddr = access.address; dut.s_axi_arprot = 0;
    dut.s_axi_wvalid = state.data_valid; dut.s_axi_wdata = state.data_valid ? access.data : (uint32_t)next_random();
    dut.s_axi_wstrb = access.strobes;
    dut.s_axi_bready = ready; dut.s_axi_rready = ready;
    dut.eval();
    if (!reset) {
      if (state.b_held && (!dut.s_axi_bvalid || dut.s_axi_bresp != state.b_resp)) fail(NOT_HELD);
      if (state.r_held && (!dut.s_axi_rvalid || dut.s_axi_rresp != state.r_resp || dut.s_axi_rdata != state.r_data))
        fail(NOT_HELD);
      if (dut.s_axi_bvalid && !(writes && state.await && !state.send_address && !state.send_data)) fail(UNASKED);
      if (dut.s_axi_rvalid && !(reads && state.await && !state.send_address)) fail(UNASKED);
      state.b_held = dut.s_axi_bvalid && !ready; state.b_resp = dut.s_axi_bresp;
      state.r_held = dut.s_axi_rvalid && !ready; state.r_resp = dut.s_axi_rresp; state.r_data = dut.s_axi_rdata;
      if (state.address_valid && (writes ? dut.s_axi_awready : dut.s_axi_arready)) {
        state.send_address = false;
        output[2 * at] = cycle;
      }
      if (state.data_valid && dut.s_axi_wready) { state.send_data = false; output[2 * at] = cycle; }
      bool done = false;
      if (dut.s_axi_bvalid && ready) { output[2 * at + 1] = dut.s_axi_bresp; done = true; }
      if (dut.s_axi_rvalid && ready) { output[2 * at] = dut.s_axi_rdata; output[2 * at + 1] = dut.s_axi_rresp; done = true; }
      if (access.kind == DELAY && cycle - since >= access.data) done = true;
      if (access.kind == AWAIT && dut.irq) { output[2 * at] = cycle; done = true; }
      if (done) { at++; state.await = begun = false; state.address_valid = state.data_valid = false; }
    } else if (cycle > 0 && (dut.s_axi_awready || dut.s_axi_wready || dut.s_axi_arready)) {
      fail(READY_IN_RESET);
    }
    DUMP(2 * cycle);
    dut.aclk = 1; dut.eval(); DUMP(2 * cycle + 1);
    dut.aclk = 0; cycle++;
  }
  dut.eval();
  DUMP(2 * cycle);
  dut.final();
#if VM_TRACE
  if (tracing) trace.close();
#endif
  if (header.fault == FINE) header = {FINE, cycle, at};
  file = fopen(argv[2], "wb");
  if (!file) return 2;
  fwrite(&header, sizeof header, 1, file);
  fwrite(output.data(), 4, 2 * count, file);
  return fclose(file) ? 2 : 0;
}
