// An 18 x 18 bit multiplier on MULT18X18D, with STAGES (0 to 3) of its own registers: 1 = output,
// 2 = input and output, 3 = input, pipeline and output. `ce` moves them all.
module kera_ecp5_mul #(
  parameter A_SIGNED = 1'b0,
  parameter B_SIGNED = 1'b0,
  parameter STAGES = 0
) (
  input  wire clk,
  input  wire ce,
  input  wire [17:0] a,
  input  wire [17:0] b,
  output wire [35:0] p
);
`ifdef SYNTHESIS
  MULT18X18D #(
    .REG_INPUTA_CLK(STAGES >= 2 ? "CLK0" : "NONE"), .REG_INPUTA_CE("CE0"), .REG_INPUTA_RST("RST0"),
    .REG_INPUTB_CLK(STAGES >= 2 ? "CLK0" : "NONE"), .REG_INPUTB_CE("CE0"), .REG_INPUTB_RST("RST0"),
    .REG_PIPELINE_CLK(STAGES >= 3 ? "CLK0" : "NONE"), .REG_PIPELINE_CE("CE0"), .REG_PIPELINE_RST("RST0"),
    .REG_OUTPUT_CLK(STAGES >= 1 ? "CLK0" : "NONE"), .REG_OUTPUT_CE("CE0"), .REG_OUTPUT_RST("RST0"),
    .RESETMODE("SYNC"), .GSR("DISABLED")
  ) tile (
    .CLK0(clk), .CE0(ce), .RST0(1'b0),
    .SIGNEDA(A_SIGNED), .SIGNEDB(B_SIGNED), .SOURCEA(1'b0), .SOURCEB(1'b0),
    .A0(a[0]), .A1(a[1]), .A2(a[2]), .A3(a[3]), .A4(a[4]), .A5(a[5]), .A6(a[6]), .A7(a[7]), .A8(a[8]),
    .A9(a[9]), .A10(a[10]), .A11(a[11]), .A12(a[12]), .A13(a[13]), .A14(a[14]), .A15(a[15]), .A16(a[16]), .A17(a[17]),
    .B0(b[0]), .B1(b[1]), .B2(b[2]), .B3(b[3]), .B4(b[4]), .B5(b[5]), .B6(b[6]), .B7(b[7]), .B8(b[8]),
    .B9(b[9]), .B10(b[10]), .B11(b[11]), .B12(b[12]), .B13(b[13]), .B14(b[14]), .B15(b[15]), .B16(b[16]), .B17(b[17]),
    .C0(1'b0), .C1(1'b0), .C2(1'b0), .C3(1'b0), .C4(1'b0), .C5(1'b0), .C6(1'b0), .C7(1'b0), .C8(1'b0),
    .C9(1'b0), .C10(1'b0), .C11(1'b0), .C12(1'b0), .C13(1'b0), .C14(1'b0), .C15(1'b0), .C16(1'b0), .C17(1'b0),
    .P0(p[0]), .P1(p[1]), .P2(p[2]), .P3(p[3]), .P4(p[4]), .P5(p[5]), .P6(p[6]), .P7(p[7]), .P8(p[8]),
    .P9(p[9]), .P10(p[10]), .P11(p[11]), .P12(p[12]), .P13(p[13]), .P14(p[14]), .P15(p[15]), .P16(p[16]), .P17(p[17]),
    .P18(p[18]), .P19(p[19]), .P20(p[20]), .P21(p[21]), .P22(p[22]), .P23(p[23]), .P24(p[24]), .P25(p[25]), .P26(p[26]),
    .P27(p[27]), .P28(p[28]), .P29(p[29]), .P30(p[30]), .P31(p[31]), .P32(p[32]), .P33(p[33]), .P34(p[34]), .P35(p[35])
  );
`else
  // For simulation: the product, then all registers.
  wire signed [35:0] a_wide = {{18{A_SIGNED & a[17]}}, a};
  wire signed [35:0] b_wide = {{18{B_SIGNED & b[17]}}, b};
  wire [35:0] product = a_wide * b_wide;
  generate
    if (STAGES == 0) begin : direct
      assign p = product;
      /* verilator lint_off UNUSEDSIGNAL */
      wire unused = &{1'b0, clk, ce};
      /* verilator lint_on UNUSEDSIGNAL */
    end else begin : ranked
      reg [36*STAGES-1:0] kept;
      if (STAGES == 1) begin : one
        always @(posedge clk) if (ce) kept <= product;
      end else begin : several
        always @(posedge clk) if (ce) kept <= {kept[36*STAGES-37:0], product};
      end
      assign p = kept[36*STAGES-1:36*STAGES-36];
    end
  endgenerate
`endif
endmodule
