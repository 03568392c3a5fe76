// WIDTH functions of five or six inputs (INPUTS): z = INIT[{f, e, d, c, b, a}], f taken for 0 with five. LUT4s side by
// side, a PFUMX that chooses by e behind each two, and an L6MUX21 that chooses by f.
module kera_ecp5_wide #(
  parameter WIDTH = 1,
  parameter INPUTS = 5,
  parameter [63:0] INIT = 64'h0000000000000000
) (
  input  wire [WIDTH-1:0] a,
  input  wire [WIDTH-1:0] b,
  input  wire [WIDTH-1:0] c,
  input  wire [WIDTH-1:0] d,
  input  wire [WIDTH-1:0] e,
  input  wire [WIDTH-1:0] f,
  output wire [WIDTH-1:0] z
);
  genvar i;
`ifdef SYNTHESIS
  genvar k;
  localparam N = 1 << (INPUTS - 4);
  generate
    for (i = 0; i < WIDTH; i = i + 1) begin : bits
      wire [N-1:0] four;
      wire [N/2-1:0] five;
      for (k = 0; k < N; k = k + 1) begin : luts
        LUT4 #(.INIT(INIT[16*k +: 16])) lut (.A(a[i]), .B(b[i]), .C(c[i]), .D(d[i]), .Z(four[k]));
      end
      for (k = 0; k < N / 2; k = k + 1) begin : fives
        PFUMX choice (.BLUT(four[2*k]), .ALUT(four[2*k+1]), .C0(e[i]), .Z(five[k]));
      end
      if (INPUTS == 5) begin : whole
        assign z[i] = five[0];
      end else begin : six
        L6MUX21 choice (.D0(five[0]), .D1(five[1]), .SD(f[i]), .Z(z[i]));
      end
    end
  endgenerate
`else
  localparam [0:0] SIX = INPUTS == 6;
  generate
    for (i = 0; i < WIDTH; i = i + 1) begin : bits
      assign z[i] = INIT[{SIX & f[i], e[i], d[i], c[i], b[i], a[i]}];
    end
  endgenerate
`endif
endmodule
