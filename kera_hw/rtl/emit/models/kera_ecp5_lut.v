// WIDTH functions of four inputs, each in a LUT4 of its own: z = INIT[{d, c, b, a}]. Synthesis would otherwise
// restructure logic that lowering has already covered with LUTs, and not for the better.
module kera_ecp5_lut #(
  parameter WIDTH = 1,
  parameter [15:0] INIT = 16'h0000
) (
  input  wire [WIDTH-1:0] a,
  input  wire [WIDTH-1:0] b,
  input  wire [WIDTH-1:0] c,
  input  wire [WIDTH-1:0] d,
  output wire [WIDTH-1:0] z
);
`ifdef SYNTHESIS
  genvar i;
  generate
    for (i = 0; i < WIDTH; i = i + 1) begin : bits
      LUT4 #(.INIT(INIT)) lut (.A(a[i]), .B(b[i]), .C(c[i]), .D(d[i]), .Z(z[i]));
    end
  endgenerate
`else
  // For simulation the same in whole vectors: the table's rows chosen by a, then by b, c and d.
  wire [WIDTH-1:0] m0 = ({WIDTH{INIT[0]}} & ~a) | ({WIDTH{INIT[1]}} & a);
  wire [WIDTH-1:0] m1 = ({WIDTH{INIT[2]}} & ~a) | ({WIDTH{INIT[3]}} & a);
  wire [WIDTH-1:0] m2 = ({WIDTH{INIT[4]}} & ~a) | ({WIDTH{INIT[5]}} & a);
  wire [WIDTH-1:0] m3 = ({WIDTH{INIT[6]}} & ~a) | ({WIDTH{INIT[7]}} & a);
  wire [WIDTH-1:0] m4 = ({WIDTH{INIT[8]}} & ~a) | ({WIDTH{INIT[9]}} & a);
  wire [WIDTH-1:0] m5 = ({WIDTH{INIT[10]}} & ~a) | ({WIDTH{INIT[11]}} & a);
  wire [WIDTH-1:0] m6 = ({WIDTH{INIT[12]}} & ~a) | ({WIDTH{INIT[13]}} & a);
  wire [WIDTH-1:0] m7 = ({WIDTH{INIT[14]}} & ~a) | ({WIDTH{INIT[15]}} & a);
  wire [WIDTH-1:0] low = (~c & ((~b & m0) | (b & m1))) | (c & ((~b & m2) | (b & m3)));
  wire [WIDTH-1:0] high = (~c & ((~b & m4) | (b & m5))) | (c & ((~b & m6) | (b & m7)));
  assign z = (~d & low) | (d & high);
`endif
endmodule
