// A function of seven inputs: z = INIT[x]. Eight LUT4s side by side, and behind each two a PFUMX, an L6MUX21 behind
// each two of these, and one more.
module kera_ecp5_table #(
  parameter [127:0] INIT = 128'd0
) (
  input  wire [6:0] x,
  output wire z
);
`ifdef SYNTHESIS
  genvar k;
  wire [7:0] four;
  wire [3:0] five;
  wire [1:0] six;
  generate
    for (k = 0; k < 8; k = k + 1) begin : luts
      LUT4 #(.INIT(INIT[16*k +: 16])) lut (.A(x[0]), .B(x[1]), .C(x[2]), .D(x[3]), .Z(four[k]));
    end
    for (k = 0; k < 4; k = k + 1) begin : fives
      PFUMX choice (.BLUT(four[2*k]), .ALUT(four[2*k+1]), .C0(x[4]), .Z(five[k]));
    end
    for (k = 0; k < 2; k = k + 1) begin : sixes
      L6MUX21 choice (.D0(five[2*k]), .D1(five[2*k+1]), .SD(x[5]), .Z(six[k]));
    end
  endgenerate
  L6MUX21 seven (.D0(six[0]), .D1(six[1]), .SD(x[6]), .Z(z));
`else
  assign z = INIT[x];
`endif
endmodule
