// Parses type, length, payload, checksum; sums the payload and tells whether the checksum fits.
module packet (
  input  wire        clk, rst, in_valid,
  output wire        in_ready,
  input  wire [7:0]  in_d,
  output reg         out_valid,
  input  wire        out_ready,
  output wire [13:0] out_data
);
  localparam [1:0] TYPE = 0, LENGTH = 1, PAYLOAD = 2, CHECK = 3;
  wire advance = !out_valid || out_ready;
  assign in_ready = advance && !rst;

  reg [1:0] phase;
  reg [3:0] kind;
  reg [7:0] length, left, sum;
  reg       done, good;
  assign out_data = {length, kind, good, done};

  always @(posedge clk)
    if (rst) begin
      out_valid <= 0;
      phase <= TYPE;
      kind <= 0;
      length <= 0;
      left <= 0;
      sum <= 0;
    end else if (advance) begin
      out_valid <= in_valid;
      if (in_valid) begin
        done <= 0;
        good <= 0;
        case (phase)
          TYPE: if (in_d[7:4] == 4'ha) begin
            kind <= in_d[3:0];
            sum <= in_d;
            phase <= LENGTH;
          end
          LENGTH: begin
            length <= in_d;
            left <= in_d;
            sum <= sum + in_d;
            phase <= in_d == 0 ? CHECK : PAYLOAD;
          end
          PAYLOAD: begin
            sum <= sum + in_d;
            left <= left - 1;
            if (left == 1) phase <= CHECK;
          end
          default: begin
            done <= 1;
            good <= in_d == sum;
            phase <= TYPE;
          end
        endcase
      end
    end
endmodule
