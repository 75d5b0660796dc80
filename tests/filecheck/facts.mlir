// RUN: foldline-opt %s | filecheck %s
// RUN: foldline-opt %s -p infer-shapes,constant-folding | filecheck %s --check-prefix FOLDED
// Marks of the fold dialect are kept by the text, and obeyed by passes.

builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<2xf32>):
    %1 = onnx.initializer() {value = #onnx.tensor<"float", [2], typed, "0000803f00000040">, onnx.names = #onnx.names<_ : "w">} : tensor<2xf32>
    %2 = onnx.Neg(%1) {onnx.names = #onnx.names<"free" : "a">} : tensor<2xf32>
    %3 = onnx.Abs(%1) {fold.keep, onnx.names = #onnx.names<"kept" : "b">} : tensor<2xf32>
    %4 = onnx.Sum(%0, %2, %3) {onnx.names = #onnx.names<"sum" : "y">} : tensor<2xf32>
    onnx.return(%4) {interface = #onnx.interface<"g", ["x" : tensor<2xf32>], ["y" : tensor<2xf32>], []>}
  })
}

// CHECK:      onnx.Neg(%1) {onnx.names = #onnx.names<"free" : "a">}
// CHECK-NEXT: onnx.Abs(%1) {fold.keep, onnx.names = #onnx.names<"kept" : "b">}

// FOLDED:     onnx.Constant() {value = #onnx.tensor<"float", [2], "000080bf000000c0">, onnx.names = #onnx.names<"free" : "a">, fold.from_folding = #onnx.texts<"free">}
// FOLDED-NOT: onnx.Neg
// FOLDED:     onnx.Abs
