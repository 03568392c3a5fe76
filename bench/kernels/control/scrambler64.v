// Self-synchronising scrambler x^58 + x^39 + 1, sixty-four bits an item, the lowest first.
module scrambler64 (
  input  wire        clk, rst, in_valid,
  output wire        in_ready,
  input  wire [63:0] in_d,
  output reg         out_valid,
  input  wire        out_ready,
  output reg  [63:0] out_data
);
  wire advance = !out_valid || out_ready;
  assign in_ready = advance && !rst;

  reg [57:0] s, next;
  reg [63:0] scrambled;
  integer i;
  always @* begin
    next = s;
    for (i = 0; i < 64; i = i + 1) begin
      scrambled[i] = in_d[i] ^ next[38] ^ next[57];
      next = {next[56:0], scrambled[i]};
    end
  end

  always @(posedge clk)
    if (rst) begin
      out_valid <= 0;
      s <= {58{1'b1}};
    end else if (advance) begin
      out_valid <= in_valid;
      if (in_valid) begin
        s <= next;
        out_data <= scrambled;
      end
    end
endmodule
