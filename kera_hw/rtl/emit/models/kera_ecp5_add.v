// A carry chain of CCU2C cells, two bits each. In every bit the cell forms P = INIT[{d, c, b, a}], gives P ^ carry as the
// sum and passes on P ? carry : INIT[{b, a}]. FIRST is the function of the lowest bit (where a carry may come in as data).
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
  // Each slice has carry wires of its own: a single vector would look like a loop to a simulator.
  genvar i;
  generate
    for (i = 0; i < SLICES; i = i + 1) begin : slice
      wire carry_in;
      /* verilator lint_off UNUSEDSIGNAL */
      wire carry_out;  // the last one leads nowhere
      /* verilator lint_on UNUSEDSIGNAL */
      if (i == 0) begin : lowest
        assign carry_in = cin;
      end else begin : above
        assign carry_in = slice[i-1].carry_out;
      end
      CCU2C #(
        .INIT0(i == 0 ? FIRST : INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")
      ) bits (
        .CIN(carry_in),
        .A0(a[2*i]), .B0(b[2*i]), .C0(c[2*i]), .D0(d[2*i]),
        .A1(a[2*i+1]), .B1(b[2*i+1]), .C1(c[2*i+1]), .D1(d[2*i+1]),
        .S0(s[2*i]), .S1(s[2*i+1]), .COUT(carry_out)
      );
    end
  endgenerate
endmodule
