// Simulation model of the ECP5 block RAM, as far as we use it: two ports on one clock, of any width; a word of 18
// bits is written a byte for each of the address' two lowest bits. A port that writes shows what it did before.
/* verilator lint_off WIDTH */ // strings of different lengths are compared
/* verilator lint_off UNUSEDPARAM */
/* verilator lint_off UNUSEDSIGNAL */
module DP16KD #(
  parameter DATA_WIDTH_A = 18, parameter DATA_WIDTH_B = 18,
  parameter REGMODE_A = "NOREG", parameter REGMODE_B = "NOREG", parameter RESETMODE = "SYNC",
  parameter WRITEMODE_A = "NORMAL", parameter WRITEMODE_B = "NORMAL",
  parameter CSDECODE_A = "0b000", parameter CSDECODE_B = "0b000", parameter GSR = "ENABLED",
  parameter [319:0] INITVAL_00 = 320'd0,
  parameter [319:0] INITVAL_01 = 320'd0,
  parameter [319:0] INITVAL_02 = 320'd0,
  parameter [319:0] INITVAL_03 = 320'd0,
  parameter [319:0] INITVAL_04 = 320'd0,
  parameter [319:0] INITVAL_05 = 320'd0,
  parameter [319:0] INITVAL_06 = 320'd0,
  parameter [319:0] INITVAL_07 = 320'd0,
  parameter [319:0] INITVAL_08 = 320'd0,
  parameter [319:0] INITVAL_09 = 320'd0,
  parameter [319:0] INITVAL_0A = 320'd0,
  parameter [319:0] INITVAL_0B = 320'd0,
  parameter [319:0] INITVAL_0C = 320'd0,
  parameter [319:0] INITVAL_0D = 320'd0,
  parameter [319:0] INITVAL_0E = 320'd0,
  parameter [319:0] INITVAL_0F = 320'd0,
  parameter [319:0] INITVAL_10 = 320'd0,
  parameter [319:0] INITVAL_11 = 320'd0,
  parameter [319:0] INITVAL_12 = 320'd0,
  parameter [319:0] INITVAL_13 = 320'd0,
  parameter [319:0] INITVAL_14 = 320'd0,
  parameter [319:0] INITVAL_15 = 320'd0,
  parameter [319:0] INITVAL_16 = 320'd0,
  parameter [319:0] INITVAL_17 = 320'd0,
  parameter [319:0] INITVAL_18 = 320'd0,
  parameter [319:0] INITVAL_19 = 320'd0,
  parameter [319:0] INITVAL_1A = 320'd0,
  parameter [319:0] INITVAL_1B = 320'd0,
  parameter [319:0] INITVAL_1C = 320'd0,
  parameter [319:0] INITVAL_1D = 320'd0,
  parameter [319:0] INITVAL_1E = 320'd0,
  parameter [319:0] INITVAL_1F = 320'd0,
  parameter [319:0] INITVAL_20 = 320'd0,
  parameter [319:0] INITVAL_21 = 320'd0,
  parameter [319:0] INITVAL_22 = 320'd0,
  parameter [319:0] INITVAL_23 = 320'd0,
  parameter [319:0] INITVAL_24 = 320'd0,
  parameter [319:0] INITVAL_25 = 320'd0,
  parameter [319:0] INITVAL_26 = 320'd0,
  parameter [319:0] INITVAL_27 = 320'd0,
  parameter [319:0] INITVAL_28 = 320'd0,
  parameter [319:0] INITVAL_29 = 320'd0,
  parameter [319:0] INITVAL_2A = 320'd0,
  parameter [319:0] INITVAL_2B = 320'd0,
  parameter [319:0] INITVAL_2C = 320'd0,
  parameter [319:0] INITVAL_2D = 320'd0,
  parameter [319:0] INITVAL_2E = 320'd0,
  parameter [319:0] INITVAL_2F = 320'd0,
  parameter [319:0] INITVAL_30 = 320'd0,
  parameter [319:0] INITVAL_31 = 320'd0,
  parameter [319:0] INITVAL_32 = 320'd0,
  parameter [319:0] INITVAL_33 = 320'd0,
  parameter [319:0] INITVAL_34 = 320'd0,
  parameter [319:0] INITVAL_35 = 320'd0,
  parameter [319:0] INITVAL_36 = 320'd0,
  parameter [319:0] INITVAL_37 = 320'd0,
  parameter [319:0] INITVAL_38 = 320'd0,
  parameter [319:0] INITVAL_39 = 320'd0,
  parameter [319:0] INITVAL_3A = 320'd0,
  parameter [319:0] INITVAL_3B = 320'd0,
  parameter [319:0] INITVAL_3C = 320'd0,
  parameter [319:0] INITVAL_3D = 320'd0,
  parameter [319:0] INITVAL_3E = 320'd0,
  parameter [319:0] INITVAL_3F = 320'd0
) (
  input  wire CLKA, CLKB, CEA, CEB, OCEA, OCEB, WEA, WEB, RSTA, RSTB,
  input  wire CSA0, CSA1, CSA2, CSB0, CSB1, CSB2,
  input  wire ADA0, ADA1, ADA2, ADA3, ADA4, ADA5, ADA6, ADA7, ADA8, ADA9, ADA10, ADA11, ADA12, ADA13,
  input  wire ADB0, ADB1, ADB2, ADB3, ADB4, ADB5, ADB6, ADB7, ADB8, ADB9, ADB10, ADB11, ADB12, ADB13,
  input  wire DIA0, DIA1, DIA2, DIA3, DIA4, DIA5, DIA6, DIA7, DIA8, DIA9, DIA10, DIA11, DIA12, DIA13, DIA14, DIA15, DIA16, DIA17,
  input  wire DIB0, DIB1, DIB2, DIB3, DIB4, DIB5, DIB6, DIB7, DIB8, DIB9, DIB10, DIB11, DIB12, DIB13, DIB14, DIB15, DIB16, DIB17,
  output wire DOA0, DOA1, DOA2, DOA3, DOA4, DOA5, DOA6, DOA7, DOA8, DOA9, DOA10, DOA11, DOA12, DOA13, DOA14, DOA15, DOA16, DOA17,
  output wire DOB0, DOB1, DOB2, DOB3, DOB4, DOB5, DOB6, DOB7, DOB8, DOB9, DOB10, DOB11, DOB12, DOB13, DOB14, DOB15, DOB16, DOB17
);
  localparam [20479:0] ALL = {INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B, INITVAL_3A, INITVAL_39, INITVAL_38, INITVAL_37, INITVAL_36, INITVAL_35, INITVAL_34, INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30, INITVAL_2F, INITVAL_2E, INITVAL_2D, INITVAL_2C, INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28, INITVAL_27, INITVAL_26, INITVAL_25, INITVAL_24, INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20, INITVAL_1F, INITVAL_1E, INITVAL_1D, INITVAL_1C, INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18, INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14, INITVAL_13, INITVAL_12, INITVAL_11, INITVAL_10, INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A, INITVAL_09, INITVAL_08, INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03, INITVAL_02, INITVAL_01, INITVAL_00};
  wire [13:0] address_a = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
  wire [13:0] address_b = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
  reg [17:0] memory [0:1023];
  integer k;
  initial for (k = 0; k < 1024; k = k + 1) memory[k] = ALL[20*k +: 18];
  wire [17:0] given_a = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
  wire [17:0] word_a = memory[address_a[13:4]];
  wire [4:0] from_a = DATA_WIDTH_A == 18 ? 5'd0 : {1'b0, address_a[3], 3'b000} + {4'd0, address_a[3]} +
    (DATA_WIDTH_A == 9 ? 5'd0 : DATA_WIDTH_A == 4 ? {2'd0, address_a[2], 2'd0} :
     DATA_WIDTH_A == 2 ? {2'd0, address_a[2:1], 1'b0} : {2'd0, address_a[2:0]});
  wire [17:0] all_a = 18'h3ffff >> (18 - DATA_WIDTH_A);
  wire [17:0] taken_a = DATA_WIDTH_A == 18 ? {{9{address_a[1]}}, {9{address_a[0]}}} : all_a << from_a;
  reg [17:0] kept_a, shown_a;
  always @(posedge CLKA) begin
    if (CEA & WEA) memory[address_a[13:4]] <= (word_a & ~taken_a) | ((given_a << from_a) & taken_a);
    if (CEA & ~WEA) kept_a <= (word_a >> from_a) & all_a;
    if (OCEA) shown_a <= kept_a;
  end
  assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} = REGMODE_A == "OUTREG" ? shown_a : kept_a;
  wire [17:0] given_b = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0};
  wire [17:0] word_b = memory[address_b[13:4]];
  wire [4:0] from_b = DATA_WIDTH_B == 18 ? 5'd0 : {1'b0, address_b[3], 3'b000} + {4'd0, address_b[3]} +
    (DATA_WIDTH_B == 9 ? 5'd0 : DATA_WIDTH_B == 4 ? {2'd0, address_b[2], 2'd0} :
     DATA_WIDTH_B == 2 ? {2'd0, address_b[2:1], 1'b0} : {2'd0, address_b[2:0]});
  wire [17:0] all_b = 18'h3ffff >> (18 - DATA_WIDTH_B);
  wire [17:0] taken_b = DATA_WIDTH_B == 18 ? {{9{address_b[1]}}, {9{address_b[0]}}} : all_b << from_b;
  reg [17:0] kept_b, shown_b;
  always @(posedge CLKB) begin
    if (CEB & WEB) memory[address_b[13:4]] <= (word_b & ~taken_b) | ((given_b << from_b) & taken_b);
    if (CEB & ~WEB) kept_b <= (word_b >> from_b) & all_b;
    if (OCEB) shown_b <= kept_b;
  end
  assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} = REGMODE_B == "OUTREG" ? shown_b : kept_b;
endmodule
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on UNUSEDPARAM */
/* verilator lint_on WIDTH */
