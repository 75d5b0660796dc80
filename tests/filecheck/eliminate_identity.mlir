// RUN: foldline-opt %s -p eliminate-identity | filecheck %s

builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<2x3xf32>):
    %1 = onnx.Identity(%0) {onnx.names = #onnx.names<"a" : "t">} : tensor<2x3xf32>
    %2 = onnx.Neg(%1) {onnx.names = #onnx.names<"c" : "y">} : tensor<2x3xf32>
    onnx.return(%2) {interface = #onnx.interface<"g", ["x" : tensor<2x3xf32>], ["y" : tensor<2x3xf32>], []>}
  })
}

// CHECK:     onnx.Neg(%0)
// CHECK-NOT: onnx.Identity
