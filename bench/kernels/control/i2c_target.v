// Bit engine of an I2C target: start, stop, eight bits, acknowledge for one address.
module i2c_target (
  input  wire       clk, rst, in_valid,
  output wire       in_ready,
  input  wire       in_scl, in_sda,
  output reg        out_valid,
  input  wire       out_ready,
  output wire [9:0] out_data
);
  localparam [1:0] WAIT = 0, BITS = 1, ACK = 2, SKIP = 3;
  wire advance = !out_valid || out_ready;
  assign in_ready = advance && !rst;

  reg [1:0] phase;
  reg [2:0] count;
  reg [7:0] shift;
  reg       scl1, sda1, first, pull, got;
  assign out_data = {shift, got, pull};
  wire start = in_scl && scl1 && sda1 && !in_sda;
  wire stop = in_scl && scl1 && !sda1 && in_sda;

  always @(posedge clk)
    if (rst) begin
      out_valid <= 0;
      scl1 <= 1;
      sda1 <= 1;
      phase <= WAIT;
      count <= 0;
      shift <= 0;
      first <= 1;
      pull <= 0;
    end else if (advance) begin
      out_valid <= in_valid;
      if (in_valid) begin
        scl1 <= in_scl;
        sda1 <= in_sda;
        got <= 0;
        if (start) begin
          phase <= BITS;
          count <= 0;
          first <= 1;
          pull <= 0;
        end else if (stop) begin
          phase <= WAIT;
          pull <= 0;
        end else if (phase == BITS) begin
          if (in_scl && !scl1) begin
            shift <= {shift[6:0], in_sda};
            count <= count + 1;
            if (count == 7) phase <= ACK;
          end
        end else if (phase == ACK && !in_scl && scl1) begin
          if (pull) begin
            pull <= 0;
            phase <= BITS;
            got <= !first;
            first <= 0;
          end else if (first && shift[7:1] != 7'h50)
            phase <= SKIP;
          else
            pull <= 1;
        end
      end
    end
endmodule
