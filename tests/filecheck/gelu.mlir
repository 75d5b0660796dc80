// RUN: foldline-opt %s -p gelu | filecheck %s

builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<2x4xf32>):
    %1 = onnx.initializer() {value = #onnx.tensor<"float", [], typed, "0000003f">, onnx.names = #onnx.names<_ : "half">} : tensor<f32>
    %2 = onnx.initializer() {value = #onnx.tensor<"float", [], typed, "0000803f">, onnx.names = #onnx.names<_ : "one">} : tensor<f32>
    %3 = onnx.initializer() {value = #onnx.tensor<"float", [], typed, "f304b53f">, onnx.names = #onnx.names<_ : "root">} : tensor<f32>
    %4 = onnx.Div(%0, %3) {onnx.names = #onnx.names<_ : "d">} : tensor<2x4xf32>
    %5 = onnx.Erf(%4) {onnx.names = #onnx.names<_ : "e">} : tensor<2x4xf32>
    %6 = onnx.Add(%5, %2) {onnx.names = #onnx.names<_ : "f">} : tensor<2x4xf32>
    %7 = onnx.Mul(%0, %6) {onnx.names = #onnx.names<_ : "k">} : tensor<2x4xf32>
    %8 = onnx.Mul(%7, %1) {onnx.names = #onnx.names<_ : "y">} : tensor<2x4xf32>
    onnx.return(%8) {interface = #onnx.interface<"g", ["x" : tensor<2x4xf32>], ["y" : tensor<2x4xf32>], []>}
  })
}

// CHECK:      %{{.*}} = onnx.Gelu(%0)
// CHECK-SAME: onnx.names = #onnx.names<{{.*}} : "y">
// CHECK-NOT:  onnx.Erf
