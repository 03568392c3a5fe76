// A table of constants in one block RAM with its address and output registers: q follows address by two enabled
// clocks. Words of WIDTH 36 (512 of them: both ports read, each one half), 18 (1024) or 9 bits (2048), the first
// lowest in DATA.
module kera_ecp5_rom #(
  parameter WIDTH = 36,
  parameter DEPTH_BITS = 9,
  parameter [18431:0] DATA = 18432'd0
) (
  input  wire clk,
  input  wire ce,
  input  wire [DEPTH_BITS-1:0] address,
  output wire [WIDTH-1:0] q
);
`ifdef SYNTHESIS
  // Sixteen 18-bit words of the memory, each in 20 bits of an INITVAL. Its upper half is port B's with WIDTH 36.
  function [319:0] chunk(input integer number);
    integer i, word;
    begin
      chunk = 320'd0;
      for (i = 0; i < 16; i = i + 1) begin
        word = 16 * number + i;
        if (WIDTH == 36) chunk[20*i +: 18] = DATA[36*(word%512) + 18*(word/512) +: 18];
        else chunk[20*i +: 18] = DATA[18*word +: 18];
      end
    end
  endfunction
  localparam PORT = WIDTH == 9 ? 9 : 18;
  wire [13:0] a, b;
  wire [17:0] low, high;
  generate
    if (WIDTH == 36) begin : wide
      assign a = {1'b0, address, 4'b0000};
      assign b = {1'b1, address, 4'b0000};
      assign q = {high, low};
    end else if (WIDTH == 18) begin : half
      assign a = {address, 4'b0000};
      assign b = 14'd0;
      assign q = low;
    end else begin : quarter
      assign a = {address, 3'b000};
      assign b = 14'd0;
      assign q = low[8:0];
    end
  endgenerate
  DP16KD #(
    .DATA_WIDTH_A(PORT), .DATA_WIDTH_B(PORT), .REGMODE_A("OUTREG"), .REGMODE_B("OUTREG"), .RESETMODE("SYNC"),
    .WRITEMODE_A("NORMAL"), .WRITEMODE_B("NORMAL"), .CSDECODE_A("0b000"), .CSDECODE_B("0b000"), .GSR("DISABLED"),
    .INITVAL_00(chunk(0)), .INITVAL_01(chunk(1)), .INITVAL_02(chunk(2)), .INITVAL_03(chunk(3)),
    .INITVAL_04(chunk(4)), .INITVAL_05(chunk(5)), .INITVAL_06(chunk(6)), .INITVAL_07(chunk(7)),
    .INITVAL_08(chunk(8)), .INITVAL_09(chunk(9)), .INITVAL_0A(chunk(10)), .INITVAL_0B(chunk(11)),
    .INITVAL_0C(chunk(12)), .INITVAL_0D(chunk(13)), .INITVAL_0E(chunk(14)), .INITVAL_0F(chunk(15)),
    .INITVAL_10(chunk(16)), .INITVAL_11(chunk(17)), .INITVAL_12(chunk(18)), .INITVAL_13(chunk(19)),
    .INITVAL_14(chunk(20)), .INITVAL_15(chunk(21)), .INITVAL_16(chunk(22)), .INITVAL_17(chunk(23)),
    .INITVAL_18(chunk(24)), .INITVAL_19(chunk(25)), .INITVAL_1A(chunk(26)), .INITVAL_1B(chunk(27)),
    .INITVAL_1C(chunk(28)), .INITVAL_1D(chunk(29)), .INITVAL_1E(chunk(30)), .INITVAL_1F(chunk(31)),
    .INITVAL_20(chunk(32)), .INITVAL_21(chunk(33)), .INITVAL_22(chunk(34)), .INITVAL_23(chunk(35)),
    .INITVAL_24(chunk(36)), .INITVAL_25(chunk(37)), .INITVAL_26(chunk(38)), .INITVAL_27(chunk(39)),
    .INITVAL_28(chunk(40)), .INITVAL_29(chunk(41)), .INITVAL_2A(chunk(42)), .INITVAL_2B(chunk(43)),
    .INITVAL_2C(chunk(44)), .INITVAL_2D(chunk(45)), .INITVAL_2E(chunk(46)), .INITVAL_2F(chunk(47)),
    .INITVAL_30(chunk(48)), .INITVAL_31(chunk(49)), .INITVAL_32(chunk(50)), .INITVAL_33(chunk(51)),
    .INITVAL_34(chunk(52)), .INITVAL_35(chunk(53)), .INITVAL_36(chunk(54)), .INITVAL_37(chunk(55)),
    .INITVAL_38(chunk(56)), .INITVAL_39(chunk(57)), .INITVAL_3A(chunk(58)), .INITVAL_3B(chunk(59)),
    .INITVAL_3C(chunk(60)), .INITVAL_3D(chunk(61)), .INITVAL_3E(chunk(62)), .INITVAL_3F(chunk(63))
  ) ram (
    .CLKA(clk), .CLKB(clk), .CEA(ce), .CEB(ce), .OCEA(ce), .OCEB(ce), .WEA(1'b0), .WEB(1'b0), .RSTA(1'b0), .RSTB(1'b0),
    .CSA0(1'b0), .CSA1(1'b0), .CSA2(1'b0), .CSB0(1'b0), .CSB1(1'b0), .CSB2(1'b0),
    .ADA0(a[0]), .ADA1(a[1]), .ADA2(a[2]), .ADA3(a[3]), .ADA4(a[4]), .ADA5(a[5]), .ADA6(a[6]),
    .ADA7(a[7]), .ADA8(a[8]), .ADA9(a[9]), .ADA10(a[10]), .ADA11(a[11]), .ADA12(a[12]), .ADA13(a[13]),
    .ADB0(b[0]), .ADB1(b[1]), .ADB2(b[2]), .ADB3(b[3]), .ADB4(b[4]), .ADB5(b[5]), .ADB6(b[6]),
    .ADB7(b[7]), .ADB8(b[8]), .ADB9(b[9]), .ADB10(b[10]), .ADB11(b[11]), .ADB12(b[12]), .ADB13(b[13]),
    .DIA0(1'b0), .DIA1(1'b0), .DIA2(1'b0), .DIA3(1'b0), .DIA4(1'b0), .DIA5(1'b0),
    .DIA6(1'b0), .DIA7(1'b0), .DIA8(1'b0), .DIA9(1'b0), .DIA10(1'b0), .DIA11(1'b0),
    .DIA12(1'b0), .DIA13(1'b0), .DIA14(1'b0), .DIA15(1'b0), .DIA16(1'b0), .DIA17(1'b0),
    .DIB0(1'b0), .DIB1(1'b0), .DIB2(1'b0), .DIB3(1'b0), .DIB4(1'b0), .DIB5(1'b0),
    .DIB6(1'b0), .DIB7(1'b0), .DIB8(1'b0), .DIB9(1'b0), .DIB10(1'b0), .DIB11(1'b0),
    .DIB12(1'b0), .DIB13(1'b0), .DIB14(1'b0), .DIB15(1'b0), .DIB16(1'b0), .DIB17(1'b0),
    .DOA0(low[0]), .DOA1(low[1]), .DOA2(low[2]), .DOA3(low[3]), .DOA4(low[4]), .DOA5(low[5]),
    .DOA6(low[6]), .DOA7(low[7]), .DOA8(low[8]), .DOA9(low[9]), .DOA10(low[10]), .DOA11(low[11]),
    .DOA12(low[12]), .DOA13(low[13]), .DOA14(low[14]), .DOA15(low[15]), .DOA16(low[16]), .DOA17(low[17]),
    .DOB0(high[0]), .DOB1(high[1]), .DOB2(high[2]), .DOB3(high[3]), .DOB4(high[4]), .DOB5(high[5]),
    .DOB6(high[6]), .DOB7(high[7]), .DOB8(high[8]), .DOB9(high[9]), .DOB10(high[10]), .DOB11(high[11]),
    .DOB12(high[12]), .DOB13(high[13]), .DOB14(high[14]), .DOB15(high[15]), .DOB16(high[16]), .DOB17(high[17])
  );
`else
  // For simulation: the memory, read into a register, then another.
  reg [WIDTH-1:0] memory [0:(1<<DEPTH_BITS)-1];
  reg [WIDTH-1:0] kept, shown;
  integer k;
  initial for (k = 0; k < (1 << DEPTH_BITS); k = k + 1) memory[k] = DATA[WIDTH*k +: WIDTH];
  always @(posedge clk)
    if (ce) begin
      kept <= memory[address];
      shown <= kept;
    end
  assign q = shown;
`endif
endmodule
