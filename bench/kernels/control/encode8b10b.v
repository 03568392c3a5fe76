// The 5b/6b and 3b/4b parts of an 8b/10b encoder for data characters, with running disparity.
module encode8b10b (
  input  wire       clk, rst, in_valid,
  output wire       in_ready,
  input  wire [7:0] in_d,
  output reg        out_valid,
  input  wire       out_ready,
  output reg  [9:0] out_data
);
  wire advance = !out_valid || out_ready;
  assign in_ready = advance && !rst;

  reg [5:0] six;
  reg [3:0] four;
  reg       minus;
  always @* case (in_d[4:0])
    0: six = 6'b111001; 1: six = 6'b101110; 2: six = 6'b101101; 3: six = 6'b100011;
    4: six = 6'b101011; 5: six = 6'b100101; 6: six = 6'b100110; 7: six = 6'b000111;
    8: six = 6'b100111; 9: six = 6'b101001; 10: six = 6'b101010; 11: six = 6'b001011;
    12: six = 6'b101100; 13: six = 6'b001101; 14: six = 6'b001110; 15: six = 6'b111010;
    16: six = 6'b110110; 17: six = 6'b110001; 18: six = 6'b110010; 19: six = 6'b010011;
    20: six = 6'b110100; 21: six = 6'b010101; 22: six = 6'b010110; 23: six = 6'b010111;
    24: six = 6'b110011; 25: six = 6'b011001; 26: six = 6'b011010; 27: six = 6'b011011;
    28: six = 6'b011100; 29: six = 6'b011101; 30: six = 6'b011110; default: six = 6'b110101;
  endcase
  always @* case (in_d[7:5])
    0: four = 4'b1101; 1: four = 4'b1001; 2: four = 4'b1010; 3: four = 4'b0011;
    4: four = 4'b1011; 5: four = 4'b0101; 6: four = 4'b0110; default: four = 4'b0111;
  endcase
  wire odd6 = six[0] + six[1] + six[2] + six[3] + six[4] + six[5] != 3'd3;
  wire odd4 = four[0] + four[1] + four[2] + four[3] != 3'd2;
  wire after6 = minus ^ odd6;
  wire flip6 = !minus && (odd6 || in_d[4:0] == 7);
  wire flip4 = !after6 && (odd4 || in_d[7:5] == 3);

  always @(posedge clk)
    if (rst) begin
      out_valid <= 0;
      minus <= 1;
    end else if (advance) begin
      out_valid <= in_valid;
      if (in_valid) begin
        out_data <= {four ^ {4{flip4}}, six ^ {6{flip6}}};
        minus <= after6 ^ odd4;
      end
    end
endmodule
