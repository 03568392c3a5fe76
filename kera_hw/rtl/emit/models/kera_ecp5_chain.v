// A carry chain of CCU2C cells, two bits each, every bit with a table of its own, lowest first in TABLES. A bit forms
// P = table[{d, c, b, a}], gives P ^ carry as the sum and passes on P ? carry : table[{2'b00, b, a}].
module kera_ecp5_chain #(
  parameter SLICES = 1,
  parameter [32*SLICES-1:0] TABLES = {(2*SLICES){16'h96aa}}
) (
  input  wire cin,
  input  wire [2*SLICES-1:0] a,
  input  wire [2*SLICES-1:0] b,
  input  wire [2*SLICES-1:0] c,
  input  wire [2*SLICES-1:0] d,
  output wire [2*SLICES-1:0] s
);
  genvar i;
`ifdef SYNTHESIS
  wire [SLICES:0] carry;
  assign carry[0] = cin;
  generate
    for (i = 0; i < SLICES; i = i + 1) begin : slice
      CCU2C #(
        .INIT0(TABLES[32*i +: 16]), .INIT1(TABLES[32*i+16 +: 16]), .INJECT1_0("NO"), .INJECT1_1("NO")
      ) bits (
        .CIN(carry[i]),
        .A0(a[2*i]), .B0(b[2*i]), .C0(c[2*i]), .D0(d[2*i]),
        .A1(a[2*i+1]), .B1(b[2*i+1]), .C1(c[2*i+1]), .D1(d[2*i+1]),
        .S0(s[2*i]), .S1(s[2*i+1]), .COUT(carry[i+1])
      );
    end
  endgenerate
`else
  // For simulation the same in whole vectors: with x = P | g and y = ~P & g, where g is the carry that a bit passes on
  // by itself, x + y has exactly the chain's carries and sums.
  localparam N = 2 * SLICES;
  wire [N-1:0] p;
  wire [N-1:0] g;
  generate
    for (i = 0; i < N; i = i + 1) begin : pair
      localparam [15:0] TABLE = TABLES[16*i +: 16];
      assign p[i] = TABLE[{d[i], c[i], b[i], a[i]}];
      assign g[i] = TABLE[{2'b00, b[i], a[i]}];
    end
  endgenerate
  assign s = (p | g) + (~p & g) + {{(N-1){1'b0}}, cin};
`endif
endmodule
