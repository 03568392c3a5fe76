// CRC-32 of a byte stream, reflected, one byte an item; `first` starts a new sum.
module crc32 (
  input  wire        clk, rst, in_valid,
  output wire        in_ready,
  input  wire        in_first,
  input  wire [7:0]  in_d,
  output reg         out_valid,
  input  wire        out_ready,
  output wire [31:0] out_data
);
  wire advance = !out_valid || out_ready;
  assign in_ready = advance && !rst;

  reg [31:0] sum, c;
  assign out_data = ~sum;
  integer i;
  always @* begin
    c = (in_first ? 32'hffffffff : sum) ^ in_d;
    for (i = 0; i < 8; i = i + 1)
      c = c[0] ? (c >> 1) ^ 32'hedb88320 : c >> 1;
  end

  always @(posedge clk)
    if (rst) begin
      out_valid <= 0;
      sum <= 32'hffffffff;
    end else if (advance) begin
      out_valid <= in_valid;
      if (in_valid) sum <= c;
    end
endmodule
