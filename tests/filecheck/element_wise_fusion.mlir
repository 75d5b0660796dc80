// RUN: foldline-opt %s -p element-wise-fusion | filecheck %s
// RUN: foldline-opt %s -p element-wise-fusion | foldline-opt | filecheck %s
// The text of the fused dialect, made and read again.

builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<64x64xf32>, %1: tensor<64x64xf32>):
    %2 = onnx.Add(%0, %1) {onnx.names = #onnx.names<"a" : "a">} : tensor<64x64xf32>
    %3 = onnx.Tanh(%2) {onnx.names = #onnx.names<"b" : "b">} : tensor<64x64xf32>
    %4 = onnx.Mul(%3, %1) {onnx.names = #onnx.names<"c" : "y">} : tensor<64x64xf32>
    onnx.return(%4) {interface = #onnx.interface<"g", ["x" : tensor<64x64xf32>, "z" : tensor<64x64xf32>], ["y" : tensor<64x64xf32>], []>}
  })
}

// CHECK:      %2 = fused.ElementWise() {onnx.names = #onnx.names<"c" : "y">} ({
// CHECK-NEXT:   %3 = onnx.Add(%0, %1)
// CHECK-NEXT:   %4 = onnx.Tanh(%3)
// CHECK-NEXT:   %5 = onnx.Mul(%4, %1)
// CHECK-NEXT:   onnx.return(%5) {interface = #onnx.interface<_, [], ["result_0"], []>}
// CHECK-NEXT: }) : tensor<64x64xf32>
