// A sequencer of 64 states: the next one and five outputs by the present one, or a jump.
module sequencer (
  input  wire        clk, rst, in_valid,
  output wire        in_ready,
  input  wire        in_jump,
  input  wire [5:0]  in_target,
  output reg         out_valid,
  input  wire        out_ready,
  output reg  [10:0] out_data
);
  wire advance = !out_valid || out_ready;
  assign in_ready = advance && !rst;

  reg [5:0] at, following;
  reg [4:0] outputs;
  always @* case (at)
    0: begin outputs = 0; following = 57; end
    1: begin outputs = 26; following = 59; end
    2: begin outputs = 7; following = 57; end
    3: begin outputs = 8; following = 24; end
    4: begin outputs = 15; following = 23; end
    5: begin outputs = 6; following = 60; end
    6: begin outputs = 0; following = 23; end
    7: begin outputs = 3; following = 12; end
    8: begin outputs = 29; following = 57; end
    9: begin outputs = 31; following = 38; end
    10: begin outputs = 11; following = 18; end
    11: begin outputs = 12; following = 11; end
    12: begin outputs = 28; following = 5; end
    13: begin outputs = 12; following = 50; end
    14: begin outputs = 8; following = 57; end
    15: begin outputs = 26; following = 20; end
    16: begin outputs = 24; following = 1; end
    17: begin outputs = 7; following = 8; end
    18: begin outputs = 25; following = 7; end
    19: begin outputs = 26; following = 4; end
    20: begin outputs = 13; following = 24; end
    21: begin outputs = 0; following = 30; end
    22: begin outputs = 17; following = 3; end
    23: begin outputs = 19; following = 59; end
    24: begin outputs = 1; following = 41; end
    25: begin outputs = 13; following = 56; end
    26: begin outputs = 11; following = 25; end
    27: begin outputs = 25; following = 29; end
    28: begin outputs = 6; following = 37; end
    29: begin outputs = 2; following = 63; end
    30: begin outputs = 9; following = 0; end
    31: begin outputs = 13; following = 10; end
    32: begin outputs = 28; following = 58; end
    33: begin outputs = 16; following = 35; end
    34: begin outputs = 0; following = 52; end
    35: begin outputs = 21; following = 10; end
    36: begin outputs = 18; following = 32; end
    37: begin outputs = 24; following = 40; end
    38: begin outputs = 4; following = 29; end
    39: begin outputs = 4; following = 36; end
    40: begin outputs = 5; following = 3; end
    41: begin outputs = 13; following = 8; end
    42: begin outputs = 15; following = 13; end
    43: begin outputs = 0; following = 51; end
    44: begin outputs = 23; following = 13; end
    45: begin outputs = 23; following = 37; end
    46: begin outputs = 29; following = 49; end
    47: begin outputs = 8; following = 8; end
    48: begin outputs = 30; following = 2; end
    49: begin outputs = 8; following = 0; end
    50: begin outputs = 24; following = 27; end
    51: begin outputs = 11; following = 26; end
    52: begin outputs = 9; following = 6; end
    53: begin outputs = 19; following = 60; end
    54: begin outputs = 14; following = 48; end
    55: begin outputs = 15; following = 50; end
    56: begin outputs = 12; following = 53; end
    57: begin outputs = 10; following = 9; end
    58: begin outputs = 12; following = 25; end
    59: begin outputs = 24; following = 34; end
    60: begin outputs = 30; following = 43; end
    61: begin outputs = 5; following = 11; end
    62: begin outputs = 26; following = 39; end
    default: begin outputs = 3; following = 42; end
  endcase

  always @(posedge clk)
    if (rst) begin
      out_valid <= 0;
      at <= 0;
    end else if (advance) begin
      out_valid <= in_valid;
      if (in_valid) begin
        out_data <= {at, outputs};
        at <= in_jump ? in_target : following;
      end
    end
endmodule
