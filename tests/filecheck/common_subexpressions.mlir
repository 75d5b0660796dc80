// RUN: foldline-opt %s -p common-subexpressions | filecheck %s
// Of equal nodes one is left, whatever they are called.

builtin.module attributes {onnx.ir_version = 10 : i64} {
  onnx.graph() {opsets = #onnx.opsets<"" : 20>} ({
  ^bb0(%0: tensor<2xf32>):
    %1 = onnx.Neg(%0) {onnx.names = #onnx.names<"a" : "a">} : tensor<2xf32>
    %2 = onnx.Neg(%0) {onnx.names = #onnx.names<"b" : "b">} : tensor<2xf32>
    %3 = onnx.Add(%1, %2) {onnx.names = #onnx.names<"c" : "y">} : tensor<2xf32>
    onnx.return(%3) {interface = #onnx.interface<"g", ["x" : tensor<2xf32>], ["y" : tensor<2xf32>], []>}
  })
}

// CHECK:      %1 = onnx.Neg(%0)
// CHECK-NEXT: onnx.Add(%1, %1)
