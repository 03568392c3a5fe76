// A 32-bit Gray code as a binary number: every bit is the parity of those above.
module gray32 (
  input  wire        clk, rst, in_valid,
  output wire        in_ready,
  input  wire [31:0] in_g,
  output reg         out_valid,
  input  wire        out_ready,
  output reg  [31:0] out_data
);
  wire advance = !out_valid || out_ready;
  assign in_ready = advance && !rst;

  integer i;
  always @(posedge clk)
    if (rst)
      out_valid <= 0;
    else if (advance) begin
      out_valid <= in_valid;
      for (i = 0; i < 32; i = i + 1)
        out_data[i] <= ^(in_g >> i);
    end
endmodule
