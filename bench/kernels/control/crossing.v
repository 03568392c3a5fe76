// A crossing: main road, side road with a sensor, pedestrians with a button; yellow and all-red in between.
module crossing (
  input  wire       clk, rst, in_valid,
  output wire       in_ready,
  input  wire       in_tick, in_car, in_button,
  output reg        out_valid,
  input  wire       out_ready,
  output wire [4:0] out_data
);
  localparam [2:0] MAIN = 0, MAIN_YELLOW = 1, CLEAR_A = 2, SIDE = 3, SIDE_YELLOW = 4, CLEAR_B = 5, WALK = 6;
  wire advance = !out_valid || out_ready;
  assign in_ready = advance && !rst;

  reg [2:0] phase;
  reg [5:0] timer;
  reg       asked;
  wire      wanted = asked || in_button;
  assign out_data = {
    phase == WALK,
    phase == SIDE ? 2'd2 : phase == SIDE_YELLOW ? 2'd1 : 2'd0,
    phase == MAIN ? 2'd2 : phase == MAIN_YELLOW ? 2'd1 : 2'd0
  };

  always @(posedge clk)
    if (rst) begin
      out_valid <= 0;
      phase <= MAIN;
      timer <= 30;
      asked <= 0;
    end else if (advance) begin
      out_valid <= in_valid;
      if (in_valid) begin
        asked <= wanted;
        if (in_tick) begin
          if (timer != 0)
            timer <= timer - 1;
          else case (phase)
            MAIN: if (in_car || wanted) begin phase <= MAIN_YELLOW; timer <= 3; end
            MAIN_YELLOW: begin phase <= CLEAR_A; timer <= 1; end
            CLEAR_A: if (wanted) begin phase <= WALK; timer <= 15; asked <= 0; end
                     else begin phase <= SIDE; timer <= 20; end
            SIDE: begin phase <= SIDE_YELLOW; timer <= 3; end
            SIDE_YELLOW: begin phase <= CLEAR_B; timer <= 1; end
            WALK: if (in_car) begin phase <= SIDE; timer <= 20; end
                  else begin phase <= CLEAR_B; timer <= 1; end
            default: begin phase <= MAIN; timer <= 30; end
          endcase
        end
      end
    end
endmodule
