// RUN: foldline-opt %s -p infer-shapes,constant-folding | filecheck %s
// RUN: foldline-opt %s -p 'infer-shapes,constant-folding{max-bytes=8}' | filecheck %s --check-prefix BOUND
// Nodes of constants become constants that say where they come from; a bound on growth holds.

builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<2x3xf32>):
    %1 = onnx.initializer() {value = #onnx.tensor<"float", [3], typed, "0000803f0000004000004040">, onnx.names = #onnx.names<_ : "w">} : tensor<3xf32>
    %2 = onnx.Constant() {value_float = 2.000000e+00 : f32, onnx.names = #onnx.names<"a" : "t">} : !onnx.unknown
    %3 = onnx.Mul(%1, %2) {onnx.names = #onnx.names<"b" : "u">} : !onnx.unknown
    %4 = onnx.Add(%0, %3) {onnx.names = #onnx.names<"c" : "y">} : tensor<2x3xf32>
    %5 = onnx.initializer() {value = #onnx.tensor<"int64", [1], typed, "0400000000000000">, onnx.names = #onnx.names<_ : "n">} : tensor<1xi64>
    %6 = onnx.Tile(%1, %5) {onnx.names = #onnx.names<"d" : "z">} : tensor<12xf32>
    onnx.return(%4, %6) {interface = #onnx.interface<"g", ["x" : tensor<2x3xf32>], ["y" : tensor<2x3xf32>, "z" : tensor<12xf32>], []>}
  })
}

// CHECK:      %[[W:.*]] = onnx.Constant() {value = #onnx.tensor<"float", [3], "00000040000080400000c040">, onnx.names = #onnx.names<"b" : "u">, fold.from_folding = #onnx.texts<"b">} : tensor<3xf32>
// CHECK-NEXT: onnx.Add(%0, %[[W]])
// CHECK:      onnx.Tile(%1, %{{.*}}) {{.*}}fold.known = #fold.known<[#onnx.tensor<"float", [12],


// BOUND-NOT:  onnx.Mul
// BOUND:      onnx.Tile(%1, %4) {onnx.names = #onnx.names<"d" : "z">} : tensor<12xf32>
