// Simulation model of the ECP5 carry cell: two 4-input functions and two carry multiplexers.
/* verilator lint_off WIDTH */ // strings of different lengths are compared
module CCU2C #(
  parameter [15:0] INIT0 = 16'h0000,
  parameter [15:0] INIT1 = 16'h0000,
  parameter INJECT1_0 = "YES",
  parameter INJECT1_1 = "YES"
) (
  input  wire CIN,
  input  wire A0, B0, C0, D0, A1, B1, C1, D1,
  output wire S0, S1, COUT
);
  wire propagate_0 = INIT0[{D0, C0, B0, A0}];
  wire propagate_1 = INIT1[{D1, C1, B1, A1}];
  wire generate_0 = (INJECT1_0 == "YES") ? 1'b0 : INIT0[{2'b00, B0, A0}];
  wire generate_1 = (INJECT1_1 == "YES") ? 1'b0 : INIT1[{2'b00, B1, A1}];
  wire carry = propagate_0 ? CIN : generate_0;
  assign S0 = propagate_0 ^ ((INJECT1_0 == "YES") ? 1'b0 : CIN);
  assign S1 = propagate_1 ^ ((INJECT1_1 == "YES") ? 1'b0 : carry);
  assign COUT = propagate_1 ? carry : generate_1;
endmodule
/* verilator lint_on WIDTH */
