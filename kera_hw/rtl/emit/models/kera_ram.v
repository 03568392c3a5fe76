// One read and one write port to ENTRIES words: q follows its address by LATENCY enabled clocks, at once with 0.
// Writes happen where write is high. While clear is high the word of clear_address becomes clear_data. A word that
// is read as it is written is not defined, so that any block RAM will do.
module kera_ram #(
  parameter WIDTH = 8,
  parameter ENTRIES = 16,
  parameter ADDRESS = 4,
  parameter LATENCY = 1,
  parameter UNIFORM = 1,
  parameter [WIDTH-1:0] FILL = 0,
  parameter [(UNIFORM ? 1 : ENTRIES)*WIDTH-1:0] INITIAL = 0
) (
  input  wire clk,
  input  wire ce,
  input  wire clear,
  input  wire [ADDRESS-1:0] clear_address,
  input  wire [WIDTH-1:0] clear_data,
  input  wire write,
  input  wire [ADDRESS-1:0] write_address,
  input  wire [WIDTH-1:0] write_data,
  input  wire [ADDRESS-1:0] read_address,
  output wire [WIDTH-1:0] q
);
  wire writes = write | clear;
  wire [ADDRESS-1:0] address = clear ? clear_address : write_address;
  wire [WIDTH-1:0] data = clear ? clear_data : write_data;
  integer k;
  generate
    if (LATENCY == 0) begin : direct
      (* ram_style = "distributed" *) reg [WIDTH-1:0] words [0:ENTRIES-1];
      initial for (k = 0; k < ENTRIES; k = k + 1) words[k] = UNIFORM ? FILL : INITIAL[(UNIFORM ? 0 : k)*WIDTH +: WIDTH];
      always @(posedge clk) if (writes) words[address] <= data;
      assign q = words[read_address];
    end else begin : block
      (* ram_style = "block" *) reg [WIDTH-1:0] words [0:ENTRIES-1];
      initial for (k = 0; k < ENTRIES; k = k + 1) words[k] = UNIFORM ? FILL : INITIAL[(UNIFORM ? 0 : k)*WIDTH +: WIDTH];
      reg [WIDTH-1:0] word;
      always @(posedge clk) if (writes) words[address] <= data;
`ifdef SYNTHESIS
      always @(posedge clk) if (ce) word <= writes && address == read_address ? {WIDTH{1'bx}} : words[read_address];
`else
      always @(posedge clk) if (ce) word <= writes && address == read_address ? ~words[read_address] : words[read_address];
`endif
      if (LATENCY == 1) begin : soon
        assign q = word;
      end else begin : later
        reg [(LATENCY-1)*WIDTH-1:0] shown;
        if (LATENCY == 2) begin : one
          always @(posedge clk) if (ce) shown <= word;
        end else begin : several
          always @(posedge clk) if (ce) shown <= {shown[(LATENCY-2)*WIDTH-1:0], word};
        end
        assign q = shown[(LATENCY-2)*WIDTH +: WIDTH];
      end
    end
  endgenerate
endmodule
