// ENTRIES words in ECP5's block RAMs, side by side and one behind the other: port A writes, port B reads, address
// and output registers used, so q follows its address by LATENCY = 2 enabled clocks; with 4 there is a register
// before each port, so that all accesses come a clock later, and one behind the words read. While clear is high
// port B writes clear_data to clear_address, so that writes need no choice before them. A word that is read as it
// is written is not defined.
module kera_ecp5_ram #(
  parameter WIDTH = 8,
  parameter ENTRIES = 16,
  parameter ADDRESS = 4,
  parameter LATENCY = 2,
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
  wire clears, writes;
  wire [ADDRESS-1:0] address, target;
  wire [WIDTH-1:0] data, clear_word, read_word;
  generate
    if (LATENCY == 4) begin : far
      reg clear_kept, write_kept;
      reg [ADDRESS-1:0] address_kept, target_kept;
      reg [WIDTH-1:0] data_kept, clear_word_kept;
      always @(posedge clk) begin
        clear_kept <= clear;
        write_kept <= write;
        target_kept <= write_address;
        data_kept <= write_data;
        clear_word_kept <= clear_data;
        if (ce | clear) address_kept <= clear ? clear_address : read_address;
      end
      assign clears = clear_kept;
      assign writes = write_kept;
      assign address = address_kept;
      assign target = target_kept;
      assign data = data_kept;
      assign clear_word = clear_word_kept;
      reg [WIDTH-1:0] word_kept;
      always @(posedge clk) if (ce) word_kept <= read_word;
      assign q = word_kept;
    end else begin : near
      assign clears = clear;
      assign writes = write;
      assign address = clear ? clear_address : read_address;
      assign target = write_address;
      assign data = write_data;
      assign clear_word = clear_data;
      assign q = read_word;
    end
  endgenerate
