// The highest of sixteen requests.
module priority16 (
  input  wire        clk, rst, in_valid,
  output wire        in_ready,
  input  wire [15:0] in_r,
  output reg         out_valid,
  input  wire        out_ready,
  output reg  [4:0]  out_data
);
  wire advance = !out_valid || out_ready;
  assign in_ready = advance && !rst;

  reg [3:0] index;
  integer i;
  always @* begin
    index = 0;
    for (i = 0; i < 16; i = i + 1)
      if (in_r[i]) index = i;
  end

  always @(posedge clk)
    if (rst)
      out_valid <= 0;
    else if (advance) begin
      out_valid <= in_valid;
      out_data <= {|in_r, index};
    end
endmodule
