// A memory with one write port and READS read ports, each a copy of it: q follows its address by LATENCY enabled
// clocks; in block RAM 4 are with registers before all ports, which delay every access by one, and behind words.
// With FORWARD a read gets what is written until the clock edge with which its word appears: the write's address is
// compared with those of reads on their way, words written in the meantime are handed over, and a register behind
// the choice is the last clock of the LATENCY.
// While clear is high the word of clear_address becomes an initial one: FILL, or that of INITIAL, which comes a
// clock later. BLOCKS chooses ECP5's block RAMs by name.
module kera_memory #(
  parameter WIDTH = 8,
  parameter ENTRIES = 16,
  parameter ADDRESS = 4,
  parameter READS = 1,
  parameter LATENCY = 1,
  parameter FORWARD = 0,
  parameter BLOCKS = 0,
  parameter UNIFORM = 1,
  parameter [WIDTH-1:0] FILL = 0,
  parameter [(UNIFORM ? 1 : ENTRIES)*WIDTH-1:0] INITIAL = 0
) (
  input  wire clk,
  input  wire ce,
  input  wire clear,
  input  wire [ADDRESS-1:0] clear_address,
  input  wire write,
  input  wire [ADDRESS-1:0] write_address,
  input  wire [WIDTH-1:0] write_data,
  input  wire [READS*ADDRESS-1:0] read_address,
  output wire [READS*WIDTH-1:0] q
);
  localparam INSIDE = LATENCY - FORWARD; // clocks in the copies themselves
  wire clears;
  wire [ADDRESS-1:0] cleared;
  wire [WIDTH-1:0] initial_word;
  integer k;
  genvar r, s;
  generate
    if (UNIFORM) begin : one
      assign clears = clear;
      assign cleared = clear_address;
      assign initial_word = FILL;
    end else begin : each
      reg [WIDTH-1:0] table_words [0:ENTRIES-1];
      initial for (k = 0; k < ENTRIES; k = k + 1) table_words[k] = INITIAL[(UNIFORM ? 0 : k)*WIDTH +: WIDTH];
      reg behind;
      initial behind = 1'b0;
      reg [ADDRESS-1:0] address_behind;
      reg [WIDTH-1:0] word_behind;
      always @(posedge clk) begin
        behind <= clear;
        address_behind <= clear_address;
        word_behind <= table_words[clear_address];
      end
      assign clears = behind;
      assign cleared = address_behind;
      assign initial_word = word_behind;
    end

    // Words on their way: number s was written s clock edges ago.
    wire [(INSIDE+1)*WIDTH-1:0] passed;
    assign passed[WIDTH-1:0] = write_data;
    for (s = 1; s <= INSIDE; s = s + 1) begin : pass
      if (FORWARD) begin : on
        reg [WIDTH-1:0] word;
        always @(posedge clk) if (ce) word <= passed[(s-1)*WIDTH +: WIDTH];
        assign passed[s*WIDTH +: WIDTH] = word;
      end else begin : off
        assign passed[s*WIDTH +: WIDTH] = {WIDTH{1'b0}};
      end
    end

    for (r = 0; r < READS; r = r + 1) begin : port
      wire [ADDRESS-1:0] address = read_address[r*ADDRESS +: ADDRESS];
      wire [WIDTH-1:0] stored;
      if (BLOCKS) begin : named
        kera_ecp5_ram #(
          .WIDTH(WIDTH), .ENTRIES(ENTRIES), .ADDRESS(ADDRESS), .LATENCY(INSIDE), .UNIFORM(UNIFORM), .FILL(FILL),
          .INITIAL(INITIAL)
        ) ram (
          .clk(clk), .ce(ce), .clear(clears), .clear_address(cleared), .clear_data(initial_word), .write(write),
          .write_address(write_address), .write_data(write_data), .read_address(address), .q(stored)
        );
      end else begin : inferred
        kera_ram #(
          .WIDTH(WIDTH), .ENTRIES(ENTRIES), .ADDRESS(ADDRESS), .LATENCY(INSIDE), .UNIFORM(UNIFORM), .FILL(FILL),
          .INITIAL(INITIAL)
        ) ram (
          .clk(clk), .ce(ce), .clear(clears), .clear_address(cleared), .clear_data(initial_word), .write(write),
          .write_address(write_address), .write_data(write_data), .read_address(address), .q(stored)
        );
      end
      if (FORWARD) begin : forward
        // Of a read that started s clock edges ago: its address, and whether the words passed since are its own.
        wire [(INSIDE+1)*ADDRESS-1:0] asked;
        wire [(INSIDE ? INSIDE*INSIDE : 1)-1:0] hits;
        if (INSIDE == 0) begin : at_once
          assign hits = 1'b0;
        end
        assign asked[ADDRESS-1:0] = address;
        for (s = 1; s <= INSIDE; s = s + 1) begin : ask
          reg [ADDRESS-1:0] kept;
          always @(posedge clk) if (ce) kept <= asked[(s-1)*ADDRESS +: ADDRESS];
          assign asked[s*ADDRESS +: ADDRESS] = kept;
        end
        for (s = 0; s < INSIDE; s = s + 1) begin : hit
          // Bit n: the word written n edges before this read's next was to its address.
          reg [s:0] own;
          if (s == 0) begin : first
            always @(posedge clk) if (ce) own <= write & write_address == address;
          end else begin : further
            always @(posedge clk)
              if (ce) own <= {hits[(s-1)*INSIDE +: s], write & write_address == asked[s*ADDRESS +: ADDRESS]};
          end
          if (s + 1 == INSIDE) begin : whole
            assign hits[s*INSIDE +: INSIDE] = own;
          end else begin : partly
            assign hits[s*INSIDE +: INSIDE] = {{INSIDE-1-s{1'b0}}, own};
          end
        end
        wire now = write & write_address == asked[INSIDE*ADDRESS +: ADDRESS];
        wire [WIDTH-1:0] latest;
        wire [(INSIDE+1)*WIDTH-1:0] chosen;
        assign chosen[INSIDE*WIDTH +: WIDTH] = stored;
        for (s = INSIDE; s > 0; s = s - 1) begin : choose
          assign chosen[(s-1)*WIDTH +: WIDTH] =
            hits[(INSIDE-1)*INSIDE + s - 1] ? passed[s*WIDTH +: WIDTH] : chosen[s*WIDTH +: WIDTH];
        end
        if (BLOCKS) begin : of_four
          // ECP5 chooses one of four in two LUTs, if it is told to.
          kera_ecp5_mux #(.WIDTH(WIDTH), .LEVELS(2)) mux (
            .choices({stored, passed[2*WIDTH +: WIDTH], passed[WIDTH +: WIDTH], write_data}),
            .select({~(now | hits[INSIDE]), ~now & (hits[INSIDE] | ~hits[INSIDE+1])}), .z(latest)
          );
        end else begin : of_some
          assign latest = now ? write_data : chosen[WIDTH-1:0];
        end
        reg [WIDTH-1:0] shown;
        always @(posedge clk) if (ce) shown <= latest;
        assign q[r*WIDTH +: WIDTH] = shown;
      end else begin : plain
        assign q[r*WIDTH +: WIDTH] = stored;
      end
    end
  endgenerate
endmodule