`ifdef SYNTHESIS
  // The shape of a block: words of 18, 9, 4, 2 or 1 bits, as narrow as makes it deep enough.
  localparam DEPTH = ENTRIES <= 1024 ? 10 : ENTRIES <= 2048 ? 11 : ENTRIES <= 4096 ? 12 : ENTRIES <= 8192 ? 13 : 14;
  localparam PART = DEPTH == 10 ? 18 : DEPTH == 11 ? 9 : DEPTH == 12 ? 4 : DEPTH == 13 ? 2 : 1;
  localparam PARTS = (WIDTH + PART - 1) / PART;
  localparam BANKS = (ENTRIES + (1 << DEPTH) - 1) >> DEPTH;
  localparam BANK_BITS = BANKS > 1 ? ADDRESS - DEPTH : 1;
  // INITVAL number of a block, 320 bits: sixteen 18-bit words in 20 bits each; without parity, eight of each nine.
  function [319:0] chunk(input integer bank, input integer part, input integer number);
    integer row, digit, word, place;
    reg [17:0] line;
    begin
      chunk = 320'd0;
      for (row = 0; row < 16; row = row + 1) begin
        // Equal words make equal lines, and the first stands for all: Yosys takes seconds for those of a block.
        if (row == 0 || !UNIFORM) begin
          line = 18'd0;
          for (digit = 0; digit < 18; digit = digit + 1) begin
            // Which word of the bank, and which bit of the part.
            if (PART >= 9) begin
              word = (16*number + row) * (18/PART) + digit/PART;
              place = digit % PART;
            end else begin
              word = (16*number + row) * (16/PART) + (digit - digit/9)/PART;
              place = (digit - digit/9) % PART;
            end
            word = word + (bank << DEPTH);
            place = place + part*PART;
            if (word < ENTRIES && place < WIDTH && !(PART < 9 && digit % 9 == 8))
              line[digit] = UNIFORM ? FILL[place] : INITIAL[(UNIFORM ? 0 : word*WIDTH) + place];
          end
        end
        chunk[20*row +: 18] = line;
      end
    end
  endfunction
  genvar b, p;
  wire [BANKS*WIDTH-1:0] banks;
  wire [BANK_BITS-1:0] write_bank, read_bank;
  generate
    if (BANKS > 1) begin : many
      assign write_bank = target[ADDRESS-1:DEPTH];
      assign read_bank = address[ADDRESS-1:DEPTH];
      reg [BANK_BITS-1:0] asked, shown;
      always @(posedge clk) if (ce) begin
        asked <= read_bank;
        shown <= asked;
      end
      assign read_word = banks[shown*WIDTH +: WIDTH];
    end else begin : single
      assign write_bank = 1'b0;
      assign read_bank = 1'b0;
      assign read_word = banks;
    end
    for (b = 0; b < BANKS; b = b + 1) begin : bank
      // Within the bank, above what a narrower word's address has more, or which bytes of 18 bits are written.
      wire [DEPTH-1:0] write_row, read_row;
      wire [13:0] to_write = {write_row, PART == 18 ? 4'b0011 : 4'b0000} >> (DEPTH - 10);
      wire [13:0] to_read = {read_row, PART == 18 ? 4'b0011 : 4'b0000} >> (DEPTH - 10);
      if (ADDRESS >= DEPTH) begin : deep
        assign write_row = target[DEPTH-1:0];
        assign read_row = address[DEPTH-1:0];
      end else begin : shallow
        assign write_row = {{DEPTH-ADDRESS{1'b0}}, target};
        assign read_row = {{DEPTH-ADDRESS{1'b0}}, address};
      end
      for (p = 0; p < PARTS; p = p + 1) begin : part
        localparam BITS = WIDTH - p*PART < PART ? WIDTH - p*PART : PART;
        wire [17:0] written, fresh, word;
        assign written = {{18-BITS{1'b0}}, data[p*PART +: BITS]};
        assign fresh = {{18-BITS{1'b0}}, clear_word[p*PART +: BITS]};
        assign banks[b*WIDTH + p*PART +: BITS] = word[BITS-1:0];
        DP16KD #(
          .DATA_WIDTH_A(PART), .DATA_WIDTH_B(PART), .REGMODE_A("NOREG"), .REGMODE_B("OUTREG"), .RESETMODE("SYNC"),
          .WRITEMODE_A("NORMAL"), .WRITEMODE_B("NORMAL"), .CSDECODE_A("0b000"), .CSDECODE_B("0b000"),
          .GSR("DISABLED"),
          .INITVAL_00(chunk(b, p, 0)), .INITVAL_01(chunk(b, p, 1)), .INITVAL_02(chunk(b, p, 2)),
          .INITVAL_03(chunk(b, p, 3)), .INITVAL_04(chunk(b, p, 4)), .INITVAL_05(chunk(b, p, 5)),
          .INITVAL_06(chunk(b, p, 6)), .INITVAL_07(chunk(b, p, 7)), .INITVAL_08(chunk(b, p, 8)),
          .INITVAL_09(chunk(b, p, 9)), .INITVAL_0A(chunk(b, p, 10)), .INITVAL_0B(chunk(b, p, 11)),
          .INITVAL_0C(chunk(b, p, 12)), .INITVAL_0D(chunk(b, p, 13)), .INITVAL_0E(chunk(b, p, 14)),
          .INITVAL_0F(chunk(b, p, 15)), .INITVAL_10(chunk(b, p, 16)), .INITVAL_11(chunk(b, p, 17)),
          .INITVAL_12(chunk(b, p, 18)), .INITVAL_13(chunk(b, p, 19)), .INITVAL_14(chunk(b, p, 20)),
          .INITVAL_15(chunk(b, p, 21)), .INITVAL_16(chunk(b, p, 22)), .INITVAL_17(chunk(b, p, 23)),
          .INITVAL_18(chunk(b, p, 24)), .INITVAL_19(chunk(b, p, 25)), .INITVAL_1A(chunk(b, p, 26)),
          .INITVAL_1B(chunk(b, p, 27)), .INITVAL_1C(chunk(b, p, 28)), .INITVAL_1D(chunk(b, p, 29)),
          .INITVAL_1E(chunk(b, p, 30)), .INITVAL_1F(chunk(b, p, 31)), .INITVAL_20(chunk(b, p, 32)),
          .INITVAL_21(chunk(b, p, 33)), .INITVAL_22(chunk(b, p, 34)), .INITVAL_23(chunk(b, p, 35)),
          .INITVAL_24(chunk(b, p, 36)), .INITVAL_25(chunk(b, p, 37)), .INITVAL_26(chunk(b, p, 38)),
          .INITVAL_27(chunk(b, p, 39)), .INITVAL_28(chunk(b, p, 40)), .INITVAL_29(chunk(b, p, 41)),
          .INITVAL_2A(chunk(b, p, 42)), .INITVAL_2B(chunk(b, p, 43)), .INITVAL_2C(chunk(b, p, 44)),
          .INITVAL_2D(chunk(b, p, 45)), .INITVAL_2E(chunk(b, p, 46)), .INITVAL_2F(chunk(b, p, 47)),
          .INITVAL_30(chunk(b, p, 48)), .INITVAL_31(chunk(b, p, 49)), .INITVAL_32(chunk(b, p, 50)),
          .INITVAL_33(chunk(b, p, 51)), .INITVAL_34(chunk(b, p, 52)), .INITVAL_35(chunk(b, p, 53)),
          .INITVAL_36(chunk(b, p, 54)), .INITVAL_37(chunk(b, p, 55)), .INITVAL_38(chunk(b, p, 56)),
          .INITVAL_39(chunk(b, p, 57)), .INITVAL_3A(chunk(b, p, 58)), .INITVAL_3B(chunk(b, p, 59)),
          .INITVAL_3C(chunk(b, p, 60)), .INITVAL_3D(chunk(b, p, 61)), .INITVAL_3E(chunk(b, p, 62)),
          .INITVAL_3F(chunk(b, p, 63))
        ) ram (
          .CLKA(clk), .CLKB(clk), .CEA(1'b1), .CEB(ce), .OCEA(1'b0), .OCEB(ce),
          .WEA(writes && write_bank == b), .WEB(clears && read_bank == b), .RSTA(1'b0), .RSTB(1'b0),
          .CSA0(1'b0), .CSA1(1'b0), .CSA2(1'b0), .CSB0(1'b0), .CSB1(1'b0), .CSB2(1'b0), .ADA0(to_write[0]),
          .ADA1(to_write[1]), .ADA2(to_write[2]), .ADA3(to_write[3]), .ADA4(to_write[4]), .ADA5(to_write[5]),
          .ADA6(to_write[6]), .ADA7(to_write[7]), .ADA8(to_write[8]), .ADA9(to_write[9]), .ADA10(to_write[10]),
          .ADA11(to_write[11]), .ADA12(to_write[12]), .ADA13(to_write[13]), .ADB0(to_read[0]),
          .ADB1(to_read[1]), .ADB2(to_read[2]), .ADB3(to_read[3]), .ADB4(to_read[4]), .ADB5(to_read[5]),
          .ADB6(to_read[6]), .ADB7(to_read[7]), .ADB8(to_read[8]), .ADB9(to_read[9]), .ADB10(to_read[10]),
          .ADB11(to_read[11]), .ADB12(to_read[12]), .ADB13(to_read[13]), .DIA0(written[0]), .DIA1(written[1]),
          .DIA2(written[2]), .DIA3(written[3]), .DIA4(written[4]), .DIA5(written[5]), .DIA6(written[6]),
          .DIA7(written[7]), .DIA8(written[8]), .DIA9(written[9]), .DIA10(written[10]), .DIA11(written[11]),
          .DIA12(written[12]), .DIA13(written[13]), .DIA14(written[14]), .DIA15(written[15]),
          .DIA16(written[16]), .DIA17(written[17]), .DIB0(fresh[0]), .DIB1(fresh[1]), .DIB2(fresh[2]),
          .DIB3(fresh[3]), .DIB4(fresh[4]), .DIB5(fresh[5]), .DIB6(fresh[6]), .DIB7(fresh[7]), .DIB8(fresh[8]),
          .DIB9(fresh[9]), .DIB10(fresh[10]), .DIB11(fresh[11]), .DIB12(fresh[12]), .DIB13(fresh[13]),
          .DIB14(fresh[14]), .DIB15(fresh[15]), .DIB16(fresh[16]), .DIB17(fresh[17]), .DOB0(word[0]),
          .DOB1(word[1]), .DOB2(word[2]), .DOB3(word[3]), .DOB4(word[4]), .DOB5(word[5]), .DOB6(word[6]),
          .DOB7(word[7]), .DOB8(word[8]), .DOB9(word[9]), .DOB10(word[10]), .DOB11(word[11]), .DOB12(word[12]),
          .DOB13(word[13]), .DOB14(word[14]), .DOB15(word[15]), .DOB16(word[16]), .DOB17(word[17])
        );
      end
    end
  endgenerate
`else
  // For simulation: the words, and two registers behind them.
  reg [WIDTH-1:0] words [0:ENTRIES-1];
  reg [WIDTH-1:0] kept, shown;
  integer k;
  initial for (k = 0; k < ENTRIES; k = k + 1) words[k] = UNIFORM ? FILL : INITIAL[(UNIFORM ? 0 : k)*WIDTH +: WIDTH];
  always @(posedge clk) begin
    if (writes) words[target] <= data;
    if (clears) words[address] <= clear_word;
    if (ce) begin
      kept <= writes && target == address ? ~words[address] : words[address];
      shown <= kept;
    end
  end
  assign read_word = shown;
`endif
endmodule
