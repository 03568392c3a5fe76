// A delay line in ECP5's LUT RAM: q is what d was a number of enabled clocks ago, one more than the steps of the
// counter. The counter shifts in bit s of FOLLOWING after state s; a word is read just before the next takes its
// place.
module kera_delay #(
  parameter WIDTH = 4,
  parameter BITS = 2,
  parameter [BITS-1:0] START = 0,
  parameter [(1<<BITS)-1:0] FOLLOWING = 0
) (
  input  wire clk,
  input  wire ce,
  input  wire [WIDTH-1:0] d,
  output reg  [WIDTH-1:0] q
);
  reg [BITS-1:0] place;
  initial place = START;
  wire [(1<<BITS)-1:0] following = FOLLOWING;
  localparam [BITS-1:0] LOWEST = 1;
  always @(posedge clk) if (ce) place <= place << 1 | {BITS{following[place]}} & LOWEST;
  wire [WIDTH-1:0] word;
  always @(posedge clk) if (ce) q <= word;
`ifdef SYNTHESIS
  localparam MEMORIES = (WIDTH + 3) / 4;
  wire [4*MEMORIES-1:0] in, out;
  wire [3:0] address;
  assign in = d;
  assign address = place;
  assign word = out[WIDTH-1:0];
  genvar k;
  generate
    for (k = 0; k < MEMORIES; k = k + 1) begin : four
      TRELLIS_DPR16X4 #(.WCKMUX("WCK"), .WREMUX("WRE")) words (
        .DI(in[4*k +: 4]), .WAD(address), .WRE(ce), .WCK(clk), .RAD(address), .DO(out[4*k +: 4])
      );
    end
  endgenerate
`else
  reg [WIDTH-1:0] words [0:(1<<BITS)-1];
  always @(posedge clk) if (ce) words[place] <= d;
  assign word = words[place];
`endif
endmodule
