// Simulation model of the ECP5 multiplier tile, as far as we use it: parallel operands, one clock, no cascade.
/* verilator lint_off WIDTH */ // strings of different lengths are compared
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
module MULT18X18D #(
  parameter REG_INPUTA_CLK = "NONE", parameter REG_INPUTA_CE = "CE0", parameter REG_INPUTA_RST = "RST0",
  parameter REG_INPUTB_CLK = "NONE", parameter REG_INPUTB_CE = "CE0", parameter REG_INPUTB_RST = "RST0",
  parameter REG_PIPELINE_CLK = "NONE", parameter REG_PIPELINE_CE = "CE0", parameter REG_PIPELINE_RST = "RST0",
  parameter REG_OUTPUT_CLK = "NONE", parameter REG_OUTPUT_CE = "CE0", parameter REG_OUTPUT_RST = "RST0",
  parameter RESETMODE = "SYNC", parameter GSR = "ENABLED"
) (
  input  wire CLK0, CE0, RST0,
  input  wire SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
  input  wire A0, A1, A2, A3, A4, A5, A6, A7, A8,
  input  wire A9, A10, A11, A12, A13, A14, A15, A16, A17,
  input  wire B0, B1, B2, B3, B4, B5, B6, B7, B8,
  input  wire B9, B10, B11, B12, B13, B14, B15, B16, B17,
  input  wire C0, C1, C2, C3, C4, C5, C6, C7, C8,
  input  wire C9, C10, C11, C12, C13, C14, C15, C16, C17,
  output wire P0, P1, P2, P3, P4, P5, P6, P7, P8,
  output wire P9, P10, P11, P12, P13, P14, P15, P16, P17,
  output wire P18, P19, P20, P21, P22, P23, P24, P25, P26,
  output wire P27, P28, P29, P30, P31, P32, P33, P34, P35
);
  wire [17:0] a_now = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
  wire [17:0] b_now = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
  reg [17:0] a_kept, b_kept;
  wire [17:0] a = (REG_INPUTA_CLK == "NONE") ? a_now : a_kept;
  wire [17:0] b = (REG_INPUTB_CLK == "NONE") ? b_now : b_kept;
  wire signed [35:0] a_wide = {{18{SIGNEDA & a[17]}}, a};
  wire signed [35:0] b_wide = {{18{SIGNEDB & b[17]}}, b};
  wire [35:0] p_now = a_wide * b_wide;
  reg [35:0] p_piped, p_kept;
  wire [35:0] p_next = (REG_PIPELINE_CLK == "NONE") ? p_now : p_piped;
  wire [35:0] p = (REG_OUTPUT_CLK == "NONE") ? p_next : p_kept;
  always @(posedge CLK0)
    if (RST0) begin
      a_kept <= 18'd0;
      b_kept <= 18'd0;
      p_piped <= 36'd0;
      p_kept <= 36'd0;
    end else if (CE0) begin
      a_kept <= a_now;
      b_kept <= b_now;
      p_piped <= p_now;
      p_kept <= p_next;
    end
  assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} = p;
endmodule
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
/* verilator lint_on WIDTH */
