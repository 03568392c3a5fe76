// A carry chain of CCU2C cells, two bits each. In every bit the cell forms P = INIT[{d, c, b, a}], gives P ^ carry as
// the sum and passes on P ? carry : INIT[{b, a}]. FIRST is the lowest bit's INIT (a carry may come in there as data).
module kera_ecp5_add #(
  parameter SLICES = 1,
  parameter [15:0] INIT = 16'h96aa,
  parameter [15:0] FIRST = INIT
) (
  input  wire cin,
  input  wire [2*SLICES-1:0] a,
  input  wire [2*SLICES-1:0] b,
  input  wire [2*SLICES-1:0] c,
  input  wire [2*SLICES-1:0] d,
  output wire [2*SLICES-1:0] s
);
`ifdef SYNTHESIS
  wire [SLICES:0] carry;
  assign carry[0] = cin;
  genvar i;
  generate
    for (i = 0; i < SLICES; i = i + 1) begin : slice
      CCU2C #(
        .INIT0(i == 0 ? FIRST : INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")
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
  wire [N-1:0] m0 = ({N{INIT[0]}} & ~a) | ({N{INIT[1]}} & a);
  wire [N-1:0] m1 = ({N{INIT[2]}} & ~a) | ({N{INIT[3]}} & a);
  wire [N-1:0] m2 = ({N{INIT[4]}} & ~a) | ({N{INIT[5]}} & a);
  wire [N-1:0] m3 = ({N{INIT[6]}} & ~a) | ({N{INIT[7]}} & a);
  wire [N-1:0] m4 = ({N{INIT[8]}} & ~a) | ({N{INIT[9]}} & a);
  wire [N-1:0] m5 = ({N{INIT[10]}} & ~a) | ({N{INIT[11]}} & a);
  wire [N-1:0] m6 = ({N{INIT[12]}} & ~a) | ({N{INIT[13]}} & a);
  wire [N-1:0] m7 = ({N{INIT[14]}} & ~a) | ({N{INIT[15]}} & a);
  wire [N-1:0] low = (~c & ((~b & m0) | (b & m1))) | (c & ((~b & m2) | (b & m3)));
  wire [N-1:0] high = (~c & ((~b & m4) | (b & m5))) | (c & ((~b & m6) | (b & m7)));
  wire [N-1:0] others_p = (~d & low) | (d & high);
  wire [N-1:0] others_g = (~b & m0) | (b & m1);
  wire [N-1:0] p = {others_p[N-1:1], FIRST[{d[0], c[0], b[0], a[0]}]};
  wire [N-1:0] g = {others_g[N-1:1], FIRST[{2'b00, b[0], a[0]}]};
  /* verilator lint_off UNUSEDSIGNAL */
  wire unused = &{1'b0, others_p[0], others_g[0]};
  /* verilator lint_on UNUSEDSIGNAL */
  assign s = (p | g) + (~p & g) + {{(N-1){1'b0}}, cin};
`endif
endmodule
