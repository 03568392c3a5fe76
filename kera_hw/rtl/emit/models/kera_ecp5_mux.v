// WIDTH multiplexers of 2^LEVELS choices (LEVELS 2 to 4): LUT4s choose by select[0], PFUMX by select[1], L6MUX21
// by the bits above, which are free beside the LUTs. Choice k is choices[WIDTH*k +: WIDTH].
module kera_ecp5_mux #(
  parameter WIDTH = 1,
  parameter LEVELS = 2
) (
  input  wire [(WIDTH<<LEVELS)-1:0] choices,
  input  wire [LEVELS-1:0] select,
  output wire [WIDTH-1:0] z
);
`ifdef SYNTHESIS
  localparam N = 1 << LEVELS;
  genvar i, k;
  generate
    for (i = 0; i < WIDTH; i = i + 1) begin : bits
      wire [N/2-1:0] f;
      wire [N/4-1:0] g;
      for (k = 0; k < N / 2; k = k + 1) begin : luts
        LUT4 #(.INIT(16'hcaca)) lut (
          .A(choices[WIDTH*2*k+i]), .B(choices[WIDTH*(2*k+1)+i]), .C(select[0]), .D(1'b0), .Z(f[k])
        );
      end
      for (k = 0; k < N / 4; k = k + 1) begin : fives
        PFUMX five (.BLUT(f[2*k]), .ALUT(f[2*k+1]), .C0(select[1]), .Z(g[k]));
      end
      if (LEVELS == 2) begin : two
        assign z[i] = g[0];
      end else if (LEVELS == 3) begin : three
        L6MUX21 six (.D0(g[0]), .D1(g[1]), .SD(select[2]), .Z(z[i]));
      end else begin : four
        wire [1:0] h;
        L6MUX21 six0 (.D0(g[0]), .D1(g[1]), .SD(select[2]), .Z(h[0]));
        L6MUX21 six1 (.D0(g[2]), .D1(g[3]), .SD(select[2]), .Z(h[1]));
        L6MUX21 seven (.D0(h[0]), .D1(h[1]), .SD(select[3]), .Z(z[i]));
      end
    end
  endgenerate
`else
  assign z = choices[WIDTH*select +: WIDTH];
`endif
endmodule
