// Four by four keypad scanner: rotates a column, latches a key pressed for three rounds.
module keypad (
  input  wire       clk, rst, in_valid,
  output wire       in_ready,
  input  wire [3:0] in_rows,
  output reg        out_valid,
  input  wire       out_ready,
  output wire [8:0] out_data
);
  wire advance = !out_valid || out_ready;
  assign in_ready = advance && !rst;

  reg [1:0] column, count;
  reg [3:0] last;
  reg       held, valid;
  wire [1:0] row = in_rows[0] ? 2'd0 : in_rows[1] ? 2'd1 : in_rows[2] ? 2'd2 : 2'd3;
  wire [3:0] code = {column, row};
  assign out_data = {4'd1 << column, last, valid};

  always @(posedge clk)
    if (rst) begin
      out_valid <= 0;
      column <= 0;
      count <= 0;
      last <= 0;
      held <= 0;
    end else if (advance) begin
      out_valid <= in_valid;
      if (in_valid) begin
        valid <= 0;
        column <= column + 1;
        if (|in_rows) begin
          if (code == last) begin
            if (count != 3) count <= count + 1;
            else begin
              valid <= !held;
              held <= 1;
            end
          end else if (!held) begin
            last <= code;
            count <= 0;
          end
        end else if (last[3:2] == column) begin
          held <= 0;
          count <= 0;
        end
      end
    end
endmodule
